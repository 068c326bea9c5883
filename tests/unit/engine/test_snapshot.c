/* snapshot, taken by a real bash in a double of the sandbox, with start-up files of the test; and
 * host_shell. */
#include "../base/support.h"
#include "../exec/fake_sandbox.h"
#include "../exec/run.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/strv.h"
#include "engine/host_shell.h"
#include "engine/snapshot.h"
#include "exec/capture.h"
#include "rules/shell_choice.h"
#include "rules/shell_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct session {
    char *home;
    char *folder;
    struct loop *loop;
    struct strv env;
    struct snapshot_options options;
    struct snapshot *snapshot;
    bool is_over;
};

static void on_over(void *data)
{
    ((struct session *)data)->is_over = true;
}

static int setup(void **state)
{
    struct session *session = alloc_zero(1, sizeof *session);
    struct err err;

    fake = (struct fake){0};
    session->home = support_scratch_new();
    session->folder = alloc_strf("%s/a/b", session->home);
    session->loop = loop_new(&err);
    strv_pushf(&session->env, "HOME=%s", session->home);
    strv_push(&session->env, "PATH=/usr/bin:/bin");
    session->options = (struct snapshot_options){
        .job = {.loop = session->loop,
                .sandbox = fake_sandbox(),
                .cgroup_base = "",
                .env = strv_view(&session->env),
                .cwd = session->home},
        .shell = "/bin/bash",
        .folder = session->folder,
        .on_over = on_over,
        .data = session,
    };
    *state = session;
    return 0;
}

static int teardown(void **state)
{
    struct session *session = *state;

    loop_free(session->loop);
    support_scratch_remove(session->home);
    strv_done(&session->env);
    free(session->folder);
    free(session);
    return 0;
}

static void take(struct session *session)
{
    struct err err;

    session->snapshot = snapshot_start(&session->options, &err);
    if (!session->snapshot)
        fail_msg("%s", err.msg);
    assert_null(snapshot_path(session->snapshot));
    assert_int_equal(loop_run(session->loop, &session->is_over, &err), 0);
}

static void check_output(struct session *session, const struct strv *argv, const char *wanted)
{
    struct oneshot_options options;
    struct oneshot_result result;
    struct capture_view view;
    struct err err;

    oneshot_defaults(&options);
    options.sandbox = session->options.job.sandbox;
    options.cgroup_base = "";
    options.env = session->options.job.env;
    options.cwd = session->home;
    options.argv = argv->items;
    assert_int_equal(oneshot_run(&options, &result, &err), 0);
    capture_view(result.capture, STREAM_STDOUT, &view);
    assert_int_equal(view.total, strlen(wanted));
    assert_memory_equal(view.head, wanted, view.head_len);
    oneshot_result_done(&result);
}

static void it_is_taken_used_and_removed(void **state)
{
    struct session *session = *state;
    char *const login[] = {(char *)"/bin/bash", (char *)"-lc", (char *)"greet; echo $A", NULL};
    char *const keep[] = {NULL};
    AUTO(strv_done) struct strv argv = {0};
    AUTO_FREE char *path = NULL;
    struct stat st;

    support_write(session->home, ".bash_profile",
                  "echo welcome; greet() { echo hi; }; export A=b\n");
    take(session);
    assert_null(snapshot_failure(session->snapshot));
    path = alloc_str(snapshot_path(session->snapshot));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat(session->folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_false(snapshot_use(session->snapshot, login, "/", keep, &argv));
    assert_true(snapshot_use(session->snapshot, login, session->home, keep, &argv));
    check_output(session, &argv, "hi\nb\n");
    snapshot_free(session->snapshot);
    assert_int_equal(access(path, F_OK), -1);
}

/* Fails with the words, and leaves no file. */
static void check_failure(struct session *session, const char *words)
{
    char *const login[] = {(char *)"/bin/bash", (char *)"-lc", (char *)"a", NULL};
    char *const keep[] = {NULL};
    AUTO(strv_done) struct strv argv = {0};

    take(session);
    assert_non_null(snapshot_failure(session->snapshot));
    assert_contains(snapshot_failure(session->snapshot)->msg, words);
    assert_null(snapshot_path(session->snapshot));
    assert_false(snapshot_use(session->snapshot, login, session->home, keep, &argv));
    snapshot_free(session->snapshot);
    assert_true(rmdir(session->folder) == 0 || errno == ENOENT);
}

static void start_up_files_may_fail(void **state)
{
    support_write(((struct session *)*state)->home, ".bash_profile", "exit 3\n");
    check_failure(*state, "start-up files of /bin/bash fail");
}

static void start_up_files_may_hide_the_state(void **state)
{
    support_write(((struct session *)*state)->home, ".bash_profile", "exec > /dev/null\n");
    check_failure(*state, "did not print its state");
}

static void what_cannot_be_read_again_is_not_used(void **state)
{
    support_write(((struct session *)*state)->home, ".bash_profile",
                  "trap 'echo \"if then (\"' EXIT\n");
    check_failure(*state, "cannot read its own state");
}

/* The start-up file waits for somebody who never comes. */
static void write_endless(const struct session *session, const char *name)
{
    AUTO_FREE char *fifo = path_join(session->home, "fifo");

    assert_int_equal(mkfifo(fifo, 0600), 0);
    support_write(session->home, name, "read x < ~/fifo\n");
}

static void start_up_files_may_take_too_long(void **state)
{
    struct session *session = *state;

    write_endless(session, ".bash_profile");
    session->options.job.timeout_ns = CLOCK_NS_PER_S / 10;
    check_failure(session, "take too long");
}

static void zsh_does_without_them_then(void **state)
{
    struct session *session = *state;

    if (access("/bin/zsh", X_OK)) {
        print_message("/bin/zsh is not installed (scripts/deps)\n");
        if (getenv("CORDON_MUST_WORK"))
            fail();
        skip();
    }
    write_endless(session, ".zprofile");
    session->options.shell = "/bin/zsh";
    session->options.job.timeout_ns = 2 * CLOCK_NS_PER_S; /* enough for what does not wait */
    take(session);
    assert_null(snapshot_failure(session->snapshot));
    assert_non_null(snapshot_path(session->snapshot));
    snapshot_free(session->snapshot);
}

static void the_folder_may_be_unusable(void **state)
{
    struct session *session = *state;

    session->options.folder = "/proc/no/folder";
    check_failure(session, "/proc/no");
}

static void other_shells_have_none(void **state)
{
    struct session *session = *state;
    struct err err;

    session->options.shell = "/usr/bin/fish";
    assert_null(snapshot_start(&session->options, &err));
    assert_int_equal(err.code, ERR_UNSUPPORTED);
}

static void it_may_be_freed_in_the_middle(void **state)
{
    struct session *session = *state;
    struct err err;

    session->snapshot = snapshot_start(&session->options, &err);
    assert_non_null(session->snapshot);
    snapshot_free(session->snapshot);
    assert_int_equal(access(session->folder, F_OK), -1);
}

static bool exists(const char *folder, const char *name)
{
    AUTO_FREE char *path = path_join(folder, name);

    return access(path, F_OK) == 0;
}

static void old_ones_are_swept(void **state)
{
    struct session *session = *state;
    time_t now = time(NULL);
    struct err err;

    support_write(session->home, "snapshot-a", "x");
    support_write(session->home, "other", "x");
    assert_int_equal(snapshot_sweep(session->home, now + SHELL_SNAPSHOT_AGE_MAX_S - 60, &err), 0);
    assert_true(exists(session->home, "snapshot-a"));
    assert_int_equal(snapshot_sweep(session->home, now + SHELL_SNAPSHOT_AGE_MAX_S + 60, &err), 0);
    assert_false(exists(session->home, "snapshot-a"));
    assert_true(exists(session->home, "other"));
    assert_int_equal(snapshot_sweep("/no/such/folder", now, &err), 0);
    assert_int_equal(snapshot_sweep("/dev/null", now, &err), -1);
}

/* A uid without an account has one, too. */
static void the_user_has_a_shell(void **state)
{
    AUTO_FREE char *by_path = host_shell("/usr/bin:/bin");
    AUTO_FREE char *usual = host_shell(NULL);

    assert_int_equal(access(by_path, X_OK), 0);
    assert_int_not_equal(shell_kind_of(by_path), SHELL_UNKNOWN);
    assert_int_equal(access(usual, X_OK), 0);
    assert_int_not_equal(shell_kind_of(usual), SHELL_UNKNOWN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_taken_used_and_removed),      TEST(start_up_files_may_fail),
        TEST(start_up_files_may_hide_the_state), TEST(what_cannot_be_read_again_is_not_used),
        TEST(start_up_files_may_take_too_long),  TEST(zsh_does_without_them_then),
        TEST(the_folder_may_be_unusable),        TEST(other_shells_have_none),
        TEST(it_may_be_freed_in_the_middle),     TEST(old_ones_are_swept),
        cmocka_unit_test(the_user_has_a_shell),
    };

    return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}

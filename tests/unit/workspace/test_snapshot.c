/* snapshots, taken by a real bash in a double of the sandbox, with start-up files of
 * the test; and host_shell. */
#include "../base/support.h"
#include "../process/fake_sandbox.h"
#include "../process/run.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/strv.h"
#include "job/job_run.h"
#include "output/output.h"
#include "rules/shell/shell_choice.h"
#include "rules/shell/shell_snapshot.h"
#include "workspace/finder.h"
#include "workspace/snapshots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct session {
    char *home;
    struct loop *loop;
    struct strv env;
    struct snapshots *snapshots;
    struct snapshot_request request; /* a login in bash, in the home directory */
    char *argv[4];
    int holds;
    bool is_over;
};

static void on_hold(void *data)
{
    ((struct session *)data)->holds++;
}

static void on_release(void *data)
{
    struct session *session = data;

    session->holds--;
    session->is_over = true;
}

static int setup(void **state)
{
    static char *const keep[] = {NULL};
    struct session *session = alloc_zero(1, sizeof *session);
    struct err err;

    fake = (struct fake){0};
    session->home = support_scratch_new();
    session->loop = loop_new(&err);
    session->snapshots = snapshots_new(session->loop);
    strv_pushf(&session->env, "HOME=%s", session->home);
    strv_push(&session->env, "PATH=/usr/bin:/bin");
    session->argv[0] = (char *)"/bin/bash";
    session->argv[1] = (char *)"-lc";
    session->argv[2] = (char *)"greet; echo $A";
    session->request = (struct snapshot_request){
        .argv = session->argv,
        .cwd = session->home,
        .number = 1,
        .sandbox = fake_sandbox(),
        .env = strv_view(&session->env),
        .keep = keep,
        .hold = on_hold,
        .release = on_release,
        .data = session,
    };
    *state = session;
    return 0;
}

static int teardown(void **state)
{
    struct session *session = *state;

    snapshots_free(session->snapshots);
    assert_int_equal(session->holds, 0);
    loop_free(session->loop);
    support_scratch_remove(session->home);
    strv_done(&session->env);
    free(session);
    return 0;
}

/* Whether a snapshot is used for the request. */
static bool is_used(struct session *session, const struct err **ret_failure)
{
    AUTO(strv_done) struct strv argv = {0};
    AUTO(strv_done) struct strv added = {0};

    return snapshots_use(session->snapshots, &session->request, &argv, &added, ret_failure);
}

static void wait_for_it(struct session *session)
{
    struct err err;

    session->is_over = false;
    assert_int_equal(loop_run(session->loop, &session->is_over, &err), 0);
}

static void take(struct session *session)
{
    const struct err *failure;

    assert_false(is_used(session, &failure));
    assert_null(failure);
    assert_int_equal(session->holds, 1);
    wait_for_it(session);
    assert_int_equal(session->holds, 0);
}

static void check_output(struct session *session, const struct strv *argv, const struct strv *added,
                         const char *wanted)
{
    AUTO(strv_done) struct strv env = {0};
    struct job_run_options options;
    struct job_result result;
    struct buf text;
    struct err err;

    strv_push_all(&env, session->request.env);
    strv_push_all(&env, strv_view(added));
    job_run_defaults(&options);
    options.sandbox = session->request.sandbox;
    options.without_cgroup = true;
    options.env = strv_view(&env);
    options.cwd = session->home;
    options.argv = argv->items;
    assert_int_equal(job_run(&options, &result, &err), 0);
    buf_init(&text, SIZE_MAX / 2);
    assert_true(output_render(job_stream(result.job, STREAM_STDOUT), &text));
    assert_string_equal(text.data ? text.data : "", wanted);
    buf_done(&text);
    job_result_done(&result);
}

static void it_is_taken_and_used(void **state)
{
    struct session *session = *state;
    AUTO(strv_done) struct strv argv = {0};
    AUTO(strv_done) struct strv env = {0};
    const struct err *failure;

    support_write(session->home, ".bash_profile",
                  "echo welcome; greet() { echo hi; }; export A=b\n");
    take(session);
    session->argv[1] = (char *)"-c";
    assert_false(is_used(session, &failure));
    assert_null(failure);
    session->argv[1] = (char *)"-lc";
    assert_true(snapshots_use(session->snapshots, &session->request, &argv, &env, &failure));
    assert_null(failure);
    check_output(session, &argv, &env, "hi\nb\n");
    session->request.cwd = "/";
    assert_false(is_used(session, &failure));
}

/* Fails with the words. */
static void check_failure(struct session *session, const char *words)
{
    const struct err *failure;

    take(session);
    assert_false(is_used(session, &failure));
    assert_non_null(failure);
    assert_contains(failure->msg, words);
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

/* The start-up file waits for a writer that never comes. */
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
    session->request.timeout_ns = CLOCK_NS_PER_S / 10;
    check_failure(session, "take too long");
}

static void zsh_does_without_them_then(void **state)
{
    struct session *session = *state;
    const struct err *failure;

    if (access("/bin/zsh", X_OK)) {
        print_message("/bin/zsh is not installed (scripts/deps test)\n");
        if (getenv("CORDON_MUST_WORK"))
            fail();
        skip();
    }
    write_endless(session, ".zprofile");
    session->argv[0] = (char *)"/bin/zsh";
    session->request.timeout_ns = 2 * CLOCK_NS_PER_S; /* enough for what does not wait */
    take(session);
    assert_true(is_used(session, &failure));
    assert_null(failure);
}

static void a_state_may_be_too_large(void **state)
{
    support_write(((struct session *)*state)->home, ".bash_profile",
                  "printf -v BIG %0600000d 0; export BIG\n");
    check_failure(*state, "is larger than");
}

static void other_shells_have_none(void **state)
{
    struct session *session = *state;
    const struct err *failure;

    session->argv[0] = (char *)"/usr/bin/fish";
    assert_false(is_used(session, &failure));
    assert_null(failure);
    assert_int_equal(session->holds, 0);
}

static void it_may_be_freed_in_the_middle(void **state)
{
    struct session *session = *state;
    const struct err *failure;

    assert_false(is_used(session, &failure));
    assert_int_equal(session->holds, 1); /* freed by the teardown, which looks at the holds */
}

/* A uid without an account has one, too. */
static void the_user_has_a_shell(void **state)
{
    AUTO_FREE char *by_path = host_shell((char *const[]){(char *)"PATH=/usr/bin:/bin", NULL});
    AUTO_FREE char *usual = host_shell(NULL);

    assert_int_equal(access(by_path, X_OK), 0);
    assert_int_not_equal(shell_kind_of(by_path), SHELL_UNKNOWN);
    assert_int_equal(access(usual, X_OK), 0);
    assert_int_not_equal(shell_kind_of(usual), SHELL_UNKNOWN);
}

static void a_command_gets_the_shell_of_its_environment(void **state)
{
    char *const zsh[] = {(char *)"PATH=/usr/bin:/bin", (char *)"SHELL=/bin/zsh", NULL};
    char *const fish[] = {(char *)"SHELL=/usr/bin/fish", (char *)"PATH=/usr/bin:/bin", NULL};
    char *const relative[] = {(char *)"SHELL=bash", NULL};
    AUTO_FREE char *own = host_shell(zsh);
    AUTO_FREE char *other = host_shell(fish);
    AUTO_FREE char *absolute = host_shell(relative);
    AUTO_FREE char *users = host_shell((char *const[]){(char *)"PATH=/usr/bin:/bin", NULL});

    assert_string_equal(own, "/bin/zsh");
    assert_string_equal(other, users);
    assert_int_equal(absolute[0], '/');
}

/* --- several of them --- */

static void one_is_for_commands_that_are_alike(void **state)
{
    struct session *session = *state;
    AUTO(strv_done) struct strv other = {0};
    const struct err *failure;

    strv_push_all(&other, session->request.env);
    strv_push(&other, "SECRET=x");
    assert_false(is_used(session, &failure));
    assert_int_equal(session->holds, 1);
    assert_false(is_used(session, &failure)); /* not yet */
    assert_int_equal(session->holds, 1);
    wait_for_it(session);
    assert_int_equal(session->holds, 0);
    assert_true(is_used(session, &failure));
    assert_null(failure);
    session->request.number = 2;
    assert_false(is_used(session, &failure));
    session->request.number = 1;
    session->request.env = strv_view(&other);
    assert_false(is_used(session, &failure));
    session->request.env = strv_view(&session->env);
    assert_true(is_used(session, &failure));
    assert_int_equal(session->holds, 2);
    for (session->request.number = 10; session->request.number < 30; session->request.number++)
        assert_false(is_used(session, &failure)); /* pushes out everything before */
    assert_int_equal(session->holds, 16);
    session->request.number = 1;
    assert_false(is_used(session, &failure));
}

static void a_failure_is_told_once(void **state)
{
    struct session *session = *state;
    const struct err *failure;

    support_write(session->home, ".bash_profile", "exit 3\n");
    take(session);
    assert_false(is_used(session, &failure));
    assert_non_null(failure);
    assert_contains(failure->msg, "fail");
    assert_false(is_used(session, &failure));
    assert_null(failure);
    assert_int_equal(session->holds, 0); /* and it is not tried again */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_taken_and_used),
        TEST(start_up_files_may_fail),
        TEST(start_up_files_may_hide_the_state),
        TEST(what_cannot_be_read_again_is_not_used),
        TEST(start_up_files_may_take_too_long),
        TEST(zsh_does_without_them_then),
        TEST(a_state_may_be_too_large),
        TEST(other_shells_have_none),
        TEST(it_may_be_freed_in_the_middle),
        TEST(one_is_for_commands_that_are_alike),
        TEST(a_failure_is_told_once),
        cmocka_unit_test(the_user_has_a_shell),
        cmocka_unit_test(a_command_gets_the_shell_of_its_environment),
    };

    return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}

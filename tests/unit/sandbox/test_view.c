/* Launches in a view of overlays: what they write is in the uppers alone, several see each other's files, each enters and leaves
 * once, however it ends; and everything that a command may not do it may not do there. */
#include "launching.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "sandbox/linux/overlay.h"
#include "sandbox/linux/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A view of one step over the ground's ws, mounted while somebody is in it. */
struct test_view {
    struct sandbox_view view;
    struct overlay_namespace space;
    char *roots[2];
    char *up;
    char *work;
    char *git;
    int steps;
    int inside;
    int entered;
    int left;
    int wait_status;
    bool refuses;
};

static struct ground ground;
static struct test_view view;
static struct sandbox *sandbox;

static int view_enter(struct sandbox_view *base, const struct launch_options *options,
                      struct err *err)
{
    const char *const real[] = {view.git, NULL};
    struct overlay overlay = {.root = ground.ws, .upper = view.up, .work = view.work, .real = real};
    struct overlay_namespace made;
    struct stat st;

    assert_ptr_equal(base, &view.view);
    if (view.refuses)
        return err_set(err, ERR_BUSY, "not now");
    view.entered++;
    if (view.inside++)
        return 0;
    sandbox_view_settle(base);
    free(view.up);
    free(view.work);
    overlay.upper = view.up = alloc_strf("%s/up%d", ground.scratch, ++view.steps);
    overlay.work = view.work = alloc_strf("%s/work%d", ground.scratch, view.steps);
    assert_int_equal(mkdir(view.up, 0700), 0);
    assert_int_equal(mkdir(view.work, 0700), 0);
    assert_int_equal(stat(ground.ws, &st), 0);
    overlay.dev = st.st_dev;
    overlay.ino = st.st_ino;
    if (overlay_mount(&overlay, 1, view.space.users, &made, err)) {
        view.inside--;
        view.entered--;
        return -1;
    }
    if (view.space.users >= 0)
        overlay_close(&view.space);
    view.space = made;
    view.view.users = made.users;
    view.view.mounts = made.mounts;
    return 0;
}

static void view_leave(struct sandbox_view *base, int wait_status)
{
    view.left++;
    view.wait_status = wait_status;
    assert_in_range(view.inside, 1, 100);
    if (--view.inside == 0) {
        close(view.space.mounts);
        view.space.mounts = view.view.mounts = -1;
    }
}

/* All steps' folders. */
static void open_works(void)
{
    for (int i = 1; i <= view.steps; i++) {
        AUTO_FREE char *command =
            alloc_strf("chmod -fR u+rwx %s/work%d 2>/dev/null; true", ground.scratch, i);

        assert_int_equal(system(command), 0); /* as an ordinary user, too */
    }
}

static int setup_with(bool caches)
{
    AUTO(access_map_done) struct access_map map;
    struct sandbox_options options = {
        .mode = SANDBOX_AUTO, .cache_idle = caches, .watch = WATCH_FACTS, .view = &view.view};
    struct err err;

    ground_init(&ground);
    view = (struct test_view){.view = {.enter = view_enter, .leave = view_leave},
                              .space = {-1, -1},
                              .roots = {ground.ws, NULL},
                              .git = path_join(ground.ws, ".git")};
    view.view.users = view.view.mounts = -1;
    view.view.roots = (const char *const *)view.roots;
    assert_int_equal(mkdir(view.git, 0755), 0);
    ground_map(&ground, &map);
    access_map_exact(&map, view.git)->kind = ACCESS_DIR;
    options.access = &map;
    sandbox = sandbox_new(&options, &err);
    if (!sandbox || sandbox_probe(sandbox, &err)) {
        if (err.code == ERR_UNSUPPORTED)
            skip_because(err.msg);
        fail_msg("%s", err.msg);
    }
    assert_int_equal(view.entered, 0); /* a probe has nothing to write */
    return 0;
}

static int setup(void **state)
{
    return setup_with(false);
}

static int setup_caching(void **state)
{
    return setup_with(true);
}

static int teardown(void **state)
{
    assert_int_equal(view.entered, view.left);
    assert_int_equal(view.inside, 0);
    sandbox_free(TAKE_PTR(sandbox));
    sandbox_view_settle(&view.view);
    overlay_close(&view.space);
    open_works();
    free(view.up);
    free(view.work);
    free(view.git);
    ground_done(&ground);
    return 0;
}

static void expect_there(const char *dir, const char *name, bool is_there)
{
    AUTO_FREE char *path = path_join(dir, name);

    if ((access(path, F_OK) == 0) != is_there)
        fail_msg("%s is %sthere", path, is_there ? "not " : "");
}

static void test_written_in_the_upper(void **state)
{
    AUTO_FREE char *text = script_output(
        sandbox, ground.ws, "echo new > new; mkdir dir; touch .git/x 2>/dev/null || cat new");

    assert_string_equal(text, "new\n");
    expect_there(ground.ws, "new", false);
    expect_there(ground.ws, "dir", false);
    expect_there(view.up, "new", true);
    expect_there(view.up, "dir", true);
    expect_there(view.up, ".codex", false);
    assert_int_equal(view.entered, 1);
    assert_int_equal(view.left, 1);
    assert_int_equal(view.wait_status, 0);
}

static void test_next_step_is_another(void **state)
{
    free(script_output(sandbox, ground.ws, "echo one > one"));
    free(script_output(sandbox, ground.ws, "test ! -e one && echo two > two"));
    assert_int_equal(view.steps, 2);
    expect_there(view.up, "one", false);
    expect_there(view.up, "two", true);
}

static void test_two_at_once(void **state)
{
    struct command first;
    struct ended ended;

    command_start(&first, sandbox,
                  launch_in(ground.ws, ARGV((char *)"sh", (char *)"-c",
                                            (char *)"echo ready; until test -e go; do :; done")));
    command_expect(&first, "ready\n");
    sandbox_prepare(sandbox);
    free(script_output(sandbox, ground.ws, "touch go"));
    sandbox_prepare(sandbox);
    ended = command_finish(&first);
    assert_exited(ended, 0);
    ended_done(&ended);
    assert_int_equal(view.steps, 1);
    assert_int_equal(view.entered, 2);
    expect_there(ground.ws, "go", false);
}

/* A spare of the step before would write into that. */
static void test_no_spare_outlives(void **state)
{
    for (int i = 1; i <= 4; i++) {
        free(script_output(sandbox, ground.ws, "touch x"));
        sandbox_prepare(sandbox);
        assert_int_equal(view.steps, i);
        expect_there(view.up, "x", true);
    }
    sandbox_view_settle(&view.view);
    assert_int_equal(view.view.endings_len, 0);
    assert_true(sandbox_release_idle(sandbox)); /* all have ended */
}

static void test_how_it_ended(void **state)
{
    struct ended ended = run_script(sandbox, ground.ws, "exit 3");

    assert_exited(ended, 3);
    ended_done(&ended);
    assert_int_equal(view.wait_status, 3 << 8);
    ended = run_argv(sandbox, ground.ws, ARGV((char *)"/nonexistent"));
    assert_int_equal(ended.report.event, LAUNCH_FAILED);
    ended_done(&ended);
    assert_int_equal(view.wait_status, -1);
    assert_int_equal(view.left, 2);
}

static void test_refused(void **state)
{
    struct launch_options options = launch_in(ground.ws, ARGV((char *)"true"));
    struct launch launch;
    struct err err;

    view.refuses = true;
    assert_int_equal(sandbox_launch(sandbox, &options, &launch, &err), -1);
    assert_int_equal(err.code, ERR_BUSY);
    view.refuses = false;
}

static void test_killed(void **state)
{
    struct command command;

    command_start(&command, sandbox,
                  launch_in(ground.ws, ARGV((char *)"sh", (char *)"-c",
                                            (char *)"echo ready; sleep 1000 & sleep 1000")));
    command_expect(&command, "ready\n");
    launch_done(&command.launch);
    assert_int_equal(view.left, 1);
    assert_int_equal(view.wait_status, -1);
    assert_int_equal(view.view.endings_len, 0); /* it was waited for */
    command_expect_silence(&command);
    buf_done(&command.text);
    close(command.out);
}

static void test_in_the_plan(void **state)
{
    AUTO(buf_done) struct buf text = {.max = 1 << 20};
    AUTO_FREE char *line = alloc_strf("\nlayer %s\n", ground.ws);

    plan_print(sandbox_plan(sandbox), &text);
    assert_contains(text.data, line);
}

/* A descriptor of a directory from outside leads to the real one, where neither kernel nor guard lets anything be written. */
static void test_a_real_directory_given(void **state)
{
    static char script[] =
        "mkdir /proc/self/fd/0/a; touch /proc/self/fd/0/b; ln -s x /proc/self/fd/0/c; "
        "mv /proc/self/fd/0/old /proc/self/fd/0/d; rm -f /proc/self/fd/0/old; "
        "cd /proc/self/fd/0 && { mkdir e; touch f; ln old g; rm -f old; }; "
        "perl -e 'open(my $d, \"<&=\", 0); chdir $d; mkdir \"h\"; open(F, \">i\"); unlink \"old\"; "
        "symlink(\"x\", \"j\"); rename(\"old\", \"k\"); open(F, \">>old\") && print F \"x\"' ; "
        "exit 0";
    AUTO_FREE char *old = path_join(ground.ws, "old");
    AUTO_CLOSE int dir = open(ground.ws, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct launch_options options = launch_in(ground.ws, ARGV((char *)"sh", (char *)"-c", script));
    struct command command;
    struct ended ended;
    struct stat st;

    close(open(old, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    assert_int_equal(stat(old, &st), 0);
    options.stdio[0] = dir;
    command_start(&command, sandbox, options);
    ended = command_finish(&command);
    assert_exited(ended, 0);
    ended_done(&ended);
    for (char name[2] = "a"; *name <= 'k'; name[0]++)
        expect_there(ground.ws, name, false);
    expect_there(ground.ws, "old", true);
    assert_int_equal(stat(old, &st), 0);
    assert_int_equal(st.st_size, 0);
}

/* Its own user namespace, nothing mapped but its own user, no capability; and nobody gets at the mounts. */
static void test_what_it_may_not(void **state)
{
    AUTO_FREE char *text = script_output(
        sandbox, ground.ws,
        "grep -c . /proc/self/uid_map; grep CapEff /proc/self/status; umount . 2>/dev/null || "
        "echo kept; mount -o remount,bind . 2>/dev/null || echo kept");

    assert_string_equal(text, "1\nCapEff:\t0000000000000000\nkept\nkept\n");
}

static void test_needs_namespaces(void **state)
{
    static const enum sandbox_mode modes[] = {SANDBOX_DISABLED, SANDBOX_LANDLOCK};

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const struct sandbox_options options = {
            .mode = modes[i], .access = sandbox_access(sandbox), .view = &view.view};
        struct err err;

        assert_null(sandbox_new(&options, &err));
        assert_int_equal(err.code, ERR_UNSUPPORTED);
        assert_contains(err.msg, "a layer needs user and mount namespaces");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_written_in_the_upper, setup, teardown),
        cmocka_unit_test_setup_teardown(test_next_step_is_another, setup, teardown),
        cmocka_unit_test_setup_teardown(test_next_step_is_another, setup_caching, teardown),
        cmocka_unit_test_setup_teardown(test_two_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_at_once, setup_caching, teardown),
        cmocka_unit_test_setup_teardown(test_no_spare_outlives, setup_caching, teardown),
        cmocka_unit_test_setup_teardown(test_how_it_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_killed, setup_caching, teardown),
        cmocka_unit_test_setup_teardown(test_in_the_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_real_directory_given, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_it_may_not, setup, teardown),
        cmocka_unit_test_setup_teardown(test_needs_namespaces, setup, teardown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a command executes: told, judged, and run outside in its place. */
#include "exec_host.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ground ground;
static struct sandbox *sandbox;
static struct exec_host host;

static int setup(void **state)
{
    ground_init(&ground);
    host = (struct exec_host){0};
    return 0;
}

static int teardown(void **state)
{
    sandbox_free(TAKE_PTR(sandbox));
    exec_host_done(&host);
    ground_done(&ground);
    return 0;
}

static struct ended run(unsigned watch, const char *script)
{
    sandbox = ground_sandbox_watching(&ground, watch);
    if (sandbox_defence(sandbox, DEFENCE_GUARD)->state != DEFENCE_ENFORCED)
        skip_because(sandbox_defence(sandbox, DEFENCE_GUARD)->why);
    return exec_host_run(&host, sandbox, ground.ws,
                         ARGV((char *)"sh", (char *)"-c", (char *)script));
}

static const char *log_text(void)
{
    buf_append(&host.log, "", 1);
    return host.log.data;
}

/* -- told */

static uint64_t first_id, second_parent;

static void keep_ids(struct exec_host *told, const struct launch_fact *fact)
{
    if (fact->kind == FACT_EXEC && !first_id)
        first_id = fact->id;
    else if (fact->kind == FACT_EXEC)
        second_parent = fact->parent;
}

static void test_programs_are_told(void **state)
{
    AUTO(ended_done) struct ended ended = {0};

    first_id = second_parent = 0;
    host.on_fact = keep_ids;
    ended = run(WATCH_EXEC, "cat /dev/null 'a b'; env -i false; true");
    assert_exited(ended, 0);
    assert_non_null(strstr(log_text(), "cat cat /dev/null a b\n"));
    assert_non_null(strstr(host.log.data, "env env -i false\n"));
    assert_non_null(strstr(host.log.data, "false false\n"));
    assert_non_null(strstr(host.log.data, "exit 0x100\n"));
    assert_non_null(strstr(host.log.data, "exit 0\n"));
    assert_int_equal(host.execs, 4);
    assert_int_equal(host.exits, 3); /* env has become false */
    assert_int_equal(host.asked, 0);
    assert_int_equal(first_id, 1);
    assert_int_equal(second_parent, 3); /* env, which was the shell's child */
}

/* A subshell is no exec of its own: what it executes has the shell above. */
static void test_a_subshell(void **state)
{
    AUTO(ended_done) struct ended ended = {0};

    first_id = second_parent = 0;
    host.on_fact = keep_ids;
    ended = run(WATCH_EXEC, "( ( kill -9 $$ & ); (cat /dev/null; exit 3) )");
    assert_int_equal(second_parent ? second_parent : first_id, first_id);
}

static void test_probes_are_not_told(void **state)
{
    AUTO(ended_done) struct ended ended = {0};

    ended =
        run(WATCH_EXEC, "PATH=/nowhere:/etc:/usr/bin:/bin; env true; ./none; /etc/passwd; true");
    assert_exited(ended, 0);
    assert_int_equal(host.execs, 3); /* sh, env, true */
}

static void test_nobody_asked(void **state)
{
    AUTO(ended_done) struct ended ended = run(WATCH_FACTS, "cat /dev/null; env true");

    assert_exited(ended, 0);
    assert_int_equal(host.execs + host.exits + host.asked, 0);
}

static char *refused_path;
static int refused_error;

static void keep_refused(struct exec_host *told, const struct launch_fact *fact)
{
    if (fact->kind != FACT_DENIED || fact->operation != FACT_EXECUTE)
        return;
    free(refused_path);
    refused_path = alloc_str(fact->path);
    refused_error = fact->error;
    assert_non_null(fact->entry);
}

/* A program that a denied entry hides; not one that is not there, nor one that is no program. */
static void test_what_is_hidden_is_refused(void **state)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};
    AUTO_FREE char *secret = path_join(ground.ws, "secret");
    AUTO_FREE char *deep = path_join(secret, "bin");
    AUTO_FREE char *tool = path_join(deep, "tool");
    AUTO(ended_done) struct ended ended = {0};
    struct sandbox_options options = {.access = &map, .watch = WATCH_FACTS};
    struct err err;

    assert_int_equal(mkdir(secret, 0755) | mkdir(deep, 0755), 0);
    support_write(deep, "tool", "#!/bin/sh\n");
    support_write(deep, "text", "no program\n");
    assert_int_equal(chmod(tool, 0755), 0);
    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "test");
    access_map_add(&map, ground.ws, ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_add(&map, secret, ACCESS_DENY, ACCESS_DIR, "test");
    access_map_sort(&map);
    sandbox = sandbox_new(&options, &err);
    if (!sandbox && err.code == ERR_UNSUPPORTED)
        skip_because(err.msg);
    assert_non_null(sandbox);
    if (sandbox_defence(sandbox, DEFENCE_GUARD)->state != DEFENCE_ENFORCED)
        skip_because(sandbox_defence(sandbox, DEFENCE_GUARD)->why);
    host.on_fact = keep_refused;
    ended = exec_host_run(
        &host, sandbox, ground.ws,
        ARGV((char *)"sh", (char *)"-c",
             (char *)"./secret/bin/none; secret/bin/text; cd /; $OLDPWD/secret/bin/tool; true"));
    assert_exited(ended, 0);
    assert_int_equal(host.refused, 1);
    assert_string_equal(refused_path, tool);
    assert_int_equal(refused_error, ENOENT);
    free(TAKE_PTR(refused_path));
}

/* -- judged */

static enum launch_verdict no_cat(struct exec_host *asked, const struct launch_fact *fact)
{
    return str_ends(fact->path, "/cat") ? LAUNCH_NO : LAUNCH_YES;
}

static void test_judged(void **state)
{
    AUTO(ended_done) struct ended ended = {0};

    host.judge = no_cat;
    ended = run(WATCH_JUDGE | WATCH_EXEC, "cat /dev/null; echo $?; env echo fine");
    assert_exited(ended, 0);
    assert_non_null(strstr(ended.text, "126\nfine\n"));
    assert_int_equal(strncmp(log_text(), "exec dash", 5), 0); /* which nobody was asked about */
    assert_int_equal(host.execs, 3);
}

/* The script waits for the file. */
static enum launch_verdict hold(struct exec_host *asked, const struct launch_fact *fact)
{
    AUTO_FREE char *held = path_join(ground.ws, "held");

    if (!str_ends(fact->path, "/cat"))
        return LAUNCH_YES;
    close(open(held, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return (enum launch_verdict)LAUNCH_HOLD;
}

/* The others go on; one that is killed takes its question back. */
static void test_held(void **state)
{
    AUTO(ended_done) struct ended ended = {0};

    host.judge = hold;
    ended = run(WATCH_JUDGE,
                "cat /dev/null & until env test -e held; do :; done; kill -9 $!; wait $!; echo $?");
    assert_exited(ended, 0);
    assert_true(str_ends(ended.text, "137\n"));
    assert_int_equal(host.held, 1);
    assert_int_equal(host.withdrawn, 1);
}

/* -- outside */

static enum launch_verdict shells_outside(struct exec_host *asked, const struct launch_fact *fact)
{
    return fact->argv[0] && str_eq(fact->argv[0], "outside") ? LAUNCH_OUTSIDE : LAUNCH_YES;
}

/* A link by that name to a shell: `outside -c SCRIPT` is run outside of the sandbox. */
static struct ended run_outside(const char *script)
{
    AUTO_FREE char *link = path_join(ground.ws, "outside");
    AUTO_FREE char *text = alloc_strf("PATH=$PWD:$PATH; %s", script);

    assert_int_equal(symlink("/bin/sh", link), 0);
    host.judge = shells_outside;
    return run(WATCH_JUDGE, text);
}

static void test_outside(void **state)
{
    AUTO(ended_done)
    struct ended ended = run_outside("outside -c 'echo $WHERE $PWD; exit 42'; echo $?");
    AUTO_FREE char *expected = alloc_strf("outside %s\n42\n", ground.ws);

    assert_exited(ended, 0);
    assert_string_equal(ended.text, expected);
    assert_int_equal(host.outside, 1);
}

static void test_outside_with_pipes(void **state)
{
    AUTO(ended_done)
    struct ended ended =
        run_outside("echo in | outside -c 'read x; echo $WHERE:$x; echo err >&2' | "
                    "sed s/^/got:/; outside -c 'kill -TERM $$'; echo $?");

    assert_exited(ended, 0);
    assert_non_null(strstr(ended.text, "got:outside:in\n"));
    assert_non_null(strstr(ended.text, "err\n"));
    assert_true(str_ends(ended.text, "143\n"));
}

static void test_outside_gets_signals(void **state)
{
    AUTO(ended_done)
    struct ended ended =
        run_outside("(outside -c 'trap \"echo got; exit 5\" TERM; echo ready; "
                    "while :; do sleep 0.05; done'; echo $?) > log & "
                    "until grep -qs ready log; do :; done; "
                    "for p in /proc/[0-9]*; do "
                    "[ \"$(readlink $p/exe)\" = '/memfd:cordon-outside (deleted)' ] && "
                    "kill -TERM ${p#/proc/}; done; wait; cat log");

    assert_exited(ended, 0);
    assert_string_equal(ended.text, "ready\ngot\n5\n");
    assert_non_null(strstr(log_text(), "signal 15\n"));
}

static void test_outside_is_killed_with_its_stub(void **state)
{
    AUTO(ended_done)
    struct ended ended =
        run_outside("(outside -c 'echo ready; exec sleep 1000'; echo $?) > log & "
                    "until grep -qs ready log; do :; done; "
                    "for p in /proc/[0-9]*; do "
                    "[ \"$(readlink $p/exe)\" = '/memfd:cordon-outside (deleted)' ] && "
                    "kill -KILL ${p#/proc/}; done; wait; cat log");

    assert_exited(ended, 0);
    assert_non_null(strstr(ended.text, "ready\n"));
    assert_non_null(strstr(ended.text, "137\n"));
    assert_non_null(strstr(log_text(), "signal 9\n"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_programs_are_told),
        TEST(test_a_subshell),
        TEST(test_probes_are_not_told),
        TEST(test_nobody_asked),
        TEST(test_what_is_hidden_is_refused),
        TEST(test_judged),
        TEST(test_held),
        TEST(test_outside),
        TEST(test_outside_with_pipes),
        TEST(test_outside_gets_signals),
        TEST(test_outside_is_killed_with_its_stub),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

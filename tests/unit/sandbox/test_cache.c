/* A sandbox that caches: what is used again for the next command is never shared with one
 * that still runs, and carries nothing over. */
#include "launching.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IN_FLIGHT = 8, ROUNDS = 40 };

static struct ground ground;
static struct sandbox *sandbox;

static int setup(void **state)
{
    ground_init(&ground);
    sandbox = ground_sandbox_caching(&ground);
    return 0;
}

static int teardown(void **state)
{
    sandbox_free(TAKE_PTR(sandbox));
    ground_done(&ground);
    return 0;
}

/* Prints the inode of its network namespace, and ends when its standard input does. */
static char show_network[] = "readlink /proc/self/ns/net; read line; exit 0";

struct running {
    struct command command;
    int in; /* write end of its standard input */
    char network[64];
};

static void running_start(struct running *ret)
{
    struct launch_options options =
        launch_in(ground.ws, ARGV((char *)"sh", (char *)"-c", show_network));
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    options.stdio[0] = ends[0];
    command_start(&ret->command, sandbox, options);
    close(ends[0]);
    ret->in = ends[1];
    snprintf(ret->network, sizeof ret->network, "%s", command_expect(&ret->command, "]\n"));
}

static void running_end(struct running *running)
{
    struct ended ended;

    close(running->in);
    ended = command_finish(&running->command);
    assert_exited(ended, 0);
    ended_done(&ended);
}

static char *host_network(void)
{
    char text[64] = "";

    assert_true(readlink("/proc/self/ns/net", text, sizeof text - 1) > 0);
    return alloc_strf("%s\n", text);
}

static void test_never_two_at_once(void **state)
{
    AUTO_FREE char *host = host_network();
    struct running running[IN_FLIGHT];

    for (int round = 0; round < ROUNDS; round++) {
        /* ever other ones go on while the rest is replaced */
        for (int i = 0; i < IN_FLIGHT; i++) {
            if (round && (round + i) % 3)
                continue;
            if (round)
                running_end(&running[i]);
            running_start(&running[i]);
            assert_string_not_equal(running[i].network, host);
        }
        for (int i = 0; i < IN_FLIGHT; i++)
            for (int j = 0; j < i; j++)
                assert_string_not_equal(running[i].network, running[j].network);
    }
    for (int i = 0; i < IN_FLIGHT; i++)
        running_end(&running[i]);
}

/* Or keeping them would be for nothing. */
static void test_networks_are_used_again(void **state)
{
    enum { COMMANDS = 30 };
    char seen[COMMANDS][64];
    int different = 0;

    for (int i = 0; i < COMMANDS; i++) {
        struct running running;
        int known = 0;

        running_start(&running);
        running_end(&running);
        for (int j = 0; j < different; j++)
            known |= str_eq(seen[j], running.network);
        if (!known)
            memcpy(seen[different++], running.network, sizeof seen[0]);
    }
    assert_in_range(different, 1, COMMANDS / 3);
}

/* What one command leaves in a network namespace the next one could find. */
static void test_nothing_is_carried_over(void **state)
{
    static const char leave[] =
        "import socket,os,time\n"
        "s=socket.socket(); s.bind(('127.0.0.1',7777)); s.listen(); r,w=os.pipe()\n"
        "if os.fork()==0:\n"
        "    os.setsid(); print('left', flush=True); os.write(w,b'x'); time.sleep(1000)\n"
        "os.read(r,1)\n";
    static const char find[] = "import socket,os\n"
                               "s=socket.socket()\n"
                               "print('found' if s.connect_ex(('127.0.0.1',7777))==0 else "
                               "'nothing', os.listdir('/dev/shm'),"
                               " len(open('/proc/net/tcp').readlines()))\n";

    if (access("/usr/bin/python3", X_OK))
        skip_because("no /usr/bin/python3");
    for (int i = 0; i < 3; i++) {
        AUTO(ended_done) struct ended left = {0};
        AUTO(ended_done) struct ended found = {0};

        left = run_argv(sandbox, ground.ws,
                        ARGV((char *)"/usr/bin/python3", (char *)"-c", (char *)leave));
        assert_exited(left, 0);
        assert_string_equal(left.text, "left\n");
        found = run_argv(sandbox, ground.ws,
                         ARGV((char *)"/usr/bin/python3", (char *)"-c", (char *)find));
        assert_exited(found, 0);
        assert_string_equal(found.text, "nothing [] 1\n");
    }
}

static void test_loopback_is_up(void **state)
{
    for (int i = 0; i < 3; i++) {
        AUTO_FREE char *text =
            script_output(sandbox, ground.ws,
                          "grep -c . /proc/net/dev; cat /sys/class/net/lo/flags 2>/dev/null; "
                          "grep -c 0100007F /proc/net/fib_trie /dev/null | head -1; "
                          "grep -q 127.0.0.1 /proc/net/fib_trie && echo up");

        assert_true(str_ends(text, "up\n"));
    }
}

/* A command that was killed gives its namespace back only when it is gone. */
static void test_killed_in_between(void **state)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct running one;
        struct running two;

        running_start(&one);
        running_start(&two);
        assert_string_not_equal(one.network, two.network);
        launch_done(&one.command.launch);
        command_expect_silence(&one.command);
        close(one.command.out);
        close(one.in);
        buf_done(&one.command.text);
        running_end(&two);
    }
}

static void test_prepared(void **state)
{
    char pids[2][64];

    for (int i = 0; i < 2; i++) {
        struct running running;

        sandbox_prepare(sandbox);
        sandbox_prepare(sandbox); /* one is enough */
        running_start(&running);
        snprintf(pids[i], sizeof pids[i], "%d", (int)running.command.launch.init);
        running_end(&running);
    }
    assert_string_not_equal(pids[0], pids[1]); /* an init serves one command */
}

/* A spare that was killed from outside must not fail the next command. */
static void test_a_killed_spare(void **state)
{
    AUTO_FREE char *first = NULL;
    AUTO_FREE char *second = NULL;
    AUTO_FREE char *children = alloc_strf("/proc/self/task/%d/children", (int)getpid());
    siginfo_t ended; /* waited for but not reaped: that is the pool's */
    FILE *file;
    int pid;

    first = script_output(sandbox, ground.ws, "echo one");
    sandbox_prepare(sandbox);
    file = fopen(children, "re");
    assert_non_null(file);
    while (fscanf(file, "%d", &pid) == 1)
        if (kill(pid, SIGKILL) == 0)
            waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT | __WALL);
    fclose(file);
    second = script_output(sandbox, ground.ws, "echo two");
    assert_string_equal(second, "two\n");
}

/* A name that is missing cannot be made inside, and nothing stands for it outside. */
/* What the proxy has open in a network for one command, the next one would meet. So each has its own, which a prepared
 * launcher has led to the proxy already. */
static void test_networks_that_lead_to_the_proxy_are_not_used_again(void **state)
{
    enum { COMMANDS = 6 };
    AUTO(access_map_done) struct access_map map;
    const struct sandbox_options options = {.access = &map, .cache_idle = true};
    char seen[COMMANDS][64];
    int kept[COMMANDS]; /* so that no number is given out again */
    struct err err;

    sandbox_free(TAKE_PTR(sandbox));
    ground_map(&ground, &map);
    map.network = NETWORK_PROXIED;
    sandbox = sandbox_new(&options, &err);
    if (!sandbox)
        fail_msg("%s", err.msg);
    for (int i = 0; i < COMMANDS; i++) {
        AUTO_FREE char *path = NULL;
        struct running running;

        if (i % 2)
            sandbox_prepare(sandbox);
        running_start(&running);
        path = alloc_strf("/proc/%d/ns/net", (int)launch_pid(&running.command.launch));
        kept[i] = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(kept[i] >= 0);
        memcpy(seen[i], running.network, sizeof seen[i]);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(seen[i], seen[j]);
        running_end(&running);
    }
    for (int i = 0; i < COMMANDS; i++)
        close(kept[i]);
}

static void test_names_are_held(void **state)
{
    AUTO_FREE char *git = path_join(ground.ws, ".git");

    for (int i = 0; i < 3; i++) {
        AUTO_FREE char *text = script_output(
            sandbox, ground.ws, "mkdir .git 2>/dev/null || echo no; mkdir -p a/.git && echo yes");

        assert_string_equal(text, "no\nyes\n");
        assert_int_equal(access(git, F_OK), -1);
    }
}

static void test_nothing_is_left(void **state)
{
    unsigned fds;

    free(script_output(sandbox, ground.ws, "true"));
    sandbox_free(TAKE_PTR(sandbox));
    fds = support_open_fds();
    sandbox = ground_sandbox_caching(&ground);
    for (int i = 0; i < 20; i++)
        free(script_output(sandbox, ground.ws, "true"));
    sandbox_prepare(sandbox);
    sandbox_free(TAKE_PTR(sandbox));
    assert_int_equal(support_open_fds(), fds);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_never_two_at_once),
        TEST(test_networks_are_used_again),
        TEST(test_nothing_is_carried_over),
        TEST(test_loopback_is_up),
        TEST(test_killed_in_between),
        TEST(test_prepared),
        TEST(test_a_killed_spare),
        TEST(test_names_are_held),
        TEST(test_nothing_is_left),
        TEST(test_networks_that_lead_to_the_proxy_are_not_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

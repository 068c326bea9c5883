/* The guard as its host sees it, with guards that do as they are told: this program, which is one
 * when it is started as `cordon-guard`. What is to be done stands in the map. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/path.h"
#include "base/program.h"
#include "sandbox/linux/guard_link.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000 };

/* -- the guard */

static void say(int channel, uint32_t kind, const char *path, const char *other)
{
    struct guard_fact fact = {.kind = kind, .operation = GUARD_OP_CREATE, .entry = 3, .count = 1};
    size_t len = strlen(path) + 1;

    memcpy(fact.strings, path, len);
    strcpy(fact.strings + len, other);
    len += strlen(other) + 1;
    send(channel, &fact, offsetof(struct guard_fact, strings) + len, MSG_NOSIGNAL);
}

/* What is open, and what may be done, as text. */
static void say_state(int channel)
{
    char text[256] = "";
    char line[128];
    FILE *status = fopen("/proc/self/status", "re");

    for (int fd = 0; fd < 64; fd++)
        if (fcntl(fd, F_GETFD) >= 0 && fd != fileno(status))
            snprintf(text + strlen(text), 8, "%d ", fd);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "CapEff:", 7) == 0 || strncmp(line, "NoNewPrivs:", 11) == 0)
            snprintf(text + strlen(text), 64, "%.*s ", (int)strcspn(line, "\n"), line);
    fclose(status);
    say(channel, GUARD_FACT_DENIED, text, getenv("PATH") ? "environment" : "");
}

/* An exec that is to happen outside; of the caller's 0, 1 and 2 it has no 1. */
static void say_outside(int channel)
{
    static const char strings[] = "/bin/sh\0/work\0sh\0\0-c";
    struct guard_fact fact = {.kind = GUARD_FACT_OUTSIDE,
                              .operation = GUARD_OP_EXECUTE,
                              .entry = GUARD_NO_ENTRY,
                              .argc = 3,
                              .id = 7,
                              .parent = 6,
                              .flags = GUARD_FLAG_TRUNCATED | GUARD_FLAG_STDIO << 0 |
                                       GUARD_FLAG_STDIO << 2};
    int pipes[2];

    memcpy(fact.strings, strings, sizeof strings);
    if (pipe2(pipes, O_CLOEXEC) == 0 &&
        pass_send(channel, &fact, offsetof(struct guard_fact, strings) + sizeof strings, pipes,
                  2) == 0) {
        close(pipes[0]);
        close(pipes[1]);
    }
}

/* What was ordered, said again. */
static void say_order(int channel)
{
    struct guard_order order;
    char text[128] = "";

    if (recv(channel, &order, sizeof order, 0) == (ssize_t)sizeof order)
        snprintf(text, sizeof text, "%u %u %u %u", order.kind, (unsigned)order.id, order.verdict,
                 order.number);
    say(channel, GUARD_FACT_DENIED, text, "");
}

/* Until the host waits for what may come. */
static void see_it_wait(void)
{
    char path[64], text[256];
    const char *state = "";

    snprintf(path, sizeof path, "/proc/%d/stat", (int)getppid());
    while (*state != 'S') {
        AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t len = read(fd, text, sizeof text - 1);

        if (len <= 0)
            _exit(1);
        text[len] = '\0';
        state = strrchr(text, ')') + 2;
        sched_yield();
    }
}

/* 'd' a fact, 'm' a count, 'n' 64 facts, 'w' sees the host wait, 'o' one of an exec outside, 'r' repeats an order, 'e' the end,
 * 'g' garbage, 's' the state, 'x' dies. */
static void act(int channel, char order)
{
    if (order == 'd')
        say(channel, GUARD_FACT_DENIED, "/a", "/b");
    if (order == 'm')
        say(channel, GUARD_FACT_MORE, "/c", "");
    for (int i = 0; order == 'n' && i < GUARD_FACTS_MAX; i++)
        say(channel, GUARD_FACT_DENIED, "/n", "");
    if (order == 'w')
        see_it_wait();
    if (order == 'o')
        say_outside(channel);
    if (order == 'r')
        say_order(channel);
    if (order == 'e')
        say(channel, GUARD_FACT_END, "", "");
    if (order == 'g')
        send(channel, "garbage", 7, MSG_NOSIGNAL);
    if (order == 's')
        say_state(channel);
    if (order == 'x')
        _exit(1);
}

static int guard_main(void)
{
    for (;;) {
        struct guard_hello hello = {0};
        struct iovec data = {.iov_base = &hello, .iov_len = sizeof hello};
        char control[CMSG_SPACE(GUARD_FDS * sizeof(int))];
        struct msghdr message = {.msg_iov = &data,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};
        const struct cmsghdr *rights;
        char orders[16] = "";
        int fds[GUARD_FD_OUTSIDE]; /* none of a layer's */
        bool stays = false;

        if (recvmsg(GUARD_CONTROL_FD, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof hello)
            return 0;
        if (hello.magic != GUARD_MAGIC || hello.version != GUARD_VERSION)
            return 1;
        rights = CMSG_FIRSTHDR(&message);
        if (!rights || rights->cmsg_len != CMSG_LEN(sizeof fds))
            return 1;
        memcpy(fds, CMSG_DATA(rights), sizeof fds);
        if (pread(fds[GUARD_FD_MAP], orders, sizeof orders - 1, 0) < 0)
            return 1;
        close(fds[GUARD_FD_MAP]);
        for (const char *at = orders; *at; at++) {
            act(fds[GUARD_FD_CHANNEL], *at);
            stays |= *at == '+';
        }
        if (!stays)
            close(fds[GUARD_FD_CHANNEL]);
    }
}

/* -- the host */

static struct guard_channel *channel_with(const char *program, const char *orders, struct err *err)
{
    struct guard_channel *channel = guard_channel_new(err);
    AUTO_CLOSE int map = fd_sealed_memory("orders", orders, strlen(orders), err);
    const struct guard_start start = {.start = {.program = program}, .map = map, .outside = -1};

    assert_non_null(channel);
    assert_true(map >= 0);
    if (guard_channel_attach(channel, &start, err) == 0)
        return channel;
    guard_channel_free(channel);
    return NULL;
}

static struct guard_channel *channel_to(const char *orders)
{
    AUTO_FREE char *self = program_self();
    struct err err;
    struct guard_channel *channel = channel_with(self, orders, &err);

    if (!channel)
        fail_msg("%s", err.msg);
    return channel;
}

static const struct guard_fact *next(struct guard_channel *channel)
{
    struct pollfd fd = {.fd = guard_channel_fd(channel), .events = POLLIN};
    const struct guard_fact *fact = guard_channel_next(channel);

    if (fact)
        return fact;
    assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
    return guard_channel_next(channel);
}

static int setup(void **state)
{
    guard_link_join();
    return 0;
}

static int teardown(void **state)
{
    guard_link_leave();
    guard_link_reap();
    while (waitpid(-1, NULL, __WALL) >
           0) /* on a busy machine it ends later than is waited for there */
        continue;
    return errno == ECHILD ? 0 : -1;
}

static void test_facts(void **state)
{
    struct guard_channel *channel = channel_to("de");
    const struct guard_fact *fact = next(channel);

    assert_non_null(fact);
    assert_int_equal(fact->kind, GUARD_FACT_DENIED);
    assert_int_equal(fact->entry, 3);
    assert_string_equal(fact->strings, "/a");
    assert_string_equal(fact->strings + 3, "/b");
    assert_null(next(channel));
    assert_false(guard_channel_is_broken(channel));
    guard_channel_free(channel);
}

static struct launch launch_with(const char *orders)
{
    const struct access_map nothing = {0};
    const struct sandbox_options options = {.mode = SANDBOX_DISABLED, .access = &nothing};
    struct err err;
    struct launch launch = {.sandbox = sandbox_new(&options, &err)};

    if (!launch.sandbox)
        fail_msg("%s", err.msg);
    launch.channel = channel_to(orders);
    launch.facts = guard_channel_fd(launch.channel);
    return launch;
}

static struct launch_fact next_of(struct launch *launch)
{
    struct pollfd fd = {.fd = launch->facts, .events = POLLIN};
    struct launch_fact fact;

    assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
    assert_true(launch_read_fact(launch, &fact));
    return fact;
}

static void end(struct launch *launch)
{
    guard_channel_free(launch->channel);
    sandbox_free(launch->sandbox);
}

static int count_open(void)
{
    int count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* With the descriptors of its caller, which are closed when nobody takes them. */
static void test_an_exec_outside(void **state)
{
    struct launch launch = launch_with("ood+");
    struct launch_fact fact = next_of(&launch);
    int fds[3], left[3];
    int open_before;

    assert_int_equal(fact.kind, FACT_OUTSIDE);
    assert_int_equal(fact.operation, FACT_EXECUTE);
    assert_int_equal(fact.id, 7);
    assert_int_equal(fact.parent, 6);
    assert_true(fact.is_truncated);
    assert_string_equal(fact.path, "/bin/sh");
    assert_string_equal(fact.cwd, "/work");
    assert_null(fact.other_path);
    assert_string_equal(fact.argv[0], "sh");
    assert_string_equal(fact.argv[1], "");
    assert_string_equal(fact.argv[2], "-c");
    assert_null(fact.argv[3]);
    launch_take_stdio(&launch, fds);
    assert_int_equal(fds[1], -1);
    assert_int_equal(write(fds[2], "x", 1), 1);
    launch_take_stdio(&launch, left);
    assert_int_equal(left[0], -1);
    close(fds[0]);
    close(fds[2]);
    open_before = count_open();
    next_of(&launch);
    assert_int_equal(count_open(), open_before + 2);
    fact = next_of(&launch); /* nobody has taken those of the second */
    assert_int_equal(count_open(), open_before);
    assert_int_equal(fact.kind, FACT_DENIED);
    assert_null(fact.argv);
    assert_string_equal(fact.other_path, "/b");
    end(&launch);
}

static void test_orders(void **state)
{
    struct launch launch = launch_with("rrr");
    char expected[64];

    launch_answer(&launch, 5, LAUNCH_OUTSIDE);
    launch_answer(&launch, 6, LAUNCH_NO);
    launch_answer_exit(&launch, 5, SIGTERM);
    snprintf(expected, sizeof expected, "%d 5 %d 0", GUARD_ORDER_ANSWER, GUARD_OUTSIDE);
    assert_string_equal(next_of(&launch).path, expected);
    snprintf(expected, sizeof expected, "%d 6 %d 0", GUARD_ORDER_ANSWER, GUARD_NO);
    assert_string_equal(next_of(&launch).path, expected);
    snprintf(expected, sizeof expected, "%d 5 0 %d", GUARD_ORDER_EXIT, SIGTERM);
    assert_string_equal(next_of(&launch).path, expected);
    end(&launch);
}

/* No descriptor but its own, no environment, no privilege: not root's either. */
static void test_it_has_nothing(void **state)
{
    struct guard_channel *channel = channel_to("s+");
    const struct guard_fact *fact = next(channel);

    assert_non_null(fact);
    assert_contains(fact->strings, "0 1 2 3 4 ");
    assert_null(strstr(fact->strings, " 5 "));
    assert_contains(fact->strings, "CapEff:\t0000000000000000");
    assert_contains(fact->strings, "NoNewPrivs:\t1");
    assert_string_equal(fact->strings + strlen(fact->strings) + 1, "");
    guard_channel_free(channel);
}

/* All that are told one by one, and the count of the others with the end. */
static void expect_counted(struct guard_channel *channel)
{
    const struct guard_fact *fact;

    for (int i = 0; i < GUARD_FACTS_MAX; i++)
        assert_non_null(next(channel));
    guard_channel_finish(channel, false);
    fact = guard_channel_next(channel);
    assert_non_null(fact);
    assert_int_equal(fact->kind, GUARD_FACT_MORE);
}

/* What is counted comes with the end, which is waited for; nothing else is. */
static void test_the_end_of_a_command(void **state)
{
    struct guard_channel *channel = channel_to("nme");

    expect_counted(channel);
    assert_null(guard_channel_next(channel));
    assert_false(guard_channel_is_broken(channel));
    guard_channel_free(channel);
    channel = channel_to("d+");
    assert_non_null(next(channel));
    guard_channel_finish(channel, false);
    assert_null(guard_channel_next(channel));
    assert_false(guard_channel_is_broken(channel));
    guard_channel_free(channel);
}

/* And it may come as late as that. */
static void test_counts_are_waited_for(void **state)
{
    struct guard_channel *channel = channel_to("nwme");

    expect_counted(channel);
    guard_channel_free(channel);
}

static void test_one_for_all(void **state)
{
    struct guard_channel *channels[8];

    for (size_t i = 0; i < 8; i++)
        channels[i] = channel_to("d+");
    for (size_t i = 0; i < 8; i++) {
        assert_non_null(next(channels[i]));
        guard_channel_free(channels[i]);
    }
}

/* Its commands lose it without a last word, and the next one gets another guard. */
static void test_a_guard_that_dies(void **state)
{
    struct guard_channel *first = channel_to("d+");
    struct guard_channel *channel;
    const struct guard_fact *fact;
    siginfo_t ended;

    assert_non_null(next(first));
    channel = channel_to("x");
    assert_null(next(channel));
    assert_null(next(first));
    assert_true(guard_channel_is_broken(channel));
    assert_true(guard_channel_is_broken(first));
    guard_channel_free(channel);
    guard_channel_free(first);
    assert_int_equal(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT | __WALL), 0);
    channel = channel_to("d+");
    fact = next(channel);
    assert_non_null(fact);
    assert_string_equal(fact->strings, "/a");
    guard_channel_free(channel);
}

static void test_a_guard_that_talks_nonsense(void **state)
{
    struct guard_channel *channel = channel_to("g+");

    assert_null(next(channel));
    assert_true(guard_channel_is_broken(channel));
    guard_channel_free(channel);
}

static void test_a_guard_that_is_not_there(void **state)
{
    struct err err = ERR_UNTOUCHED;

    assert_null(channel_with("/nowhere/cordon-guard", "", &err));
    assert_int_equal(err.sys, ENOENT);
    assert_contains(err.msg, "/nowhere/cordon-guard");
}

static void test_where_it_is(void **state)
{
    const char *launcher = getenv("CORDON_LINUX_SANDBOX_EXE");
    AUTO_FREE char *found = guard_link_program(launcher);

    assert_non_null(found);
    assert_string_equal(path_name(found), "cordon-guard");
    assert_int_equal(access(found, X_OK), 0);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_facts),
        TEST(test_an_exec_outside),
        TEST(test_orders),
        TEST(test_it_has_nothing),
        TEST(test_the_end_of_a_command),
        TEST(test_counts_are_waited_for),
        TEST(test_one_for_all),
        TEST(test_a_guard_that_dies),
        TEST(test_a_guard_that_talks_nonsense),
        TEST(test_a_guard_that_is_not_there),
        TEST(test_where_it_is),
    };

    if (argc && strcmp(argv[0], GUARD_PROGRAM) == 0)
        return guard_main();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

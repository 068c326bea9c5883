/* The proxy as its host sees it, with proxies that do as they are told: this program, which is one
 * when it is started as `cordon-proxy`. What is to be done stands in the policy. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/program.h"
#include "sandbox/linux/proxy_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };

/* -- the proxy */

static void say(int channel, uint32_t kind, const char *host, uint64_t id)
{
    struct proxy_fact fact = {.kind = kind, .id = id, .port = 443, .count = 7};

    memset(fact.reason, 'r', sizeof fact.reason); /* without an end */
    snprintf(fact.host, sizeof fact.host, "%s", host);
    send(channel, &fact, sizeof fact, MSG_NOSIGNAL);
}

static void say_state(int channel)
{
    char text[PROXY_HOST_MAX] = "";
    char line[128];
    FILE *status = fopen("/proc/self/status", "re");

    snprintf(text, sizeof text, "uid %u gid %u groups %d proxy %s home %s ", getuid(), getegid(),
             getgroups(0, NULL), getenv("https_proxy"), getenv("HOME"));
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "CapEff:", 7) == 0 || strncmp(line, "NoNewPrivs:", 11) == 0)
            snprintf(text + strlen(text), 64, "%.*s ", (int)strcspn(line, "\n"), line);
    if (status)
        fclose(status);
    say(channel, PROXY_FACT_DENIED, text, 0);
}

static void serve(int channel, const char *todo)
{
    struct proxy_order order;
    int fds[PASS_MAX];
    size_t count;

    if (strcmp(todo, "state") == 0)
        say_state(channel);
    if (strcmp(todo, "many") == 0)
        for (int i = 0; i < PROXY_FACTS_MAX; i++)
            say(channel, PROXY_FACT_DENIED, "many.example", 0);
    if (strcmp(todo, "garbage") == 0) {
        send(channel, "?", 1, MSG_NOSIGNAL);
        say(channel, PROXY_FACT_DENIED, "behind.example", 0);
        close(channel);
        return;
    }
    if (strcmp(todo, "ask") == 0)
        say(channel, PROXY_FACT_ASKED, "ask.example", 5);
    while (pass_receive(channel, &order, sizeof order, 0, fds, &count) == sizeof order) {
        if (order.kind == PROXY_ORDER_ANSWER)
            say(channel, PROXY_FACT_DONE, order.number ? "yes" : "no", order.id);
        for (size_t i = 0; i < count; i++)
            if (strcmp(todo, "accept") == 0)
                say(channel, PROXY_FACT_DONE, accept(fds[i], NULL, NULL) >= 0 ? "came" : "none", 0);
    }
    if (strcmp(todo, "many") == 0)
        say(channel, PROXY_FACT_MORE, "", 0);
    close(channel);
}

static int proxy_main(void)
{
    struct proxy_hello hello;
    char todo[64] = "";
    int fds[PASS_MAX];
    size_t count;

    while (pass_receive(PROXY_CONTROL_FD, &hello, sizeof hello, 0, fds, &count) == sizeof hello &&
           count == PROXY_FD_TLS) {
        if (pread(fds[PROXY_FD_POLICY], todo, sizeof todo - 1, 0) < 0 || strcmp(todo, "die") == 0)
            return 1;
        serve(fds[PROXY_FD_CHANNEL], todo);
    }
    return 0;
}

/* -- the host */

struct command {
    struct proxy_channel *channel;
    int policy;
    int listener;
    char *program;
};

static struct command command_new(const char *todo, const char *program)
{
    struct err err;
    struct command command = {.policy = fd_sealed_memory("todo", todo, strlen(todo), &err),
                              .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                              .program = program ? strdup(program) : program_self()};
    const struct proxy_start start = {.start = {.program = command.program},
                                      .policy = command.policy};
    const struct proxy_order order = {.magic = PROXY_MAGIC, .kind = PROXY_ORDER_LISTENERS};

    assert_int_equal(listen(command.listener, 5), 0);
    command.channel = proxy_channel_new(&start, &err);
    assert_non_null(command.channel);
    assert_int_equal(
        pass_send(proxy_channel_end(command.channel), &order, sizeof order, &command.listener, 1),
        0);
    return command;
}

static void command_done(struct command *command)
{
    proxy_channel_free(command->channel);
    close(command->policy);
    close(command->listener);
    free(command->program);
}

/* Somebody in the command's network connects. */
static void command_connects(const struct command *command)
{
    struct sockaddr_in address;
    socklen_t len = sizeof address;
    AUTO_CLOSE int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(getsockname(command->listener, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, len), 0);
}

static struct proxy_fact next(const struct command *command)
{
    struct pollfd ready = {.fd = proxy_channel_fd(command->channel), .events = POLLIN};
    struct proxy_fact fact;

    while (!proxy_channel_next(command->channel, &fact))
        assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
    return fact;
}

/* It is started, and has let go of the command. */
static void wait_for_end(const struct command *command)
{
    struct pollfd end = {.fd = proxy_channel_end(command->channel)}; /* POLLHUP comes unasked */
    struct proxy_fact fact;

    while (!(end.revents & POLLHUP)) {
        assert_false(proxy_channel_next(command->channel, &fact));
        assert_int_not_equal(poll(&end, 1, 10), -1);
    }
}

static void test_nothing_is_started_for_nothing(void **state)
{
    struct command command = command_new("state", NULL);
    struct proxy_fact fact;
    const unsigned fds = support_open_fds();

    proxy_link_join();
    assert_false(proxy_channel_next(command.channel, &fact));
    assert_int_equal(support_open_fds(), fds + 1); /* the listener that was sent */
    proxy_channel_finish(command.channel);
    assert_false(proxy_channel_next(command.channel, &fact));
    assert_int_equal(support_open_fds(), fds - 1);
    command_done(&command);
    proxy_link_leave();
    proxy_link_reap();
}

static void test_what_it_gets(void **state)
{
    struct command command;
    struct proxy_fact fact;
    char wanted[128];
    const bool is_root = geteuid() == 0;

    proxy_link_join();
    setenv("https_proxy", "http://127.0.0.1:9", 1);
    command = command_new("state", NULL);
    command_connects(&command);
    fact = next(&command);
    snprintf(wanted, sizeof wanted, "uid %u gid %u groups %d proxy http://127.0.0.1:9 home (null)",
             is_root ? PROXY_NOBODY : getuid(), is_root ? PROXY_NOBODY : getegid(),
             is_root ? 0 : getgroups(0, NULL));
    assert_contains(fact.host, wanted);
    assert_contains(fact.host, "CapEff:\t0000000000000000");
    assert_contains(fact.host, "NoNewPrivs:\t1");
    assert_int_equal(strlen(fact.reason), PROXY_REASON_MAX - 1);
    command_done(&command);
    unsetenv("https_proxy");
    proxy_link_leave();
    proxy_link_reap();
}

static void test_its_listeners(void **state)
{
    struct command command = command_new("accept", NULL);

    proxy_link_join();
    command_connects(&command);
    assert_string_equal(next(&command).host, "came");
    command_done(&command);
    proxy_link_leave();
    proxy_link_reap();
}

static void test_questions(void **state)
{
    struct command command = command_new("ask", NULL);
    struct proxy_fact fact;

    proxy_link_join();
    command_connects(&command);
    fact = next(&command);
    assert_int_equal(fact.kind, PROXY_FACT_ASKED);
    assert_int_equal(fact.id, 5);
    proxy_channel_answer(command.channel, fact.id, true);
    assert_string_equal(next(&command).host, "yes");
    proxy_channel_answer(command.channel, fact.id, false);
    assert_string_equal(next(&command).host, "no");
    command_done(&command);
    proxy_link_leave();
    proxy_link_reap();
}

static void test_what_was_counted_is_told_at_the_end(void **state)
{
    struct command command = command_new("many", NULL);
    struct proxy_fact fact;
    unsigned count = 1;

    proxy_link_join();
    command_connects(&command);
    for (; count < PROXY_FACTS_MAX; count++)
        next(&command);
    next(&command);
    proxy_channel_finish(command.channel);
    while (proxy_channel_next(command.channel, &fact))
        count++;
    assert_int_equal(count, PROXY_FACTS_MAX + 1);
    assert_int_equal(fact.kind, PROXY_FACT_MORE);
    command_done(&command);
    proxy_link_leave();
    proxy_link_reap();
}

/* Its command goes on, the next one gets another. */
static void test_a_dead_one(void **state)
{
    struct command first = command_new("die", NULL);
    struct command second = command_new("accept", NULL);
    siginfo_t ended;

    proxy_link_join();
    command_connects(&first);
    wait_for_end(&first);
    assert_int_equal(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT | __WALL), 0);
    proxy_channel_answer(first.channel, 1, true);
    proxy_channel_finish(first.channel);
    command_connects(&second);
    assert_string_equal(next(&second).host, "came");
    command_done(&second);
    command_done(&first);
    proxy_link_leave();
    proxy_link_reap();
}

static void test_what_is_none_of_its_own_ends_the_channel(void **state)
{
    struct command command = command_new("garbage", NULL);
    struct pollfd end = {.events = POLLIN};
    struct proxy_fact fact;

    proxy_link_join();
    command_connects(&command);
    wait_for_end(&command);
    assert_true(proxy_channel_next(command.channel, &fact));
    assert_contains(fact.reason, "has died");
    assert_false(proxy_channel_next(command.channel, &fact));
    end.fd = proxy_channel_fd(command.channel);
    assert_int_equal(poll(&end, 1, 0), 0); /* not readable for ever */
    command_done(&command);
    proxy_link_leave();
    proxy_link_reap();
}

static void test_one_that_cannot_be_started(void **state)
{
    struct command command = command_new("accept", "/nowhere/cordon-proxy");
    struct proxy_fact fact;

    proxy_link_join();
    command_connects(&command);
    fact = next(&command);
    assert_int_equal(fact.kind, PROXY_FACT_DENIED);
    assert_contains(fact.reason, "executing /nowhere/cordon-proxy: No such file or directory");
    assert_false(proxy_channel_next(command.channel, &fact));
    command_done(&command);
    proxy_link_leave();
    proxy_link_reap();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_started_for_nothing),
        cmocka_unit_test(test_what_it_gets),
        cmocka_unit_test(test_its_listeners),
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_what_was_counted_is_told_at_the_end),
        cmocka_unit_test(test_a_dead_one),
        cmocka_unit_test(test_what_is_none_of_its_own_ends_the_channel),
        cmocka_unit_test(test_one_that_cannot_be_started),
    };

    if (strcmp(argv[0], PROXY_PROGRAM) == 0)
        return proxy_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Ends from outside: signals, a killed init, a caller that is gone. Whatever happens, no process of
 * the command is left: the command's output ends only when the last of them is dead. */
#include "launching.h"

#include "base/auto.h"
#include "base/sys.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ground ground;
static struct sandbox *sandbox;

static int setup(void **state)
{
    ground_init(&ground);
    return 0;
}

static int teardown(void **state)
{
    sandbox_free(TAKE_PTR(sandbox));
    ground_done(&ground);
    return 0;
}

/* Processes that try to get away: another session, another group, signals ignored. */
static const char runaways[] = "trap '' TERM HUP INT\n"
                               "sleep 1000 &\n"
                               "setsid sleep 1000 &\n"
                               "(trap '' TERM; setsid sh -c 'sleep 1000; :' & ) &\n"
                               "echo up\n";

/* A command whose runaways run. */
static void start_runaways(struct command *ret, const char *then)
{
    char script[1024];

    snprintf(script, sizeof script, "%s%s", runaways, then);
    if (!sandbox)
        sandbox = ground_sandbox(&ground, SANDBOX_AUTO);
    command_start(ret, sandbox, launch_in(ground.ws, ARGV((char *)"sh", (char *)"-c", script)));
    command_expect(ret, "up\n");
}

static void send_signal(struct command *command, int signal, bool everything)
{
    struct err err;

    if (launch_signal(&command->launch, signal, everything, &err))
        fail_msg("%s", err.msg);
}

static void test_left_behind_when_it_exits(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct command command;

    start_runaways(&command, "exit 5");
    ended = command_finish(&command);
    assert_exited(ended, 5);
}

/* To the command alone. */
static void test_signal_to_the_command(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct command command;

    start_runaways(&command, "trap 'echo heard; exit 7' TERM; echo set; "
                             "sleep 1000 & wait; exit 1");
    command_expect(&command, "set\n");
    send_signal(&command, SIGTERM, false);
    ended = command_finish(&command);
    assert_exited(ended, 7);
    assert_string_equal(ended.text, "up\nset\nheard\n");
}

static void test_signal_by_default_ends_it(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGKILL};

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        AUTO(ended_done) struct ended ended = {0};
        struct command command;

        start_runaways(&command, "trap - TERM INT; echo set; exec sleep 1000");
        command_expect(&command, "set\n");
        send_signal(&command, signals[i], false);
        ended = command_finish(&command);
        assert_int_equal(ended.report.event, LAUNCH_EXITED);
        assert_int_equal(ended.report.wait_status, signals[i]);
    }
}

/* To every process: the one in another session hears it, too. */
static void test_signal_to_everything(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct command command;

    start_runaways(&command, "setsid sh -c 'trap \"echo other\" USR1; echo set; "
                             "while :; do sleep 0.01; done' & "
                             "trap '' USR1; echo ready; exec sleep 1000");
    command_expect(&command, "set\n");
    command_expect(&command, "ready\n");
    send_signal(&command, SIGUSR1, true);
    command_expect(&command, "other\n");
    send_signal(&command, SIGKILL, false);
    ended = command_finish(&command);
    assert_int_equal(ended.report.event, LAUNCH_EXITED);
    assert_int_equal(ended.report.wait_status, SIGKILL);
}

static void test_kill_of_everything(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct command command;

    start_runaways(&command, "exec sleep 1000");
    send_signal(&command, SIGKILL, true);
    ended = command_finish(&command);
    assert_int_equal(ended.report.event, LAUNCH_EXITED);
    assert_int_equal(ended.report.wait_status, SIGKILL);
}

static void test_signal_after_the_end(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct command command;
    struct pollfd over;

    start_runaways(&command, "exit 0");
    command_expect_silence(&command);
    over = (struct pollfd){.fd = command.launch.pidfd, .events = POLLIN};
    assert_int_equal(poll(&over, 1, 30000), 1); /* the init has ended */
    send_signal(&command, SIGTERM, false);
    send_signal(&command, SIGTERM, true);
    ended = command_finish(&command);
    assert_exited(ended, 0);
}

/* What a terminal or a supervisor sends to the init itself. */
static void test_signal_to_the_init(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct command command;

    start_runaways(&command, "trap 'echo heard; exit 3' TERM; echo set; sleep 1000 & wait");
    command_expect(&command, "set\n");
    assert_int_equal(sys_pidfd_send_signal(command.launch.pidfd, SIGTERM), 0);
    ended = command_finish(&command);
    assert_exited(ended, 3);
    assert_contains(ended.text, "heard");
}

static void test_a_killed_init(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct command command;

    start_runaways(&command, "exec sleep 1000");
    assert_int_equal(sys_pidfd_send_signal(command.launch.pidfd, SIGKILL), 0);
    command_expect_silence(&command);
    ended = command_finish(&command);
    assert_int_equal(ended.report.event, LAUNCH_GONE); /* the command may be faster than STARTED */
}

static void test_a_closed_launch(void **state)
{
    struct command command;

    start_runaways(&command, "exec sleep 1000");
    launch_done(&command.launch);
    command_expect_silence(&command);
    assert_int_equal(command.launch.status, -1);
    launch_done(&command.launch); /* once more does nothing */
    close(command.out);
    buf_done(&command.text);
}

/* The command cannot reach its init: it can neither end nor stop it. */
static void test_the_init_is_out_of_reach(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct command command;

    start_runaways(&command, "kill -9 1; kill -STOP 1; kill -TERM 1; kill -9 -1; exit 4");
    ended = command_finish(&command);
    assert_exited(ended, 4);
}

static void launch_and_wait(int out, char *script)
{
    struct launch_options options = launch_in(ground.ws, ARGV((char *)"sh", (char *)"-c", script));
    struct launch launch;
    struct err err;

    options.stdio[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
    options.stdio[1] = options.stdio[2] = out;
    if (sandbox_launch(sandbox, &options, &launch, &err))
        _exit(1);
    pause();
    _exit(2);
}

/* The caller is killed in the middle: it can do nothing any more, and everything goes. */
static void test_a_killed_caller(void **state)
{
    struct command watched = {.text = {.max = 4096}};
    char script[1024];
    int ends[2];
    pid_t pid;

    snprintf(script, sizeof script, "%sexec sleep 1000", runaways);
    sandbox = ground_sandbox(&ground, SANDBOX_AUTO);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        launch_and_wait(ends[1], script);
    close(ends[1]);
    watched.out = ends[0];
    command_expect(&watched, "up\n");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    command_expect_silence(&watched);
    close(watched.out);
    buf_done(&watched.text);
}

/* An init that goes with signals of ours unread resets the socket; what it said is still there. */
static void test_the_end_is_told_with_signals_unread(void **state)
{
    AUTO(ended_done) struct ended ended = {0};
    struct command command;
    struct pollfd gone = {.events = POLLIN};

    sandbox = ground_sandbox(&ground, SANDBOX_AUTO);
    command_start(
        &command, sandbox,
        launch_in(ground.ws, ARGV((char *)"sh", (char *)"-c", (char *)"echo up; exec sleep 1000")));
    command_expect(&command, "up\n");
    kill(command.launch.init, SIGSTOP); /* so that all of them wait */
    send_signal(&command, SIGTERM, true);
    for (int i = 0; i < 150; i++) /* more than it reads until the command is dead */
        send_signal(&command, SIGCONT, true);
    kill(command.launch.init, SIGCONT);
    gone.fd = command.launch.pidfd;
    assert_int_equal(poll(&gone, 1, -1), 1);
    ended = command_finish(&command);
    assert_int_equal(ended.report.event, LAUNCH_EXITED);
    assert_int_equal(WTERMSIG(ended.report.wait_status), SIGTERM);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_left_behind_when_it_exits), TEST(test_signal_to_the_command),
        TEST(test_signal_by_default_ends_it), TEST(test_signal_to_everything),
        TEST(test_kill_of_everything),        TEST(test_signal_after_the_end),
        TEST(test_signal_to_the_init),        TEST(test_a_killed_init),
        TEST(test_a_closed_launch),           TEST(test_the_init_is_out_of_reach),
        TEST(test_a_killed_caller),           TEST(test_the_end_is_told_with_signals_unread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Launches that linger: the end of the command is told at once, and what it left behind goes on
 * until it ends, is killed, or its launch is closed. */
#include "launching.h"

#include "base/auto.h"
#include "base/path.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAIT_MS = 60000 };

static struct ground ground;
static struct sandbox *sandbox;
static char *fifo;

static int setup(void **state)
{
    AUTO(access_map_done) struct access_map open = {.network = NETWORK_ENABLED};
    const struct sandbox_options options = {.mode = SANDBOX_DISABLED, .access = &open};
    struct err err;

    ground_init(&ground);
    fifo = path_join(ground.ws, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    sandbox = sandbox_new(&options, &err);
    assert_non_null(sandbox);
    return 0;
}

static int teardown(void **state)
{
    sandbox_free(TAKE_PTR(sandbox));
    free(TAKE_PTR(fifo));
    ground_done(&ground);
    return 0;
}

/* Starts a command that leaves a child behind, which waits for a line in the fifo. */
static void start(struct command *command)
{
    char script[] = "(read x < fifo; echo late) & echo now; exit 4";
    struct launch_options options =
        launch_in(ground.ws, ARGV((char *)"/bin/sh", (char *)"-c", script));

    options.lingers = true;
    command_start(command, sandbox, options);
}

static void await(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
}

static void until_exited(struct command *command)
{
    struct launch_report report = {0};
    struct err err;

    while (report.event != LAUNCH_EXITED) {
        await(command->launch.status);
        assert_int_equal(launch_read(&command->launch, &report, &err), 0);
        assert_true(report.event != LAUNCH_FAILED && report.event != LAUNCH_GONE);
    }
    assert_int_equal(report.wait_status, 4 << 8);
    command_expect(command, "now\n");
}

static void finish(struct command *command)
{
    launch_done(&command->launch);
    command_expect_silence(command);
    close(command->out);
    buf_done(&command->text);
}

static void test_the_end_is_told_before_a_child_ends(void **state)
{
    struct command command;
    AUTO_CLOSE int writer = -1;

    start(&command);
    until_exited(&command);
    writer = open(fifo, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(writer, "go\n", 3), 3);
    command_expect(&command, "late\n");
    await(command.launch.pidfd);
    finish(&command);
}

static void test_a_closed_launch_takes_it_along(void **state)
{
    struct command command;

    start(&command);
    until_exited(&command);
    finish(&command); /* would wait for ever if a process still held the pipe */
}

static void test_a_kill_reaches_what_is_left(void **state)
{
    struct command command;
    struct err err;

    start(&command);
    until_exited(&command);
    assert_int_equal(launch_signal(&command.launch, SIGKILL, true, &err), 0);
    await(command.launch.pidfd);
    finish(&command);
}

static void test_a_signal_reaches_what_is_left(void **state)
{
    struct command command;
    struct err err;

    start(&command);
    until_exited(&command);
    assert_int_equal(launch_signal(&command.launch, SIGTERM, false, &err), 0); /* to no process */
    assert_int_equal(launch_signal(&command.launch, SIGTERM, true, &err), 0);
    await(command.launch.pidfd);
    finish(&command);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_end_is_told_before_a_child_ends),
        TEST(test_a_closed_launch_takes_it_along),
        TEST(test_a_kill_reaches_what_is_left),
        TEST(test_a_signal_reaches_what_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Commands in a real sandbox: how they start, what they get, and how their end is reported. */
#include "launching.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

static void in_sandbox(void)
{
    sandbox = ground_sandbox(&ground, SANDBOX_AUTO);
}

static struct ended script(const char *text)
{
    return run_script(sandbox, ground.ws, text);
}

/* -- how it ends */

static void test_exit_codes(void **state)
{
    static const int codes[] = {0, 1, 3, 127, 255};

    in_sandbox();
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        AUTO_FREE char *text = alloc_strf("exit %d", codes[i]);
        AUTO(ended_done) struct ended ended = script(text);

        assert_true(ended.has_started);
        assert_exited(ended, codes[i]);
    }
}

static void test_signals(void **state)
{
    static const int signals[] = {SIGTERM, SIGKILL, SIGINT, SIGHUP, SIGUSR1, SIGPIPE};

    in_sandbox();
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        AUTO_FREE char *text = alloc_strf("kill -%d $$", signals[i]);
        AUTO(ended_done) struct ended ended = script(text);

        assert_int_equal(ended.report.event, LAUNCH_EXITED);
        assert_true(WIFSIGNALED(ended.report.wait_status));
        assert_int_equal(WTERMSIG(ended.report.wait_status), signals[i]);
    }
}

static void test_output_comes_whole(void **state)
{
    AUTO(ended_done) struct ended ended = {0};

    in_sandbox();
    ended = script("i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done; echo last >&2");
    assert_exited(ended, 0);
    assert_true(str_starts(ended.text, "0\n1\n2\n"));
    assert_true(str_ends(ended.text, "4999\nlast\n"));
}

static void test_usage_is_reported(void **state)
{
    AUTO(ended_done) struct ended ended = {0};

    in_sandbox();
    ended = script("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
    assert_exited(ended, 0);
    assert_true(ended.report.usage.ru_maxrss > 100); /* KiB; a shell needs more */
    assert_true(ended.report.usage.ru_utime.tv_sec || ended.report.usage.ru_utime.tv_usec);
}

/* -- how it does not start */

static void assert_exec_fails(const char *program, int error)
{
    AUTO(ended_done)
    struct ended ended = run_argv(sandbox, ground.ws, ARGV((char *)program, (char *)"x"));

    assert_int_equal(ended.report.event, LAUNCH_FAILED);
    assert_int_equal(ended.report.stage, LAUNCH_STAGE_EXEC);
    assert_int_equal(ended.report.failure.sys, error);
    assert_contains(ended.report.failure.msg, program);
    assert_false(ended.has_started);
    assert_string_equal(ended.text, "");
}

static void test_programs_that_cannot_be_executed(void **state)
{
    AUTO_FREE char *garbage = path_join(ground.ws, "garbage");

    in_sandbox();
    support_write(ground.ws, "garbage",
                  "\x7f"
                  "ELF, but no more of it");
    assert_exec_fails(garbage, EACCES);
    assert_int_equal(chmod(garbage, 0755), 0);
    assert_exec_fails(garbage, ENOEXEC);
    assert_exec_fails("/nowhere/program", ENOENT);
    assert_exec_fails("/etc/passwd/program", ENOTDIR);
    assert_exec_fails(ground.ws, EACCES);
    assert_exec_fails("no-such-program-anywhere", ENOENT);
    assert_exec_fails("", ENOENT);
}

static struct ended run_with_path(char *path, char *program)
{
    char *const env[] = {path, NULL};
    struct launch_options options = launch_in(ground.ws, ARGV(program, (char *)"here"));
    struct command command;

    options.env = env;
    command_start(&command, sandbox, options);
    return command_finish(&command);
}

/* The PATH is the command's, not ours; a match that may not be executed is told, unless a later one
 * may. */
static void test_the_path_is_searched(void **state)
{
    AUTO_FREE char *only_ws = alloc_strf("PATH=%s", ground.ws);
    AUTO_FREE char *both = alloc_strf("PATH=/nowhere:%s:/usr/bin:/bin", ground.ws);
    AUTO(ended_done) struct ended missing = {0};
    AUTO(ended_done) struct ended forbidden = {0};
    AUTO(ended_done) struct ended found = {0};

    in_sandbox();
    missing = run_with_path(only_ws, (char *)"echo");
    assert_int_equal(missing.report.failure.sys, ENOENT);
    support_write(ground.ws, "echo", "not a program");
    forbidden = run_with_path(only_ws, (char *)"echo");
    assert_int_equal(forbidden.report.stage, LAUNCH_STAGE_EXEC);
    assert_int_equal(forbidden.report.failure.sys, EACCES);
    found = run_with_path(both, (char *)"echo");
    assert_exited(found, 0);
    assert_string_equal(found.text, "here\n");
}

static void test_program_apart_from_argv(void **state)
{
    struct launch_options options =
        launch_in(ground.ws, ARGV((char *)"my name", (char *)"-c", (char *)"echo $0 $1 $2",
                                  (char *)"a", (char *)"b", (char *)"c"));
    AUTO(ended_done) struct ended ended = {0};
    struct command command;

    in_sandbox();
    options.program = "/bin/sh";
    command_start(&command, sandbox, options);
    ended = command_finish(&command);
    assert_exited(ended, 0);
    assert_string_equal(ended.text, "a b c\n");
}

static void test_directories_that_cannot_be_entered(void **state)
{
    AUTO_FREE char *missing = path_join(ground.ws, "missing");
    AUTO_FREE char *file = path_join(ground.ws, "file");
    const char *const places[] = {missing, file};
    static const int errors[] = {ENOENT, ENOTDIR};

    in_sandbox();
    support_write(ground.ws, "file", "");
    for (size_t i = 0; i < 2; i++) {
        AUTO(ended_done) struct ended ended = run_argv(sandbox, places[i], ARGV((char *)"true"));

        assert_int_equal(ended.report.event, LAUNCH_FAILED);
        assert_int_equal(ended.report.stage, LAUNCH_STAGE_CWD);
        assert_int_equal(ended.report.failure.sys, errors[i]);
        assert_contains(ended.report.failure.msg, places[i]);
    }
}

static void test_a_launcher_that_is_gone(void **state)
{
    AUTO(access_map_done) struct access_map map;
    AUTO_FREE char *launcher = path_join(ground.scratch, "launcher");
    struct sandbox_options options = {.access = &map, .launcher = launcher};
    struct launch_options command = launch_in(ground.ws, ARGV((char *)"true"));
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct launch launch = {0};
    struct err err;

    ground_map(&ground, &map);
    sandbox = sandbox_new(&options, &err);
    assert_non_null(sandbox);
    command.stdio[0] = command.stdio[1] = command.stdio[2] = null;
    assert_int_equal(sandbox_launch(sandbox, &command, &launch, &err), -1);
    assert_int_equal(err.sys, ENOENT);
    assert_contains(err.msg, launcher);
    launch_done(&launch);
}

/* -- what it gets */

static void test_environment_is_as_given(void **state)
{
    char *const env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"ONE=1", (char *)"TWO=a b=c",
                         (char *)"EMPTY=", NULL};
    struct launch_options options = launch_in(ground.ws, ARGV((char *)"env"));
    AUTO(ended_done) struct ended ended = {0};
    struct command command;

    in_sandbox();
    assert_int_equal(setenv("SECRET_OF_THE_CALLER", "1", 1), 0);
    options.env = env;
    command_start(&command, sandbox, options);
    ended = command_finish(&command);
    assert_exited(ended, 0);
    assert_string_equal(ended.text, "PATH=/usr/bin:/bin\nONE=1\nTWO=a b=c\nEMPTY=\n");
}

/* The launcher has none, so the command finds none of the caller's in it. */
static void test_the_init_tells_nothing(void **state)
{
    AUTO_FREE char *text = NULL;

    in_sandbox();
    text = script_output(sandbox, ground.ws,
                         "cat /proc/1/environ /proc/1/maps 2>/dev/null | wc -c; "
                         "readlink /proc/1/fd/* /proc/1/cwd /proc/1/exe | wc -l");
    assert_string_equal(text, "0\n0\n");
}

static void test_only_stdio_is_open(void **state)
{
    AUTO_CLOSE int kept = open("/etc/passwd", O_RDONLY); /* without O_CLOEXEC, as hosts do */
    AUTO_FREE char *text = NULL;

    assert_true(kept >= 0);
    in_sandbox();
    text = script_output(sandbox, ground.ws, "exec 9</; ls /proc/$$/fd");
    assert_string_equal(text, "0\n1\n2\n9\n");
}

static void test_signals_are_by_default(void **state)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction old;
    sigset_t some;
    sigset_t mask;
    AUTO_FREE char *text = NULL;

    in_sandbox();
    sigemptyset(&some);
    sigaddset(&some, SIGTERM);
    sigaddset(&some, SIGUSR2);
    assert_int_equal(sigprocmask(SIG_BLOCK, &some, &mask), 0);
    assert_int_equal(sigaction(SIGPIPE, &ignore, &old), 0);
    text = script_output(sandbox, ground.ws, "exec grep -E '^Sig(Blk|Ign)' /proc/self/status");
    assert_string_equal(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    assert_int_equal(sigaction(SIGPIPE, &old, NULL), 0);
    assert_int_equal(sigprocmask(SIG_SETMASK, &mask, NULL), 0);
}

/* The launcher wants its descriptors at fixed numbers, where the caller's may be. */
static void test_descriptors_in_each_others_place(void **state)
{
    int ends[2];
    int status;
    pid_t pid;
    char text[16] = "";
    int taken[] = {dup(0), dup(0)}; /* so that 3 and 4 are nothing of the sandbox's */

    in_sandbox();
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct launch_options options =
            launch_in("/", ARGV((char *)"sh", (char *)"-c", (char *)"cat; echo out"));
        struct launch_report report = {0};
        struct launch launch;
        struct err err;
        int null = open("/dev/null", O_RDWR);

        dup2(ends[1], 3);
        dup2(null, 4);
        dup2(ends[1], 0);
        options.stdio[0] = 4;
        options.stdio[1] = 3;
        options.stdio[2] = 0;
        if (sandbox_launch(sandbox, &options, &launch, &err))
            _exit(1);
        while (report.event == LAUNCH_NOTHING || report.event == LAUNCH_STARTED)
            if (launch_read(&launch, &report, &err))
                _exit(2);
        launch_done(&launch);
        _exit(report.event == LAUNCH_EXITED && report.wait_status == 0 ? 0 : 3);
    }
    close(taken[0]);
    close(taken[1]);
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], text, sizeof text - 1), 4);
    assert_string_equal(text, "out\n");
    close(ends[0]);
}

static void give_limits(void *data, pid_t launcher, enum process_counter counter,
                        struct launch_limits *ret)
{
    assert_true(launcher > 0 && kill(launcher, 0) == 0);
    *ret = *(const struct launch_limits *)data;
}

static void test_resource_limits(void **state)
{
    struct launch_limits limits = {.data = 3 << 20,
                                   .address_space = 1 << 30,
                                   .cpu_time = 77,
                                   .file_size = 100 * 512,
                                   .files = 60};
    struct launch_options options =
        launch_in(ground.ws, ARGV((char *)"sh", (char *)"-c",
                                  (char *)"ulimit -d; ulimit -v; ulimit -t; ulimit -f; ulimit -Hn; "
                                          "head -c 200000 /dev/zero > large"));
    AUTO(ended_done) struct ended ended = {0};
    struct command command;

    in_sandbox();
    options.limiter = give_limits;
    options.limiter_data = &limits;
    command_start(&command, sandbox, options);
    ended = command_finish(&command);
    assert_int_equal(ended.report.event, LAUNCH_EXITED);
    assert_int_not_equal(ended.report.wait_status, 0);
    assert_true(str_starts(ended.text, "3072\n1048576\n77\n100\n60\n"));
}

/* Of the setting of the host, which has to stay as it was. */
static long read_pid_max(void)
{
    AUTO_CLOSE int fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
    char text[16] = "";

    assert_true(read(fd, text, sizeof text - 1) > 0);
    return strtol(text, NULL, 10);
}

/* The init, the shell, and 18 more; dash ends when it cannot fork. The second command's pid namespace is another
 * one: it gets as many. */
static void test_a_loop_that_forks_ends_at_the_limit(void **state)
{
    struct launch_limits limits = {.processes = 20};
    const long host = read_pid_max();

    in_sandbox();
    if (sandbox_process_counter(sandbox) == COUNTER_USER)
        limits.processes = 0; /* nobody counts these alone: the loop ends by itself */
    for (int i = 0; i < 2; i++) {
        struct launch_options options =
            launch_in(ground.ws, ARGV((char *)"sh", (char *)"-c",
                                      (char *)"i=0; while [ $i -lt 40 ]; do i=$((i + 1)); "
                                              "sleep 60 & echo $i; done"));
        AUTO(ended_done) struct ended ended = {0};
        struct command command;

        options.limiter = give_limits;
        options.limiter_data = &limits;
        command_start(&command, sandbox, options);
        ended = command_finish(&command);
        assert_int_equal(ended.report.event, LAUNCH_EXITED);
        assert_int_equal(!strstr(ended.text, "\n19\n"), limits.processes != 0);
        assert_non_null(strstr(ended.text, "\n18\n"));
    }
    assert_int_equal(read_pid_max(), host);
}

/* Nobody may raise a hard limit; what is asked for beyond it is then as much as there is. */
static void test_a_limit_beyond_what_the_host_has(void **state)
{
    struct launch_options options =
        launch_in(ground.ws, ARGV((char *)"sh", (char *)"-c", (char *)"ulimit -St; ulimit -Ht"));
    AUTO(ended_done) struct ended ended = {0};
    struct command command;
    AUTO_FREE char *wanted = NULL;
    struct rlimit host;
    uint64_t most = 3600; /* more than this program needs */
    struct launch_limits limits = {0};

    assert_int_equal(getrlimit(RLIMIT_CPU, &host), 0);
    most = host.rlim_max < most ? host.rlim_max : most;
    host.rlim_cur = host.rlim_max = most;
    assert_int_equal(setrlimit(RLIMIT_CPU, &host), 0);
    in_sandbox();
    limits.cpu_time = 2 * most;
    options.limiter = give_limits;
    options.limiter_data = &limits;
    command_start(&command, sandbox, options);
    ended = command_finish(&command);
    assert_exited(ended, 0);
    wanted = alloc_strf("%llu\n%llu\n", (unsigned long long)most, (unsigned long long)most);
    assert_string_equal(ended.text, wanted);
}

static void test_a_terminal_of_its_own(void **state)
{
    AUTO_CLOSE int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    AUTO_CLOSE int slave = -1;
    struct launch_options options = launch_in(
        ground.ws, ARGV((char *)"sh", (char *)"-c",
                        (char *)"tty; ls -l $(tty) >/dev/null && echo by-name > /dev/tty; "
                                "ps -o tpgid= -p $$ | tr -d ' ' | sed s/^$$\\$/foreground/"));
    AUTO(ended_done) struct ended ended = {0};
    struct command command;
    char text[256] = "";
    size_t len = 0;

    in_sandbox();
    assert_true(master >= 0);
    assert_int_equal(grantpt(master) || unlockpt(master), 0);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    options.stdio[0] = options.stdio[1] = options.stdio[2] = slave;
    options.controlling_tty = true;
    command_start(&command, sandbox, options);
    ended = command_finish(&command);
    assert_exited(ended, 0);
    while (!strstr(text, "foreground")) { /* what was written comes through in pieces */
        struct pollfd ready = {.fd = master, .events = POLLIN};
        ssize_t n;

        assert_int_equal(poll(&ready, 1, 10000), 1);
        n = read(master, text + len, sizeof text - 1 - len);
        assert_true(n > 0);
        len += (size_t)n;
    }
    assert_contains(text, "/dev/");
    assert_contains(text, "by-name");
}

/* -- the sandbox holds, and leaves nothing */

static void test_it_holds(void **state)
{
    AUTO_FREE char *outside = path_join(ground.scratch, "outside");
    AUTO_FREE char *text = alloc_strf("echo 1 > inside; echo 2 > %s; mkdir .git; echo 3 > .codex; "
                                      "rmdir .git; rm -rf .codex; ls -A",
                                      outside);
    AUTO(ended_done) struct ended ended = {0};

    in_sandbox();
    ended = script(text);
    assert_exited(ended, 0);
    assert_true(str_ends(ended.text, "\ninside\n"));
    assert_null(strstr(ended.text, "\n.git\n"));
    assert_null(strstr(ended.text, "\n.codex\n"));
    assert_int_equal(access(outside, F_OK), -1);
}

static void test_nothing_is_left(void **state)
{
    AUTO_FREE char *git = path_join(ground.ws, ".git");
    AUTO_FREE char *codex = path_join(ground.ws, ".codex");
    unsigned fds;

    in_sandbox();
    ended_done(&(struct ended){.text = script_output(sandbox, ground.ws, "true")});
    fds = support_open_fds();
    for (int i = 0; i < 50; i++) {
        AUTO_FREE char *text = script_output(sandbox, ground.ws, "echo $PPID");

        assert_string_equal(text, "1\n"); /* the launcher is pid 1 */
    }
    assert_int_equal(support_open_fds(), fds);
    assert_int_equal(access(git, F_OK), -1);
    assert_int_equal(access(codex, F_OK), -1);
    sandbox_free(TAKE_PTR(sandbox));
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

static void test_several_at_a_time(void **state)
{
    enum { COMMANDS = 16 };
    struct command commands[COMMANDS];

    in_sandbox();
    for (int i = 0; i < COMMANDS; i++) {
        AUTO_FREE char *text = alloc_strf("echo ready; read x; exit %d", i);

        command_start(&commands[i], sandbox,
                      launch_in(ground.ws, ARGV((char *)"sh", (char *)"-c", text)));
    }
    for (int i = COMMANDS - 1; i >= 0; i--) {
        AUTO(ended_done) struct ended ended = command_finish(&commands[i]);

        assert_exited(ended, i);
        assert_string_equal(ended.text, "ready\n");
    }
}

/* The launch does not copy the caller's memory, so a large caller needs no more than a small one.
 */
static void test_from_a_large_process(void **state)
{
    const size_t size = 512 << 20;
    AUTO_FREE char *text = NULL;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    memset(memory, 'x', size);
    in_sandbox();
    text = script_output(sandbox, ground.ws, "grep VmRSS /proc/self/status");
    assert_true(atoll(text + strlen("VmRSS:")) < 64 << 10); /* KiB */
    assert_int_equal(munmap(memory, size), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_exit_codes),
        TEST(test_signals),
        TEST(test_output_comes_whole),
        TEST(test_usage_is_reported),
        TEST(test_programs_that_cannot_be_executed),
        TEST(test_the_path_is_searched),
        TEST(test_program_apart_from_argv),
        TEST(test_directories_that_cannot_be_entered),
        TEST(test_a_launcher_that_is_gone),
        TEST(test_environment_is_as_given),
        TEST(test_the_init_tells_nothing),
        TEST(test_only_stdio_is_open),
        TEST(test_signals_are_by_default),
        TEST(test_descriptors_in_each_others_place),
        TEST(test_resource_limits),
        TEST(test_a_loop_that_forks_ends_at_the_limit),
        TEST(test_a_limit_beyond_what_the_host_has),
        TEST(test_a_terminal_of_its_own),
        TEST(test_it_holds),
        TEST(test_nothing_is_left),
        TEST(test_several_at_a_time),
        TEST(test_from_a_large_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

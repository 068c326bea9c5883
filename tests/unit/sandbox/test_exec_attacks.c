/* What hostile programs try where programs are judged and run outside. This program is the host and, by
 * the name `attack`, what runs inside. Whatever it does: only what was judged runs outside, once, and
 * then not inside; all ends.
 *
 * The program `good` (this one) is to run outside, `bad` is refused, the rest may go on. Each leaves
 * a mark: its name, where it ran, its argument. */
#include "exec_host.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h> /* allow pthread: it is the attack */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 40 };

/* -- inside */

static char *const no_env[] = {NULL};
static char *good_argv[] = {(char *)"good", (char *)"1", NULL};

static int leave_mark(const char *name, const char *argument)
{
    char line[128];
    const char *where = getenv("WHERE");
    int fd = open("marks", O_WRONLY | O_APPEND | O_CLOEXEC);
    int len = snprintf(line, sizeof line, "%s %s %s\n", name, where ? where : "inside",
                       argument ? argument : "-");

    if (fd >= 0)
        len -= (int)write(fd, line, (size_t)len);
    return len ? 99 : 42;
}

static int status_of(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int exec_good(void)
{
    execve("./good", good_argv, no_env);
    return errno;
}

static int in_child(int (*function)(void))
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(function());
    return status_of(pid);
}

static int plain(void)
{
    return in_child(exec_good) == 42 ? 0 : 1;
}

static int from_vfork(void)
{
    volatile unsigned char memory[256];
    volatile int bad = 0;
    pid_t pid;

    for (int i = 0; i < 256; i++)
        memory[i] = (unsigned char)i;
    pid = vfork();
    if (pid == 0) {
        execve("./good", good_argv, no_env);
        _exit(1);
    }
    for (int i = 0; i < 256; i++)
        bad |= memory[i] != i;
    return bad || status_of(pid) != 42;
}

static void *exec_in_thread(void *unused)
{
    exec_good();
    return unused;
}

static int exec_by_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, exec_in_thread, NULL); /* allow pthread */
    pthread_join(thread, NULL);
    return 1;
}

static int from_a_thread(void)
{
    return in_child(exec_by_thread) == 42 ? 0 : 1;
}

static int exec_without_stdio(void)
{
    close(0);
    close(1);
    close(2);
    return exec_good();
}

static int without_stdio(void)
{
    return in_child(exec_without_stdio) == 42 ? 0 : 1;
}

static int exec_deep(void)
{
    static char *argv[2002];
    char *word = malloc(1025);

    memset(word, 'x', 1024);
    word[1024] = '\0';
    argv[0] = (char *)"good";
    for (int i = 1; i < 2001; i++)
        argv[i] = word;
    execve("./good", argv, no_env);
    return errno == EACCES ? 7 : 8;
}

static int deep_argv(void)
{
    return in_child(exec_deep) == 7 ? 0 : 1;
}

static int exec_unmapped(void)
{
    syscall(SYS_execve, "./good", 16L, no_env);
    return errno == EACCES || errno == EFAULT ? 7 : 8;
}

static int unmapped_argv(void)
{
    return in_child(exec_unmapped) == 7 ? 0 : 1;
}

/* Who has no arguments is judged by that. */
static int exec_null(void)
{
    syscall(SYS_execve, "./good", NULL, NULL);
    return errno == EACCES ? 7 : 8;
}

static int null_argv(void)
{
    return in_child(exec_null) == 7 ? 0 : 1;
}

static int exec_descriptor(void)
{
    int fd = open("good", O_PATH | O_CLOEXEC);

    syscall(SYS_execveat, fd, "", good_argv, no_env, AT_EMPTY_PATH);
    return 1;
}

static int by_descriptor(void)
{
    return in_child(exec_descriptor) == 42 ? 0 : 1;
}

static int exec_memfd(void)
{
    static char *argv[] = {(char *)"bad", NULL};
    char bytes[65536];
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int fd = memfd_create("x", MFD_CLOEXEC);
    ssize_t len;

    while ((len = read(from, bytes, sizeof bytes)) > 0)
        if (write(fd, bytes, (size_t)len) != len)
            return 2;
    syscall(SYS_execveat, fd, "", argv, no_env, AT_EMPTY_PATH);
    return errno == EACCES ? 7 : 8;
}

static int by_memfd(void)
{
    return in_child(exec_memfd) == 7 ? 0 : 1;
}

static int exec_refused(void)
{
    static char *argv[] = {(char *)"bad", NULL};

    execve("/proc/self/exe", argv, no_env);
    if (errno != EACCES)
        return 8;
    execve("./good", argv, no_env);
    return errno == EACCES ? 7 : 8;
}

static int refused(void)
{
    return in_child(exec_refused) == 7 ? 0 : 1;
}

static int exec_script(void)
{
    execve("./script", good_argv, no_env);
    return 1;
}

/* What runs outside is the script, by its own first line. */
static int a_script(void)
{
    return in_child(exec_script) == 43 ? 0 : 1;
}

static int exec_traced(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        return 7; /* there is no ptrace without a pid namespace */
    execve("./good", good_argv, no_env);
    return errno == EACCES ? 7 : 8;
}

static int traced(void)
{
    return in_child(exec_traced) == 7 ? 0 : 1;
}

/* What the stub says, said by somebody else. */
static int forged_hello(void)
{
    return syscall(SYS_execve, NULL, NULL, NULL) == -1 && errno == EFAULT ? 0 : 1;
}

static volatile bool is_over;

static void *close_all(void *unused)
{
    while (!is_over)
        syscall(SYS_close_range, 3, 200, 0);
    return unused;
}

static int exec_beside_closing(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, close_all, NULL); /* allow pthread */
    exec_good();
    return 7;
}

static int descriptor_closed(void)
{
    for (int i = 0; i < TRIES; i++) {
        int status = in_child(exec_beside_closing);

        if (status != 42 && status != 7 && status != 126 && status != 137)
            return 1;
    }
    return 0;
}

static int evil = -1;

static void *replace_all(void *unused)
{
    while (!is_over)
        for (int fd = 3; fd < 12; fd++)
            if (fd != evil)
                dup2(evil, fd); /* allow dup2: the attack */
    return unused;
}

static int exec_beside_replacing(void)
{
    pthread_t thread;

    evil = fcntl(open("other", O_RDONLY | O_CLOEXEC), F_DUPFD, 100);
    pthread_create(&thread, NULL, replace_all, NULL); /* allow pthread */
    exec_good();
    return 7;
}

/* The stub's descriptor becomes another program: which may run then, inside, and nothing outside. */
static int descriptor_replaced(void)
{
    for (int i = 0; i < TRIES; i++)
        in_child(exec_beside_replacing);
    return 0;
}

static char flipped[] = "1";

static void *flip(void *unused)
{
    while (!is_over)
        flipped[0] = flipped[0] == '1' ? '2' : '1';
    return unused;
}

static int exec_flipping_argument(void)
{
    static char *argv[] = {(char *)"good", flipped, NULL};
    pthread_t thread;

    pthread_create(&thread, NULL, flip, NULL); /* allow pthread */
    execve("./good", argv, no_env);
    return 7;
}

/* `good 1` runs outside, `good 2` is refused. */
static int argument_flipped(void)
{
    for (int i = 0; i < TRIES; i++)
        in_child(exec_flipping_argument);
    return 0;
}

static char flipped_path[] = "./good";

static void *flip_path(void *unused)
{
    while (!is_over)
        flipped_path[2] = flipped_path[2] == 'g' ? 'f' : 'g';
    return unused;
}

static int exec_flipping_path(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, flip_path, NULL); /* allow pthread */
    execve(flipped_path, good_argv, no_env);
    return 7;
}

/* The program `food` is refused. There is no third name between the two: one that is not there is let go
 * on, and the kernel, which reads again, may find a program (docs/threat-model.md: to judge is advice). */
static int path_flipped(void)
{
    for (int i = 0; i < TRIES; i++)
        in_child(exec_flipping_path);
    return 0;
}

static int killed_at_any_moment(void)
{
    for (int i = 0; i < TRIES; i++) {
        pid_t pid = fork();
        struct timespec moment = {.tv_nsec = i * 100000L};

        if (pid == 0)
            _exit(exec_good());
        nanosleep(&moment, NULL); /* each other moment, none of which is waited for */
        kill(pid, SIGKILL);
        status_of(pid);
    }
    return 0;
}

static int stopped_at_any_moment(void)
{
    for (int i = 0; i < TRIES / 2; i++) {
        pid_t pid = fork();
        struct timespec moment = {.tv_nsec = i * 200000L};
        int status;

        if (pid == 0)
            _exit(exec_good());
        nanosleep(&moment, NULL);
        kill(pid, SIGSTOP);
        kill(pid, SIGCONT);
        status = status_of(pid);
        if (status != 42)
            return status ? status : 97;
    }
    return 0;
}

static void on_alarm(int number)
{
    (void)number;
}

static int exec_under_alarms(void)
{
    const struct itimerval often = {.it_interval = {.tv_usec = 200}, .it_value = {.tv_usec = 200}};
    const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    const struct itimerval never = {.it_value = {0}};
    int error;

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    error = exec_good();
    setitimer(ITIMER_REAL, &never, NULL);
    return error;
}

/* The timer goes on in the stub, which passes its alarms on: that ends what runs outside. */
static int under_alarms(void)
{
    for (int i = 0; i < TRIES / 4; i++) {
        int status = in_child(exec_under_alarms);

        if (status != 42 && status != 128 + SIGALRM)
            return 1;
    }
    return 0;
}

static sigjmp_buf away;

static void jump_away(int number)
{
    (void)number;
    siglongjmp(away, 1);
}

static int exec_and_jump(void)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 300}};

    signal(SIGALRM, jump_away);
    setitimer(ITIMER_REAL, &soon, NULL);
    if (sigsetjmp(away, 1) == 0)
        exec_good();
    execve("./other", (char *[]){(char *)"other", NULL}, no_env);
    return 7;
}

/* The call is never repeated: what was approved does not happen, and the next one is another. */
static int jumped_away(void)
{
    for (int i = 0; i < TRIES / 4; i++)
        in_child(exec_and_jump);
    return 0;
}

/* A stub by itself: nobody has approved of anything. */
static int stub_by_hand(void)
{
    pid_t pid = fork();
    char path[64], link[64] = "";
    int status;

    if (pid == 0) {
        signal(SIGTERM, SIG_DFL);
        execve("./good", (char *[]){(char *)"good", (char *)"waits", NULL}, no_env);
        _exit(1);
    }
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    while (!strstr(link, "cordon-outside")) {
        ssize_t len = readlink(path, link, sizeof link - 1);

        link[len > 0 ? len : 0] = '\0';
        sched_yield();
    }
    if (fork() == 0) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        syscall(SYS_execveat, fd, "", NULL, NULL, AT_EMPTY_PATH);
        _exit(7);
    }
    wait(&status); /* the other one waits for its end */
    kill(pid, SIGKILL);
    status_of(pid);
    return WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 7) ? 0 : 1;
}

static int exec_held(void)
{
    execve("./good", (char *[]){(char *)"held", NULL}, no_env);
    return 7;
}

/* Many that are never answered; the others go on, and all can be killed. */
static int many_held(void)
{
    pid_t pids[200];

    for (int i = 0; i < 200; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(exec_held());
    }
    if (plain())
        return 1;
    for (int i = 0; i < 200; i++) {
        kill(pids[i], SIGKILL);
        if (status_of(pids[i]) != 137)
            return 1;
    }
    return 0;
}

static int exec_ignoring(void)
{
    signal(SIGTERM, SIG_IGN);
    kill(getpid(), SIGTERM);
    return exec_good();
}

static int signals_ignored(void)
{
    return in_child(exec_ignoring) == 42 ? 0 : 1;
}

static const struct attack {
    const char *name;
    int (*inside)(void);
    unsigned outside; /* how often something runs there; ANY */
} attacks[] = {
#define ANY 1000
    {"plain", plain, 1},
    {"from-vfork", from_vfork, 1},
    {"from-a-thread", from_a_thread, 1},
    {"without-stdio", without_stdio, 1},
    {"deep-argv", deep_argv, 0},
    {"unmapped-argv", unmapped_argv, 0},
    {"null-argv", null_argv, 0},
    {"by-descriptor", by_descriptor, 1},
    {"by-memfd", by_memfd, 0},
    {"refused", refused, 0},
    {"a-script", a_script, 1},
    {"traced", traced, 0},
    {"forged-hello", forged_hello, 0},
    {"descriptor-closed", descriptor_closed, ANY},
    {"descriptor-replaced", descriptor_replaced, ANY},
    {"argument-flipped", argument_flipped, ANY},
    {"path-flipped", path_flipped, ANY},
    {"killed-at-any-moment", killed_at_any_moment, ANY},
    {"stopped-at-any-moment", stopped_at_any_moment, TRIES / 2},
    {"under-alarms", under_alarms, ANY},
    {"jumped-away", jumped_away, ANY},
    {"stub-by-hand", stub_by_hand, 1},
    {"many-held", many_held, 1},
    {"signals-ignored", signals_ignored, 1},
};

enum { ATTACKS = sizeof attacks / sizeof *attacks };

static int inside(const char *name)
{
    for (size_t i = 0; i < ATTACKS; i++)
        if (str_eq(attacks[i].name, name))
            return attacks[i].inside();
    return 98;
}

/* -- the host */

static struct ground ground;
static struct sandbox *sandbox;
static struct exec_host host;
static uint64_t approved[4096];
static unsigned approved_len;

static enum launch_verdict judge(struct exec_host *asked, const struct launch_fact *fact)
{
    const char *name = fact->argv[0] ? fact->argv[0] : "";

    if (str_eq(name, "held"))
        return (enum launch_verdict)LAUNCH_HOLD;
    if (!*name || str_eq(name, "bad") || str_ends(fact->path, "/food") ||
        (str_eq(name, "good") && fact->argv[1] && str_eq(fact->argv[1], "2")))
        return LAUNCH_NO;
    if (!str_eq(name, "good") && !fact->is_truncated)
        return LAUNCH_YES;
    assert_true(approved_len < sizeof approved / sizeof *approved);
    approved[approved_len++] = fact->id;
    return LAUNCH_OUTSIDE;
}

/* Only what was approved is to run outside, and once. */
static void check(struct exec_host *told, const struct launch_fact *fact)
{
    unsigned found = 0;

    if (fact->kind != FACT_OUTSIDE)
        return;
    for (unsigned i = 0; i < approved_len; i++)
        if (approved[i] == fact->id) {
            approved[i] = 0;
            found++;
        }
    assert_int_equal(found, 1);
    assert_string_equal(fact->argv[0], "good");
    assert_false(fact->is_truncated);
}

static char *read_marks(void)
{
    AUTO_FREE char *path = path_join(ground.ws, "marks");
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = alloc_zero(1, 65536);

    assert_true(read(fd, text, 65535) >= 0);
    return text;
}

static int setup(void **state)
{
    AUTO_FREE char *self = program_self();
    static const char *const names[] = {"good", "food", "other"};

    ground_init(&ground);
    host = (struct exec_host){.judge = judge, .on_fact = check};
    approved_len = 0;
    for (size_t i = 0; i < 3; i++) {
        AUTO_FREE char *path = path_join(ground.ws, names[i]);
        AUTO_FREE char *copy = alloc_strf("cp %s %s", self, path);

        assert_int_equal(system(copy), 0); /* a file of its own: links would be followed */
    }
    support_write(ground.ws, "script", "#!/bin/sh\nexit 43\n");
    support_write(ground.ws, "marks", "");
    {
        AUTO_FREE char *script = path_join(ground.ws, "script");

        assert_int_equal(chmod(script, 0755), 0);
    }
    return 0;
}

static int teardown(void **state)
{
    sandbox_free(TAKE_PTR(sandbox));
    exec_host_done(&host);
    ground_done(&ground);
    return 0;
}

static void test_attack(void **state)
{
    const struct attack *attack = *state;
    AUTO_FREE char *self = path_join(ground.ws, "other");
    AUTO(ended_done) struct ended ended = {0};
    AUTO_FREE char *marks = NULL;

    sandbox = ground_sandbox_watching(&ground, WATCH_JUDGE | WATCH_EXEC);
    if (sandbox_defence(sandbox, DEFENCE_GUARD)->state != DEFENCE_ENFORCED)
        skip_because(sandbox_defence(sandbox, DEFENCE_GUARD)->why);
    ended = exec_host_run(&host, sandbox, ground.ws,
                          ARGV(self, (char *)"attack", (char *)attack->name));
    marks = read_marks();
    if (ended.report.event != LAUNCH_EXITED || ended.report.wait_status)
        fail_msg("%s: event %d, status %#x, marks \"%s\", facts:\n%.*s", attack->name,
                 ended.report.event, ended.report.wait_status, marks, (int)host.log.len,
                 host.log.data);
    if (attack->outside != ANY)
        assert_int_equal(host.outside, attack->outside);
    assert_null(strstr(marks, "good inside"));
    assert_null(strstr(marks, "outside 2"));
    assert_null(strstr(marks, "food outside"));
    assert_null(strstr(marks, "other outside"));
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[ATTACKS];
    const char *name = argc ? path_name(argv[0]) : "";
    AUTO_FREE char *self = program_self();

    if (argc > 2 && str_eq(argv[1], "attack"))
        return inside(argv[2]);
    if (str_eq(name, "good") && argc > 1 && str_eq(argv[1], "waits"))
        return pause();
    /* Without a search for leaks at the end: LeakSanitizer attaches to its process and waits for the
     * SIGSTOP of that, which a SIGCONT that is passed on takes back: it would wait for ever. */
    if (!str_starts(path_name(self), "test_"))
        _exit(leave_mark(path_name(self), argc > 1 ? argv[1] : NULL));
    for (size_t i = 0; i < ATTACKS; i++)
        tests[i] = (struct CMUnitTest){.name = attacks[i].name,
                                       .test_func = test_attack,
                                       .setup_func = setup,
                                       .teardown_func = teardown,
                                       .initial_state = (void *)&attacks[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

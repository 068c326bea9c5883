/* Attacks on the guard itself: calls that are interrupted, abandoned or doubled while it holds them,
 * filters and tracers of the command's own in front of it, and more calls than it can want. In all of
 * them MARK is a name that must not come to be. */
#include "attack.h"
#include "names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int tell(const char *mark)
{
    errno = EACCES;
    return exists(mark) ? won("%s is there", mark) : lost("%s", mark);
}

/* --- many calls --- */

static const char *storm_mark;
static long storm_count;
static atomic_bool storm_has_begun; /* a first answer has come */

static void *storm(void *arg)
{
    (void)arg;
    for (long i = 0; i < storm_count; i++) {
        mkdir(storm_mark, 0755);
        storm_has_begun = true;
    }
    return NULL;
}

/* storm THREADS COUNT MARK: all at once, COUNT tries each. */
static int run_storm(int argc, char **argv)
{
    (void)argc;
    enum { MAX = 5000 };
    static pthread_t threads[MAX];
    long wanted = number(argv[0]), started = 0;
    pthread_attr_t small;
    storm_count = number(argv[1]);
    storm_mark = argv[2];
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    while (started < wanted && started < MAX &&
           pthread_create(&threads[started], &small, storm, NULL) == 0)
        started++;
    for (long i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    note("threads %ld", started);
    return tell(argv[2]);
}

/* storm-exit ROUNDS MARK: processes that end, or are killed, while their threads wait for answers. */
static int run_storm_exit(int argc, char **argv)
{
    (void)argc;
    long rounds = number(argv[0]);
    storm_count = 1000000;
    storm_mark = argv[1];
    for (long i = 0; i < rounds && !exists(argv[1]); i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t thread;
            for (int t = 0; t < 4; t++)
                pthread_create(&thread, NULL, storm, NULL);
            while (!storm_has_begun)
                sched_yield();
            for (volatile long pause = 0; pause < 1000 * (i % 50); pause = pause + 1)
                ;
            if (i % 2)
                _exit(0);
            kill(getpid(), SIGKILL);
        }
        waitpid(child, NULL, 0);
    }
    return tell(argv[1]);
}

/* storm-exec ROUNDS MARK: execs while other threads wait; the executed program says so. Every other time
 * not before one of them has had an answer, for without that no call may have come as far. */
static int run_storm_exec(int argc, char **argv)
{
    (void)argc;
    long rounds = number(argv[0]);
    char left[32];
    pthread_t thread;
    storm_count = 1000000;
    storm_mark = argv[1];
    if (rounds <= 0 || exists(argv[1]))
        return tell(argv[1]);
    for (int t = 0; t < 3; t++)
        pthread_create(&thread, NULL, storm, NULL);
    while (rounds % 2 && !storm_has_begun)
        sched_yield();
    for (volatile long pause = 0; pause < 1000 * (rounds % 50); pause = pause + 1)
        ;
    snprintf(left, sizeof left, "%ld", rounds - 1);
    execl("/proc/self/exe", "attacks", "storm-exec", left, argv[1], (char *)NULL);
    return lost("exec");
}

/* --- signals --- */

static char *volatile changed;
static const char *texts[2];
static volatile long signals;

/* Changes the path that the interrupted call is about. */
static void on_alarm(int signal)
{
    (void)signal;
    if (changed != NULL)
        memcpy(changed, texts[signals & 1], strlen(texts[0]) + 1);
    signals = signals + 1;
}

/* signals FLAGS CALL SOURCE A B COUNT: SIGALRM at 1 kHz and more; its handler flips the path, A <-> B
 * (of one length). FLAGS: those of sigaction. */
static int run_signals(int argc, char **argv)
{
    (void)argc;
    static char path[PATH_MAX];
    const struct maker *maker = maker_find(argv[1]);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = (int)number(argv[0])};
    const struct itimerval often = {{0, 500}, {0, 500}};
    long count = number(argv[5]), interrupted = 0;
    texts[0] = argv[3];
    texts[1] = argv[4];
    snprintf(path, sizeof path, "%s", argv[3]);
    changed = path;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    /* bare, a signal has to come between two tries, which it does */
    for (long i = 0; (i < count || signals < 4) && !exists(argv[4]); i++) {
        maker_prepare(maker, argv[2]);
        if (maker->make(AT_FDCWD, path, argv[2]) >= 0 && !exists(argv[4]))
            remove_name(argv[3]);
        else
            interrupted += errno == EINTR;
    }
    note("signals %ld interrupted %ld", (long)signals, interrupted);
    return tell(argv[4]);
}

/* --- filters and tracers of one's own --- */

static int filter(unsigned verdict, unsigned nr, unsigned flags)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, verdict),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* own-allow MARK: a filter that allows all. */
static int run_own_allow(int argc, char **argv)
{
    (void)argc;
    if (filter(SECCOMP_RET_ALLOW, SYS_mkdirat, 0) < 0)
        return lost("seccomp");
    mkdirat(AT_FDCWD, argv[0], 0755);
    return tell(argv[0]);
}

/* own-log MARK: the same with LOG, for all threads. */
static int run_own_log(int argc, char **argv)
{
    (void)argc;
    if (filter(SECCOMP_RET_LOG, SYS_mkdirat, SECCOMP_FILTER_FLAG_TSYNC) < 0)
        return lost("seccomp");
    mkdirat(AT_FDCWD, argv[0], 0755);
    return tell(argv[0]);
}

/* SIGSYS instead of the call; the handler makes it after all. */
static const char *trapped_path;

static void on_trap(int signal)
{
    (void)signal;
    syscall(SYS_mkdirat, AT_FDCWD, trapped_path, 0755);
}

static int run_own_trap(int argc, char **argv)
{
    (void)argc;
    trapped_path = argv[0];
    signal(SIGSYS, on_trap);
    if (filter(SECCOMP_RET_TRAP, SYS_mknodat, 0) < 0)
        return lost("seccomp");
    syscall(SYS_mknodat, AT_FDCWD, argv[0], S_IFREG | 0644, 0);
    return tell(argv[0]);
}

/* own-listener MARK: somebody else is asked, who lets everything go on. */
static int run_own_listener(int argc, char **argv)
{
    (void)argc;
    int listener = filter(SECCOMP_RET_USER_NOTIF, SYS_mkdirat, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    if (listener < 0)
        return lost("a listener of its own");
    pid_t child = fork();
    if (child == 0) {
        syscall(SYS_mkdirat, AT_FDCWD, argv[0], 0755);
        _exit(0);
    }
    struct seccomp_notif call = {0};
    struct seccomp_notif_resp answer = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
        return lost("receiving");
    answer.id = call.id;
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0)
        return lost("answering");
    waitpid(child, NULL, 0);
    return tell(argv[0]);
}

/* steal-listener [OWN]: looks in every process there is for the descriptor of the guard's listener,
 * with which it could answer in its place. OWN: there is one in our own. */
static int run_steal_listener(int argc, char **argv)
{
    (void)argv;
    int listener = -1;
    if (argc > 0) /* bare there is no other */
        listener = filter(SECCOMP_RET_USER_NOTIF, SYS_mkdirat, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    for (int pid = 1; pid < 64 && listener < 0; pid++) {
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        for (int fd = 0; pidfd >= 0 && fd < 64 && listener < 0; fd++) {
            char path[64], what[64] = "";
            int got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
            snprintf(path, sizeof path, "/proc/self/fd/%d", got);
            if (got >= 0 && readlink(path, what, sizeof what - 1) > 0 && strstr(what, "seccomp"))
                listener = got;
        }
    }
    errno = EPERM;
    return judge(listener, "a listener");
}

#ifdef __x86_64__
/* Other registers for a call at which a tracee stands. */
static void rewrite(pid_t child, long nr, const char *path)
{
    struct user_regs_struct regs;
    if (ptrace(PTRACE_GETREGS, child, NULL, &regs) < 0)
        _exit(2);
    regs.orig_rax = (unsigned long)nr;
    regs.rdi = (unsigned long)(long)AT_FDCWD;
    regs.rsi = (unsigned long)path;
    regs.rdx = 0755;
    ptrace(PTRACE_SETREGS, child, NULL, &regs);
}

/* traced HOW MARK: a harmless call becomes another one while the tracee stands in it. HOW: "entry"
 * (at the entry), "seccomp" (at the stop that a filter of one's own asks for), "path" (only the path
 * changes, of a call that was asked for anyway). */
static int run_traced(int argc, char **argv)
{
    (void)argc;
    int is_entry = strcmp(argv[0], "entry") == 0, is_path = strcmp(argv[0], "path") == 0;
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(2);
        raise(SIGSTOP);
        if (!is_entry && filter(SECCOMP_RET_TRACE, is_path ? SYS_mkdirat : SYS_getppid, 0) < 0)
            _exit(2);
        syscall(is_path ? SYS_mkdirat : SYS_getppid, AT_FDCWD, "harmless", 0755);
        _exit(0);
    }
    waitpid(child, &status, 0);
    ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL);
    for (int is_done = 0;;) {
        ptrace(is_entry && !is_done ? PTRACE_SYSCALL : PTRACE_CONT, child, NULL, NULL);
        if (waitpid(child, &status, 0) < 0 || WIFEXITED(status) || WIFSIGNALED(status))
            break;
        struct user_regs_struct regs;
        ptrace(PTRACE_GETREGS, child, NULL, &regs);
        int is_at_call = is_entry ? (long)regs.orig_rax == SYS_getppid
                                  : status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8);
        if (!is_done && is_at_call) {
            rewrite(child, SYS_mkdirat, argv[1]);
            is_done = 1;
        }
    }
    return tell(argv[1]);
}
#endif

/* --- memory that the guard reads --- */

/* bad-memory KIND MARK: the path lies at the end of what is mapped, in a page that goes and comes, in
 * a file that shrinks. */
static volatile char *page;

__attribute__((noreturn)) static void *protect_and_free(void *arg)
{
    (void)arg;
    for (;;) {
        mprotect((void *)(uintptr_t)page, 4096, PROT_NONE);
        mprotect((void *)(uintptr_t)page, 4096, PROT_READ | PROT_WRITE);
    }
}

static int run_bad_memory(int argc, char **argv)
{
    (void)argc;
    size_t len = strlen(argv[1]) + 1;
    long count = number(argv[2]);
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int is_changing = strcmp(argv[0], "comes-and-goes") == 0;
    pthread_t thread;
    munmap(map + 4096, 4096);
    page = map;
    memcpy(map + 4096 - len, argv[1], len);
    if (is_changing)
        pthread_create(&thread, NULL, protect_and_free, NULL);
    if (strcmp(argv[0], "write-only") == 0)
        mprotect(map, 4096, PROT_WRITE);
    if (strcmp(argv[0], "execute-only") == 0)
        mprotect(map, 4096, PROT_EXEC);
    for (long i = 0; i < count && !exists(argv[1]);)
        if (mkdir(map + 4096 - len, 0755) < 0 && errno == EFAULT && is_changing)
            sched_yield(); /* no try: the page is gone until the thread has its turn */
        else
            i++;
    return tell(argv[1]);
}

/* --- who we are --- */

/* undumpable CALL SOURCE MARK: nobody may look at our memory. */
static int run_undumpable(int argc, char **argv)
{
    (void)argc;
    const struct maker *maker = maker_find(argv[0]);
    maker_prepare(maker, argv[1]);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    maker->make(AT_FDCWD, argv[2], argv[1]);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    return tell(argv[2]);
}

/* own-namespace MARK: the call comes from a root, or a user namespace, of its own. */
static int run_own_namespace(int argc, char **argv)
{
    (void)argc;
    unshare(CLONE_NEWUSER);
    mkdir(argv[0], 0755);
    return tell(argv[0]);
}

/* own-root ROOT NAME: the same after chroot(2) into the root, where its name is another. */
static int run_own_root(int argc, char **argv)
{
    (void)argc;
    char path[PATH_MAX];
    int up = open(argv[0], O_PATH | O_DIRECTORY);
    snprintf(path, sizeof path, "/%s", argv[1]);
    unshare(CLONE_NEWUSER);
    if (chroot(argv[0]) < 0)
        return lost("chroot");
    mkdir(path, 0755);
    errno = EACCES;
    return faccessat(up, argv[1], F_OK, 0) == 0 ? won("%s is there", argv[1]) : lost("mkdir");
}

/* zombie MARK: the leader has ended, its thread goes on. */
static const char *zombie_mark;

static void *after_the_leader(void *arg)
{
    (void)arg;
    usleep(2000);
    mkdir(zombie_mark, 0755);
    _exit(0);
}

static int run_zombie(int argc, char **argv)
{
    (void)argc;
    zombie_mark = argv[0];
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, after_the_leader, NULL);
        syscall(SYS_exit, 0);
    }
    waitpid(child, NULL, 0);
    return tell(argv[0]);
}

/* twins COUNT MARK: tasks that share all but the thread group: the name of the one who calls says
 * nothing about who changes its memory, descriptors and directory. */
static int twin(void *arg)
{
    for (int i = 0; i < 100; i++)
        mkdirat(AT_FDCWD, arg, 0755);
    return 0;
}

static int run_twins(int argc, char **argv)
{
    (void)argc;
    enum { TWINS = 16, SIZE = 1 << 16 };
    static char stacks[TWINS][SIZE] __attribute__((aligned(16)));
    long count = number(argv[0]);
    for (long round = 0; round < count && !exists(argv[1]); round++) {
        for (int i = 0; i < TWINS; i++)
            clone(twin, stacks[i] + SIZE, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, argv[1]);
        while (waitpid(-1, NULL, 0) > 0)
            ;
    }
    return tell(argv[1]);
}

/* deep NAME: from so deep a folder that no path says it at once, up again to NAME beside the first. */
static int run_deep(int argc, char **argv)
{
    (void)argc;
    enum { DEPTH = 40, NAME = 200 };
    char name[NAME + 1], up[3 * (DEPTH + 1) + 64] = "";
    memset(name, 'd', NAME);
    name[NAME] = '\0';
    int top = open(".", O_PATH | O_DIRECTORY);
    for (int i = 0; i < DEPTH; i++) {
        if (mkdir(name, 0755) < 0 || chdir(name) < 0)
            return lost("level %d", i);
        memcpy(up + 3L * i, "../", 4);
    }
    snprintf(up + strlen(up), 64, "%.60s", argv[0]);
    mkdir(up, 0755);
    if (fchdir(top) < 0)
        return 2;
    return tell(argv[0]);
}

/* move PATH TO: as mv, without looking first. */
static int run_move_name(int argc, char **argv)
{
    (void)argc;
    return judge(rename(argv[0], argv[1]), "rename");
}

/* place MARK PATH...: tries each path with each call, until MARK is there. */
static int run_place(int argc, char **argv)
{
    (void)argc;
    const char *mark = argv[0];
    for (int i = 1; i < argc; i++)
        for (const struct maker *maker = makers; maker->name != NULL; maker++)
            if (maker->source == SOURCE_NONE && strncmp(maker->name, "int80", 5) != 0) {
                maker->make(AT_FDCWD, argv[i], NULL);
                if (exists(mark))
                    return won("%s by %s", argv[i], maker->name);
            }
    return tell(mark);
}

const struct attack guard_attacks[] = {
    {"storm", 3, run_storm},
    {"storm-exit", 2, run_storm_exit},
    {"storm-exec", 2, run_storm_exec},
    {"signals", 6, run_signals},
    {"own-allow", 1, run_own_allow},
    {"own-log", 1, run_own_log},
    {"own-trap", 1, run_own_trap},
    {"own-listener", 1, run_own_listener},
    {"steal-listener", 0, run_steal_listener},
#ifdef __x86_64__
    {"traced", 2, run_traced},
#endif
    {"bad-memory", 3, run_bad_memory},
    {"undumpable", 3, run_undumpable},
    {"own-namespace", 1, run_own_namespace},
    {"own-root", 2, run_own_root},
    {"zombie", 1, run_zombie},
    {"twins", 2, run_twins},
    {"deep", 1, run_deep},
    {"move", 2, run_move_name},
    {"place", 2, run_place},
    {NULL, 0, NULL},
};

/* Attacks on other processes: the victim that the harness runs outside, or the launcher's own init,
 * which is pid 1 inside. Also the victim itself. */
#include "attack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The victim: shows where its secret lies, waits for SIGUSR1 and says so; ends with its stdin. */
static char secret[64];

static void on_signal(int signal)
{
    (void)signal;
    static const char hit[] = "@hit\n";
    if (write(STDOUT_FILENO, hit, sizeof hit - 1) < 0)
        _exit(3);
}

static int run_victim(int argc, char **argv)
{
    (void)argc;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    snprintf(secret, sizeof secret, "%s", argv[0]);
    memset(argv[0], 'x', strlen(argv[0]));
    note("secret %p", (void *)secret);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        note("still %s", secret);
    return 0;
}

static int run_ptrace(int argc, char **argv)
{
    (void)argc;
    pid_t pid = (pid_t)number(argv[0]);
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
        return lost("ptrace");
    return won("tracing %d", (int)pid);
}

static int run_vm_read(int argc, char **argv)
{
    (void)argc;
    char text[64] = "";
    struct iovec here = {.iov_base = text, .iov_len = sizeof text - 1};
    struct iovec there = {.iov_base = (void *)(uintptr_t)number(argv[1]), .iov_len = here.iov_len};
    if (process_vm_readv((pid_t)number(argv[0]), &here, 1, &there, 1, 0) < 0)
        return lost("process_vm_readv");
    return won("memory: %s", text);
}

static int run_vm_write(int argc, char **argv)
{
    (void)argc;
    char text[] = "owned";
    struct iovec here = {.iov_base = text, .iov_len = sizeof text};
    struct iovec there = {.iov_base = (void *)(uintptr_t)number(argv[1]), .iov_len = sizeof text};
    return judge(process_vm_writev((pid_t)number(argv[0]), &here, 1, &there, 1, 0),
                 "process_vm_writev");
}

static int run_mem(int argc, char **argv)
{
    (void)argc;
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/mem", number(argv[0]));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return lost("open %s", path);
    char text[64] = "";
    if (pread(fd, text, sizeof text - 1, (off_t)number(argv[1])) < 0)
        return lost("pread");
    return won("memory: %s", text);
}

/* init-memory: everything readable of pid 1; needs no address. */
static int run_maps(int argc, char **argv)
{
    (void)argc;
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%ld/maps", number(argv[0]));
    FILE *maps = fopen(path, "re");
    if (maps == NULL || fgets(line, sizeof line, maps) == NULL)
        return lost("reading %s", path);
    return won("maps: %s", line);
}

static int run_pidfd_getfd(int argc, char **argv)
{
    (void)argc;
    int pidfd = (int)syscall(SYS_pidfd_open, number(argv[0]), 0);
    if (pidfd < 0)
        return lost("pidfd_open");
    return judge(syscall(SYS_pidfd_getfd, pidfd, number(argv[1]), 0), "pidfd_getfd");
}

/* process_madvise with MADV_COLD: changes how the kernel treats the other's memory. */
static int run_madvise(int argc, char **argv)
{
    (void)argc;
    int pidfd = (int)syscall(SYS_pidfd_open, number(argv[0]), 0);
    if (pidfd < 0)
        return lost("pidfd_open");
    struct iovec there = {.iov_base = (void *)(uintptr_t)(number(argv[1]) & ~4095L),
                          .iov_len = 4096};
    return judge(syscall(SYS_process_madvise, pidfd, &there, 1, 20, 0), "process_madvise");
}

static int run_kcmp(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(SYS_kcmp, getpid(), number(argv[0]), KCMP_FILE, 0, 0), "kcmp");
}

/* Whether `path` holds the text; files of /proc that may not be read do not. */
static int file_holds(const char *path, const char *text)
{
    static char data[1 << 20];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    size_t len = 0;
    ssize_t got;
    while (len < sizeof data && (got = read(fd, data + len, sizeof data - len)) > 0)
        len += (size_t)got;
    close(fd);
    return memmem(data, len, text, strlen(text)) != NULL;
}

/* search FILE TEXT [PID...]: looks for the text in /proc/PID/FILE of the processes named (of the
 * given ones outside: other people's are none of our business), and inside of all there are. */
static int run_search(int argc, char **argv)
{
    char path[300];
    if (strcmp(argv[2], "all") != 0) {
        for (int i = 2; i < argc; i++) {
            snprintf(path, sizeof path, "/proc/%s/%s", argv[i], argv[0]);
            if (file_holds(path, argv[1]))
                return won("found in %s", path);
        }
        errno = ENOENT;
        return lost("not found");
    }
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return lost("/proc");
    int seen = 0;
    char self[32];
    snprintf(self, sizeof self, "%d", (int)getpid());
    for (const struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || strcmp(entry->d_name, self) == 0)
            continue;
        snprintf(path, sizeof path, "/proc/%s/%s", entry->d_name, argv[0]);
        seen++;
        if (file_holds(path, argv[1]))
            return won("found in %s", path);
    }
    errno = ENOENT;
    return lost("not found in %d processes", seen);
}

/* fd-link PID: what the descriptors of a process lead to, opened by way of /proc. */
static int run_fd_steal(int argc, char **argv)
{
    (void)argc;
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/fd", argv[0]);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return lost("open %s", path);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%s/fd/%.32s", argv[0], entry->d_name);
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0)
            return won("opened %s", path);
    }
    return lost("no descriptor of %s could be opened", argv[0]);
}

/* setns PID KIND */
static int run_setns(int argc, char **argv)
{
    (void)argc;
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/ns/%s", argv[0], argv[1]);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return lost("open %s", path);
    return judge(syscall(SYS_setns, fd, 0), "setns");
}

static int run_fd_setns(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(SYS_setns, number(argv[0]), 0), "setns");
}

/* caps: any capability in any set counts. */
static int run_caps(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "Cap", 3) == 0 && strtoull(line + 8, NULL, 16) != 0)
            return won("%s", line);
    errno = EPERM;
    return lost("all sets are empty");
}

static int run_new_privileges(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    errno = EPERM;
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? won("exec may raise privileges")
                                                       : lost("no_new_privs is set");
}

static int run_setuid(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(SYS_setuid, number(argv[0])), "setuid");
}

static int run_setgroups(int argc, char **argv)
{
    (void)argc;
    gid_t group = (gid_t)number(argv[0]);
    return judge(syscall(SYS_setgroups, 1, &group), "setgroups");
}

/* setuid-exec PROGRAM: starts a setuid program and looks who it runs as. */
static int run_setuid_exec(int argc, char **argv)
{
    (void)argc;
    int gate[2], executed[2];
    if (pipe(gate) < 0 || pipe2(executed, O_CLOEXEC) < 0)
        return lost("pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(gate[0], STDIN_FILENO);
        close(gate[1]);
        execl(argv[0], argv[0], (char *)NULL);
        _exit(127);
    }
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)child);
    int raised = 0;
    close(executed[1]);
    if (read(executed[0], line, 1) != 0) /* its end is the program's start, or the child's end */
        return lost("read");
    /* That end comes a moment before the new rights: this waits for exec's lock, then may fail. */
    char lock[64];
    snprintf(lock, sizeof lock, "/proc/%d/personality", (int)child);
    int locked = open(lock, O_RDONLY | O_CLOEXEC);
    if (locked >= 0 && read(locked, line, sizeof line) < 0)
        errno = 0;
    FILE *status = fopen(path, "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        unsigned real, effective;
        if (sscanf(line, "Uid: %u %u", &real, &effective) == 2)
            raised = effective == 0;
    }
    if (status != NULL)
        fclose(status);
    kill(child, SIGKILL);
    errno = EPERM;
    return raised ? won("the program ran as root") : lost("the program did not run as root");
}

const struct attack process_attacks[] = {
    {"victim", 1, run_victim},
    {"ptrace", 1, run_ptrace},
    {"vm-read", 2, run_vm_read},
    {"vm-write", 2, run_vm_write},
    {"mem", 2, run_mem},
    {"maps", 1, run_maps},
    {"pidfd-getfd", 2, run_pidfd_getfd},
    {"madvise", 2, run_madvise},
    {"kcmp", 1, run_kcmp},
    {"search", 3, run_search},
    {"fd-steal", 1, run_fd_steal},
    {"setns", 2, run_setns},
    {"fd-setns", 1, run_fd_setns},
    {"caps", 0, run_caps},
    {"new-privileges", 0, run_new_privileges},
    {"setuid", 1, run_setuid},
    {"setgroups", 1, run_setgroups},
    {"setuid-exec", 1, run_setuid_exec},
    {NULL, 0, NULL},
};

/* Run as a command in the sandbox: says which layer does not hold. Each check is made twice,
 * because test_launcher_faults.py makes single system calls fail, here too, and a check that failed
 * that way would look as if the layer held.
 *
 *     layers OUTSIDE SECRET HOST_PID NAMESPACE...        names of namespaces as the host has them
 *
 * Prints "held", or "LEAK: ..." lines. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static int leaks;

/* Tries again, because the one call may be the one that fails. */
static void say(const char *first, const char *second)
{
    char line[256];
    int len = snprintf(line, sizeof line, "%s%s\n", first, second);

    for (int i = 0; i < 3 && write(1, line, (size_t)len) != len; i++)
        ;
}

static void leak(int happened, const char *what)
{
    if (!happened)
        return;
    say("LEAK: ", what);
    leaks++;
}

static int opens(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int opens_in(const char *folder, const char *name, int flags)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return opens(path, flags);
}

static int makes_socket(int family, int type)
{
    int fd = socket(family, type | SOCK_CLOEXEC, 0);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static int connects_to(const char *folder, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int status;

    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", folder, name);
    status = connect(fd, (const struct sockaddr *)&address, sizeof address);
    if (fd >= 0)
        close(fd);
    return status == 0;
}

static int can_trace(pid_t pid)
{
    if (ptrace(PTRACE_SEIZE, pid, 0, 0))
        return 0;
    ptrace(PTRACE_DETACH, pid, 0, 0);
    return 1;
}

static int has_capabilities(void)
{
    struct {
        unsigned version;
        int pid;
    } header = {0x20080522, 0}; /* linux/capability.h */
    unsigned sets[6] = {0};
    unsigned any = 0;

    if (syscall(SYS_capget, &header, sets))
        return 0;
    for (int i = 0; i < 6; i++)
        any |= sets[i];
    return any != 0;
}

static int has_bounding_set(void)
{
    int any = 0;

    for (int capability = 0; capability < 41; capability++)
        any |= prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1;
    return any;
}

static int is_namespace_of(const char *wanted)
{
    char path[64];
    char now[64] = "";

    snprintf(path, sizeof path, "/proc/self/ns/%.*s", (int)strcspn(wanted, ":"), wanted);
    return readlink(path, now, sizeof now - 1) > 0 && strcmp(now, wanted) == 0;
}

static void check_files(const char *outside, const char *secret)
{
    char victim[4096];

    snprintf(victim, sizeof victim, "%s/victim", outside);
    leak(opens_in(outside, "new", O_WRONLY | O_CREAT), "a file can be made outside");
    leak(opens(victim, O_WRONLY), "a file outside can be written");
    leak(chmod(victim, 0600) == 0, "a file outside can be changed");
    leak(opens_in(outside, "fifo", O_RDWR | O_NONBLOCK),
         "a FIFO outside can be written (Landlock)");
    leak(connects_to(outside, "socket"), "a socket outside can be connected to");
    leak(opens(".git/new", O_WRONLY | O_CREAT), "a file can be made in .git");
    leak(opens(".codex/new", O_WRONLY | O_CREAT), "a file can be made in .codex");
    leak(mkdir(".codex", 0700) == 0 || mkdir(".git", 0700) == 0, "a protected name can be made");
    leak(opens(secret, O_RDONLY), "a denied file can be read");
    leak(opens("/proc/sys/kernel/core_pattern", O_WRONLY), "a sysctl can be written");
}

static void check_kernel(pid_t host)
{
    struct rlimit limit = {.rlim_cur = 1 << 20};

    leak(makes_socket(AF_UNIX, SOCK_DGRAM), "a Unix datagram socket can be made (seccomp)");
    leak(makes_socket(AF_VSOCK, SOCK_STREAM), "a vsock socket can be made (seccomp)");
    leak(syscall(SYS_io_uring_setup, 1, NULL) >= 0 || errno == EFAULT, "io_uring (seccomp)");
    leak(unshare(CLONE_NEWUSER) == 0, "a user namespace can be made (seccomp)");
    leak(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0, "no_new_privs is not set");
    leak(has_capabilities(), "there are capabilities");
    leak(has_bounding_set(), "the bounding set is not empty");
    leak(getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != 1 << 20, "a limit is missing");
    leak(getppid() != 1, "the init is not pid 1");
    leak(kill(host, 0) == 0, "a process of the host can be signalled");
    leak(can_trace(1), "the init can be traced");
    leak(getsid(0) != getpid(), "the session is the caller's");
    for (int fd = 3; fd < 256; fd++)
        leak(fcntl(fd, F_GETFD) >= 0, "a descriptor was passed on");
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    for (int round = 0; round < 2; round++) {
        check_files(argv[1], argv[2]);
        check_kernel(atoi(argv[3]));
        for (int i = 4; i < argc; i++)
            leak(is_namespace_of(argv[i]), argv[i]);
    }
    if (!leaks)
        say("held", "");
    return 0;
}

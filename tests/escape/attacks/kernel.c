/* Attacks on the kernel's surface: calls that no build or test needs and that exploits love. They
 * succeed when the call gets through to the kernel; where a call cannot be made harmless, getting
 * as far as the check of its arguments counts. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static int run_bpf(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return judge(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr), "bpf");
}

static int run_perf(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    return judge(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0), "perf_event_open");
}

static int run_userfaultfd(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return judge(syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */), "userfaultfd");
}

static int run_fanotify(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return judge(fanotify_init(FAN_CLASS_NOTIF, O_RDONLY), "fanotify_init");
}

/* Process accounting off, which it is: the call itself needs the privilege. */
static int run_acct(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return judge(syscall(SYS_acct, NULL), "acct");
}

static int run_syslog(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    char text[256];
    return judge(syscall(SYS_syslog, 3, text, (int)sizeof text), "reading the kernel log");
}

/* Sets the clock's time zone to what it is. */
static int run_settime(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct timezone zone = {0};
    return judge(syscall(SYS_settimeofday, NULL, &zone), "settimeofday");
}

/* Gives the host the name that it has. */
static int run_hostname(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return judge(sethostname(name, strlen(name)), "sethostname");
}

static int run_swapoff(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    long result = syscall(SYS_swapoff, "/nonexistent/swap");
    return result < 0 && errno == ENOENT ? won("swapoff looked for the file") : lost("swapoff");
}

/* A command that no kernel knows. */
static int run_reboot(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    long result = syscall(SYS_reboot, 0xfee1dead, 672274793, 0x0badc0de, NULL);
    return result < 0 && errno == EINVAL ? won("reboot looked at the command") : lost("reboot");
}

/* call NUMBER [FIRST SECOND]: what the filter answers to a call that this kernel may not have. */
static int run_call(int argc, char **argv)
{
    long first = argc > 1 ? number(argv[1]) : 0;
    long second = argc > 2 ? number(argv[2]) : 0;
    long result = syscall(number(argv[0]), first, second, 0, 0, 0, 0);
    int error = errno;
    note("errno %d", result < 0 ? error : 0);
    errno = error;
    return judge(result, "system call");
}

const struct attack kernel_attacks[] = {
    {"bpf", 0, run_bpf},
    {"perf", 0, run_perf},
    {"userfaultfd", 0, run_userfaultfd},
    {"fanotify", 0, run_fanotify},
    {"acct", 0, run_acct},
    {"syslog", 0, run_syslog},
    {"settime", 0, run_settime},
    {"hostname", 0, run_hostname},
    {"swapoff", 0, run_swapoff},
    {"reboot", 0, run_reboot},
    {"call", 1, run_call},
    {NULL, 0, NULL},
};

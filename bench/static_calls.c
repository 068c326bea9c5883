/* Times system calls that open and make files and folders, one round at a time.
 *
 *     static-calls KIND ROUNDS FOLDER
 *
 * KIND is "open" (a file that is there, for writing), "folder" or "file" (a new one each time); or
 * "asked-open" or "asked-file", where another process is asked about each by a filter of its own and does
 * the least that a guard can do: lets the kernel go on, or makes the file and hands it in. It
 * begins when a byte or the end of standard input has come; writes when
 * it began and when it ended (CLOCK_MONOTONIC, two uint64_t) and what each round took (uint32_t), all
 * in nanoseconds; and stays until standard input ends. */
#include "guard/kernel.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 15000 }; /* a pipe has room for that */

static struct {
    uint64_t begin;
    uint64_t end;
    uint32_t rounds[ROUNDS_MAX];
} times;

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int round_open(unsigned long number)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "there", O_WRONLY | O_CLOEXEC, 0);

    (void)number;
    return fd < 0 || close(fd);
}

static const char *new_name(unsigned long number)
{
    static char name[8] = "n00000";

    for (int i = 5; i; i--, number /= 10)
        name[i] = (char)('0' + number % 10);
    return name;
}

static int round_folder(unsigned long number)
{
    return mkdir(new_name(number), 0755);
}

static int round_file(unsigned long number)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, new_name(number),
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    return fd < 0 || close(fd);
}

/* As linux/filter.h and linux/seccomp.h have it: openat(2) asks when its flags have O_WRONLY. */
static int load_filter(void)
{
    struct {
        uint16_t code;
        uint8_t jt, jf;
        uint32_t k;
    } filter[] = {
        {0x20, 0, 0, offsetof(struct k_seccomp_data, nr)},
        {0x15, 0, 3, SYS_openat},
        {0x20, 0, 0, offsetof(struct k_seccomp_data, args[2])},
        {0x45, 0, 1, O_WRONLY},
        {0x06, 0, 0, 0x7fc00000},
        {0x06, 0, 0, 0x7fff0000},
    };
    const struct {
        uint16_t len;
        void *filter;
    } program = {sizeof filter / sizeof *filter, filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return (int)syscall(SYS_seccomp, 1,
                        1u << 3 /* NEW_LISTENER */ | 1u << 5 /* WAIT_KILLABLE_RECV */, &program);
}

static void make_and_give(int listener, const struct k_seccomp_notif *notif)
{
    char path[16];
    struct iovec ours = {path, sizeof path - 1};
    struct iovec theirs = {(void *)notif->data.args[1], sizeof path - 1};
    ssize_t len = process_vm_readv((pid_t)notif->pid, &ours, 1, &theirs, 1, 0);
    struct k_seccomp_notif_addfd add = {.id = notif->id};
    struct k_seccomp_notif_resp answer = {.id = notif->id};

    path[len > 0 ? len : 0] = '\0';
    add.srcfd = (uint32_t)openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    answer.val = ioctl(listener, (int)K_SECCOMP_IOCTL_NOTIF_ADDFD, &add);
    close((int)add.srcfd); /* before the caller can execute it */
    ioctl(listener, (int)K_SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* A child answers from now on, as long as this process lives. */
static int be_asked(int makes)
{
    int listener = load_filter();
    struct k_seccomp_notif notif;
    pid_t child = listener < 0 ? -1 : fork();

    if (child) {
        close(listener);
        return child < 0;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    close(STDOUT_FILENO);
    ioctl(listener, (int)K_SECCOMP_IOCTL_NOTIF_SET_FLAGS, K_SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
    for (;;) {
        memset(&notif, 0, sizeof notif);
        if (ioctl(listener, (int)K_SECCOMP_IOCTL_NOTIF_RECV, &notif))
            _exit(1);
        if (makes) {
            make_and_give(listener, &notif);
        } else {
            const struct k_seccomp_notif_resp go_on = {.id = notif.id,
                                                       .flags = K_SECCOMP_USER_NOTIF_FLAG_CONTINUE};

            ioctl(listener, (int)K_SECCOMP_IOCTL_NOTIF_SEND, &go_on);
        }
    }
}

static int run(int (*round)(unsigned long number), unsigned long rounds)
{
    uint64_t last = times.begin = now();

    for (unsigned long i = 0; i < rounds; i++) {
        if (round(i))
            return 1;
        times.end = now();
        times.rounds[i] = (uint32_t)(times.end - last);
        last = times.end;
    }
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    size_t bytes = sizeof times - (ROUNDS_MAX - rounds) * sizeof *times.rounds;
    int (*round)(unsigned long number);
    char byte;

    if (!rounds || rounds > ROUNDS_MAX || chdir(argv[3]))
        return 2;
    round = strstr(argv[1], "open")      ? round_open
            : !strcmp(argv[1], "folder") ? round_folder
                                         : round_file;
    if (strncmp(argv[1], "asked-", 6) == 0 && be_asked(round == round_file))
        return 1;
    if (read(STDIN_FILENO, &byte, 1) < 0 || run(round, rounds))
        return 1;
    if (write(STDOUT_FILENO, &times, bytes) != (ssize_t)bytes)
        return 1;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}

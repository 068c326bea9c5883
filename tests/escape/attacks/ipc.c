/* Attacks on what processes share beside files: System V and POSIX objects, keyrings, signals, and
 * the calls that change another process without touching it. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int run_shm(int argc, char **argv)
{
    (void)argc;
    char *map = shmat((int)number(argv[0]), NULL, 0);
    if (map == (char *)-1)
        return lost("shmat");
    map[0] = '!';
    return won("wrote to the segment");
}

static int run_sem(int argc, char **argv)
{
    (void)argc;
    struct sembuf up = {.sem_op = 1, .sem_flg = IPC_NOWAIT};
    return judge(semop((int)number(argv[0]), &up, 1), "semop");
}

static int run_msg(int argc, char **argv)
{
    (void)argc;
    struct {
        long type;
        char text[8];
    } m = {1, "attack"};
    return judge(msgsnd((int)number(argv[0]), &m, 6, IPC_NOWAIT), "msgsnd");
}

static int run_mq(int argc, char **argv)
{
    (void)argc;
    mqd_t queue = mq_open(argv[0], O_WRONLY | O_NONBLOCK);
    if (queue == (mqd_t)-1)
        return lost("mq_open");
    return judge(mq_send(queue, "attack", 6, 0), "mq_send");
}

/* key-read RING DESCRIPTION: RING is -3 (session) or -4 (user) */
static int run_key_read(int argc, char **argv)
{
    (void)argc;
    char text[256] = "";
    syscall(SYS_keyctl, KEYCTL_LINK, KEY_SPEC_USER_KEYRING, KEY_SPEC_SESSION_KEYRING);
    long key = syscall(SYS_keyctl, KEYCTL_SEARCH, number(argv[0]), "user", argv[1], 0);
    if (key < 0)
        return lost("searching the keyring");
    if (syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof text - 1) < 0)
        return lost("reading the key");
    return won("key: %s", text);
}

static int run_key_add(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(SYS_add_key, "user", argv[1], "planted", 7, number(argv[0])), "add_key");
}

/* request_key(2) searches on the caller's behalf and needs neither keyctl nor add_key. */
static int run_key_request(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(SYS_request_key, "user", argv[0], NULL, 0), "request_key");
}

static int run_kill(int argc, char **argv)
{
    (void)argc;
    return judge(kill((pid_t)number(argv[0]), SIGUSR1), "kill");
}

static int run_tgkill(int argc, char **argv)
{
    (void)argc;
    long pid = number(argv[0]);
    return judge(syscall(SYS_tgkill, pid, pid, SIGUSR1), "tgkill");
}

static int run_sigqueue(int argc, char **argv)
{
    (void)argc;
    return judge(sigqueue((pid_t)number(argv[0]), SIGUSR1, (union sigval){.sival_int = 1}),
                 "sigqueue");
}

static int run_kill_group(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    signal(SIGUSR1, SIG_IGN);
    return judge(kill(0, SIGUSR1), "kill(0)");
}

static int run_pidfd_signal(int argc, char **argv)
{
    (void)argc;
    return judge(syscall(SYS_pidfd_send_signal, number(argv[0]), SIGUSR1, NULL, 0),
                 "pidfd_send_signal");
}

/* A descriptor's owner gets the signal of its choice when there is something to read. */
static int run_owner_signal(int argc, char **argv)
{
    (void)argc;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        return lost("socketpair");
    if (fcntl(pair[0], F_SETOWN, (pid_t)number(argv[0])) < 0 ||
        fcntl(pair[0], F_SETSIG, SIGUSR1) < 0 || fcntl(pair[0], F_SETFL, O_ASYNC) < 0)
        return lost("F_SETOWN");
    return judge(write(pair[1], "x", 1), "write to the owned socket");
}

/* prlimit PID: a CPU limit that is used up already is as good as SIGKILL. */
static int run_prlimit(int argc, char **argv)
{
    (void)argc;
    const struct rlimit files = {.rlim_cur = 77, .rlim_max = 77};
    return judge(prlimit((pid_t)number(argv[0]), RLIMIT_NOFILE, &files, NULL), "prlimit");
}

static int run_priority(int argc, char **argv)
{
    (void)argc;
    return judge(setpriority(PRIO_PROCESS, (id_t)number(argv[0]), 19), "setpriority");
}

static int run_affinity(int argc, char **argv)
{
    (void)argc;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    return judge(sched_setaffinity((pid_t)number(argv[0]), sizeof set, &set), "sched_setaffinity");
}

static int run_scheduler(int argc, char **argv)
{
    (void)argc;
    const struct sched_param none = {0};
    return judge(sched_setscheduler((pid_t)number(argv[0]), SCHED_IDLE, &none),
                 "sched_setscheduler");
}

const struct attack ipc_attacks[] = {
    {"shm", 1, run_shm},
    {"sem", 1, run_sem},
    {"msg", 1, run_msg},
    {"mq", 1, run_mq},
    {"key-read", 2, run_key_read},
    {"key-add", 2, run_key_add},
    {"key-request", 1, run_key_request},
    {"kill", 1, run_kill},
    {"tgkill", 1, run_tgkill},
    {"sigqueue", 1, run_sigqueue},
    {"kill-group", 0, run_kill_group},
    {"pidfd-signal", 1, run_pidfd_signal},
    {"owner-signal", 1, run_owner_signal},
    {"prlimit", 1, run_prlimit},
    {"priority", 1, run_priority},
    {"affinity", 1, run_affinity},
    {"scheduler", 1, run_scheduler},
    {NULL, 0, NULL},
};

/* Attacks on the host's resources, and by processes that do not want to end. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* forks COUNT: so many children that wait */
static int run_forks(int argc, char **argv)
{
    (void)argc;
    long count = number(argv[0]);
    setpgid(0, 0);
    for (long i = 0; i < count; i++) {
        pid_t child = fork();
        if (child < 0)
            return lost("fork %ld", i);
        if (child == 0)
            for (;;)
                pause();
    }
    won("%ld children", count);
    kill(0, SIGKILL);
    return 0;
}

/* memory MEBIBYTES */
static int run_memory(int argc, char **argv)
{
    (void)argc;
    size_t size = (size_t)number(argv[0]) << 20;
    char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return lost("mmap");
    memset(map, 1, size);
    return won("touched %zu bytes", size);
}

/* cpu SECONDS: uses so much CPU time, or is stopped */
static int run_cpu(int argc, char **argv)
{
    (void)argc;
    long seconds = number(argv[0]);
    while (clock() / CLOCKS_PER_SEC < seconds)
        ;
    return won("used %ld s", seconds);
}

/* file PATH MEBIBYTES */
static int run_file(int argc, char **argv)
{
    (void)argc;
    signal(SIGXFSZ, SIG_IGN);
    int fd = open(argv[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return lost("open");
    return judge(ftruncate(fd, (off_t)number(argv[1]) << 20), "ftruncate");
}

/* raise KIND VALUE: a limit beyond what was set */
static int run_raise(int argc, char **argv)
{
    (void)argc;
    struct rlimit limit = {.rlim_cur = (rlim_t)number(argv[1]),
                           .rlim_max = (rlim_t)number(argv[1])};
    return judge(setrlimit((__rlimit_resource_t)number(argv[0]), &limit), "setrlimit");
}

/* No attack lives for ever, whatever becomes of the harness: seconds, and births of breed (which
 * every 5 ms is another process that nobody outside of a sandbox can catch). */
enum { LIFETIME = 100, GENERATIONS = 2000 };

static void ignore_all(void)
{
    alarm(LIFETIME);
    static const int signals[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_IGN);
}

/* daemon MARK: a session of its own, born twice, deaf; the attack ends when it is up. The mark is
 * only there for the harness to find it in the process list. */
static int run_daemon(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    int gate[2];
    char byte = 0;
    if (pipe(gate) < 0)
        return lost("pipe");
    if (fork() != 0) {
        close(gate[1]);
        return read(gate[0], &byte, 1) == 1 ? won("the daemon runs") : lost("no daemon");
    }
    setsid();
    if (fork() != 0)
        _exit(0);
    ignore_all();
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    if (write(gate[1], &byte, 1) < 0)
        _exit(1);
    for (;;)
        pause();
}

/* linger MARK: deaf too, but in front, and says when it is up */
__attribute__((noreturn)) static int run_linger(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    ignore_all();
    note("up");
    for (;;)
        pause();
}

/* breed MARK: is never the same process for long: each forks the next and ends */
__attribute__((noreturn)) static int run_breed(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    ignore_all();
    signal(SIGCHLD, SIG_IGN);
    if (fork() == 0) {
        setsid();
        for (int i = 0; i < GENERATIONS; i++) {
            if (fork() > 0)
                _exit(0);
            usleep(5000);
        }
        _exit(0);
    }
    note("up");
    for (;;)
        pause();
}

/* hold MARK: a child keeps our stdout open after the end */
static int run_hold(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (fork() != 0)
        return won("a child holds the pipe");
    setsid();
    ignore_all();
    for (;;)
        pause();
}

const struct attack resource_attacks[] = {
    {"forks", 1, run_forks},   {"memory", 1, run_memory}, {"cpu", 1, run_cpu},
    {"file", 2, run_file},     {"raise", 2, run_raise},   {"daemon", 1, run_daemon},
    {"linger", 1, run_linger}, {"breed", 1, run_breed},   {"hold", 1, run_hold},
    {NULL, 0, NULL},
};

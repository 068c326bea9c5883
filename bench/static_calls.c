/* Times system calls that open and make files and folders, one round at a time.
 *
 *     static-calls KIND ROUNDS FOLDER
 *
 * KIND is "open" (a file that is there, for writing), "folder" or "file" (a new one each time). It
 * begins when a byte or the end of standard input has come; writes when
 * it began and when it ended (CLOCK_MONOTONIC, two uint64_t) and what each round took (uint32_t), all
 * in nanoseconds; and stays until standard input ends. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
    int fd = open("there", O_WRONLY | O_CLOEXEC);

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
    int fd = open(new_name(number), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    return fd < 0 || close(fd);
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
    round = !strcmp(argv[1], "open")     ? round_open
            : !strcmp(argv[1], "folder") ? round_folder
                                         : round_file;
    if (read(STDIN_FILENO, &byte, 1) < 0 || run(round, rounds))
        return 1;
    if (write(STDOUT_FILENO, &times, bytes) != (ssize_t)bytes)
        return 1;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}

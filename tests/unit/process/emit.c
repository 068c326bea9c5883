/* Prints bytes whose place can be told from their value, and ends.
 *
 *     emit COUNT [hold]     COUNT bytes 'a' + offset % 23
 *
 * With "hold" it leaves a child behind that keeps stdout open until its other end is closed. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hold(void)
{
    struct pollfd fd = {.fd = STDOUT_FILENO};

    signal(SIGHUP, SIG_IGN);
    if (fork() != 0)
        return;
    poll(&fd, 1, -1); /* hang-up and errors are always waited for */
    _exit(0);
}

int main(int argc, char **argv)
{
    size_t count = strtoul(argc > 1 ? argv[1] : "0", NULL, 10);
    char block[23 * 2048];

    if (argc > 2)
        hold();
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)('a' + i % 23);
    for (size_t done = 0; done < count;) {
        size_t from = done % 23;
        size_t len = sizeof block - from < count - done ? sizeof block - from : count - done;
        ssize_t n = write(STDOUT_FILENO, block + from, len);

        if (n <= 0)
            return 1;
        done += (size_t)n;
    }
    return 0;
}

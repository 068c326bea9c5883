/* Prints bytes whose place can be told from their value, and ends.
 *
 *     emit COUNT [STREAM]     COUNT bytes 'a' + offset % 23 on stream 1 or 2
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    size_t count = strtoul(argc > 1 ? argv[1] : "0", NULL, 10);
    int fd = argc > 2 ? (int)strtoul(argv[2], NULL, 10) : 1;
    char block[23 * 2048];

    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)('a' + i % 23);
    for (size_t done = 0; done < count;) {
        size_t from = done % 23;
        size_t len = sizeof block - from < count - done ? sizeof block - from : count - done;
        ssize_t n = write(fd, block + from, len);

        if (n <= 0)
            return 1;
        done += (size_t)n;
    }
    return 0;
}

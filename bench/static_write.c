/* Writes so many bytes, as lines of letters, so many at a time, as fast as they are taken. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 80, BLOCK_MAX = 65536 };

int main(int argc, char **argv)
{
    static char block[BLOCK_MAX];
    unsigned long left = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long size = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

    if (!size || size > BLOCK_MAX)
        return 2;
    memset(block, 'x', sizeof block);
    for (int i = LINE - 1; i < BLOCK_MAX; i += LINE)
        block[i] = '\n';
    while (left) {
        ssize_t n = write(STDOUT_FILENO, block, left < size ? left : size);

        if (n <= 0)
            return 1;
        left -= (unsigned long)n;
    }
    return 0;
}

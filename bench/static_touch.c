/* Writes a byte to a file, and ends: what a step of a layer leaves. */
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;

    return fd >= 0 && write(fd, "x", 1) == 1 ? 0 : 1;
}

/* See remote.h. */
#include "guard/remote.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

enum { PAGE = 4096 };

static ssize_t copy(pid_t thread, uint64_t address, void *ret, size_t len)
{
    struct iovec ours = {.iov_base = ret, .iov_len = len};
    struct iovec theirs = {.iov_base = (void *)(uintptr_t)address, .iov_len = len}; /* NOLINT */

    return process_vm_readv(thread, &ours, 1, &theirs, 1, 0);
}

int remote_bytes(pid_t thread, uint64_t address, void *ret, size_t len)
{
    ssize_t got = copy(thread, address, ret, len);

    if (got < 0)
        return -errno;
    return (size_t)got == len ? 0 : -EFAULT;
}

/* To the end of the page, then on: what follows a text may not be there. */
int remote_text(pid_t thread, uint64_t address, char *ret, size_t size)
{
    size_t len = 0;

    while (len < size) {
        size_t part = PAGE - (size_t)((address + len) % PAGE);
        ssize_t got;
        const char *end;

        if (part > size - len)
            part = size - len;
        got = copy(thread, address + len, ret + len, part);
        if (got <= 0)
            return got < 0 ? -errno : -EFAULT;
        end = memchr(ret + len, '\0', (size_t)got);
        if (end)
            return (int)(end - ret);
        len += (size_t)got;
    }
    return -ENAMETOOLONG;
}

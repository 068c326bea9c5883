/* See proc.h. A pid may be another process a moment later: the answers are for parents of processes
 * that are known to live, and for parents of those. */
#include "base/proc.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STAT_MAX = 4096, NAME_MAX_LEN = 64 };

/* "pid (name) state ppid ...": the name may hold anything. */
pid_t proc_parent(pid_t pid)
{
    AUTO(buf_done) struct buf text = {0}; /* ends with a NUL */
    struct err ignored;
    const char *name_end;
    char path[32];
    int parent;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (fd_read_file(path, STAT_MAX, &text, &ignored))
        return -1;
    name_end = strrchr(text.data, ')');
    return name_end && sscanf(name_end, ") %*c %d", &parent) == 1 ? parent : -1;
}

bool proc_is_named(pid_t pid, const char *name)
{
    AUTO_CLOSE int fd = -1;
    size_t size = strlen(name) + 1; /* NUL-terminated in the file, too */
    char found[NAME_MAX_LEN];
    char path[32];

    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC); /* allow blocking open: procfs */
    return fd >= 0 && size <= sizeof found && read(fd, found, size) == (ssize_t)size &&
           memcmp(found, name, size) == 0;
}

/* Parents are read from /proc, one after the other. What a command leaves behind is adopted by its
 * init, which is a child of ours, so a chain cannot be cut from below; the first process, or one
 * outside of our pid namespace (0), is nobody's child here.
 */
#include "rpc/ancestry.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 4096, STAT_MAX = 4096 };

/* 0 for the first process; -1 when it cannot be told. "pid (name) state ppid ...", proc(5): the
 * name may hold anything. */
static pid_t parent_of(pid_t pid)
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

bool ancestry_is_ours(pid_t pid)
{
    pid_t self = getpid();

    for (int i = 0; i < DEPTH_MAX && pid != self; i++) {
        if (pid == 0)
            return false;
        pid = parent_of(pid);
        if (pid < 0)
            return true;
    }
    return true;
}

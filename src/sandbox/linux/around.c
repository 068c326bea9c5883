/* What the sandbox around this process keeps, seen from within: by its mounts, which nobody in it can change.
 *
 * Its guard is told our map (launcher/restrict.c) and keeps to that, too. What its mounts let be written is all that a call which
 * no Landlock of ours knows (modes, owners, times) could reach. */
#include "sandbox/linux/host.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "guard/guard_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOUNTS_MAX_BYTES = 4 << 20 };

/* Without one the kernel looks for a path. */
bool around_has_guard(void)
{
    return syscall(SYS_mkdirat, AT_FDCWD, NULL, GUARD_NESTED_MODE) < 0 && errno == EPERM;
}

/* \040 and the like, in place. */
static void unescape(char *text)
{
    char *to = text;

    for (; *text; text++) {
        if (text[0] == '\\' && text[1] && text[2] && text[3]) {
            *to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
            text += 3;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
}

/* Calls `look` for each mount that may be written to, until it says false; so does this when the mounts cannot be read. */
static bool each_writable(bool (*look)(const char *path, const void *data), const void *data)
{
    AUTO(buf_done) struct buf text = {0};
    struct err ignored;
    char *rest, *line;

    if (fd_read_file("/proc/self/mountinfo", MOUNTS_MAX_BYTES, &text, &ignored) || !text.data)
        return false;
    rest = text.data;
    while ((line = strsep(&rest, "\n")) &&
           *line) { /* proc_pid_mountinfo(5): the fifth, the sixth */
        char *path = NULL;

        for (int field = 0; line && field < 5; field++)
            path = strsep(&line, " ");
        if (!line)
            return false;
        unescape(path);
        if (strncmp(line, "rw", 2) == 0 && !look(path, data))
            return false;
    }
    return true;
}

static bool is_not_within(const char *path, const void *data)
{
    return !path_is_within(path, data);
}

bool around_holds(const char *path, bool is_denied)
{
    AUTO_CLOSE int fd = -1;
    struct statvfs fs;

    if (statvfs(path, &fs))
        return is_denied && errno == EACCES;
    if (!(fs.f_flag & ST_RDONLY) || !each_writable(is_not_within, path))
        return false;
    if (is_denied)
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY |
                            O_CLOEXEC); /* allow blocking open: O_NONBLOCK */
    return !is_denied || (fd < 0 && errno == EACCES);
}

/* What a sandbox has of its own is nobody else's. */
static bool is_within(const char *path, const void *data)
{
    return path_is_within(path, "/dev") || path_is_within(path, "/proc") ||
           access_map_check(data, path) == ACCESS_WRITE;
}

bool around_writes_no_more(const struct access_map *map)
{
    return each_writable(is_within, map);
}

/* See mounts.h. /proc/self/mountinfo, of which the fifth field is the path and the sixth begins with "rw" or "ro"
 * (proc_pid_mountinfo(5)); behind a "-" are type and source. What would end a field is written as an octal number there. */
#include "sandbox/linux/mounts.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"

#include <string.h>

enum { BYTES_MAX = 4 << 20, PATH_FIELD = 5 };

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

/* "rw,... shared:1 - overlay SOURCE OPTIONS": what follows the path. */
static const char *source_in(char *line)
{
    char *at = strstr(line, " - ");
    char *type = at ? at + 3 : NULL;

    if (type)
        strsep(&type, " ");
    return type ? strsep(&type, " ") : "";
}

bool mounts_each(bool (*look)(void *data, const struct mount_seen *mount), void *data)
{
    AUTO(buf_done) struct buf text = {0};
    struct err ignored;
    char *rest, *line;

    if (fd_read_file("/proc/self/mountinfo", BYTES_MAX, &text, &ignored) || !text.data)
        return false;
    rest = text.data;
    while ((line = strsep(&rest, "\n")) && *line) {
        struct mount_seen mount;
        char *path = NULL;

        for (int field = 0; line && field < PATH_FIELD; field++)
            path = strsep(&line, " ");
        if (!line)
            return false;
        unescape(path);
        mount = (struct mount_seen){.path = path, .is_writable = strncmp(line, "rw", 2) == 0};
        mount.source = source_in(line);
        if (!look(data, &mount))
            return false;
    }
    return true;
}

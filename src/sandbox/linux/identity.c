/* See identity.h. A process may map its own ids by itself; more than those somebody has to map who has a capability for it
 * around the new namespace (user_namespaces(7)). */
#include "sandbox/linux/identity.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAP_MAX_BYTES = 4096 }; /* one write of less than a page */

void identity_init(struct identity *identity)
{
    snprintf(identity->uid_map, sizeof identity->uid_map, "%u %u 1\n", geteuid(), geteuid());
    snprintf(identity->gid_map, sizeof identity->gid_map, "%u %u 1\n", getegid(), getegid());
    identity->is_root = geteuid() == 0;
}

static int write_file(const char *path, const char *text, size_t len)
{
    int fd = sys_fault() ? -1 : open(path, O_WRONLY | O_CLOEXEC); /* allow blocking open: procfs */
    bool ok = fd >= 0 && write(fd, text, len) == (ssize_t)len;
    int error = errno;

    if (fd >= 0)
        close(fd);
    errno = error;
    return ok ? 0 : -1;
}

int identity_map(const struct identity *identity, struct err *err)
{
    if (write_file("/proc/self/setgroups", "deny", 4) && errno != ENOENT)
        return err_sys(err, "giving up setgroups in the user namespace");
    if (write_file("/proc/self/uid_map", identity->uid_map, strlen(identity->uid_map)))
        return err_sys(err, "mapping the user into the user namespace");
    if (write_file("/proc/self/gid_map", identity->gid_map, strlen(identity->gid_map)))
        return err_sys(err, "mapping the group into the user namespace");
    return 0;
}

/* `name` is "uid_map" or "gid_map": "inside outside count" a line. */
static int map_all(pid_t pid, const char *name, struct err *err)
{
    AUTO(buf_done) struct buf ours = {0};
    AUTO(buf_done) struct buf theirs = {0};
    char path[64];

    snprintf(path, sizeof path, "/proc/self/%s", name);
    if (fd_read_file(path, MAP_MAX_BYTES, &ours, err))
        return -1;
    buf_init(&theirs, MAP_MAX_BYTES);
    for (const char *line = ours.data; line && *line; line += strcspn(line, "\n") + 1) {
        uint32_t first, count;

        if (sscanf(line, "%" SCNu32 " %*u %" SCNu32, &first, &count) != 2)
            break;
        buf_appendf(&theirs, "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", first, first, count);
        if (!strchr(line, '\n'))
            break;
    }
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    if (!theirs.len || write_file(path, theirs.data, theirs.len))
        return err_sys(err, "mapping all users and groups into the user namespace");
    return 0;
}

int identity_map_all(pid_t pid, struct err *err)
{
    return map_all(pid, "uid_map", err) || map_all(pid, "gid_map", err) ? -1 : 0;
}

/* Where cgroups may be made: the first half of cgroup.h. Nothing is taken that is not offered.
 *
 * v2: the directory above must already have the controllers switched on for its children, and we
 * never switch any on, since that changes the host for others. As the kernel allows no processes in
 * a directory with such children, it is the directory above our own as a rule (the slice around a
 * scope).
 *
 * v1: each controller has a hierarchy of its own, in which any directory may have both. */
#include "process/cgroup_base.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const controllers[CGROUP_CONTROLLERS] = {"memory", "pids"};

/* `word` is among those of `text`, up to the end of the line, which any of `between` parts. */
static bool has_word(const char *text, const char *word, const char *between)
{
    size_t len = strlen(word);

    while (*text && *text != '\n') {
        size_t here = strcspn(text, between);

        if (here == len && memcmp(text, word, len) == 0)
            return true;
        text += here;
        text += *text && *text != '\n';
    }
    return false;
}

/* "8:pids:/user/shell" (cgroups(7)): the path of the hierarchy that has `controller`, NULL for that of
 * v2, which has an empty list. Caller frees. */
static char *find_own_path(const char *text, const char *controller)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t len = strcspn(line, "\n");
        const char *list = memchr(line, ':', len);
        const char *path = list ? memchr(list + 1, ':', len - (size_t)(list + 1 - line)) : NULL;

        if (!path || path[1] != '/')
            continue;
        if (controller ? has_word(list + 1, controller, ",:\n") && list[1] != ':' &&
                             !str_starts(list + 1, "name=")
                       : str_starts(line, "0::"))
            return alloc_strn(path + 1, len - (size_t)(path + 1 - line));
    }
    return NULL;
}

/* proc(5), mountinfo: id, parent, device, root, mount point, options, tags..., "-", type, source,
 * options of the file system. Paths with escapes in them are passed over. */
static bool read_mount(const char *line, const char *controller, char *ret_root, char *ret_point)
{
    const char *dash = strstr(line, controller ? " - cgroup " : " - cgroup2 ");
    const char *end = line + strcspn(line, "\n");
    const char *options;

    if (!dash || dash > end)
        return false;
    options = memrchr(dash, ' ', (size_t)(end - dash));
    if (controller && !has_word(options + 1, controller, ",\n"))
        return false;
    return sscanf(line, "%*d %*d %*s %4095s %4095s", ret_root, ret_point) == 2 &&
           !strchr(ret_root, '\\') && !strchr(ret_point, '\\');
}

/* Where the directory `own` is to be seen; caller frees. NULL when no mount shows it. */
static char *find_dir(const char *mountinfo, const char *own, const char *controller)
{
    char root[4096];
    char point[4096];

    for (const char *line = mountinfo; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *below = own;

        if (!read_mount(line, controller, root, point) || !path_is_clean(own) ||
            !path_is_within(own, root))
            continue;
        below += str_eq(root, "/") ? 1 : strlen(root);
        below += *below == '/';
        return *below ? path_join(point, below) : alloc_str(point);
    }
    return NULL;
}

/* The file systems are read-only in many containers, which root sees by access(2), too. */
static bool is_writable(const char *dir)
{
    AUTO_FREE char *procs = path_join(dir, "cgroup.procs");

    return access(dir, W_OK | X_OK) == 0 && access(procs, W_OK) == 0;
}

static bool is_usable(const char *dir)
{
    AUTO_FREE char *control = path_join(dir, "cgroup.subtree_control");
    AUTO(buf_done) struct buf text = {0};
    struct err ignored;

    return is_writable(dir) && fd_read_file(control, CGROUP_FILE_MAX, &text, &ignored) == 0 &&
           text.len && has_word(text.data, "memory", " \n") && has_word(text.data, "pids", " \n");
}

/* --- --- */

int cgroup_own_read(const struct cgroup_paths *paths, struct cgroup_own *ret, struct err *err)
{
    const char *self = paths && paths->self ? paths->self : "/proc/self/cgroup";
    const char *mountinfo = paths && paths->mountinfo ? paths->mountinfo : "/proc/self/mountinfo";
    AUTO(buf_done) struct buf cgroups = {0};
    AUTO(buf_done) struct buf mounts = {0};
    AUTO_FREE char *own = NULL;

    *ret = (struct cgroup_own){0};
    if (fd_read_file(self, CGROUP_FILE_MAX, &cgroups, err) ||
        fd_read_file(mountinfo, CGROUP_FILE_MAX, &mounts, err))
        return -1;
    own = cgroups.len ? find_own_path(cgroups.data, NULL) : NULL;
    ret->is_top = own && str_eq(own, "/");
    ret->v2 = own && mounts.len ? find_dir(mounts.data, own, NULL) : NULL;
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        AUTO_FREE char *path = cgroups.len ? find_own_path(cgroups.data, controllers[i]) : NULL;

        ret->v1[i] = path && mounts.len ? find_dir(mounts.data, path, controllers[i]) : NULL;
    }
    return 0;
}

void cgroup_own_done(struct cgroup_own *own)
{
    free(own->v2);
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        free(own->v1[i]);
}

/* The directory of v2 below which new ones may be made; NULL. */
static char *find_v2(const struct cgroup_own *own)
{
    AUTO_FREE char *above = own->v2 ? path_parent(own->v2) : NULL;

    if (own->v2 && is_usable(own->v2))
        return alloc_str(own->v2);
    return above && !own->is_top && is_usable(above) ? TAKE_PTR(above) : NULL;
}

int cgroup_base_find(const struct cgroup_paths *paths, struct cgroup_base *ret, struct err *err)
{
    AUTO(cgroup_own_done) struct cgroup_own own = {0};
    AUTO_FREE char *v2 = NULL;
    bool has_v1 = false;

    *ret = (struct cgroup_base){0};
    if (cgroup_own_read(paths, &own, err))
        return -1;
    v2 = find_v2(&own);
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (v2)
            ret->dir[i] = alloc_str(v2);
        else if (own.v1[i] && is_writable(own.v1[i]))
            ret->dir[i] = TAKE_PTR(own.v1[i]);
        has_v1 |= own.v1[i] || (!v2 && ret->dir[i]);
    }
    ret->is_v1 = !v2;
    if (ret->dir[CGROUP_MEMORY] || ret->dir[CGROUP_PIDS])
        return 0;
    if (!own.v2 && !has_v1)
        return err_set(err, ERR_UNSUPPORTED, "this host shows no cgroup that this process is in");
    return err_set(err, ERR_UNSUPPORTED,
                   "no cgroup with the controllers memory and pids is delegated to this process "
                   "at %s",
                   has_v1 && !own.v2 ? own.v1[own.v1[CGROUP_MEMORY] ? CGROUP_MEMORY : CGROUP_PIDS]
                                     : own.v2);
}

void cgroup_base_done(struct cgroup_base *base)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        free(base->dir[i]);
    *base = (struct cgroup_base){0};
}

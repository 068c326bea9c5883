/* See cgroup.h. Nothing is taken that is not offered: the directory above must already have the
 * controllers switched on for its children, and we never switch any on, since that changes the
 * host for others. As the kernel allows no processes in a directory with such children, it is the
 * directory above our own as a rule (the slice around a scope).
 *
 * Who owns a cgroup shows twice: by the pid in its name, and by a lock on its directory that lives
 * as long as its owner (a pid alone would lie between pid namespaces). Only directories that fail
 * both tests, and that no process is in, are swept away. */
#include "process/cgroup.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((size_t)1 << 20) /* bytes of one of the kernel's text files */
#define CGROUP_PREFIX "cordon-"
#define CLOSE_WAIT_MS 1000 /* for killed processes to leave; they have nothing to wait for */

struct cgroup {
    int base;
    char name[64];
    char *path;
    int fd; /* locked as long as we live */
};

/* The value behind "0::" (cgroups(7)); caller frees. */
static char *find_own_path(const char *text)
{
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");

        if (str_starts(line, "0::/"))
            return alloc_strn(line + 3, len - 3);
        line += len + (line[len] == '\n');
    }
    return NULL;
}

/* proc(5), mountinfo: id, parent, device, root, mount point, options, tags..., "-", type. Paths
 * with escapes in them are passed over. */
static bool read_mount(const char *line, char *ret_root, char *ret_point)
{
    const char *dash = strstr(line, " - cgroup2 ");
    const char *end = strchr(line, '\n');

    if (!dash || (end && dash > end))
        return false;
    return sscanf(line, "%*d %*d %*s %4095s %4095s", ret_root, ret_point) == 2 &&
           !strchr(ret_root, '\\') && !strchr(ret_point, '\\');
}

/* Where the directory `own` is to be seen; caller frees. NULL when no mount shows it. */
static char *find_dir(const char *mountinfo, const char *own)
{
    char root[4096];
    char point[4096];

    for (const char *line = mountinfo; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (!read_mount(line, root, point) || !path_is_clean(own) || !path_is_within(own, root))
            continue;
        own += str_eq(root, "/") ? 1 : strlen(root);
        own += *own == '/';
        return *own ? path_join(point, own) : alloc_str(point);
    }
    return NULL;
}

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || at[-1] == ' ') && strchr(" \n", at[len]))
            return true;
    return false;
}

static bool is_usable(const char *dir)
{
    AUTO_FREE char *control = path_join(dir, "cgroup.subtree_control");
    AUTO_FREE char *procs = path_join(dir, "cgroup.procs");
    AUTO(buf_done) struct buf text = {0};
    struct err ignored;

    if (access(dir, W_OK | X_OK) || access(procs, W_OK))
        return false;
    if (fd_read_file(control, FILE_MAX, &text, &ignored) || !text.len)
        return false;
    return has_word(text.data, "memory") && has_word(text.data, "pids");
}

char *cgroup_find_base(const struct cgroup_paths *paths, struct err *err)
{
    const char *self = paths && paths->self ? paths->self : "/proc/self/cgroup";
    const char *mountinfo = paths && paths->mountinfo ? paths->mountinfo : "/proc/self/mountinfo";
    AUTO(buf_done) struct buf cgroups = {0};
    AUTO(buf_done) struct buf mounts = {0};
    AUTO_FREE char *own = NULL;
    AUTO_FREE char *dir = NULL;
    AUTO_FREE char *above = NULL;

    if (fd_read_file(self, FILE_MAX, &cgroups, err) ||
        fd_read_file(mountinfo, FILE_MAX, &mounts, err))
        return NULL;
    own = find_own_path(cgroups.len ? cgroups.data : "");
    dir = own ? find_dir(mounts.len ? mounts.data : "", own) : NULL;
    if (!dir) {
        err_set(err, ERR_UNSUPPORTED, "this host shows no cgroup v2 that this process is in");
        return NULL;
    }
    if (is_usable(dir))
        return TAKE_PTR(dir);
    above = path_parent(dir);
    if (!str_eq(own, "/") && is_usable(above))
        return TAKE_PTR(above);
    err_set(err, ERR_UNSUPPORTED,
            "no cgroup with the controllers memory and pids is delegated to this process at %s",
            dir);
    return NULL;
}

/* The owner's pid in the name of a directory of ours; 0 for other directories. */
static pid_t owner_of(const char *name)
{
    unsigned pid;
    unsigned number;
    int len = 0;

    if (sscanf(name, CGROUP_PREFIX "%9u-%9u%n", &pid, &number, &len) != 2 || name[len])
        return 0;
    return (pid_t)pid;
}

static void sweep_one(int base, const char *name)
{
    pid_t owner = owner_of(name);
    AUTO_CLOSE int fd = -1;

    if (!owner || kill(owner, 0) == 0 || errno != ESRCH)
        return;
    fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(base, name, AT_REMOVEDIR); /* fails while a process is in it */
}

static void sweep(int base)
{
    int copy = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);

    if (!dir) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        sweep_one(base, entry->d_name);
    closedir(dir);
}

static int cgroup_make(struct cgroup *cgroup, struct err *err)
{
    for (unsigned number = 0;; number++) {
        snprintf(cgroup->name, sizeof cgroup->name, CGROUP_PREFIX "%d-%u", (int)getpid(), number);
        if (mkdirat(cgroup->base, cgroup->name, 0755) == 0)
            break;
        if (errno != EEXIST)
            return err_sys(err, "making a cgroup");
    }
    cgroup->fd = openat(cgroup->base, cgroup->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroup->fd < 0)
        return err_sys(err, "taking hold of a cgroup");
    (void)flock(cgroup->fd, LOCK_SH | LOCK_NB); /* who has locked it keeps it from sweep(), too */
    return 0;
}

struct cgroup *cgroup_open(const char *base, struct err *err)
{
    struct cgroup *cgroup = alloc_zero(1, sizeof *cgroup);

    cgroup->fd = -1;
    cgroup->base = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroup->base < 0) {
        err_sys(err, "opening %s", base);
        cgroup_close(cgroup);
        return NULL;
    }
    sweep(cgroup->base);
    if (cgroup_make(cgroup, err)) {
        err_wrap(err, "below %s", base);
        cgroup_close(cgroup);
        return NULL;
    }
    cgroup->path = path_join(base, cgroup->name);
    return cgroup;
}

int cgroup_fd(const struct cgroup *cgroup)
{
    return cgroup->fd;
}

const char *cgroup_path(const struct cgroup *cgroup)
{
    return cgroup->path;
}

static int cgroup_write(const struct cgroup *cgroup, const char *file, const char *text,
                        struct err *err)
{
    AUTO_CLOSE int fd = openat(cgroup->fd, file, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, "opening %s of a cgroup", file);
    if (fd_write_all(fd, text, strlen(text), err))
        return err_wrap(err, "%s of a cgroup", file);
    return 0;
}

static int cgroup_write_number(const struct cgroup *cgroup, const char *file, uint64_t value,
                               struct err *err)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRIu64, value);
    return cgroup_write(cgroup, file, text, err);
}

int cgroup_set_memory(struct cgroup *cgroup, uint64_t bytes, struct err *err)
{
    struct err ignored; /* a kernel without swap accounting has no such file */

    if (cgroup_write_number(cgroup, "memory.max", bytes, err))
        return -1;
    cgroup_write(cgroup, "memory.swap.max", "0", &ignored);
    return 0;
}

int cgroup_set_pids(struct cgroup *cgroup, uint64_t count, struct err *err)
{
    return cgroup_write_number(cgroup, "pids.max", count, err);
}

static bool cgroup_read(const struct cgroup *cgroup, const char *file, struct buf *text)
{
    AUTO_CLOSE int fd = openat(cgroup->fd, file, O_RDONLY | O_CLOEXEC);
    struct err ignored;

    buf_init(text, FILE_MAX);
    return fd >= 0 && buf_read_fd(text, fd, &ignored) == 0 && text->len;
}

static uint64_t cgroup_read_number(const struct cgroup *cgroup, const char *file)
{
    AUTO(buf_done) struct buf text = {0};

    return cgroup_read(cgroup, file, &text) ? strtoull(text.data, NULL, 10) : 0;
}

/* The sum of what follows `key` as a whole word: "oom_kill 3", "8:0 rbytes=1 wbytes=2". */
static uint64_t cgroup_read_key(const struct cgroup *cgroup, const char *file, const char *key)
{
    AUTO(buf_done) struct buf text = {0};
    uint64_t sum = 0;

    if (!cgroup_read(cgroup, file, &text))
        return 0;
    for (const char *at = strstr(text.data, key); at; at = strstr(at + 1, key))
        if (at == text.data || strchr(" \n", at[-1]))
            sum += strtoull(at + strlen(key), NULL, 10);
    return sum;
}

void cgroup_stat(const struct cgroup *cgroup, struct cgroup_stat *ret)
{
    *ret = (struct cgroup_stat){
        .memory_peak = cgroup_read_number(cgroup, "memory.peak"),
        .oom_kills = cgroup_read_key(cgroup, "memory.events", "oom_kill "),
        .pids_peak = cgroup_read_number(cgroup, "pids.peak"),
        .pids_refused = cgroup_read_key(cgroup, "pids.events", "max "),
        .bytes_written = cgroup_read_key(cgroup, "io.stat", "wbytes="),
    };
}

/* Asked on one descriptor, since POLLPRI means "changed since it was read here". */
static bool is_populated(int events)
{
    char text[256];
    ssize_t len = pread(events, text, sizeof text - 1, 0);

    text[len < 0 ? 0 : len] = '\0';
    return strstr(text, "populated 1") != NULL;
}

static void cgroup_kill_all(const struct cgroup *cgroup)
{
    AUTO_CLOSE int events = openat(cgroup->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    struct pollfd wait = {.fd = events, .events = POLLPRI};
    struct err ignored;

    if (events < 0 || !is_populated(events))
        return;
    cgroup_write(cgroup, "cgroup.kill", "1", &ignored);
    while (is_populated(events))
        if (poll(&wait, 1, CLOSE_WAIT_MS) <= 0)
            return;
}

void cgroup_close(struct cgroup *cgroup)
{
    if (!cgroup)
        return;
    if (cgroup->fd >= 0) {
        cgroup_kill_all(cgroup);
        unlinkat(cgroup->base, cgroup->name, AT_REMOVEDIR);
        close(cgroup->fd);
    }
    if (cgroup->base >= 0)
        close(cgroup->base);
    free(cgroup->path);
    free(cgroup);
}

/* See cgroup.h.
 *
 * Who owns a cgroup shows twice: by the pid in its name, and by a lock on its directory that lives
 * as long as its owner (a pid alone would lie between pid namespaces). Only directories that fail
 * both tests, and that no process is in, are swept away. A scope is systemd's, which removes it when
 * no process is in it any more; so that what the kernel counted can still be read then, our helper
 * stays in it until we are done, or gone. */
#include "process/cgroup.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "process/cgroup_base.h"
#include "process/scope.h"

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
#include <sys/syscall.h>
#include <unistd.h>

#define CGROUP_PREFIX "cordon-"
enum { KILLED_MAX = 100000 }; /* processes of one cgroup, for a loop that has to end */
#define CLOSE_WAIT_MS 1000    /* for killed processes to leave; they have nothing to wait for */

/* A directory of the kernel's. */
struct folder {
    int base; /* the directory that it was made in; -1: it was not made by us */
    char name[64];
    char *path;
    int fd; /* locked as long as we live; -1: there is none */
    bool is_v1;
    bool keeps[CGROUP_CONTROLLERS];
};

struct cgroup {
    struct folder folders[CGROUP_CONTROLLERS]; /* in v2 the first has everything */
    struct scope scope;
};

/* The names of the kernel's files, by version. */
static const struct {
    const char *max, *peak, *events, *event;
} files[2][CGROUP_CONTROLLERS] = {
    {{"memory.max", "memory.peak", "memory.events", "oom_kill "},
     {"pids.max", "pids.peak", "pids.events", "max "}},
    {{"memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control", "oom_kill "},
     {"pids.max", "pids.peak", "pids.events", "max "}},
};

/* --- what others have left behind --- */

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

/* --- one directory --- */

static int folder_make(struct folder *folder, const char *base, struct err *err)
{
    folder->base = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->base < 0)
        return err_sys(err, "opening %s", base);
    sweep(folder->base);
    for (unsigned number = 0;; number++) {
        snprintf(folder->name, sizeof folder->name, CGROUP_PREFIX "%d-%u", (int)getpid(), number);
        if (mkdirat(folder->base, folder->name, 0755) == 0)
            break;
        if (errno != EEXIST) {
            *folder->name = '\0';
            return err_sys(err, "making a cgroup below %s", base);
        }
    }
    folder->path = path_join(base, folder->name);
    folder->fd = openat(folder->base, folder->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0)
        return err_sys(err, "taking hold of a cgroup below %s", base);
    (void)flock(folder->fd, LOCK_SH | LOCK_NB); /* who has locked it keeps it from sweep(), too */
    return 0;
}

static int folder_write(const struct folder *folder, const char *file, uint64_t value,
                        struct err *err)
{
    AUTO_CLOSE int fd = openat(folder->fd, file, O_WRONLY | O_CLOEXEC);
    char text[32];
    int len = snprintf(text, sizeof text, "%" PRIu64, value);

    if (fd < 0)
        return err_sys(err, "opening %s of a cgroup", file);
    if (fd_write_all(fd, text, (size_t)len, err))
        return err_wrap(err, "%s of a cgroup", file);
    return 0;
}

static bool folder_read(const struct folder *folder, const char *file, struct buf *text)
{
    AUTO_CLOSE int fd = openat(folder->fd, file, O_RDONLY | O_CLOEXEC);
    struct err ignored;

    buf_init(text, CGROUP_FILE_MAX);
    return fd >= 0 && buf_read_fd(text, fd, &ignored) == 0 && text->len;
}

/* 0 also for "max". */
static uint64_t folder_read_number(const struct folder *folder, const char *file)
{
    AUTO(buf_done) struct buf text = {0};

    return folder_read(folder, file, &text) ? strtoull(text.data, NULL, 10) : 0;
}

/* What follows `key` as a whole word: "oom_kill 3". */
static uint64_t folder_read_key(const struct folder *folder, const char *file, const char *key)
{
    AUTO(buf_done) struct buf text = {0};

    if (!folder_read(folder, file, &text))
        return 0;
    for (const char *at = strstr(text.data, key); at; at = strstr(at + 1, key))
        if (at == text.data || at[-1] == '\n')
            return strtoull(at + strlen(key), NULL, 10);
    return 0;
}

static int folder_limit(struct folder *folder, enum cgroup_controller controller, uint64_t value,
                        struct err *err)
{
    struct err ignored; /* a kernel without swap accounting has no such file */

    if (folder_write(folder, files[folder->is_v1][controller].max, value, err))
        return -1;
    if (controller == CGROUP_MEMORY && folder->is_v1)
        folder_write(folder, "memory.memsw.limit_in_bytes", value, &ignored);
    else if (controller == CGROUP_MEMORY)
        folder_write(folder, "memory.swap.max", 0, &ignored);
    folder->keeps[controller] = true;
    return 0;
}

/* Asked on one descriptor, since POLLPRI means "changed since it was read here". */
static bool is_populated(int events)
{
    char text[256];
    ssize_t len = pread(events, text, sizeof text - 1, 0);

    text[len < 0 ? 0 : len] = '\0';
    return strstr(text, "populated 1") != NULL;
}

static void folder_kill_v2(const struct folder *folder)
{
    AUTO_CLOSE int events = openat(folder->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    struct pollfd wait = {.fd = events, .events = POLLPRI};
    struct err ignored;

    if (events < 0 || !is_populated(events))
        return;
    folder_write(folder, "cgroup.kill", 1, &ignored);
    while (is_populated(events))
        if (poll(&wait, 1, CLOSE_WAIT_MS) <= 0)
            return;
}

/* One after the other, until none is left. The number may have become that of a process elsewhere
 * before we have it: then that is not in the list any more. */
static void folder_kill_v1(const struct folder *folder)
{
    for (int i = 0; i < KILLED_MAX; i++) {
        pid_t pid = (pid_t)folder_read_number(folder, "cgroup.procs");
        AUTO_CLOSE int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
        struct pollfd wait = {.fd = pidfd, .events = POLLIN};

        if (pid <= 0)
            return;
        if (pidfd < 0 || (pid_t)folder_read_number(folder, "cgroup.procs") != pid)
            continue;
        if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) ||
            poll(&wait, 1, CLOSE_WAIT_MS) <= 0)
            return;
    }
}

static void folder_done(struct folder *folder)
{
    if (folder->fd >= 0 && folder->is_v1)
        folder_kill_v1(folder);
    else if (folder->fd >= 0)
        folder_kill_v2(folder);
    if (*folder->name)
        unlinkat(folder->base, folder->name, AT_REMOVEDIR);
    auto_close(&folder->fd);
    auto_close(&folder->base);
    free(folder->path);
    *folder = (struct folder){.fd = -1, .base = -1};
}

/* --- all of it --- */

static struct cgroup *cgroup_new(void)
{
    struct cgroup *cgroup = alloc_zero(1, sizeof *cgroup);

    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        cgroup->folders[i].fd = cgroup->folders[i].base = -1;
    cgroup->scope.held = -1;
    return cgroup;
}

static bool keeps_nothing(const struct cgroup *cgroup)
{
    return !cgroup_keeps(cgroup, CGROUP_MEMORY) && !cgroup_keeps(cgroup, CGROUP_PIDS);
}

struct cgroup *cgroup_open(const struct cgroup_base *base, const struct cgroup_limits *limits,
                           struct err *err)
{
    struct cgroup *cgroup = cgroup_new();
    bool has_one = false;

    err_set(err, ERR_UNSUPPORTED, "no cgroup for that is offered");
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        struct folder *folder = &cgroup->folders[base->is_v1 ? i : 0];

        folder->is_v1 = base->is_v1;
        if (!limits->of[i] || !base->dir[i] || folder->fd >= 0)
            continue;
        if (folder_make(folder, base->dir[i], err) == 0)
            has_one = true;
        else
            folder_done(folder);
    }
    if (has_one)
        return cgroup;
    cgroup_close(cgroup);
    return NULL;
}

int cgroup_limit(struct cgroup *cgroup, const struct cgroup_limits *limits, struct err *err)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        struct folder *folder = &cgroup->folders[cgroup->folders[0].is_v1 ? i : 0];

        if (limits->of[i] && folder->fd >= 0)
            folder_limit(folder, (enum cgroup_controller)i, limits->of[i], err);
    }
    return keeps_nothing(cgroup) ? -1 : 0;
}

int cgroup_enter(struct cgroup *cgroup, pid_t pid, struct err *err)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        struct folder *folder = &cgroup->folders[i];

        if (folder->fd < 0 || folder_write(folder, "cgroup.procs", (uint64_t)pid, err) == 0)
            continue;
        err_wrap(err, "entering the cgroup");
        folder_done(folder);
    }
    return keeps_nothing(cgroup) ? -1 : 0;
}

/* What systemd says does not count, but what the kernel has: a manager without the controller takes
 * the limit, too. And `own`, where the command is now, is a scope of ours only by its name: what has any other is
 * where we came from, with whatever limit that has and everybody who is in it. */
static void scope_look(struct cgroup *cgroup, const struct cgroup_own *own,
                       const struct cgroup_limits *limits)
{
    char name[64];

    snprintf(name, sizeof name, "/" SCOPE_NAME, (int)cgroup->scope.pid);
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        struct folder *folder = &cgroup->folders[i];
        uint64_t kept = 0;

        for (int version = 0; version < 2 && !kept; version++) {
            const char *path = version ? own->v1[i] : own->v2;

            if (!limits->of[i] || !path || !str_ends(path, name))
                continue;
            auto_close(&folder->fd);
            free(folder->path);
            folder->path = alloc_str(path);
            folder->is_v1 = version;
            folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            kept = folder->fd < 0 ? 0 : folder_read_number(folder, files[version][i].max);
        }
        folder->keeps[i] = kept && kept <= limits->of[i] + (i == CGROUP_PIDS); /* the helper */
    }
}

struct cgroup *cgroup_open_scope(pid_t launcher, const struct cgroup_limits *limits,
                                 struct err *err)
{
    struct cgroup *cgroup = cgroup_new();
    AUTO(cgroup_own_done) struct cgroup_own own = {0};
    char self[64];

    if (scope_start(&cgroup->scope, launcher, limits, err) == 0) {
        snprintf(self, sizeof self, "/proc/%d/cgroup",
                 (int)(launcher ? launcher : cgroup->scope.pid));
        if (cgroup_own_read(&(struct cgroup_paths){.self = self}, &own, err) == 0) {
            err_set(err, ERR_UNSUPPORTED,
                    "systemd made a scope, but it has no limits here (is the controller "
                    "delegated to it?)");
            scope_look(cgroup, &own, limits);
        }
        if (!keeps_nothing(cgroup))
            return cgroup;
    }
    cgroup_close(cgroup);
    return NULL;
}

bool cgroup_keeps(const struct cgroup *cgroup, enum cgroup_controller controller)
{
    return cgroup->folders[0].keeps[controller] || cgroup->folders[1].keeps[controller];
}

static const struct folder *folder_of(const struct cgroup *cgroup,
                                      enum cgroup_controller controller)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        if (cgroup->folders[i].keeps[controller])
            return &cgroup->folders[i];
    return NULL;
}

const char *cgroup_path(const struct cgroup *cgroup, enum cgroup_controller controller)
{
    const struct folder *folder = folder_of(cgroup, controller);

    return folder ? folder->path : "";
}

void cgroup_stat(const struct cgroup *cgroup, struct cgroup_stat *ret)
{
    uint64_t peaks[CGROUP_CONTROLLERS] = {0};
    uint64_t events[CGROUP_CONTROLLERS] = {0};

    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        const struct folder *folder = folder_of(cgroup, (enum cgroup_controller)i);

        if (!folder)
            continue;
        peaks[i] = folder_read_number(folder, files[folder->is_v1][i].peak);
        events[i] =
            folder_read_key(folder, files[folder->is_v1][i].events, files[folder->is_v1][i].event);
    }
    *ret = (struct cgroup_stat){
        .memory_peak = peaks[CGROUP_MEMORY],
        .oom_kills = events[CGROUP_MEMORY],
        .pids_peak = peaks[CGROUP_PIDS],
        .pids_refused = events[CGROUP_PIDS],
    };
}

void cgroup_close(struct cgroup *cgroup)
{
    if (!cgroup)
        return;
    scope_end(&cgroup->scope); /* first: our helper is no process that is left */
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        folder_done(&cgroup->folders[i]);
    free(cgroup);
}

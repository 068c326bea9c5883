/* See bind.h. getsockname(2) has to show the path as the caller wrote it, so the kernel has to walk
 * just that text, in the caller's root and working directory: a child goes there. It walks again
 * what was looked at before, and what lies on the way may have been changed by then; so nothing that
 * counts depends on the way:
 *
 *     the last name     is in our copy of the text: one that is held anywhere is refused everywhere
 *     the directory     is one that the kernel lets the command write to: read-only mounts hold for
 *                       the child as for everybody, and without mounts Landlock keeps it below the
 *                       directory that was judged
 *     what was bound    is asked of the socket itself, not looked up by its path
 *
 * Sockets that were bound here are remembered by an open descriptor, so that the number of the inode
 * cannot become that of another socket. */
#include "guard/bind.h"

#include "base/auto.h"
#include "guard/child.h"
#include "guard/facts.h"
#include "guard/folder.h"
#include "guard/place.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- what was bound --- */

enum { BOUND_MAX = 128 };

static struct bound {
    int fd; /* -1: it is gone, 0: there never was one */
    struct identity identity;
    uint64_t map_hash;
    const struct command *command; /* in whose own file system it lies; NULL: in the host's */
} bound[BOUND_MAX];

static unsigned bound_next; /* the oldest */

static uint64_t map_hash(struct command *command)
{
    const struct guard_map *header = command->map.header;

    if (!command->map_hash)
        command->map_hash = hash_bytes(HASH_START, header, header->bytes);
    return command->map_hash;
}

/* The same socket, by a path of the host's: no file system of the command's is kept by that. */
static int open_on_host(int fd, const struct identity *identity)
{
    char link[32], path[PATH_MAX];
    struct identity found;
    AUTO_CLOSE int host = -1;
    ssize_t len;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof path - 1);
    if (len <= 0)
        return -1;
    path[len] = '\0';
    host = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return host >= 0 && identify(host, &found) && is_same_file(&found, identity) ? TAKE_FD(host)
                                                                                 : -1;
}

static void remember(struct command *command, int copy)
{
    struct bound *slot = &bound[bound_next];
    AUTO_CLOSE int fd = ioctl(copy, K_SIOCUNIXFILE);
    struct identity identity;
    int host;

    if (fd < 0 || !identify(fd, &identity))
        return;
    if (slot->fd > 0)
        close(slot->fd);
    host = open_on_host(fd, &identity);
    *slot = (struct bound){
        .fd = host >= 0 ? host : TAKE_FD(fd),
        .identity = identity,
        .map_hash = map_hash(command),
        .command = host >= 0 ? NULL : command,
    };
    bound_next = (bound_next + 1) % BOUND_MAX;
}

bool bind_is_known(struct command *command, const struct identity *identity)
{
    for (int i = 0; i < BOUND_MAX; i++)
        if (bound[i].fd > 0 && is_same_file(&bound[i].identity, identity) &&
            bound[i].map_hash == map_hash(command))
            return true;
    return false;
}

void bind_forget(const struct command *command)
{
    for (int i = 0; i < BOUND_MAX; i++) {
        if (bound[i].fd <= 0 || bound[i].command != command)
            continue;
        close(bound[i].fd);
        bound[i].fd = -1;
    }
}

/* --- in the child --- */

struct view {
    int root, cwd, user; /* of the caller: its directories and its user namespace */
    int dir;             /* where it may bind; -1: anywhere */
    int place;           /* the directory that was judged */
    mode_t mask;
};

static int open_of_thread(const struct request *request, const char *what, int flags)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)request->thread, what);
    return open(path, flags | O_CLOEXEC);
}

static void view_done(struct view *view)
{
    auto_close(&view->root);
    auto_close(&view->cwd);
    auto_close(&view->user);
}

static bool view_open(const struct request *request, int dir, struct view *ret)
{
    long mask = remote_status(request->thread, "\nUmask:", 8);

    *ret = (struct view){
        .root = open_of_thread(request, "root", O_PATH | O_DIRECTORY),
        .cwd = open_of_thread(request, "cwd", O_PATH | O_DIRECTORY),
        .user = open_of_thread(request, "ns/user", O_RDONLY),
        .dir = request->command->map.header->flags & GUARD_MAP_OWN_MOUNTS ? -1 : dir,
        .place = dir,
        .mask = (mode_t)mask & 0777,
    };
    return ret->root >= 0 && ret->cwd >= 0 && mask >= 0 && request_is_valid(request);
}

static bool is_own_root(int root)
{
    AUTO_CLOSE int own = open("/", O_PATH | O_CLOEXEC);
    struct identity a, b;

    return own >= 0 && identify(own, &a) && identify(root, &b) && is_same_file(&a, &b) &&
           a.mount == b.mount;
}

/* As the owner of the caller's user namespace we may change the root directory in it. */
static bool enter_root(const struct view *view)
{
    if (is_own_root(view->root))
        return true;
    if (fchdir(view->root))
        return false;
    return chroot(".") == 0 || (setns(view->user, CLONE_NEWUSER) == 0 && chroot(".") == 0);
}

static bool drop_capabilities(void)
{
    struct {
        uint32_t version;
        int pid;
    } header = {.version = 0x20080522}; /* _LINUX_CAPABILITY_VERSION_3, linux/capability.h */
    uint32_t none[6] = {0};

    return syscall(SYS_capset, &header, none) == 0;
}

static bool stay_below(int dir)
{
    const struct k_landlock_ruleset attributes = {.handled_files = K_LANDLOCK_MAKE_SOCK};
    const struct k_landlock_path_beneath rule = {.allowed = K_LANDLOCK_MAKE_SOCK, .dir = dir};
    int rules = (int)syscall(K_SYS_LANDLOCK_CREATE_RULESET, &attributes,
                             sizeof attributes.handled_files, 0);

    return rules >= 0 &&
           syscall(K_SYS_LANDLOCK_ADD_RULE, rules, K_LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 &&
           syscall(K_SYS_LANDLOCK_RESTRICT_SELF, rules, 0) == 0;
}

/* The links of /proc that mean the caller would mean the child. So it goes to the directory itself, and the
 * socket's name is the last one of the path. */
static bool means_caller(const char *path)
{
    return strncmp(path, "/proc/self/", 11) == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/thread-self/", 18) == 0;
}

/* The errno, 0 without one. */
static int bind_there(const struct view *view, int copy, const struct address *address)
{
    const char *path = address_path(address);
    struct address to = *address;

    if (!enter_root(view) || fchdir(means_caller(path) ? view->place : view->cwd) ||
        !drop_capabilities() || (view->dir >= 0 && !stay_below(view->dir)))
        return EACCES;
    if (means_caller(path)) {
        snprintf(to.local.sun_path, sizeof to.local.sun_path, "%s", strrchr(path, '/') + 1);
        to.len =
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(to.local.sun_path) + 1);
    }
    umask(view->mask);
    return bind(copy, &to.any, to.len) ? errno : 0;
}

/* --- */

enum { PATIENCE = 100 /* interruptions (socket.c) */ };

static struct answer wait_for(pid_t child)
{
    int status = 0;

    for (int i = 0; waitpid(child, &status, 0) < 0; i++) {
        if (errno != EINTR)
            return answer_error(EIO);
        if (i == PATIENCE)
            kill(child, SIGKILL);
    }
    if (!WIFEXITED(status))
        return answer_error(EIO);
    return WEXITSTATUS(status) ? answer_error(WEXITSTATUS(status)) : answer_value(0);
}

static struct answer bind_in_child(const struct request *request, int copy,
                                   const struct address *address, int dir)
{
    AUTO(view_done) struct view view;
    struct answer answer;
    pid_t child;

    if (!view_open(request, dir, &view))
        return answer_error(EACCES);
    child = child_fork((int[]){copy, view.root, view.cwd, view.user, view.place}, 5);
    if (child == 0)
        _exit(bind_there(&view, copy, address));
    if (child < 0)
        return answer_error(ENOMEM);
    answer = wait_for(child);
    if (answer.kind == ANSWER_VALUE)
        remember(request->command, copy);
    return answer;
}

static struct answer refuse(const struct request *request, const struct place *place, int entry,
                            int error)
{
    facts_tell(request, &(struct fact){.operation = GUARD_OP_BIND,
                                       .place = place,
                                       .entry = entry,
                                       .error = error,
                                       .is_socket = true});
    return answer_error(error);
}

/* The kernel refuses it, or would not: whether it is the sandbox that does. */
static void tell(const struct request *request, const struct place *place, const char *path,
                 int entry)
{
    char dir[PATH_MAX];
    size_t len = (size_t)(strrchr(path, '/') - path);
    struct stat st;

    snprintf(dir, sizeof dir, "%.*s", (int)(len ? len : 1), path);
    if (map_access(&request->command->map, entry) == GUARD_WRITE ||
        fstatat(place->dir, place->name, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
        !place_permits(request->command, dir, W_OK | X_OK))
        return;
    refuse(request, place, entry, EACCES);
}

struct answer bind_path(const struct request *request, int copy, const struct address *address)
{
    const struct map *map = &request->command->map;
    const uint32_t flags = map->header->flags;
    const struct answer leave =
        flags & GUARD_MAP_NO_LANDLOCK ? answer_error(EACCES) : answer_continue();
    AUTO(place_done) struct place place = {.dir = -1, .lock = -1};
    char path[PATH_MAX];
    bool is_writable, is_ours;
    struct answer answer;
    int entry;

    if (!place_find(request, AT_FDCWD, address_path(address), &place) || strchr(place.name, '/'))
        return leave;
    place_path(&place, path);
    if (!*path)
        return leave;
    entry = map_find(map, path);
    /* Where the kernel would let it go on, it is done here only to know what was bound. */
    is_writable = map_access(map, entry) == GUARD_WRITE;
    is_ours = place.is_guarded || (flags & GUARD_MAP_OWN_MOUNTS && flags & GUARD_MAP_SOCKETS);
    if (flags & GUARD_MAP_ALONE) /* no mount holds for a child of ours */
        is_ours = false;
    if (!is_writable || !is_ours) {
        tell(request, &place, path, entry);
        return leave;
    }
    if (request->command->is_broken)
        return answer_error(EACCES);
    if (folder_refuses_name(request->command, place.name))
        return refuse(request, &place, entry, EACCES);
    answer = bind_in_child(request, copy, address, place.dir);
    if (answer.kind == ANSWER_VALUE && request->command->traces_network)
        facts_tell_done(request, &(struct fact){.operation = GUARD_OP_BIND,
                                                .path = path,
                                                .entry = GUARD_NO_ENTRY,
                                                .is_socket = true});
    return answer;
}

/* Mounting overlays where nobody lives.
 *
 *     clone(NEWUSER | NEWNS)  or  setns(users), unshare(NEWNS)
 *       -> for each: open root, lowers, upper and work; fsopen .. fsmount
 *       -> for each: move_mount over the root; what is real is put back over its name
 *       -> open /proc/self/ns/user and mnt for the caller, and end
 *
 * The process that does it is a child in our memory and with our descriptors (clone_child.h): what it opens stays open when
 * it is gone, and the two namespaces with it. Everything is opened inside: the kernel takes no directory of another mount
 * namespace as a part of an overlay. No link is followed, and a root has to be the directory that the caller looked at.
 *
 * The mounts of the host are slaves in a mount namespace of another user namespace: what happens outside is seen, and
 * nothing goes out. They are locked together, too (mount_namespaces(7)): who joins can take the overlay from nothing, nor
 * can a namespace below.
 *
 * `userxattr`, because nobody here may write trusted attributes. `volatile`, because without it each file that is
 * copied up is synced, one by one. Never `redirect_dir` or `metacopy`: then names and contents in an upper would be
 * what attributes say of them, which whoever reads it from outside would have to believe.
 *
 * Directories are given by descriptor, so that any name will do: FSCONFIG_SET_FD (Linux 6.13), else as
 * /proc/self/fd/N ("lowerdir+": 6.7), else such names in one option of mount(2).
 *
 * Root's ids are all mapped, because an overlay copies with the rights of who mounted it, and files of others are to
 * stay theirs. Launches make a user namespace of their own below, and that maps what it always does.
 *
 * What the kernel refuses with EINVAL it explains in words that nobody but its developers understands: what we know to be
 * the cause is looked for afterwards. */
#include "sandbox/linux/overlay.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/linux/clone_child.h"
#include "sandbox/linux/identity.h"
#include "sandbox/linux/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OVERLAY_MAGIC = 0x794c7630, /* linux/magic.h */
    FUSE_MAGIC = 0x65735546,
    NFS_MAGIC = 0x6969,
    OPTIONS_MAX = 4096, /* mount(2): a page */
    KERNEL_WORDS_MAX = 160,
};

/* An overlay that is mounted nowhere yet, and the directory for it; -1 each before. */
struct made_mount {
    int root;
    int mount;
};

/* Given to the child, and what it says. */
struct work {
    const struct overlay *overlays;
    size_t len;
    int users;
    pid_t parent;
    int gate; /* tells the child that its ids are mapped; -1: it does that itself */
    pid_t caller;
    struct identity identity;
    struct overlay_namespace made;
    struct made_mount *mounts; /* of each overlay */
    int *open;                 /* for what is open while one is made: its lowers, upper and work */
    size_t open_len;
    char *options;
    const struct overlay *failed;
    bool is_refused;              /* by the kernel, as a whole, with... */
    char words[KERNEL_WORDS_MAX]; /* what it says to that; "" */
    bool has_no_namespace;
    int status;
    struct err *err;
};

/* --- in the child --- */

static int keep_open(struct work *work, int fd)
{
    return work->open[work->open_len++] = fd;
}

static void close_kept(struct work *work)
{
    while (work->open_len)
        close(work->open[--work->open_len]);
}

/* No link may be on the way. */
static int open_path(struct work *work, const char *path)
{
    const struct sys_open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS,
    };
    const int fd = sys_openat2(AT_FDCWD, path, &how);

    return fd < 0 ? err_sys(work->err, "opening %s (no link may be on the way)", path) : fd;
}

/* The descriptor is closed with the others. */
static int open_dir(struct work *work, const char *path)
{
    const int fd = open_path(work, path);

    return fd < 0 ? -1 : keep_open(work, fd);
}

static int config(int fs, unsigned command, const char *key, const void *value, int number)
{
    return sys_fault() ? -1 : (int)syscall(K_SYS_FSCONFIG, fs, command, key, value, number);
}

/* What it says first is why. */
static void read_words(struct work *work, int fs)
{
    char text[KERNEL_WORDS_MAX];
    ssize_t len = read(fs, text, sizeof text - 1);

    if (len <= 2 || *work->words)
        return;
    text[len] = '\0';
    text[strcspn(text, "\n")] = '\0';
    snprintf(work->words, sizeof work->words, "%s", text + 2); /* "e overlay: ..." */
}

/* -1 with errno */
static int add_dir(int fs, const char *key, int dir)
{
    char path[32];

    if (config(fs, K_FSCONFIG_SET_FD, key, NULL, dir) == 0)
        return 0;
    if (errno != EINVAL && errno != EBADF)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
    return config(fs, K_FSCONFIG_SET_STRING, key, path, 0);
}

static int configure(struct work *work, int fs, int root)
{
    const size_t lowers = work->open_len - 2;

    if (config(fs, K_FSCONFIG_SET_STRING, "source",
               work->failed->name ? work->failed->name : "cordon-layer", 0) ||
        config(fs, K_FSCONFIG_SET_FLAG, "userxattr", NULL, 0) ||
        config(fs, K_FSCONFIG_SET_FLAG, "volatile", NULL, 0))
        return -1;
    for (size_t i = 0; i <= lowers; i++)
        if (add_dir(fs, "lowerdir+", i == lowers ? root : work->open[i]))
            return -1;
    return add_dir(fs, "upperdir", work->open[lowers]) ||
                   add_dir(fs, "workdir", work->open[lowers + 1])
               ? -1
               : 0;
}

/* A copy of the mounts at `fd` that is mounted nowhere. */
static int copy_mounts(int fd)
{
    return sys_fault() ? -1
                       : (int)syscall(K_SYS_OPEN_TREE, fd, "",
                                      K_OPEN_TREE_CLONE | K_OPEN_TREE_CLOEXEC | K_AT_EMPTY_PATH |
                                          K_AT_RECURSIVE);
}

/* Before Linux 6.7, where it is mounted at once: a copy of it, and it is taken away. Nobody else is in this namespace. */
static int mount_by_options(struct work *work, int root)
{
    const size_t lowers = work->open_len - 2;
    size_t len = (size_t)snprintf(work->options, OPTIONS_MAX, "userxattr,volatile,lowerdir=");
    AUTO_CLOSE int mounted = -1;
    char place[32];
    int copy;

    for (size_t i = 0; i <= lowers && len < OPTIONS_MAX; i++)
        len += (size_t)snprintf(work->options + len, OPTIONS_MAX - len, "%s/proc/self/fd/%d",
                                i ? ":" : "", i == lowers ? root : work->open[i]);
    if (len < OPTIONS_MAX)
        len += (size_t)snprintf(work->options + len, OPTIONS_MAX - len,
                                ",upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d",
                                work->open[lowers], work->open[lowers + 1]);
    if (len >= OPTIONS_MAX) {
        errno = E2BIG;
        return -1;
    }
    snprintf(place, sizeof place, "/proc/self/fd/%d", root);
    if (sys_fault() || mount(work->failed->name ? work->failed->name : "cordon-layer", place,
                             "overlay", MS_NODEV | MS_NOSUID, work->options))
        return -1;
    mounted = open_path(work, work->failed->root);
    copy = mounted < 0 ? -1 : copy_mounts(mounted);
    umount2(work->failed->root, MNT_DETACH);
    return copy;
}

/* As far as the directory's own mount goes. */
static uint64_t attributes(int root)
{
    struct statfs fs;
    uint64_t ret = K_MOUNT_ATTR_NODEV | K_MOUNT_ATTR_NOSUID;

    if (fstatfs(root, &fs))
        return ret;
    if (fs.f_flags & MS_NOEXEC)
        ret |= K_MOUNT_ATTR_NOEXEC;
    return fs.f_flags & MS_RDONLY ? ret | K_MOUNT_ATTR_RDONLY : ret;
}

/* The overlay over `root` of what is in work->open, mounted nowhere yet. */
static int mount_new(struct work *work, int root)
{
    const char *path = work->failed->root;
    int fs = sys_fault() ? -1 : (int)syscall(K_SYS_FSOPEN, "overlay", K_FSOPEN_CLOEXEC);
    bool is_old = false;
    int fd = -1;

    work->is_refused = true;
    if (fs < 0)
        return err_sys(work->err, "opening the overlay file system");
    if (configure(work, fs, root))
        is_old = errno == EINVAL;
    else if (config(fs, K_FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        fd = sys_fault()
                 ? -1
                 : (int)syscall(K_SYS_FSMOUNT, fs, K_FSMOUNT_CLOEXEC, (unsigned)attributes(root));
    if (fd < 0) {
        err_sys(work->err, "mounting an overlay over %s", path);
        read_words(work, fs);
    }
    close(fs);
    if (is_old && (fd = mount_by_options(work, root)) < 0)
        return err_sys(work->err, "mounting an overlay over %s", path);
    work->is_refused = fd < 0;
    return fd;
}

/* A link, or what is not there, is not shown. */
static int open_real(int dir, const char *path, struct err *err)
{
    const struct sys_open_how how = {
        .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
        .resolve = SYS_RESOLVE_NO_SYMLINKS | SYS_RESOLVE_NO_MAGICLINKS | SYS_RESOLVE_BENEATH,
    };
    const int fd = sys_openat2(dir, path, &how);

    if (fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
        return err_sys(err, "opening %s", path);
    return fd < 0 ? -2 : fd;
}

/* Shows in the overlay `mounted` what really is at `path` below `root`, whose descriptor is from before. */
static int show_real(int root, int mounted, const char *path, struct err *err)
{
    AUTO_CLOSE int from = open_real(root, path, err);
    AUTO_CLOSE int to = from < 0 ? from : open_real(mounted, path, err);
    AUTO_CLOSE int copy = -1;

    if (from < 0 || to < 0)
        return from == -1 || to == -1 ? -1 : 0;
    copy = copy_mounts(from);
    if (copy < 0)
        return err_sys(err, "taking %s as it really is", path);
    if (sys_fault() || syscall(K_SYS_MOVE_MOUNT, copy, "", to, "",
                               K_MOVE_MOUNT_F_EMPTY_PATH | K_MOVE_MOUNT_T_EMPTY_PATH))
        return err_sys(err, "showing %s as it really is", path);
    return 0;
}

static const char *below(const char *root, const char *path)
{
    return root[1] ? path + strlen(root) + 1 : path + 1;
}

static int make_one(struct work *work, const struct overlay *overlay, struct made_mount *made)
{
    struct stat st;

    work->failed = overlay;
    made->root = open_path(work, overlay->root);
    if (made->root < 0)
        return -1;
    if (fstat(made->root, &st))
        return err_sys(work->err, "looking at %s", overlay->root);
    if (st.st_dev != overlay->dev || st.st_ino != overlay->ino)
        return err_set(work->err, ERR_CONFLICT, "%s is another directory than it was",
                       overlay->root);
    for (const char *const *lower = overlay->lowers; lower && *lower; lower++)
        if (open_dir(work, *lower) < 0)
            return -1;
    if (open_dir(work, overlay->upper) < 0 || open_dir(work, overlay->work) < 0)
        return -1;
    made->mount = mount_new(work, made->root);
    return made->mount < 0 ? -1 : 0;
}

static int show_one(struct work *work, const struct overlay *overlay, const struct made_mount *made)
{
    if (sys_fault() || syscall(K_SYS_MOVE_MOUNT, made->mount, "", made->root, "",
                               K_MOVE_MOUNT_F_EMPTY_PATH | K_MOVE_MOUNT_T_EMPTY_PATH))
        return err_sys(work->err, "mounting at %s", overlay->root);
    for (const char *const *real = overlay->real; real && *real; real++)
        if (show_real(made->root, made->mount, below(overlay->root, *real), work->err))
            return err_wrap(work->err, "in the layer over %s", overlay->root);
    return 0;
}

static int open_made(struct work *work)
{
    work->made.users = sys_fault() ? -1 : open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    work->made.mounts = sys_fault() ? -1 : open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (work->made.users < 0 || work->made.mounts < 0)
        return err_sys(work->err, "opening the new namespaces");
    return 0;
}

/* In the new namespaces, with the ids mapped. None is mounted before all are made: one may lie over where the uppers of
 * another are. */
static int mount_all(struct work *work)
{
    for (size_t i = 0; i < work->len; i++) {
        const int status = make_one(work, &work->overlays[i], &work->mounts[i]);

        close_kept(work);
        if (status)
            return -1;
    }
    work->failed = NULL;
    for (size_t i = 0; i < work->len; i++)
        if (show_one(work, &work->overlays[i], &work->mounts[i]))
            return -1;
    return open_made(work);
}

/* Until somebody has mapped our ids; not, when the other end of it fails. */
static int wait_for_ids(const struct work *work)
{
    uint64_t count = 0;

    /* He may be killed before he has: we would wait for ever, with all that he had open. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != work->caller)
        return -1;
    return read(work->gate, &count, sizeof count) == (ssize_t)sizeof count && count == 1 ? 0 : -1;
}

ON_OWN_STACK static int mounting_child(void *argument)
{
    struct work *work = argument;

    if (work->gate >= 0) {
        work->status = wait_for_ids(work);
    } else if (work->users < 0) {
        work->status = identity_map(&work->identity, work->err);
        work->has_no_namespace = work->status;
    } else if (sys_fault() || setns(work->users, CLONE_NEWUSER) || unshare(CLONE_NEWNS)) {
        work->status = err_sys(work->err, "joining the layer's user namespace");
    }
    if (work->status == 0)
        work->status = mount_all(work);
    _exit(0);
}

/* --- why not --- */

struct search {
    const char *root;
    char *found;
};

static bool look_below(void *data, const struct mount_seen *mount)
{
    struct search *search = data;

    if (!path_is_within(mount->path, search->root) || str_eq(mount->path, search->root) ||
        (search->found && strlen(search->found) <= strlen(mount->path)))
        return true;
    free(search->found);
    search->found = alloc_str(mount->path);
    return true;
}

/* The topmost mount that is below `root`, or NULL; the caller frees. */
static char *mount_below(const char *root)
{
    struct search search = {.root = root};

    mounts_each(look_below, &search);
    return search.found;
}

static bool is_of_type(const char *path, long type)
{
    struct statfs fs;

    return statfs(path, &fs) == 0 && (long)fs.f_type == type;
}

#define ELSEWHERE                                                                                  \
    "put the layers elsewhere, on ext4, xfs, btrfs or tmpfs (XDG_STATE_HOME=FOLDER, or a volume)"

static int explain_refusal(const struct work *work, const char *root, const char *upper,
                           struct err *err)
{
    AUTO_FREE char *mount = mount_below(root);
    const int error = err->sys;

    if (error == ENODEV)
        return err_set(err, ERR_UNSUPPORTED,
                       "this kernel has no overlay file system: a layer needs the module overlay "
                       "(modprobe overlay)");
    if (error == EPERM || error == EACCES)
        return err_set(err, ERR_UNSUPPORTED,
                       "an overlay cannot be mounted in a user namespace here (%s): it needs Linux "
                       "5.11, and no AppArmor or container profile that forbids it",
                       strerror(error));
    if (error == E2BIG)
        return err_set(err, ERR_UNSUPPORTED,
                       "this kernel takes no more steps in a layer: accept or drop some");
    if (mount)
        return err_set(err, ERR_UNSUPPORTED,
                       "%.110s is a mount of its own, over which no layer can lie: leave its root "
                       "out with --layer-direct, or make a folder without mounts the writable one",
                       mount);
    if (is_of_type(upper, OVERLAY_MAGIC))
        return err_set(
            err, ERR_UNSUPPORTED,
            "%.90s is on an overlay itself (a container?), which cannot hold a layer: " ELSEWHERE,
            upper);
    if (is_of_type(upper, FUSE_MAGIC) || is_of_type(upper, NFS_MAGIC))
        return err_set(err, ERR_UNSUPPORTED,
                       "the file system of %.90s (%s) cannot hold a layer: " ELSEWHERE, upper,
                       is_of_type(upper, NFS_MAGIC) ? "NFS" : "FUSE");
    err->code = ERR_UNSUPPORTED;
    if (*work->words)
        err_wrap(err, "%s", work->words);
    return err_wrap(
        err,
        "a layer over %.80s is not to be had (leave it out with --layer-direct, or choose "
        "another folder with -C; \"cordon doctor\" makes one to try)",
        root);
}

static int explain(const struct work *work, struct err *err)
{
    const int error = err->sys;

    if (work->has_no_namespace && (error == EPERM || error == EACCES || error == ENOSPC ||
                                   error == EUSERS || error == EINVAL || error == ENOSYS))
        return err_set(err, ERR_UNSUPPORTED,
                       "a layer needs user namespaces, which cannot be made here (%s): `cordon "
                       "doctor` tells what to do",
                       strerror(error));
    if (work->is_refused && work->failed &&
        (error == EPERM || error == EACCES || error == EINVAL || error == ENODEV ||
         error == E2BIG || error == ENOSYS || error == EOPNOTSUPP || error == ELOOP))
        return explain_refusal(work, work->failed->root, work->failed->upper, err);
    return -1;
}

/* --- outside of it --- */

static void map_ids(void *argument, pid_t child)
{
    struct work *work = argument;
    uint64_t verdict = 1;

    if (identity_map_all(child, work->err)) {
        work->has_no_namespace = true;
        verdict = 2;
    }
    if (write(work->gate, &verdict, sizeof verdict) < 0)
        kill(child, SIGKILL);
}

static size_t most_dirs(const struct overlay *overlays, size_t len)
{
    size_t most = 0;

    for (size_t i = 0; i < len; i++) {
        size_t count = 0;

        while (overlays[i].lowers && overlays[i].lowers[count])
            count++;
        most = count > most ? count : most;
    }
    return most + 2; /* upper and work */
}

/* Runs `child` with all signals blocked; -1 with errno when there is none. */
static int run_child(int (*child)(void *), struct work *work, unsigned flags)
{
    sigset_t all, old;
    int status;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    if (sys_fault()) {
        status = -1;
    } else if (work->gate >= 0) {
        work->status = -1;
        status = clone_child_beside(child, work, flags, map_ids);
    } else {
        const pid_t pid = clone_child(child, work, flags, NULL);

        status = pid < 0 ? -1 : 0;
        while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return status;
}

int overlay_mount(const struct overlay *overlays, size_t len, int users,
                  struct overlay_namespace *ret, struct err *err)
{
    AUTO_FREE int *open = alloc_zero(most_dirs(overlays, len), sizeof *open);
    AUTO_FREE struct made_mount *mounts = alloc_zero(len + 1, sizeof *mounts);
    AUTO_FREE char *options = alloc_zero(OPTIONS_MAX, 1);
    struct work work = {.overlays = overlays,
                        .len = len,
                        .users = users,
                        .parent = getpid(),
                        .gate = -1,
                        .made = {-1, -1},
                        .mounts = mounts,
                        .open = open,
                        .options = options,
                        .err = err};
    AUTO_CLOSE int gate = -1;

    for (size_t i = 0; i < len; i++)
        mounts[i] = (struct made_mount){-1, -1};
    *ret = work.made;
    *err = (struct err){0};
    identity_init(&work.identity);
    if (users < 0 && work.identity.is_root) {
        gate = sys_fault() ? -1 : eventfd(0, EFD_CLOEXEC);
        if (gate < 0)
            return err_sys(err, "making a descriptor to wait for");
        work.gate = gate;
        work.caller = getpid();
    }
    if (run_child(mounting_child, &work,
                  CLONE_FILES | (users < 0 ? CLONE_NEWUSER | CLONE_NEWNS : 0))) {
        work.has_no_namespace = users < 0;
        work.status = err_sys(err, "making the layer's namespaces");
    }
    close_kept(&work);
    for (size_t i = 0; i < len; i++) {
        auto_close(&mounts[i].root);
        auto_close(&mounts[i].mount);
    }
    if (work.status == 0) {
        *ret = work.made;
        return 0;
    }
    overlay_close(&work.made);
    if (!err->code)
        err_set(err, ERR_SYSTEM, "the process that mounts a layer was killed");
    return explain(&work, err);
}

void overlay_close(struct overlay_namespace *space)
{
    auto_close(&space->users);
    auto_close(&space->mounts);
    *space = (struct overlay_namespace){-1, -1};
}

/* What the kernel has made in there gives nobody any right. */
static void remove_probe(int place, const char *name)
{
    static const char *const paths[] = {"root",
                                        "upper",
                                        "work",
                                        "work/work",
                                        "work/work/incompat",
                                        "work/work/incompat/volatile",
                                        "work/work/incompat/volatile/dirty"};
    enum { PATHS = sizeof paths / sizeof *paths };
    AUTO_CLOSE int dir = openat(place, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    size_t made = 3;

    while (dir >= 0 && made < PATHS && fchmodat(dir, paths[made], 0700, 0) == 0)
        made++;
    while (dir >= 0 && made-- > 0)
        unlinkat(dir, paths[made], made == PATHS - 1 ? 0 : AT_REMOVEDIR);
    unlinkat(place, name, AT_REMOVEDIR);
}

int overlay_probe(const char *root, const char *place, struct err *err)
{
    AUTO_FREE char *folder = alloc_strf("%s/probe-XXXXXX", place);
    AUTO_FREE char *upper = NULL, *work = NULL, *empty = NULL;
    AUTO_CLOSE int dir = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct overlay overlay;
    struct overlay_namespace made;
    struct stat st;
    int status;

    if (dir < 0 || !mkdtemp(folder))
        return err_sys(err, "making a folder in %s", place);
    upper = path_join(folder, "upper");
    work = path_join(folder, "work");
    empty = path_join(folder, "root");
    overlay = (struct overlay){.root = root ? root : empty, .upper = upper, .work = work};
    if (mkdir(upper, 0700) || mkdir(work, 0700) || mkdir(empty, 0700)) {
        status = err_sys(err, "making folders in %s", folder);
    } else if (stat(overlay.root, &st)) {
        status = err_sys(err, "looking at %s", overlay.root);
    } else {
        overlay.dev = st.st_dev;
        overlay.ino = st.st_ino;
        status = overlay_mount(&overlay, 1, -1, &made, err);
        if (status == 0)
            overlay_close(&made);
    }
    remove_probe(dir, path_name(folder));
    return status;
}

/* A placeholder is an empty directory or file with the sticky bit and no right to write, with which
 * it is born: there is no moment at which it could be left behind unrecognised. Removal is rmdir(2)
 * or unlink(2) of an empty file with these marks, under an exclusive lock, so at worst nothing of
 * value goes.
 *
 * Who may remove it? The kernel keeps the books: each process that needs one holds a shared lock
 * (flock) on it; when it is done it tries for the exclusive lock, and removes it when it gets that.
 * A dead process holds no lock.
 *
 * Placeholders are found again after every Cordon process was killed: the path of each stands in
 * its process's journal, written before the placeholder is made. A journal is a file in the
 * registry directory that its process keeps locked, a run of NUL-terminated paths. One that is not
 * locked belongs to a dead process, however that ended. The journal "0" stays, empty, for the next
 * process: to make and remove one costs more than all that is done with it. A process that finds
 * "0" taken makes one of its own.
 */
#include "sandbox/linux/placeholder.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK_MODE 01000 /* the sticky bit, and no right to write */
#define MARK_MODE_MASK 07222

static bool has_marks(const struct stat *st)
{
    if ((st->st_mode & MARK_MODE_MASK) != MARK_MODE)
        return false;
    return S_ISDIR(st->st_mode) || (S_ISREG(st->st_mode) && st->st_size == 0);
}

/* The directory of the clean `path`, which may hold no symlink, and in `ret_name` the name in
 * it. */
static int placeholder_file_open_parent(const char *path, const char **ret_name, struct err *err)
{
    AUTO_FREE char *parent = path_parent(path);

    *ret_name = path_name(path);
    return fd_open_path_strict(parent, err);
}

/* Removes the one behind `fd` if no other process holds it and `name` still names it. false when it
 * is left behind and only a later process of this user will be able to remove it. */
static bool placeholder_file_remove(int parent, const char *name, int fd)
{
    /* First of all: while it is not held, its holder may remove it, and make it again. */
    bool is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    struct stat by_fd, by_name, dir;

    if (fstat(fd, &by_fd) || fstatat(parent, name, &by_name, AT_SYMLINK_NOFOLLOW) ||
        by_fd.st_ino != by_name.st_ino || by_fd.st_dev != by_name.st_dev || !has_marks(&by_fd))
        return true;
    if (!is_locked) /* in a sticky directory a holder of another user cannot remove what is ours */
        return fstat(parent, &dir) != 0 || !(dir.st_mode & S_ISVTX);
    return unlinkat(parent, name, S_ISDIR(by_fd.st_mode) ? AT_REMOVEDIR : 0) == 0 ||
           errno == ENOTEMPTY || errno == ENOENT;
}

/* Opens what stands at `name` if it is one; -1 with errno 0 when it is something else. */
static int placeholder_file_open(int parent, const char *name)
{
    struct stat st;
    int fd;

    errno = 0;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) || !has_marks(&st))
        return -1;
    fd = openat(parent, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &st) || !has_marks(&st))) {
        close(fd);
        fd = -1;
        errno = 0;
    }
    return fd;
}

/* A new one, opened; -1 with errno, EEXIST when something is there by now. */
static int placeholder_file_make(int parent, const char *name, bool is_file)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW;
    mode_t mask = umask(0); /* the marks are a mode, and we have to be able to open it */
    int fd = -1;

    if (is_file)
        fd = openat(parent, name, flags | O_CREAT | O_EXCL, 01444);
    else if (mkdirat(parent, name, 01555) == 0)
        fd = openat(parent, name, flags | O_DIRECTORY);
    umask(mask);
    return fd;
}

bool placeholder_file_is(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && has_marks(&st);
}

/* --- the journal --- */

enum { JOURNAL_MAX = 16 << 20 };

static const char lasting[] = "0";

static struct {
    char registry[PATH_MAX];
    char path[PATH_MAX];
    int fd;
    bool is_lasting;
} journal = {.fd = -1};

/* A journal is a run of NUL-terminated paths; a last one without its end was never acted on. */
static void recover_journal(int registry, const char *name)
{
    AUTO(buf_done) struct buf text = {.max = JOURNAL_MAX};
    AUTO_CLOSE int fd = openat(registry, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct err ignored;
    const char *last;
    bool is_done = true; /* false: something of it has to stay for now */
    size_t at = 0;

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || buf_read_fd(&text, fd, &ignored))
        return;
    for (; at < text.len && memchr(text.data + at, '\0', text.len - at);
         at += strlen(text.data + at) + 1) {
        const char *path = text.data + at;
        AUTO_CLOSE int parent =
            path_is_clean(path) ? placeholder_file_open_parent(path, &last, &ignored) : -1;
        AUTO_CLOSE int placeholder = parent < 0 ? -1 : placeholder_file_open(parent, last);

        is_done &= placeholder < 0 || placeholder_file_remove(parent, last, placeholder);
    }
    if (!is_done || (text.len == 0 && str_eq(name, lasting)))
        return;
    if (!str_eq(name, lasting) || ftruncate(fd, 0))
        unlinkat(registry, name, 0);
}

/* Removes what dead processes of this user have left behind. */
static void journal_recover(void)
{
    struct err ignored;
    const char *registry = placeholders_registry(&ignored);
    DIR *dir = registry ? opendir(registry) : NULL;
    const struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            recover_journal(dirfd(dir), entry->d_name);
    closedir(dir);
}

/* Makes the directory `name` below `base`, which has to be absolute, and everything on the way;
 * keeps it as the registry when it is ours alone. */
static bool registry_use(const char *base, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    if (!base || !path_is_clean(base) ||
        snprintf(path, sizeof path, "%s/%s", base, name) >= (int)sizeof path)
        return false;
    for (char *slash = path + strlen(base) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    if (lstat(path, &st) && (errno != ENOENT || mkdir(path, 0700) || lstat(path, &st)))
        return false;
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
        return false;
    memcpy(journal.registry, path, sizeof path);
    return true;
}

const char *placeholders_registry(struct err *err)
{
    char name[32];

    snprintf(name, sizeof name, "cordon-%u", (unsigned)geteuid());
    if (journal.registry[0] || registry_use(getenv("XDG_RUNTIME_DIR"), "cordon") ||
        (geteuid() == 0 && registry_use("/run", "cordon")) ||
        registry_use(getenv("HOME"), ".local/state/cordon") || registry_use("/tmp", name))
        return journal.registry;
    err_set(err, ERR_FORBIDDEN,
            "no directory for the registry of placeholders: set XDG_RUNTIME_DIR or HOME to one of "
            "this user (/tmp/%s is another user's)",
            name);
    return NULL;
}

/* true when the journal is locked and still has its name: a recovery between the making and the
 * locking takes it for a dead one's. */
static bool journal_lock(int mode)
{
    struct stat st;

    return flock(journal.fd, LOCK_EX | mode) == 0 && fstat(journal.fd, &st) == 0 &&
           st.st_nlink == 1 && st.st_size == 0;
}

/* The lasting one, unless another process has it or has to recover from it first. */
static bool journal_open_lasting(const char *registry)
{
    snprintf(journal.path, sizeof journal.path, "%.*s/%s", PATH_MAX - 8, registry, lasting);
    journal.fd = open(journal.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    journal.is_lasting = journal.fd >= 0 && journal_lock(LOCK_NB);
    if (journal.fd >= 0 && !journal.is_lasting) {
        close(journal.fd);
        journal.fd = -1;
    }
    return journal.is_lasting;
}

static int journal_open(struct err *err)
{
    const char *registry = placeholders_registry(err);

    if (registry && access(registry, W_OK)) {
        journal.registry[0] = '\0'; /* it was removed: make it again */
        registry = placeholders_registry(err);
    }
    if (!registry)
        return -1;
    while (!journal_open_lasting(registry)) {
        snprintf(journal.path, sizeof journal.path, "%.*s/XXXXXX", PATH_MAX - 8, registry);
        journal.fd = mkostemp(journal.path, O_CLOEXEC);
        if (journal.fd < 0)
            return err_sys(err, "making a journal in %s", registry);
        if (journal_lock(0))
            break;
        close(journal.fd);
        journal.fd = -1;
    }
    return 0;
}

/* Everything noted is gone, or else (`has_leftover`) the journal stays for a later process. */
static void journal_close(bool has_leftover)
{
    if (journal.fd < 0)
        return;
    if (!has_leftover && (!journal.is_lasting || ftruncate(journal.fd, 0)))
        unlink(journal.path);
    close(journal.fd);
    journal.fd = -1;
}

enum { BUCKETS = 1024, TRIES = 1000 };

/* The holder of the exclusive lock is about to remove the placeholder, and may be slow to run. */
#define REMOVAL_NS CLOCK_NS_PER_S

struct placeholder {
    struct list in_bucket;
    char *path;
    int parent; /* the directory it is in */
    int fd;     /* holds the shared lock */
    struct stat st;
    unsigned users;
};

struct placeholders {
    struct placeholder **items;
    size_t len;
    bool *absent; /* per item asked for */
};

static struct {
    struct list buckets[BUCKETS];
    size_t count;
    bool is_recovered;
    bool has_leftover; /* something that a later process has to remove */
} table;

/* 64-bit FNV-1a (draft-eastlake-fnv) */
static size_t bucket_of(const char *path)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
    return hash % BUCKETS;
}

/* true when `name` still names `file`, so that it was not removed before it was locked */
static bool is_still_there(int parent, const char *name, const struct stat *file)
{
    struct stat st;

    return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == file->st_ino &&
           st.st_dev == file->st_dev;
}

/* Is there a repository around `path`? */
static bool is_in_repository(const char *path)
{
    AUTO_FREE char *dir = path_parent(path);

    for (;;) {
        AUTO_FREE char *git = path_join(dir, ".git");
        char *parent;

        if (access(git, F_OK) == 0)
            return true;
        if (!dir[1])
            return false;
        parent = path_parent(dir);
        free(dir);
        dir = parent;
    }
}

/* Holds what stands at `name`, making it if nothing is there. `placeholder` gets its descriptor and
 * state; the descriptor stays -1 when what is there is no placeholder, or is missing for good. */
static int placeholder_hold(const struct plan_placeholder *item, const char *name,
                            struct placeholder *placeholder, bool *ret_absent, struct err *err)
{
    for (int i = 0; i < TRIES; i++) {
        AUTO_CLOSE int fd = placeholder_file_open(placeholder->parent, name);

        if (fd < 0 && errno == 0)
            return 0;
        if (fd < 0 && errno == ENOENT) {
            /* A file is made and removed in a tenth of the time that a directory takes (ext4,
             * measured). But git lists files that it was not told of, and `git add` takes them;
             * empty directories it does not see. */
            const bool is_file =
                item->kind == PLAN_PLACEHOLDER_FILE ||
                (item->kind == PLAN_PLACEHOLDER_EITHER && !is_in_repository(item->path));

            if (journal.fd < 0 && journal_open(err))
                return -1;
            if (fd_write_all(journal.fd, item->path, strlen(item->path) + 1, err))
                return err_wrap(err, "the journal of placeholders");
            fd = placeholder_file_make(placeholder->parent, name, is_file);
        }
        if (fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) {
            *ret_absent = true; /* then the command cannot make it either */
            return 0;
        }
        if (fd < 0 && errno != EEXIST && errno != ENOENT)
            return err_sys(err, "making a placeholder for %s", item->path);
        if (fd >= 0 && lock_take(fd, LOCK_SH, REMOVAL_NS))
            return err_sys(err, "another process keeps %s locked", item->path);
        if (fd >= 0 && fstat(fd, &placeholder->st) == 0 &&
            is_still_there(placeholder->parent, name, &placeholder->st)) {
            placeholder->fd = TAKE_FD(fd);
            return 0;
        }
    }
    return err_set(err, ERR_SYSTEM, "%s comes and goes", item->path);
}

static bool placeholder_is_valid(const struct placeholder *placeholder)
{
    return is_still_there(placeholder->parent, path_name(placeholder->path), &placeholder->st);
}

/* The one that holds this path. One that was removed from outside while commands need it holds
 * nothing any more: its users keep it until they are done, and a new user looks at what is there
 * now. */
static struct placeholder *table_find(const char *path)
{
    struct placeholder *placeholder;

    list_for_each(placeholder, &table.buckets[bucket_of(path)], in_bucket)
        if (str_eq(placeholder->path, path) && placeholder_is_valid(placeholder))
            break;
    return placeholder;
}

static void placeholder_free(struct placeholder *placeholder)
{
    auto_close(&placeholder->fd);
    auto_close(&placeholder->parent);
    free(placeholder->path);
    free(placeholder);
}

/* Adds one use of `item` to `placeholders`; nothing when what is there is no placeholder. */
static int table_use(const struct plan_placeholder *item, struct placeholders *placeholders,
                     bool *ret_absent, struct err *err)
{
    struct placeholder *placeholder = table_find(item->path);

    if (!placeholder) {
        const char *name;
        bool has_failed;

        placeholder = alloc_zero(1, sizeof *placeholder);
        *placeholder = (struct placeholder){.path = alloc_str(item->path), .fd = -1};
        placeholder->parent = placeholder_file_open_parent(item->path, &name, err);
        has_failed =
            placeholder->parent < 0 || placeholder_hold(item, name, placeholder, ret_absent, err);
        if (has_failed || placeholder->fd < 0) {
            placeholder_free(placeholder);
            return has_failed ? -1 : 0;
        }
        list_add(&table.buckets[bucket_of(item->path)], &placeholder->in_bucket);
        table.count++;
    }
    placeholder->users++;
    placeholders->items[placeholders->len++] = placeholder;
    return 0;
}

static void table_drop(struct placeholder *placeholder)
{
    if (--placeholder->users)
        return;
    if (!placeholder_file_remove(placeholder->parent, path_name(placeholder->path),
                                 placeholder->fd))
        table.has_leftover = true;
    list_remove(&placeholder->in_bucket);
    placeholder_free(placeholder);
    table.count--;
}

int placeholders_acquire(const struct plan_placeholder *items, size_t len,
                         struct placeholders **ret, struct err *err)
{
    struct placeholders *placeholders;

    *ret = NULL;
    if (!table.is_recovered)
        journal_recover();
    table.is_recovered = true;
    if (!len)
        return 0;
    placeholders = alloc_zero(1, sizeof *placeholders);
    placeholders->items = alloc_zero(len, sizeof(struct placeholder *));
    placeholders->absent = alloc_zero(len, sizeof(bool));
    for (size_t i = 0; i < len; i++) {
        if (table_use(&items[i], placeholders, &placeholders->absent[i], err)) {
            placeholders_release(placeholders);
            return -1;
        }
    }
    *ret = placeholders;
    return 0;
}

void placeholders_release(struct placeholders *placeholders)
{
    if (!placeholders)
        return;
    for (size_t i = placeholders->len; i-- > 0;)
        table_drop(placeholders->items[i]);
    if (table.count == 0)
        journal_close(table.has_leftover);
    free(placeholders->items);
    free(placeholders->absent);
    free(placeholders);
}

bool placeholders_are_valid(const struct placeholders *placeholders)
{
    for (size_t i = 0; placeholders && i < placeholders->len; i++)
        if (!placeholder_is_valid(placeholders->items[i]))
            return false;
    return true;
}

const bool *placeholders_absent(const struct placeholders *placeholders)
{
    return placeholders ? placeholders->absent : NULL;
}

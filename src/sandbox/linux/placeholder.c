/* Who may remove a stand-in? The kernel keeps the books: whoever needs one holds a shared lock
 * (flock) on it, whoever is done tries for the exclusive lock, and who gets that removes it. A dead
 * process holds no lock.
 *
 * Found again after every Cordon process was killed: its path stands in the process's journal
 * (standin_journal.c), written before the stand-in is made.
 */
#include "sandbox/linux/placeholder.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/path.h"
#include "sandbox/linux/placeholder_file.h"
#include "sandbox/linux/placeholder_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUCKETS = 1024, TRIES = 1000 };

/* Whoever holds the exclusive lock is about to remove the stand-in, and may be slow to get to run.
 */
#define REMOVAL_NS CLOCK_NS_PER_S

struct standin {
    struct standin *next; /* in its bucket */
    char *path;
    int parent; /* the folder it is in */
    int fd;     /* holds the shared lock */
    struct stat st;
    unsigned users;
};

struct standins {
    struct standin **items;
    size_t len;
    bool *absent; /* per item asked for */
};

static struct {
    struct standin *buckets[BUCKETS];
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

/* true when `name` still names `file`, so that nobody removed it before it was locked */
static bool is_still_there(int parent, const char *name, const struct stat *file)
{
    struct stat st;

    return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == file->st_ino &&
           st.st_dev == file->st_dev;
}

static bool is_refusal(int error)
{
    return error == EACCES || error == EPERM || error == EROFS;
}

/* Is there a repository around `path`? */
static bool is_in_repository(const char *path)
{
    AUTO_FREE char *folder = path_parent(path);

    for (;;) {
        AUTO_FREE char *git = path_join(folder, ".git");
        char *parent;

        if (access(git, F_OK) == 0)
            return true;
        if (!folder[1])
            return false;
        parent = path_parent(folder);
        free(folder);
        folder = parent;
    }
}

/* A file is made and removed in a tenth of the time that a folder takes (ext4, measured). But git
 * lists files that nobody told it of, and `git add` takes them; empty folders it does not see. */
static bool standin_is_file(const struct plan_standin *item)
{
    if (item->kind == PLAN_STANDIN_EITHER)
        return !is_in_repository(item->path);
    return item->kind == PLAN_STANDIN_FILE;
}

/* Holds what stands at `name`, making it if nothing is there. `standin` gets its descriptor and
 * state; the descriptor stays -1 when what is there is no stand-in, or is missing for good. */
static int standin_hold(const struct plan_standin *item, const char *name, struct standin *standin,
                        bool *ret_absent, struct err *err)
{
    for (int i = 0; i < TRIES; i++) {
        AUTO_CLOSE int fd = standin_file_open(standin->parent, name);

        if (fd < 0 && errno == 0)
            return 0;
        if (fd < 0 && errno == ENOENT) {
            if (journal_add(item->path, err))
                return -1;
            fd = standin_file_make(standin->parent, name, standin_is_file(item));
        }
        if (fd < 0 && is_refusal(errno)) {
            *ret_absent = true; /* then the command cannot make it either */
            return 0;
        }
        if (fd < 0 && errno != EEXIST && errno != ENOENT)
            return err_sys(err, "making a stand-in for %s", item->path);
        if (fd >= 0 && lock_take(fd, LOCK_SH, REMOVAL_NS))
            return err_sys(err, "somebody keeps %s locked", item->path);
        if (fd >= 0 && fstat(fd, &standin->st) == 0 &&
            is_still_there(standin->parent, name, &standin->st)) {
            standin->fd = TAKE_FD(fd);
            return 0;
        }
    }
    return err_set(err, ERR_SYSTEM, "%s comes and goes", item->path);
}

static struct standin *table_find(const char *path)
{
    struct standin *standin = table.buckets[bucket_of(path)];

    while (standin && strcmp(standin->path, path) != 0)
        standin = standin->next;
    return standin;
}

static bool standin_is_valid(const struct standin *standin)
{
    return is_still_there(standin->parent, path_name(standin->path), &standin->st);
}

static void standin_free(struct standin *standin)
{
    if (standin->fd >= 0)
        close(standin->fd);
    if (standin->parent >= 0)
        close(standin->parent);
    free(standin->path);
    free(standin);
}

/* A new entry of the table; NULL without a failure when there is nothing to hold. */
static int table_add(const struct plan_standin *item, struct standin **ret, bool *ret_absent,
                     struct err *err)
{
    struct standin **bucket = &table.buckets[bucket_of(item->path)];
    struct standin *standin = alloc_zero(1, sizeof *standin);
    const char *name;

    *standin = (struct standin){.path = alloc_str(item->path), .fd = -1};
    standin->parent = standin_file_open_parent(item->path, &name, err);
    if (standin->parent < 0 || standin_hold(item, name, standin, ret_absent, err)) {
        standin_free(standin);
        return -1;
    }
    if (standin->fd < 0) {
        standin_free(standin);
        *ret = NULL;
        return 0;
    }
    standin->next = *bucket;
    *bucket = standin;
    table.count++;
    *ret = standin;
    return 0;
}

/* Adds one use of `item` to `standins`; nothing when what is there is no stand-in. */
static int table_use(const struct plan_standin *item, struct standins *standins, bool *ret_absent,
                     struct err *err)
{
    struct standin *standin = table_find(item->path);

    if (standin && !standin_is_valid(standin))
        return err_set(err, ERR_SYSTEM, "%s was removed while a command runs that it protects",
                       item->path);
    if (!standin && table_add(item, &standin, ret_absent, err))
        return -1;
    if (!standin)
        return 0;
    standin->users++;
    standins->items[standins->len++] = standin;
    return 0;
}

static void table_drop(struct standin *standin)
{
    struct standin **at = &table.buckets[bucket_of(standin->path)];

    if (--standin->users)
        return;
    if (!standin_file_remove(standin->parent, path_name(standin->path), standin->fd))
        table.has_leftover = true;
    while (*at != standin)
        at = &(*at)->next;
    *at = standin->next;
    standin_free(standin);
    table.count--;
}

int standins_acquire(const struct plan_standin *items, size_t len, struct standins **ret,
                     struct err *err)
{
    struct standins *standins;

    *ret = NULL;
    if (!table.is_recovered)
        journal_recover();
    table.is_recovered = true;
    if (!len)
        return 0;
    standins = alloc_zero(1, sizeof *standins);
    standins->items = alloc_zero(len, sizeof(struct standin *));
    standins->absent = alloc_zero(len, sizeof(bool));
    for (size_t i = 0; i < len; i++) {
        if (table_use(&items[i], standins, &standins->absent[i], err)) {
            standins_release(standins);
            return -1;
        }
    }
    *ret = standins;
    return 0;
}

void standins_release(struct standins *standins)
{
    if (!standins)
        return;
    for (size_t i = standins->len; i-- > 0;)
        table_drop(standins->items[i]);
    if (table.count == 0)
        journal_close(table.has_leftover);
    free(standins->items);
    free(standins->absent);
    free(standins);
}

bool standins_are_valid(const struct standins *standins)
{
    for (size_t i = 0; standins && i < standins->len; i++)
        if (!standin_is_valid(standins->items[i]))
            return false;
    return true;
}

const bool *standins_absent(const struct standins *standins)
{
    return standins ? standins->absent : NULL;
}

/* fs/getMetadata, fs/canonicalize, fs/readDirectory, fs/walk: what is there.
 *
 * A walk goes through the files and directories below a directory, breadth first, sorted within each
 * directory, bounded. The one idea: a queue of directories to enter. A directory is entered once,
 * however many links lead to it (told by device and inode at the moment of entering), so that cycles
 * end and a hidden directory that is not to be entered does not hide a visible link to it. What
 * cannot be read becomes an entry of `errors`, and the walk goes on. Nothing is remembered but the
 * queue and what was entered, both bounded by the number of directories. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/strv.h"
#include "base/sys.h"
#include "base/utf8.h"
#include "files/call.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- one path, one directory --- */

static int64_t milliseconds(const struct statx_timestamp *time)
{
    return time->tv_sec * 1000 + time->tv_nsec / 1000000;
}

int files_get_metadata(const struct files_request *request, struct reply *reply, struct err *err)
{
    const unsigned wanted = STATX_TYPE | STATX_MODE | STATX_SIZE | STATX_MTIME | STATX_BTIME;
    AUTO(target_done) struct target target = {0};
    AUTO_CLOSE int fd = -1;
    bool has_details = false;
    struct stat link;
    struct statx st;
    bool is_link;

    if (target_read(&request->params, "path", &target, err) ||
        target_flag(&request->params, "details", &has_details, err))
        return -1;
    fd = target_open(&target, O_PATH, 0, err);
    if (fd < 0 && target.no_follow && err->sys == ELOOP)
        return err_set(err, ERR_INVALID, "path contains a symbolic link");
    if (fd < 0)
        return -1;
    is_link = !target.no_follow && lstat(target.path, &link) == 0 && S_ISLNK(link.st_mode);
    if (sys_fault() || statx(fd, "", AT_EMPTY_PATH, wanted, &st))
        return err_sys(err, "looking at %s", target.path);
    if (reply_fmt(reply, err,
                  "{\"isDirectory\":%s,\"isFile\":%s,\"isSymlink\":%s,\"size\":%" PRIu64
                  ",\"createdAtMs\":%" PRId64 ",\"modifiedAtMs\":%" PRId64,
                  reply_bool(S_ISDIR(st.stx_mode)), reply_bool(S_ISREG(st.stx_mode)),
                  reply_bool(is_link), (uint64_t)st.stx_size,
                  st.stx_mask & STATX_BTIME ? milliseconds(&st.stx_btime) : 0,
                  milliseconds(&st.stx_mtime)) ||
        (has_details && reply_fmt(reply, err, ",\"mode\":%u", st.stx_mode & 0777u)))
        return -1;
    return reply_str(reply, "}", err);
}

int files_canonicalize(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    AUTO_FREE char *real = NULL;

    if (target_read(&request->params, "path", &target, err))
        return -1;
    real = sys_fault() ? NULL : realpath(target.path, NULL);
    if (!real)
        return err_sys(err, "resolving %s", target.path);
    if (reply_str(reply, "{\"path\":", err) || reply_uri(reply, real, err))
        return -1;
    return reply_str(reply, "}", err);
}

/* Whether it is to be listed: with details, everything that is still there; else with what it is
 * behind links, but for a link that leads nowhere. What may not be looked at is listed by what the
 * directory says of it. */
static bool entry_counts(const struct dir *dir, const struct dirent *entry, bool has_details,
                         mode_t *ret_mode)
{
    int flags = has_details ? AT_SYMLINK_NOFOLLOW : 0;
    struct stat st;

    if (fstatat(dirfd(dir->stream), entry->d_name, &st, flags) == 0) {
        *ret_mode = st.st_mode;
        return true;
    }
    *ret_mode = DTTOIF(entry->d_type);
    return errno != ENOENT && (has_details || (errno != ELOOP && errno != ENOTDIR));
}

/* A string, or null for what is no text: a target that is no UTF-8, or a link that has just gone.
 */
static int reply_link(struct reply *reply, int dir, const char *name, struct err *err)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir, name, target, sizeof target - 1);

    if (len < 0 || !utf8_is_valid(target, (size_t)len))
        return reply_str(reply, ",\"linkTarget\":null", err);
    target[len] = '\0';
    return reply_str(reply, ",\"linkTarget\":", err) || reply_quoted(reply, target, err) ? -1 : 0;
}

/* What it takes to make another one like it. */
static int reply_details(struct reply *reply, int dir, const char *name, const char *path,
                         struct err *err)
{
    AUTO_FREE char *whole = path_join(path, name);
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return err_sys(err, "looking at %s", whole);
    if (reply_fmt(reply, err,
                  ",\"isDirectory\":%s,\"isFile\":%s,\"isSymlink\":%s,\"size\":%" PRId64
                  ",\"mode\":%u,\"uri\":",
                  reply_bool(S_ISDIR(st.st_mode)), reply_bool(S_ISREG(st.st_mode)),
                  reply_bool(S_ISLNK(st.st_mode)), (int64_t)st.st_size,
                  (unsigned)st.st_mode & 0777u) ||
        reply_uri(reply, whole, err))
        return -1;
    return S_ISLNK(st.st_mode) ? reply_link(reply, dir, name, err) : 0;
}

int files_read_directory(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    AUTO(dir_close) struct dir dir = {0};
    const struct dirent *entry = NULL;
    const char *comma = "";
    bool has_details = false;
    int status;

    if (target_read(&request->params, "path", &target, err) ||
        target_flag(&request->params, "details", &has_details, err) ||
        dir_open(&dir, &target, err) || reply_str(reply, "{\"entries\":[", err))
        return -1;
    while ((status = dir_next(&dir, &entry, err)) > 0) {
        const char *name = entry->d_name;
        mode_t mode = 0;

        if (!entry_counts(&dir, entry, has_details, &mode))
            continue;
        if (reply_fmt(reply, err, "%s{\"fileName\":", comma) || reply_quoted(reply, name, err) ||
            (has_details ? reply_details(reply, dirfd(dir.stream), name, target.path, err)
                         : reply_fmt(reply, err, ",\"isDirectory\":%s,\"isFile\":%s",
                                     reply_bool(S_ISDIR(mode)), reply_bool(S_ISREG(mode)))) ||
            reply_str(reply, "}", err))
            return -1;
        comma = ",";
    }
    return status < 0 ? -1 : reply_str(reply, "]}", err);
}

/* --- a walk --- */

enum { DEPTH_MAX = 64, DIRS_MAX = 10000, ENTRIES_MAX = 50000, NAMES_MAX = 1000000 };

struct step {
    char *path;
    unsigned depth; /* the root's is 0 */
};

struct seen {
    dev_t dev;
    ino_t ino;
};

struct walk {
    struct reply *reply;
    size_t depth_max;
    size_t dirs_max;
    size_t entries_max;
    bool follows;
    bool prunes;
    struct step *queue; /* from `next`; what is before was done */
    size_t next;
    size_t len;
    size_t cap;
    struct seen *seen;
    size_t seen_len;
    size_t seen_cap;
    size_t entries;
    bool is_truncated;
    struct buf errors; /* JSON of what could not be read */
    size_t errors_len;
};

static void walk_done(struct walk *walk)
{
    for (size_t i = 0; i < walk->len; i++)
        free(walk->queue[i].path);
    free(walk->queue);
    free(walk->seen);
    buf_done(&walk->errors);
}

static int read_limit(const struct json_at *options, const char *key, size_t *ret, struct err *err)
{
    struct json_at at = json_at_field(options, key);
    int64_t value = 0;

    if (json_at_integer(&at, 0, INT64_MAX, &value, err))
        return -1;
    *ret = (size_t)value;
    return 0;
}

static int read_options(const struct json_at *params, struct walk *walk, struct err *err)
{
    struct json_at options = json_at_field(params, "options");

    if (json_at_object(&options, err) || read_limit(&options, "maxDepth", &walk->depth_max, err) ||
        read_limit(&options, "maxDirectories", &walk->dirs_max, err) ||
        read_limit(&options, "maxEntries", &walk->entries_max, err) ||
        target_flag(&options, "followDirectorySymlinks", &walk->follows, err) ||
        target_flag(&options, "pruneHiddenDirectories", &walk->prunes, err))
        return -1;
    if (walk->depth_max > DEPTH_MAX || walk->dirs_max > DIRS_MAX || walk->entries_max > ENTRIES_MAX)
        return err_set(err, ERR_INVALID,
                       "filesystem walk limits exceed maximums: depth=%d, directories=%d, "
                       "entries=%d",
                       DEPTH_MAX, DIRS_MAX, ENTRIES_MAX);
    if (walk->dirs_max == 0 || walk->entries_max == 0)
        return err_set(err, ERR_INVALID,
                       "filesystem walk limits for directories and entries must be greater than "
                       "zero");
    return 0;
}

/* --- what is found --- */

static void walk_push(struct walk *walk, char *path, unsigned depth)
{
    walk->queue = alloc_grow(walk->queue, walk->len, &walk->cap, sizeof *walk->queue);
    walk->queue[walk->len++] = (struct step){.path = path, .depth = depth};
}

static int walk_report(struct walk *walk, const char *path, const struct err *failure,
                       struct err *err)
{
    AUTO(reply_done) struct reply entry;
    char message[ERROR_TEXT_SIZE];

    error_text(failure, message);
    reply_init(&entry, NULL, NULL);
    if (reply_str(&entry, walk->errors_len ? ",{\"path\":" : "{\"path\":", err) ||
        reply_uri(&entry, path, err) || reply_str(&entry, ",\"message\":", err) ||
        reply_quoted(&entry, message, err) || reply_str(&entry, "}", err))
        return -1;
    if (!buf_append(&walk->errors, entry.text.data, entry.text.len))
        return err_set(err, ERR_LIMIT, "too many directories cannot be read");
    walk->errors_len++;
    return 0;
}

/* What the name is to a walk: S_IFDIR, S_IFREG, or 0 for nothing. Links to files are nothing. */
static mode_t walk_kind(const struct walk *walk, const struct dir *dir, const char *name)
{
    struct stat st;

    if (fstatat(dirfd(dir->stream), name, &st, AT_SYMLINK_NOFOLLOW))
        return 0;
    if (S_ISLNK(st.st_mode)) {
        if (!walk->follows || fstatat(dirfd(dir->stream), name, &st, 0))
            return 0;
        return S_ISDIR(st.st_mode) ? S_IFDIR : 0;
    }
    return S_ISDIR(st.st_mode) ? S_IFDIR : S_ISREG(st.st_mode) ? S_IFREG : 0;
}

static const struct err bad_name = {.code = ERR_INVALID, .msg = "the name is not valid UTF-8"};

static int walk_name(struct walk *walk, const struct step *step, const struct dir *dir,
                     const char *name, struct err *err)
{
    mode_t kind = walk_kind(walk, dir, name);
    AUTO_FREE char *path = path_join(step->path, name);

    if (!utf8_is_valid(name, strlen(name)))
        return walk_report(walk, path, &bad_name, err);
    if (!kind)
        return 0;
    if (walk->entries == walk->entries_max) {
        walk->is_truncated = true;
        return 0;
    }
    if (reply_str(walk->reply, walk->entries ? ",{\"path\":" : "{\"path\":", err) ||
        reply_uri(walk->reply, path, err) ||
        reply_fmt(walk->reply, err, ",\"kind\":\"%s\"}", kind == S_IFDIR ? "directory" : "file"))
        return -1;
    walk->entries++;
    if (kind == S_IFDIR && step->depth < walk->depth_max && !(walk->prunes && name[0] == '.'))
        walk_push(walk, TAKE_PTR(path), step->depth + 1);
    return 0;
}

/* --- one directory --- */

/* Remembers the directory; false when it was entered before. */
static bool walk_is_new(struct walk *walk, const struct stat *st)
{
    for (size_t i = 0; walk->follows && i < walk->seen_len; i++)
        if (walk->seen[i].dev == st->st_dev && walk->seen[i].ino == st->st_ino)
            return false;
    walk->seen = alloc_grow(walk->seen, walk->seen_len, &walk->seen_cap, sizeof *walk->seen);
    walk->seen[walk->seen_len++] = (struct seen){.dev = st->st_dev, .ino = st->st_ino};
    return true;
}

static int read_names(struct dir *dir, struct strv *ret, struct err *err)
{
    const struct dirent *entry = NULL;
    int status;

    while ((status = dir_next(dir, &entry, err)) > 0) {
        if (ret->len == NAMES_MAX)
            return err_set(err, ERR_LIMIT, "more than %d names in one directory", NAMES_MAX);
        strv_push(ret, entry->d_name);
    }
    strv_sort(ret);
    return status;
}

/* A link in the last place is followed when the walk does, and only then: what was a directory a
 * moment ago may be a link now. */
static int walk_open(const struct walk *walk, const struct step *step, struct dir *ret,
                     struct stat *ret_st, struct err *err)
{
    const struct target target = {.path = step->path};
    int flags = O_RDONLY | O_DIRECTORY;
    int fd;

    if (step->depth > 0 && !walk->follows)
        flags |= O_NOFOLLOW;
    fd = target_open(&target, flags, 0, err);
    if (fd < 0)
        return -1;
    if (fstat(fd, ret_st)) {
        close(fd);
        return err_sys(err, "looking at %s", step->path);
    }
    return dir_open_fd(ret, fd, err);
}

static int walk_enter(struct walk *walk, const struct step *step, struct err *err)
{
    AUTO(dir_close) struct dir dir = {0};
    AUTO(strv_done) struct strv names = {0};
    struct err failure;
    struct stat st;

    if (walk_open(walk, step, &dir, &st, &failure)) {
        /* it is there, whether or not it can be opened */
        if (step->depth > 0 || (stat(step->path, &st) == 0 && S_ISDIR(st.st_mode)))
            return walk_report(walk, step->path, &failure, err);
        *err = failure;
        return -1;
    }
    if (!walk_is_new(walk, &st))
        return 0;
    if (read_names(&dir, &names, &failure))
        return walk_report(walk, step->path, &failure, err);
    for (size_t i = 0; i < names.len && !walk->is_truncated; i++)
        if (walk_name(walk, step, &dir, names.items[i], err))
            return -1;
    return 0;
}

int files_walk(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(walk_done) struct walk walk = {.reply = reply};
    AUTO(target_done) struct target root = {0};
    struct stat st;

    buf_init(&walk.errors, REPLY_TEXT_MAX / 4);
    if (read_options(&request->params, &walk, err) ||
        target_read(&request->params, "path", &root, err) || target_stat(&root, &st, err) ||
        reply_str(reply, "{\"entries\":[", err))
        return -1;
    if (S_ISDIR(st.st_mode))
        walk_push(&walk, alloc_str(root.path), 0);
    while (walk.next < walk.len && !walk.is_truncated) {
        struct step step = walk.queue[walk.next++]; /* the queue moves as it grows */

        if (walk.seen_len == walk.dirs_max)
            walk.is_truncated = true;
        else if (walk_enter(&walk, &step, err))
            return -1;
    }
    if (reply_str(reply, "],\"errors\":[", err) ||
        reply_raw(reply, walk.errors.data ? walk.errors.data : "", walk.errors.len, err))
        return -1;
    return reply_fmt(reply, err, "],\"truncated\":%s}", reply_bool(walk.is_truncated));
}

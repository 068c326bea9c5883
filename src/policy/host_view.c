/* See host_view.h: looking at the real host, remembering that for a while, and following a path on any
 * host.
 *
 * Each function of the real view is one bounded look; nothing is kept. In the walk, `done` is
 * canonical and grows by one component at a time; `rest` is what is still to follow, in front of
 * which the text of a symlink is put. */
#include "policy/host_view.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void host_listing_done(struct host_listing *listing)
{
    for (size_t i = 0; i < listing->len; i++)
        free(listing->items[i].name);
    free(listing->items);
    *listing = (struct host_listing){0};
}

static enum host_kind host_kind_of(mode_t mode)
{
    if (S_ISDIR(mode))
        return HOST_DIR;
    if (S_ISREG(mode))
        return HOST_FILE;
    if (S_ISLNK(mode))
        return HOST_SYMLINK;
    return HOST_OTHER;
}

enum host_failure host_failure_of(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return HOST_FAILURE_ABSENT;
    case EACCES:
        return HOST_FAILURE_HIDDEN;
    default:
        return HOST_FAILURE_UNKNOWN;
    }
}

/* Keeps errno for the message, and says by the code what it means. */
static int host_fail(struct err *err, const char *doing, const char *path)
{
    static const enum err_code codes[] = {
        [HOST_FAILURE_ABSENT] = ERR_NOT_FOUND,
        [HOST_FAILURE_HIDDEN] = ERR_FORBIDDEN,
        [HOST_FAILURE_UNKNOWN] = ERR_SYSTEM,
    };
    enum err_code code = codes[host_failure_of(errno)];

    err_sys(err, "%s %s, which decides what is protected", doing, path);
    err->code = code;
    return -1;
}

static int host_real_kind(const struct host_view *view, const char *path, enum host_kind *ret,
                          struct err *err)
{
    struct stat st;

    if (!sys_fault() && fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        *ret = host_kind_of(st.st_mode);
        return 0;
    }
    switch (host_failure_of(errno)) {
    case HOST_FAILURE_ABSENT:
        *ret = HOST_MISSING;
        return 0;
    case HOST_FAILURE_HIDDEN:
        *ret = HOST_HIDDEN;
        return 0;
    case HOST_FAILURE_UNKNOWN:
        break;
    }
    return host_fail(err, "looking at", path);
}

static char *host_real_link(const struct host_view *view, const char *path, struct err *err)
{
    char target[PATH_MAX];
    ssize_t len = sys_fault() ? -1 : readlink(path, target, sizeof target);

    if (len < 0) {
        host_fail(err, "reading the symlink", path);
        return NULL;
    }
    if (len == 0 || (size_t)len == sizeof target) {
        err_set(err, ERR_INVALID, "the symlink %s has %s target", path,
                len ? "an overlong" : "an empty");
        return NULL;
    }
    return alloc_strn(target, (size_t)len);
}

/* -1 with errno when a file system that does not list kinds does not tell otherwise, either. */
static int host_item_kind(int dir, const struct dirent *item, enum host_kind *ret)
{
    struct stat st;

    switch (item->d_type) {
    case DT_DIR:
        *ret = HOST_DIR;
        return 0;
    case DT_REG:
        *ret = HOST_FILE;
        return 0;
    case DT_LNK:
        *ret = HOST_SYMLINK;
        return 0;
    case DT_UNKNOWN:
        if (sys_fault() || fstatat(dir, item->d_name, &st, AT_SYMLINK_NOFOLLOW))
            return -1;
        *ret = host_kind_of(st.st_mode);
        return 0;
    default:
        *ret = HOST_OTHER;
        return 0;
    }
}

static int host_item_compare(const void *left, const void *right)
{
    const struct host_item *a = left;
    const struct host_item *b = right;

    return strcmp(a->name, b->name);
}

static void host_dir_close(DIR **slot)
{
    if (*slot)
        closedir(*slot);
}

static int host_real_list(const struct host_view *view, const char *path, struct host_listing *ret,
                          struct err *err)
{
    AUTO(host_listing_done) struct host_listing listing = {0};
    AUTO(host_dir_close) DIR *dir = NULL;
    AUTO_CLOSE int fd = -1;
    const struct dirent *item;

    *ret = listing;
    fd = sys_fault() ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return host_fail(err, "opening the directory", path);
    (void)TAKE_FD(fd);
    while ((void)(errno = 0), (item = sys_fault() ? NULL : readdir(dir))) {
        enum host_kind kind;

        if (str_eq(item->d_name, ".") || str_eq(item->d_name, ".."))
            continue;
        if (host_item_kind(dirfd(dir), item, &kind)) {
            if (host_failure_of(errno) == HOST_FAILURE_ABSENT)
                continue;
            return host_fail(err, "looking at what is in", path);
        }
        if (listing.len == HOST_LISTING_MAX)
            return err_set(err, ERR_LIMIT, "listing %s: more than %d entries", path,
                           HOST_LISTING_MAX);
        listing.items = alloc_grow(listing.items, listing.len, &listing.cap, sizeof *listing.items);
        listing.items[listing.len++] =
            (struct host_item){.name = alloc_str(item->d_name), .kind = kind};
    }
    if (errno)
        return host_fail(err, "listing", path);
    if (listing.len)
        qsort(listing.items, listing.len, sizeof *listing.items, host_item_compare);
    *ret = listing;
    listing = (struct host_listing){0};
    return 0;
}

static int host_real_text(const struct host_view *view, const char *path, size_t max,
                          struct buf *ret, struct err *err)
{
    AUTO_CLOSE int fd = fd_open_file(AT_FDCWD, path, O_NOFOLLOW, err);

    if (fd < 0 && err->sys) {
        errno = err->sys;
        return host_fail(err, "opening", path);
    }
    if (fd < 0)
        return -1;
    buf_init(ret, max);
    if (buf_read_fd(ret, fd, err)) {
        buf_done(ret);
        return err_wrap(err, "reading %s", path);
    }
    return 0;
}

const struct host_view host_view_real = {
    .kind = host_real_kind,
    .link = host_real_link,
    .list = host_real_list,
    .text = host_real_text,
};

/* --- remembering --- */

struct host_known {
    struct host_known *next;
    enum host_kind kind;
    char path[];
};

static struct host_known **memory_slot(struct host_memory *memory, const char *path)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (const char *at = path; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return &memory->known[(hash ^ hash >> 16) % (sizeof memory->known / sizeof *memory->known)];
}

static int memory_kind(const struct host_view *view, const char *path, enum host_kind *ret,
                       struct err *err)
{
    struct host_memory *memory = (struct host_memory *)view;
    struct host_known **slot = memory_slot(memory, path);
    struct host_known *known = *slot;
    size_t size = strlen(path) + 1;

    while (known && !str_eq(known->path, path))
        known = known->next;
    if (known) {
        *ret = known->kind;
        return 0;
    }
    if (memory->below->kind(memory->below, path, ret, err))
        return -1;
    known = alloc_zero(1, sizeof *known + size);
    known->next = *slot;
    known->kind = *ret;
    memcpy(known->path, path, size);
    *slot = known;
    return 0;
}

static char *memory_link(const struct host_view *view, const char *path, struct err *err)
{
    const struct host_view *below = ((const struct host_memory *)view)->below;

    return below->link(below, path, err);
}

static int memory_list(const struct host_view *view, const char *path, struct host_listing *ret,
                       struct err *err)
{
    const struct host_view *below = ((const struct host_memory *)view)->below;

    return below->list(below, path, ret, err);
}

static int memory_text(const struct host_view *view, const char *path, size_t max, struct buf *ret,
                       struct err *err)
{
    const struct host_view *below = ((const struct host_memory *)view)->below;

    return below->text(below, path, max, ret, err);
}

void host_memory_begin(struct host_memory *memory, const struct host_view *below)
{
    *memory = (struct host_memory){
        .view = {.kind = memory_kind,
                 .link = memory_link,
                 .list = memory_list,
                 .text = memory_text},
        .below = below,
    };
}

void host_memory_done(struct host_memory *memory)
{
    for (size_t i = 0; i < sizeof memory->known / sizeof *memory->known; i++)
        for (struct host_known *known = memory->known[i], *next; known; known = next) {
            next = known->next;
            free(known);
        }
}

int host_account_home(const struct host_view *view, const char *name, char **ret, struct err *err)
{
    enum { SIZE_MAX_BYTES = 16 << 20, FIELDS_BEFORE_HOME = 5 };
    AUTO(buf_done) struct buf text = {0};
    AUTO_FREE char *start = alloc_strf("%s:", name);

    *ret = NULL;
    if (view->text(view, "/etc/passwd", SIZE_MAX_BYTES, &text, err))
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    for (char *line = text.data, *end; line && !*ret; line = end) {
        const char *field = line;

        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        for (int i = 0; field && i < FIELDS_BEFORE_HOME; i++)
            field = (field = strchr(field, ':')) ? field + 1 : NULL;
        if (field && *field == '/' && str_starts(line, start))
            *ret = alloc_strn(field, strcspn(field, ":"));
    }
    return 0;
}

/* --- following a path --- */

struct walk_state {
    const struct host_view *view;
    const char *asked;
    char *done;
    char *rest;
    struct path_walk walk; /* links; the rest is filled at the end */
};

void path_walk_done(struct path_walk *walk)
{
    for (size_t i = 0; i < walk->links_len; i++) {
        free(walk->links[i].path);
        free(walk->links[i].target);
    }
    free(walk->links);
    free(walk->path);
    *walk = (struct path_walk){0};
}

static void walk_state_done(struct walk_state *state)
{
    path_walk_done(&state->walk);
    free(state->done);
    free(state->rest);
}

static void walk_end(struct walk_state *state, char *path, enum path_end end, enum access_kind kind)
{
    state->walk.path = path;
    state->walk.end = end;
    state->walk.kind = kind;
}

/* Takes the next component off `rest`; NULL at the end. */
static char *walk_next(struct walk_state *state)
{
    const char *at = state->rest + strspn(state->rest, "/");
    size_t len = strcspn(at, "/");
    char *name = len ? alloc_strn(at, len) : NULL;

    memmove(state->rest, at + len, strlen(at + len) + 1);
    return name;
}

static bool has_parent_component(const char *path)
{
    while (*(path += strspn(path, "/"))) {
        size_t len = strcspn(path, "/");

        if (len == 2 && path[0] == '.' && path[1] == '.')
            return true;
        path += len;
    }
    return false;
}

static int walk_link(struct walk_state *state, const char *path, struct err *err)
{
    struct path_walk *walk = &state->walk;
    char *target = NULL;
    char *rest;

    if (walk->links_len == PATH_WALK_LINKS_MAX)
        return err_set(err, ERR_INVALID, "%s: more than %d symlinks on the way", state->asked,
                       PATH_WALK_LINKS_MAX);
    target = state->view->link(state->view, path, err);
    if (!target)
        return -1;
    if (!walk->name_link && !state->rest[strspn(state->rest, "/")])
        walk->name_link = walk->links_len + 1;
    walk->links = alloc_grow(walk->links, walk->links_len, &walk->links_cap, sizeof *walk->links);
    walk->links[walk->links_len++] =
        (struct access_link){.path = alloc_str(path), .target = target};
    rest = alloc_strf("%s/%s", target, state->rest);
    free(state->rest);
    state->rest = rest;
    if (target[0] == '/')
        state->done[1] = '\0';
    return 0;
}

/* Moves on by the component `name`. When the walk is over, walk.path is set. */
static int walk_step(struct walk_state *state, const char *name, struct err *err)
{
    AUTO_FREE char *path = NULL;
    enum host_kind kind;

    if (str_eq(name, "."))
        return 0;
    path = str_eq(name, "..") ? path_parent(state->done) : path_join(state->done, name);
    kind = HOST_DIR;
    if (!str_eq(name, "..") && state->view->kind(state->view, path, &kind, err))
        return -1;
    switch (kind) {
    case HOST_SYMLINK:
        return walk_link(state, path, err);
    case HOST_MISSING:
        if (has_parent_component(state->rest))
            return err_set(err, ERR_INVALID, "%s: the symlink %s goes through %s, which is missing",
                           state->asked, state->walk.links[state->walk.links_len - 1].path, path);
        walk_end(state, path_clean(path, state->rest + strspn(state->rest, "/")), PATH_MISSING,
                 ACCESS_MISSING);
        return 0;
    case HOST_HIDDEN:
        walk_end(state, TAKE_PTR(state->done), PATH_HIDDEN, ACCESS_DIR);
        return 0;
    case HOST_DIR:
        free(state->done);
        state->done = TAKE_PTR(path);
        return 0;
    case HOST_FILE:
    case HOST_OTHER:
        break;
    }
    walk_end(state, TAKE_PTR(path),
             state->rest[strspn(state->rest, "/")] ? PATH_BLOCKED : PATH_FOUND, ACCESS_FILE);
    return 0;
}

int path_walk(const struct host_view *view, const char *path, struct path_walk *ret,
              struct err *err)
{
    AUTO(walk_state_done)
    struct walk_state state = {
        .view = view, .asked = path, .done = alloc_str("/"), .rest = alloc_str(path)};

    while (!state.walk.path) {
        AUTO_FREE char *name = walk_next(&state);

        if (!name)
            walk_end(&state, TAKE_PTR(state.done), PATH_FOUND, ACCESS_DIR);
        else if (walk_step(&state, name, err))
            return -1;
    }
    *ret = state.walk;
    state.walk = (struct path_walk){0};
    return 0;
}

/* --- what decides where a path leads --- */

/* One step: `*at` becomes what `name` is in it; a symlink's text comes in front of `*rest`. */
static bool way_step(const struct host_view *view, char **at, char **rest, size_t *links,
                     bool *is_missing)
{
    enum host_kind kind = HOST_MISSING;
    AUTO_FREE char *text = NULL;
    struct err ignored; /* what cannot be seen is no way */
    char *more;

    if (!*is_missing && view->kind(view, *at, &kind, &ignored))
        return false;
    *is_missing = kind == HOST_MISSING;
    if (kind == HOST_HIDDEN)
        return false;
    if (kind != HOST_SYMLINK)
        return true;
    text = view->link(view, *at, &ignored);
    if (!text || ++*links > PATH_WALK_LINKS_MAX)
        return false;
    more = alloc_strf("%s/%s", text, *rest);
    free(*rest);
    *rest = more;
    more = *text == '/' ? alloc_str("/") : path_parent(*at);
    free(*at);
    *at = more;
    return true;
}

bool path_way(const struct host_view *view, const char *path,
              bool (*holds)(void *data, const char *name), void *data)
{
    AUTO_FREE char *at = alloc_str("/");
    AUTO_FREE char *rest = alloc_str(path);
    bool is_missing = false;
    size_t links = 0;

    for (;;) {
        size_t begin = strspn(rest, "/");
        size_t len = strcspn(rest + begin, "/");
        AUTO_FREE char *name = alloc_strn(rest + begin, len);
        char *next = str_eq(name, "..") ? path_parent(at) : path_join(at, name);
        bool is_step = len && !str_eq(name, ".") && !str_eq(name, "..");

        if (is_step && !holds(data, next)) {
            free(next);
            return false;
        }
        memmove(rest, rest + begin + len, strlen(rest + begin + len) + 1);
        if (len && !str_eq(name, ".")) {
            free(at);
            at = next;
        } else {
            free(next);
        }
        if (is_step && !way_step(view, &at, &rest, &links, &is_missing))
            return false;
        if (!len)
            return true;
    }
}

static bool is_closed(void *data, const char *name)
{
    return access_map_check_host(data, name) != ACCESS_WRITE;
}

bool path_may_change(const struct host_view *view, const struct access_map *map, const char *path)
{
    return !path_way(view, path, is_closed, (void *)map);
}

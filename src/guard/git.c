/* See git.h. A repository lies on a read-only mount (or, where one is to be made, where Landlock refuses to
 * write), so that the kernel refuses every change in it. What is named here is done by us, as what somebody
 * said yes to is; all else stays refused. So nothing depends on what the command is, or when it asks.
 *
 * Most of what git writes is data. Three files decide whether git takes the directory for a
 * repository, which others it enters, and what it runs: HEAD, the index and the configuration. Nobody
 * gets a descriptor by which these could be written. They are replaced, as git does it by its
 * locks, by a copy of ours, which has been looked at.
 *
 * The names of linked worktrees' directories are known by their place. Each other git directory (a submodule's)
 * has an entry of its own. */
#include "guard/git.h"

#include "base/auto.h"
#include "base/git_index.h"
#include "base/git_names.h"
#include "guard/folder.h"
#include "guard/git_data.h"
#include "guard/granted.h"
#include "guard/perform.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- places --- */

static int entry_of(const struct command *command, const char *path)
{
    const struct map *map = &command->map;
    int entry = command->has_git ? map_find(map, path) : GUARD_NO_ENTRY;

    return entry != GUARD_NO_ENTRY && map->entries[entry].flags & GUARD_ENTRY_GIT ? entry
                                                                                  : GUARD_NO_ENTRY;
}

bool git_has(const struct command *command, const char *path)
{
    return entry_of(command, path) != GUARD_NO_ENTRY;
}

static bool is_own(const struct object *object)
{
    struct stat dir;

    return fstat(object->place.dir, &dir) == 0 && dir.st_uid == geteuid();
}

static struct git_name name_in(const struct command *command, const struct object *object)
{
    const int entry = entry_of(command, object->path);
    const char *rest = object->path + strlen(map_path(&command->map, entry));

    if (!*rest)
        return (struct git_name){.kind = GIT_CLOSED, .rest = rest};
    return git_name_of(rest + 1, command->map.entries[entry].kind == GUARD_MISSING);
}

/* The repository itself, where there is none. Where case is folded, what is in it could be reached by another path. */
static bool is_to_be_made(const struct request *request, const struct object *object)
{
    const struct command *command = request->command;
    const int entry = entry_of(command, object->path);

    return strcmp(object->path, map_path(&command->map, entry)) == 0 &&
           command->map.entries[entry].kind == GUARD_MISSING && !object->exists &&
           request->call->kind == CALL_MKDIR && !folder_folds_case(object->place.dir) &&
           !(command->map.header->flags & GUARD_MAP_NO_LANDLOCK);
}

/* A regular file without another name, or none at all. */
static bool is_plain(const struct object *object)
{
    return !object->exists || (S_ISREG(object->st.st_mode) && object->st.st_nlink == 1);
}

/* Where the .git file of a linked worktree is, as `gitdir` in its directory `dir` says; "" when that says nothing. 0 or an
 * errno. */
static int read_gitdir(int dir, char ret[PATH_MAX])
{
    AUTO_CLOSE int fd = openat(dir, "gitdir", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    ssize_t len;

    if (fd < 0 || fstat(fd, &st))
        return errno;
    len = S_ISREG(st.st_mode) ? read(fd, ret, PATH_MAX - 1) : -1;
    if (len < 0)
        return EINVAL;
    while (len && isspace((unsigned char)ret[len - 1]))
        len--;
    ret[len] = '\0';
    return 0;
}

/* The .git file that the worktree has is gone, as the host sees it. */
static bool is_worktree_gone(int dir)
{
    char path[PATH_MAX];
    const int error = read_gitdir(dir, path);
    struct stat st;

    if (error)
        return error == ENOENT;
    return !*path ||
           (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) && (errno == ENOENT || errno == ENOTDIR));
}

/* --- locks ---
 *
 * Of HEAD, the index and the configuration. A git outside may be at work at the same time: what it has in its
 * lock takes the file's place by that name. So the command has nothing to do with a lock but its own: one that
 * we have made for it, and have open, so that no other file can have its number. */

static bool is_lock(const struct git_name *name)
{
    return strcmp(name->rest, "HEAD.lock") == 0 || strcmp(name->rest, "index.lock") == 0 ||
           strcmp(name->rest, "config.lock") == 0;
}

static bool is_own_lock(const struct command *command, const struct object *object)
{
    struct stat st;

    for (uint32_t i = 0; i < command->git_locks_len; i++)
        if (fstat(command->git_locks[i], &st) == 0 && st.st_ino == object->st.st_ino &&
            st.st_dev == object->st.st_dev)
            return true;
    return false;
}

/* The lock that has just been made there: whoever else might take it away has to ask us. */
static void keep_lock(struct command *command, const struct object *object)
{
    AUTO(place_done) struct place place = {.dir = -1, .lock = -1};
    AUTO_CLOSE int pin = place_outside(command, &object->place, &place)
                             ? openat(place.dir, place.name, O_PATH | O_NOFOLLOW | O_CLOEXEC)
                             : -1;
    uint32_t len = 0;
    struct stat st;

    for (uint32_t i = 0; i < command->git_locks_len; i++)
        if (fstat(command->git_locks[i], &st) == 0 && st.st_nlink)
            command->git_locks[len++] = command->git_locks[i];
        else
            close(command->git_locks[i]);
    if (pin >= 0 && len < GUARD_GIT_LOCKS)
        command->git_locks[len++] = TAKE_FD(pin);
    command->git_locks_len = len;
}

void git_end(struct command *command)
{
    while (command->git_locks_len)
        close(command->git_locks[--command->git_locks_len]);
    while (command->git_links_len)
        free(command->git_links[--command->git_links_len]);
    free(command->git_links);
}

/* --- what may be done --- */

static bool may_remove(const struct object *object, const struct git_name *name)
{
    if (name->kind == GIT_DATA || name->kind == GIT_FOLDER)
        return true;
    return name->is_of_worktree
               ? name->kind != GIT_CLOSED && is_worktree_gone(object->place.dir)
               : name->kind == GIT_HOLDER && strncmp(name->rest, "worktrees", 9) == 0;
}

static mode_t mode_asked(const struct request *request)
{
    return (mode_t)request_argument(request, request->call->mode) & 07777;
}

/* Of what is there: its mode or its times. */
static bool may_change(const struct request *request, const struct object *object,
                       const struct git_name *name)
{
    const mode_t kept = S_ISDIR(object->st.st_mode) ? 0700 : 0400;
    const mode_t differs = (mode_asked(request) ^ object->st.st_mode) & 07777;

    switch (request->call->nr) {
#ifdef SYS_chmod
    case SYS_chmod:
#endif
    case SYS_fchmod:
    case SYS_fchmodat:
    case K_SYS_FCHMODAT2:
        if (!S_ISDIR(object->st.st_mode) && !is_plain(object))
            return false;
        /* `git init` tries whether a file can be executed on its configuration */
        return name->kind == GIT_CONFIG
                   ? differs == S_IXUSR
                   : name->kind != GIT_CLOSED && (mode_asked(request) & kept) == kept &&
                         !(differs & mode_asked(request) & S_IWOTH);
    case SYS_utimensat:
#ifdef SYS_utime
    case SYS_utime:
    case SYS_utimes:
    case SYS_futimesat:
#endif
        return name->kind != GIT_CLOSED;
    case SYS_truncate:
        return (name->kind == GIT_DATA || name->kind == GIT_FOLDER) && is_plain(object);
    default:
        return false;
    }
}

/* What is linked: it stays. */
static bool may_link_from(const struct git_name *name)
{
    return name->kind == GIT_DATA || name->kind == GIT_FOLDER;
}

/* One that comes to be, or takes the place of what is there. */
static bool may_come(const struct request *request, const struct object *object,
                     const struct git_name *name)
{
    const bool is_data = name->kind == GIT_DATA || name->kind == GIT_FOLDER;

    const enum call_kind call = request->call->kind;

    if (call == CALL_OPEN)
        return object->exists ? is_data && is_plain(object)
                              : is_data || name->kind == GIT_GITDIR || name->kind == GIT_COMMONDIR;
    if (call == CALL_MKDIR)
        return name->kind == GIT_FOLDER || name->kind == GIT_HOLDER;
    if (call == CALL_SYMLINK)
        return name->kind == GIT_DATA && !strchr(name->rest, '/') && *name->rest == 't';
    if (call == CALL_LINK)
        return name->kind == GIT_FOLDER;
    return call == CALL_RENAME && (is_data || name->kind == GIT_HEAD || name->kind == GIT_INDEX ||
                                   name->kind == GIT_CONFIG);
}

/* `is_source`: what a rename or link starts from. */
static bool allows(const struct request *request, const struct object *object, bool is_source)
{
    const struct call *call = request->call;
    struct git_name name;

    if (!git_has(request->command, object->path) ||
        map_is_own(&request->command->map, object->path))
        return false;
    if (is_to_be_made(request, object))
        return true;
    name = name_in(request->command, object);
    if (!is_own(object))
        return false;
    if (call->kind == CALL_ACCESS)
        return true;
    if (is_lock(&name) &&
        !(object->exists ? is_own_lock(request->command, object) : call->kind == CALL_OPEN))
        return false;
    if (call->kind == CALL_CHANGE)
        return object->is_name ? may_remove(object, &name) : may_change(request, object, &name);
    if (is_source)
        return S_ISREG(object->st.st_mode) &&
               (call->kind == CALL_LINK ? may_link_from(&name) : may_remove(object, &name));
    return may_come(request, object, &name);
}

/* What a rename moves, or a link is made of, is a file and nothing else. One that has other names (a clone's objects are
 * the same files) does not leave the repository, nor move into it: by those it would be written, too. */
static bool is_movable(const struct request *request, struct object *const objects[2])
{
    const bool is_link = request->call->kind == CALL_LINK;
    const struct object *source = objects[is_link];
    const struct object *target = objects[!is_link];

    return S_ISREG(source->st.st_mode) &&
           (source->st.st_nlink == 1 || (git_has(request->command, target->path) &&
                                         (is_link || git_has(request->command, source->path))));
}

/* The directory of a linked worktree that may go, of which the sandbox keeps the name as long as its .git file is
 * there. */
static bool is_worktree(const struct command *command, const char *path)
{
    const struct map *map = &command->map;
    const size_t len = strlen(path);
    bool is_one = false;

    for (uint32_t i = 0; command->has_git && i < map->header->entries; i++) {
        const char *entry = map_path(map, (int)i);

        if (!map_is_within(entry, path))
            continue;
        if (!(map->entries[i].flags & GUARD_ENTRY_REMOVABLE) || strcmp(entry + len, "/.git") != 0)
            return false;
        is_one = true;
    }
    return is_one;
}

bool git_is_left(const struct request *request, const struct object *object)
{
    const struct command *command = request->command;
    const bool is_removal = request->call->kind == CALL_CHANGE && object->is_name;

    if (!command->has_git || object->entry == GUARD_NO_ENTRY)
        return false;
    /* a name that is new has been judged, and made if that was right (perform.c) */
    if (command->map.entries[object->entry].flags & GUARD_ENTRY_ASKED)
        return is_removal || request->call->nr == SYS_truncate ||
               (request->call->kind == CALL_OPEN && object->exists);
    return is_removal && S_ISDIR(object->st.st_mode) && is_worktree(command, object->path);
}

static bool removes_worktree(const struct request *request, const struct object *object)
{
    return request->call->kind == CALL_CHANGE && object->is_name && S_ISDIR(object->st.st_mode) &&
           is_worktree(request->command, object->path);
}

/* The .git file of a linked worktree, which goes with that. */
static bool is_removable(const struct request *request, const struct object *object)
{
    const struct map *map = &request->command->map;
    const int entry = object->entry;

    return request->call->kind == CALL_CHANGE && object->is_name && entry != GUARD_NO_ENTRY &&
           map->entries[entry].flags & GUARD_ENTRY_REMOVABLE &&
           strcmp(map_path(map, entry), object->path) == 0;
}

bool git_allows(const struct request *request, struct object *const objects[2])
{
    const bool is_link = request->call->kind == CALL_LINK;
    bool is_meant = false;

    if (!request->command->has_git)
        return false;
    if (!objects[1] && removes_worktree(request, objects[0]))
        return true;
    if (!granted_can(request, objects))
        return false;
    for (int i = 0; i < 2 && objects[i]; i++) {
        if (git_is_left(request, objects[i]) || is_removable(request, objects[i])) {
            is_meant = true;
        } else if (git_has(request->command, objects[i]->path)) {
            is_meant = true;
            if (!allows(request, objects[i], objects[1] && i == is_link))
                return false;
        } else if (objects[i]->is_denied) {
            return false;
        }
    }
    if (objects[1] && (git_has(request->command, objects[0]->path) ||
                       git_has(request->command, objects[1]->path)))
        return is_movable(request, objects);
    return is_meant;
}

/* --- what is looked at before it is there --- */

/* Mapped, to be read: of files that nobody else can write. */
struct bytes {
    void *at; /* NULL: there are none */
    size_t len;
};

static void bytes_done(struct bytes *bytes)
{
    if (bytes->at)
        munmap(bytes->at, bytes->len);
}

static bool map_file(int fd, struct bytes *ret)
{
    struct stat st;

    *ret = (struct bytes){0};
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        return false;
    ret->len = (size_t)st.st_size;
    if (!ret->len)
        return true;
    ret->at = mmap(NULL, ret->len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (ret->at == MAP_FAILED)
        ret->at = NULL;
    return ret->at;
}

static const char *text_of(const struct bytes *bytes)
{
    return bytes->at ? bytes->at : "";
}

/* --- submodules ---
 *
 * git enters each that the index names. So an index may name those that it has named since the command began: their .git is
 * protected. One that is protected for another reason need not be what somebody wanted to be entered. */

struct links {
    struct command *command;
    const char *index; /* its path */
};

static bool is_known(void *data, const char *path)
{
    const struct links *links = data;
    const struct command *command = links->command;
    const size_t len = strlen(links->index);

    for (uint32_t i = 0; i < command->git_links_len; i++)
        if (strncmp(command->git_links[i], links->index, len) == 0 &&
            command->git_links[i][len] == ':' && strcmp(command->git_links[i] + len + 1, path) == 0)
            return true;
    return false;
}

/* Where there is no room it is not known, and may not come back. */
static bool get_known(void *data, const char *path)
{
    const struct links *links = data;
    struct command *command = links->command;
    char **items;
    char *item;

    if (is_known(data, path) || command->git_links_len == GUARD_GIT_LINKS)
        return true;
    items = realloc(command->git_links, (command->git_links_len + 1) * sizeof *items);
    if (!items)
        return true;
    command->git_links = items;
    if (asprintf(&item, "%s:%s", links->index, path) >= 0)
        items[command->git_links_len++] = item;
    return true;
}

static bool is_any(void *data, const char *path)
{
    (void)data;
    (void)path;
    return true;
}

/* A linked worktree that has no index, and whose .git file is not protected, was made by the command. */
static bool is_new_worktree(const struct command *command, const struct object *index, int dir)
{
    char file[PATH_MAX];

    return !index->exists && !read_gitdir(dir, file) && *file == '/' &&
           map_access(&command->map, map_find(&command->map, file)) == GUARD_WRITE;
}

/* Of the repository whose index lies in `dir`. */
static bool map_config(int dir, bool is_of_worktree, struct bytes *ret)
{
    AUTO_CLOSE int fd = openat(dir, is_of_worktree ? "../../config" : "config",
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    return fd < 0 ? errno == ENOENT : map_file(fd, ret);
}

static bool is_index_safe(struct command *command, const struct object *to, int dir,
                          const struct bytes *old, const struct bytes *new)
{
    struct links links = {.command = command, .index = to->path};
    const bool is_of_worktree = name_in(command, to).is_of_worktree;
    AUTO(bytes_done) struct bytes config = {0};
    size_t hash;

    if (!map_config(dir, is_of_worktree, &config))
        return false;
    hash = git_config_hash_bytes(text_of(&config), config.len);
    if (!hash)
        return false;
    git_index_each_link(old->at, old->len, hash, get_known, &links);
    return git_index_each_link(
        new->at, new->len, hash,
        is_of_worktree && is_new_worktree(command, to, dir) ? is_any : is_known, &links);
}

static bool is_safe(struct command *command, const struct object *to, int dir,
                    const struct bytes *old, const struct bytes *new)
{
    const enum git_kind kind = name_in(command, to).kind;

    if (kind == GIT_HEAD)
        return git_head_is_whole(text_of(new), new->len);
    if (kind == GIT_CONFIG)
        return git_config_is_same(text_of(old), old->len, text_of(new), new->len);
    return is_index_safe(command, to, dir, old, new);
}

/* Whoever waits for us meanwhile waits for as much as is copied: of a larger index no command would start, either. */
static bool copy(int from, int to)
{
    static char buffer[1 << 16];
    size_t size = 0;
    ssize_t len;

    while ((len = read(from, buffer, sizeof buffer)) > 0) {
        size += (size_t)len;
        if (size > GIT_INDEX_BYTES_MAX)
            return false;
        for (ssize_t at = 0, done; at < len; at += done) {
            done = write(to, buffer + at, (size_t)(len - at));
            if (done <= 0)
                return false;
        }
    }
    return len == 0;
}

/* As that of the lock, but such that git can read it, and nobody write who may not make names in the directory. */
static mode_t mode_of_copy(int dir, const struct stat *lock)
{
    struct stat st;
    const mode_t group = fstat(dir, &st) == 0 ? st.st_mode & S_IWGRP : 0;

    return (lock->st_mode & (0755 | group)) | S_IRUSR | S_IWUSR;
}

/* A new file in the directory, of a name that nobody knows, and which the command can do nothing with. */
static int make_copy(int dir, const struct stat *st, char ret_name[static 32])
{
    uint64_t number = 0;

    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return -1;
    snprintf(ret_name, 32, "cordon.%016llx", (unsigned long long)number);
    return openat(dir, ret_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  mode_of_copy(dir, st));
}

/* The copy `name`, open as `new`, takes the place of `to`. */
static bool take_place(const struct request *request, const struct object *object, int new,
                       const char *name, const struct place *to)
{
    AUTO(bytes_done) struct bytes before = {0};
    AUTO(bytes_done) struct bytes after = {0};
    AUTO_CLOSE int old = openat(to->dir, to->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    return (old < 0 ? errno == ENOENT : map_file(old, &before)) && map_file(new, &after) &&
           is_safe(request->command, object, to->dir, &before, &after) &&
           request_is_valid(request) && renameat(to->dir, name, to->dir, to->name) == 0;
}

/* rename(2) of a lock to what it locks. */
static struct answer replace(const struct request *request, struct object *const objects[2])
{
    AUTO(place_done) struct place from = {.dir = -1, .lock = -1};
    AUTO(place_done) struct place to = {.dir = -1, .lock = -1};
    AUTO_CLOSE int source = -1;
    AUTO_CLOSE int new = -1;
    char name[32];
    struct stat st;

    if (!place_outside(request->command, &objects[0]->place, &from) ||
        !place_outside(request->command, &objects[1]->place, &to))
        return answer_continue();
    source = openat(from.dir, from.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (source < 0 || fstat(source, &st) || !S_ISREG(st.st_mode) ||
        st.st_size > GIT_INDEX_BYTES_MAX || st.st_ino != objects[0]->st.st_ino ||
        st.st_dev != objects[0]->st.st_dev)
        return answer_continue();
    new = make_copy(to.dir, &st, name);
    if (new < 0)
        return answer_continue();
    if (!copy(source, new) || fchmod(new, mode_of_copy(to.dir, &st)) ||
        futimens(new, (struct timespec[2]){st.st_atim, st.st_mtim}) ||
        !take_place(request, objects[1], new, name, &to)) {
        unlinkat(to.dir, name, 0);
        return answer_continue();
    }
    unlinkat(from.dir, from.name, 0);
    return answer_value(0);
}

/* `commondir` says what it has to say, whatever is written to it. */
static struct answer make_commondir(const struct request *request, const struct object *object)
{
    static const char text[] = "../..\n";
    AUTO(place_done) struct place place = {.dir = -1, .lock = -1};
    AUTO_CLOSE int fd = -1;
    AUTO_CLOSE int lost = memfd_create("commondir", MFD_CLOEXEC);
    int status;

    if (lost < 0 || !place_outside(request->command, &object->place, &place) ||
        !request_is_valid(request))
        return answer_continue();
    fd = openat(place.dir, place.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return answer_continue();
    if (write(fd, text, sizeof text - 1) != (ssize_t)sizeof text - 1) {
        unlinkat(place.dir, place.name, 0);
        return answer_error(ENOSPC);
    }
    status =
        request_give(request, lost, request_argument(request, request->call->flags) & O_CLOEXEC);
    return status ? answer_error(status) : (struct answer){.kind = ANSWER_LATER};
}

/* Which the kernel does not, for those who see the mount on it. */
static struct answer remove_worktree(const struct request *request, const struct object *object)
{
    AUTO(place_done) struct place place = {.dir = -1, .lock = -1};

    return place_outside(request->command, &object->place, &place)
               ? answer_of(unlinkat(place.dir, place.name, AT_REMOVEDIR))
               : answer_continue();
}

struct answer git_do(const struct request *request, struct object *const objects[2])
{
    const struct command *command = request->command;
    const enum call_kind call = request->call->kind;
    struct git_name name = {.kind = GIT_CLOSED};
    struct answer answer;

    if (!objects[1] && removes_worktree(request, objects[0]))
        return remove_worktree(request, objects[0]);
    if (call == CALL_RENAME && git_has(command, objects[1]->path))
        name = name_in(command, objects[1]);
    if (call == CALL_OPEN && git_has(command, objects[0]->path))
        name = name_in(command, objects[0]);
    if (name.kind == GIT_HEAD || name.kind == GIT_INDEX || name.kind == GIT_CONFIG)
        return replace(request, objects);
    if (name.kind == GIT_COMMONDIR)
        return make_commondir(request, objects[0]);
    answer = granted_do(request, objects);
    if (name.kind == GIT_DATA && is_lock(&name) && !objects[0]->exists &&
        (answer.kind == ANSWER_VALUE || answer.kind == ANSWER_LATER))
        keep_lock(request->command, objects[0]);
    return answer;
}

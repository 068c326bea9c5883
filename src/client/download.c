/* A folder of the server to this machine. What a server names is not trusted: a name is one
 * component, every folder is opened from the one before and never through a link, and a file or
 * link is made under a name of ours and then takes its place. So nothing is written outside of the
 * folder that the copy goes to, whatever links the server sends before. */
#include "client/cp_tree.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "client/connection.h"
#include "client/face.h"
#include "client/remote_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAKING ".cordon-cp-making"

enum { MODE_UNKNOWN = -1 };

struct level {
    int dir;
    json_t *entries;
    size_t next;
    char *local; /* for messages */
    char *remote;
    mode_t mode; /* of the folder, once it is finished */
};

struct receiving {
    struct cp *cp;
    mode_t usual; /* what the umask leaves */
    struct level levels[CP_DEPTH_MAX];
    size_t depth;
};

static void level_done(struct level *level)
{
    if (level->dir >= 0)
        close(level->dir);
    json_decref(level->entries);
    free(level->local);
    free(level->remote);
    *level = (struct level){.dir = -1};
}

static void receiving_done(struct receiving *receiving)
{
    while (receiving->depth)
        level_done(&receiving->levels[--receiving->depth]);
}

static mode_t usual_mode(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0777 & ~mask;
}

static struct remote_file remote_at(const struct receiving *receiving, const char *path)
{
    return (struct remote_file){
        .connection = receiving->cp->connection, .path = path, .shown = path};
}

/* --- one entry --- */

struct item {
    int dir;
    const json_t *entry;
    char *name; /* one component */
    char *local;
    char *remote;
    int mode;
};

static void item_done(struct item *item)
{
    free(item->name);
    free(item->local);
    free(item->remote);
}

/* By its URI, which has any bytes; a plain Codex server gives the name only. Caller frees. */
static char *name_of(const json_t *entry, struct err *err)
{
    const char *uri = json_string_value(json_object_get(entry, "uri"));
    const char *name = json_string_value(json_object_get(entry, "fileName"));
    AUTO_FREE char *path = uri ? file_uri_parse(uri, err) : NULL;
    const char *found = path ? path_name(path) : uri ? NULL : name;

    if (found && *found && !strchr(found, '/') && !str_eq(found, ".") && !str_eq(found, ".."))
        return alloc_str(found);
    err_set(err, ERR_INVALID, "fs/readDirectory: the server gives an entry without a right name");
    return NULL;
}

static int item_read(const struct level *level, const json_t *entry, struct item *ret,
                     struct err *err)
{
    const json_t *mode = json_object_get(entry, "mode");

    *ret = (struct item){.dir = level->dir, .entry = entry, .mode = MODE_UNKNOWN};
    ret->name = name_of(entry, err);
    if (!ret->name)
        return -1;
    ret->local = path_join(level->local, ret->name);
    ret->remote = path_join(level->remote, ret->name);
    if (json_is_integer(mode))
        ret->mode = (int)(json_integer_value(mode) & 0777);
    return 0;
}

/* What was made beside takes its place. */
static int settle(const struct item *item, struct err *err)
{
    if (renameat(item->dir, MAKING, item->dir, item->name) == 0)
        return 0;
    err_sys(err, "putting %s in its place", item->local);
    unlinkat(item->dir, MAKING, 0);
    return -1;
}

static int fill_file(struct receiving *receiving, const struct item *item, struct err *err)
{
    const struct remote_file file = remote_at(receiving, item->remote);
    mode_t mode = item->mode == MODE_UNKNOWN ? 0666 : (mode_t)item->mode;
    AUTO_CLOSE int fd = -1;

    unlinkat(item->dir, MAKING, 0); /* of a copy that was killed */
    fd = openat(item->dir, MAKING, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, "making %s", item->local);
    if (cp_receive(receiving->cp, &file, fd, item->local, err))
        return -1;
    return fchmod(fd, mode & receiving->usual) ? err_sys(err, "%s", item->local) : 0;
}

static int receive_file(struct receiving *receiving, const struct item *item, struct err *err)
{
    if (fill_file(receiving, item, err) == 0)
        return settle(item, err);
    unlinkat(item->dir, MAKING, 0);
    return -1;
}

static int receive_link(const struct item *item, struct err *err)
{
    const char *target = json_string_value(json_object_get(item->entry, "linkTarget"));

    if (!target)
        return err_set(err, ERR_INVALID,
                       "remote:%s is not copied: where the link leads is no UTF-8", item->remote);
    unlinkat(item->dir, MAKING, 0);
    if (symlinkat(target, item->dir, MAKING))
        return err_sys(err, "making the link %s", item->local);
    return settle(item, err);
}

/* What a folder is to have in the end: one that was here before stays as open as it was. */
static mode_t folder_mode(const struct receiving *receiving, int dir, int wanted, bool is_new)
{
    struct stat st;

    if (!is_new && dir >= 0 && fstat(dir, &st) == 0)
        return st.st_mode & 07777;
    return (wanted == MODE_UNKNOWN ? 0777 : (mode_t)wanted) & receiving->usual;
}

/* Takes over `dir`, also on failure. */
static int enter(struct receiving *receiving, int dir, const struct item *item, bool is_new,
                 struct err *err)
{
    const struct remote_file file = remote_at(receiving, item->remote);
    struct level level = {.dir = dir,
                          .local = alloc_str(item->local),
                          .remote = alloc_str(item->remote),
                          .mode = folder_mode(receiving, dir, item->mode, is_new)};

    if (dir < 0)
        err_sys(err, "%s", item->local);
    else if (receiving->depth == CP_DEPTH_MAX)
        err_set(err, ERR_LIMIT, "more than %d folders deep, and not copied: remote:%s",
                CP_DEPTH_MAX, item->remote);
    else
        level.entries = remote_list(&file, err);
    if (!level.entries) {
        level_done(&level);
        return -1;
    }
    receiving->levels[receiving->depth++] = level;
    return 0;
}

static int receive_folder(struct receiving *receiving, const struct item *item, struct err *err)
{
    bool is_new = mkdirat(item->dir, item->name, 0700) == 0;

    if (!is_new && errno != EEXIST)
        return err_sys(err, "making the folder %s", item->local);
    return enter(receiving,
                 openat(item->dir, item->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                 item, is_new, err);
}

static int receive_item(struct receiving *receiving, const struct item *item, struct err *err)
{
    if (json_is_true(json_object_get(item->entry, "isSymlink")))
        return receive_link(item, err);
    if (json_is_true(json_object_get(item->entry, "isDirectory")))
        return receive_folder(receiving, item, err);
    if (json_is_true(json_object_get(item->entry, "isFile")))
        return receive_file(receiving, item, err);
    return err_set(err, ERR_INVALID,
                   "remote:%s is not copied: it is neither file nor folder nor link", item->remote);
}

/* --- all of them --- */

/* Once: modes, and links as what they are, come with "details". */
static void check_details(struct receiving *receiving, const json_t *entry)
{
    struct cp *cp = receiving->cp;

    if (cp->has_warned || json_object_get(entry, "mode"))
        return;
    cp->has_warned = true;
    progress_clear(&cp->progress);
    cp->face->say("this server tells neither modes nor links: what is copied gets the usual modes, "
                  "and what a link leads to is copied in its place");
}

static void leave(struct receiving *receiving)
{
    struct level *level = &receiving->levels[receiving->depth - 1];
    struct err err;

    if (fchmod(level->dir, level->mode)) {
        err_sys(&err, "%s", level->local);
        cp_complain(receiving->cp, &err);
    }
    level_done(level);
    receiving->depth--;
}

static void step(struct receiving *receiving)
{
    struct level *level = &receiving->levels[receiving->depth - 1];
    const json_t *entry = json_array_get(level->entries, level->next);
    AUTO(item_done) struct item item = {0};
    struct err err;

    if (!entry) {
        leave(receiving);
        return;
    }
    level->next++;
    check_details(receiving, entry);
    if (item_read(level, entry, &item, &err) || receive_item(receiving, &item, &err))
        cp_complain(receiving->cp, &err);
}

/* The folder that it all goes to may be there, and may be reached by a link: a person named it. */
static int open_root(const char *to, bool *ret_is_new, struct err *err)
{
    int dir;

    *ret_is_new = mkdir(to, 0700) == 0;
    if (!*ret_is_new && errno != EEXIST)
        return err_sys(err, "making the folder %s", to);
    dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? err_sys(err, "%s", to) : dir;
}

int cp_tree_here(struct cp *cp, const struct remote_file *from, int mode, const char *to,
                 struct err *err)
{
    AUTO(receiving_done) struct receiving receiving = {.cp = cp, .usual = usual_mode()};
    bool is_new = false;
    int dir = open_root(to, &is_new, err);
    const struct item root = {.local = (char *)to, .remote = (char *)from->path, .mode = mode};

    if (dir < 0 || enter(&receiving, dir, &root, is_new, err))
        return -1;
    while (receiving.depth && !connection_is_lost(cp->connection))
        step(&receiving);
    return receiving.depth ? err_set(err, ERR_SYSTEM, "the server is gone") : 0;
}

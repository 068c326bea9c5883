/* See own_paths.h. */
#include "sandbox/linux/own_paths.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "policy/host_view.h"
#include "sandbox/linux/guard_map.h"

#include <stdlib.h>

/* A name that is missing together with the directory that should hold it cannot be kept from being
 * made; the topmost missing one can. */
static int trim_one(const struct host_view *view, struct access_entry *entry, struct err *err)
{
    for (;;) {
        AUTO_FREE char *parent = path_parent(entry->path);
        enum host_kind kind;

        if (view->kind(view, parent, &kind, err))
            return -1;
        if (kind == HOST_HIDDEN)
            return err_set(err, ERR_FORBIDDEN, "%s, to be kept missing, cannot be seen any more",
                           entry->path);
        if (kind != HOST_MISSING)
            return 0;
        free(entry->path);
        entry->path = TAKE_PTR(parent);
    }
}

/* Sorts the map. */
static int trim(const struct host_view *view, struct access_map *map, struct err *err)
{
    for (size_t i = 0; i < map->len; i++) {
        struct access_entry *entry = &map->entries[i];

        if (entry->kind == ACCESS_MISSING && entry->access != ACCESS_WRITE &&
            trim_one(view, entry, err))
            return -1;
    }
    access_map_sort(map);
    /* Whose directory is to be guarded has to be said of it (guard_map.c). */
    if (!map->restricted && !access_map_exact(map, "/") && guard_map_has_names(map, false)) {
        access_map_add(map, "/", ACCESS_WRITE, ACCESS_DIR, "everything is writable");
        access_map_sort(map);
    }
    return 0;
}

/* Keeps the order, on which the check for the next one relies. */
static void protect_one(struct access_map *map, const char *path, enum access_kind kind)
{
    if (access_map_check_host(map, path) != ACCESS_WRITE)
        return;
    access_map_add(map, path, ACCESS_READ, kind, "belongs to Cordon")->is_protected = true;
    access_map_sort(map);
}

/* The path, and what it leads to. */
static int protect_path(const struct host_view *view, struct access_map *map, const char *path,
                        struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};

    if (path_walk(view, path, &walk, err))
        return err_wrap(err, "what belongs to Cordon");
    protect_one(map, walk.path, walk.kind);
    if (walk.end == PATH_HIDDEN && access_map_is_open_within(map, walk.path, ACCESS_READ))
        return err_set(err, ERR_FORBIDDEN,
                       "%s belongs to Cordon and cannot be seen, because %s does not let us look; "
                       "but something in that is writable",
                       path, walk.path);
    strv_push(&map->own, walk.path);
    if (str_eq(path, walk.path))
        return 0;
    if (walk.end != PATH_HIDDEN)
        protect_one(map, path, walk.end == PATH_MISSING ? ACCESS_MISSING : ACCESS_FILE);
    strv_push(&map->own, path);
    return 0;
}

/* A program of Cordon's that was installed, or built, where a private folder is now: commands that Cordon starts
 * by itself are such programs. */
static void show_program(struct access_map *map, const char *path, enum access_kind kind)
{
    if (!access_map_is_private(map, path))
        return;
    access_map_add(map, path, ACCESS_READ, kind, "belongs to Cordon");
    access_map_sort(map);
}

/* Also one that is not there: it would be started when it is. */
static int protect_program(const struct host_view *view, struct access_map *map, const char *path,
                           struct err *err)
{
    enum host_kind kind;

    if (access_map_check(map, path) != ACCESS_WRITE) {
        strv_push(&map->own, path);
        return 0;
    }
    if (view->kind(view, path, &kind, err))
        return -1;
    if (kind == HOST_FILE || kind == HOST_DIR)
        show_program(map, path, kind == HOST_DIR ? ACCESS_DIR : ACCESS_FILE);
    return protect_path(view, map, path, err);
}

/* The running program, and every one that it starts, outside of every sandbox. */
static int protect_programs(const struct host_view *view, struct access_map *map, struct err *err)
{
    AUTO_FREE char *self = program_self();
    AUTO(strv_done) struct strv programs = {0};

    if (!*self)
        return err_set(err, ERR_UNSUPPORTED,
                       "/proc/self/exe does not tell which program is running, so it cannot be "
                       "kept from changes: is /proc mounted? (mount -t proc proc /proc)");
    show_program(map, self, ACCESS_FILE);
    if (protect_path(view, map, self, err))
        return -1;
    program_add_paths(&programs);
    for (size_t i = 0; i < programs.len; i++)
        if (protect_program(view, map, programs.items[i], err))
            return -1;
    return 0;
}

int own_paths_protect(struct access_map *map, const struct strv *paths, struct err *err)
{
    struct host_memory memory;
    int status;

    host_memory_begin(&memory, &host_view_real);
    status = protect_programs(&memory.view, map, err);
    for (size_t i = 0; i < paths->len && !status; i++)
        status = protect_path(&memory.view, map, paths->items[i], err);
    if (!status)
        status = trim(&memory.view, map, err);
    host_memory_done(&memory);
    return status;
}

/* See own_paths.h. */
#include "sandbox/linux/own_paths.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "sandbox/linux/guard_map.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static enum access_kind kind_of(const char *path)
{
    struct err ignored;
    enum fd_kind kind;

    if (fd_kind_at(AT_FDCWD, path, &kind, &ignored) || kind == FD_MISSING)
        return ACCESS_MISSING;
    return kind == FD_DIR ? ACCESS_DIR : ACCESS_FILE;
}

/* A name that is missing together with the directory that should hold it cannot be kept from being
 * made; the topmost missing one can. */
void own_paths_trim(struct access_map *map)
{
    for (size_t i = 0; i < map->len; i++) {
        struct access_entry *entry = &map->entries[i];
        char *parent;

        if (entry->kind != ACCESS_MISSING || entry->access == ACCESS_WRITE)
            continue;
        while (parent = path_parent(entry->path), kind_of(parent) == ACCESS_MISSING) {
            free(entry->path);
            entry->path = parent;
        }
        free(parent);
    }
    access_map_sort(map);
    /* Whose directory is to be guarded has to be said of it (guard_map.c). */
    if (!map->restricted && !access_map_exact(map, "/") && guard_map_has_names(map)) {
        access_map_add(map, "/", ACCESS_WRITE, ACCESS_DIR, "everything is writable");
        access_map_sort(map);
    }
}

/* Keeps the order, on which the check for the next one relies. */
static void protect_one(struct access_map *map, const char *path)
{
    if (access_map_check(map, path) != ACCESS_WRITE)
        return;
    access_map_add(map, path, ACCESS_READ, kind_of(path), "belongs to Cordon")->is_protected = true;
    access_map_sort(map);
}

/* The path, and what it leads to. */
static void protect_path(struct access_map *map, const char *path, struct strv *own)
{
    AUTO_FREE char *real = path ? realpath(path, NULL) : NULL;

    if (real) {
        protect_one(map, real);
        strv_push(own, real);
    }
    if (path && !(real && str_eq(path, real))) {
        protect_one(map, path);
        strv_push(own, path);
    }
}

void own_paths_protect(struct access_map *map, const char *const *paths, struct strv *own)
{
    for (size_t i = 0; paths && paths[i]; i++)
        protect_path(map, paths[i], own);
}

void own_paths_protect_programs(struct access_map *map, struct strv *own)
{
    AUTO_FREE char *self = program_self();
    AUTO(strv_done) struct strv programs = {0};

    protect_path(map, self, own);
    program_add_paths(&programs); /* that the running one starts, outside of every sandbox */
    for (size_t i = 0; i < programs.len; i++)
        if (access_map_check(map, programs.items[i]) == ACCESS_WRITE &&
            access(programs.items[i], F_OK) == 0)
            protect_path(map, programs.items[i], own);
        else
            strv_push(own, programs.items[i]);
}

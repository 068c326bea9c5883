/* Which directories a layer lies over, from an access map.
 *
 * Every directory that commands may write in is covered, the outermost of those in one another. What is not: private
 * temporary folders, which become the layer's own and are never listed; what the user named as direct, and caches of
 * Cordon's for tools, which are worth nothing to accept. Where these lie in a covered directory they are shown as they
 * really are, as are protected names, which nobody may write anyway: what the user commits is seen inside at once.
 *
 * Whether an overlay can lie over a directory is found by doing it (overlay_probe()), when the directory comes to the layer,
 * once since the machine was started: to make and remove what a mount needs takes longer than all else here. When it does
 * not work any more, the launch says so. A new layer goes where that works: to the user's state folder, or beside the directory in /var/tmp, so that accepting
 * moves, or, where no disk will do (a container's own overlay), to memory. */
#include "layer/inside.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "policy/access.h"
#include "sandbox/linux/overlay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHES ".cache/cordon"
#define REMEDY_DIRECT "leave it out with --layer-direct %s, and what is written there is written"

/* --- what entries mean --- */

static bool is_direct(const struct layer *layer, const char *path)
{
    for (size_t i = 0; i < layer->record.direct.len; i++)
        if (path_is_within(path, layer->record.direct.items[i]))
            return true;
    return false;
}

static bool is_cache(const struct access_map *map, const char *path)
{
    AUTO_FREE char *caches = map->home ? path_join(map->home, CACHES) : NULL;

    return caches && path_is_within(path, caches);
}

static bool is_git(const struct access_map *map, const struct access_entry *entry)
{
    const char *name = strstr(entry->path, "/.git");

    if (entry->allows_commits || entry->is_by_guard)
        return true;
    for (; name; name = strstr(name + 1, "/.git"))
        if (!name[5] || name[5] == '/')
            return true;
    for (size_t i = 0; i < map->repositories.len; i++)
        if (path_is_within(entry->path, map->repositories.items[i]))
            return true;
    return false;
}

static bool is_outside_of_layer(const struct layer *layer, const struct access_map *map,
                                const struct access_entry *entry)
{
    return is_direct(layer, entry->path) || is_cache(map, entry->path);
}

/* Not of a guard's own: the kernel writes nothing there. */
static bool is_writable(const struct layer *layer, const struct access_entry *entry)
{
    return entry->access == ACCESS_WRITE && !entry->source &&
           (!entry->is_by_guard || layer->record.has_git);
}

static bool is_in_any(const struct strv *roots, const char *path)
{
    for (size_t i = 0; i < roots->len; i++)
        if (path_is_within(path, roots->items[i]))
            return true;
    return false;
}

/* Devices, pipes and sockets are written to, but keep nothing. */
static int check_file(const struct layer *layer, const struct access_entry *entry, struct err *err)
{
    struct stat st;

    if (lstat(entry->path, &st) || !S_ISREG(st.st_mode))
        return 0;
    return err_set(
        err, ERR_UNSUPPORTED,
        "layer %s: the file %s may be written, and a layer lies over directories alone: let "
        "its directory be written, or " REMEDY_DIRECT,
        layer_name(layer), entry->path, entry->path);
}

static int find_wanted(const struct layer *layer, const struct access_map *map, struct strv *ret,
                       struct strv *ret_direct, struct err *err)
{
    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];

        if (!is_writable(layer, entry) || is_in_any(ret, entry->path))
            continue;
        if (is_outside_of_layer(layer, map, entry)) {
            if (is_direct(layer, entry->path) && entry->kind == ACCESS_DIR &&
                !is_in_any(ret_direct, entry->path))
                strv_push(ret_direct, entry->path);
        } else if (entry->kind == ACCESS_DIR) {
            strv_push(ret, entry->path);
        } else if (entry->kind == ACCESS_FILE && check_file(layer, entry, err)) {
            return -1;
        }
    }
    return 0;
}

/* --- what is shown as it really is --- */

static bool is_real(const struct layer *layer, const struct access_map *map,
                    const struct access_entry *entry)
{
    if (entry->access == ACCESS_WRITE)
        return !entry->source && is_outside_of_layer(layer, map, entry);
    return entry->is_protected && entry->access == ACCESS_READ &&
           !(layer->record.has_git && is_git(map, entry)) &&
           !access_map_is_open_within(map, entry->path, ACCESS_READ);
}

static void find_real(struct layer *layer, const struct access_map *map, const struct strv *roots)
{
    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];

        if (is_real(layer, map, entry) && is_in_any(roots, entry->path) &&
            !strv_has(&layer->real, entry->path))
            strv_push(&layer->real, entry->path);
    }
    /* A direct folder that no entry names. */
    for (size_t i = 0; i < layer->record.direct.len; i++)
        if (is_in_any(roots, layer->record.direct.items[i]) &&
            !strv_has(&layer->real, layer->record.direct.items[i]))
            strv_push(&layer->real, layer->record.direct.items[i]);
}

/* --- roots --- */

static struct layer_root *find_root(const struct layer *layer, const char *path)
{
    for (size_t i = 0; i < layer->record.roots_len; i++) {
        struct layer_root *root = &layer->record.roots[i];

        if (str_eq(root->path, path) || (!root->is_direct && path_is_within(path, root->path)))
            return root;
    }
    return NULL;
}

static int check_not_around(const struct layer *layer, const char *path, struct err *err)
{
    for (size_t i = 0; i < layer->record.roots_len; i++)
        if (!layer->record.roots[i].is_direct && path_is_within(layer->record.roots[i].path, path))
            return err_set(
                err, ERR_CONFLICT,
                "layer %s lies over %s already, and cannot over %s around it: take a new layer",
                layer_name(layer), layer->record.roots[i].path, path);
    return 0;
}

/* Of the directories that a layer may be kept in, the one to try first. */
static void order_bases(const struct layer *layer, const struct stat *root,
                        enum store_base ret[STORE_BASES])
{
    AUTO_FREE char *tmp = NULL;
    AUTO_CLOSE int tmp_fd = -1;
    struct stat own, st;
    struct err ignored;

    for (int i = 0; i < STORE_BASES; i++)
        ret[i] = (enum store_base)i;
    if (fstat(layer->fd, &own) || own.st_dev == root->st_dev)
        return;
    if (stat("/var/tmp", &st) || st.st_dev != root->st_dev)
        return;
    tmp_fd = store_open_base(STORE_VAR_TMP, true, &tmp, &ignored);
    if (tmp_fd < 0 || fstat(tmp_fd, &st) || st.st_dev != root->st_dev)
        return;
    ret[0] = STORE_VAR_TMP;
    ret[1] = STORE_STATE;
}

static int try_place(int base, const char *place, const char *root, const struct stat *st,
                     struct err *err)
{
    if (store_has_worked(base, st))
        return 0;
    if (overlay_probe(root, place, err))
        return -1;
    store_note_worked(base, st);
    return 0;
}

/* Moves a new layer to where an overlay over `root` can be kept. */
static int find_place(struct layer *layer, const char *root, const struct stat *st, struct err *err)
{
    AUTO_FREE char *now = path_parent(layer->folder);
    enum store_base bases[STORE_BASES];
    struct err first = {0};

    order_bases(layer, st, bases);
    for (int i = 0; i < STORE_BASES; i++) {
        AUTO_FREE char *path = NULL;
        AUTO_CLOSE int fd = store_open_base(bases[i], true, &path, err);

        if (fd < 0 || try_place(fd, path, root, st, err)) {
            if (!first.code || (first.code != ERR_UNSUPPORTED && err->code == ERR_UNSUPPORTED))
                first = *err;
            continue;
        }
        return str_eq(path, now) ? 0 : layer_move(layer, bases[i], err);
    }
    *err = first;
    return store_explain(err);
}

static int try_root(struct layer *layer, const char *path, const struct stat *st, struct err *err)
{
    AUTO_CLOSE int base = -1;

    if (!layer->record.roots_len && !layer->has_stepped)
        return find_place(layer, path, st, err);
    base = sys_fault() ? -1 : openat(layer->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base < 0)
        return err_sys(err, "the folder that %s lies in", layer->folder);
    return try_place(base, layer->folder, path, st, err);
}

static int add_root(struct layer *layer, const char *path, bool direct, struct err *err)
{
    struct layer_root *root;
    struct stat st, folder;

    if (layer->launches)
        return err_set(
            err, ERR_BUSY,
            "layer %s cannot lie over %s, too, while commands live in it: end them first",
            layer_name(layer), path);
    if (layer->record.roots_len >= RECORD_ROOTS_MAX)
        return err_set(err, ERR_LIMIT, "layer %s lies over %d directories; no more can be had",
                       layer_name(layer), RECORD_ROOTS_MAX);
    if (sys_fault() || lstat(path, &st))
        return err_sys(err, "%s", path);
    if (!direct && try_root(layer, path, &st, err))
        return err_wrap(err, "a layer over %s", path);
    if (sys_fault() || fstat(layer->fd, &folder))
        return err_sys(err, "%s", layer->folder);
    root = layer_record_add_root(&layer->record, path);
    root->dev = st.st_dev;
    root->ino = st.st_ino;
    root->is_direct = direct;
    root->is_near = st.st_dev == folder.st_dev;
    layer->is_covered =
        alloc_resize(layer->is_covered, layer->record.roots_len + 1, sizeof *layer->is_covered);
    layer->is_covered[layer->record.roots_len - 1] = !direct;
    layer->is_covered[layer->record.roots_len] = false;
    return 0;
}

static int cover_root(struct layer *layer, const char *path, struct err *err)
{
    struct layer_root *root = find_root(layer, path);
    size_t index;
    int fd;

    if (!root)
        return check_not_around(layer, path, err) || add_root(layer, path, false, err) ? -1 : 0;
    if (root->is_direct)
        return 0;
    index = (size_t)(root - layer->record.roots);
    fd = layer_open_root(layer, index, err);
    if (fd < 0)
        return -1;
    close(fd);
    layer->is_covered[index] = true;
    return 0;
}

/* Those of an earlier command, too, as long as they are what they were. */
static void list_view_roots(struct layer *layer)
{
    strv_done(&layer->view_roots);
    layer->view_roots = (struct strv){0};
    for (size_t i = 0; i < layer->record.roots_len; i++)
        if (layer->is_covered[i])
            strv_push(&layer->view_roots, layer->record.roots[i].path);
    layer->view.roots = (const char *const *)strv_view(&layer->view_roots);
}

static void cover_others(struct layer *layer)
{
    for (size_t i = 0; i < layer->record.roots_len; i++) {
        struct err ignored;
        int fd;

        if (layer->is_covered[i] || layer->record.roots[i].is_direct)
            continue;
        fd = layer_open_root(layer, i, &ignored);
        layer->is_covered[i] = fd >= 0;
        if (fd >= 0)
            close(fd);
    }
}

/* --- temporary folders --- */

/* "tmp" for /tmp, "var-tmp" for /var/tmp; the caller frees. */
static char *tmp_name(const struct access_entry *entry)
{
    char *name = alloc_str(entry->path + 1);

    for (char *slash = strchr(name, '/'); slash; slash = strchr(slash, '/'))
        *slash = '-';
    return name;
}

static void set_source(const struct layer *layer, struct access_entry *entry, const char *name)
{
    free(entry->source);
    entry->source = alloc_strf("%s/tmp/%s", layer->folder, name);
}

static int give_tmp(struct layer *layer, struct access_entry *entry, struct err *err)
{
    AUTO_CLOSE int tmp = store_make_dir(layer->fd, "tmp", 0700, err);
    AUTO_FREE char *name = tmp_name(entry);
    AUTO_CLOSE int fd = -1;

    if (tmp < 0)
        return -1;
    fd = store_make_dir(tmp, name, 01777, err);
    if (fd < 0)
        return -1;
    set_source(layer, entry, name);
    return 0;
}

void layer_cover_none(const struct layer *layer, struct access_map *map)
{
    for (size_t i = 0; i < map->len; i++) {
        AUTO_FREE char *name = NULL;

        if (!map->entries[i].source)
            continue;
        name = tmp_name(&map->entries[i]);
        set_source(layer, &map->entries[i], name);
    }
}

int layer_cover(struct layer *layer, struct access_map *map, struct err *err)
{
    AUTO(strv_done) struct strv wanted = {0};
    AUTO(strv_done) struct strv direct = {0};
    size_t before = layer->record.roots_len;

    if (layer->lock < 0 || layer->is_adopted)
        return err_set(err, ERR_BUG, "layer %s is not ours to lie over anything",
                       layer_name(layer));
    if (!map->restricted)
        return err_set(
            err, ERR_UNSUPPORTED,
            "without a sandbox everything may be written, and a layer cannot lie over that: use a "
            "profile such as workspace-write");
    if (find_wanted(layer, map, &wanted, &direct, err))
        return -1;
    for (size_t i = 0; i < wanted.len; i++)
        if (cover_root(layer, wanted.items[i], err))
            return -1;
    for (size_t i = 0; i < direct.len; i++)
        if (!find_root(layer, direct.items[i]) && add_root(layer, direct.items[i], true, err))
            return -1;
    cover_others(layer);
    list_view_roots(layer);
    find_real(layer, map, &layer->view_roots);
    for (size_t i = 0; i < map->len; i++)
        if (map->entries[i].source && give_tmp(layer, &map->entries[i], err))
            return -1;
    return layer->record.roots_len == before ? 0 : layer_save(layer, err);
}

/* See presets.h.
 *
 * The one idea: what a command in a sandbox writes may have been made by somebody hostile, and a
 * cache is what a tool believes later. So a preset does not open the caches that the user's programs
 * use outside; it gives the tool one of Cordon's, and where the tool can read a second one without
 * writing to it, the user's as that.
 *
 * Directories are made by descriptors from the home directory on, no link is followed below
 * CACHE_DIR's first name (which people move to other disks), and what is opened is the path that was
 * made; when the access map is ready, it has to have just that one writable. */
#include "workspace/presets.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "policy/access.h"
#include "policy/host_view.h"
#include "policy/profile.h"
#include "policy/protect.h"
#include "workspace/folder_name.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char suffix[] = ".toml";

/* --- files --- */

void preset_files_done(struct preset_files *files)
{
    for (size_t i = 0; i < files->len; i++) {
        free(files->items[i].name);
        free(files->items[i].path);
    }
    free(files->items);
    *files = (struct preset_files){0};
}

static int file_compare(const void *left, const void *right)
{
    const struct preset_file *a = left;
    const struct preset_file *b = right;

    return strcmp(a->name, b->name);
}

static struct preset_file *find_file(const struct preset_files *files, const char *name)
{
    for (size_t i = 0; i < files->len; i++)
        if (str_eq(files->items[i].name, name))
            return &files->items[i];
    return NULL;
}

/* Of a name that is there already, the first one counts. */
static int add_dir(const char *dir, bool is_own, struct preset_files *ret, struct err *err)
{
    AUTO(host_listing_done) struct host_listing listing = {0};
    AUTO_FREE char *real = realpath(dir, NULL);

    if (!real && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!real)
        return err_sys(err, "%s", dir);
    if (host_view_real.list(&host_view_real, real, &listing, err))
        return -1;
    for (size_t i = 0; i < listing.len; i++) {
        const char *file = listing.items[i].name;
        AUTO_FREE char *name = NULL;
        struct preset_file *first;

        if (!str_ends(file, suffix))
            continue;
        name = alloc_strn(file, strlen(file) - strlen(suffix));
        if (!preset_name_is_valid(name))
            continue;
        first = find_file(ret, name);
        if (first) {
            first->is_twice |= !is_own && first->is_own;
            continue;
        }
        ret->items = alloc_grow(ret->items, ret->len, &ret->cap, sizeof *ret->items);
        ret->items[ret->len++] = (struct preset_file){
            .name = TAKE_PTR(name), .path = path_join(dir, file), .is_own = is_own};
    }
    return 0;
}

int preset_files_find(const char *config_dir, struct preset_files *ret, struct err *err)
{
    AUTO_FREE char *own = config_dir ? path_join(config_dir, PRESETS_DIR) : NULL;
    AUTO(preset_files_done) struct preset_files files = {0};
    AUTO(strv_done) struct strv dirs = {0};

    program_data_dirs("presets", &dirs);
    if (own && add_dir(own, true, &files, err))
        return -1;
    for (size_t i = 0; i < dirs.len; i++)
        if (add_dir(dirs.items[i], false, &files, err))
            return -1;
    if (files.len)
        qsort(files.items, files.len, sizeof *files.items, file_compare);
    *ret = files;
    files = (struct preset_files){0};
    return 0;
}

static int fail_unknown(const struct preset_files *files, const char *name, struct err *err)
{
    AUTO(strv_done) struct strv names = {0};
    const char *nearest;

    for (size_t i = 0; i < files->len; i++)
        strv_push(&names, files->items[i].name);
    nearest = str_nearest(name, (const char *const *)strv_view(&names));
    if (nearest)
        return err_set(err, ERR_NOT_FOUND, "there is no preset \"%.60s\", did you mean \"%s\"?",
                       name, nearest);
    return err_set(err, ERR_NOT_FOUND,
                   "there is no preset \"%.60s\" (\"cordon presets\" lists them)", name);
}

int preset_load(const char *config_dir, const char *name, struct preset *ret, char **ret_path,
                struct err *err)
{
    AUTO(preset_files_done) struct preset_files files = {0};
    AUTO(buf_done) struct buf text = {0};
    const struct preset_file *file;

    if (preset_files_find(config_dir, &files, err))
        return -1;
    file = find_file(&files, name);
    if (!file)
        return fail_unknown(&files, name, err);
    if (fd_read_file(file->path, PRESET_SIZE_MAX, &text, err) ||
        preset_parse(text.data ? text.data : "", text.len, file->path, ret, err))
        return -1;
    if (ret_path)
        *ret_path = alloc_str(file->path);
    return 0;
}

/* --- directories --- */

static int check_owner(int dir, const char *path, struct err *err)
{
    struct stat info;

    if (fstat(dir, &info))
        return err_sys(err, "%s", path);
    if (info.st_uid != geteuid())
        return err_set(err, ERR_FORBIDDEN,
                       "%s belongs to the user with id %u and not to you: work as that user, or "
                       "with a HOME of your own",
                       path, (unsigned)info.st_uid);
    if (info.st_mode & S_IWOTH)
        return err_set(err, ERR_FORBIDDEN, "%s can be written by everybody: chmod o-w %s", path,
                       path);
    return 0;
}

/* One name of the way, made when it is missing; a descriptor. */
static int enter(int above, const char *name, const char *path, bool may_be_link, struct err *err)
{
    const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (may_be_link ? 0 : O_NOFOLLOW);
    AUTO_CLOSE int dir = -1;

    if (mkdirat(above, name, 0700) && errno != EEXIST)
        return err_sys(err, "making %s", path);
    dir = openat(above, name, flags);
    if (dir < 0 && errno == ENOTDIR)
        return err_set(err, ERR_FORBIDDEN,
                       "%s is no directory, and a link is not followed here: remove it, and a new "
                       "one is made",
                       path);
    if (dir < 0)
        return err_sys(err, "%s", path);
    return check_owner(dir, path, err) ? -1 : TAKE_FD(dir);
}

/* Makes `place` below the home directory; its canonical path. Caller frees; NULL on failure. */
static char *make_place(const char *home, const char *place, struct err *err)
{
    AUTO_CLOSE int dir = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_FREE char *path = alloc_str(home);
    char link[64];
    char real[PATH_MAX];
    ssize_t len;

    if (dir < 0) {
        err_sys(err, "the home directory %s", home);
        return NULL;
    }
    for (const char *at = place; *at;) {
        AUTO_FREE char *name = alloc_strn(at, strcspn(at, "/"));
        AUTO_FREE char *next = path_join(path, name);
        int below =
            enter(dir, name, next, at == place && str_starts(place, PRESETS_CACHE_DIR), err);

        if (below < 0)
            return NULL;
        close(dir);
        dir = below;
        free(path);
        path = TAKE_PTR(next);
        at += strlen(name);
        at += strspn(at, "/");
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    len = readlink(link, real, sizeof real);
    if (len < 0 || len == sizeof real) {
        err_sys(err, "%s", path);
        return NULL;
    }
    return alloc_strn(real, (size_t)len);
}

/* What was denied, is protected, or is Cordon's own, stays so. */
static int check_path(const struct presets_context *context, const char *name, const char *path,
                      struct err *err)
{
    const struct access_map *map = context->map;
    const struct access_entry *entry = access_map_find(map, path);

    for (char *const *own = context->own_paths; own && *own; own++)
        if (path_is_within(path, *own) || path_is_within(*own, path))
            return err_set(err, ERR_FORBIDDEN, "preset %s opens %s, which belongs to Cordon", name,
                           path);
    if (!map->restricted || !entry)
        return 0;
    if (entry->access == ACCESS_DENY)
        return err_set(
            err, ERR_FORBIDDEN,
            "preset %s opens %s, which is denied (%s): let the profile read it, \"%s\" = "
            "\"read\", or leave the preset out",
            name, path, entry->origin, path);
    if (entry->is_protected)
        return err_set(err, ERR_FORBIDDEN, "preset %s opens %s, which is protected (%s)", name,
                       path, entry->origin);
    return 0;
}

/* By a link that commands can write, they would choose what is made and opened. */
static int check_links(const struct presets_context *context, const char *place, struct err *err)
{
    AUTO_FREE char *path = path_join(context->home, place);
    AUTO(path_walk_done) struct path_walk walk = {0};

    if (!context->map->restricted)
        return 0;
    if (path_walk(&host_view_real, path, &walk, err))
        return -1;
    return protect_check_links(context->map, path, walk.links, walk.links_len, err);
}

static void add_entry(const char *path, enum access access, const char *origin,
                      struct profile *profile)
{
    const struct profile_entry entry = {.path_kind = PROFILE_PATH_LITERAL,
                                        .access = access,
                                        .missing = PROFILE_MISSING_SKIP,
                                        .path = (char *)path,
                                        .origin = (char *)origin};

    profile_entries_add(&profile->entries, &entry);
}

/* Makes and opens one directory. The canonical path, the presets'; NULL on failure. */
static const char *open_place(const struct presets_context *context, const char *name,
                              const char *place, const char *origin, struct presets *presets,
                              struct profile *profile, struct err *err)
{
    AUTO_FREE char *path = NULL;

    if (check_links(context, place, err))
        return NULL;
    path = make_place(context->home, place, err);
    if (!path || check_path(context, name, path, err))
        return NULL;
    add_entry(path, ACCESS_WRITE, origin, profile);
    strv_push(&presets->places, place);
    strv_push(&presets->paths, path);
    return presets->paths.items[presets->paths.len - 1];
}

/* --- what a preset comes to --- */

static void add_env(const struct strv *texts, const struct preset_places *places, struct strv *ret)
{
    for (size_t i = 0; i < texts->len; i++)
        strv_push_take(ret, preset_expand(texts->items[i], places));
}

/* What the tool has outside is read where it is there, and nothing denies it. */
static void add_outside(const struct presets_context *context, const struct preset *preset,
                        const struct preset_places *places, const char *origin,
                        struct presets *presets, struct profile *profile)
{
    for (size_t i = 0; i < preset->outside_len; i++) {
        const struct preset_outside *outside = &preset->outside[i];
        AUTO_FREE char *path = path_join(context->home, outside->path);
        AUTO_FREE char *real = realpath(path, NULL);
        const struct access_entry *entry = real ? access_map_find(context->map, real) : NULL;
        struct stat info;

        if (!real || stat(real, &info) || !S_ISDIR(info.st_mode) ||
            (entry && entry->access == ACCESS_DENY))
            continue;
        if (!entry && context->map->restricted)
            add_entry(path, ACCESS_READ, origin, profile);
        add_env(&outside->env, places, &presets->env);
    }
}

/* Where {cache} is, below the home directory. Caller frees. */
static char *cache_place(const struct presets_context *context, const char *name,
                         const struct preset *preset)
{
    AUTO_FREE char *folder =
        preset->per_workspace ? folder_name(context->workspace ? context->workspace : "/") : NULL;

    return folder ? alloc_strf(PRESETS_CACHE_DIR "/%s/%s", name, folder)
                  : alloc_strf(PRESETS_CACHE_DIR "/%s", name);
}

/* They count where the network is proxied. A file that is not there, cannot be read, or that commands could change,
 * names none: they would choose what the next ones reach. */
static int add_hosts(const struct presets_context *context, const struct preset *preset,
                     const char *origin, struct network_policy *ret, struct err *err)
{
    AUTO(strv_done) struct strv hosts = {0};

    strv_push_all(&hosts, strv_view(&preset->hosts));
    for (size_t i = 0; i < preset->hosts_from.len; i++) {
        const char *from = preset->hosts_from.items[i];
        const char *key = strchr(from, ' ');
        AUTO_FREE char *name = alloc_strn(from, (size_t)(key - from));
        AUTO_FREE char *path = path_join(context->home, name);
        AUTO(buf_done) struct buf text = {.max = 0};
        struct err ignored;

        if (!path_may_change(&host_view_real, context->map, path) &&
            fd_read_file(path, PRESET_SIZE_MAX, &text, &ignored) == 0 && text.data)
            preset_read_hosts(text.data, key + 1, &hosts);
    }
    for (size_t i = 0; i < hosts.len; i++)
        if (network_policy_add_text(ret, hosts.items[i], NETWORK_ALLOW, origin, err))
            return err_wrap(err, "%s: %s", origin, hosts.items[i]);
    return 0;
}

static int add(const struct presets_context *context, const char *name, const struct preset *preset,
               const char *file, struct presets *presets, struct profile *profile, struct err *err)
{
    AUTO_FREE char *origin = alloc_strf("preset %s (%s)", name, file);
    AUTO_FREE char *place = cache_place(context, name, preset);
    struct preset_places places = {.home = context->home, .env = context->env};

    if (!context->home)
        return err_set(err, ERR_INVALID, "preset %s: the home directory is not known; set HOME",
                       name);
    places.cache = open_place(context, name, place, origin, presets, profile, err);
    if (!places.cache)
        return -1;
    for (size_t i = 0; i < preset->write.len; i++)
        if (!open_place(context, name, preset->write.items[i], origin, presets, profile, err))
            return -1;
    add_env(&preset->env, &places, &presets->env);
    add_outside(context, preset, &places, origin, presets, profile);
    add_env(&preset->offline_env, &places, &presets->offline_env);
    if (profile->network == NETWORK_PROXIED)
        return add_hosts(context, preset, origin, &profile->network_policy, err);
    return 0;
}

int presets_add(const struct presets_context *context, const char *name, struct presets *presets,
                struct profile *profile, struct err *err)
{
    AUTO(preset_done) struct preset preset = {0};
    AUTO_FREE char *file = NULL;

    if (preset_load(context->config_dir, name, &preset, &file, err))
        return -1;
    return context->map ? add(context, name, &preset, file, presets, profile, err) : 0;
}

/* --- all of a workspace --- */

void presets_done(struct presets *presets)
{
    strv_done(&presets->places);
    strv_done(&presets->paths);
    strv_done(&presets->env);
    strv_done(&presets->offline_env);
    *presets = (struct presets){0};
}

void presets_copy(const struct presets *presets, struct presets *ret)
{
    *ret = (struct presets){0};
    strv_push_all(&ret->places, strv_view(&presets->places));
    strv_push_all(&ret->paths, strv_view(&presets->paths));
    strv_push_all(&ret->env, strv_view(&presets->env));
    strv_push_all(&ret->offline_env, strv_view(&presets->offline_env));
}

int presets_make(const struct presets *presets, const char *home, struct err *err)
{
    for (size_t i = 0; i < presets->places.len; i++) {
        AUTO_FREE char *path = make_place(home, presets->places.items[i], err);

        if (!path)
            return -1;
        if (!str_eq(path, presets->paths.items[i]))
            return err_set(err, ERR_FORBIDDEN, "%s has become %s since the preset opened it",
                           presets->paths.items[i], path);
    }
    return 0;
}

int presets_check(const struct presets *presets, const struct access_map *map, struct err *err)
{
    for (size_t i = 0; map->restricted && i < presets->paths.len; i++) {
        const char *path = presets->paths.items[i];
        const struct access_entry *entry = access_map_exact(map, path);

        if (entry && entry->access == ACCESS_WRITE && entry->kind == ACCESS_DIR)
            continue;
        return err_set(err, ERR_FORBIDDEN, "a preset opens %s, which %s%s%s", path,
                       entry ? "another entry narrows (" : "is not there any more",
                       entry ? entry->origin : "", entry ? ")" : "");
    }
    return 0;
}

static void set(struct strv *env, const char *entry)
{
    const size_t len = strcspn(entry, "=") + 1;

    for (size_t i = 0; i < env->len; i++) {
        if (strncmp(env->items[i], entry, len) != 0)
            continue;
        free(env->items[i]);
        env->items[i] = alloc_str(entry);
        return;
    }
    strv_push(env, entry);
}

void presets_env(const struct presets *presets, bool is_offline, struct strv *ret)
{
    for (size_t i = 0; i < presets->env.len; i++)
        set(ret, presets->env.items[i]);
    for (size_t i = 0; is_offline && i < presets->offline_env.len; i++)
        set(ret, presets->offline_env.items[i]);
}

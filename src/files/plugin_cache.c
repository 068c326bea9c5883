/* See plugin_cache.h. Two levels of folders, of which each may be reached through a link, and one
 * of versions, which may not; names that could not be an id are no plugins. Whatever cannot be read
 * makes the answer a partial one, but a folder that is closed to us is as good as missing. */
#include "files/plugin_cache.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "files/error.h"
#include "files/folder.h"
#include "files/plugin_version.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    FOLDERS_MAX = 20000,
    REMOTE_BYTES_MAX = 16 << 10,
    REMOTE_ID_MAX = 1024, /* bytes */
    REMOTE_SCHEMA = 1,
};

#define REMOTE_FILE ".codex-remote-plugin-install.json"

#define ID_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

static bool is_made_of(const char *name, const char *bytes)
{
    return *name && name[strspn(name, bytes)] == '\0';
}

/* A name of a plugin, unlike that of a marketplace, may have single dots inside. */
static bool is_plugin_name(const char *name)
{
    return *name != '.' && !str_ends(name, ".") && !strstr(name, "..");
}

/* Names of folders made of `bytes`, sorted; links to folders, too, but for AT_SYMLINK_NOFOLLOW. */
static void list_folders(struct plugin_cache *cache, const char *path, const char *bytes, int flags,
                         struct strv *ret)
{
    const struct target target = {.path = (char *)path};
    AUTO(folder_close) struct folder folder = {0};
    const struct dirent *entry = NULL;
    struct err err;
    struct stat st;
    int status = folder_open(&folder, &target, &err);

    while (status == 0 && (status = folder_next(&folder, &entry, &err)) > 0) {
        status = 0;
        if (is_made_of(entry->d_name, bytes) &&
            !fstatat(dirfd(folder.stream), entry->d_name, &st, flags) && S_ISDIR(st.st_mode))
            strv_push(ret, entry->d_name);
        if (ret->len == FOLDERS_MAX)
            break;
    }
    cache->is_partial |= ret->len == FOLDERS_MAX || (status < 0 && err.sys != EACCES &&
                                                     err.sys != ENOENT && err.sys != ENOTDIR);
    strv_sort(ret);
}

/* Caller frees; NULL when there is none. */
static char *find_version(struct plugin_cache *cache, const char *package)
{
    AUTO(strv_done) struct strv versions = {0};
    const char *best = NULL;

    list_folders(cache, package, ID_BYTES ".+", AT_SYMLINK_NOFOLLOW, &versions);
    for (size_t i = 0; i < versions.len; i++) {
        const char *version = versions.items[i];

        if (str_eq(version, "local"))
            return alloc_str(version);
        if (!best || plugin_version_compare(best, version) <= 0)
            best = version;
    }
    return alloc_str(best);
}

static int parse_remote_id(const struct buf *text, char **ret, struct err *err)
{
    AUTO_JSON json_t *value = json_parse(text->len ? text->data : "", text->len, err);
    const char *id = json_string_value(json_object_get(value, "remote_plugin_id"));
    json_int_t schema = json_integer_value(json_object_get(value, "schema_version"));
    size_t len;

    if (!value)
        return -1;
    id += id ? strspn(id, " \t\r\n") : 0;
    len = id ? strlen(id) : 0;
    while (len > 0 && strchr(" \t\r\n", id[len - 1]))
        len--;
    if (schema != REMOTE_SCHEMA || len == 0 || len > REMOTE_ID_MAX)
        return err_set(err, ERR_INVALID, "it should have schema_version %d and remote_plugin_id",
                       REMOTE_SCHEMA);
    *ret = alloc_strn(id, len);
    return 0;
}

/* NULL when there is none. Caller frees. */
static char *find_remote_id(struct plugin_cache *cache, const char *package)
{
    AUTO_FREE char *path = path_join(package, REMOTE_FILE);
    const struct target target = {.path = path};
    AUTO(buf_done) struct buf text;
    char *id = NULL;
    struct err err;
    AUTO_CLOSE int fd = target_open_file(&target, O_RDONLY, &err);

    buf_init(&text, REMOTE_BYTES_MAX);
    if (fd < 0 && error_code(&err) == ERROR_NOT_FOUND)
        return NULL;
    if (fd < 0 || buf_read_fd(&text, fd, &err) || parse_remote_id(&text, &id, &err))
        cache->is_partial = true;
    return id;
}

static void add_package(struct plugin_cache *cache, const char *market, const char *name)
{
    AUTO_FREE char *package = path_join(market, name);
    AUTO_FREE char *version = find_version(cache, package);
    struct plugin *plugin;

    if (!version)
        return;
    cache->items = alloc_grow(cache->items, cache->len, &cache->cap, sizeof *cache->items);
    plugin = &cache->items[cache->len++];
    plugin->id = alloc_strf("%s@%s", name, path_name(market));
    plugin->root = path_join(package, version);
    plugin->remote_id = find_remote_id(cache, package);
    plugin->version = TAKE_PTR(version);
}

static void plugin_done(struct plugin *plugin)
{
    free(plugin->id);
    free(plugin->version);
    free(plugin->root);
    free(plugin->remote_id);
}

static int compare_ids(const void *a, const void *b)
{
    const struct plugin *left = a;
    const struct plugin *right = b;

    return strcmp(left->id, right->id);
}

/* The first name of a marketplace counts, however many links lead to it. */
static bool is_new_folder(struct strv *seen, const char *path)
{
    AUTO_FREE char *canonical = realpath(path, NULL);

    if (!canonical || strv_has(seen, canonical))
        return false;
    strv_push(seen, canonical);
    return true;
}

void plugin_cache_find(struct plugin_cache *ret, const char *codex_home)
{
    AUTO_FREE char *top = path_join(codex_home, "plugins/cache");
    AUTO(strv_done) struct strv markets = {0};
    AUTO(strv_done) struct strv seen = {0};
    struct plugin_cache cache = {0};

    list_folders(&cache, top, ID_BYTES, 0, &markets);
    for (size_t i = 0; i < markets.len; i++) {
        AUTO_FREE char *market = path_join(top, markets.items[i]);
        AUTO(strv_done) struct strv names = {0};

        if (!is_new_folder(&seen, market))
            continue;
        list_folders(&cache, market, ID_BYTES ".", 0, &names);
        for (size_t j = 0; j < names.len && cache.len < FOLDERS_MAX; j++)
            if (is_plugin_name(names.items[j]))
                add_package(&cache, market, names.items[j]);
    }
    if (cache.len)
        qsort(cache.items, cache.len, sizeof *cache.items, compare_ids);
    for (; cache.len > PLUGINS_MAX; cache.is_partial = true)
        plugin_done(&cache.items[--cache.len]);
    *ret = cache;
}

void plugin_cache_done(struct plugin_cache *cache)
{
    for (size_t i = 0; i < cache->len; i++)
        plugin_done(&cache->items[i]);
    free(cache->items);
}

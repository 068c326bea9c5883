/* See plugin_cache.h. Two levels of directories, of which each may be reached through a link, and
 * one of versions, which may not; names that could not be an id are no plugins. Whatever cannot be
 * read makes the answer a partial one, but a directory that is closed to us is as good as missing.
 *
 * Versions have the order of semver.org, point 9 to 11. Build metadata, which the standard gives no
 * order, is compared as pre-releases are, because two directories have to have one. */
#include "files/plugin_cache.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "files/call.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DIGITS "0123456789"
#define WORD_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" DIGITS "-"
#define ID_BYTES WORD_BYTES "_"

/* --- the order of versions --- */

/* Dot-separated identifiers up to `end`; numbers among them without leading zeros when `strict`. */
static bool are_identifiers(const char *text, const char *end, bool is_strict)
{
    while (text <= end) {
        const char *start = text;

        text += strspn(text, WORD_BYTES);
        if (text == start || (text < end && *text != '.'))
            return false;
        if (is_strict && strspn(start, DIGITS) >= (size_t)(text - start) && text - start > 1 &&
            *start == '0')
            return false;
        text++;
    }
    return true;
}

struct version {
    const char *numbers[3];
    size_t numbers_len[3];
    const char *pre; /* NULL: none */
    const char *pre_end;
    const char *build; /* NULL: none */
    const char *build_end;
};

static bool version_read(const char *text, struct version *ret)
{
    *ret = (struct version){0};
    for (int i = 0; i < 3; i++) {
        ret->numbers[i] = text;
        ret->numbers_len[i] = strspn(text, DIGITS);
        if (ret->numbers_len[i] == 0 || (*text == '0' && ret->numbers_len[i] > 1))
            return false;
        text += ret->numbers_len[i];
        if (i < 2 && *text++ != '.')
            return false;
    }
    if (*text == '-') {
        ret->pre = text + 1;
        ret->pre_end = text += strcspn(text, "+");
        if (!are_identifiers(ret->pre, ret->pre_end, true))
            return false;
    }
    if (*text == '+') {
        ret->build = text + 1;
        ret->build_end = text += strlen(text);
        if (!are_identifiers(ret->build, ret->build_end, false))
            return false;
    }
    return *text == '\0';
}

static int sign(long value)
{
    return (value > 0) - (value < 0);
}

static int compare_numbers(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len != b_len ? sign((long)a_len - (long)b_len) : memcmp(a, b, a_len);
}

static int compare_words(const char *a, size_t a_len, const char *b, size_t b_len)
{
    bool is_a_number = strspn(a, DIGITS) >= a_len;
    bool is_b_number = strspn(b, DIGITS) >= b_len;
    size_t len = a_len < b_len ? a_len : b_len;
    int order;

    if (is_a_number && is_b_number)
        return compare_numbers(a, a_len, b, b_len);
    if (is_a_number != is_b_number)
        return is_a_number ? -1 : 1;
    order = memcmp(a, b, len);
    return order ? order : sign((long)a_len - (long)b_len);
}

static int compare_identifiers(const char *a, const char *a_end, const char *b, const char *b_end)
{
    while (a < a_end && b < b_end) {
        const char *a_dot = memchr(a, '.', (size_t)(a_end - a));
        const char *b_dot = memchr(b, '.', (size_t)(b_end - b));
        size_t a_len = (size_t)((a_dot ? a_dot : a_end) - a);
        size_t b_len = (size_t)((b_dot ? b_dot : b_end) - b);
        int order = compare_words(a, a_len, b, b_len);

        if (order)
            return order;
        a += a_len + (a_dot ? 1 : 0);
        b += b_len + (b_dot ? 1 : 0);
    }
    return sign((long)(a < a_end) - (long)(b < b_end));
}

int plugin_version_compare(const char *a, const char *b)
{
    struct version left;
    struct version right;
    int order = 0;

    if (!version_read(a, &left) || !version_read(b, &right))
        return strcmp(a, b);
    for (int i = 0; !order && i < 3; i++)
        order = compare_numbers(left.numbers[i], left.numbers_len[i], right.numbers[i],
                                right.numbers_len[i]);
    if (!order && (!left.pre || !right.pre))
        order = (left.pre ? 0 : 1) - (right.pre ? 0 : 1);
    else if (!order)
        order = compare_identifiers(left.pre, left.pre_end, right.pre, right.pre_end);
    if (!order && (left.build || right.build))
        order = !left.build ? -1
                : !right.build
                    ? 1
                    : compare_identifiers(left.build, left.build_end, right.build, right.build_end);
    return order;
}

/* --- the cache --- */

enum {
    DIRS_MAX = 20000,
    REMOTE_BYTES_MAX = 16 << 10,
    REMOTE_ID_MAX = 1024, /* bytes */
    REMOTE_SCHEMA = 1,
};

#define REMOTE_FILE ".codex-remote-plugin-install.json"

/* Names of directories made of `bytes`, sorted; links to directories, too, but for
 * AT_SYMLINK_NOFOLLOW. */
static void list_dirs(struct plugin_cache *cache, const char *path, const char *bytes, int flags,
                      struct strv *ret)
{
    const struct target target = {.path = (char *)path};
    AUTO(dir_close) struct dir dir = {0};
    const struct dirent *entry = NULL;
    struct err err;
    struct stat st;
    int status = dir_open(&dir, &target, &err);

    while (status == 0 && (status = dir_next(&dir, &entry, &err)) > 0) {
        status = 0;
        if (!entry->d_name[strspn(entry->d_name, bytes)] &&
            !fstatat(dirfd(dir.stream), entry->d_name, &st, flags) && S_ISDIR(st.st_mode))
            strv_push(ret, entry->d_name);
        if (ret->len == DIRS_MAX)
            break;
    }
    cache->is_partial |= ret->len == DIRS_MAX || (status < 0 && err.sys != EACCES &&
                                                  err.sys != ENOENT && err.sys != ENOTDIR);
    strv_sort(ret);
}

/* Caller frees; NULL when there is none. */
static char *find_version(struct plugin_cache *cache, const char *package)
{
    AUTO(strv_done) struct strv versions = {0};
    const char *best = NULL;

    list_dirs(cache, package, ID_BYTES ".+", AT_SYMLINK_NOFOLLOW, &versions);
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

/* A name of a plugin, unlike that of a marketplace, may have single dots inside. */
static void add_package(struct plugin_cache *cache, const char *market, const char *name)
{
    AUTO_FREE char *package = path_join(market, name);
    AUTO_FREE char *version = NULL;
    struct plugin *plugin;

    if (*name == '.' || str_ends(name, ".") || strstr(name, ".."))
        return;
    version = find_version(cache, package);
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

void plugin_cache_find(struct plugin_cache *ret, const char *codex_home)
{
    AUTO_FREE char *top = path_join(codex_home, "plugins/cache");
    AUTO(strv_done) struct strv markets = {0};
    AUTO(strv_done) struct strv seen = {0};
    struct plugin_cache cache = {0};

    list_dirs(&cache, top, ID_BYTES, 0, &markets);
    for (size_t i = 0; i < markets.len; i++) {
        AUTO_FREE char *market = path_join(top, markets.items[i]);
        AUTO_FREE char *canonical = realpath(market, NULL);
        AUTO(strv_done) struct strv names = {0};

        if (!canonical || strv_has(&seen, canonical))
            continue; /* the first name of a marketplace counts, however many links lead to it */
        strv_push(&seen, canonical);
        list_dirs(&cache, market, ID_BYTES ".", 0, &names);
        for (size_t j = 0; j < names.len && cache.len < DIRS_MAX; j++)
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

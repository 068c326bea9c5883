/* See discover.h. One walk as fs/walk does it, bounded in depth, directories and names; then the files
 * are read, bounded each and together. What is missing is normal. The words of warnings and
 * failures, and every bound, are those of Codex 0.169.0 (tests/cases/discovery): a client may show
 * or look for them. */
#include "files/discover.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/utf8.h"
#include "files/call.h"
#include "files/target.h"

#include <fcntl.h>
#include <string.h>

enum {
    DEPTH_MAX = 6,
    DIRS_MAX = 2000,
    NAMES_MAX = 20000,
    FILE_BYTES_MAX = 1 << 20,
    BYTES_MAX = 16 << 20, /* of all files of one root */
};

/* By precedence. */
static const char *const manifests[] = {".codex-plugin/plugin.json", ".claude-plugin/plugin.json",
                                        ".cursor-plugin/plugin.json"};
enum { MANIFESTS = sizeof manifests / sizeof *manifests };

void found_done(struct found *found)
{
    free(found->root);
    json_decref(found->manifest);
    json_decref(found->parsed);
    json_decref(found->mcp);
    json_decref(found->apps);
    json_decref(found->skills);
    json_decref(found->namespaces);
    json_decref(found->warnings);
}

void found_warn(struct found *found, const char *before, const char *path, const char *behind)
{
    AUTO_FREE char *uri = file_uri_format(path);
    AUTO_FREE char *text = alloc_strf("%s %s%s", before, uri, behind);

    json_array_append_new(found->warnings, json_lossy(text));
}

static void warn_failure(struct found *found, const char *before, const char *path,
                         const struct err *failure)
{
    char why[ERROR_TEXT_SIZE];
    AUTO_FREE char *behind = NULL;

    error_text(failure, why);
    behind = alloc_strf(": %s", why);
    found_warn(found, before, path, behind);
}

/* --- one file --- */

static void warn_encoding(struct found *found, const char *path, const struct buf *text)
{
    size_t tail = 0;
    size_t good = utf8_valid_len(text->data, text->len, &tail);
    size_t bad = 0;
    AUTO_FREE char *behind = NULL;

    if (!tail)
        utf8_next(text->data + good, text->len - good, &bad);
    behind = tail ? alloc_strf(" is not UTF-8: incomplete utf-8 byte sequence from index %zu", good)
                  : alloc_strf(" is not UTF-8: invalid utf-8 sequence of %zu bytes from index %zu",
                               bad, good);
    found_warn(found, "capability file", path, behind);
}

/* There is a file, and room for it. */
static bool is_readable(struct found *found, const struct target *target)
{
    AUTO_FREE char *limit = alloc_strf(" exceeds the %d-byte limit", FILE_BYTES_MAX);
    struct stat st;
    struct err err;

    if (target_stat(target, &st, &err)) {
        if (error_code(&err) != ERROR_NOT_FOUND)
            warn_failure(found, "failed to inspect capability file", target->path, &err);
        return false;
    }
    if (!S_ISREG(st.st_mode))
        return false;
    if (st.st_size > FILE_BYTES_MAX)
        found_warn(found, "capability file", target->path, limit);
    else if (found->bytes + (size_t)st.st_size > BYTES_MAX)
        json_array_append_new(
            found->warnings,
            json_sprintf("capability root bundle exceeds the %d-byte limit", BYTES_MAX));
    else
        return true;
    return false;
}

/* {"path", "contents"}, NULL when it is not there or cannot be had. */
static json_t *find_file(struct found *found, const char *dir, const char *name)
{
    AUTO_FREE char *path = path_join(dir, name);
    const struct target target = {.path = path};
    AUTO(buf_done) struct buf text;
    AUTO_CLOSE int fd = -1;
    struct err err;

    buf_init(&text, FILE_BYTES_MAX);
    if (!is_readable(found, &target))
        return NULL;
    fd = target_open_file(&target, O_RDONLY, &err);
    if (fd < 0 || buf_read_fd(&text, fd, &err)) {
        warn_failure(found, "failed to read capability file", path, &err);
        return NULL;
    }
    if (text.len && !utf8_is_valid(text.data, text.len)) {
        warn_encoding(found, path, &text);
        return NULL;
    }
    found->bytes += text.len;
    return json_pack("{s:o, s:s%}", "path", target_uri_to_json(path), "contents",
                     text.len ? text.data : "", text.len);
}

/* --- manifests --- */

static json_t *find_manifest(struct found *found, const char *dir)
{
    json_t *file = NULL;

    for (size_t i = 0; !file && i < MANIFESTS; i++)
        file = find_file(found, dir, manifests[i]);
    return file;
}

/* The plugin that this directory lies in names its skills, too. */
static void find_outer_manifest(struct found *found)
{
    AUTO_FREE char *dir = alloc_str(found->root);
    json_t *file = NULL;

    while (!file && !str_eq(dir, "/")) {
        char *up = path_parent(dir);

        free(dir);
        dir = up;
        file = find_manifest(found, dir);
    }
    if (file)
        json_array_append_new(found->namespaces, file);
}

static const char *check_declared(const char *path)
{
    AUTO(strv_done) struct strv parts = {0};
    AUTO_FREE char *copy = alloc_str(path);
    char *rest = copy;

    if (!str_starts(path, "./"))
        return ": path must start with `./`";
    for (const char *part; (part = strsep(&rest, "/\\"));)
        strv_push(&parts, part);
    return path[2] && !strv_has(&parts, "..") ? NULL
                                              : ": path must remain below the capability root";
}

/* The file that the manifest names by `key`, or else the usual one. */
static json_t *find_declared(struct found *found, const char *key, const char *usual)
{
    const char *declared = json_string_value(json_object_get(found->parsed, key));
    AUTO_FREE char *before = alloc_strf("ignoring %s in", key);
    AUTO_FREE char *path = NULL;
    const char *wrong;

    if (!declared)
        return find_file(found, found->root, usual);
    wrong = check_declared(declared);
    if (wrong) {
        AUTO_FREE char *manifest = file_uri_parse(
            json_string_value(json_object_get(found->manifest, "path")), &(struct err){0});

        found_warn(found, before, manifest ? manifest : found->root, wrong);
        return find_file(found, found->root, usual);
    }
    path = path_clean(found->root, declared);
    return find_file(found, "/", path + 1);
}

static void look_at_plugin(struct found *found)
{
    json_t *manifest = find_manifest(found, found->root);
    const json_t *text = json_object_get(manifest, "contents");
    struct err err;

    if (!manifest) {
        find_outer_manifest(found);
        return;
    }
    json_array_append(found->namespaces, manifest);
    found->manifest = manifest;
    found->parsed = json_parse(json_string_value(text), json_string_length(text), &err);
    if (!json_is_object(json_object_get(found->parsed, "mcpServers")))
        found->mcp = find_declared(found, "mcpServers", ".mcp.json");
    found->apps = find_declared(found, "apps", ".app.json");
}

/* --- the walk --- */

/* What fs/walk answers for the directory; new reference. */
static json_t *walk(const struct found *found, struct err *err)
{
    AUTO_JSON json_t *params =
        json_pack("{s:o, s:{s:i, s:i, s:i, s:b, s:b}}", "path", target_uri_to_json(found->root),
                  "options", "maxDepth", DEPTH_MAX, "maxDirectories", DIRS_MAX, "maxEntries",
                  NAMES_MAX, "followDirectorySymlinks", true, "pruneHiddenDirectories", false);
    const struct files_request request = {.method = "fs/walk", .params = json_at_root(params)};
    AUTO(reply_done) struct reply reply;

    reply_init(&reply, NULL, NULL);
    if (files_walk(&request, &reply, err))
        return NULL;
    return json_parse(reply.text.data, reply.text.len, err);
}

/* The directory of the plugin whose manifest this is; NULL when it is not one. Caller frees. */
static char *plugin_uri(const char *uri)
{
    for (size_t i = 0; i < MANIFESTS; i++) {
        size_t len = strlen(uri) - strlen(manifests[i]) - 1;

        if (str_ends(uri, manifests[i]) && uri[len] == '/')
            return alloc_strn(uri, len);
    }
    return NULL;
}

/* The first manifest of each plugin below, whose directories `uris` names, sorted. */
static void add_inner_manifests(struct found *found, const struct strv *uris)
{
    for (size_t i = 0; i < uris->len; i++) {
        AUTO_FREE char *dir = file_uri_parse(uris->items[i], &(struct err){0});
        bool is_known = i > 0 && str_eq(uris->items[i], uris->items[i - 1]);
        json_t *file = NULL;

        if (dir && !is_known && !str_eq(dir, found->root))
            file = find_manifest(found, dir);
        if (file)
            json_array_append_new(found->namespaces, file);
    }
}

static void add_skills(struct found *found, const struct strv *uris)
{
    for (size_t i = 0; i < uris->len; i++) {
        AUTO_FREE char *path = file_uri_parse(uris->items[i], &(struct err){0});
        AUTO_FREE char *dir = path ? path_parent(path) : NULL;
        json_t *text = dir ? find_file(found, dir, "SKILL.md") : NULL;
        json_t *metadata = text ? find_file(found, dir, "agents/openai.yaml") : NULL;

        if (text)
            json_array_append_new(found->skills, json_pack("{s:o, s:o?}", "instructions", text,
                                                           "metadata", metadata));
    }
}

static void add_walk_warnings(struct found *found, const json_t *walked)
{
    const json_t *errors = json_object_get(walked, "errors");

    for (size_t i = 0; i < json_array_size(errors); i++) {
        const json_t *error = json_array_get(errors, i);

        json_array_append_new(found->warnings,
                              json_sprintf("failed to scan capability path %s: %s",
                                           json_string_value(json_object_get(error, "path")),
                                           json_string_value(json_object_get(error, "message"))));
    }
    if (json_is_true(json_object_get(walked, "truncated")))
        found_warn(found, "capability scan reached its traversal limit (root:", found->root, ")");
}

static void add_walked(struct found *found, const json_t *walked)
{
    const json_t *entries = json_object_get(walked, "entries");
    AUTO(strv_done) struct strv skills = {0};
    AUTO(strv_done) struct strv inner = {0};

    add_walk_warnings(found, walked);
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        const char *uri = json_string_value(json_object_get(entry, "path"));
        char *plugin;

        if (!str_eq(json_string_value(json_object_get(entry, "kind")), "file"))
            continue;
        if (str_ends(uri, "/SKILL.md"))
            strv_push(&skills, uri);
        plugin = plugin_uri(uri);
        if (plugin)
            strv_push_take(&inner, plugin);
    }
    strv_sort(&skills);
    strv_sort(&inner);
    look_at_plugin(found);
    add_inner_manifests(found, &inner);
    add_skills(found, &skills);
}

/* --- the whole --- */

static int check_root(const struct found *found, struct err *err)
{
    const struct target target = {.path = found->root};
    AUTO_FREE char *uri = file_uri_format(found->root);
    char why[ERROR_TEXT_SIZE];
    struct err failure;
    struct stat st;

    if (target_stat(&target, &st, &failure)) {
        error_text(&failure, why);
        err_set(err, ERR_INVALID, "failed to inspect capability root %s: %s", uri, why);
        err->sys = failure.sys;
        return -1;
    }
    return S_ISDIR(st.st_mode)
               ? 0
               : err_set(err, ERR_INVALID, "capability root %s is not a directory", uri);
}

int found_look(struct found *ret, const char *root, struct err *err)
{
    AUTO(found_done)
    struct found found = {.root = alloc_str(root),
                          .skills = json_array(),
                          .namespaces = json_array(),
                          .warnings = json_array()};
    AUTO_JSON json_t *walked = NULL;
    struct err failure;

    if (check_root(&found, err))
        return -1;
    walked = walk(&found, &failure);
    if (!walked)
        warn_failure(&found, "failed to scan capability path", root, &failure);
    add_walked(&found, walked);
    *ret = found;
    found = (struct found){0};
    return 0;
}

/* One root of capabilityRoots/discoverV1. */
int files_discover(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target root = {0};
    AUTO(found_done) struct found found = {0};
    AUTO_JSON json_t *plugin = NULL;
    AUTO_JSON json_t *answer = NULL;
    AUTO_FREE char *text = NULL;

    if (target_read(&request->params, "path", &root, err) || found_look(&found, root.path, err))
        return -1;
    plugin = found.manifest ? json_pack("{s:O, s:O?, s:O?}", "manifest", found.manifest,
                                        "mcpConfig", found.mcp, "appsConfig", found.apps)
                            : json_null();
    answer = json_pack("{s:O, s:O, s:O, s:O}", "plugin", plugin, "skills", found.skills,
                       "namespaceManifests", found.namespaces, "warnings", found.warnings);
    text = json_dumps(answer, JSON_COMPACT);
    return reply_str(reply, text, err);
}

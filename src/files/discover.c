/* What a folder offers a client of Codex: skills (SKILL.md, with agents/openai.yaml beside it),
 * plugin manifests, and the files that the folder's own manifest names. One bounded walk, breadth
 * first; hidden folders and links are left alone, and what cannot be read is a warning, not a
 * failure. The answer is that of one root of capabilityRoots/discoverV1. */
#include "files/call.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/strv.h"
#include "base/utf8.h"
#include "files/error.h"
#include "files/folder.h"
#include "files/target.h"

#include <fcntl.h>
#include <unistd.h>

enum {
    DISCOVER_DEPTH_MAX = 8,
    DISCOVER_FOLDERS_MAX = 4000,
    DISCOVER_FILES_MAX = 1000,
    DISCOVER_FILE_MAX = 1 << 20, /* bytes */
};

static const char *const manifests[] = {".codex-plugin/plugin.json", ".claude-plugin/plugin.json",
                                        ".cursor-plugin/plugin.json"};

struct discovery {
    const char *root;
    struct strv todo;   /* folders, in the order of the walk */
    json_t *skills;     /* of {"instructions", "metadata"} */
    json_t *namespaces; /* of {"path", "contents"} */
    json_t *warnings;   /* of texts */
    json_t *plugin;     /* or null */
    size_t files;
};

static void discovery_done(struct discovery *discovery)
{
    strv_done(&discovery->todo);
    json_decref(discovery->skills);
    json_decref(discovery->namespaces);
    json_decref(discovery->warnings);
    json_decref(discovery->plugin);
}

static void warn(struct discovery *discovery, const char *path, const char *why)
{
    AUTO_FREE char *text = alloc_strf("%s: %s", path, why);

    json_array_append_new(discovery->warnings, json_lossy(text));
}

/* Text of a file: 1, 0 when there is none, -1 with the reason. */
static int read_text(const char *path, struct buf *ret, struct err *err)
{
    const struct target target = {.path = (char *)path, .no_follow = true};
    AUTO_CLOSE int fd = target_open_file(&target, O_RDONLY, err);

    if (fd < 0)
        return error_code(err) == ERROR_NOT_FOUND ? 0 : -1;
    if (buf_read_fd(ret, fd, err))
        return -1;
    if (!utf8_is_valid(ret->data ? ret->data : "", ret->len))
        return err_set(err, ERR_INVALID, "it is not UTF-8");
    return 1;
}

/* {"path", "contents"}; NULL when it is not there or cannot be had. */
static json_t *find_text(struct discovery *discovery, const char *folder, const char *name)
{
    AUTO_FREE char *path = path_join(folder, name);
    AUTO(buf_done) struct buf text;
    char why[ERROR_TEXT_SIZE];
    struct err err;
    int status;

    buf_init(&text, DISCOVER_FILE_MAX);
    status = read_text(path, &text, &err);
    if (status < 0) {
        error_text(&err, why);
        warn(discovery, path, why);
    }
    if (status <= 0 || discovery->files == DISCOVER_FILES_MAX)
        return NULL;
    discovery->files++;
    return json_pack("{s:o, s:s%}", "path", target_uri_to_json(path), "contents",
                     text.data ? text.data : "", text.len);
}

static void add_skill(struct discovery *discovery, const char *folder)
{
    json_t *instructions = find_text(discovery, folder, "SKILL.md");
    json_t *metadata = instructions ? find_text(discovery, folder, "agents/openai.yaml") : NULL;

    if (instructions)
        json_array_append_new(discovery->skills, json_pack("{s:o, s:o?}", "instructions",
                                                           instructions, "metadata", metadata));
}

/* A file inside the root that the manifest names by `key`, or the one that is there by custom. */
static json_t *find_declared(struct discovery *discovery, const json_t *manifest, const char *key,
                             const char *custom)
{
    const char *declared = json_string_value(json_object_get(manifest, key));
    AUTO_FREE char *path = NULL;

    if (!declared)
        return custom ? find_text(discovery, discovery->root, custom) : NULL;
    path = path_clean(discovery->root, declared);
    if (path_is_within(path, discovery->root))
        return find_text(discovery, "/", path + 1);
    warn(discovery, path, "it is not below the plugin's folder");
    return NULL;
}

static void set_plugin(struct discovery *discovery, json_t *file)
{
    AUTO_JSON json_t *manifest = NULL;
    struct err err;
    const json_t *text = json_object_get(file, "contents");

    manifest = json_parse(json_string_value(text), json_string_length(text), &err);
    if (!manifest)
        warn(discovery, "plugin.json", err.msg);
    discovery->plugin = json_pack("{s:O, s:o?, s:o?}", "manifest", file, "mcpConfig",
                                  find_declared(discovery, manifest, "mcpServers", ".mcp.json"),
                                  "appsConfig", find_declared(discovery, manifest, "apps", NULL));
}

/* The first that is there counts. */
static void add_manifest(struct discovery *discovery, const char *folder, bool is_root)
{
    json_t *file = NULL;

    for (size_t i = 0; !file && i < sizeof manifests / sizeof *manifests; i++)
        file = find_text(discovery, folder, manifests[i]);
    if (!file)
        return;
    if (is_root)
        set_plugin(discovery, file);
    json_array_append_new(discovery->namespaces, file);
}

/* Pushes the folders in it that are neither hidden nor links. */
static int push_folders(struct discovery *discovery, const char *path, struct err *err)
{
    const struct target target = {.path = (char *)path};
    AUTO(folder_close) struct folder folder = {0};
    AUTO(strv_done) struct strv names = {0};
    const struct dirent *entry = NULL;
    int status;

    if (folder_open(&folder, &target, err))
        return -1;
    while ((status = folder_next(&folder, &entry, err)) > 0)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            strv_push(&names, entry->d_name);
    strv_sort(&names);
    for (size_t i = 0; i < names.len; i++)
        strv_push_take(&discovery->todo, path_join(path, names.items[i]));
    return status;
}

static void visit(struct discovery *discovery, const char *path)
{
    size_t depth = path_depth(path) - path_depth(discovery->root);
    char why[ERROR_TEXT_SIZE];
    struct err err;

    add_manifest(discovery, path, depth == 0);
    add_skill(discovery, path);
    if (depth < DISCOVER_DEPTH_MAX && push_folders(discovery, path, &err)) {
        error_text(&err, why);
        warn(discovery, path, why);
    }
}

static int send_json(struct reply *reply, json_t *value, struct err *err)
{
    AUTO_FREE char *text = json_dumps(value, JSON_COMPACT);

    json_decref(value);
    return reply_str(reply, text, err);
}

int files_discover(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target root = {0};
    AUTO(discovery_done)
    struct discovery discovery = {.skills = json_array(),
                                  .namespaces = json_array(),
                                  .warnings = json_array(),
                                  .plugin = NULL};
    struct stat st;

    if (target_read(&request->params, "path", &root, err) || target_stat(&root, &st, err))
        return -1;
    discovery.root = root.path;
    strv_push(&discovery.todo, root.path);
    for (size_t i = 0; i < discovery.todo.len && i < DISCOVER_FOLDERS_MAX; i++) {
        AUTO_FREE char *path = alloc_str(discovery.todo.items[i]); /* the list moves */

        visit(&discovery, path);
    }
    if (discovery.todo.len > DISCOVER_FOLDERS_MAX || discovery.files == DISCOVER_FILES_MAX)
        warn(&discovery, root.path, "there is more than was looked at");
    return send_json(reply,
                     json_pack("{s:O?, s:O, s:O, s:O}", "plugin", discovery.plugin, "skills",
                               discovery.skills, "namespaceManifests", discovery.namespaces,
                               "warnings", discovery.warnings),
                     err);
}

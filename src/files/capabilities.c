/* capabilities/discoverV2: what this host offers a client of Codex beyond a project: the plugins
 * that are installed, and the skills in fixed directories of Codex's home, the user and the system.
 *
 * Everything is found and read here, inside the sandbox of the call: what its commands could not
 * read is not there. Texts of skills stay behind, only what they say of themselves is told. A skill
 * has the name that it gives itself, or that of its directory, behind the name of the plugin that it
 * lies in; which manifests are taken for one is what Codex 0.169.0 does (tests/cases/discovery).
 *
 * The answer is bounded in capabilities and bytes; what was wrong is a warning: first a sentence in
 * the words of Codex 0.169.0, behind it, what a person needs to mend it. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "files/call.h"
#include "files/discover.h"
#include "files/plugin_cache.h"
#include "files/skill.h"
#include "files/target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- plugins and skills, made of what lies in a directory --- */

enum { FULL_NAME_MAX = 2 * SKILL_NAME_MAX + 1 }; /* characters of PLUGIN:SKILL */

static void warn(struct found *found, const char *what, const char *path, const char *why)
{
    AUTO_FREE char *behind = alloc_strf(": %s", why);

    found_warn(found, what, path, behind);
}

/* --- names --- */

static char *path_of(const json_t *file)
{
    return file_uri_parse(json_string_value(json_object_get(file, "path")), &(struct err){0});
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

/* The name of a plugin by its manifest, or else by its directory. NULL when the manifest is not valid.
 * Caller frees. */
static char *manifest_name(const json_t *manifest, const char *dir)
{
    const json_t *name = json_object_get(manifest, "name");

    if (!json_is_object(manifest) || (name && !json_is_string(name)))
        return NULL;
    return alloc_str(name && !is_blank(json_string_value(name)) ? json_string_value(name)
                                                                : path_name(dir));
}

struct namespace
{
    char *dir;
    char *name;
};

struct namespaces {
    struct namespace *items;
    size_t len;
    size_t cap;
};

static void namespaces_done(struct namespaces *spaces)
{
    for (size_t i = 0; i < spaces->len; i++) {
        free(spaces->items[i].dir);
        free(spaces->items[i].name);
    }
    free(spaces->items);
}

/* Of each manifest that says one. */
static void namespaces_read(const struct found *found, struct namespaces *ret)
{
    for (size_t i = 0; i < json_array_size(found->namespaces); i++) {
        const json_t *file = json_array_get(found->namespaces, i);
        const json_t *text = json_object_get(file, "contents");
        AUTO_JSON json_t *manifest =
            json_parse(json_string_value(text), json_string_length(text), &(struct err){0});
        AUTO_FREE char *path = path_of(file);
        AUTO_FREE char *inner = path ? path_parent(path) : NULL;
        AUTO_FREE char *dir = inner ? path_parent(inner) : NULL;
        char *name = dir ? manifest_name(manifest, dir) : NULL;

        if (!name)
            continue;
        ret->items = alloc_grow(ret->items, ret->len, &ret->cap, sizeof *ret->items);
        ret->items[ret->len++] = (struct namespace){.dir = TAKE_PTR(dir), .name = name};
    }
}

/* Of the nearest directory above; NULL when there is none. */
static const char *namespaces_find(const struct namespaces *spaces, const char *path)
{
    const struct namespace *best = NULL;

    for (size_t i = 0; i < spaces->len; i++)
        if (path_is_within(path, spaces->items[i].dir) &&
            (!best || strlen(spaces->items[i].dir) > strlen(best->dir)))
            best = &spaces->items[i];
    return best ? best->name : NULL;
}

/* --- skills --- */

/* "PLUGIN:SKILL". Caller frees; NULL when it is too long. */
static char *full_name(const char *space, const char *path, const char *own)
{
    AUTO_FREE char *dir = path_parent(path);
    AUTO_FREE char *name = own ? alloc_str(own) : text_one_line(path_name(dir));
    const char *last = *name ? name : "skill";
    char *full = space ? alloc_strf("%s:%s", space, last) : alloc_str(last);
    size_t max = space ? FULL_NAME_MAX : SKILL_NAME_MAX;

    if (text_characters(last) <= SKILL_NAME_MAX && text_characters(full) <= max)
        return full;
    free(full);
    return NULL;
}

static void add_metadata(struct found *found, json_t *skill, const json_t *file)
{
    const json_t *text = json_object_get(file, "contents");
    AUTO_FREE char *path = NULL;
    struct err err;

    if (!json_is_object(file)) {
        skill_metadata_none(skill);
        return;
    }
    if (skill_metadata_add(skill, json_string_value(text), json_string_length(text), &err) == 0)
        return;
    path = path_of(file);
    warn(found, "ignoring", path, err.msg);
}

/* New reference; NULL when it is no skill. */
static json_t *make_skill(struct found *found, const struct namespaces *spaces, const json_t *files)
{
    const json_t *file = json_object_get(files, "instructions");
    const json_t *text = json_object_get(file, "contents");
    AUTO(skill_text_done) struct skill_text skill = {0};
    AUTO_FREE char *path = path_of(file);
    AUTO_FREE char *name = NULL;
    json_t *made;
    struct err err;

    if (skill_text_parse(json_string_value(text), json_string_length(text), &skill, &err)) {
        warn(found, "invalid skill metadata at", path, err.msg);
        return NULL;
    }
    name = full_name(namespaces_find(spaces, path), path, skill.name);
    if (!name) {
        warn(found, "invalid skill metadata at", path, "its name is too long");
        return NULL;
    }
    made = json_pack("{s:s, s:s, s:s?, s:O}", "name", name, "description", skill.description,
                     "shortDescription", skill.short_description, "path",
                     json_object_get(file, "path"));
    add_metadata(found, made, json_object_get(files, "metadata"));
    return made;
}

/* An array; new reference. What is no skill is left out, with a warning of `found`. */
static json_t *capability_skills(struct found *found)
{
    AUTO(namespaces_done) struct namespaces spaces = {0};
    json_t *skills = json_array();

    namespaces_read(found, &spaces);
    for (size_t i = 0; i < json_array_size(found->skills); i++) {
        json_t *skill = make_skill(found, &spaces, json_array_get(found->skills, i));

        if (skill)
            json_array_append_new(skills, skill);
    }
    return skills;
}

/* NULL, or text; false when it is something else. */
static bool read_text_member(const json_t *object, const char *key, const char **ret)
{
    const json_t *value = json_object_get(object, key);

    *ret = json_string_value(value);
    return !value || json_is_null(value) || json_is_string(value);
}

/* What people call it. Caller frees; NULL when the manifest is not valid. */
static char *display_name(const json_t *manifest, const char *name)
{
    const json_t *face = json_object_get(manifest, "interface");
    const char *shown = NULL;
    const char *apps = NULL;
    size_t len;

    if (!read_text_member(manifest, "apps", &apps) ||
        (face && !json_is_null(face) && !json_is_object(face)) ||
        !read_text_member(face, "displayName", &shown))
        return NULL;
    if (!shown || is_blank(shown))
        return alloc_str(name);
    shown += strspn(shown, " \t\r\n");
    len = strlen(shown);
    while (strchr(" \t\r\n", shown[len - 1]))
        len--;
    return alloc_strn(shown, len);
}

/* The servers that stand in the manifest itself, or the file. New reference, or NULL. */
static json_t *mcp_file(const struct found *found)
{
    const json_t *inside = json_object_get(found->parsed, "mcpServers");
    AUTO_FREE char *text = json_is_object(inside) ? json_dumps(inside, JSON_COMPACT) : NULL;

    return text ? json_pack("{s:O, s:s}", "path", json_object_get(found->manifest, "path"),
                            "contents", text)
                : json_incref(found->mcp);
}

static void warn_missing(struct found *found, const char *key, const json_t *file)
{
    const char *declared = json_string_value(json_object_get(found->parsed, key));
    AUTO_FREE char *path = declared && !file ? path_clean(found->root, declared) : NULL;

    if (path)
        found_warn(found, "the manifest names a file that is not there:", path, "");
}

/* With these skills. New reference; NULL when it is no plugin, with a warning. */
static json_t *capability_plugin(struct found *found, const struct plugin *plugin, json_t *skills)
{
    AUTO_FREE char *name = manifest_name(found->parsed, plugin->root);
    AUTO_FREE char *shown = name ? display_name(found->parsed, name) : NULL;

    if (!shown) {
        found_warn(found, "the plugin at", plugin->root, " has no manifest that makes sense");
        return NULL;
    }
    warn_missing(found, "mcpServers", found->mcp);
    warn_missing(found, "apps", found->apps);
    return json_pack("{s:s, s:s, s:s?, s:s, s:o, s:{s:O, s:o?, s:O?}, s:O}", "id", plugin->id,
                     "displayName", shown, "remotePluginId", plugin->remote_id, "version",
                     plugin->version, "root", target_uri_to_json(plugin->root), "files", "manifest",
                     found->manifest, "mcpConfig", mcp_file(found), "appsConfig", found->apps,
                     "skills", skills);
}

/* --- the inventory --- */

enum {
    CAPABILITIES_MAX = 2048,
    BYTES_MAX = 4 << 20,
    WARNINGS_MAX = 64,
};

struct inventory {
    json_t *plugins;
    json_t *skills;
    json_t *details; /* of what could not be loaded */
    size_t count;
    size_t bytes;
    bool is_partial;   /* places could not be listed */
    bool is_truncated; /* there is more than may be told */
};

static void inventory_done(struct inventory *inventory)
{
    json_decref(inventory->plugins);
    json_decref(inventory->skills);
    json_decref(inventory->details);
}

static bool inventory_admit(struct inventory *inventory, size_t count, const json_t *value)
{
    size_t bytes = json_dumpb(value, NULL, 0, JSON_COMPACT);

    if (inventory->count + count > CAPABILITIES_MAX || inventory->bytes + bytes > BYTES_MAX) {
        inventory->is_truncated = true;
        return false;
    }
    inventory->count += count;
    inventory->bytes += bytes;
    return true;
}

/* --- one place --- */

/* The skills there; a new reference, or NULL. A directory that is missing, closed or none does not
 * count. */
static json_t *look_at(struct inventory *inventory, const char *path, struct found *ret_found)
{
    const struct target target = {.path = (char *)path};
    struct err err;
    struct stat st;

    if (target_stat(&target, &st, &err) || !S_ISDIR(st.st_mode))
        return NULL;
    if (found_look(ret_found, path, &err)) {
        json_array_append_new(inventory->details, json_lossy(err.msg));
        return NULL;
    }
    return capability_skills(ret_found);
}

static void add_skill_dir(struct inventory *inventory, const char *id, const char *path)
{
    AUTO(found_done) struct found found = {0};
    AUTO_JSON json_t *skills = look_at(inventory, path, &found);
    AUTO_JSON json_t *root = json_pack("{s:s, s:o}", "id", id, "path", target_uri_to_json(path));

    json_array_extend(inventory->details, found.warnings);
    for (size_t i = 0; i < json_array_size(skills); i++) {
        json_t *skill = json_array_get(skills, i);

        json_object_set(skill, "discoveryRoot", root);
        if (inventory_admit(inventory, 1, skill))
            json_array_append(inventory->skills, skill);
    }
}

/* Only so many skills of a plugin are told as there is room for. */
static void add_plugin(struct inventory *inventory, const struct plugin *plugin)
{
    AUTO(found_done) struct found found = {0};
    AUTO_JSON json_t *skills = look_at(inventory, plugin->root, &found);
    AUTO_JSON json_t *made = NULL;
    size_t room = CAPABILITIES_MAX - inventory->count;

    if (!skills)
        return;
    inventory->is_truncated |= json_array_size(skills) + 1 > room;
    while (json_array_size(skills) > 0 && json_array_size(skills) + 1 > room)
        json_array_remove(skills, json_array_size(skills) - 1);
    made = capability_plugin(&found, plugin, skills);
    json_array_extend(inventory->details, found.warnings);
    if (made && inventory_admit(inventory, 1 + json_array_size(skills), made))
        json_array_append(inventory->plugins, made);
}

/* --- the answer --- */

static json_t *make_warnings(const struct inventory *inventory)
{
    json_t *warnings = json_array();

    if (inventory->is_truncated)
        json_array_append_new(warnings, json_string("capability discovery size limit reached"));
    if (inventory->is_partial)
        json_array_append_new(warnings, json_string("some capability locations could not be "
                                                    "resolved; discovery may be incomplete"));
    if (json_array_size(inventory->details))
        json_array_append_new(warnings, json_string("some capability metadata could not be loaded; "
                                                    "discovery may be incomplete"));
    json_array_extend(warnings, inventory->details);
    while (json_array_size(warnings) > WARNINGS_MAX)
        json_array_remove(warnings, json_array_size(warnings) - 1);
    return warnings;
}

int files_capabilities(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target codex = {0};
    AUTO(target_done) struct target home = {0};
    AUTO(target_done) struct target system = {0};
    AUTO(inventory_done)
    struct inventory inventory = {
        .plugins = json_array(), .skills = json_array(), .details = json_array()};
    AUTO(plugin_cache_done) struct plugin_cache cache = {0};
    AUTO_FREE char *own = NULL;
    AUTO_FREE char *users = NULL;
    AUTO_FREE char *systems = NULL;
    AUTO_JSON json_t *answer = NULL;
    AUTO_FREE char *text = NULL;

    if (target_read(&request->params, "codexHome", &codex, err) ||
        target_read(&request->params, "userHome", &home, err) ||
        target_read(&request->params, "system", &system, err))
        return -1;
    plugin_cache_find(&cache, codex.path);
    inventory.is_partial = cache.is_partial;
    for (size_t i = 0; i < cache.len && inventory.count < CAPABILITIES_MAX; i++)
        add_plugin(&inventory, &cache.items[i]);
    own = path_join(codex.path, "skills");
    users = path_join(home.path, ".agents/skills");
    systems = path_join(system.path, "skills");
    add_skill_dir(&inventory, "codex-home-skills", own);
    if (!str_eq(users, own))
        add_skill_dir(&inventory, "user-agent-skills", users);
    add_skill_dir(&inventory, "system-skills", systems);
    answer = json_pack("{s:O, s:O, s:o}", "plugins", inventory.plugins, "skills", inventory.skills,
                       "warnings", make_warnings(&inventory));
    text = json_dumps(answer, JSON_COMPACT);
    return reply_str(reply, text, err);
}

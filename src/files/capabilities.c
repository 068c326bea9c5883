/* capabilities/discoverV2: what this host offers a client of Codex beyond a project: the plugins
 * that are installed, and the skills in fixed folders of Codex's home, the user and the system.
 *
 * Everything is found and read here, inside the sandbox of the call: what its commands could not
 * read is not there. Texts of skills stay behind, only what they say of themselves is told. The
 * answer is bounded in capabilities and bytes; what was wrong is a warning: first a sentence in the
 * words of Codex 0.169.0, behind it, what a person needs to mend it. */
#include "files/call.h"

#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "files/capability.h"
#include "files/found.h"
#include "files/plugin_cache.h"
#include "files/target.h"

#include <sys/stat.h>

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

/* The size of its JSON. */
static size_t json_size(const json_t *value)
{
    return json_dumpb(value, NULL, 0, JSON_COMPACT);
}

static bool inventory_admit(struct inventory *inventory, size_t count, const json_t *value)
{
    size_t bytes = json_size(value);

    if (inventory->count + count > CAPABILITIES_MAX || inventory->bytes + bytes > BYTES_MAX) {
        inventory->is_truncated = true;
        return false;
    }
    inventory->count += count;
    inventory->bytes += bytes;
    return true;
}

/* --- one place --- */

/* A folder that can be looked through: what is missing, closed or no folder is none. */
static bool is_folder(const char *path)
{
    const struct target target = {.path = (char *)path};
    struct err err;
    struct stat st;

    return target_stat(&target, &st, &err) == 0 && S_ISDIR(st.st_mode);
}

static void inventory_keep(struct inventory *inventory, const struct found *found)
{
    json_array_extend(inventory->details, found->warnings);
}

static void inventory_fail(struct inventory *inventory, const struct err *err)
{
    json_array_append_new(inventory->details, json_lossy(err->msg));
}

static void add_skill_folder(struct inventory *inventory, const char *id, const char *path)
{
    AUTO(found_done) struct found found = {0};
    AUTO_JSON json_t *skills = NULL;
    AUTO_JSON json_t *root = NULL;
    struct err err;

    if (!is_folder(path))
        return;
    if (found_look(&found, path, &err)) {
        inventory_fail(inventory, &err);
        return;
    }
    skills = capability_skills(&found);
    root = json_pack("{s:s, s:o}", "id", id, "path", target_uri_to_json(path));
    inventory_keep(inventory, &found);
    for (size_t i = 0; i < json_array_size(skills); i++) {
        json_t *skill = json_array_get(skills, i);

        json_object_set(skill, "discoveryRoot", root);
        if (inventory_admit(inventory, 1, skill))
            json_array_append(inventory->skills, skill);
    }
}

/* --- plugins --- */

/* Only so many skills of a plugin are told as there is room for. */
static void inventory_fit(struct inventory *inventory, json_t *skills)
{
    size_t room = CAPABILITIES_MAX - inventory->count;

    inventory->is_truncated |= json_array_size(skills) + 1 > room;
    while (json_array_size(skills) > 0 && json_array_size(skills) + 1 > room)
        json_array_remove(skills, json_array_size(skills) - 1);
}

static void add_plugin(struct inventory *inventory, const struct plugin *plugin)
{
    AUTO(found_done) struct found found = {0};
    AUTO_JSON json_t *skills = NULL;
    AUTO_JSON json_t *made = NULL;
    struct err err;

    if (!is_folder(plugin->root))
        return;
    if (found_look(&found, plugin->root, &err)) {
        inventory_fail(inventory, &err);
        return;
    }
    skills = capability_skills(&found);
    inventory_fit(inventory, skills);
    made = capability_plugin(&found, plugin, skills);
    inventory_keep(inventory, &found);
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

static void look_around(struct inventory *inventory, const char *codex, const char *home,
                        const char *system)
{
    AUTO(plugin_cache_done) struct plugin_cache cache = {0};
    AUTO_FREE char *own = path_join(codex, "skills");
    AUTO_FREE char *users = path_join(home, ".agents/skills");
    AUTO_FREE char *systems = path_join(system, "skills");

    plugin_cache_find(&cache, codex);
    inventory->is_partial = cache.is_partial;
    for (size_t i = 0; i < cache.len && inventory->count < CAPABILITIES_MAX; i++)
        add_plugin(inventory, &cache.items[i]);
    add_skill_folder(inventory, "codex-home-skills", own);
    if (!str_eq(users, own))
        add_skill_folder(inventory, "user-agent-skills", users);
    add_skill_folder(inventory, "system-skills", systems);
}

int files_capabilities(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target codex = {0};
    AUTO(target_done) struct target home = {0};
    AUTO(target_done) struct target system = {0};
    AUTO(inventory_done)
    struct inventory inventory = {
        .plugins = json_array(), .skills = json_array(), .details = json_array()};
    AUTO_JSON json_t *answer = NULL;
    AUTO_FREE char *text = NULL;

    if (target_read(&request->params, "codexHome", &codex, err) ||
        target_read(&request->params, "userHome", &home, err) ||
        target_read(&request->params, "system", &system, err))
        return -1;
    look_around(&inventory, codex.path, home.path, system.path);
    answer = json_pack("{s:O, s:O, s:o}", "plugins", inventory.plugins, "skills", inventory.skills,
                       "warnings", make_warnings(&inventory));
    text = json_dumps(answer, JSON_COMPACT);
    return reply_str(reply, text, err);
}

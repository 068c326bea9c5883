/* See profile_json.h.
 *
 * Which shape a text has is decided once, by its `type` key or the absence of one; each shape has a
 * reader of its own, and all of them end in the same struct. The older shapes are closed: they will
 * not grow, so an unknown key in one is a mistake, and ignoring it could widen what it says.
 *
 * An entry that Codex itself did not know (kind "unknown") is kept, so that it survives being read and
 * written, and is ignored when the profile is resolved. Everything else that is not understood, a
 * special path of another kind as well, is an error: ignoring what denies could widen the rest. */
#include "policy/profile_json.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"

#include <limits.h>

/* --- entries --- */

enum { ENTRIES_MAX = 4096 /* in one list */ };

/* The first word of a kind is the one that is written. */
static const struct special_kind {
    const char *word;
    enum profile_path_kind kind;
} special_kinds[] = {
    {"root", PROFILE_PATH_ROOT},
    {"minimal", PROFILE_PATH_MINIMAL},
    {"project_roots", PROFILE_PATH_PROJECT_ROOTS},
    {"projectRoots", PROFILE_PATH_PROJECT_ROOTS},
    {"current_working_directory", PROFILE_PATH_PROJECT_ROOTS},
    {"currentWorkingDirectory", PROFILE_PATH_PROJECT_ROOTS},
    {"tmpdir", PROFILE_PATH_TMPDIR},
    {"slash_tmp", PROFILE_PATH_SLASH_TMP},
    {"slashTmp", PROFILE_PATH_SLASH_TMP},
    {"gpu", PROFILE_PATH_GPU},
    {"unknown", PROFILE_PATH_UNKNOWN},
};

enum { SPECIAL_KINDS = sizeof special_kinds / sizeof *special_kinds };

/* The field under its snake_case or its camelCase name (NULL: there is none). Both at once fail. */
static int json_field_either(const struct json_at *at, const char *snake, const char *camel,
                             struct json_at *ret, struct err *err)
{
    struct json_at field = json_at_field(at, snake);
    struct json_at other = camel ? json_at_field(at, camel) : (struct json_at){0};

    if (field.value && other.value)
        return json_at_fail(&other, err, "the same as \"%s\", which is there too", snake);
    *ret = other.value ? other : field;
    return 0;
}

/* What an entry owns while it is read; profile_entries_add() copies. */
static void entry_done(struct profile_entry *entry)
{
    free(entry->path);
    free(entry->subpath);
    free(entry->origin);
}

/* --- in --- */

static int read_path(const struct json_at *at, char **ret, struct err *err)
{
    const char *text;
    struct err why;

    if (json_at_string(at, &text, err))
        return -1;
    if (text[0] == '/') {
        *ret = alloc_str(text);
        return 0;
    }
    *ret = file_uri_parse(text, &why);
    return *ret ? 0 : json_at_fail(at, err, "%s", why.msg);
}

static int read_subpath(const struct json_at *at, struct profile_entry *entry, struct err *err)
{
    const char *text;

    if (!json_at_is_given(at))
        return 0;
    if (json_at_string(at, &text, err))
        return -1;
    if (str_eq(text, "") || str_eq(text, "."))
        return 0;
    if (entry->path_kind == PROFILE_PATH_PROJECT_ROOTS && !profile_subpath_is_valid(text))
        return json_at_fail(at, err, "has to be a relative path without \".\" and \"..\"");
    entry->subpath = alloc_str(text);
    return 0;
}

static int read_special(const struct json_at *at, struct profile_entry *entry, struct err *err)
{
    static const char *const keys[] = {"kind", NULL};
    static const char *const keys_with_subpath[] = {"kind", "subpath", NULL};
    struct json_at kind_at = json_at_field(at, "kind");
    struct json_at subpath = json_at_field(at, "subpath");
    struct json_at path_at = json_at_field(at, "path");
    const char *kind;
    const char *path;
    size_t i = 0;

    if (json_at_object(at, err) || json_at_string(&kind_at, &kind, err))
        return -1;
    while (i < SPECIAL_KINDS && !str_eq(special_kinds[i].word, kind))
        i++;
    if (i == SPECIAL_KINDS)
        return json_at_fail(&kind_at, err, "\"%.40s\" is no kind of special path", kind);
    entry->path_kind = special_kinds[i].kind;
    if (entry->path_kind == PROFILE_PATH_UNKNOWN) { /* its name is in `path` */
        if (json_at_string(&path_at, &path, err))
            return -1;
        entry->path = alloc_str(path);
    } else if (entry->path_kind != PROFILE_PATH_PROJECT_ROOTS) {
        return json_at_check_keys(at, keys, NULL, err);
    } else if (json_at_check_keys(at, keys_with_subpath, NULL, err)) {
        return -1;
    }
    return read_subpath(&subpath, entry, err);
}

static int read_entry_path(const struct json_at *at, struct profile_entry *entry, struct err *err)
{
    static const char *const types[] = {"path", "glob_pattern", "globPattern", "special", NULL};
    static const char *const fields[] = {"path", "pattern", "pattern", "value"};
    struct json_at type_at = json_at_field(at, "type");
    const char *keys[] = {"type", NULL, NULL};
    struct json_at field;
    const char *pattern;
    size_t type;

    if (json_at_object(at, err) || json_at_word(&type_at, types, &type, err))
        return -1;
    keys[1] = fields[type];
    if (json_at_check_keys(at, keys, NULL, err))
        return -1;
    field = json_at_field(at, fields[type]);
    if (str_eq(fields[type], "value"))
        return read_special(&field, entry, err);
    if (str_eq(fields[type], "path")) {
        entry->path_kind = PROFILE_PATH_LITERAL;
        return read_path(&field, &entry->path, err);
    }
    if (json_at_string(&field, &pattern, err))
        return -1;
    if (!*pattern)
        return json_at_fail(&field, err, "is empty");
    entry->path_kind = PROFILE_PATH_GLOB;
    entry->path = alloc_str(pattern);
    return 0;
}

static int read_flag(const struct json_at *at, bool *ret, struct err *err)
{
    *ret = false;
    return json_at_is_given(at) ? json_at_bool(at, ret, err) : 0;
}

/* What is denied by its path may be asked about. */
static int read_ask(const struct json_at *at, struct profile_entry *entry, struct err *err)
{
    if (read_flag(at, &entry->asks, err))
        return -1;
    if (entry->asks && entry->access != ACCESS_DENY)
        return json_at_fail(at, err, "only what is denied can be asked about");
    if (entry->asks && entry->path_kind != PROFILE_PATH_LITERAL &&
        entry->path_kind != PROFILE_PATH_PROJECT_ROOTS)
        return json_at_fail(at, err, "only a path can be asked about, no pattern");
    return 0;
}

static int read_entry(const struct json_at *at, struct strv *ignored, struct profile_entry *ret,
                      struct err *err)
{
    static const char *const keys[] = {
        "path", "access", "missing_path_behavior", "missingPathBehavior", "ask", NULL};
    static const char *const missing_words[] = {"skip", NULL};
    struct json_at path = json_at_field(at, "path");
    struct json_at access = json_at_field(at, "access");
    struct json_at ask = json_at_field(at, "ask");
    struct json_at missing;
    const char *word;

    if (json_at_object(at, err) || json_at_check_keys(at, keys, ignored, err) ||
        json_field_either(at, keys[2], keys[3], &missing, err) ||
        read_entry_path(&path, ret, err) || json_at_string(&access, &word, err))
        return -1;
    if (!access_parse(word, &ret->access))
        return json_at_fail(&access, err, "\"%.40s\" is not one of \"read\", \"write\", \"deny\"",
                            word);
    if (json_at_is_given(&missing)) {
        ret->missing = PROFILE_MISSING_SKIP;
        if (json_at_word(&missing, missing_words, &(size_t){0}, err))
            return -1;
    }
    if (ret->path_kind == PROFILE_PATH_GLOB && ret->access != ACCESS_DENY)
        return json_at_fail(&access, err, "a pattern can only be denied");
    return read_ask(&ask, ret, err);
}

enum list {
    LIST_ENTRIES,
    LIST_READ, /* of paths, each of them to be read; missing and null are empty */
    LIST_WRITE,
};

/* Appends what the array `at` holds; each origin is the JSON path of the item. */
static int read_list(const struct json_at *at, enum list list, struct strv *ignored,
                     struct profile_entries *entries, struct err *err)
{
    size_t len = 0;

    if ((list == LIST_ENTRIES || json_at_is_given(at)) && json_at_array(at, &len, err))
        return -1;
    if (len > ENTRIES_MAX)
        return json_at_fail(at, err, "has more than %d items", ENTRIES_MAX);
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(at, i);
        AUTO(entry_done)
        struct profile_entry entry = {.path_kind = PROFILE_PATH_LITERAL,
                                      .access = list == LIST_WRITE ? ACCESS_WRITE : ACCESS_READ};

        if (list == LIST_ENTRIES ? read_entry(&item, ignored, &entry, err)
                                 : read_path(&item, &entry.path, err))
            return -1;
        entry.origin = json_at_path(&item);
        profile_entries_add(entries, &entry);
    }
    return 0;
}

/* --- out --- */

/* A path that is not UTF-8 still is a URI. */
static json_t *path_to_json(const char *path)
{
    json_t *value = json_string(path);
    AUTO_FREE char *uri = value ? NULL : file_uri_format(path);

    return value ? value : json_string(uri);
}

static json_t *write_path(const struct profile_entry *entry)
{
    const struct special_kind *special = special_kinds;
    json_t *value;

    if (entry->path_kind == PROFILE_PATH_GLOB)
        return json_pack("{s:s, s:s}", "type", "glob_pattern", "pattern", entry->path);
    if (entry->path_kind == PROFILE_PATH_LITERAL)
        return json_pack("{s:s, s:o}", "type", "path", "path", path_to_json(entry->path));
    while (special->kind != entry->path_kind)
        special++;
    value = json_pack("{s:s, s:s*, s:s*}", "kind", special->word, "path", entry->path, "subpath",
                      entry->subpath);
    return json_pack("{s:s, s:o}", "type", "special", "value", value);
}

static json_t *entries_to_json(const struct profile *profile)
{
    const struct profile_entries *entries = &profile->entries;
    json_t *list = json_array();

    for (size_t i = 0; i < entries->len; i++) {
        const struct profile_entry *entry = &entries->items[i];
        json_t *item;

        if (entry->is_of_host_tmp && profile->tmp == PROFILE_TMP_PRIVATE)
            continue;
        item = json_pack("{s:o, s:s}", "path", write_path(entry), "access",
                         access_name(entry->access));

        if (entry->missing == PROFILE_MISSING_SKIP)
            json_object_set_new(item, "missing_path_behavior", json_string("skip"));
        if (entry->asks)
            json_object_set_new(item, "ask", json_true());
        json_array_append_new(list, item);
    }
    return list;
}

static json_t *paths_to_json(const struct profile_entries *entries)
{
    json_t *list = json_array();

    for (size_t i = 0; i < entries->len; i++)
        json_array_append_new(list, path_to_json(entries->items[i].path));
    return list;
}

/* --- profiles --- */

/* --- parts that several shapes share --- */

static int read_network_word(const struct json_at *at, enum network_access *ret, struct err *err)
{
    size_t word = 0;

    if (json_at_is_given(at) && json_at_word(at, network_access_words, &word, err))
        return -1;
    *ret = (enum network_access)word;
    return 0;
}

static int read_depth(const struct json_at *at, unsigned *ret, struct err *err)
{
    int64_t depth = 0;

    if (json_at_is_given(at) && json_at_integer(at, 1, INT_MAX, &depth, err))
        return -1;
    *ret = (unsigned)depth;
    return 0;
}

/* Entries, or the older lists of paths: what overlays and the untagged profile have. */
static int read_file_parts(const struct json_at *at, struct profile_entries *entries,
                           unsigned *ret_depth, struct err *err)
{
    static const char *const keys[] = {"entries",          "read", "write", "glob_scan_max_depth",
                                       "globScanMaxDepth", NULL};
    struct json_at list = json_at_field(at, "entries");
    struct json_at read = json_at_field(at, "read");
    struct json_at write = json_at_field(at, "write");
    struct json_at depth;

    if (!json_at_is_given(at))
        return 0;
    if (json_at_object(at, err) || json_at_check_keys(at, keys, NULL, err) ||
        json_field_either(at, keys[3], keys[4], &depth, err) || read_depth(&depth, ret_depth, err))
        return -1;
    if (json_at_is_given(&list) && read_list(&list, LIST_ENTRIES, NULL, entries, err))
        return -1;
    if (read_list(&read, LIST_READ, NULL, entries, err))
        return -1;
    return read_list(&write, LIST_WRITE, NULL, entries, err);
}

static int read_network_part(const struct json_at *at, enum overlay_network *ret, struct err *err)
{
    static const char *const keys[] = {"enabled", NULL};
    struct json_at enabled = json_at_field(at, "enabled");
    bool is_enabled;

    if (!json_at_is_given(at))
        return 0;
    if (json_at_object(at, err) || json_at_check_keys(at, keys, NULL, err))
        return -1;
    if (!json_at_is_given(&enabled))
        return 0;
    if (json_at_bool(&enabled, &is_enabled, err))
        return -1;
    *ret = is_enabled ? OVERLAY_NETWORK_ENABLED : OVERLAY_NETWORK_DISABLED;
    return 0;
}

/* --- the tagged PermissionProfile --- */

static int read_file_system(const struct json_at *at, struct strv *ignored, struct profile *ret,
                            struct err *err)
{
    static const char *const types[] = {"restricted", "unrestricted", NULL};
    static const char *const keys[] = {"type", "entries", "glob_scan_max_depth", NULL};
    static const char *const keys_unrestricted[] = {"type", NULL};
    struct json_at type_at = json_at_field(at, "type");
    struct json_at entries = json_at_field(at, "entries");
    struct json_at depth = json_at_field(at, "glob_scan_max_depth");
    size_t type;

    if (json_at_object(at, err) || json_at_word(&type_at, types, &type, err))
        return -1;
    if (str_eq(types[type], "unrestricted")) {
        ret->files = PROFILE_FILES_UNRESTRICTED;
        return json_at_check_keys(at, keys_unrestricted, ignored, err);
    }
    if (json_at_check_keys(at, keys, ignored, err) ||
        read_depth(&depth, &ret->glob_scan_max_depth, err))
        return -1;
    return read_list(&entries, LIST_ENTRIES, ignored, &ret->entries, err);
}

/* What is wrong in it is told by its own path, behind ours. */
static int read_network_policy(const struct json_at *at, struct profile *ret, struct err *err)
{
    struct err why;

    if (!json_at_is_given(at))
        return 0;
    if (network_policy_from_json(at->value, "permission profile", &ret->network_policy, &why))
        return json_at_fail(at, err, "%s", why.msg);
    if (ret->network != NETWORK_PROXIED &&
        (!ret->network_policy.publications.len || network_policy_is_given(&ret->network_policy)))
        return json_at_fail(at, err, "is about a network that is \"proxied\", and this one is not");
    return 0;
}

/* All readers of shapes: `keys` are those of the shape, and are checked already. */
static int read_managed(const struct json_at *at, const char *const *keys, struct strv *ignored,
                        struct profile *ret, struct err *err)
{
    struct json_at file_system = json_at_field(at, "file_system");
    struct json_at network = json_at_field(at, "network");
    struct json_at network_policy = json_at_field(at, "network_policy");
    struct json_at nested = json_at_field(at, "allow_nested_namespaces");
    struct json_at watch = json_at_field(at, "watch");
    struct json_at sockets = json_at_field(at, "unix_sockets");
    struct json_at judge = json_at_field(at, "judge");
    struct json_at tmp = json_at_field(at, "tmp");
    size_t tmp_word = PROFILE_TMP_HOST;
    struct json_at git = json_at_field(at, "git");
    size_t word = PROFILE_WATCH_FACTS;
    size_t judge_word = PROFILE_JUDGE_COMMAND;
    size_t git_word = PROFILE_GIT_READ;

    if (read_network_word(&network, &ret->network, err) ||
        read_network_policy(&network_policy, ret, err) ||
        read_flag(&nested, &ret->allow_nested_namespaces, err) ||
        read_list(&sockets, LIST_READ, NULL, &ret->unix_sockets, err) ||
        (json_at_is_given(&watch) && json_at_word(&watch, profile_watch_words, &word, err)) ||
        (json_at_is_given(&judge) && json_at_word(&judge, profile_judge_words, &judge_word, err)) ||
        (json_at_is_given(&tmp) && json_at_word(&tmp, profile_tmp_words, &tmp_word, err)) ||
        (json_at_is_given(&git) && json_at_word(&git, profile_git_words, &git_word, err)))
        return -1;
    ret->git = (enum profile_git)git_word;
    ret->tmp = (enum profile_tmp)tmp_word;
    ret->watch = (enum profile_watch)word;
    ret->judge = (enum profile_judge)judge_word;
    return read_file_system(&file_system, ignored, ret, err);
}

static int read_disabled(const struct json_at *at, const char *const *keys, struct strv *ignored,
                         struct profile *ret, struct err *err)
{
    profile_init_danger_full_access(ret);
    return 0;
}

static int read_external(const struct json_at *at, const char *const *keys, struct strv *ignored,
                         struct profile *ret, struct err *err)
{
    struct json_at network = json_at_field(at, "network");
    struct json_at network_policy = json_at_field(at, "network_policy");

    ret->kind = PROFILE_EXTERNAL;
    ret->files = PROFILE_FILES_UNRESTRICTED;
    if (read_network_word(&network, &ret->network, err))
        return -1;
    return read_network_policy(&network_policy, ret, err);
}

/* --- the older untagged PermissionProfile --- */

static int read_untagged(const struct json_at *at, struct profile *ret, struct err *err)
{
    static const char *const keys[] = {"file_system", "network", NULL};
    struct json_at file_system = json_at_field(at, "file_system");
    struct json_at network = json_at_field(at, "network");
    enum overlay_network enabled = OVERLAY_NETWORK_UNSET;

    if (json_at_check_keys(at, keys, NULL, err) || read_network_part(&network, &enabled, err))
        return -1;
    ret->network = enabled == OVERLAY_NETWORK_ENABLED ? NETWORK_ENABLED : NETWORK_RESTRICTED;
    return read_file_parts(&file_system, &ret->entries, &ret->glob_scan_max_depth, err);
}

/* --- the legacy SandboxPolicy --- */

static int read_legacy_flag(const struct json_at *at, const char *snake, const char *camel,
                            bool *ret, struct err *err)
{
    struct json_at field;

    return json_field_either(at, snake, camel, &field, err) ? -1 : read_flag(&field, ret, err);
}

static int read_legacy_read_only(const struct json_at *at, const char *const *keys,
                                 struct strv *ignored, struct profile *ret, struct err *err)
{
    bool network;

    if (read_legacy_flag(at, keys[1], keys[2], &network, err))
        return -1;
    profile_init_read_only(ret, network ? NETWORK_ENABLED : NETWORK_RESTRICTED);
    return 0;
}

/* Its network is a word here, too, where that of all others is a bool. */
static int read_legacy_external(const struct json_at *at, const char *const *keys,
                                struct strv *ignored, struct profile *ret, struct err *err)
{
    struct json_at network;

    ret->kind = PROFILE_EXTERNAL;
    ret->files = PROFILE_FILES_UNRESTRICTED;
    if (json_field_either(at, keys[1], keys[2], &network, err))
        return -1;
    return read_network_word(&network, &ret->network, err);
}

static int read_legacy_workspace(const struct json_at *at, const char *const *keys,
                                 struct strv *ignored, struct profile *ret, struct err *err)
{
    struct profile_workspace options = {0};
    struct json_at roots;
    bool network;
    bool no_slash_tmp;
    bool no_tmpdir;

    if (json_field_either(at, "writable_roots", "writableRoots", &roots, err) ||
        read_legacy_flag(at, keys[1], keys[2], &network, err) ||
        read_legacy_flag(at, "exclude_slash_tmp", "excludeSlashTmp", &no_slash_tmp, err) ||
        read_legacy_flag(at, "exclude_tmpdir_env_var", "excludeTmpdirEnvVar", &no_tmpdir, err))
        return -1;
    options.network = network ? NETWORK_ENABLED : NETWORK_RESTRICTED;
    options.exclude = (no_slash_tmp ? (unsigned)PROFILE_EXCLUDE_SLASH_TMP : 0) |
                      (no_tmpdir ? (unsigned)PROFILE_EXCLUDE_TMPDIR : 0);
    profile_init_workspace_write(ret, &options);
    return read_list(&roots, LIST_WRITE, NULL, &ret->entries, err);
}

/* --- in --- */

#define LEGACY_KEYS "type", "network_access", "networkAccess"

static const struct profile_shape {
    const char *type;
    const char *camel; /* another word for `type`, or NULL */
    int (*read)(const struct json_at *at, const char *const *keys, struct strv *ignored,
                struct profile *ret, struct err *err);
    bool is_closed; /* every unknown key is an error */
    const char *keys[11];
} shapes[] = {
    {"managed",
     NULL,
     read_managed,
     false,
     {"type", "file_system", "network", "network_policy", "allow_nested_namespaces", "watch",
      "judge", "tmp", "git", "unix_sockets"}},
    {"disabled", NULL, read_disabled, false, {"type"}},
    {"external", NULL, read_external, false, {"type", "network", "network_policy"}},
    {"danger-full-access", "dangerFullAccess", read_disabled, true, {"type"}},
    {"read-only", "readOnly", read_legacy_read_only, true, {LEGACY_KEYS}},
    {"external-sandbox", "externalSandbox", read_legacy_external, true, {LEGACY_KEYS}},
    {"workspace-write",
     "workspaceWrite",
     read_legacy_workspace,
     true,
     {LEGACY_KEYS, "writable_roots", "writableRoots", "exclude_slash_tmp", "excludeSlashTmp",
      "exclude_tmpdir_env_var", "excludeTmpdirEnvVar"}},
};

static int read_profile(const struct json_at *at, struct strv *ignored, struct profile *ret,
                        struct err *err)
{
    struct json_at type_at = json_at_field(at, "type");
    const char *type;

    if (json_at_object(at, err))
        return -1;
    if (!type_at.value)
        return read_untagged(at, ret, err);
    if (json_at_string(&type_at, &type, err))
        return -1;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct profile_shape *shape = &shapes[i];

        if (!str_eq(shape->type, type) && !(shape->camel && str_eq(shape->camel, type)))
            continue;
        if (json_at_check_keys(at, shape->keys, shape->is_closed ? NULL : ignored, err))
            return -1;
        return shape->read(at, shape->keys, ignored, ret, err);
    }
    return json_at_fail(&type_at, err,
                        "\"%.40s\" is not one of \"managed\", \"disabled\", \"external\", nor of "
                        "\"read-only\", \"workspace-write\", \"danger-full-access\", "
                        "\"external-sandbox\"",
                        type);
}

int profile_from_json(const json_t *value, struct strv *ignored, struct profile *ret,
                      struct err *err)
{
    struct json_at at = json_at_root(value);
    AUTO(profile_done) struct profile profile = {0};

    if (read_profile(&at, ignored, &profile, err))
        return -1;
    *ret = profile;
    profile = (struct profile){0};
    return 0;
}

int profile_parse(const char *text, size_t len, struct strv *ignored, struct profile *ret,
                  struct err *err)
{
    AUTO_JSON json_t *value = json_parse(text, len, err);

    if (!value)
        return -1;
    return profile_from_json(value, ignored, ret, err);
}

int profile_overlay_from_json(const json_t *value, struct profile_overlay *ret, struct err *err)
{
    static const char *const keys[] = {"network", "file_system", "fileSystem", NULL};
    AUTO(profile_overlay_done) struct profile_overlay overlay = {0};
    struct json_at at = json_at_root(value);
    struct json_at network = json_at_field(&at, "network");
    struct json_at files;

    if (json_at_object(&at, err) || json_at_check_keys(&at, keys, NULL, err) ||
        json_field_either(&at, keys[1], keys[2], &files, err) ||
        read_network_part(&network, &overlay.network, err) ||
        read_file_parts(&files, &overlay.entries, &overlay.glob_scan_max_depth, err))
        return -1;
    *ret = overlay;
    overlay = (struct profile_overlay){0};
    return 0;
}

/* --- out --- */

static void add_network_policy(const struct profile *profile, json_t *value)
{
    const struct network_policy *policy = &profile->network_policy;

    if ((profile->network == NETWORK_PROXIED && network_policy_is_given(policy)) ||
        policy->publications.len)
        json_object_set_new(value, "network_policy", network_policy_to_json(policy));
}

json_t *profile_to_json(const struct profile *profile)
{
    const char *network = network_access_name(profile->network);
    json_t *files;
    json_t *value;

    if (profile->kind == PROFILE_DISABLED)
        return json_pack("{s:s}", "type", "disabled");
    if (profile->kind == PROFILE_EXTERNAL) {
        value = json_pack("{s:s, s:s}", "type", "external", "network", network);
        add_network_policy(profile, value);
        return value;
    }
    if (profile->files == PROFILE_FILES_UNRESTRICTED)
        files = json_pack("{s:s}", "type", "unrestricted");
    else
        files = json_pack("{s:s, s:o}", "type", "restricted", "entries", entries_to_json(profile));
    if (profile->files != PROFILE_FILES_UNRESTRICTED && profile->glob_scan_max_depth)
        json_object_set_new(files, "glob_scan_max_depth",
                            json_integer(profile->glob_scan_max_depth));
    value =
        json_pack("{s:s, s:o, s:s}", "type", "managed", "file_system", files, "network", network);
    add_network_policy(profile, value);
    if (profile->allow_nested_namespaces)
        json_object_set_new(value, "allow_nested_namespaces", json_true());
    if (profile->watch != PROFILE_WATCH_FACTS)
        json_object_set_new(value, "watch", json_string(profile_watch_words[profile->watch]));
    if (profile->tmp != PROFILE_TMP_HOST)
        json_object_set_new(value, "tmp", json_string(profile_tmp_words[profile->tmp]));
    if (profile->judge != PROFILE_JUDGE_COMMAND)
        json_object_set_new(value, "judge", json_string(profile_judge_words[profile->judge]));
    if (profile->git != PROFILE_GIT_READ)
        json_object_set_new(value, "git", json_string(profile_git_words[profile->git]));
    if (profile->unix_sockets.len)
        json_object_set_new(value, "unix_sockets", paths_to_json(&profile->unix_sockets));
    return value;
}

/* See profile_json.h.
 *
 * Which shape a text has is decided once, by its `type` key or the absence of one; each shape has a
 * reader of its own, and all of them end in the same struct. The older shapes are closed: they will
 * not grow, so an unknown key in one is a mistake, and ignoring it could widen what it says. */
#include "policy/profile_json.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/entry_json.h"

#include <limits.h>

typedef int profile_reader(const struct json_at *at, struct strv *ignored, struct profile *ret,
                           struct err *err);

static const char *const network_words[] = {"restricted", "proxied", "enabled", NULL};
static const enum network_access network_values[] = {NETWORK_RESTRICTED, NETWORK_PROXIED,
                                                     NETWORK_ENABLED};

/* --- parts that several shapes share --- */

static int read_network_word(const struct json_at *at, enum network_access *ret, struct err *err)
{
    size_t word = 0;

    if (json_at_is_given(at) && json_at_word(at, network_words, &word, err))
        return -1;
    *ret = network_values[word];
    return 0;
}

static int read_flag(const struct json_at *at, bool *ret, struct err *err)
{
    *ret = false;
    return json_at_is_given(at) ? json_at_bool(at, ret, err) : 0;
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
    if (json_at_is_given(&list) && entries_from_json(&list, NULL, entries, err))
        return -1;
    if (entries_from_json_paths(&read, ACCESS_READ, entries, err))
        return -1;
    return entries_from_json_paths(&write, ACCESS_WRITE, entries, err);
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
    return entries_from_json(&entries, ignored, &ret->entries, err);
}

static int read_managed(const struct json_at *at, struct strv *ignored, struct profile *ret,
                        struct err *err)
{
    static const char *const keys[] = {"type", "file_system", "network", "allow_nested_namespaces",
                                       NULL};
    struct json_at file_system = json_at_field(at, "file_system");
    struct json_at network = json_at_field(at, "network");
    struct json_at nested = json_at_field(at, "allow_nested_namespaces");

    if (json_at_check_keys(at, keys, ignored, err) ||
        read_network_word(&network, &ret->network, err) ||
        read_flag(&nested, &ret->allow_nested_namespaces, err))
        return -1;
    return read_file_system(&file_system, ignored, ret, err);
}

static int read_disabled(const struct json_at *at, struct strv *ignored, struct profile *ret,
                         struct err *err)
{
    static const char *const keys[] = {"type", NULL};

    profile_init_danger_full_access(ret);
    return json_at_check_keys(at, keys, ignored, err);
}

static int read_external(const struct json_at *at, struct strv *ignored, struct profile *ret,
                         struct err *err)
{
    static const char *const keys[] = {"type", "network", NULL};
    struct json_at network = json_at_field(at, "network");

    ret->kind = PROFILE_EXTERNAL;
    ret->files = PROFILE_FILES_UNRESTRICTED;
    if (json_at_check_keys(at, keys, ignored, err))
        return -1;
    return read_network_word(&network, &ret->network, err);
}

/* --- the older untagged PermissionProfile --- */

static int read_untagged(const struct json_at *at, struct strv *ignored, struct profile *ret,
                         struct err *err)
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

static int read_legacy_network(const struct json_at *at, enum network_access *ret, struct err *err)
{
    struct json_at network;
    bool enabled;

    if (json_field_either(at, "network_access", "networkAccess", &network, err) ||
        read_flag(&network, &enabled, err))
        return -1;
    *ret = enabled ? NETWORK_ENABLED : NETWORK_RESTRICTED;
    return 0;
}

static int read_legacy_danger(const struct json_at *at, struct strv *ignored, struct profile *ret,
                              struct err *err)
{
    return read_disabled(at, NULL, ret, err);
}

static int read_legacy_read_only(const struct json_at *at, struct strv *ignored,
                                 struct profile *ret, struct err *err)
{
    static const char *const keys[] = {"type", "network_access", "networkAccess", NULL};
    enum network_access network;

    if (json_at_check_keys(at, keys, NULL, err) || read_legacy_network(at, &network, err))
        return -1;
    profile_init_read_only(ret, network);
    return 0;
}

/* Here, and only here, the network is a word. */
static int read_legacy_external(const struct json_at *at, struct strv *ignored, struct profile *ret,
                                struct err *err)
{
    static const char *const keys[] = {"type", "network_access", "networkAccess", NULL};
    struct json_at network;

    ret->kind = PROFILE_EXTERNAL;
    ret->files = PROFILE_FILES_UNRESTRICTED;
    if (json_at_check_keys(at, keys, NULL, err) ||
        json_field_either(at, keys[1], keys[2], &network, err))
        return -1;
    return read_network_word(&network, &ret->network, err);
}

static int read_exclude(const struct json_at *at, const char *snake, const char *camel,
                        unsigned bit, unsigned *exclude, struct err *err)
{
    struct json_at field;
    bool is_set;

    if (json_field_either(at, snake, camel, &field, err) || read_flag(&field, &is_set, err))
        return -1;
    if (is_set)
        *exclude |= bit;
    return 0;
}

static int read_legacy_workspace(const struct json_at *at, struct strv *ignored,
                                 struct profile *ret, struct err *err)
{
    static const char *const keys[] = {"type",
                                       "writable_roots",
                                       "writableRoots",
                                       "network_access",
                                       "networkAccess",
                                       "exclude_slash_tmp",
                                       "excludeSlashTmp",
                                       "exclude_tmpdir_env_var",
                                       "excludeTmpdirEnvVar",
                                       NULL};
    struct profile_workspace options = {0};
    struct json_at roots;

    if (json_at_check_keys(at, keys, NULL, err) ||
        json_field_either(at, keys[1], keys[2], &roots, err) ||
        read_legacy_network(at, &options.network, err) ||
        read_exclude(at, keys[5], keys[6], PROFILE_EXCLUDE_SLASH_TMP, &options.exclude, err) ||
        read_exclude(at, keys[7], keys[8], PROFILE_EXCLUDE_TMPDIR, &options.exclude, err))
        return -1;
    profile_init_workspace_write(ret, &options);
    return entries_from_json_paths(&roots, ACCESS_WRITE, &ret->entries, err);
}

/* --- in --- */

static const struct profile_shape {
    const char *type;
    profile_reader *read;
} shapes[] = {
    {"managed", read_managed},
    {"disabled", read_disabled},
    {"external", read_external},
    {"danger-full-access", read_legacy_danger},
    {"dangerFullAccess", read_legacy_danger},
    {"read-only", read_legacy_read_only},
    {"readOnly", read_legacy_read_only},
    {"external-sandbox", read_legacy_external},
    {"externalSandbox", read_legacy_external},
    {"workspace-write", read_legacy_workspace},
    {"workspaceWrite", read_legacy_workspace},
};

static int read_profile(const struct json_at *at, struct strv *ignored, struct profile *ret,
                        struct err *err)
{
    struct json_at type_at = json_at_field(at, "type");
    const char *type;

    if (json_at_object(at, err))
        return -1;
    if (!type_at.value)
        return read_untagged(at, ignored, ret, err);
    if (json_at_string(&type_at, &type, err))
        return -1;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (str_eq(shapes[i].type, type))
            return shapes[i].read(at, ignored, ret, err);
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

static json_t *write_file_system(const struct profile *profile)
{
    json_t *files;

    if (profile->files == PROFILE_FILES_UNRESTRICTED)
        return json_pack("{s:s}", "type", "unrestricted");
    files = json_pack("{s:s, s:o}", "type", "restricted", "entries",
                      entries_to_json(&profile->entries));
    if (profile->glob_scan_max_depth)
        json_object_set_new(files, "glob_scan_max_depth",
                            json_integer(profile->glob_scan_max_depth));
    return files;
}

json_t *profile_to_json(const struct profile *profile)
{
    const char *network = network_access_name(profile->network);
    json_t *value;

    if (profile->kind == PROFILE_DISABLED)
        return json_pack("{s:s}", "type", "disabled");
    if (profile->kind == PROFILE_EXTERNAL)
        return json_pack("{s:s, s:s}", "type", "external", "network", network);
    value = json_pack("{s:s, s:o, s:s}", "type", "managed", "file_system",
                      write_file_system(profile), "network", network);
    if (profile->allow_nested_namespaces)
        json_object_set_new(value, "allow_nested_namespaces", json_true());
    return value;
}

json_t *profile_overlay_to_json(const struct profile_overlay *overlay)
{
    json_t *value = json_object();
    json_t *files;

    if (overlay->network != OVERLAY_NETWORK_UNSET)
        json_object_set_new(
            value, "network",
            json_pack("{s:b}", "enabled", overlay->network == OVERLAY_NETWORK_ENABLED));
    if (overlay->entries.len == 0)
        return value;
    files = json_pack("{s:o}", "entries", entries_to_json(&overlay->entries));
    if (overlay->glob_scan_max_depth)
        json_object_set_new(files, "glob_scan_max_depth",
                            json_integer(overlay->glob_scan_max_depth));
    json_object_set_new(value, "file_system", files);
    return value;
}

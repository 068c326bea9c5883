/* See entry_json.h. What newer programs may add here (a special path of a new kind) is kept, so
 * that it survives being read and written, and is ignored when the profile is resolved. Everything
 * else that is not understood is an error, because ignoring half an entry could widen it. */
#include "policy/entry_json.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/profile_text.h"

struct special_kind {
    const char *word;
    enum profile_path_kind kind;
};

/* The first word of a kind is the one that is written. */
static const struct special_kind special_kinds[] = {
    {"root", PROFILE_PATH_ROOT},
    {"minimal", PROFILE_PATH_MINIMAL},
    {"project_roots", PROFILE_PATH_PROJECT_ROOTS},
    {"projectRoots", PROFILE_PATH_PROJECT_ROOTS},
    {"current_working_directory", PROFILE_PATH_PROJECT_ROOTS},
    {"currentWorkingDirectory", PROFILE_PATH_PROJECT_ROOTS},
    {"tmpdir", PROFILE_PATH_TMPDIR},
    {"slash_tmp", PROFILE_PATH_SLASH_TMP},
    {"slashTmp", PROFILE_PATH_SLASH_TMP},
    {"unknown", PROFILE_PATH_UNKNOWN},
};

enum { SPECIAL_KINDS = sizeof special_kinds / sizeof *special_kinds };

int json_field_either(const struct json_at *at, const char *snake, const char *camel,
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

static int read_pattern(const struct json_at *at, struct profile_entry *entry, struct err *err)
{
    const char *text;

    if (json_at_string(at, &text, err))
        return -1;
    if (!*text)
        return json_at_fail(at, err, "is empty");
    entry->path_kind = PROFILE_PATH_GLOB;
    entry->path = alloc_str(text);
    return 0;
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

/* "unknown" carries its name in `path`; a kind that is not known here is kept in the same way. */
static int read_unknown(const struct json_at *at, const char *kind, struct profile_entry *entry,
                        struct err *err)
{
    struct json_at path_at = json_at_field(at, "path");
    struct json_at subpath = json_at_field(at, "subpath");
    const char *path;

    entry->path_kind = PROFILE_PATH_UNKNOWN;
    if (!str_eq(kind, "unknown")) {
        entry->path = alloc_strf(":%s", kind);
    } else {
        if (json_at_string(&path_at, &path, err))
            return -1;
        entry->path = alloc_str(path);
    }
    return read_subpath(&subpath, entry, err);
}

static int read_special(const struct json_at *at, struct profile_entry *entry, struct err *err)
{
    static const char *const keys[] = {"kind", NULL};
    static const char *const keys_with_subpath[] = {"kind", "subpath", NULL};
    struct json_at kind_at = json_at_field(at, "kind");
    struct json_at subpath = json_at_field(at, "subpath");
    const char *kind;
    size_t i = 0;

    if (json_at_object(at, err) || json_at_string(&kind_at, &kind, err))
        return -1;
    while (i < SPECIAL_KINDS && !str_eq(special_kinds[i].word, kind))
        i++;
    if (i == SPECIAL_KINDS || special_kinds[i].kind == PROFILE_PATH_UNKNOWN)
        return read_unknown(at, kind, entry, err);
    entry->path_kind = special_kinds[i].kind;
    if (entry->path_kind != PROFILE_PATH_PROJECT_ROOTS)
        return json_at_check_keys(at, keys, NULL, err);
    if (json_at_check_keys(at, keys_with_subpath, NULL, err))
        return -1;
    return read_subpath(&subpath, entry, err);
}

static int read_entry_path(const struct json_at *at, struct profile_entry *entry, struct err *err)
{
    static const char *const types[] = {"path", "glob_pattern", "globPattern", "special", NULL};
    static const char *const fields[] = {"path", "pattern", "pattern", "value"};
    struct json_at type_at = json_at_field(at, "type");
    const char *keys[] = {"type", NULL, NULL};
    struct json_at field;
    size_t type;

    if (json_at_object(at, err) || json_at_word(&type_at, types, &type, err))
        return -1;
    keys[1] = fields[type];
    if (json_at_check_keys(at, keys, NULL, err))
        return -1;
    field = json_at_field(at, fields[type]);
    if (str_eq(fields[type], "pattern"))
        return read_pattern(&field, entry, err);
    if (str_eq(fields[type], "value"))
        return read_special(&field, entry, err);
    entry->path_kind = PROFILE_PATH_LITERAL;
    return read_path(&field, &entry->path, err);
}

static int read_access(const struct json_at *at, enum access *ret, struct err *err)
{
    const char *word;

    if (json_at_string(at, &word, err))
        return -1;
    if (!access_parse(word, ret))
        return json_at_fail(at, err, "\"%.40s\" is not one of \"read\", \"write\", \"deny\"", word);
    return 0;
}

static int read_missing(const struct json_at *at, enum profile_missing *ret, struct err *err)
{
    static const char *const words[] = {"skip", NULL};
    size_t word;

    if (!json_at_is_given(at))
        return 0;
    *ret = PROFILE_MISSING_SKIP;
    return json_at_word(at, words, &word, err);
}

static int read_entry(const struct json_at *at, struct strv *ignored,
                      struct profile_entries *entries, struct err *err)
{
    static const char *const keys[] = {"path", "access", "missing_path_behavior",
                                       "missingPathBehavior", NULL};
    AUTO(entry_done) struct profile_entry entry = {0};
    struct json_at path = json_at_field(at, "path");
    struct json_at access = json_at_field(at, "access");
    struct json_at missing;

    if (json_at_object(at, err) || json_at_check_keys(at, keys, ignored, err) ||
        json_field_either(at, keys[2], keys[3], &missing, err) ||
        read_entry_path(&path, &entry, err) || read_access(&access, &entry.access, err) ||
        read_missing(&missing, &entry.missing, err))
        return -1;
    if (entry.path_kind == PROFILE_PATH_GLOB && entry.access != ACCESS_DENY)
        return json_at_fail(&access, err, "a pattern can only be denied");
    entry.origin = json_at_path(at);
    profile_entries_add(entries, &entry);
    return 0;
}

static int read_list_len(const struct json_at *at, size_t *ret, struct err *err)
{
    if (json_at_array(at, ret, err))
        return -1;
    if (*ret > ENTRY_JSON_MAX)
        return json_at_fail(at, err, "has more than %d items", ENTRY_JSON_MAX);
    return 0;
}

int entries_from_json(const struct json_at *at, struct strv *ignored,
                      struct profile_entries *entries, struct err *err)
{
    size_t len;

    if (read_list_len(at, &len, err))
        return -1;
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(at, i);

        if (read_entry(&item, ignored, entries, err))
            return -1;
    }
    return 0;
}

int entries_from_json_paths(const struct json_at *at, enum access access,
                            struct profile_entries *entries, struct err *err)
{
    size_t len = 0;

    if (json_at_is_given(at) && read_list_len(at, &len, err))
        return -1;
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(at, i);
        AUTO(entry_done)
        struct profile_entry entry = {.path_kind = PROFILE_PATH_LITERAL, .access = access};

        if (read_path(&item, &entry.path, err))
            return -1;
        entry.origin = json_at_path(&item);
        profile_entries_add(entries, &entry);
    }
    return 0;
}

/* --- out --- */

/* A path is text where it can be; one that is not UTF-8 still is a URI. */
static json_t *write_literal(const char *path)
{
    json_t *text = json_string(path);

    if (!text) {
        AUTO_FREE char *uri = file_uri_format(path);

        text = json_string(uri);
    }
    return json_pack("{s:s, s:o}", "type", "path", "path", text);
}

static json_t *write_special(const struct profile_entry *entry)
{
    const struct special_kind *special = special_kinds;
    json_t *value;

    while (special->kind != entry->path_kind)
        special++;
    value = json_pack("{s:s}", "kind", special->word);
    if (entry->path)
        json_object_set_new(value, "path", json_string(entry->path));
    if (entry->subpath)
        json_object_set_new(value, "subpath", json_string(entry->subpath));
    return json_pack("{s:s, s:o}", "type", "special", "value", value);
}

static json_t *write_path(const struct profile_entry *entry)
{
    if (entry->path_kind == PROFILE_PATH_LITERAL)
        return write_literal(entry->path);
    if (entry->path_kind == PROFILE_PATH_GLOB)
        return json_pack("{s:s, s:s}", "type", "glob_pattern", "pattern", entry->path);
    return write_special(entry);
}

json_t *entries_to_json(const struct profile_entries *entries)
{
    json_t *list = json_array();

    for (size_t i = 0; i < entries->len; i++) {
        const struct profile_entry *entry = &entries->items[i];
        json_t *item = json_pack("{s:o, s:s}", "path", write_path(entry), "access",
                                 access_name(entry->access));

        if (entry->missing == PROFILE_MISSING_SKIP)
            json_object_set_new(item, "missing_path_behavior", json_string("skip"));
        json_array_append_new(list, item);
    }
    return list;
}

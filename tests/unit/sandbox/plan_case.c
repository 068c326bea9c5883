/* See plan_case.h. */
#include "plan_case.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CASE_MAX = 64 << 10,
    ALL_BUT_USER =
        CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWCGROUP
};

static void case_check(bool condition, const char *path, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "%s: %s\n", path, what);
    abort();
}

static const char *case_word(const json_t *json, const char *key, const char *otherwise)
{
    const json_t *value = json_object_get(json, key);

    return value ? json_string_value(value) : otherwise;
}

static bool case_flag(const json_t *json, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(json, key);

    return value ? json_is_true(value) : otherwise;
}

static uint32_t case_namespaces(const char *word)
{
    if (str_eq(word, "none"))
        return 0;
    return str_eq(word, "no-user") ? (uint32_t)ALL_BUT_USER
                                   : (uint32_t)ALL_BUT_USER | CLONE_NEWUSER;
}

static enum network_access case_network(const char *word)
{
    if (str_eq(word, "enabled"))
        return NETWORK_ENABLED;
    if (str_eq(word, "host"))
        return NETWORK_HOST;
    return str_eq(word, "proxied") ? NETWORK_PROXIED : NETWORK_RESTRICTED;
}

/* The directories of the case that is loaded, as "children" has them: canonical paths. */
static struct strv case_dirs;

static void case_list_dirs(const char *dir, struct strv *ret)
{
    for (size_t i = 0; i < case_dirs.len; i++) {
        AUTO_FREE char *parent = path_parent(case_dirs.items[i]);

        if (str_eq(parent, dir))
            strv_push(ret, path_name(case_dirs.items[i]));
    }
}

/* The same of what is no directory, as "files" has them. */
static struct strv case_files;

static void case_list_files(const char *dir, struct strv *ret)
{
    for (size_t i = 0; i < case_files.len; i++) {
        AUTO_FREE char *parent = path_parent(case_files.items[i]);

        if (str_eq(parent, dir))
            strv_push(ret, path_name(case_files.items[i]));
    }
}

/* "ACCESS PATH [dir|file|missing [protected]]"; the access "ask" is deny that asks. */
static void case_add_entry(struct access_map *map, const char *line, const char *path)
{
    char access_word[16] = "";
    char kind_word[16] = "dir";
    char where[512] = "";
    char protected_word[16] = "";
    enum access_kind kind = ACCESS_DIR;
    struct access_entry *entry;
    enum access access = ACCESS_DENY;
    bool asks;

    sscanf(line, "%15s %511s %15s %15s", access_word, where, kind_word, protected_word);
    asks = str_eq(access_word, "ask");
    case_check(asks || access_parse(access_word, &access), path, line);
    if (str_eq(kind_word, "missing"))
        kind = ACCESS_MISSING;
    else if (str_eq(kind_word, "file"))
        kind = ACCESS_FILE;
    else
        case_check(str_eq(kind_word, "dir"), path, line);
    entry = access_map_add(map, where, access, kind, "case");
    entry->is_protected = str_eq(protected_word, "protected");
    entry->asks = asks;
}

static void case_add_link(struct access_map *map, const char *line, const char *path)
{
    char where[512] = "";
    char target[512] = "";

    case_check(sscanf(line, "%511s -> %511s", where, target) == 2, path, line);
    access_map_add_link(map, where, target);
}

static void case_load_map(struct access_map *map, const json_t *json, const char *path)
{
    const json_t *item;
    size_t i;

    map->restricted = case_flag(json, "restricted", true);
    map->network = case_network(case_word(json, "network", "restricted"));
    json_array_foreach(json_object_get(json, "entries"), i, item)
    {
        case_add_entry(map, json_string_value(item), path);
    }
    json_array_foreach(json_object_get(json, "links"), i, item)
    {
        case_add_link(map, json_string_value(item), path);
    }
    access_map_sort(map);
}

void plan_case_load(struct plan_case *ret, const char *path)
{
    static const char *const keys[] = {
        "about",        "namespaces", "root",    "proc",   "landlock",    "arch",
        "procReadOnly", "restricted", "network", "nested", "entries",     "links",
        "listener",     "redirect",   "facts",   "reads",  "descriptors", "children",
        "fuse",         "alone",      "files",   NULL};
    AUTO(buf_done) struct buf text = {0};
    AUTO_JSON json_t *json = NULL;
    const json_t *item;
    struct json_at root;
    struct err err = {0};
    size_t i;

    *ret = (struct plan_case){0};
    case_check(fd_read_file(path, CASE_MAX, &text, &err) == 0, path, err.msg);
    json = json_parse(text.data, text.len, &err);
    case_check(json, path, err.msg);
    root = json_at_root(json);
    case_check(json_at_check_keys(&root, keys, NULL, &err) == 0, path, err.msg);
    case_load_map(&ret->map, json, path);
    json_array_foreach(json_object_get(json, "procReadOnly"), i, item)
    {
        strv_push(&ret->proc_read_only, json_string_value(item));
    }
    strv_done(&case_dirs);
    json_array_foreach(json_object_get(json, "children"), i, item)
    {
        strv_push(&case_dirs, json_string_value(item));
    }
    strv_done(&case_files);
    json_array_foreach(json_object_get(json, "files"), i, item)
    {
        strv_push(&case_files, json_string_value(item));
    }
    item = json_object_get(json, "landlock");
    ret->host = (struct plan_host){
        .namespaces = case_namespaces(case_word(json, "namespaces", "all")),
        .is_root = case_flag(json, "root", false),
        .has_proc = case_flag(json, "proc", true),
        .landlock = item ? (int)json_integer_value(item) : 7,
        .has_listener = case_flag(json, "listener", true),
        .has_redirect = case_flag(json, "redirect", true),
        .has_fuse = case_flag(json, "fuse", true),
        .list_dirs = case_list_dirs,
        .list_files = case_list_files,
        .arch =
            str_eq(case_word(json, "arch", "x86_64"), "x86_64") ? SECCOMP_X86_64 : SECCOMP_AARCH64,
        .proc_read_only = (const char *const *)strv_view(&ret->proc_read_only),
    };
    ret->wishes = (case_flag(json, "nested", false) ? PLAN_NESTED_NAMESPACES : 0u) |
                  (case_flag(json, "facts", true) ? PLAN_FACTS : 0u) |
                  (case_flag(json, "alone", false) ? PLAN_ALONE : 0u) |
                  (case_flag(json, "reads", false) ? PLAN_READS : 0u) |
                  (case_flag(json, "descriptors", false) ? PLAN_DESCRIPTORS : 0u);
}

void plan_case_done(struct plan_case *plan_case)
{
    access_map_done(&plan_case->map);
    strv_done(&plan_case->proc_read_only);
}

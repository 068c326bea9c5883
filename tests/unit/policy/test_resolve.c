/* resolve: profiles on made-up hosts (tests/cases/resolve).
 *
 *     host     paths as in fake_host.h, laid over `usual_host`; null takes one away
 *     profile  any JSON shape; or "builtin": name
 *     narrow   a profile that it is narrowed to, too (policy/narrow.h)
 *     within   the directory in which the roots were chosen
 *     roots    workspace roots, default ["/w"]; "tmpdir": none by default
 *     entries  "PATH ACCESS [protected] [asks] [commits] [removable] [by-guard] [missing|file]", all of them, in order; but when every
 *              protected name has an entry below DIR, those that are "read protected missing" are
 *              one line: "protected names under DIR"; with " but NAME" when only one has none
 *     sockets  paths of the entries that allow them; unless it is there they do not matter
 *     links    "PATH -> TARGET"; "network", "unrestricted": true
 *     origins  {PATH: origin}; checks: {PATH: access}
 *     error    instead of all that: parts of the message; "code": "forbidden", ...
 *
 * Every case is resolved a second time with its entries and roots reversed, which may not make a
 * difference, and every result is held against the invariants of policy/access.h. */
#include "../base/cases.h"
#include "fake_host.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/host_view.h"
#include "policy/narrow.h"
#include "policy/profile_json.h"
#include "policy/protect.h"
#include "policy/resolve.h"

#include <string.h>

static const char usual_host[] =
    "{\"/bin\": {\"link\": \"usr/bin\"}, \"/lib\": {\"link\": \"usr/lib\"}, \"/usr/bin\": \"dir\", "
    "\"/usr/lib\": \"dir\", \"/etc\": \"dir\", \"/tmp\": \"dir\", \"/w\": \"dir\", "
    "\"/home/u\": \"dir\"}";

static json_t *host_of(const json_t *json)
{
    json_t *host = json_loads(usual_host, 0, NULL);
    const char *path;
    json_t *item;

    json_object_foreach(json_object_get(json, "host"), path, item)
        json_object_set(host, path, item);
    json_object_foreach(json_object_get(json, "host"), path, item) if (json_is_null(item))
        json_object_del(host, path);
    return host;
}

static void profile_of(const json_t *json, struct profile *ret)
{
    const char *builtin = case_string_or(json, "builtin", NULL);
    struct err err;

    if (builtin)
        assert_true(profile_init_builtin(ret, builtin));
    else if (profile_from_json(json_object_get(json, "profile"), NULL, ret, &err))
        fail_msg("%s", err.msg);
    ret->tmp = str_eq(case_string_or(json, "tmp", "host"), "host") ? PROFILE_TMP_HOST
                                                                   : PROFILE_TMP_PRIVATE;
}

/* NULL: it is not narrowed. */
static struct profile *narrow_of(const json_t *json, struct profile *profile, struct profile *ret)
{
    struct err err;

    if (!json_object_get(json, "narrow"))
        return NULL;
    if (profile_from_json(json_object_get(json, "narrow"), NULL, ret, &err) ||
        profile_narrow(profile, ret, &err))
        fail_msg("%s", err.msg);
    return ret;
}

static void reverse_entries(struct profile *profile)
{
    struct profile_entries *entries = &profile->entries;

    for (size_t i = 0; i < entries->len / 2; i++) {
        struct profile_entry first = entries->items[i];

        entries->items[i] = entries->items[entries->len - 1 - i];
        entries->items[entries->len - 1 - i] = first;
    }
}

static void reverse_strings(char **items)
{
    size_t len = 0;

    while (items[len])
        len++;
    for (size_t i = 0; i < len / 2; i++) {
        char *first = items[i];

        items[i] = items[len - 1 - i];
        items[len - 1 - i] = first;
    }
}

/* --- what comes out, as text --- */

static char *entry_line(const struct access_entry *entry)
{
    static const char *const kinds[] = {" missing", "", " file"};

    return alloc_strf(
        "%s %s%s%s%s%s%s%s%s%s", entry->path, access_name(entry->access),
        entry->is_protected ? " protected" : "", entry->asks ? " asks" : "",
        entry->allows_commits ? " commits" : "", entry->is_removable ? " removable" : "",
        entry->is_by_guard ? " by-guard" : "", kinds[entry->kind], entry->source ? " from " : "",
        !entry->source     ? ""
        : entry->source[0] ? entry->source
                           : "memory");
}

/* The line for the names of a directory that nothing has yet, so that the cases do not change with
 * the list of the names. NULL when `entry` is none of these, or too few names have an entry. */
static char *group_line(const struct access_map *map, const struct access_entry *entry)
{
    AUTO_FREE char *dir = path_parent(entry->path);
    const char *without = NULL;
    AUTO(strv_done) struct strv names = {0};

    protect_choice_names(NULL, &names);
    if (!entry->is_protected || entry->kind != ACCESS_MISSING || entry->allows_commits ||
        !strv_has(&names, path_name(entry->path)))
        return NULL;
    for (size_t i = 0; i < names.len; i++) {
        AUTO_FREE char *path = path_join(dir, names.items[i]);

        if (access_map_exact(map, path))
            continue;
        if (without)
            return NULL;
        without = names.items[i];
    }
    return alloc_strf("protected names under %s%s%s", dir, without ? " but " : "",
                      without ? without : "");
}

static json_t *entry_lines(const struct access_map *map)
{
    json_t *lines = json_array();
    AUTO(strv_done) struct strv groups = {0};

    for (size_t i = 0; i < map->len; i++) {
        AUTO_FREE char *group = group_line(map, &map->entries[i]);
        AUTO_FREE char *line = entry_line(&map->entries[i]);

        if (!group)
            json_array_append_new(lines, json_string(line));
        else if (!strv_has(&groups, group)) {
            json_array_append_new(lines, json_string(group));
            strv_push(&groups, group);
        }
    }
    return lines;
}

static json_t *socket_lines(const struct access_map *map)
{
    json_t *lines = json_array();

    for (size_t i = 0; i < map->len; i++)
        if (map->entries[i].allows_sockets)
            json_array_append_new(lines, json_string(map->entries[i].path));
    return lines;
}

static json_t *link_lines(const struct access_map *map)
{
    json_t *lines = json_array();

    for (size_t i = 0; i < map->links_len; i++)
        json_array_append_new(lines,
                              json_sprintf("%s -> %s", map->links[i].path, map->links[i].target));
    return lines;
}

/* --- checks --- */

static void check_canonical(const struct fake_host *host, const char *path)
{
    AUTO(path_walk_done) struct path_walk walk = {0};
    struct err err;

    assert_true(path_is_clean(path));
    if (path_walk(&host->view, path, &walk, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(walk.links_len, 0);
}

static void check_invariants(const struct fake_host *host, const struct access_map *map)
{
    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];

        AUTO_FREE char *parent = path_parent(entry->path);

        /* a name that is held may be a link */
        check_canonical(host, entry->kind == ACCESS_MISSING ? parent : entry->path);
        assert_non_null(entry->origin);
        assert_true(i == 0 || path_compare(map->entries[i - 1].path, entry->path) < 0);
        assert_false(entry->kind == ACCESS_MISSING && entry->access == ACCESS_WRITE);
        assert_false(entry->is_protected && entry->access != ACCESS_READ);
        assert_ptr_equal(access_map_find(map, entry->path), entry);
    }
}

static void check_origins(const json_t *wanted, const struct access_map *map)
{
    const char *path;
    json_t *origin;

    json_object_foreach((json_t *)wanted, path, origin)
    {
        const struct access_entry *entry = access_map_exact(map, path);

        if (!entry)
            fail_msg("no entry for %s", path);
        else
            assert_string_equal(entry->origin, json_string_value(origin));
    }
}

static void check_paths(const json_t *wanted, const struct access_map *map)
{
    const char *path;
    json_t *access;

    json_object_foreach(
        (json_t *)wanted, path,
        access) if (!str_eq(access_name(access_map_check(map, path)), json_string_value(access)))
        fail_msg("%s: %s, wanted %s", path, access_name(access_map_check(map, path)),
                 json_string_value(access));
}

static void check_list(const json_t *wanted, json_t *got)
{
    AUTO_JSON json_t *owned = got;
    AUTO_JSON json_t *empty = json_array();

    assert_json_equal(owned, wanted ? wanted : empty);
}

static void check_map(const json_t *json, const struct fake_host *host,
                      const struct access_map *map)
{
    const char *network = case_string_or(json, "network", "restricted");
    bool unrestricted = json_is_true(json_object_get(json, "unrestricted"));

    check_invariants(host, map);
    check_list(json_object_get(json, "entries"), entry_lines(map));
    check_list(json_object_get(json, "links"), link_lines(map));
    if (json_object_get(json, "sockets"))
        check_list(json_object_get(json, "sockets"), socket_lines(map));
    assert_string_equal(network_access_name(map->network), network);
    assert_int_equal(map->restricted, !unrestricted);
    check_paths(json_object_get(json, "checks"), map);
}

static void check_error(const json_t *json, const struct err *err)
{
    AUTO_FREE char **parts = case_strings(json, "error");

    for (size_t i = 0; parts[i]; i++)
        assert_contains(err->msg, parts[i]);
    assert_string_equal(err_code_name(err->code), case_string_or(json, "code", "forbidden"));
}

static void resolve_case(void **state)
{
    static const char *const keys[] = {"why",    "host",    "profile", "builtin",      "roots",
                                       "tmpdir", "entries", "links",   "network",      "origins",
                                       "checks", "error",   "code",    "unrestricted", "sockets",
                                       "tmp",    "store",   "narrow",  "within",       NULL};
    static char *default_roots[] = {(char *)"/w", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    AUTO_JSON json_t *paths = host_of(json);
    struct fake_host host = fake_host_make(paths);
    AUTO_FREE char **roots = case_strings(json, "roots");
    AUTO(profile_done) struct profile profile = {0};
    AUTO(profile_done) struct profile other = {0};
    AUTO(access_map_done) struct access_map map = {0};
    AUTO(access_map_done) struct access_map reversed = {0};
    const struct profile *narrow;
    struct resolve_context context = {
        .view = &host.view,
        .workspace_roots = json_object_get(json, "roots") ? roots : default_roots,
        .tmpdir = case_string_or(json, "tmpdir", NULL),
        .tmp_store = case_string_or(json, "store", NULL),
        .within = case_string_or(json, "within", NULL),
    };
    struct err err = {0};
    int status;

    case_check_keys(json, keys);
    if (context.within)
        context.canonical_roots = json_array_size(json_object_get(json, "roots"));
    profile_of(json, &profile);
    narrow = narrow_of(json, &profile, &other);
    status = profile_resolve_narrowed(&profile, narrow, &context, &map, &err);
    if (json_object_get(json, "error")) {
        assert_int_equal(status, -1);
        check_error(json, &err);
    } else {
        if (status)
            fail_msg("%s", err.msg);
        check_map(json, &host, &map);
        check_origins(json_object_get(json, "origins"), &map);
    }
    reverse_entries(&profile);
    reverse_strings(roots);
    assert_int_equal(profile_resolve_narrowed(&profile, narrow, &context, &reversed, &err), status);
    if (!status)
        check_map(json, &host, &reversed);
}

/* Matches of all patterns together have a limit; one less passes. */
static void matches_have_a_limit(void **state)
{
    AUTO_JSON json_t *paths = json_pack("{s:{s:i}, s:s}", "/w/a", "files", 8191, "/w/b/x", "file");
    struct fake_host host = fake_host_make(paths);
    char *roots[] = {(char *)"/w", NULL};
    struct resolve_context context = {.view = &host.view, .workspace_roots = roots};
    struct profile_entry one = {
        .path_kind = PROFILE_PATH_GLOB, .path = (char *)"a/*", .access = ACCESS_DENY};
    AUTO(profile_done) struct profile profile = {0};
    AUTO(access_map_done) struct access_map map = {0};
    AUTO(access_map_done) struct access_map over = {0};
    struct err err;

    profile_entries_add(&profile.entries, &one);
    one.path = (char *)"b/*";
    profile_entries_add(&profile.entries, &one);
    assert_int_equal(profile_resolve(&profile, &context, &map, &err), 0);
    assert_int_equal(map.len, 8192);
    json_object_set_new(paths, "/w/b/y", json_string("file"));
    assert_int_equal(profile_resolve(&profile, &context, &over, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_contains(err.msg, "more than 8192 paths match");
}

int main(void)
{
    const struct CMUnitTest more[] = {cmocka_unit_test(matches_have_a_limit)};

    return cases_run("resolve", resolve_case, more, sizeof more / sizeof *more);
}

/* narrow: what comes of two profiles is never wider than either, and of two maps it is exactly what both allow. Profiles, hosts
 * and paths at random, by a seed that a failure tells; single ones are in tests/cases/resolve/narrow-*. */
#include "../base/cases.h"
#include "fake_host.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "policy/narrow.h"
#include "policy/network_policy.h"
#include "policy/profile.h"
#include "policy/resolve.h"

#include <stdio.h>
#include <string.h>

enum { TRIES = 300, PATHS = 60 };

static uint64_t seed;
static uint64_t tried; /* the seed that this try began with */

/* 0 to n - 1 */
static unsigned any(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % n;
}

static const char *any_path(void)
{
    static const char *const tops[] = {"/w", "/w", "/w/b", "/tmp", "/home/u", "/etc", ""};
    static char path[64];
    const char *top = tops[any(7)];
    const unsigned depth = any(4);

    snprintf(path, sizeof path, "%s", *top || depth ? top : "/");
    for (unsigned i = 0; i < depth; i++)
        snprintf(path + strlen(path), sizeof path - strlen(path), "/%c", (char)('a' + any(3)));
    return path;
}

static void any_profile(struct profile *ret)
{
    static const enum profile_path_kind kinds[] = {
        PROFILE_PATH_ROOT,   PROFILE_PATH_PROJECT_ROOTS, PROFILE_PATH_SLASH_TMP,
        PROFILE_PATH_TMPDIR, PROFILE_PATH_MINIMAL,       PROFILE_PATH_LITERAL,
        PROFILE_PATH_LITERAL};
    const unsigned len = any(8);

    *ret = (struct profile){.network = (enum network_access)any(4),
                            .tmp = (enum profile_tmp)any(2),
                            .allow_nested_namespaces = any(2),
                            .git = (enum profile_git)any(2)};
    if (any(12) == 0)
        profile_init_danger_full_access(ret);
    else if (any(12) == 0)
        ret->files = PROFILE_FILES_UNRESTRICTED;
    for (unsigned i = 0; ret->files == PROFILE_FILES_RESTRICTED && i < len; i++) {
        struct profile_entry entry = {.path_kind = kinds[any(7)],
                                      .access = (enum access)any(3),
                                      .missing = (enum profile_missing)any(2)};

        if (entry.path_kind == PROFILE_PATH_LITERAL) {
            entry.path = (char *)any_path();
            entry.asks = entry.access == ACCESS_DENY && any(3) == 0;
        }
        profile_entries_add(&ret->entries, &entry);
    }
}

/* Directories, some of them missing. */
static json_t *any_host(void)
{
    json_t *paths = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "/w", "dir", "/tmp", "dir", "/etc",
                              "dir", "/usr/bin", "dir", "/home/u", "dir", "/var/tmp", "dir");

    for (int i = 0; i < 30; i++)
        json_object_set_new(paths, any_path(), json_string("dir"));
    return paths;
}

/* --- what holds --- */

static bool is_open(const struct access_map *map, const char *path)
{
    const struct access_entry *entry = access_map_find(map, path);

    return access_map_check(map, path) != ACCESS_DENY || (entry && entry->asks);
}

static bool has_sockets(const struct access_map *map, const char *path)
{
    const struct access_entry *entry = access_map_find(map, path);

    return map->network == NETWORK_HOST || !map->restricted || (entry && entry->allows_sockets);
}

static void check_path(const struct access_map *map, const struct access_map *ours,
                       const struct access_map *theirs, const char *path)
{
    const enum access one = access_map_check_host(ours, path);
    const enum access other = access_map_check(theirs, path);
    const enum access least = one < other ? one : other;

    assert_int_equal(access_map_is_private(map, path), access_map_is_private(ours, path));
    if (access_map_check_host(map, path) != (access_map_is_private(ours, path) ? one : least))
        fail_msg("seed %u, %s: %s of %s and %s", (unsigned)tried, path,
                 access_name(access_map_check_host(map, path)), access_name(one),
                 access_name(other));
    if (access_map_is_private(ours, path))
        return;
    assert_true(!is_open(map, path) || (is_open(ours, path) && is_open(theirs, path)));
    if (map->network != NETWORK_HOST && map->restricted && has_sockets(map, path))
        assert_true(has_sockets(ours, path) && has_sockets(theirs, path));
}

static void check_map(const struct access_map *map, const struct access_map *ours,
                      const struct access_map *theirs)
{
    assert_int_equal(map->restricted, ours->restricted || theirs->restricted);
    for (size_t i = 1; i < map->len; i++)
        assert_true(strcmp(map->entries[i - 1].path, map->entries[i].path) != 0);
    for (size_t i = 0; i < map->len; i++) {
        assert_false(map->entries[i].kind == ACCESS_MISSING &&
                     map->entries[i].access == ACCESS_WRITE);
        check_path(map, ours, theirs, map->entries[i].path);
    }
    for (size_t i = 0; i < ours->len; i++)
        check_path(map, ours, theirs, ours->entries[i].path);
    for (size_t i = 0; i < theirs->len; i++)
        check_path(map, ours, theirs, theirs->entries[i].path);
    for (int i = 0; i < PATHS; i++)
        check_path(map, ours, theirs, any_path());
}

static void check_rest(const struct profile *profile, const struct profile *ours,
                       const struct profile *theirs)
{
    const enum network_access network =
        ours->kind == PROFILE_DISABLED ? NETWORK_HOST : ours->network;

    assert_int_equal(profile->network, network < theirs->network ? network : theirs->network);
    assert_true(!profile->allow_nested_namespaces || theirs->allow_nested_namespaces);
    assert_true(profile->git <= theirs->git && profile->git <= ours->git);
}

static void never_wider_than_either(void **state)
{
    char *roots[] = {(char *)"/w", (char *)"/home/u/a", NULL};
    unsigned compared = 0;

    for (unsigned try = 0; try < TRIES; try++) {
        AUTO(profile_done) struct profile ours = {0};
        AUTO(profile_done) struct profile theirs = {0};
        AUTO(profile_done) struct profile both = {0};
        AUTO(access_map_done) struct access_map mine = {0};
        AUTO(access_map_done) struct access_map other = {0};
        AUTO(access_map_done) struct access_map map = {0};
        AUTO_JSON json_t *paths = NULL;
        struct fake_host host;
        struct resolve_context context = {.workspace_roots = roots, .tmpdir = "/tmp/b"};
        struct err err;

        tried = seed = try;
        paths = any_host();
        host = fake_host_make(paths);
        context.view = &host.view;
        any_profile(&ours);
        any_profile(&theirs);
        profile_copy(&ours, &both);
        assert_int_equal(profile_narrow(&both, &theirs, &err), 0);
        if (theirs.kind == PROFILE_DISABLED) {
            assert_int_equal(both.network, ours.network);
            continue;
        }
        check_rest(&both, &ours, &theirs);
        theirs.tmp = PROFILE_TMP_HOST;
        if (profile_resolve(&both, &context, &mine, &err) ||
            profile_resolve(&theirs, &context, &other, &err))
            continue;
        assert_int_equal(profile_resolve_narrowed(&both, &theirs, &context, &map, &err), 0);
        check_map(&map, &mine, &other);
        compared++;
    }
    assert_true(compared > TRIES / 2);
}

/* A root that was chosen in /w, beside one that was not. */
static void no_root_is_wider_than_where_it_was_chosen(void **state)
{
    char *whole[] = {(char *)"/w", (char *)"/home/u/a", NULL};
    unsigned compared = 0;

    for (unsigned try = 0; try < TRIES; try++) {
        AUTO(profile_done) struct profile ours = {0};
        AUTO(profile_done) struct profile of_host = {0};
        AUTO(access_map_done) struct access_map mine = {0};
        AUTO(access_map_done) struct access_map other = {0};
        AUTO(access_map_done) struct access_map map = {0};
        AUTO_JSON json_t *paths = NULL;
        AUTO_FREE char *root = NULL;
        struct fake_host host;
        struct resolve_context context = {.within = "/w", .canonical_roots = 1, .tmpdir = "/tmp/b"};
        struct err err;

        tried = seed = try;
        root = alloc_strf("/w/%c/%c", (char)('a' + any(3)), (char)('a' + any(3)));
        paths = any_host();
        host = fake_host_make(paths);
        context.view = &host.view;
        any_profile(&ours);
        profile_copy(&ours, &of_host);
        of_host.tmp = PROFILE_TMP_HOST;
        context.workspace_roots = whole;
        if (profile_resolve(&of_host, &context, &other, &err))
            continue;
        context.workspace_roots = (char *[]){root, whole[1], NULL};
        if (profile_resolve(&ours, &context, &mine, &err))
            continue;
        assert_int_equal(profile_resolve_narrowed(&ours, NULL, &context, &map, &err), 0);
        check_map(&map, &mine, &other);
        compared++;
    }
    assert_true(compared > TRIES / 2);
}

/* --- hosts --- */

static const char *const patterns[] = {"*",        "*.a.test",   "**.a.test",   "a.test",
                                       "x.a.test", "b.test",     "10.0.0.1",    "192.0.2.1",
                                       "*:80",     "a.test:443", "x.a.test:80", "localhost"};
static const char *const hosts[] = {"a.test",   "x.a.test",  "y.x.a.test", "b.test",
                                    "10.0.0.1", "192.0.2.1", "localhost"};

static void any_policy(struct network_policy *ret)
{
    const unsigned len = any(6);
    struct err err;

    *ret = (struct network_policy){
        .asks = any(4) == 0, .allow_local_binding = any(3) == 0, .mode = (enum network_mode)any(2)};
    for (unsigned i = 0; i < len; i++) {
        struct network_rule rule = {.verdict = (enum network_verdict)any(3), .protocols = any(16)};

        assert_int_equal(host_pattern_parse(patterns[any(12)], &rule.pattern, &rule.port, &err), 0);
        (void)network_policy_add(ret, &rule, &err); /* "*" denies nothing */
    }
    for (unsigned i = 0; i < any(3); i++)
        assert_int_equal(network_policy_add_host_port(ret, (uint16_t)(1 + any(3)), &err), 0);
}

static void check_request(const struct network_policy *both, const struct network_policy *one,
                          const struct network_policy *other)
{
    static const uint16_t ports[] = {0, 80, 443, 5000};
    struct net_host host;
    struct network_request request = {.host = &host,
                                      .port = ports[any(4)],
                                      .protocol = (enum network_protocol)any(4),
                                      .method = any(2) ? "GET" : "POST",
                                      .is_looked_into = any(2)};
    struct network_decision got;
    struct network_decision mine;
    struct network_decision theirs;
    uint16_t port;
    struct err err;

    assert_int_equal(net_host_parse_port(hosts[any(7)], &host, &port, &err), 0);
    if (!request.port && (host.kind == NET_HOST_IS_ADDRESS || net_host_name_is_local(host.text)))
        return; /* nobody looks it up */
    network_policy_decide(both, &request, &got);
    network_policy_decide(one, &request, &mine);
    network_policy_decide(other, &request, &theirs);
    if (!request.port && got.verdict == NETWORK_ALLOW) /* who looks up is asked when it connects */
        got.verdict = NETWORK_ASK;
    if (got.verdict < mine.verdict || got.verdict < theirs.verdict)
        fail_msg("seed %u, %s:%u by %s: %s of %s and %s", (unsigned)tried, host.text, request.port,
                 network_protocol_words[request.protocol], network_verdict_words[got.verdict],
                 network_verdict_words[mine.verdict], network_verdict_words[theirs.verdict]);
}

static void no_host_is_reached_that_either_refuses(void **state)
{
    for (unsigned try = 0; try < TRIES * 10; try++) {
        AUTO(network_policy_done) struct network_policy one = {0};
        AUTO(network_policy_done) struct network_policy other = {0};
        AUTO(network_policy_done) struct network_policy both = {0};
        struct err err;

        tried = seed = try;
        any_policy(&one);
        any_policy(&other);
        network_policy_copy(&one, &both);
        assert_int_equal(network_policy_narrow(&both, &other, &err), 0);
        for (int i = 0; i < 20; i++)
            check_request(&both, &one, &other);
        for (uint16_t port = 1; port < 5; port++)
            assert_int_equal(network_policy_takes_port(&both, port),
                             network_policy_takes_port(&one, port) &&
                                 network_policy_takes_port(&other, port));
    }
}

static void a_network_is_what_it_has_in_common(void **state)
{
    AUTO(network_policy_done) struct network_policy one = {0};
    AUTO(network_policy_done) struct network_policy other = {0};
    struct err err;

    assert_int_equal(network_policy_add_text(&one, "*", NETWORK_ALLOW, "one", &err), 0);
    assert_int_equal(network_policy_add_text(&one, "b.test", NETWORK_DENY, "one", &err), 0);
    assert_int_equal(network_policy_add_text(&other, "a.test:443", NETWORK_ASK, "other", &err), 0);
    assert_int_equal(network_policy_add_text(&other, "b.test", NETWORK_ALLOW, "other", &err), 0);
    assert_int_equal(network_policy_narrow(&one, &other, &err), 0);
    assert_int_equal(one.rules_len, 2);
    assert_string_equal(one.rules[0].pattern.host.text, "b.test");
    assert_int_equal(one.rules[0].verdict, NETWORK_DENY);
    assert_string_equal(one.rules[1].pattern.host.text, "a.test");
    assert_int_equal(one.rules[1].verdict, NETWORK_ASK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_wider_than_either),
        cmocka_unit_test(no_root_is_wider_than_where_it_was_chosen),
        cmocka_unit_test(no_host_is_reached_that_either_refuses),
        cmocka_unit_test(a_network_is_what_it_has_in_common),
    };

    return cmocka_run_group_tests_name("narrow", tests, NULL, NULL);
}

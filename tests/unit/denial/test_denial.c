/* denial: the data files of tests/cases/denial, and what needs no file.
 *
 * A file is {"why", "profile": a word of `profiles` below or an object, "layer", "facts", "cwd", "end",
 * "proxies", "stderr", "stdout", "expect": [...], "denied"}. Without "facts" there was no guard. In "expect" only
 * what is named is compared; "remedy" lists texts that have to be in it. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "denial/denial.h"
#include "sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What most cases use: a workspace as an agent has it. */
static const char workspace[] =
    "{\"restricted\": true, \"network\": \"restricted\", \"entries\": ["
    "{\"path\": \"/\", \"access\": \"read\", \"origin\": \"built-in workspace-write\"},"
    "{\"path\": \"/work\", \"access\": \"write\", \"origin\": \"-C\"},"
    "{\"path\": \"/work/.git\", \"access\": \"read\", \"protected\": true,"
    "  \"origin\": \"protected name .git\"},"
    "{\"path\": \"/work/.codex\", \"access\": \"read\", \"protected\": true, \"missing\": true,"
    "  \"origin\": \"protected name .codex\"},"
    "{\"path\": \"/home/u/.ssh\", \"access\": \"deny\", \"origin\": \"--deny\"},"
    "{\"path\": \"/tmp\", \"access\": \"write\", \"origin\": \"built-in workspace-write\"}],"
    "\"links\": [{\"path\": \"/w\", \"target\": \"work\"}],"
    "\"own\": [\"/home/u/.config/cordon\"]}";

/* Reads only what is listed. */
static const char narrow[] = "{\"restricted\": true, \"network\": \"restricted\", \"entries\": ["
                             "{\"path\": \"/usr\", \"access\": \"read\", \"origin\": \"minimal\"},"
                             "{\"path\": \"/work\", \"access\": \"write\", \"origin\": \"-C\"}],"
                             "\"links\": [{\"path\": \"/bin\", \"target\": \"usr/bin\"}]}";

static const char open_profile[] = "{\"restricted\": false, \"network\": \"enabled\"}";

static json_t *get_profile(json_t *spec)
{
    const char *name = json_string_value(spec);
    const char *text = !name                         ? workspace
                       : strcmp(name, "narrow") == 0 ? narrow
                       : strcmp(name, "open") == 0   ? open_profile
                                                     : workspace;
    json_error_t error;

    if (json_is_object(spec))
        return json_incref(spec);
    return json_loads(text, 0, &error);
}

static enum access parse_access(const char *text)
{
    return strcmp(text, "write") == 0  ? ACCESS_WRITE
           : strcmp(text, "read") == 0 ? ACCESS_READ
                                       : ACCESS_DENY;
}

static enum network_access parse_network(const char *text)
{
    if (text && strcmp(text, "enabled") == 0)
        return NETWORK_ENABLED;
    return text && strcmp(text, "proxied") == 0 ? NETWORK_PROXIED : NETWORK_RESTRICTED;
}

static struct access_map load_map(json_t *spec)
{
    json_t *profile = get_profile(spec);
    struct access_map map = {
        .restricted = json_is_true(json_object_get(profile, "restricted")),
        .network = parse_network(json_string_value(json_object_get(profile, "network"))),
    };
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(profile, "entries"), i, item)
    {
        bool is_missing = json_is_true(json_object_get(item, "missing"));

        access_map_add(&map, json_string_value(json_object_get(item, "path")),
                       parse_access(json_string_value(json_object_get(item, "access"))),
                       is_missing ? ACCESS_MISSING : ACCESS_DIR,
                       json_string_value(json_object_get(item, "origin")))
            ->is_protected = json_is_true(json_object_get(item, "protected"));
    }
    json_array_foreach(json_object_get(profile, "links"), i, item)
    {
        map.links = alloc_grow(map.links, map.links_len, &map.links_cap, sizeof *map.links);
        map.links[map.links_len++] = (struct access_link){
            .path = alloc_str(json_string_value(json_object_get(item, "path"))),
            .target = alloc_str(json_string_value(json_object_get(item, "target"))),
        };
    }
    json_array_foreach(json_object_get(profile, "own"), i, item)
    {
        strv_push(&map.own, json_string_value(item));
    }
    if (json_object_get(profile, "home"))
        map.home = alloc_str(json_string_value(json_object_get(profile, "home")));
    if (json_object_get(profile, "network_policy")) {
        struct err err;

        assert_int_equal(network_policy_from_json(json_object_get(profile, "network_policy"), NULL,
                                                  &map.network_policy, &err),
                         0);
    }
    access_map_sort(&map);
    json_decref(profile);
    return map;
}

static int error_number(const char *name)
{
    for (int i = 1; i < 134; i++)
        if (name && strerrorname_np(i) && strcmp(strerrorname_np(i), name) == 0)
            return i;
    fail_msg("unknown errno %s", name ? name : "(none)");
    return 0;
}

static struct process_end load_end(json_t *spec)
{
    json_t *failed = json_object_get(spec, "failed");
    json_t *signal = json_object_get(spec, "signal");
    struct process_end end = {
        .how = failed   ? PROCESS_FAILED_TO_START
               : signal ? PROCESS_SIGNALED
                        : PROCESS_EXITED,
        .code = spec ? (int)json_integer_value(json_object_get(spec, "code")) : 1,
        .signal = (int)json_integer_value(signal),
    };

    if (!failed)
        return end;
    end.stage = strcmp(json_string_value(failed), "cwd") == 0    ? LAUNCH_STAGE_CWD
                : strcmp(json_string_value(failed), "exec") == 0 ? LAUNCH_STAGE_EXEC
                                                                 : LAUNCH_STAGE_SANDBOX;
    end.failure.sys = error_number(json_string_value(json_object_get(spec, "errno")));
    return end;
}

/* By name; unlinkat stands for unlink where an architecture has no unlink. */
static int call_number(json_t *spec)
{
    enum { NUMBERS = 512 };
    const char *name = json_string_value(spec);
    int similar = 0;

    for (int i = 0; name && i < NUMBERS; i++) {
        const char *known = denial_call_name(i);

        if (known && str_eq(known, name))
            return i;
        if (known && str_starts(known, name))
            similar = i;
    }
    if (spec && !similar)
        fail_msg("unknown system call %s", name ? name : "(no text)");
    return similar;
}

/* A fact of the proxy's has a reason; what it points to is that of the last one. */
static const struct launch_connect *load_connect(json_t *spec)
{
    static struct launch_connect connect;

    connect = (struct launch_connect){
        .reason = json_string_value(json_object_get(spec, "reason")),
        .rule = json_string_value(json_object_get(spec, "rule")),
    };
    return connect.reason ? &connect : NULL;
}

static struct launch_fact load_fact(json_t *spec, const struct access_map *map)
{
    static const char *const operations[] = {"write",   "create", "execute",
                                             "connect", "bind",   "signal"};
    const char *entry = json_string_value(json_object_get(spec, "entry"));
    struct launch_fact fact = {
        .path = json_string_value(json_object_get(spec, "path")),
        .other_path = json_string_value(json_object_get(spec, "path2")),
        .program = json_string_value(json_object_get(spec, "program")),
        .pid = 4711,
        .error = error_number(json_string_value(json_object_get(spec, "errno"))),
        .call = call_number(json_object_get(spec, "call")),
        .is_socket = json_is_true(json_object_get(spec, "socket")),
        .more = (unsigned)json_integer_value(json_object_get(spec, "more")),
        .entry = entry ? access_map_find(map, entry) : NULL,
        .connect = load_connect(spec),
    };
    const char *operation = json_string_value(json_object_get(spec, "operation"));

    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (operation && str_eq(operations[i], operation)) {
            fact.operation = (enum fact_operation)i;
            return fact;
        }
    }
    fail_msg("unknown operation %s", operation ? operation : "(none)");
    return fact;
}

static struct denials load_facts(json_t *spec, const struct access_map *map)
{
    struct denials facts = {0};
    json_t *item;
    size_t i;

    json_array_foreach(spec, i, item)
    {
        struct launch_fact fact = load_fact(item, map);

        denials_add_fact(&facts, map, &fact);
    }
    return facts;
}

/* "key" of `expected`, where it is there, against `actual`; null stands for NULL. */
static void check_text(const char *file, json_t *expected, const char *key, const char *actual)
{
    json_t *value = json_object_get(expected, key);
    const char *text = json_string_value(value);

    if (value && !(text ? actual && str_eq(text, actual) : !actual))
        fail_msg("%s: %s is '%s' instead of '%s'", file, key, actual ? actual : "(none)",
                 text ? text : "(none)");
}

static void check_remedy(const char *file, json_t *texts, const char *remedy)
{
    json_t *text;
    size_t i;

    if (!remedy || !*remedy)
        fail_msg("%s: no remedy", file);
    json_array_foreach(texts, i, text)
    {
        if (!strstr(remedy, json_string_value(text)))
            fail_msg("%s: '%s' is not in the remedy '%s'", file, json_string_value(text), remedy);
    }
}

static void check_number(const char *file, json_t *expected, const char *key, unsigned actual)
{
    json_t *value = json_object_get(expected, key);

    if (value && json_integer_value(value) != actual)
        fail_msg("%s: %s is %u", file, key, actual);
}

static void check_fact(const char *file, json_t *expected, const struct denial *denial)
{
    char *words = denial_words(denial);

    check_text(file, expected, "path2", denial->other_path);
    check_text(file, expected, "program", denial->program);
    check_text(file, expected, "words", words);
    check_number(file, expected, "count", denial->count);
    check_number(file, expected, "port", denial->port);
    if (json_is_true(json_object_get(expected, "creates")) != !!(denial->flags & DENIAL_CREATES))
        fail_msg("%s: \"creates\" is wrong", file);
    if (json_is_true(json_object_get(expected, "aside")) != !!(denial->flags & DENIAL_ASIDE))
        fail_msg("%s: \"aside\" is wrong", file);
    if (json_is_true(json_object_get(expected, "below")) != !!(denial->flags & DENIAL_FOLDER))
        fail_msg("%s: \"below\" is wrong", file);
    free(words);
}

static void check_denial(const char *file, json_t *expected, const struct denial *denial)
{
    static const char *const known[] = {
        "operation", "evidence", "source", "path",  "host", "errno", "origin", "remedy", "path2",
        "program",   "creates",  "count",  "below", "port", "words", "aside",  NULL};
    const char *key;
    json_t *value;

    json_object_foreach(expected, key, value)
    {
        bool is_known = false;

        for (const char *const *name = known; *name; name++)
            is_known |= str_eq(*name, key);
        if (!is_known)
            fail_msg("%s: unknown key %s", file, key);
    }
    check_text(file, expected, "operation", denial_operation_name(denial->operation));
    check_text(file, expected, "evidence", denial_evidence_name(denial->evidence));
    check_text(file, expected, "source", denial_source_name(denial->source));
    check_text(file, expected, "path", denial->path);
    check_text(file, expected, "host", denial->host);
    check_text(file, expected, "errno", denial->error ? strerrorname_np(denial->error) : NULL);
    check_text(file, expected, "origin", denial->origin);
    check_remedy(file, json_object_get(expected, "remedy"), denial->remedy);
    check_fact(file, expected, denial);
}

static void print_denials(const struct denials *denials)
{
    for (size_t i = 0; i < denials->len; i++)
        print_error("  %s %s by %s: %s%s\n", denial_operation_name(denials->items[i].operation),
                    denials->items[i].path ? denials->items[i].path : "-",
                    denial_source_name(denials->items[i].source),
                    denials->items[i].host ? denials->items[i].host : "", denials->items[i].remedy);
}

static void check_case(const char *file, json_t *spec)
{
    struct access_map map = load_map(json_object_get(spec, "profile"));
    struct process_end end = load_end(json_object_get(spec, "end"));
    const char *cwd = json_string_value(json_object_get(spec, "cwd"));
    json_t *expect = json_object_get(spec, "expect");
    struct denial_input input = {
        .access = str_eq(json_string_value(json_object_get(spec, "profile"))
                             ? json_string_value(json_object_get(spec, "profile"))
                             : "",
                         "none")
                      ? NULL
                      : &map,
        .cwd = cwd ? cwd : "/work",
        .end = &end,
        .program = json_string_value(json_object_get(spec, "program")),
        .is_in_layer = json_is_true(json_object_get(spec, "layer")),
        .texts = {[STREAM_STDOUT] = json_string_value(json_object_get(spec, "stdout")),
                  [STREAM_STDERR] = json_string_value(json_object_get(spec, "stderr"))},
    };
    struct denials facts = load_facts(json_object_get(spec, "facts"), &map);
    struct denials denials = {0};
    struct strv proxies = {0};
    json_t *proxy;
    size_t k;

    input.facts = json_object_get(spec, "facts") ? &facts : NULL;
    json_array_foreach(json_object_get(spec, "proxies"), k, proxy)
        strv_push(&proxies, json_string_value(proxy));
    input.proxies = &proxies;
    denials_find(&input, &denials);
    strv_done(&proxies);
    if (!json_is_array(expect) || denials.len != json_array_size(expect)) {
        print_denials(&denials);
        fail_msg("%s: %zu denials instead of %zu", file, denials.len, json_array_size(expect));
    }
    for (size_t i = 0; i < denials.len; i++)
        check_denial(file, json_array_get(expect, i), &denials.items[i]);
    if (denials_by_sandbox(&denials) != json_is_true(json_object_get(spec, "denied")))
        fail_msg("%s: \"denied\" is wrong", file);
    denials_done(&denials);
    denials_done(&facts);
    access_map_done(&map);
}

static int is_case(const struct dirent *entry)
{
    return str_ends(entry->d_name, ".json");
}

static void test_cases(void **state)
{
    const char *dir = getenv("DENIAL_CASES");
    struct dirent **entries;
    int count = scandir(dir, &entries, is_case, alphasort);

    assert_true(count >= 60);
    for (int i = 0; i < count; i++) {
        char *path = alloc_strf("%s/%s", dir, entries[i]->d_name);
        json_error_t error;
        json_t *spec = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

        if (!spec)
            fail_msg("%s:%d: %s", path, error.line, error.text);
        check_case(entries[i]->d_name, spec);
        json_decref(spec);
        free(path);
        free(entries[i]);
    }
    free(entries);
}

/* However many lines complain, the list stays short, and the same thing stands in it once. */
static void test_bounded(void **state)
{
    struct access_map map = load_map(NULL);
    struct process_end end = {.how = PROCESS_EXITED, .code = 1};
    struct buf text;
    struct denial_input input = {.access = &map, .cwd = "/work", .end = &end};
    struct denials denials = {0};

    buf_init(&text, 1 << 20);
    for (int i = 0; i < 2000; i++)
        assert_true(
            buf_appendf(&text, "touch: cannot touch '/etc/%d': Read-only file system\n", i / 2));
    input.texts[STREAM_STDERR] = text.data;
    denials_find(&input, &denials);
    assert_int_equal(denials.len, DENIALS_MAX);
    assert_string_equal(denials.items[1].path, "/etc/1");
    denials_done(&denials);
    buf_done(&text);
    access_map_done(&map);
}

static void add_fact(struct denials *facts, const struct access_map *map, const char *path)
{
    const struct launch_fact fact = {.operation = FACT_WRITE, .path = path, .program = "tar"};

    denials_add_fact(facts, map, &fact);
}

/* The first of many facts are told one by one, the others are counted by directory: all of them, and
 * in few entries, however they come. */
static void test_facts_bounded(void **state)
{
    enum { DIRS = 50, FILES = 40 };
    struct access_map map = load_map(NULL);
    struct denials facts = {0};
    unsigned total = 0;

    for (int i = 0; i < DIRS * FILES; i++) {
        char *path = alloc_strf("/opt/d%d/f%d", i % DIRS, i / DIRS);

        add_fact(&facts, &map, path);
        free(path);
    }
    assert_in_range(facts.len, DENIALS_MAX + 1, DENIALS_MAX + 8);
    for (size_t i = 0; i < facts.len; i++) {
        assert_int_equal(!!(facts.items[i].flags & DENIAL_FOLDER), i >= DENIALS_MAX);
        assert_string_equal(facts.items[i].origin, "built-in workspace-write");
        total += facts.items[i].count;
    }
    assert_int_equal(total, DIRS * FILES);
    assert_string_equal(facts.items[facts.len - 1].path, "/opt");
    assert_non_null(strstr(facts.items[facts.len - 1].remedy, "somewhere else"));
    assert_string_equal(facts.items[DENIALS_MAX].path, "/opt/d16");
    assert_int_equal(facts.items[DENIALS_MAX].count, FILES);
    denials_done(&facts);
    access_map_done(&map);
}

/* Repeated, it is one denial, and costs nothing more. */
static void test_facts_repeated(void **state)
{
    struct access_map map = load_map(NULL);
    struct denials facts = {0};

    assert_null(facts.items);
    for (int i = 0; i < 1000; i++)
        add_fact(&facts, &map, i % 2 ? "/etc/a" : "/etc/b");
    assert_int_equal(facts.len, 2);
    assert_int_equal(facts.items[0].count, 500);
    denials_done(&facts);
    access_map_done(&map);
}

/* Lines of any shape and length are read without harm. */
static void test_noise(void **state)
{
    static const char *const pieces[] = {"'",
                                         "\"",
                                         "`",
                                         "/",
                                         ": ",
                                         "permission denied",
                                         "(",
                                         "\033[",
                                         "\xe2\x80\x98",
                                         "a",
                                         " ",
                                         "\n",
                                         "(os error 30)",
                                         "Read-only file system",
                                         "://",
                                         "\033",
                                         "\r",
                                         "could not resolve host",
                                         "[",
                                         "lookup "};
    struct access_map map = load_map(NULL);
    struct process_end end = {.how = PROCESS_EXITED, .code = 1};
    uint32_t seed = 12345;

    for (int round = 0; round < 3000; round++) {
        struct denial_input input = {.access = &map, .cwd = "/work", .end = &end};
        struct denials denials = {0};
        struct buf text;

        buf_init(&text, 1 << 20);
        for (int i = 0; i < round % 40 + (round % 500 == 0) * 3000; i++) {
            seed = seed * 1664525 + 1013904223;
            assert_true(buf_append_str(&text, pieces[(seed >> 16) % 20]));
        }
        input.texts[round % 2] = text.data;
        denials_find(&input, &denials);
        for (size_t i = 0; i < denials.len; i++) {
            assert_non_null(denials.items[i].remedy);
            assert_true(!denials.items[i].path || denials.items[i].path[0] == '/');
        }
        denials_done(&denials);
        buf_done(&text);
    }
    access_map_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),         cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_facts_bounded), cmocka_unit_test(test_facts_repeated),
        cmocka_unit_test(test_noise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

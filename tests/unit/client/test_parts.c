/* The pure parts of the client: order of events, detach keys, places in an output, remote paths,
 * and the parameters of process/start. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "client/client.h"
#include "client/follow.h"
#include "client/remote_file.h"
#include "client/run.h"

#include <stdlib.h>
#include <string.h>

/* --- order --- */

/* Puts events by these numbers; the numbers that come out, as letters from "a" = 1 on. */
static char *play(struct event_order *order, const char *numbers)
{
    char *out = calloc(strlen(numbers) + 1, 1);
    size_t len = 0;

    for (; *numbers; numbers++) {
        uint64_t seq = (uint64_t)(*numbers - 'a' + 1);
        AUTO_JSON json_t *params = json_integer((json_int_t)seq);
        json_t *next;
        char *method;

        assert_true(event_order_put(order, seq, "m", params));
        while (event_order_take(order, &method, &next)) {
            assert_string_equal(method, "m");
            out[len++] = (char)(json_integer_value(next) - 1 + 'a');
            free(method);
            json_decref(next);
        }
    }
    return out;
}

static void order_sorts(void **state)
{
    static const struct {
        const char *in;
        const char *out;
        size_t held;
    } cases[] = {
        {"abc", "abc", 0},       {"bac", "abc", 0},    {"cba", "abc", 0},  {"aabb", "ab", 0},
        {"bbaacc", "abc", 0},    {"bcd", "", 3},       {"acab", "abc", 0}, {"ac", "a", 1},
        {"fedcba", "abcdef", 0}, {"dbacd", "abcd", 0}, {"", "", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(event_order_done) struct event_order order = {0};
        AUTO_FREE char *out = play(&order, cases[i].in);

        assert_string_equal(out, cases[i].out);
        assert_int_equal(order.held, cases[i].held);
    }
}

static void order_holds_only_so_many(void **state)
{
    AUTO(event_order_done) struct event_order order = {0};
    AUTO_JSON json_t *params = json_object();

    /* from the last to the first, so that each finds its place at once */
    for (uint64_t seq = EVENT_ORDER_MAX + 1; seq > 1; seq--)
        assert_true(event_order_put(&order, seq, "m", params));
    assert_false(event_order_put(&order, 1, "m", params));
}

/* --- detach keys --- */

static void detach_keys_are_read(void **state)
{
    static const struct {
        const char *text;
        const char *keys;
    } cases[] = {
        {"ctrl-\\", "\x1c"},
        {"ctrl-p,ctrl-q", "\x10\x11"},
        {"none", ""},
        {"~,.", "~."},
        {"ctrl-a,d", "\x01"
                     "d"},
        {"ctrl-[", "\x1b"},
        {"ctrl-_", "\x1f"},
        {"-", "-"},
    };
    static const char *const wrong[] = {
        "",        "ctrl-", "ctrl-A", "ctrl-1",           "a,", ",a", "aa",
        "ctrl-p,", " ",     "\x7f",   "a,b,c,d,e,f,g,h,i"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct detach_key key;
        struct err err = ERR_UNTOUCHED;

        assert_int_equal(detach_key_parse(cases[i].text, &key, &err), 0);
        assert_untouched(err);
        assert_int_equal(key.len, strlen(cases[i].keys));
        assert_memory_equal(key.keys, cases[i].keys, key.len);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct detach_key key;
        struct err err;

        assert_int_equal(detach_key_parse(wrong[i], &key, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

/* What comes through when this is typed in the pieces that "|" cuts; "!" ends it where the key was
 * pressed. */
static void check_filter(const char *text, const char *typed, const char *wanted)
{
    struct detach_key key;
    struct err err;
    char through[100];
    size_t len = 0;
    bool was_pressed = false;

    assert_int_equal(detach_key_parse(text, &key, &err), 0);
    for (const char *at = typed; *at && !was_pressed; at += at[strcspn(at, "|")] ? 1 : 0) {
        size_t piece = strcspn(at, "|");
        size_t out = 0;

        was_pressed = detach_key_filter(&key, at, piece, through + len, &out);
        len += out;
        at += piece;
    }
    if (was_pressed)
        through[len++] = '!';
    through[len] = '\0';
    assert_string_equal(through, wanted);
}

static void detach_keys_are_found(void **state)
{
    check_filter("x", "abc", "abc");
    check_filter("x", "abxc", "ab!");
    check_filter("none", "abxc", "abxc");
    check_filter("x,y", "axy", "a!");
    check_filter("x,y", "axby", "axby");
    check_filter("x,y", "ax", "a");
    check_filter("x,y", "ax|y", "a!");
    check_filter("x,y", "ax|zy", "axzy");
    check_filter("x,y", "xxy", "x!");
    check_filter("x,x", "xax|x", "xa!");
    check_filter("x,y,z", "xyxyz", "xy!");
    check_filter("x,y,z", "x|y|a|xy|z", "xya!");
}

/* --- places and paths --- */

static void places_are_read(void **state)
{
    static const struct {
        const char *text;
        struct client_position from;
    } cases[] = {
        {"start", {CLIENT_POSITION_BYTE, 0}},   {"0", {CLIENT_POSITION_BYTE, 0}},
        {"64K", {CLIENT_POSITION_BYTE, 65536}}, {"-8K", {CLIENT_POSITION_LAST, 8192}},
        {"end", {CLIENT_POSITION_END, 0}},      {"-0", {CLIENT_POSITION_LAST, 0}},
    };
    static const char *const wrong[] = {"", "-", "x", "--1", "end1", "1 2"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct client_position from;
        struct err err;

        assert_int_equal(client_position_parse(cases[i].text, &from, &err), 0);
        assert_int_equal(from.kind, cases[i].from.kind);
        assert_int_equal(from.bytes, cases[i].from.bytes);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct client_position from;
        struct err err;

        assert_int_equal(client_position_parse(wrong[i], &from, &err), -1);
    }
}

static void remote_paths_become_uris(void **state)
{
    static const struct {
        const char *dir;
        const char *path;
        const char *uri;
    } cases[] = {
        {"file:///srv", NULL, "file:///srv"},
        {"file:///srv", "a b", "file:///srv/a%20b"},
        {"file:///srv", "../x", "file:///x"},
        {"file:///s%20v/", "./y", "file:///s%20v/y"},
        {NULL, "/abs//z/", "file:///abs/z"},
        {"file:///srv", "/", "file:///"},
        {NULL, "relative", NULL},
        {NULL, NULL, NULL},
        {"http://srv", "x", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err;
        AUTO_FREE char *uri = remote_path_uri(cases[i].dir, cases[i].path, &err);

        assert_true(!uri == !cases[i].uri);
        if (uri)
            assert_string_equal(uri, cases[i].uri);
    }
    assert_string_equal(remote_path_of("remote:a:b"), "a:b");
    assert_string_equal(remote_path_of("remote:"), "");
    assert_null(remote_path_of("./remote:a"));
}

/* --- process/start --- */

static json_t *params_of(struct client_run options)
{
    char *const argv[] = {(char *)"prog", (char *)"arg", NULL};
    static const struct start_context context = {
        .id = "run", .dir = "file:///srv", .term = "vt", .size = {.rows = 3, .columns = 4}};
    struct err err;

    if (!options.argv)
        options.argv = argv;
    return start_params(&options, &context, &err);
}

static const char *text_at(const json_t *json, const char *first, const char *second)
{
    return json_string_value(json_object_get(json_object_get(json, first), second));
}

static void a_start_is_sandboxed(void **state)
{
    AUTO_JSON json_t *params = params_of((struct client_run){.input = CLIENT_STDIN_PIPE});
    const json_t *sandbox = json_object_get(params, "sandbox");
    const json_t *permissions = json_object_get(sandbox, "permissions");

    assert_string_equal(text_at(params, "sandbox", "cwd"), "file:///srv");
    assert_string_equal(text_at(params, "sandbox", "windowsSandboxLevel"), "disabled");
    assert_string_equal(json_string_value(json_object_get(permissions, "type")), "managed");
    assert_string_equal(json_string_value(json_object_get(permissions, "network")), "restricted");
    assert_int_equal(json_array_size(json_object_get(params, "argv")), 2);
    assert_true(json_is_true(json_object_get(params, "pipeStdin")));
    assert_true(json_is_false(json_object_get(params, "tty")));
    assert_null(json_object_get(params, "rows"));
    assert_string_equal(text_at(params, "envPolicy", "inherit"), "all");
    assert_int_equal(json_object_size(json_object_get(params, "env")), 0);
}

static void a_start_is_as_asked_for(void **state)
{
    char *const env[] = {(char *)"A=b=c", (char *)"CORDON_TEST_MINE", (char *)"CORDON_TEST_MISSING",
                         NULL};
    AUTO_JSON json_t *params = NULL;

    setenv("CORDON_TEST_MINE", "m", 1);
    unsetenv("CORDON_TEST_MISSING");
    params = params_of((struct client_run){.profile = "read-only",
                                           .network = "enabled",
                                           .cwd = "sub",
                                           .env = env,
                                           .input = CLIENT_STDIN_NULL,
                                           .flags = CLIENT_RUN_TTY});
    assert_string_equal(text_at(json_object_get(params, "sandbox"), "permissions", "network"),
                        "enabled");
    assert_string_equal(json_string_value(json_object_get(params, "cwd")), "file:///srv/sub");
    assert_string_equal(text_at(params, "env", "A"), "b=c");
    assert_string_equal(text_at(params, "env", "CORDON_TEST_MINE"), "m");
    assert_string_equal(text_at(params, "env", "TERM"), "vt");
    assert_int_equal(json_object_size(json_object_get(params, "env")), 3);
    assert_int_equal(json_integer_value(json_object_get(params, "rows")), 3);
    assert_true(json_is_true(json_object_get(params, "tty")));
    assert_true(json_is_false(json_object_get(params, "pipeStdin")));
}

static void a_start_without_a_sandbox_has_to_be_named(void **state)
{
    AUTO_JSON json_t *open = params_of((struct client_run){.profile = "danger-full-access"});
    char *const nameless[] = {(char *)"=x", NULL};
    char *const not_utf8[] = {(char *)"A=\xff", NULL};

    assert_true(json_is_null(json_object_get(open, "sandbox")));
    assert_null(params_of((struct client_run){.profile = "mine"}));
    assert_null(params_of((struct client_run){.env = nameless}));
    assert_null(params_of((struct client_run){.env = not_utf8}));
    assert_null(params_of((struct client_run){.argv = not_utf8}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_sorts),
        cmocka_unit_test(order_holds_only_so_many),
        cmocka_unit_test(detach_keys_are_read),
        cmocka_unit_test(detach_keys_are_found),
        cmocka_unit_test(places_are_read),
        cmocka_unit_test(remote_paths_become_uris),
        cmocka_unit_test(a_start_is_sandboxed),
        cmocka_unit_test(a_start_is_as_asked_for),
        cmocka_unit_test(a_start_without_a_sandbox_has_to_be_named),
    };

    return cmocka_run_group_tests_name("client/parts", tests, NULL, NULL);
}

/* Processes at the server as a person calls them, and positions in their output. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/json.h"
#include "client/client.h"
#include "client/remote_process.h"

#include <stdint.h>
#include <string.h>

#define A "11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
#define B "22222222-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define B2 "22222222-cccc-4ccc-8ccc-cccccccccccc"

static json_t *list_of(const char *text)
{
    struct err err;
    json_t *list = json_parse(text, strlen(text), &err);

    assert_non_null(list);
    return list;
}

static void check_name(const char *id, const char *session, const char *process)
{
    struct process_name name;

    process_name_parse(id, &name);
    assert_string_equal(name.session, session);
    assert_string_equal(name.process, process);
}

static void ids_are_taken_apart(void **state)
{
    check_name("42", "", "42");
    check_name(A "/42", A, "42");
    check_name("1111/42", "1111", "42");
    check_name("111/42", "", "111/42"); /* too short for a session: part of the name */
    check_name("xyzxyz/42", "", "xyzxyz/42");
    check_name(A "0/42", "", A "0/42"); /* too long */
    check_name("1111/4/2", "1111", "4/2");
    check_name("1111/", "1111", "");
}

static void one_process_is_chosen(void **state)
{
    AUTO_JSON json_t *list = list_of("{\"processes\": ["
                                     "{\"processId\": \"p\", \"sessionId\": \"" A "\"},"
                                     "{\"processId\": \"q\", \"sessionId\": \"" A "\"},"
                                     "{\"processId\": \"p\", \"sessionId\": \"" B "\"},"
                                     "{\"processId\": \"p\", \"sessionId\": \"" B2 "\"}, 7]}");
    const json_t *array = json_object_get(list, "processes");
    struct err err;

    assert_ptr_equal(process_choose(list, "q", &err), json_array_get(array, 1));
    assert_ptr_equal(process_choose(list, "1111/p", &err), json_array_get(array, 0));
    assert_ptr_equal(process_choose(list, B2 "/p", &err), json_array_get(array, 3));
    assert_null(process_choose(list, "p", &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_contains(err.msg, "3 sessions");
    assert_null(process_choose(list, "22222222/p", &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_null(process_choose(list, "r", &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void positions_are_read(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_taken_apart),
        cmocka_unit_test(one_process_is_chosen),
        cmocka_unit_test(positions_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

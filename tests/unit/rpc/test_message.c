/* The writing of messages. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "rpc/message.h"

#include <string.h>

static void messages_are_written_as_the_original_does(void **state)
{
    AUTO(buf_done) struct buf buf;
    AUTO_JSON json_t *id = json_string("i\"");
    AUTO_JSON json_t *data = json_pack("{s:i,s:[]}", "a", 1, "b");

    buf_init(&buf, 1000);
    assert_true(rpc_text_result(&buf, id) && rpc_text_json(&buf, data) && rpc_text_end(&buf));
    assert_string_equal(buf.data, "{\"id\":\"i\\\"\",\"result\":{\"a\":1,\"b\":[]}}");
    buf_clear(&buf);
    assert_true(rpc_text_notification(&buf, "m/n") && buf_append_str(&buf, "{\"chunk\":\"") &&
                rpc_text_base64(&buf, "\0\1\2\3", 4) && buf_append_str(&buf, "\"}") &&
                rpc_text_end(&buf));
    assert_string_equal(buf.data, "{\"method\":\"m/n\",\"params\":{\"chunk\":\"AAECAw==\"}}");
    buf_clear(&buf);
    assert_true(rpc_text_request(&buf, 5, "q") && rpc_text_json(&buf, data) && rpc_text_end(&buf));
    assert_string_equal(buf.data, "{\"id\":5,\"method\":\"q\",\"params\":{\"a\":1,\"b\":[]}}");
    buf_clear(&buf);
    assert_true(rpc_text_error(
        &buf, NULL, &(struct rpc_failure){.code = -32004, .message = "no\n", .data = data}));
    assert_string_equal(buf.data, "{\"error\":{\"code\":-32004,\"message\":\"no\\n\","
                                  "\"data\":{\"a\":1,\"b\":[]}},\"id\":-1}");
}

static void strings_are_escaped_and_made_valid(void **state)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 1000);
    assert_true(rpc_text_string(&buf, "a\"\\\n\r\t\0\x1f\x7f\xc3\xa4", 11));
    assert_string_equal(buf.data, "\"a\\\"\\\\\\n\\r\\t\\u0000\\u001f\x7f\xc3\xa4\"");
    buf_clear(&buf);
    assert_true(rpc_text_string(&buf, "\xff\xc3", 2));
    assert_string_equal(buf.data, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    buf_clear(&buf);
    assert_true(rpc_text_string(&buf, "", 0));
    assert_string_equal(buf.data, "\"\"");
}

static void limit_of_the_buffer_is_reported(void **state)
{
    AUTO_JSON json_t *id = json_integer(1);

    const size_t whole = strlen("{\"id\":1,\"result\":\"x\\n\"}");

    for (size_t max = 0; max <= whole; max++) {
        AUTO(buf_done) struct buf buf;

        buf_init(&buf, max);
        assert_int_equal(rpc_text_result(&buf, id) && rpc_text_string(&buf, "x\n", 2) &&
                             rpc_text_end(&buf),
                         max == whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_written_as_the_original_does),
        cmocka_unit_test(strings_are_escaped_and_made_valid),
        cmocka_unit_test(limit_of_the_buffer_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

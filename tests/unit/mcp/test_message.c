/* Messages of MCP, read and written; and which version is agreed on. */
#include "../base/support.h"

#include "base/auto.h"
#include "base/json.h"
#include "mcp/message.h"
#include "mcp/version.h"

#include <string.h>

static const char *const kinds[] = {
    [MCP_REQUEST] = "request", [MCP_NOTIFICATION] = "notification", [MCP_RESULT] = "result",
    [MCP_ERROR] = "error",     [MCP_INVALID] = "invalid",
};

/* `says`: of an error and of what is invalid: its code, then the id that the answer has. */
static const struct {
    const char *text;
    const char *says;
} singles[] = {
    {"{'jsonrpc':'2.0','id':1,'method':'a'}", "request 1 a"},
    {"{'jsonrpc':'2.0','id':'x','method':'a','params':{}}", "request \"x\" a"},
    {"{'jsonrpc':'2.0','id':-9223372036854775808,'method':'a','params':null}",
     "request -9223372036854775808 a"},
    {"{'jsonrpc':'2.0','method':'a'}", "notification null a"},
    {"{'jsonrpc':'2.0','id':3,'result':null}", "result 3"},
    {"{'jsonrpc':'2.0','id':3,'result':{},'error':{'code':1,'message':'no'}}", "error 3 1"},
    {"{'jsonrpc':'2.0','id':null,'error':{'code':-32700,'message':'what'}}", "error null -32700"},
    {"{'jsonrpc':'2.0','error':{'code':-32700,'message':'what'}}", "error null -32700"},
    {"{'id':1,'method':'a'}", "invalid 1 -32600"},
    {"{'jsonrpc':2.0,'id':1,'method':'a'}", "invalid 1 -32600"},
    {"{'jsonrpc':'2.0','id':null,'method':'a'}", "invalid null -32600"},
    {"{'jsonrpc':'2.0','id':1.5,'method':'a'}", "invalid null -32600"},
    {"{'jsonrpc':'2.0','id':[1],'method':'a'}", "invalid null -32600"},
    {"{'jsonrpc':'2.0','id':1,'method':7}", "invalid 1 -32600"},
    {"{'jsonrpc':'2.0','id':1,'method':'a','params':[1]}", "invalid 1 -32602"},
    {"{'jsonrpc':'2.0','id':1,'method':'a','params':{'_meta':3}}", "invalid 1 -32602"},
    {"{'jsonrpc':'2.0','id':1}", "invalid 1 -32600"},
    {"{'jsonrpc':'2.0','result':{}}", "invalid null -32600"},
    {"{'jsonrpc':'2.0','id':1,'error':{'code':'x','message':'no'}}", "invalid 1 -32600"},
    {"3", "invalid null -32600"},
    {"", "invalid null -32700"},
    {"{'jsonrpc':'2.0','id':4,'method':'a\\u0000'}", "invalid 4 -32700"},
    {"{'jsonrpc':'2.0','id':4,'id':5,'method':'a'}", "invalid null -32700"},
    {"{'jsonrpc':'2.0','id':4,'result':'\\u0000'}", "invalid null -32700"},
    {"[]", "invalid null -32600"},
};

static char *with_quotes(const char *text)
{
    char *copy = strdup(text);

    for (char *at = copy; *at; at++)
        if (*at == '\'')
            *at = '"';
    return copy;
}

static void say(const struct mcp_message *message, struct buf *ret)
{
    AUTO_FREE char *id = message->id ? json_dumps(message->id, JSON_ENCODE_ANY) : strdup("null");

    buf_appendf(ret, "%s %s", kinds[message->kind], id);
    if (message->kind == MCP_REQUEST || message->kind == MCP_NOTIFICATION)
        buf_appendf(ret, " %s", message->method);
    if (message->kind == MCP_ERROR || message->kind == MCP_INVALID)
        buf_appendf(ret, " %d", (int)message->code);
}

static void one_message_is_read(void **state)
{
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
        AUTO_FREE char *text = with_quotes(singles[i].text);
        AUTO(mcp_messages_done) struct mcp_messages messages;
        AUTO(buf_done) struct buf said;

        buf_init(&said, 1000);
        mcp_messages_read(text, strlen(text), &messages);
        assert_int_equal(messages.len, 1);
        assert_false(messages.is_batch);
        say(messages.items, &said);
        assert_string_equal(said.data, singles[i].says);
    }
}

static void batch_keeps_what_is_right_beside_what_is_wrong(void **state)
{
    AUTO_FREE char *text = with_quotes("[{'jsonrpc':'2.0','id':1,'method':'a'}, 7, {'jsonrpc':"
                                       "'2.0','method':'b'}, []]");
    AUTO(mcp_messages_done) struct mcp_messages messages;
    static const char *const says[] = {"request 1 a", "invalid null -32600", "notification null b",
                                       "invalid null -32600"};

    mcp_messages_read(text, strlen(text), &messages);
    assert_true(messages.is_batch);
    assert_true(mcp_messages_want_answer(&messages));
    assert_int_equal(messages.len, 4);
    for (size_t i = 0; i < messages.len; i++) {
        AUTO(buf_done) struct buf said;

        buf_init(&said, 1000);
        say(&messages.items[i], &said);
        assert_string_equal(said.data, says[i]);
    }
}

static void batch_has_a_limit(void **state)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, 1 << 20);
    for (int i = 0; i <= MCP_BATCH_MAX; i++)
        buf_appendf(&text, "%c{\"jsonrpc\":\"2.0\",\"method\":\"a\"}", i ? ',' : '[');
    buf_append_str(&text, "]");
    for (int more = 1; more >= 0; more--) {
        AUTO(mcp_messages_done) struct mcp_messages messages;

        mcp_messages_read(text.data, text.len, &messages);
        assert_int_equal(messages.is_batch, !more);
        assert_int_equal(mcp_messages_want_answer(&messages), more);
        text.len = (size_t)(strrchr(text.data, '{') - text.data) - 1;
        buf_append_str(&text, "]");
    }
}

static void messages_are_written(void **state)
{
    AUTO(buf_done) struct buf buf;
    AUTO_JSON json_t *id = json_string("i\"");
    AUTO_JSON json_t *data = json_pack("{s:i}", "a", 1);
    AUTO_JSON json_t *real = json_real(0.003);

    buf_init(&buf, 1000);
    mcp_text_result(&buf, id, real);
    assert_string_equal(buf.data, "{\"jsonrpc\":\"2.0\",\"id\":\"i\\\"\",\"result\":0.003}");
    buf_clear(&buf);
    mcp_text_notification(&buf, "m/n", NULL);
    assert_string_equal(buf.data, "{\"jsonrpc\":\"2.0\",\"method\":\"m/n\"}");
    buf_clear(&buf);
    mcp_text_request(&buf, 5, "q", data);
    assert_string_equal(buf.data,
                        "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"q\",\"params\":{\"a\":1}}");
    buf_clear(&buf);
    mcp_text_error(&buf, NULL, &(struct mcp_failure){-32700, "no\xff", data});
    assert_string_equal(buf.data, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
                                  "\"message\":\"no\xef\xbf\xbd\",\"data\":{\"a\":1}}}");
}

static void version_is_agreed_on(void **state)
{
    static const char *const asked[][2] = {
        {"2025-03-26", "2025-03-26"}, {"2025-06-18", "2025-06-18"}, {"2025-11-25", "2025-11-25"},
        {"2024-11-05", "2025-11-25"}, {"", "2025-11-25"},           {"2099-01-01", "2025-11-25"},
    };

    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        assert_string_equal(mcp_version_text(mcp_version_negotiate(asked[i][0])), asked[i][1]);
    assert_true(mcp_version_has(MCP_2025_03_26, MCP_HAS_BATCHES));
    assert_false(mcp_version_has(MCP_2025_06_18, MCP_HAS_BATCHES));
    assert_true(mcp_version_has(MCP_2025_11_25, MCP_HAS_STRUCTURED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_message_is_read),
        cmocka_unit_test(batch_keeps_what_is_right_beside_what_is_wrong),
        cmocka_unit_test(batch_has_a_limit),
        cmocka_unit_test(messages_are_written),
        cmocka_unit_test(version_is_agreed_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

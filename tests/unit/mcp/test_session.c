/* Sessions, with methods of the test's own and a transport that only takes note: calls, cancelling, and questions in both
 * eras. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "loop/loop.h"
#include "mcp/mcp.h"
#include "mcp/session.h"
#include "mcp/tools.h"

#include <stdlib.h>
#include <string.h>

#define META                                                                                       \
    "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"                             \
    "'io.modelcontextprotocol/clientCapabilities':{}}"

struct desk {
    struct mcp mcp;
    struct mcp_session *session;
    struct buf said;       /* a line per message: STREAM TEXT, "!" before what ends a request */
    struct mcp_call *call; /* of "wait" or "ask"; NULL: none, or cancelled */
    int64_t asked[4];
    size_t asked_len;
    struct buf heard; /* answers to questions */
};

static struct desk *desk;

/* --- methods of the test --- */

static void on_cancel(void *data)
{
    desk->call = NULL;
}

static void wait_for_test(struct mcp_call *call)
{
    desk->call = call;
    mcp_call_on_cancel(call, on_cancel, NULL);
}

static void on_answer(void *data, const struct mcp_message *message)
{
    AUTO_FREE char *text = message && message->kind == MCP_RESULT
                               ? json_dumps(message->result, JSON_ENCODE_ANY)
                               : NULL;

    buf_appendf(&desk->heard, "%s ", text ? text : message ? "error" : "nothing");
}

static void ask_once(void)
{
    const struct mcp_question question = {
        .call = desk->call,
        .method = "elicitation/create",
        .params = json_pack("{s:i}", "n", (int)desk->asked_len),
        .on_answer = on_answer,
    };

    desk->asked[desk->asked_len++] = mcp_session_ask(desk->session, &question);
}

static void ask(struct mcp_call *call)
{
    wait_for_test(call);
    ask_once();
}

static const struct mcp_method methods[] = {
    {.name = "wait", .eras = MCP_BOTH, .handle = wait_for_test},
    {.name = "ask", .eras = MCP_BOTH, .handle = ask},
    {NULL},
};
static const struct mcp_extra extra = {.methods = methods};

/* --- the transport --- */

static void on_send(void *context, void *stream, const char *text, size_t len, bool is_answer)
{
    buf_appendf(&desk->said, "%s%s %.*s\n", is_answer ? "!" : "", stream ? (char *)stream : "-",
                (int)len, text ? text : "");
}

static void take(const char *message, const char *stream)
{
    AUTO_FREE char *text = alloc_str(message);
    AUTO(mcp_messages_done) struct mcp_messages messages;

    for (char *at = text; *at; at++)
        if (*at == '\'')
            *at = '"';
    mcp_messages_read(text, strlen(text), &messages);
    mcp_session_take(desk->session, messages.items, (void *)stream);
}

/* All that was said since the last time. */
#define assert_said(wanted)                                                                        \
    do {                                                                                           \
        assert_string_equal(desk->said.len ? desk->said.data : "", wanted);                        \
        buf_clear(&desk->said);                                                                    \
    } while (0)

static int set_up(void **state)
{
    const struct mcp_sender sender = {.send = on_send};
    struct err err;

    desk = alloc_zero(1, sizeof *desk);
    desk->mcp.options.extra = &extra;
    desk->mcp.options.version = "1";
    desk->mcp.loop = loop_new(&err);
    buf_init(&desk->said, 1 << 20);
    buf_init(&desk->heard, 1 << 20);
    desk->session = mcp_session_new(&desk->mcp, sender, "me");
    return 0;
}

static int tear_down(void **state)
{
    mcp_session_free(desk->session);
    loop_free(desk->mcp.loop);
    buf_done(&desk->said);
    buf_done(&desk->heard);
    free(desk);
    return 0;
}

static void initialize(void)
{
    take("{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'2025-11-25'}}",
         "s");
    buf_clear(&desk->said);
}

/* The requestState of the last answer. */
static char *state_said(void)
{
    const char *at = strstr(desk->said.data, "\"requestState\":\"");

    assert_non_null(at);
    at += strlen("\"requestState\":\"");
    return alloc_strn(at, strcspn(at, "\""));
}

static void call_again(int id, const char *state, const char *responses, const char *more)
{
    AUTO_FREE char *text = alloc_strf("{'jsonrpc':'2.0','id':%d,'method':'ask','params':{" META
                                      ",'requestState':'%s','inputResponses':{%s}%s}}",
                                      id, state, responses, more);

    buf_clear(&desk->said);
    take(text, "new");
}

/* --- calls --- */

static void a_call_is_answered_once_on_its_stream(void **state)
{
    initialize();
    take("{'jsonrpc':'2.0','id':1,'method':'wait'}", "a");
    take("{'jsonrpc':'2.0','id':1,'method':'ping'}", "b");
    assert_said(
        "!b {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32600,\"message\":\"a request with "
        "this id is not answered yet\"}}\n");
    mcp_call_result(desk->call, json_object());
    assert_said("!a {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}

static void a_cancelled_call_has_no_answer(void **state)
{
    initialize();
    take("{'jsonrpc':'2.0','id':'x','method':'wait'}", "a");
    take("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':'y'}}", NULL);
    assert_non_null(desk->call);
    take("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':'x'}}", NULL);
    assert_null(desk->call);
    assert_said("!a \n");
}

static void the_end_of_a_stream_cancels_in_the_modern_era_alone(void **state)
{
    initialize();
    take("{'jsonrpc':'2.0','id':1,'method':'wait'}", "a");
    mcp_session_stream_closed(desk->session, (void *)"a");
    assert_non_null(desk->call);
    mcp_call_result(desk->call, json_object());
    assert_said("");
    take("{'jsonrpc':'2.0','id':1,'method':'wait','params':{" META "}}", "a");
    mcp_session_stream_closed(desk->session, (void *)"a");
    assert_null(desk->call);
    assert_said("");
}

/* Two clients with the same token are one session there. */
static void modern_ids_are_of_their_streams(void **state)
{
    static const char wait[] = "{'jsonrpc':'2.0','id':1,'method':'wait','params':{" META "}}";
    struct mcp_call *first;

    take(wait, "a");
    first = desk->call;
    take(wait, "b");
    assert_ptr_not_equal(first, desk->call);
    take(wait, "b");
    assert_non_null(
        strstr(desk->said.data, "!b {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32600"));
    mcp_call_result(first, json_object());
    assert_non_null(strstr(desk->said.data, "!a {\"jsonrpc\":\"2.0\",\"id\":1,\"result\""));
}

static void progress_grows_and_needs_a_token(void **state)
{
    initialize();
    take("{'jsonrpc':'2.0','id':1,'method':'wait','params':{'_meta':{'progressToken':7}}}", "a");
    mcp_call_progress(desk->call, 0, 0, NULL);
    mcp_call_progress(desk->call, 0, 9, NULL);
    mcp_call_progress(desk->call, 3, 9, "half\xff");
    assert_said("a "
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                "progress\",\"params\":{\"progressToken\":7,"
                "\"progress\":0}}\n"
                "a "
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                "progress\",\"params\":{\"progressToken\":7,"
                "\"progress\":3,\"total\":9,\"message\":\"half\xef\xbf\xbd\"}}\n");
    mcp_call_result(desk->call, json_object());
}

static void log_is_sent_from_its_level_on(void **state)
{
    initialize();
    take("{'jsonrpc':'2.0','id':1,'method':'wait'}", "a");
    mcp_call_log(desk->call, MCP_LEVEL_INFO, "x", json_string("no"));
    mcp_call_log(desk->call, MCP_LEVEL_ERROR, "x", json_string("yes"));
    assert_said(
        "a "
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"error\","
        "\"logger\":\"x\",\"data\":\"yes\"}}\n");
    take("{'jsonrpc':'2.0','id':2,'method':'wait','params':{" META "}}", "b");
    mcp_call_log(desk->call, MCP_LEVEL_EMERGENCY, "x", json_string("never unasked"));
    assert_said("");
}

/* --- questions --- */

static void a_question_goes_on_the_stream_of_its_call(void **state)
{
    initialize();
    take("{'jsonrpc':'2.0','id':1,'method':'ask'}", "a");
    assert_said(
        "a "
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":{\"n\":0}}\n");
    take("{'jsonrpc':'2.0','id':2,'result':{}}", NULL);
    take("{'jsonrpc':'2.0','id':1,'result':{'action':'accept'}}", NULL);
    take("{'jsonrpc':'2.0','id':1,'result':{}}", NULL);
    assert_string_equal(desk->heard.data, "{\"action\": \"accept\"} ");
    ask_once();
    buf_clear(&desk->said);
    mcp_session_withdraw(desk->session, desk->asked[1], "late");
    assert_said(
        "a {\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2,"
        "\"reason\":\"late\"}}\n");
    ask_once();
    mcp_call_result(desk->call, json_object());
    assert_string_equal(desk->heard.data, "{\"action\": \"accept\"} nothing ");
}

static void a_modern_question_is_an_answer(void **state)
{
    AUTO_FREE char *first = NULL;
    AUTO_FREE char *tampered = NULL;

    take("{'jsonrpc':'2.0','id':1,'method':'ask','params':{" META ",'a':1}}", "a");
    assert_non_null(strstr(desk->said.data,
                           "!a {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":"
                           "\"input_required\",\"inputRequests\":{\"q1\":{\"method\":"
                           "\"elicitation/create\",\"params\":{\"n\":0}}},"));
    first = state_said();
    tampered = alloc_str(first);
    tampered[0] ^= 1;
    call_again(2, tampered, "'q1':{}", ",'a':1");
    assert_non_null(strstr(desk->said.data, "-32602"));
    call_again(3, first, "'q1':{}", ",'a':2"); /* other parameters */
    assert_non_null(strstr(desk->said.data, "-32602"));
    assert_int_equal(desk->heard.len, 0);
    call_again(4, first, "'q1':{'action':'accept'}", ",'a':1");
    assert_string_equal(desk->heard.data, "{\"action\": \"accept\"} ");
    assert_said("");
    call_again(5, first, "'q1':{}", ",'a':1"); /* once more */
    assert_non_null(strstr(desk->said.data, "-32602"));
    buf_clear(&desk->said);
    mcp_call_result(desk->call, json_object());
    assert_non_null(strstr(desk->said.data, "!new {\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{"));
}

static void what_is_not_answered_is_asked_again(void **state)
{
    AUTO_FREE char *first = NULL;
    AUTO_FREE char *second = NULL;
    AUTO_FREE char *third = NULL;

    take("{'jsonrpc':'2.0','id':1,'method':'ask','params':{" META "}}", "a");
    first = state_said();
    ask_once(); /* meanwhile */
    call_again(2, first, "'q1':{}", "");
    assert_string_equal(desk->heard.data, "{} ");
    assert_null(strstr(desk->said.data, "\"q1\""));
    second = state_said();
    call_again(3, second, "'q2':7,'q9':{}", "");
    third = state_said();
    mcp_session_withdraw(desk->session, desk->asked[1], "late");
    call_again(4, third, "", "");
    assert_said("");
    mcp_call_result(desk->call, json_object());
    assert_non_null(strstr(desk->said.data, "!new {\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{"));
}

static void what_came_meanwhile_is_kept(void **state)
{
    AUTO_FREE char *first = NULL;

    take("{'jsonrpc':'2.0','id':1,'method':'ask','params':{" META "}}", "a");
    first = state_said();
    buf_clear(&desk->said);
    mcp_call_result(desk->call, json_pack("{s:i}", "done", 1));
    assert_said("");
    call_again(2, first, "", "");
    assert_non_null(
        strstr(desk->said.data, "!new {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"done\":1,"));
    assert_true(list_is_empty(&desk->session->calls));
}

/* A client that asks and never comes back keeps no other out. */
static void what_nobody_comes_for_makes_room(void **state)
{
    for (int i = 0; i < MCP_CALLS_MAX; i++) {
        AUTO_FREE char *text =
            alloc_strf("{'jsonrpc':'2.0','id':%d,'method':'ask','params':{" META "}}", i);

        desk->asked_len = 0;
        take(text, "a");
        mcp_call_result(desk->call, json_object());
    }
    assert_int_equal(desk->session->calls_len, MCP_CALLS_MAX);
    buf_clear(&desk->said);
    take("{'jsonrpc':'2.0','id':'new','method':'wait','params':{" META "}}", "b");
    assert_said("");
    assert_int_equal(desk->session->calls_len, MCP_CALLS_MAX);
    mcp_call_result(desk->call, json_object());
}

static void the_end_of_a_session_ends_questions(void **state)
{
    take("{'jsonrpc':'2.0','id':1,'method':'ask','params':{" META "}}", "a");
    mcp_session_free(desk->session);
    assert_null(desk->call);
    assert_string_equal(desk->heard.data, "nothing ");
    desk->session = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_call_is_answered_once_on_its_stream),
        TEST(a_cancelled_call_has_no_answer),
        TEST(the_end_of_a_stream_cancels_in_the_modern_era_alone),
        TEST(modern_ids_are_of_their_streams),
        TEST(progress_grows_and_needs_a_token),
        TEST(log_is_sent_from_its_level_on),
        TEST(a_question_goes_on_the_stream_of_its_call),
        TEST(a_modern_question_is_an_answer),
        TEST(what_is_not_answered_is_asked_again),
        TEST(what_came_meanwhile_is_kept),
        TEST(what_nobody_comes_for_makes_room),
        TEST(the_end_of_a_session_ends_questions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

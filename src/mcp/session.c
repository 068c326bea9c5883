/* See session.h. Whatever comes in becomes one of four things here: a call, which finds its method in the tables below; a
 * notification; the answer to a question of ours; or an error that says what is wrong. Every answer to a client leaves by
 * call_end(), which is therefore the place where a call stops to exist: before its answer is sent, so that whatever the
 * transport does then finds no trace of it. */
#include "mcp/session.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "mcp/ask.h"
#include "mcp/engine.h"
#include "mcp/mcp.h"
#include "mcp/modern.h"
#include "mcp/news.h"
#include "mcp/place.h"
#include "mcp/resources.h"
#include "mcp/tools.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --- sending --- */

static void session_send(struct mcp_session *session, void *stream, const struct buf *text,
                         bool is_answer)
{
    session->sender.send(session->sender.context, stream, text->data, text->len, is_answer);
}

bool mcp_session_has_room(const struct mcp_session *session, void *stream)
{
    return !session->sender.is_full || !session->sender.is_full(session->sender.context, stream);
}

static void session_fail(struct mcp_session *session, void *stream, const json_t *id,
                         const struct mcp_failure *failure)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    mcp_text_error(&text, id, failure);
    session_send(session, stream, &text, true);
}

static void session_send_notification(struct mcp_session *session, void *stream, const char *method,
                                      json_t *params)
{
    AUTO_JSON json_t *owned = params;
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    mcp_text_notification(&text, method, owned);
    session_send(session, stream, &text, false);
}

void mcp_session_notify(struct mcp_session *session, const char *method, json_t *params)
{
    session_send_notification(session, NULL, method, params);
}

/* --- levels --- */

static const char *const level_words[] = {
    [MCP_LEVEL_DEBUG] = "debug",   [MCP_LEVEL_INFO] = "info",
    [MCP_LEVEL_NOTICE] = "notice", [MCP_LEVEL_WARNING] = "warning",
    [MCP_LEVEL_ERROR] = "error",   [MCP_LEVEL_CRITICAL] = "critical",
    [MCP_LEVEL_ALERT] = "alert",   [MCP_LEVEL_EMERGENCY] = "emergency",
};

bool mcp_level_parse(const char *word, enum mcp_level *ret)
{
    for (size_t i = 0; i < sizeof level_words / sizeof *level_words; i++) {
        if (!str_eq(level_words[i], word))
            continue;
        *ret = (enum mcp_level)i;
        return true;
    }
    return false;
}

/* --- calls --- */

static struct mcp_call *call_find(const struct mcp_session *session, const json_t *id)
{
    struct mcp_call *call;

    list_for_each(call, &session->calls, in_session)
        if (json_equal(call->id, id))
            return call;
    return NULL;
}

/* Clients of versions without sessions may share one session here, each with ids and streams of its own. */
static bool is_taken(const struct mcp_call *call)
{
    const struct mcp_call *other;

    list_for_each(other, &call->session->calls, in_session)
        if (json_equal(other->id, call->id) &&
            (call->dialect == &mcp_legacy || other->stream == call->stream))
            return true;
    return false;
}

static void call_free(struct mcp_call *call)
{
    mcp_session_forget(call);
    mcp_modern_free(call);
    if (list_is_linked(&call->in_session)) {
        list_remove(&call->in_session);
        call->session->calls_len--;
    }
    json_decref(call->id);
    json_decref(call->params);
    json_decref(call->progress_token);
    free(call->method);
    free(call);
}

void mcp_call_drop(struct mcp_call *call)
{
    call_free(call);
}

/* Takes the call. */
static void call_end(struct mcp_call *call, const struct buf *text)
{
    struct mcp_session *session = call->session;
    void *stream = call->stream;
    bool is_unheard = call->is_unheard;

    call_free(call);
    if (is_unheard)
        return;
    session->sender.send(session->sender.context, stream, text ? text->data : NULL,
                         text ? text->len : 0, true);
}

const json_t *mcp_call_meta(const struct mcp_call *call, const char *key)
{
    return json_object_get(json_object_get(call->params, "_meta"), key);
}

void mcp_call_on_cancel(struct mcp_call *call, void (*on_cancel)(void *data), void *data)
{
    call->on_cancel = on_cancel;
    call->data = data;
}

void mcp_call_result(struct mcp_call *call, json_t *result)
{
    AUTO_JSON json_t *owned = result;
    AUTO(buf_done) struct buf text = {0};

    if (mcp_modern_keep(call, NULL, owned)) {
        owned = NULL;
        return;
    }

    if (call->dialect->finish)
        call->dialect->finish(call->session, call->method, owned);
    buf_init(&text, SIZE_MAX / 2);
    mcp_text_result(&text, call->id, owned);
    call_end(call, &text);
}

void mcp_call_fail_data(struct mcp_call *call, int64_t code, const char *text, json_t *data)
{
    AUTO_JSON json_t *owned = data;
    AUTO(buf_done) struct buf message = {0};
    const struct mcp_failure failure = {.code =
                                            call->dialect->code ? call->dialect->code(code) : code,
                                        .text = text,
                                        .data = owned};

    if (mcp_modern_keep(call, &failure, NULL))
        return;
    buf_init(&message, SIZE_MAX / 2);
    mcp_text_error(&message, call->id, &failure);
    call_end(call, &message);
}

void mcp_call_fail(struct mcp_call *call, int64_t code, const char *fmt, ...)
{
    char words[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    mcp_call_fail_data(call, code, words, NULL);
}

/* Without an answer. `tells`: the transport hears that none comes. */
static void call_cancel(struct mcp_call *call, bool tells)
{
    if (call->on_cancel)
        call->on_cancel(call->data);
    call->is_unheard |= !tells;
    call_end(call, NULL);
}

void mcp_call_progress(struct mcp_call *call, uint64_t progress, uint64_t total, const char *text)
{
    json_t *params;

    if (!call->progress_token || call->is_unheard ||
        (call->progress != UINT64_MAX && progress <= call->progress) ||
        !mcp_session_has_room(call->session, call->stream))
        return;
    call->progress = progress;
    params = json_pack("{s:O, s:I}", "progressToken", call->progress_token, "progress",
                       (json_int_t)progress);
    if (total)
        json_object_set_new(params, "total", json_integer((json_int_t)total));
    if (text)
        json_object_set_new(params, "message", json_lossy(text));
    session_send_notification(call->session, call->stream, "notifications/progress", params);
}

void mcp_call_notify(struct mcp_call *call, const char *method, json_t *params)
{
    if (call->is_unheard)
        json_decref(params);
    else
        session_send_notification(call->session, call->stream, method, params);
}

void mcp_call_log(struct mcp_call *call, enum mcp_level level, const char *logger, json_t *data)
{
    AUTO_JSON json_t *owned = data;

    if (level < call->level || call->is_unheard ||
        !mcp_session_has_room(call->session, call->stream))
        return;
    session_send_notification(
        call->session, call->stream, "notifications/message",
        json_pack("{s:s, s:s, s:O}", "level", level_words[level], "logger", logger, "data", owned));
}

/* --- questions --- */

struct question {
    struct list in_session;
    int64_t id;
    struct mcp_call *call; /* NULL: of none */
    void *stream;
    mcp_answer_fn *on_answer;
    void *data;
};

static struct question *question_find(const struct mcp_session *session, int64_t id)
{
    struct question *question;

    list_for_each(question, &session->questions, in_session)
        if (question->id == id)
            return question;
    return NULL;
}

static void question_end(struct mcp_session *session, struct question *question,
                         const struct mcp_message *answer)
{
    mcp_answer_fn *on_answer = question->on_answer;
    void *data = question->data;

    list_remove(&question->in_session);
    session->questions_len--;
    free(question);
    on_answer(data, answer);
}

int64_t mcp_session_ask(struct mcp_session *session, const struct mcp_question *question)
{
    AUTO_JSON json_t *params = question->params;
    AUTO(buf_done) struct buf text = {0};
    struct question *asked;

    if (session->questions_len >= MCP_QUESTIONS_MAX)
        return 0;
    asked = alloc_zero(1, sizeof *asked);
    *asked = (struct question){
        .id = ++session->last_question,
        .call = question->call,
        .stream = question->call ? question->call->stream : NULL,
        .on_answer = question->on_answer,
        .data = question->data,
    };
    list_append(&session->questions, &asked->in_session);
    session->questions_len++;
    if (question->call && question->call->dialect == &mcp_modern) {
        mcp_modern_ask(question->call, asked->id, question->method, TAKE_PTR(params));
        return asked->id;
    }
    buf_init(&text, SIZE_MAX / 2);
    mcp_text_request(&text, asked->id, question->method, params);
    session_send(session, asked->stream, &text, false);
    return asked->id;
}

/* Clients of versions without sessions ask by themselves, and only hear of it when they come back. */
static void tell_withdrawn(struct mcp_session *session, const struct question *question,
                           const char *why)
{
    if (question->call && (question->call->dialect == &mcp_modern || question->call->is_unheard))
        return;
    session_send_notification(
        session, question->stream, "notifications/cancelled",
        json_pack("{s:I, s:s}", "requestId", (json_int_t)question->id, "reason", why));
}

void mcp_session_withdraw(struct mcp_session *session, int64_t id, const char *why)
{
    struct question *question = question_find(session, id);

    if (!question)
        return;
    tell_withdrawn(session, question, why);
    list_remove(&question->in_session);
    session->questions_len--;
    free(question);
}

bool mcp_session_answer(struct mcp_session *session, int64_t id, const struct mcp_message *answer)
{
    struct question *question = question_find(session, id);

    if (question)
        question_end(session, question, answer);
    return question;
}

bool mcp_session_asks(const struct mcp_call *call, int64_t id)
{
    const struct question *question = question_find(call->session, id);

    return question && question->call == call;
}

void mcp_session_forget(const struct mcp_call *call)
{
    struct question *question;
    struct question *next;

    list_for_each_safe(question, next, &call->session->questions, in_session) {
        if (question->call != call)
            continue;
        tell_withdrawn(call->session, question, "the call is over");
        question_end(call->session, question, NULL);
    }
}

/* Answers to questions that are not open are ignored: they may have been withdrawn meanwhile. */
static void take_answer(struct mcp_session *session, const struct mcp_message *message)
{
    struct question *question = json_is_integer(message->id)
                                    ? question_find(session, json_integer_value(message->id))
                                    : NULL;

    if (question)
        question_end(session, question, message);
}

/* --- what comes in --- */

static const struct mcp_method *table_find(const struct mcp_method *table, const char *name,
                                           unsigned era)
{
    for (; table && table->name; table++)
        if (table->eras & era && str_eq(table->name, name))
            return table;
    return NULL;
}

/* The methods of all parts. */
static const struct mcp_method *method_find(const struct mcp_session *session, const char *name,
                                            unsigned era)
{
    const struct mcp_extra *extra = session->mcp->options.extra;
    const struct mcp_method *const tables[] = {
        extra ? extra->methods : NULL, mcp_legacy_methods, mcp_modern_methods, mcp_tool_methods,
        mcp_resource_methods,          mcp_place_methods,
    };
    const struct mcp_method *found = NULL;

    for (size_t i = 0; !found && i < sizeof tables / sizeof *tables; i++)
        found = table_find(tables[i], name, era);
    return found;
}

static void notification_cancelled(struct mcp_session *session, const struct mcp_message *message)
{
    struct mcp_call *call = call_find(session, json_object_get(message->params, "requestId"));

    if (call &&
        (call->dialect == &mcp_legacy || !call->stream)) /* else its stream's end does that */
        call_cancel(call, true);
}

static void take_notification(struct mcp_session *session, const struct mcp_message *message)
{
    const struct mcp_method *method = method_find(session, message->method, MCP_BOTH);

    if (str_eq(message->method, "notifications/cancelled"))
        notification_cancelled(session, message);
    else if (method && method->take)
        method->take(session, message);
}

static struct mcp_call *call_new(struct mcp_session *session, const struct mcp_message *message,
                                 void *stream)
{
    struct mcp_call *call = alloc_zero(1, sizeof *call);
    const json_t *token = json_object_get(message->meta, "progressToken");

    *call = (struct mcp_call){
        .session = session,
        .dialect = &mcp_legacy,
        .stream = stream,
        .id = json_incref((json_t *)message->id),
        .method = alloc_str(message->method),
        .params = json_incref((json_t *)message->params),
        .progress = UINT64_MAX,
        .version = session->version,
        .capabilities = session->capabilities,
        .level = session->level,
    };
    if (json_is_string(token) || json_is_integer(token))
        call->progress_token = json_incref((json_t *)token);
    return call;
}

/* A call that may begin; false: it was answered. */
static bool may_begin(struct mcp_call *call, const struct mcp_method *method)
{
    if (is_taken(call))
        mcp_call_fail(call, MCP_INVALID_REQUEST, "a request with this id is not answered yet");
    else if (call->session->calls_len >= MCP_CALLS_MAX && !mcp_modern_make_room(call->session))
        mcp_call_fail(call, MCP_INTERNAL,
                      "%d requests of this session are not answered yet: wait for some",
                      MCP_CALLS_MAX);
    else if (!method || !method->handle)
        mcp_call_fail(call, MCP_UNKNOWN_METHOD, "there is no method \"%.100s\"", call->method);
    else if (call->dialect == &mcp_legacy && !call->session->is_initialized && !method->is_early)
        mcp_call_fail(call, MCP_INVALID_REQUEST, "the first request has to be initialize");
    else
        return true;
    return false;
}

static void take_request(struct mcp_session *session, const struct mcp_message *message,
                         void *stream)
{
    bool is_modern = mcp_modern_is(message);
    const struct mcp_method *method =
        method_find(session, message->method, is_modern ? MCP_MODERN : MCP_LEGACY);
    struct mcp_call *call = call_new(session, message, stream);

    if (is_modern && !mcp_modern_begin(call, message))
        return;
    if (!may_begin(call, method) || (is_modern && mcp_modern_resume(call)))
        return;
    list_append(&session->calls, &call->in_session);
    session->calls_len++;
    method->handle(call);
}

void mcp_session_take(struct mcp_session *session, const struct mcp_message *message, void *stream)
{
    const struct mcp_failure wrong = {.code = message->code, .text = message->text};

    switch (message->kind) {
    case MCP_REQUEST:
        take_request(session, message, stream);
        break;
    case MCP_NOTIFICATION:
        take_notification(session, message);
        break;
    case MCP_RESULT:
    case MCP_ERROR:
        take_answer(session, message);
        break;
    case MCP_INVALID:
        session_fail(session, stream, message->id, &wrong);
        break;
    }
}

void mcp_session_stream_closed(struct mcp_session *session, void *stream)
{
    struct mcp_call *call;
    struct mcp_call *next;
    struct question *question;

    list_for_each(question, &session->questions, in_session)
        if (question->stream == stream)
            question->stream = NULL;
    list_for_each_safe(call, next, &session->calls, in_session) {
        if (call->stream != stream)
            continue;
        call->is_unheard = true;
        if (call->dialect->closing_cancels)
            call_cancel(call, false);
    }
}

bool mcp_session_has_batches(const struct mcp_session *session)
{
    return session->is_initialized && mcp_version_has(session->version, MCP_HAS_BATCHES);
}

/* --- life --- */

struct mcp_engine *mcp_session_engine(struct mcp_session *session, struct err *err)
{
    if (session->engine)
        return session->engine;
    session->engine = mcp_engine_new(session->mcp, err);
    if (session->engine)
        mcp_ask_begin(session, session->engine);
    return session->engine;
}

struct mcp_session *mcp_session_new(struct mcp *mcp, struct mcp_sender sender,
                                    const char *principal)
{
    struct mcp_session *session = alloc_zero(1, sizeof *session);

    *session = (struct mcp_session){
        .mcp = mcp,
        .number = ++mcp->sessions_made,
        .sender = sender,
        .principal = alloc_str(principal),
        .version = MCP_2025_11_25,
        .capabilities = json_object(),
        .level = MCP_LEVEL_WARNING,
    };
    session->news = mcp_news_new(session);
    list_append(&mcp->sessions, &session->in_mcp);
    return session;
}

void mcp_session_free(struct mcp_session *session)
{
    if (!session)
        return;
    mcp_modern_end_listening(session);
    while (!list_is_empty(&session->questions))
        question_end(session, list_first(&session->questions, struct question, in_session), NULL);
    while (!list_is_empty(&session->calls))
        call_cancel(list_first(&session->calls, struct mcp_call, in_session), false);
    mcp_place_done(session);
    mcp_news_free(session->news);
    mcp_engine_free(session->engine);
    list_remove(&session->in_mcp);
    json_decref(session->capabilities);
    json_decref(session->client);
    free(session->principal);
    free(session);
}

/* Sessions over HTTP, and what a POST, a GET and a DELETE mean to them (Streamable HTTP of 2025-11-25 and before).
 *
 * A POST with a request is a stream of its session. As long as nothing but answers have come for it, and the turn of the loop that
 * took it is not over, it collects them: then they are the body of its reply. Else it becomes a stream of events:
 *
 *     collects --- all answered in the same turn ---> application/json
 *        \------- something else, or later --------> text/event-stream, until the last answer
 *
 * What is for no request goes on the standing stream, number 0, which a GET listens to; it waits there for the first
 * one. A stream outlives its connection: what comes meanwhile is kept (events.h), and a GET with Last-Event-ID goes on with
 * it. So a broken connection cancels nothing.
 *
 * The id of a session says which one is meant, and is no permission: who sends it has come through the door.
 *
 * Versions without sessions (2026-07-28) have one here for all requests: who comes through the door is one person. Their streams are
 * those of single requests, without ids of events; the end of one cancels its request. */
#include "mcp/http/connection.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "base/str.h"
#include "mcp/http/mirror.h"
#include "mcp/mcp.h"
#include "mcp/modern.h"
#include "mcp/session.h"

#include <stdlib.h>
#include <string.h>

struct endpoint_stream {
    struct list in_session;
    struct endpoint_session *session;
    struct connection *connection; /* NULL: nobody listens */
    uint64_t number;               /* 0: the standing one */
    uint64_t next;                 /* number of its next event */
    uint64_t told;      /* of the standing one: of the first that was written to no connection */
    size_t waiting;     /* answers that are still to come */
    struct buf answers; /* while it collects; of a batch, with commas between them */
    bool collects;
    bool is_taken; /* its messages are being handed to the session: it must not go */
};

struct endpoint_session {
    struct mcp_http *http;
    struct list in_http;
    char id[DOOR_SESSION_ID_SIZE];
    struct mcp_session *session;
    struct event_store store;
    struct list streams;
    struct endpoint_stream *standing;
    uint64_t streams_made;
    uint64_t active_ns; /* when a request came, or the last connection went */
    bool is_modern;     /* that one: nothing of it is kept */
};

/* --- streams --- */

static struct endpoint_stream *stream_new_in(struct endpoint_session *session)
{
    struct endpoint_stream *stream = alloc_zero(1, sizeof *stream);

    stream->session = session;
    stream->number = session->streams_made++;
    buf_init(&stream->answers, SIZE_MAX / 2);
    list_append(&session->streams, &stream->in_session);
    return stream;
}

static void stream_forget(struct endpoint_stream *stream)
{
    list_remove(&stream->in_session);
    buf_done(&stream->answers);
    free(stream);
}

static void stream_detach(struct endpoint_stream *stream)
{
    if (stream->connection)
        connection_end_events(stream->connection);
    stream->connection = NULL;
}

/* `text` NULL: the event that begins a stream. */
static void stream_put(struct endpoint_stream *stream, const char *text, size_t len)
{
    const struct event_id id = {stream->number, stream->next++};

    if (stream->session->is_modern) {
        if (stream->connection)
            connection_event(stream->connection, NULL, text, len);
        return;
    }
    event_store_add(&stream->session->store, id, text, len);
    if (!stream->connection)
        return;
    connection_event(stream->connection, &id, text, len);
    if (stream->connection->stage != CONNECTION_DEAD)
        stream->told = stream->next;
}

static bool has_priming(const struct endpoint_session *session)
{
    return !session->is_modern && mcp_version_has(session->session->version, MCP_HAS_PRIMING);
}

/* From now on there are events. */
static void stream_begin(struct endpoint_stream *stream)
{
    stream->collects = false;
    connection_begin_events(stream->connection, stream);
    if (has_priming(stream->session))
        stream_put(stream, NULL, 0);
    if (stream->answers.len)
        stream_put(stream, stream->answers.data, stream->answers.len);
    buf_done(&stream->answers);
}

static void stream_collect(struct endpoint_stream *stream, const char *text, size_t len)
{
    if (stream->answers.len)
        buf_append_str(&stream->answers, ",");
    buf_append(&stream->answers, text, len);
}

static void on_send(void *context, void *given, const char *text, size_t len, bool is_answer)
{
    struct endpoint_session *session = context;
    struct endpoint_stream *stream = given ? given : session->standing;

    if (!stream) /* of versions that have none for all */
        return;
    if (text && is_answer && stream->collects)
        stream_collect(stream, text, len);
    else if (text && stream->collects)
        stream_begin(stream);
    if (text && !stream->collects)
        stream_put(stream, text, len);
    if (is_answer && stream->waiting)
        stream->waiting--;
    if (stream->waiting || stream->is_taken || stream == session->standing)
        return;
    stream_detach(stream);
    stream_forget(stream);
    session->active_ns = clock_now_ns();
}

static bool on_ask_full(void *context, void *given)
{
    const struct endpoint_session *session = context;
    const struct endpoint_stream *stream = given ? given : session->standing;

    return stream && stream->connection && connection_is_full(stream->connection);
}

static void on_let_go(void *context, void *given)
{
    struct endpoint_stream *stream = given;

    if (!has_priming(stream->session)) /* it has no id to come back with */
        return;
    if (stream->collects)
        stream_begin(stream);
    stream_detach(stream);
}

void endpoint_lost(struct connection *connection)
{
    struct endpoint_stream *stream = connection->events;

    if (!stream)
        return;
    connection->events = NULL;
    stream->connection = NULL;
    stream->session->active_ns = clock_now_ns();
    if (!stream->session->is_modern)
        return;
    mcp_session_stream_closed(stream->session->session, stream);
    stream_forget(stream);
}

/* --- sessions --- */

static struct endpoint_session *session_find(const struct mcp_http *http, const char *id)
{
    struct endpoint_session *session;

    list_for_each(session, &http->sessions, in_http)
        if (str_eq(session->id, id))
            return session;
    return NULL;
}

static struct endpoint_session *session_begin(struct mcp_http *http)
{
    struct endpoint_session *session = alloc_zero(1, sizeof *session);
    const struct mcp_sender sender = {
        .send = on_send, .is_full = on_ask_full, .let_go = on_let_go, .context = session};

    session->http = http;
    door_session_id(session->id);
    session->standing = stream_new_in(session);
    session->session = mcp_session_new(http->options.mcp, sender, "http");
    session->active_ns = clock_now_ns();
    list_append(&http->sessions, &session->in_http);
    http->sessions_len++;
    http_due_by(http, clock_after(session->active_ns, http->options.session_idle_ns));
    return session;
}

static void session_end(struct endpoint_session *session)
{
    struct endpoint_stream *stream;
    struct endpoint_stream *following;

    mcp_session_free(session->session);
    list_for_each_safe(stream, following, &session->streams, in_session) {
        stream_detach(stream);
        stream_forget(stream);
    }
    event_store_done(&session->store);
    if (!session->is_modern)
        session->http->sessions_len--;
    list_remove(&session->in_http);
    free(session);
}

static struct endpoint_session *modern_session(struct mcp_http *http)
{
    const struct mcp_sender sender = {.send = on_send, .is_full = on_ask_full};
    struct endpoint_session *session = http->modern;

    if (session)
        return session;
    session = alloc_zero(1, sizeof *session);
    session->http = http;
    session->is_modern = true;
    session->session = mcp_session_new(http->options.mcp, sender, "http");
    session->session->sender.context = session;
    http->modern = session;
    return session;
}

void endpoint_end_sessions(struct mcp_http *http)
{
    struct endpoint_session *session;
    struct endpoint_session *following;

    list_for_each_safe(session, following, &http->sessions, in_http)
        session_end(session);
    if (http->modern)
        session_end(TAKE_PTR(http->modern));
}

/* When it ends unless somebody comes. */
static uint64_t session_due_ns(const struct endpoint_session *session, uint64_t now_ns)
{
    const uint64_t idle_ns = session->http->options.session_idle_ns;
    const struct endpoint_stream *stream;

    list_for_each(stream, &session->streams, in_session)
        if (stream->connection)
            return clock_after(now_ns, idle_ns);
    return session->session->calls_len ? clock_after(now_ns, idle_ns)
                                       : clock_after(session->active_ns, idle_ns);
}

uint64_t endpoint_tick(struct mcp_http *http, uint64_t now_ns)
{
    struct endpoint_session *session;
    struct endpoint_session *following;
    uint64_t due = UINT64_MAX;

    list_for_each_safe(session, following, &http->sessions, in_http) {
        uint64_t its = session_due_ns(session, now_ns);

        if (its <= now_ns) {
            log_event(LOG_LEVEL_INFO, "mcp-session-idle",
                      log_uint("session", session->session->number));
            session_end(session);
        } else if (its < due)
            due = its;
    }
    return due;
}

/* The one that the request names; NULL: it was refused. */
static struct endpoint_session *session_of(struct connection *connection)
{
    const char *id = http_head_field(&connection->intake.request.head, "Mcp-Session-Id");
    struct endpoint_session *session = id ? session_find(connection->http, id) : NULL;

    if (!id)
        connection_refuse(connection, 400,
                          "there is no Mcp-Session-Id: send the one that came with the answer to "
                          "initialize, or initialize first");
    else if (!session)
        connection_refuse(connection, 404,
                          "there is no such session: it has ended, or the server was started anew; "
                          "begin again with initialize");
    else
        session->active_ns = clock_now_ns();
    return session;
}

/* It may be another than the session's, but has to be one. false: it was refused. */
static bool has_version(struct connection *connection)
{
    const char *text = http_head_field(&connection->intake.request.head, "MCP-Protocol-Version");
    enum mcp_version ignored;

    if (!text || mcp_version_parse(text, &ignored))
        return true;
    connection_refuse(
        connection, 400,
        "MCP-Protocol-Version is none of 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26");
    return false;
}

/* --- POST --- */

static bool is_initialize(const struct mcp_messages *messages)
{
    const struct mcp_message *first = &messages->items[0];

    return !messages->is_batch && first->kind == MCP_REQUEST && str_eq(first->method, "initialize");
}

/* What was answered in the turn that took it is the reply. */
static void reply_collected(struct endpoint_stream *stream, bool is_batch)
{
    struct endpoint_session *session = stream->session;
    struct reply reply = {.status = 202};
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    if (is_batch && stream->answers.len)
        buf_appendf(&text, "[");
    buf_append(&text, stream->answers.data, stream->answers.len);
    if (is_batch && stream->answers.len)
        buf_appendf(&text, "]");
    if (text.len)
        reply = (struct reply){.status = 200, .text = text.data, .len = text.len};
    if (text.len && session->is_modern)
        reply.status = mirror_status(text.data, text.len);
    else if (stream->number == 1 && session->session->is_initialized) /* which initialize is */
        reply.session = session->id;
    connection_reply(stream->connection, reply);
}

static size_t count_answers(const struct mcp_messages *messages)
{
    size_t count = 0;

    for (size_t i = 0; i < messages->len; i++)
        count += messages->items[i].kind == MCP_REQUEST || messages->items[i].kind == MCP_INVALID;
    return count;
}

/* Hands the messages over; those that want an answer as a stream of their own. */
static void take_messages(struct connection *connection, struct endpoint_session *session,
                          const struct mcp_messages *messages)
{
    struct endpoint_stream *stream = stream_new_in(session);

    stream->connection = connection;
    stream->waiting = count_answers(messages);
    stream->collects = true;
    stream->is_taken = true;
    for (size_t i = 0; i < messages->len; i++)
        mcp_session_take(session->session, &messages->items[i], stream);
    stream->is_taken = false;
    if (stream->collects && stream->waiting) {
        stream_begin(stream);
        return;
    }
    if (stream->collects)
        reply_collected(stream, messages->is_batch);
    else if (!stream->waiting)
        stream_detach(stream);
    if (!stream->waiting)
        stream_forget(stream);
}

static void initialize(struct connection *connection, const struct mcp_messages *messages)
{
    struct mcp_http *http = connection->http;
    struct endpoint_session *session;

    if (http_head_field(&connection->intake.request.head, "Mcp-Session-Id")) {
        connection_refuse(connection, 400,
                          "initialize begins a session, so it has no Mcp-Session-Id");
        return;
    }
    if (http->sessions_len >= SESSIONS_MAX) {
        connection_refuse(connection, 503,
                          "there are too many sessions: end some by DELETE, or try again when idle "
                          "ones have ended");
        return;
    }
    session = session_begin(http);
    take_messages(connection, session, messages);
    if (!session->session->is_initialized)
        session_end(session);
}

static void refuse_message(struct connection *connection, const struct mcp_message *message)
{
    const struct mcp_failure failure = {.code = message->code, .text = message->text};
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    mcp_text_error(&text, message->id, &failure);
    connection_reply(connection, (struct reply){.status = 400, .text = text.data, .len = text.len});
}

/* Whether the request is of a version without sessions: its body says so, or its header does. */
static bool is_modern(const struct connection *connection, const struct mcp_messages *messages)
{
    const char *text = http_head_field(&connection->intake.request.head, "MCP-Protocol-Version");
    enum mcp_version version;

    return !messages->is_batch && messages->items[0].method &&
           (mcp_modern_is(&messages->items[0]) ||
            (text && mcp_version_parse(text, &version) && mcp_version_is_modern(version)));
}

static void take_modern(struct connection *connection, const struct mcp_messages *messages)
{
    const struct mcp_message *message = &messages->items[0];
    struct mcp_message wrong = {.id = message->id, .code = MCP_HEADER_MISMATCH};
    char words[120];

    if (message->kind == MCP_NOTIFICATION) { /* there are none over HTTP that mean anything */
        connection_reply(connection, (struct reply){.status = 202});
        return;
    }
    if (!mcp_modern_is_whole(message)) {
        wrong.code = MCP_INVALID_PARAMS;
        wrong.text =
            "params._meta needs \"io.modelcontextprotocol/protocolVersion\", a string, and "
            "\"io.modelcontextprotocol/clientCapabilities\", an object";
    } else {
        wrong.text =
            mirror_mismatch(&connection->intake.request.head, message, words, sizeof words);
    }
    if (wrong.text)
        refuse_message(connection, &wrong);
    else
        take_messages(connection, modern_session(connection->http), messages);
}

static void take_post(struct connection *connection, const struct mcp_messages *messages)
{
    struct endpoint_session *session;

    if (!messages->is_batch && messages->items[0].kind == MCP_INVALID) {
        refuse_message(connection, &messages->items[0]);
        return;
    }
    if (is_modern(connection, messages)) {
        take_modern(connection, messages);
        return;
    }
    if (!has_version(connection))
        return;
    if (is_initialize(messages)) {
        initialize(connection, messages);
        return;
    }
    session = session_of(connection);
    if (!session)
        return;
    if (messages->is_batch && !mcp_session_has_batches(session->session))
        connection_refuse(connection, 400,
                          "an array of messages is for version 2025-03-26 alone: send one message "
                          "by each POST");
    else
        take_messages(connection, session, messages);
}

static void post(struct connection *connection)
{
    const struct buf *body = &connection->intake.body;
    AUTO(mcp_messages_done) struct mcp_messages messages;

    mcp_messages_read(body->data ? body->data : "", body->len, &messages);
    take_post(connection, &messages);
}

/* --- GET --- */

static struct endpoint_stream *stream_find(const struct endpoint_session *session, uint64_t number)
{
    struct endpoint_stream *stream;

    list_for_each(stream, &session->streams, in_session)
        if (stream->number == number)
            return stream;
    return NULL;
}

/* Writes what is kept behind this one. */
static void replay(struct connection *connection, const struct endpoint_session *session,
                   struct event_id id)
{
    const struct event *event = event_store_after(&session->store, id);

    for (; event; event = event_store_after(&session->store, event->id))
        connection_event(connection, &event->id, event->text, event->len);
}

/* Nobody has listened to the standing stream before, or its client did not say up to where. */
static void listen_anew(struct connection *connection, struct endpoint_session *session)
{
    struct endpoint_stream *standing = session->standing;
    const struct event_id told = {0, standing->told - 1}; /* before the first: no event */

    if (standing->connection) {
        connection_refuse(connection, 409,
                          "somebody listens to this session already: one GET at a time");
        return;
    }
    connection_begin_events(connection, standing);
    replay(connection, session, told);
    standing->connection = connection;
    standing->told = standing->next;
    if (has_priming(session))
        stream_put(standing, NULL, 0);
}

static void listen_again(struct connection *connection, struct endpoint_session *session,
                         const char *last)
{
    struct endpoint_stream *stream;
    struct event_id id;

    if (!event_id_parse(last, &id)) {
        connection_refuse(connection, 400, "Last-Event-ID is no id of an event of ours");
        return;
    }
    stream = stream_find(session, id.stream);
    if (!(stream && stream->next == id.number + 1) && !event_store_goes_on(&session->store, id)) {
        connection_refuse(connection, 400,
                          "the events behind this Last-Event-ID are kept no longer: listen without "
                          "it, and ask again for what was lost");
        return;
    }
    if (!stream && !event_store_after(&session->store, id)) {
        connection_reply(connection, (struct reply){.status = 204}); /* it has seen all */
        return;
    }
    if (stream) /* whoever listened has lost it, or would not come again */
        stream_detach(stream);
    connection_begin_events(connection, stream);
    replay(connection, session, id);
    if (!stream) {
        connection_end_events(connection);
        return;
    }
    stream->connection = connection;
    stream->told = stream->next;
}

static void get(struct connection *connection)
{
    const char *last = http_head_field(&connection->intake.request.head, "Last-Event-ID");
    struct endpoint_session *session = has_version(connection) ? session_of(connection) : NULL;

    if (session && last)
        listen_again(connection, session, last);
    else if (session)
        listen_anew(connection, session);
}

/* --- all --- */

void endpoint_take(struct connection *connection)
{
    const char *method = connection->intake.request.head.method;
    struct endpoint_session *session;

    if (str_eq(method, "POST")) {
        post(connection);
    } else if (str_eq(method, "GET")) {
        get(connection);
    } else {
        session = has_version(connection) ? session_of(connection) : NULL;
        if (!session)
            return;
        session_end(session);
        connection_reply(connection, (struct reply){.status = 200});
    }
}

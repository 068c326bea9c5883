/* One connection: requests come, one at a time, and are answered in their order; those behind wait in it.
 *
 * Who may come in is asked for each request, as soon as its head is there and before any of its body: Host, Origin and
 * token by door.h; and where a token is not to do for any process, whose process it is, which takes some rounds of the loop
 * and is the same for all requests of a connection. A refusal in front of a body closes the connection, so that nobody
 * makes us read what was refused.
 *
 * Nothing is freed, and no other session hears of a connection, from inside the function that finds it broken: that
 * may have been called by a session that is in the middle of something. The next round does both (server.c). */
#include "mcp/http/connection.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "base/str.h"
#include "rpc/transport/auth.h"
#include "rpc/transport/stream.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    HEAD_S = 10,  /* for all of a head */
    BODY_S = 30,  /* and all of a body */
    IDLE_S = 75,  /* until the next request */
    STALL_S = 60, /* a client may take nothing for so long */
    LINGER_S = 2, /* for the other end to close, when all is written */
    COMMENT_S =
        15, /* between signs of life in a stream: what stands between closes one that is silent */
    READ_SIZE = 64 << 10,
    OUT_KEPT = 16 << 10, /* bytes of memory for what is written that stay */
};

static uint64_t after_s(uint64_t now_ns, uint64_t seconds)
{
    return clock_after(now_ns, seconds * CLOCK_NS_PER_S);
}

static size_t queued(const struct connection *connection)
{
    return connection->out.len - connection->out_at;
}

static void set_deadline(struct connection *connection, uint64_t seconds)
{
    connection->deadline_ns = after_s(clock_now_ns(), seconds);
    http_due_by(connection->http, connection->deadline_ns);
}

static void update_interest(struct connection *connection)
{
    const enum connection_stage stage = connection->stage;
    bool reads =
        stage == CONNECTION_LINGERS ||
        ((stage == CONNECTION_READS || stage == CONNECTION_ADMITS || stage == CONNECTION_STREAMS) &&
         intake_room(&connection->intake) && queued(connection) < QUEUE_FULL);

    if (stage == CONNECTION_DEAD)
        stream_want(connection->stream, LOOP_NOTHING);
    else
        stream_want(connection->stream,
                    (reads ? LOOP_READ : 0) | (queued(connection) ? LOOP_WRITE : 0));
}

void connection_break(struct connection *connection)
{
    connection->stage = CONNECTION_DEAD;
    update_interest(connection);
    http_defer(connection->http);
}

/* --- bytes out --- */

static void on_all_written(struct connection *connection)
{
    connection->out_at = 0;
    if (connection->out.cap > OUT_KEPT)
        buf_done(&connection->out);
    else
        buf_clear(&connection->out);
    if (connection->stage != CONNECTION_FLUSHES)
        return;
    stream_end_writing(connection->stream);
    connection->stage = CONNECTION_LINGERS;
    set_deadline(connection, LINGER_S);
}

static void write_queued(struct connection *connection)
{
    while (queued(connection)) {
        struct iovec part = {connection->out.data + connection->out_at, queued(connection)};
        ssize_t n = stream_write(connection->stream, &part, 1);

        if (n == STREAM_AGAIN)
            return;
        if (n < 0) {
            connection_break(connection);
            return;
        }
        connection->out_at += (size_t)n;
        connection->written_ns = clock_now_ns();
    }
    on_all_written(connection);
}

/* What was appended to `out` goes out at once when the client takes it. */
static void send_out(struct connection *connection)
{
    if (connection->stage == CONNECTION_DEAD)
        return;
    if (connection->out_at > QUEUE_FULL) {
        buf_consume(&connection->out, connection->out_at);
        connection->out_at = 0;
    }
    write_queued(connection);
    if (queued(connection))
        http_due_by(connection->http, after_s(connection->written_ns, STALL_S));
    update_interest(connection);
}

/* The answer is written; on to the next request, or to the end. */
static void finish_request(struct connection *connection, bool closes)
{
    connection->events = NULL;
    if (connection->stage == CONNECTION_DEAD)
        return;
    if (closes) {
        connection->stage = CONNECTION_FLUSHES;
    } else {
        connection->stage = CONNECTION_READS;
        intake_next(&connection->intake);
        set_deadline(connection, IDLE_S);
        connection->goes_on = true;
        http_defer(connection->http);
    }
    send_out(connection);
}

void connection_reply(struct connection *connection, struct reply reply)
{
    reply.closes |= !connection->intake.request.stays;
    reply_write(&reply, &connection->out);
    finish_request(connection, reply.closes);
}

void connection_refuse(struct connection *connection, int status, const char *text)
{
    AUTO(buf_done) struct buf body;

    buf_init(&body, SIZE_MAX / 2);
    reply_error_text(text, &body);
    connection_reply(connection,
                     (struct reply){.status = status, .text = body.data, .len = body.len});
}

void connection_begin_events(struct connection *connection, struct endpoint_stream *events)
{
    connection->stage = CONNECTION_STREAMS;
    connection->events = events;
    connection->is_chunked = connection->intake.request.head.minor == 1;
    reply_write_stream(NULL, connection->is_chunked, &connection->out);
    connection->written_ns = clock_now_ns();
    http_due_by(connection->http, after_s(connection->written_ns, COMMENT_S));
    send_out(connection);
}

static void put_in_stream(struct connection *connection, const struct buf *text)
{
    if (connection->stage == CONNECTION_DEAD)
        return;
    if (queued(connection) > QUEUE_MAX) {
        connection_break(connection);
        return;
    }
    if (connection->is_chunked)
        reply_write_chunk(text->data, text->len, &connection->out);
    else
        buf_append(&connection->out, text->data, text->len);
    send_out(connection);
}

void connection_event(struct connection *connection, const struct event_id *id, const char *text,
                      size_t len)
{
    AUTO(buf_done) struct buf event;

    buf_init(&event, SIZE_MAX / 2);
    event_write(&event, id, text, len);
    put_in_stream(connection, &event);
}

void connection_end_events(struct connection *connection)
{
    if (connection->is_chunked)
        reply_write_chunk(NULL, 0, &connection->out);
    finish_request(connection, !connection->is_chunked || !connection->intake.request.stays);
}

bool connection_is_full(const struct connection *connection)
{
    return queued(connection) >= QUEUE_FULL;
}

/* --- who comes in --- */

/* A refusal in front of a body is the last thing that is said, and so is one of its process: that stays what it is, and is
 * told, and logged, once. */
static bool is_last_word(const struct connection *connection)
{
    const enum admission_state state = connection->admission.state;

    return connection->intake.request.body.kind != HTTP_BODY_NONE || state == ADMISSION_REFUSED ||
           state == ADMISSION_BLIND;
}

static void turn_away(struct connection *connection, const struct door_answer *answer)
{
    AUTO(buf_done) struct buf body;

    buf_init(&body, SIZE_MAX / 2);
    reply_error_text(answer->text, &body);
    connection_reply(connection,
                     (struct reply){
                         .status = answer->status,
                         .text = body.data,
                         .len = body.len,
                         .allow = answer->allow,
                         .closes = is_last_word(connection),
                         .is_to_head = str_eq(connection->intake.request.head.method, "HEAD"),
                     });
}

static struct rpc_address came_to(const struct connection *connection)
{
    struct rpc_address here = {.transport = RPC_HTTP};
    socklen_t len = sizeof here.ip;

    if (getsockname(stream_fd(connection->stream), &here.ip.any, &len))
        here.ip.any.sa_family = AF_UNSPEC;
    return here;
}

static struct door_answer ask_door(const struct connection *connection)
{
    const struct rpc_address here = came_to(connection);
    char address[RPC_ADDRESS_TEXT_SIZE];
    const struct door_situation situation = {
        .auth = connection->http->options.auth,
        .address = address,
        .port =
            ntohs(here.ip.any.sa_family == AF_INET6 ? here.ip.v6.sin6_port : here.ip.v4.sin_port),
        .is_loopback = here.ip.any.sa_family != AF_UNSPEC && rpc_address_is_loopback(&here),
    };

    rpc_address_format(&here, address);
    return door_lets_in(&connection->intake.request, &situation);
}

/* Whether its process may come in; ADMITS while that is being found out. */
static struct door_answer ask_admission(struct connection *connection)
{
    const struct rpc_auth *auth = connection->http->options.auth;
    struct admission_request *request = &connection->admission;

    if (auth && !rpc_auth_is_for_own_processes(auth))
        return (struct door_answer){.status = 0};
    if (request->state == ADMISSION_UNASKED)
        admission_ask(&connection->http->admission, request, stream_fd(connection->stream));
    switch (request->state) {
    case ADMISSION_UNASKED:
    case ADMISSION_WAITING:
    case ADMISSION_SEARCHING:
        connection->stage = CONNECTION_ADMITS;
        return (struct door_answer){.status = 0};
    case ADMISSION_GRANTED:
        connection->stage = CONNECTION_READS;
        return (struct door_answer){.status = 0};
    case ADMISSION_REFUSED:
        log_event(LOG_LEVEL_WARN, "peer-refused", log_text("transport", "http"));
        return (struct door_answer){
            .status = 403,
            .text = "this server lets in its own user's processes: not commands of Cordon's, nor "
                    "processes that it cannot see; those need --ws-auth capability-token"};
    case ADMISSION_BLIND:
        break;
    }
    return (struct door_answer){.status = 503,
                                .text = "the server cannot look who this is: it has no descriptors "
                                        "or memory left; try again later"};
}

/* The head is there; its body may come when nothing speaks against it. */
static void judge_head(struct connection *connection)
{
    const struct http_request *request = &connection->intake.request;
    struct door_answer answer = ask_door(connection);

    if (!answer.status)
        answer = ask_admission(connection);
    if (!answer.status && connection->stage == CONNECTION_ADMITS)
        return;
    if (!answer.status) {
        connection->is_known = true;
        answer = door_routes(request);
    }
    if (answer.status) {
        turn_away(connection, &answer);
        return;
    }
    if (request->wants_continue && request->head.minor == 1 && !connection->intake.bytes.len)
        buf_append_str(&connection->out, "HTTP/1.1 100 Continue\r\n\r\n");
    intake_take_body(&connection->intake);
    set_deadline(connection, BODY_S);
    send_out(connection);
}

/* --- bytes in --- */

static bool may_go_on(const struct connection *connection)
{
    return (connection->stage == CONNECTION_READS || connection->stage == CONNECTION_ADMITS) &&
           queued(connection) < QUEUE_FULL;
}

void connection_go_on(struct connection *connection)
{
    struct intake *intake = &connection->intake;

    connection->goes_on = false;
    while (may_go_on(connection)) {
        enum intake_state was = intake->state;

        switch (intake_step(intake)) {
        case INTAKE_HEAD_READ:
            judge_head(connection);
            if (connection->stage == CONNECTION_ADMITS)
                return;
            continue;
        case INTAKE_WHOLE:
            connection->stage = CONNECTION_ANSWERS;
            list_remove(&connection->in_http); /* begins a request later than all others */
            list_append(&connection->http->connections, &connection->in_http);
            endpoint_take(connection);
            return; /* what is behind it comes in the next round */
        case INTAKE_WRONG:
            intake->request.stays = false;
            connection_refuse(connection, intake->status, intake->err.msg);
            return;
        case INTAKE_HEAD:
        case INTAKE_BODY:
            if (intake->state == was)
                return;
            break;
        }
    }
}

static void read_bytes(struct connection *connection)
{
    bool drops = connection->stage == CONNECTION_LINGERS;
    size_t room = drops ? READ_SIZE : intake_room(&connection->intake);
    bool was_empty = intake_is_empty(&connection->intake);
    char bytes[READ_SIZE];
    ssize_t n;

    if (!room)
        return;
    n = stream_read(connection->stream, bytes, room < sizeof bytes ? room : sizeof bytes);
    if (n == STREAM_AGAIN)
        return;
    if (n == 0 && connection->stage == CONNECTION_READS && queued(connection)) {
        connection->stage = CONNECTION_FLUSHES; /* it may still read */
        return;
    }
    if (n <= 0) {
        connection_break(connection);
        return;
    }
    if (drops)
        return;
    intake_append(&connection->intake, bytes, (size_t)n);
    if (was_empty && connection->stage == CONNECTION_READS)
        set_deadline(connection, HEAD_S);
    connection_go_on(connection);
}

static void on_ready(void *data, unsigned ready)
{
    struct connection *connection = data;

    if (ready & LOOP_WRITE && connection->stage != CONNECTION_DEAD) {
        write_queued(connection);
        connection_go_on(connection);
    }
    if (ready & LOOP_READ && connection->stage != CONNECTION_DEAD)
        read_bytes(connection);
    update_interest(connection);
}

/* --- time --- */

bool connection_is_idle(const struct connection *connection)
{
    return connection->stage == CONNECTION_READS && intake_is_empty(&connection->intake);
}

static void on_deadline(struct connection *connection)
{
    if (connection->stage == CONNECTION_LINGERS || connection_is_idle(connection)) {
        connection_break(connection);
        return;
    }
    connection->intake.request.stays = false;
    connection_refuse(connection, 408, "the request took too long");
}

static bool has_deadline(const struct connection *connection)
{
    return connection->stage == CONNECTION_READS || connection->stage == CONNECTION_LINGERS;
}

void connection_tick(struct connection *connection, uint64_t now_ns)
{
    static const char comment[] = ":\n\n";
    const struct buf text = {.data = (char *)(uintptr_t)comment, .len = sizeof comment - 1};

    if (connection->stage == CONNECTION_DEAD)
        return;
    if (queued(connection) && after_s(connection->written_ns, STALL_S) <= now_ns)
        connection_break(connection);
    else if (has_deadline(connection) && connection->deadline_ns <= now_ns)
        on_deadline(connection);
    else if (connection->stage == CONNECTION_STREAMS && !queued(connection) &&
             after_s(connection->written_ns, COMMENT_S) <= now_ns)
        put_in_stream(connection, &text);
}

uint64_t connection_due_ns(const struct connection *connection)
{
    if (connection->stage == CONNECTION_DEAD)
        return UINT64_MAX;
    if (queued(connection))
        return after_s(connection->written_ns, STALL_S);
    if (connection->stage == CONNECTION_STREAMS)
        return after_s(connection->written_ns, COMMENT_S);
    return has_deadline(connection) ? connection->deadline_ns : UINT64_MAX;
}

/* --- life --- */

static void on_decided(void *data)
{
    struct connection *connection = data;

    connection->goes_on = true;
    http_defer(connection->http);
}

void connection_accept(struct mcp_http *http, int fd, const struct rpc_address *from)
{
    struct connection *connection;
    const int on = 1;
    struct stream *stream;
    struct err err;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    stream = stream_new(http->loop, fd, fd, &err);
    if (!stream) {
        log_event(LOG_LEVEL_WARN, "connection-failed", log_text("why", err.msg));
        return;
    }
    connection = alloc_zero(1, sizeof *connection);
    *connection = (struct connection){.http = http, .stream = stream};
    intake_init(&connection->intake);
    buf_init(&connection->out, SIZE_MAX / 2);
    connection->admission.on_decided = on_decided;
    connection->admission.data = connection;
    connection->written_ns = clock_now_ns();
    list_append(&http->connections, &connection->in_http);
    http->connections_len++;
    stream_set_callback(stream, on_ready, connection);
    set_deadline(connection, HEAD_S);
    update_interest(connection);
}

void connection_free(struct connection *connection)
{
    list_remove(&connection->in_http);
    connection->http->connections_len--;
    admission_withdraw(&connection->admission);
    stream_free(connection->stream);
    intake_done(&connection->intake);
    buf_done(&connection->out);
    free(connection);
}

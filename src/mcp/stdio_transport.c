/* See stdio_transport.h. Input is cut into lines, of which each is a message (or, in the version that has them, a batch). Output is written at
 * once; what the client does not take is queued, and while too much is, nothing more is read: its requests wait in its own pipe.
 *
 *     reading ---end of input---> answering ---all answered, or 1 s---> ended
 *        \____________________ nobody reads us ________________________^
 *
 * Requests in front of the end of input get their answers, so that `printf ... | cordon mcp` works; what takes longer than a
 * second ends, because clients that close our input wait for our end (lifecycle, "Shutdown"). */
#include "mcp/stdio_transport.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "mcp/mcp.h"
#include "mcp/modern.h"
#include "mcp/session.h"
#include "rpc/transport/stream.h"

#include <stdlib.h>
#include <string.h>

enum {
    READ_SIZE = 64 << 10,
    FULL = 1 << 20, /* bytes queued: what may be lost is not sent */
    STOP = 4 << 20, /* bytes queued: nothing is read */
};
#define ANSWERING_NS UINT64_C(1000000000)

struct mcp_stdio {
    struct mcp *mcp;
    struct mcp_session *session; /* NULL: ended */
    struct stream *stream;
    struct buf in;    /* a line that is not complete yet */
    size_t scanned;   /* bytes of it without a line feed */
    bool is_skipping; /* the line is too long, and was answered */
    struct buf out;   /* what is not written yet, from `out_at` on */
    size_t out_at;
    struct list batches;
    struct loop_timer *end; /* when it is over */
    bool is_at_end;         /* of input */
    bool is_broken;         /* nobody reads us */
    void (*on_end)(void *data);
    void *data;
};

/* The answers to an array of messages, which is the stream of its calls. */
struct batch {
    struct list in_stdio;
    size_t waiting; /* answers that are still to come */
    struct buf answers;
};

/* --- output --- */

static size_t queued(const struct mcp_stdio *stdio)
{
    return stdio->out.len - stdio->out_at;
}

static void update_interest(struct mcp_stdio *stdio)
{
    bool reads = !stdio->is_at_end && !stdio->is_broken && queued(stdio) < STOP;
    bool writes = !stdio->is_broken && queued(stdio);

    stream_want(stdio->stream, (reads ? LOOP_READ : 0) | (writes ? LOOP_WRITE : 0));
}

/* To be looked at when no function of ours is running any more. */
static void check_end(struct mcp_stdio *stdio)
{
    if (!stdio->session) /* it is over, and what its session says at last is being sent */
        return;
    if (stdio->is_broken || (stdio->is_at_end && !stdio->session->calls_len && !queued(stdio)))
        loop_timer_start(stdio->end, 0);
}

static void put_broken(struct mcp_stdio *stdio)
{
    stdio->is_broken = true;
    check_end(stdio);
}

static void flush(struct mcp_stdio *stdio)
{
    const struct iovec part = {stdio->out.data + stdio->out_at, queued(stdio)};
    ssize_t n = part.iov_len ? stream_write(stdio->stream, &part, 1) : 0;

    if (n == STREAM_BROKEN)
        put_broken(stdio);
    if (n > 0)
        stdio->out_at += (size_t)n;
    if (stdio->out_at >= stdio->out.len / 2) {
        buf_consume(&stdio->out, stdio->out_at);
        stdio->out_at = 0;
    }
    check_end(stdio);
}

static void put_line(struct mcp_stdio *stdio, const char *text, size_t len)
{
    const struct iovec parts[] = {{(char *)text, len}, {(char *)"\n", 1}};
    size_t done = 0;
    ssize_t n;

    if (stdio->is_broken)
        return;
    if (!queued(stdio)) {
        n = stream_write(stdio->stream, parts, 2);
        if (n == STREAM_BROKEN) {
            put_broken(stdio);
            return;
        }
        done = n > 0 ? (size_t)n : 0;
    }
    if (done < len)
        buf_append(&stdio->out, text + done, len - done);
    if (done < len + 1)
        buf_append(&stdio->out, "\n", 1);
}

static void batch_free(struct batch *batch)
{
    list_remove(&batch->in_stdio);
    buf_done(&batch->answers);
    free(batch);
}

static void batch_take(struct mcp_stdio *stdio, struct batch *batch, const char *text, size_t len)
{
    if (text) {
        buf_append_str(&batch->answers, batch->answers.len ? "," : "[");
        buf_append(&batch->answers, text, len);
    }
    if (--batch->waiting)
        return;
    if (batch->answers.len) {
        buf_append_str(&batch->answers, "]");
        put_line(stdio, batch->answers.data, batch->answers.len);
    }
    batch_free(batch);
}

static void on_send(void *context, void *stream, const char *text, size_t len, bool is_answer)
{
    struct mcp_stdio *stdio = context;

    if (is_answer && stream)
        batch_take(stdio, stream, text, len);
    else if (text)
        put_line(stdio, text, len);
    check_end(stdio);
    update_interest(stdio);
}

static bool is_full(void *context, void *stream)
{
    return queued(context) >= FULL;
}

/* --- input --- */

static void put_error(struct mcp_stdio *stdio, int64_t code, const char *why)
{
    AUTO(buf_done) struct buf text;
    const struct mcp_failure failure = {.code = code, .text = why};

    buf_init(&text, SIZE_MAX / 2);
    mcp_text_error(&text, NULL, &failure);
    put_line(stdio, text.data, text.len);
}

static struct batch *batch_new(struct mcp_stdio *stdio, const struct mcp_messages *messages)
{
    struct batch *batch = alloc_zero(1, sizeof *batch);

    buf_init(&batch->answers, SIZE_MAX / 2);
    for (size_t i = 0; i < messages->len; i++)
        batch->waiting +=
            messages->items[i].kind == MCP_REQUEST || messages->items[i].kind == MCP_INVALID;
    list_append(&stdio->batches, &batch->in_stdio);
    return batch;
}

static void take_line(struct mcp_stdio *stdio, const char *text, size_t len)
{
    AUTO(mcp_messages_done) struct mcp_messages messages;
    struct batch *batch = NULL;

    mcp_messages_read(text, len, &messages);
    if (messages.is_batch && !mcp_session_has_batches(stdio->session)) {
        put_error(stdio, MCP_INVALID_REQUEST, "this version of the protocol has no batches");
        return;
    }
    if (messages.is_batch && mcp_messages_want_answer(&messages))
        batch = batch_new(stdio, &messages);
    for (size_t i = 0; i < messages.len; i++)
        mcp_session_take(stdio->session, &messages.items[i], batch);
}

static bool is_blank(const char *text, size_t len)
{
    while (len && strchr(" \t\r", text[len - 1]) && text[len - 1])
        len--;
    return len == 0;
}

/* What there is of a line, which goes on when it is not whole. */
static void take_too_long(struct mcp_stdio *stdio)
{
    if (!stdio->is_skipping)
        put_error(stdio, MCP_INVALID_REQUEST, "the message is longer than 16 MiB");
    stdio->is_skipping = true;
    buf_clear(&stdio->in);
    stdio->scanned = 0;
}

static void take_lines(struct mcp_stdio *stdio)
{
    size_t at = 0;
    const char *end;

    while ((end = memchr(stdio->in.data + stdio->scanned, '\n', stdio->in.len - stdio->scanned))) {
        const char *line = stdio->in.data + at;
        size_t len = (size_t)(end - line);

        at += len + 1;
        stdio->scanned = at;
        if (!stdio->is_skipping && !is_blank(line, len))
            take_line(stdio, line, len);
        stdio->is_skipping = false;
    }
    buf_consume(&stdio->in, at);
    stdio->scanned = stdio->in.len;
    if (stdio->in.len > MCP_MESSAGE_MAX || stdio->is_skipping)
        take_too_long(stdio);
}

/* A last line without its end counts: who made it with printf means it. */
static void take_end(struct mcp_stdio *stdio)
{
    stdio->is_at_end = true;
    if (stdio->in.len && !stdio->is_skipping && !is_blank(stdio->in.data, stdio->in.len))
        take_line(stdio, stdio->in.data, stdio->in.len);
    mcp_modern_end_listening(stdio->session);
    loop_timer_start(stdio->end, ANSWERING_NS);
    check_end(stdio);
}

static void read_some(struct mcp_stdio *stdio)
{
    char *room = buf_extend(&stdio->in, READ_SIZE);
    ssize_t n = stream_read(stdio->stream, room, READ_SIZE);

    stdio->in.len -= READ_SIZE - (n > 0 ? (size_t)n : 0);
    stdio->in.data[stdio->in.len] = '\0';
    if (n > 0)
        take_lines(stdio);
    else if (n == 0 || n == STREAM_BROKEN)
        take_end(stdio);
}

static void on_ready(void *data, unsigned ready)
{
    struct mcp_stdio *stdio = data;

    if (ready & LOOP_WRITE)
        flush(stdio);
    if (ready & LOOP_READ && !stdio->is_at_end)
        read_some(stdio);
    update_interest(stdio);
}

/* --- life --- */

static void end_session(struct mcp_stdio *stdio)
{
    mcp_session_free(TAKE_PTR(stdio->session));
    while (!list_is_empty(&stdio->batches))
        batch_free(list_first(&stdio->batches, struct batch, in_stdio));
}

static void on_end_time(void *data)
{
    struct mcp_stdio *stdio = data;

    end_session(stdio);
    stream_want(stdio->stream, LOOP_NOTHING);
    stdio->on_end(stdio->data);
}

struct mcp_stdio *mcp_stdio_new(struct mcp *mcp, void (*on_end)(void *data), void *data,
                                struct err *err)
{
    struct mcp_sender sender = {.send = on_send, .is_full = is_full};
    struct stream *stream;
    struct mcp_stdio *stdio;
    int in;
    int out;

    if (stream_take_stdio(&in, &out, err))
        return NULL;
    stream = stream_new(mcp->loop, in, out, err);
    if (!stream)
        return NULL;
    stdio = alloc_zero(1, sizeof *stdio);
    stdio->mcp = mcp;
    stdio->stream = stream;
    stdio->on_end = on_end;
    stdio->data = data;
    buf_init(&stdio->in, MCP_MESSAGE_MAX + 2 * READ_SIZE);
    buf_init(&stdio->out, SIZE_MAX / 2);
    stdio->end = loop_timer_new(mcp->loop, on_end_time, stdio);
    sender.context = stdio;
    stdio->session = mcp_session_new(mcp, sender, "");
    stream_set_callback(stream, on_ready, stdio);
    update_interest(stdio);
    return stdio;
}

void mcp_stdio_free(struct mcp_stdio *stdio)
{
    if (!stdio)
        return;
    end_session(stdio);
    loop_timer_free(stdio->end);
    stream_free(stdio->stream);
    buf_done(&stdio->in);
    buf_done(&stdio->out);
    free(stdio);
}

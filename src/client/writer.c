/* See writer.h.
 *
 *     READING --bytes--> WRITING --accepted--> READING
 *        |                  |  ^ no room
 *        | end of file      |  '--- waits, then tries the same again
 *        v                  v ended, takes no input
 *     closeStdin, then    STOPPED
 *
 * A write that may be tried again keeps its writeId, so that it is never carried out twice. The ids
 * of one writer begin with its session's, since several connections may write to a process. A file
 * as stdin, which the loop cannot watch, is read in rounds of a timer.
 *
 * At a terminal nothing waits: some writes may be under way at a time, and what a command does not
 * read is dropped, as the kernel's own line discipline does. So the detach key is seen in any case,
 * and works a second later even when the server has stopped answering. */
#include "client/writer.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/str.h"
#include "client/connection.h"
#include "client/detach_key.h"
#include "client/face.h"
#include "loop/loop.h"
#include "rpc/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE = 48 * 1024, /* bytes of one write: 64 KiB in base64 */
    RETRY_MIN_MS = 5,
    RETRY_MAX_MS = 200,
    WINDOW = 16,        /* writes under way, at a terminal */
    PATIENCE_MS = 1000, /* for their answers, when the detach key was pressed */
};

static const char interrupt_key = 3; /* Ctrl-C */

struct writer {
    struct writer_options options;
    struct loop_watch *watch; /* NULL: `turn` */
    struct loop_timer *turn;  /* the next read of a file */
    struct loop_timer *retry;
    char piece[PIECE + DETACH_KEY_MAX];
    size_t len; /* of the last write */
    uint64_t number;
    uint64_t retry_ms;
    int64_t calls[WINDOW]; /* of the last writes, by number */
    unsigned under_way;
    bool is_detaching; /* behind them */
    bool is_stopped;
};

static bool writer_is_raw(const struct writer *writer)
{
    return writer->options.flags & WRITER_RAW;
}

static void writer_set_reading(struct writer *writer, bool on)
{
    on = on && !writer->is_stopped;
    if (writer->watch)
        loop_watch_set(writer->watch, on ? LOOP_READ : LOOP_NOTHING);
    else if (on)
        loop_timer_start(writer->turn, 0);
    else
        loop_timer_stop(writer->turn);
}

static void writer_stop(struct writer *writer)
{
    writer->is_stopped = true;
    writer_set_reading(writer, false);
    loop_timer_stop(writer->retry);
}

static void writer_detach(struct writer *writer)
{
    writer_stop(writer);
    writer->options.on_detach(writer->options.data);
}

/* --- the end of the input --- */

static void on_close_answer(void *data, const struct rpc_message *answer)
{
    const struct face *face = data;

    if (answer && answer->kind == RPC_ERROR && answer->code == RPC_UNKNOWN_METHOD)
        face->say("this server cannot end a command's input: one that reads to the end of it "
                  "waits for ever (Ctrl-C ends it; --stdin null gives it no input)");
}

static void writer_end(struct writer *writer)
{
    const struct connection_request request = {
        .method = "process/closeStdin",
        .params = json_pack("{s:s}", "processId", writer->options.id),
        .on_answer = on_close_answer,
        .data = (void *)writer->options.face,
    };

    writer_stop(writer);
    if (writer->options.flags & WRITER_CLOSES)
        connection_send(writer->options.connection, &request);
    else
        json_decref(request.params);
}

/* --- writing --- */

/* Goes on after an answer, or behind a write that is not waited for. */
static void writer_go_on(struct writer *writer)
{
    unsigned max = writer_is_raw(writer) ? WINDOW : 1;

    if (writer->is_detaching && !writer->under_way)
        writer_detach(writer);
    else if (!writer->is_detaching && writer->under_way < max)
        writer_set_reading(writer, true);
}

static void writer_try_later(struct writer *writer)
{
    loop_timer_start(writer->retry, writer->retry_ms * CLOCK_NS_PER_MS);
    writer->retry_ms = writer->retry_ms < RETRY_MAX_MS / 2 ? writer->retry_ms * 2 : RETRY_MAX_MS;
}

/* Nothing can be written any more; a detach key still counts. */
static void writer_give_up(struct writer *writer)
{
    if (!writer->options.detach) {
        writer_stop(writer);
        return;
    }
    writer->options.flags |= WRITER_MUTE;
    writer_go_on(writer);
}

static void writer_refused(struct writer *writer, const struct rpc_message *answer)
{
    /* The protocol has one code for this and for others (docs/protocol.md, process/write). */
    bool has_no_room = answer->code == RPC_INVALID_REQUEST &&
                       strstr(answer->error_text, "bytes of input wait already");

    if (has_no_room && writer_is_raw(writer)) {
        writer_go_on(writer);
    } else if (has_no_room) {
        writer_try_later(writer);
    } else {
        if (answer->code != RPC_INTERNAL) /* that one is: the command has ended */
            writer->options.face->say("input is not passed on any more: %s", answer->error_text);
        writer_give_up(writer);
    }
}

static void writer_take_status(struct writer *writer, const char *status)
{
    if (status && str_eq(status, "accepted")) {
        writer->retry_ms = RETRY_MIN_MS;
        writer_go_on(writer);
    } else if (status && str_eq(status, "starting") && !writer_is_raw(writer)) {
        writer_try_later(writer);
    } else {
        if (status && str_eq(status, "stdinClosed"))
            writer->options.face->say("the command takes no input");
        writer_give_up(writer);
    }
}

static void writer_on_answer(void *data, const struct rpc_message *answer)
{
    struct writer *writer = data;

    writer->under_way--;
    if (writer->is_stopped || !answer)
        return;
    if (writer->options.flags & WRITER_MUTE) /* an earlier one was refused for good */
        writer_go_on(writer);
    else if (answer->kind == RPC_ERROR)
        writer_refused(writer, answer);
    else
        writer_take_status(writer, json_string_value(json_object_get(answer->result, "status")));
}

static void writer_send(struct writer *writer)
{
    AUTO_FREE char *chunk = alloc_zero(base64_encoded_len(writer->len) + 1, 1);
    AUTO_FREE char *write_id =
        alloc_strf("%.8s-%" PRIu64, connection_session(writer->options.connection), writer->number);
    struct connection_request request = {
        .method = "process/write",
        .on_answer = writer_on_answer,
        .data = writer,
    };

    base64_encode(writer->piece, writer->len, chunk);
    request.params = json_pack("{s:s, s:s, s:s}", "processId", writer->options.id, "chunk", chunk,
                               "writeId", write_id);
    writer->under_way++;
    writer->calls[writer->number % WINDOW] = connection_send(writer->options.connection, &request);
}

static void writer_on_retry(void *data)
{
    struct writer *writer = data;

    if (writer->is_detaching && writer_is_raw(writer))
        writer_detach(writer);
    else
        writer_send(writer);
}

/* --- reading --- */

/* What is left of the typed bytes for the process; sets is_detaching. */
static void writer_filter(struct writer *writer, const char *typed, size_t len)
{
    const struct writer_options *options = &writer->options;
    struct detach_key none = {.len = 0};

    writer->is_detaching = detach_key_filter(options->detach ? options->detach : &none, typed, len,
                                             writer->piece, &writer->len);
    if (!(options->flags & WRITER_MUTE))
        return;
    if (writer_is_raw(writer) && memchr(writer->piece, interrupt_key, writer->len))
        writer->is_detaching = true;
    writer->len = 0;
}

static void writer_read(struct writer *writer)
{
    char typed[PIECE];
    ssize_t n = read(writer->options.fd, typed, sizeof typed);

    writer_set_reading(writer, false);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        writer_set_reading(writer, true);
        return;
    }
    if (n <= 0) {
        writer_end(writer);
        return;
    }
    writer_filter(writer, typed, (size_t)n);
    writer->number++;
    if (writer->len)
        writer_send(writer);
    if (writer->is_detaching)
        loop_timer_start(writer->retry, PATIENCE_MS * CLOCK_NS_PER_MS);
    writer_go_on(writer);
}

static void writer_on_readable(void *data, int fd, unsigned ready)
{
    writer_read(data);
}

static void writer_on_turn(void *data)
{
    writer_read(data);
}

/* --- life --- */

struct writer *writer_new(const struct writer_options *options, struct err *err)
{
    struct loop *loop = connection_loop(options->connection);
    struct writer *writer = alloc_zero(1, sizeof *writer);
    struct err why;

    writer->options = *options;
    writer->retry_ms = RETRY_MIN_MS;
    writer->turn = loop_timer_new(loop, writer_on_turn, writer);
    writer->retry = loop_timer_new(loop, writer_on_retry, writer);
    writer->watch = loop_watch_new(loop, options->fd, LOOP_READ, writer_on_readable, writer, &why);
    if (!writer->watch && why.code != ERR_UNSUPPORTED) {
        *err = why;
        writer_free(writer);
        return NULL;
    }
    writer_set_reading(writer, true);
    return writer;
}

void writer_free(struct writer *writer)
{
    if (!writer)
        return;
    for (size_t i = 0; i < WINDOW; i++)
        connection_cancel(writer->options.connection, writer->calls[i]);
    loop_watch_free(writer->watch);
    loop_timer_free(writer->turn);
    loop_timer_free(writer->retry);
    free(writer);
}

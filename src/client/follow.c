/* Events in the order of their numbers, and their output to our own stdout and stderr.
 *
 * While stdout takes nothing, the server is not heard: it then stops reading the command, which
 * waits as it would for a slow reader on this machine. A reader that went away ends the wait as the
 * closed process does. What a server sends is not trusted: a field that is missing or of the wrong
 * type ends the whole, with an error that names it.
 *
 * stdout may share its file description with a shell, and O_NONBLOCK is a property of that: a pipe
 * or terminal is opened once more by its name in /proc, which makes a description of our own; a
 * socket is written to with MSG_DONTWAIT; and a file never keeps its writer waiting. */
#include "client/follow.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "client/client.h"
#include "client/connection.h"
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- events in order --- */

struct event_order_item {
    struct event_order_item *next;
    uint64_t seq;
    char *method;
    json_t *params;
};

static void event_order_drop_first(struct event_order *order)
{
    struct event_order_item *event = order->first;

    order->first = event->next;
    order->held--;
    free(event->method);
    json_decref(event->params);
    free(event);
}

void event_order_done(struct event_order *order)
{
    while (order->first)
        event_order_drop_first(order);
}

bool event_order_put(struct event_order *order, uint64_t seq, const char *method,
                     const json_t *params)
{
    struct event_order_item **slot = &order->first;
    struct event_order_item *event;

    while (*slot && (*slot)->seq < seq)
        slot = &(*slot)->next;
    if (seq <= order->taken || (*slot && (*slot)->seq == seq))
        return true;
    if (order->held == EVENT_ORDER_MAX)
        return false;
    event = alloc_zero(1, sizeof *event);
    *event = (struct event_order_item){
        .next = *slot,
        .seq = seq,
        .method = alloc_str(method),
        .params = json_incref((json_t *)params),
    };
    *slot = event;
    order->held++;
    return true;
}

bool event_order_take(struct event_order *order, char **ret_method, json_t **ret_params)
{
    struct event_order_item *event = order->first;

    if (!event || event->seq != order->taken + 1)
        return false;
    order->taken = event->seq;
    *ret_method = event->method;
    *ret_params = event->params;
    event->method = NULL;
    event->params = NULL;
    event_order_drop_first(order);
    return true;
}

/* --- our stdout and stderr --- */

enum {
    OUTLET_HIGH = 1024 * 1024, /* bytes: full from here on */
    OUTLET_LOW = 256 * 1024,   /* bytes: room again */
    OUTLETS = 2,               /* stdout, stderr */
};

struct outlet {
    struct follow *follow; /* told when the queue falls below OUTLET_LOW after it was full, and when
                              the reader went away; from the loop only */
    int fd;                /* what is written to; its flags are left alone */
    int owned;             /* `fd`, when it is ours; -1: it is borrowed */
    bool is_socket;
    struct loop_watch *watch; /* NULL: a file */
    struct buf queue;
    int error; /* errno value; 0: none. EPIPE: the reader went away */
    bool is_full;
};

struct follow {
    struct follow_options options;
    char *id;
    struct event_order order;
    struct outlet outlets[OUTLETS];
    json_t *end;    /* process/exited */
    struct err err; /* the first; code 0: none */
    int exit_code;
    bool is_closed;
    bool is_held;
};

/* Bytes written; 0 when there is no room, or after a failure, which drops what waits. */
static size_t outlet_try(struct outlet *outlet, const void *bytes, size_t len)
{
    ssize_t n;

    do {
        n = outlet->is_socket ? send(outlet->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : write(outlet->fd, bytes, len);
    } while (n < 0 && errno == EINTR);
    if (n >= 0)
        return (size_t)n;
    if (errno != EAGAIN) {
        outlet->error = errno;
        buf_done(&outlet->queue);
    }
    return 0;
}

static void outlet_on_ready(void *data, int fd, unsigned ready)
{
    struct outlet *outlet = data;
    struct follow *follow = outlet->follow;

    if (outlet->queue.len)
        buf_consume(&outlet->queue, outlet_try(outlet, outlet->queue.data, outlet->queue.len));
    if (!outlet->queue.len)
        loop_watch_set(outlet->watch, LOOP_NOTHING);
    if (!outlet->error && (!outlet->is_full || outlet->queue.len > OUTLET_LOW))
        return;
    outlet->is_full = false;
    if (follow_has_no_reader(follow))
        connection_stop(follow->options.connection);
    if (!follow->outlets[0].is_full && !follow->outlets[1].is_full)
        connection_resume(follow->options.connection);
}

/* A description of our own, where that matters and is possible. */
static int outlet_open(struct outlet *outlet, struct follow *follow, int fd, struct err *err)
{
    struct stat info;
    mode_t type = fstat(fd, &info) ? 0 : info.st_mode & S_IFMT;
    struct err why;

    *outlet = (struct outlet){.follow = follow, .owned = -1, .is_socket = type == S_IFSOCK};
    if (type == S_IFIFO || type == S_IFCHR)
        outlet->owned = fd_reopen_for_writing(fd);
    outlet->fd = outlet->owned >= 0 ? outlet->owned : fd;
    buf_init(&outlet->queue, SIZE_MAX / 2);
    outlet->watch = loop_watch_new(connection_loop(follow->options.connection), outlet->fd,
                                   LOOP_WRITE, outlet_on_ready, outlet, &why);
    if (!outlet->watch && why.code != ERR_UNSUPPORTED) {
        *err = why;
        return -1;
    }
    if (outlet->watch)
        loop_watch_set(outlet->watch, LOOP_NOTHING);
    return 0;
}

/* Copies. Returns whether there is room for more. After a failure all is dropped. */
static bool outlet_write(struct outlet *outlet, const char *bytes, size_t len)
{
    size_t done = 0;

    if (outlet->error)
        return true;
    if (!outlet->watch) { /* files take everything at once, or fail */
        while (done < len && !outlet->error)
            done += outlet_try(outlet, bytes + done, len - done);
        return true;
    }
    if (!outlet->queue.len && !outlet->follow->is_held)
        done = outlet_try(outlet, bytes, len);
    if (done < len && !outlet->error)
        buf_append(&outlet->queue, bytes + done, len - done);
    if ((outlet->queue.len && !outlet->follow->is_held) ||
        outlet->error) /* of a failure, too, the loop tells */
        loop_watch_set(outlet->watch, LOOP_WRITE);
    outlet->is_full = outlet->is_full || outlet->queue.len >= OUTLET_HIGH;
    return !outlet->is_full;
}

/* --- events --- */

static void follow_fail(struct follow *follow, const struct err *err)
{
    if (!follow->err.code)
        follow->err = *err;
    connection_stop(follow->options.connection);
}

static int write_chunk(struct follow *follow, const json_t *params, struct err *err)
{
    struct json_at root = json_at_root(params);
    struct json_at stream_at = json_at_field(&root, "stream");
    struct json_at chunk_at = json_at_field(&root, "chunk");
    const char *stream;
    const char *text;
    AUTO_FREE char *bytes = NULL;
    size_t text_len;
    size_t len;

    if (json_at_string(&stream_at, &stream, err) || json_at_string(&chunk_at, &text, err))
        return -1;
    text_len = json_string_length(chunk_at.value);
    len = base64_decoded_len(text, text_len);
    bytes = alloc_zero(len + 1, 1);
    if (base64_decode(text, text_len, bytes, err))
        return json_at_fail(&chunk_at, err, "is no base64");
    if (!outlet_write(&follow->outlets[str_eq(stream, "stderr")], bytes, len))
        connection_pause(follow->options.connection);
    return 0;
}

static void reach(struct follow *follow, uint64_t offset)
{
    if (offset >= follow->options.until)
        connection_stop(follow->options.connection);
}

void follow_chunk(struct follow *follow, const json_t *chunk)
{
    const json_t *offset = json_object_get(chunk, "offset");
    const json_t *text = json_object_get(chunk, "chunk");
    struct err err;

    if (write_chunk(follow, chunk, &err))
        follow_fail(follow, &err);
    else if (json_is_integer(offset))
        reach(follow, (uint64_t)json_integer_value(offset) +
                          base64_decoded_len(json_string_value(text), json_string_length(text)));
}

static void on_exited(struct follow *follow, const json_t *params)
{
    struct json_at root = json_at_root(params);
    struct json_at code_at = json_at_field(&root, "exitCode");
    int64_t code;
    struct err err;

    if (json_at_integer(&code_at, INT32_MIN, INT32_MAX, &code, &err)) {
        follow_fail(follow, &err);
        return;
    }
    json_decref(follow->end);
    follow->end = json_incref((json_t *)params);
    follow->exit_code = (int)code;
}

static void follow_take(struct follow *follow, const char *method, const json_t *params)
{
    if (str_eq(method, "process/output") || str_eq(method, "exec/output")) {
        follow_chunk(follow, params);
    } else if (str_eq(method, "exec/event") && follow->options.on_step) {
        follow->options.on_step(follow->options.data, params);
    } else if (str_eq(method, "process/gap")) {
        json_int_t offset = json_integer_value(json_object_get(params, "offset"));
        json_int_t bytes = json_integer_value(json_object_get(params, "bytes"));

        follow->options.console->say("%" JSON_INTEGER_FORMAT
                                     " bytes from byte %" JSON_INTEGER_FORMAT
                                     " on are not kept any more",
                                     bytes, offset);
        reach(follow, (uint64_t)offset + (uint64_t)bytes);
    } else if (str_eq(method, "process/exited")) {
        on_exited(follow, params);
    } else if (str_eq(method, "process/closed")) {
        follow->is_closed = true;
        connection_stop(follow->options.connection);
    }
}

static void follow_take_ordered(struct follow *follow, const char *method, const json_t *params)
{
    json_int_t seq = json_integer_value(json_object_get(params, "seq"));
    struct err err;
    char *next_method;
    json_t *next_params;

    if (seq < 1 || !event_order_put(&follow->order, (uint64_t)seq, method, params)) {
        err_set(&err, ERR_INVALID, "the server left out event %" PRIu64 " of the process",
                follow->order.taken + 1);
        follow_fail(follow, &err);
        return;
    }
    while (event_order_take(&follow->order, &next_method, &next_params)) {
        AUTO_FREE char *owned_method = next_method;
        AUTO_JSON json_t *owned_params = next_params;

        follow_take(follow, owned_method, owned_params);
    }
}

static void follow_on_event(void *data, const char *method, const json_t *params)
{
    struct follow *follow = data;
    bool is_run = str_starts(method, "exec/");
    const char *id = json_string_value(json_object_get(params, is_run ? "runId" : "processId"));

    if (!(is_run || str_starts(method, "process/")) || !id || !str_eq(id, follow->id))
        return;
    if (follow->options.order == FOLLOW_BY_NUMBER)
        follow_take_ordered(follow, method, params);
    else
        follow_take(follow, method, params);
}

/* --- life --- */

struct follow *follow_new(const struct follow_options *options, struct err *err)
{
    static const int fds[OUTLETS] = {STDOUT_FILENO, STDERR_FILENO};
    struct follow *follow = alloc_zero(1, sizeof *follow);

    follow->options = *options;
    follow->id = alloc_str(options->id);
    follow->outlets[1].owned = -1;
    connection_listen(options->connection, follow_on_event, follow);
    for (int i = 0; i < OUTLETS; i++)
        if (outlet_open(&follow->outlets[i], follow, fds[i], err)) {
            follow_free(follow);
            return NULL;
        }
    return follow;
}

void follow_free(struct follow *follow)
{
    if (!follow)
        return;
    connection_listen(follow->options.connection, NULL, NULL);
    for (struct outlet *outlet = follow->outlets; outlet < follow->outlets + OUTLETS; outlet++) {
        loop_watch_free(outlet->watch);
        if (outlet->owned >= 0)
            close(outlet->owned);
        buf_done(&outlet->queue);
    }
    event_order_done(&follow->order);
    json_decref(follow->end);
    free(follow->id);
    free(follow);
}

void follow_hold(struct follow *follow, bool on)
{
    follow->is_held = on;
    for (struct outlet *outlet = follow->outlets; outlet < follow->outlets + OUTLETS; outlet++)
        if (outlet->watch && outlet->queue.len)
            loop_watch_set(outlet->watch, on ? LOOP_NOTHING : LOOP_WRITE);
}

bool follow_is_closed(const struct follow *follow)
{
    return follow->is_closed;
}

int follow_exit_code(const struct follow *follow, int otherwise)
{
    return follow->end ? follow->exit_code : otherwise;
}

const json_t *follow_end(const struct follow *follow)
{
    return follow->end;
}

bool follow_has_no_reader(const struct follow *follow)
{
    return follow->outlets[0].error || follow->outlets[1].error;
}

int follow_finish(struct follow *follow, struct err *err)
{
    for (struct outlet *outlet = follow->outlets; outlet < follow->outlets + OUTLETS; outlet++) {
        while (outlet->queue.len && !outlet->error) {
            struct pollfd item = {.fd = outlet->fd, .events = POLLOUT};

            poll(&item, 1, -1);
            buf_consume(&outlet->queue, outlet_try(outlet, outlet->queue.data, outlet->queue.len));
        }
        if (!outlet->error || outlet->error == EPIPE)
            continue;
        errno = outlet->error;
        return err_sys(err, "writing the output");
    }
    if (!follow->err.code)
        return 0;
    *err = follow->err;
    return -1;
}

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
#include <stdio.h>
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
};

struct outlet_options {
    struct loop *loop;
    int fd; /* borrowed; its flags are left alone */
    /* The queue fell below OUTLET_LOW after outlet_write() had said that it is full; or the reader
     * went away. From the loop only. */
    void (*on_change)(void *data);
    void *data;
};

struct outlet {
    struct outlet_options options;
    int fd;    /* what is written to */
    int owned; /* `fd`, when it is ours; -1: it is borrowed */
    bool is_socket;
    struct loop_watch *watch; /* NULL: a file */
    struct buf queue;
    int error;
    bool is_full; /* the owner was notified */
};

static void outlet_fail(struct outlet *outlet, int error)
{
    outlet->error = error;
    buf_done(&outlet->queue);
}

/* Bytes written; 0 when there is no room, or after a failure. */
static size_t outlet_try(struct outlet *outlet, const void *bytes, size_t len)
{
    ssize_t n;

    do {
        n = outlet->is_socket ? send(outlet->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : write(outlet->fd, bytes, len);
    } while (n < 0 && errno == EINTR);
    if (n >= 0)
        return (size_t)n;
    if (errno != EAGAIN)
        outlet_fail(outlet, errno);
    return 0;
}

static void outlet_on_ready(void *data, int fd, unsigned ready)
{
    struct outlet *outlet = data;

    if (outlet->queue.len)
        buf_consume(&outlet->queue, outlet_try(outlet, outlet->queue.data, outlet->queue.len));
    if (!outlet->queue.len)
        loop_watch_set(outlet->watch, LOOP_NOTHING);
    if (!outlet->error && (!outlet->is_full || outlet->queue.len > OUTLET_LOW))
        return;
    outlet->is_full = false;
    outlet->options.on_change(outlet->options.data);
}

static mode_t type_of(int fd)
{
    struct stat info;

    return fstat(fd, &info) ? 0 : info.st_mode & S_IFMT;
}

/* A description of our own, where that matters and is possible. */
static int outlet_reopen(int fd)
{
    char name[64];

    if (type_of(fd) != S_IFIFO && type_of(fd) != S_IFCHR)
        return -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void outlet_free(struct outlet *outlet)
{
    if (!outlet)
        return;
    loop_watch_free(outlet->watch);
    if (outlet->owned >= 0)
        close(outlet->owned);
    buf_done(&outlet->queue);
    free(outlet);
}

static void outlet_auto(struct outlet **slot)
{
    outlet_free(*slot);
}

static struct outlet *outlet_new(const struct outlet_options *options, struct err *err)
{
    AUTO(outlet_auto) struct outlet *outlet = alloc_zero(1, sizeof *outlet);
    struct err why;

    *outlet = (struct outlet){.options = *options, .owned = outlet_reopen(options->fd)};
    outlet->fd = outlet->owned >= 0 ? outlet->owned : options->fd;
    outlet->is_socket = type_of(options->fd) == S_IFSOCK;
    buf_init(&outlet->queue, SIZE_MAX / 2);
    outlet->watch =
        loop_watch_new(options->loop, outlet->fd, LOOP_WRITE, outlet_on_ready, outlet, &why);
    if (!outlet->watch && why.code != ERR_UNSUPPORTED) {
        *err = why;
        return NULL;
    }
    if (outlet->watch)
        loop_watch_set(outlet->watch, LOOP_NOTHING);
    return TAKE_PTR(outlet);
}

/* Files take everything at once, or fail. */
static void outlet_write_file(struct outlet *outlet, const char *bytes, size_t len)
{
    while (len && !outlet->error) {
        size_t n = outlet_try(outlet, bytes, len);

        bytes += n;
        len -= n;
    }
}

/* Copies. Returns whether there is room for more. After a failure all is dropped. */
static bool outlet_write(struct outlet *outlet, const void *bytes, size_t len)
{
    size_t done = 0;

    if (outlet->error)
        return true;
    if (!outlet->watch) {
        outlet_write_file(outlet, bytes, len);
        return true;
    }
    if (!outlet->queue.len)
        done = outlet_try(outlet, bytes, len);
    if (done < len && !outlet->error)
        buf_append(&outlet->queue, (const char *)bytes + done, len - done);
    if (outlet->queue.len ||
        outlet->error) /* the owner is notified of a failure from the loop as well */
        loop_watch_set(outlet->watch, LOOP_WRITE);
    outlet->is_full = outlet->is_full || outlet->queue.len >= OUTLET_HIGH;
    return !outlet->is_full;
}

static bool outlet_is_full(const struct outlet *outlet)
{
    return outlet->is_full;
}

/* errno value of the failure; 0: none. EPIPE: the reader went away. */
static int outlet_error(const struct outlet *outlet)
{
    return outlet->error;
}

/* Writes what waits, however long it takes. */
static void outlet_finish(struct outlet *outlet)
{
    while (outlet->queue.len && !outlet->error) {
        struct pollfd item = {.fd = outlet->fd, .events = POLLOUT};

        poll(&item, 1, -1);
        buf_consume(&outlet->queue, outlet_try(outlet, outlet->queue.data, outlet->queue.len));
    }
}

/* --- the process --- */

enum { OUTLETS = 2 }; /* stdout, stderr */

struct follow {
    struct connection *connection;
    const struct client_console *console;
    char *id;
    enum follow_order by;
    struct event_order order;
    struct outlet *outlets[OUTLETS];
    uint64_t until;
    json_t *end;    /* process/exited */
    struct err err; /* the first; code 0: none */
    int exit_code;
    bool has_exited;
    bool is_closed;
};

static void follow_fail(struct follow *follow, const struct err *err)
{
    if (!follow->err.code)
        follow->err = *err;
    connection_stop(follow->connection);
}

static void follow_on_outlet(void *data)
{
    struct follow *follow = data;

    if (follow_has_no_reader(follow))
        connection_stop(follow->connection);
    for (int i = 0; i < OUTLETS; i++)
        if (outlet_is_full(follow->outlets[i]))
            return;
    connection_resume(follow->connection);
}

/* --- events --- */

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
    if (!outlet_write(follow->outlets[str_eq(stream, "stderr")], bytes, len))
        connection_pause(follow->connection);
    return 0;
}

static void reach(struct follow *follow, uint64_t offset)
{
    if (offset >= follow->until)
        connection_stop(follow->connection);
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

static void on_gap(struct follow *follow, const json_t *params)
{
    json_int_t offset = json_integer_value(json_object_get(params, "offset"));
    json_int_t bytes = json_integer_value(json_object_get(params, "bytes"));

    follow->console->say("%" JSON_INTEGER_FORMAT " bytes from byte %" JSON_INTEGER_FORMAT
                         " on are not kept any more",
                         bytes, offset);
    reach(follow, (uint64_t)offset + (uint64_t)bytes);
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
    follow->has_exited = true;
    follow->exit_code = (int)code;
}

static void on_closed(struct follow *follow, const json_t *params)
{
    follow->is_closed = true;
    connection_stop(follow->connection);
}

static void follow_take(struct follow *follow, const char *method, const json_t *params)
{
    static const struct {
        const char *method;
        void (*take)(struct follow *follow, const json_t *params);
    } events[] = {
        {"process/output", follow_chunk},
        {"process/gap", on_gap},
        {"process/exited", on_exited},
        {"process/closed", on_closed},
    };

    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (str_eq(method, events[i].method))
            events[i].take(follow, params);
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
    const char *id = json_string_value(json_object_get(params, "processId"));

    if (!str_starts(method, "process/") || !id || !str_eq(id, follow->id))
        return;
    if (follow->by == FOLLOW_BY_NUMBER)
        follow_take_ordered(follow, method, params);
    else
        follow_take(follow, method, params);
}

/* --- life --- */

static void follow_auto(struct follow **slot)
{
    follow_free(*slot);
}

struct follow *follow_new(const struct follow_options *options, struct err *err)
{
    static const int fds[OUTLETS] = {STDOUT_FILENO, STDERR_FILENO};
    AUTO(follow_auto) struct follow *follow = alloc_zero(1, sizeof *follow);

    *follow = (struct follow){
        .connection = options->connection,
        .console = options->console,
        .id = alloc_str(options->id),
        .by = options->order,
        .until = UINT64_MAX,
    };
    for (int i = 0; i < OUTLETS; i++) {
        const struct outlet_options outlet = {
            .loop = connection_loop(options->connection),
            .fd = fds[i],
            .on_change = follow_on_outlet,
            .data = follow,
        };

        follow->outlets[i] = outlet_new(&outlet, err);
        if (!follow->outlets[i])
            return NULL;
    }
    connection_listen(options->connection, follow_on_event, follow);
    return TAKE_PTR(follow);
}

void follow_free(struct follow *follow)
{
    if (!follow)
        return;
    connection_listen(follow->connection, NULL, NULL);
    for (int i = 0; i < OUTLETS; i++)
        outlet_free(follow->outlets[i]);
    event_order_done(&follow->order);
    json_decref(follow->end);
    free(follow->id);
    free(follow);
}

void follow_until(struct follow *follow, uint64_t offset)
{
    follow->until = offset;
}

bool follow_has_exited(const struct follow *follow)
{
    return follow->has_exited;
}

bool follow_is_closed(const struct follow *follow)
{
    return follow->is_closed;
}

int follow_exit_code(const struct follow *follow)
{
    return follow->exit_code;
}

const json_t *follow_end(const struct follow *follow)
{
    return follow->end;
}

bool follow_has_no_reader(const struct follow *follow)
{
    for (int i = 0; i < OUTLETS; i++)
        if (outlet_error(follow->outlets[i]))
            return true;
    return false;
}

int follow_finish(struct follow *follow, struct err *err)
{
    for (int i = 0; i < OUTLETS; i++) {
        int error;

        outlet_finish(follow->outlets[i]);
        error = outlet_error(follow->outlets[i]);
        if (!error || error == EPIPE)
            continue;
        errno = error;
        return err_sys(err, "writing the output");
    }
    if (!follow->err.code)
        return 0;
    *err = follow->err;
    return -1;
}

/* See follow.h. While stdout takes nothing, the server is not heard: it then stops reading the
 * command, which waits as it would for a slow reader on this machine. A reader that went away ends
 * the wait as the closed process does.
 *
 * What a server sends is not trusted: a field that is missing or of the wrong type ends the whole,
 * with an error that names it. */
#include "client/follow.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/str.h"
#include "client/connection.h"
#include "client/face.h"
#include "client/order.h"
#include "client/outlet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUTLETS = 2 }; /* stdout, stderr */

struct follow {
    struct connection *connection;
    const struct face *face;
    char *id;
    enum follow_order by;
    struct order order;
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

    follow->face->say("%" JSON_INTEGER_FORMAT " bytes from byte %" JSON_INTEGER_FORMAT
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

    if (seq < 1 || !order_put(&follow->order, (uint64_t)seq, method, params)) {
        err_set(&err, ERR_INVALID, "the server left out event %" PRIu64 " of the process",
                follow->order.taken + 1);
        follow_fail(follow, &err);
        return;
    }
    while (order_take(&follow->order, &next_method, &next_params)) {
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
        .face = options->face,
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
    order_done(&follow->order);
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

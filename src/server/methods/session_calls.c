/* session/write, wait, terminate, screen and list. A session belongs to the client's session that
 * started it; to others it does not exist. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "output/output.h"
#include "screen/screen.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/model/model_methods.h"
#include "server/model/model_process.h"
#include "server/model/write_queue.h"
#include "server/process/observer.h"
#include "server/rpc_path.h"
#include "server/server.h"

#include <limits.h>

enum { GRACE_DEFAULT_MS = 2000 };

static int number_of(const json_t *params)
{
    json_int_t number = json_integer_value(json_object_get(params, "sessionId"));

    return number > 0 && number <= INT_MAX ? (int)number : 0;
}

/* NULL with an error in the words that a model gets. */
static struct job *session_of(struct call *call, const json_t *params, struct err *err)
{
    struct model_calls *calls = server_model_calls(call->client->server, err);
    struct job *job = calls ? model_calls_find(calls, number_of(params), err) : NULL;
    struct job_info info;

    if (!job)
        return NULL;
    job_info(job, &info);
    if (info.owner == call->client->session->number)
        return job;
    err_set(err, ERR_NOT_FOUND, "there is no session %d", number_of(params));
    return NULL;
}

/* A person who has taken the right to write (process/attach) is not interfered with. */
static int check_write_lock(const struct call *call, const struct model_write *write,
                            struct err *err)
{
    const struct client *client = call->client;
    const struct rpc_process *process = model_process_find(client->session, write->session_id);

    if ((!write->len && !write->closes) || !process || client_may_write(client, process))
        return 0;
    return err_set(err, ERR_FORBIDDEN,
                   "somebody else writes to session %d now (process/attach), so nothing was sent; "
                   "wait for what they do, and try again",
                   write->session_id);
}

static void write_begin(struct call *call, struct queued_write *queued)
{
    struct model_request *request = model_request_new(call, "write_stdin");
    const json_t *params = call_params(call);
    const json_t *chars = json_object_get(params, "chars");
    struct model_request_pace pace;
    struct model_write write = {
        .session_id = number_of(params),
        .chars = json_string_value(chars),
        .len = json_string_length(chars),
        .name = json_string_value(json_object_get(params, "writeId")),
        .closes = json_is_true(json_object_get(params, "close")),
    };
    struct model_call *waiting = NULL;
    struct err err;

    request->queued = queued;
    request->job = session_of(call, params, &err);
    if (request->job && model_request_pace_read(params, &pace, &err) == 0 &&
        check_write_lock(call, &write, &err) == 0) {
        write.pace = pace.pace;
        waiting = model_calls_write(request->server->model_calls, &write, model_request_on_done,
                                    request, &err);
    }
    model_request_began(request, waiting, "", &err);
}

/* Looking on and interrupting are possible at any time; everything else is queued. */
static bool needs_queue(const json_t *params)
{
    const json_t *chars = json_object_get(params, "chars");
    size_t len = json_string_length(chars);

    if (json_is_true(json_object_get(params, "close")))
        return true;
    return len > 1 || (len == 1 && *json_string_value(chars) != '\003');
}

void method_session_write(struct call *call, const json_t *params)
{
    struct err ignored; /* said when it begins */

    if (needs_queue(params) && session_of(call, params, &ignored))
        write_queue_add(call, number_of(params), write_begin);
    else
        write_begin(call, NULL);
}

void method_session_wait(struct call *call, const json_t *params)
{
    struct model_request *request = model_request_new(call, "wait_for");
    struct model_request_pace pace;
    struct model_call *waiting = NULL;
    struct err err;

    if (session_of(call, params, &err) && model_request_pace_read(params, &pace, &err) == 0)
        waiting = model_calls_wait(request->server->model_calls, number_of(params), &pace.pace,
                                   model_request_on_done, request, &err);
    model_request_began(request, waiting, "", &err);
}

void method_session_terminate(struct call *call, const json_t *params)
{
    struct model_request *request = model_request_new(call, "terminate");
    const json_t *grace = json_object_get(params, "graceMs");
    uint64_t ms = json_is_integer(grace) ? (uint64_t)json_integer_value(grace) : GRACE_DEFAULT_MS;
    struct model_call *waiting = NULL;
    struct err err;

    if (session_of(call, params, &err))
        waiting = model_calls_terminate(request->server->model_calls, number_of(params),
                                        ms * CLOCK_NS_PER_MS, model_request_on_done, request, &err);
    model_request_began(request, waiting, "", &err);
}

/* --- session/screen --- */

static json_t *row_to_json(const struct screen *screen, unsigned row)
{
    AUTO(buf_done) struct buf text = {0};

    buf_init(&text, SIZE_MAX / 2);
    screen_row(screen, row, &text);
    return json_lossy(text.data ? text.data : "");
}

static json_t *screen_to_json(const struct screen *screen, size_t scrollback)
{
    json_t *lines = json_array();
    struct screen_info info;

    screen_info(screen, &info);
    if (scrollback > info.lines)
        scrollback = info.lines;
    for (size_t i = info.lines - scrollback; i < info.lines; i++)
        json_array_append_new(lines, json_lossy(screen_line(screen, i)));
    for (unsigned row = 0; row < info.rows; row++)
        json_array_append_new(lines, row_to_json(screen, row));
    return json_pack("{s:o, s:I, s:i, s:i, s:i, s:i, s:b, s:b, s:o}", "lines", lines, "scrollback",
                     (json_int_t)scrollback, "rows", (int)info.rows, "columns", (int)info.columns,
                     "cursorRow", (int)info.cursor_row, "cursorColumn", (int)info.cursor_column,
                     "cursorVisible", info.is_cursor_visible, "alternate", info.is_alternate,
                     "title", json_lossy(info.title));
}

void method_session_screen(struct call *call, const json_t *params)
{
    struct err err;
    const struct job *job = session_of(call, params, &err);
    const struct screen *screen = job ? job_screen(job) : NULL;
    size_t scrollback = (size_t)json_integer_value(json_object_get(params, "scrollback"));

    if (!job)
        call_fail_err(call, &err);
    else if (!screen)
        call_fail(call, RPC_INVALID_REQUEST,
                  "session %d was started without \"tty\" and \"screen\"", number_of(params));
    else
        call_reply(call, screen_to_json(screen, scrollback));
}

/* --- session/list --- */

static json_t *item_to_json(int id, const struct job *job)
{
    pid_t pid = job_pid(job);
    struct job_info info;

    job_info(job, &info);
    return json_pack("{s:i, s:o, s:o, s:b, s:o, s:I}", "sessionId", id, "command",
                     json_lossy(info.command), "cwd", rpc_path_to_json(info.cwd), "tty",
                     info.has_tty, "pid", pid ? json_integer(pid) : json_null(), "outputBytes",
                     (json_int_t)output_total(job_output(job)));
}

void method_session_list(struct call *call, const json_t *params)
{
    struct client_session *owner = call->client->session;
    struct model_calls *calls = owner->server->model_calls;
    size_t len = 0;
    AUTO_FREE int *ids = calls ? model_calls_list(calls, owner->number, &len) : NULL;
    json_t *list = json_array();
    struct err ignored;

    for (size_t i = 0; i < len; i++) {
        const struct job *job = model_calls_find(calls, ids[i], &ignored);

        if (job)
            json_array_append_new(list, item_to_json(ids[i], job));
    }
    call_reply(call, json_pack("{s:o}", "sessions", list));
}

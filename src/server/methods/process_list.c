/* process/list: what there is, for people and for clients that come back. */
#include "base/auto.h"
#include "base/json.h"
#include "output/output.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/process/observer.h"
#include "server/process/rpc_process.h"
#include "server/rpc_path.h"
#include "server/server.h"

static json_t *argv_to_json(const struct strv *argv)
{
    json_t *array = json_array();

    for (size_t i = 0; i < argv->len; i++)
        json_array_append_new(array, json_lossy(argv->items[i]));
    return array;
}

static json_int_t count_observers(const struct rpc_process *process)
{
    json_int_t count = 0;

    for (const struct observer *observer = process->observers; observer;
         observer = observer->next_of_process)
        count++;
    return count;
}

static json_t *process_to_json(const struct rpc_process *process)
{
    pid_t pid = job_pid(process->job);
    json_t *item;

    item = json_pack("{s:s, s:s, s:o, s:o, s:b, s:o, s:s, s:I}", "processId", process->id,
                     "sessionId", process->owner->id, "argv", argv_to_json(&process->argv), "cwd",
                     rpc_path_to_json(process->cwd), "tty", process->has_tty, "pid",
                     pid ? json_integer(pid) : json_null(), "sandboxType", process->sandbox_type,
                     "startedAtMs", (json_int_t)process->started_ms);
    rpc_process_state_to_json(process, item);
    json_object_set_new(item, "nextSeq", json_integer((json_int_t)rpc_process_next_seq(process)));
    json_object_set_new(item, "nextOffset",
                        json_integer((json_int_t)output_total(job_output(process->job))));
    json_object_set_new(item, "modelSession",
                        process->number ? json_integer(process->number) : json_null());
    json_object_set_new(item, "observers", json_integer(count_observers(process)));
    json_object_set_new(item, "metadata",
                        process->metadata ? json_incref(process->metadata) : json_null());
    return item;
}

static void list_session(const struct client_session *session, json_t *list)
{
    for (const struct rpc_process *process = session->processes.first; process;
         process = process->next)
        if (process->state != RPC_PROCESS_STARTING && process->state != RPC_PROCESS_FAILED)
            json_array_append_new(list, process_to_json(process));
}

void method_process_list(struct call *call, const json_t *params)
{
    const struct client *client = call->client;
    json_t *list = json_array();

    if (json_is_true(json_object_get(params, "all")))
        for (const struct client_session *session = client->server->sessions; session;
             session = session->next)
            list_session(session, list);
    else
        list_session(client->session, list);
    call_reply(call, json_pack("{s:o}", "processes", list));
}

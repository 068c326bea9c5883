/* `kill`: the protocol has three ways to end a process: an interrupt, SIGKILL, and (ours) SIGTERM
 * with SIGKILL some time later. Other signals cannot be sent. */
#include "client/client.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "client/remote_process.h"

#include <inttypes.h>

enum kill_way { KILL_TERM, KILL_INT, KILL_KILL };

static int way_parse(const char *signal, enum kill_way *ret, struct err *err)
{
    static const struct {
        const char *name;
        const char *number;
        enum kill_way way;
    } ways[] = {{"TERM", "15", KILL_TERM}, {"INT", "2", KILL_INT}, {"KILL", "9", KILL_KILL}};
    const char *name = signal ? signal : "TERM";

    if (str_starts(name, "SIG"))
        name += 3;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (str_eq(name, ways[i].name) || str_eq(name, ways[i].number)) {
            *ret = ways[i].way;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID,
                   "--signal \"%s\": the protocol can send INT, TERM and KILL only", signal);
}

static int interrupt(struct remote_process *process, struct err *err)
{
    AUTO_JSON json_t *result = connection_call(
        process->connection, "process/signal",
        json_pack("{s:s, s:s}", "processId", process->id, "signal", "interrupt"), err);

    return result ? 0 : -1;
}

static int terminate(struct remote_process *process, uint64_t grace_ns, int *ret_status,
                     struct err *err)
{
    AUTO_JSON json_t *result =
        connection_call(process->connection, "process/terminate",
                        json_pack("{s:s, s:I}", "processId", process->id, "graceMs",
                                  (json_int_t)(grace_ns / CLOCK_NS_PER_MS)),
                        err);

    if (!result)
        return -1;
    *ret_status = json_is_true(json_object_get(result, "running")) ? 0 : CLIENT_NO;
    return 0;
}

int client_kill(const struct client *client, const struct client_kill *options, int *ret_status,
                struct err *err)
{
    AUTO(remote_process_done) struct remote_process process = {0};
    AUTO_JSON json_t *attached = NULL;
    enum kill_way way = KILL_TERM;
    int status = 0;

    if (way_parse(options->signal, &way, err) ||
        remote_process_open(client, options->id, &process, err))
        return -1;
    if (process.kind == REMOTE_PROCESS_WATCHED) {
        attached =
            remote_process_attach(&process, remote_process_total(&process), PROCESS_READ, err);
        if (!attached)
            return -1;
    } else if (way == KILL_TERM) {
        client->console->say("this server knows no SIGTERM: the process is killed at once");
    }
    if (json_is_true(json_object_get(attached, "exited")))
        status = CLIENT_NO;
    else if (way == KILL_INT
                 ? interrupt(&process, err)
                 : terminate(&process, way == KILL_TERM ? options->grace_ns : 0, &status, err))
        return -1;
    if (status == CLIENT_NO)
        client->console->say("process %s has ended already", options->id);
    *ret_status = status;
    return 0;
}

/* `publish`: a port of a process at the server is opened there. */
#include "client/client.h"

#include "base/auto.h"
#include "base/json.h"
#include "client/connection.h"
#include "client/remote_process.h"

int client_publish(const struct client *client, const char *id, const char *publication,
                   int *ret_status, struct err *err)
{
    const struct client_position end = {.kind = CLIENT_POSITION_END};
    AUTO(remote_process_done) struct remote_process process = {0};
    AUTO_JSON json_t *attached = NULL;
    AUTO_JSON json_t *result = NULL;

    if (remote_process_open(client, id, &process, err))
        return -1;
    if (process.kind != REMOTE_PROCESS_WATCHED)
        return err_set(err, ERR_UNSUPPORTED,
                       "this server publishes no ports: it is none of Cordon's");
    attached =
        remote_process_attach(&process, remote_process_offset(&process, &end), PROCESS_READ, err);
    if (!attached)
        return -1;
    result = connection_call(
        process.connection, "process/publish",
        json_pack("{s:s, s:s}", "processId", process.id, "publish", publication), err);
    if (!result)
        return -1;
    client->console->say("published: %s", connection_text(result, "published"));
    *ret_status = 0;
    return 0;
}

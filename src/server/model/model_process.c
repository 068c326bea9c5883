/* See model_process.h. The session stays with the calls of the model (job/model_calls.h) and is
 * only lent to its process, which watches it: output is read by a cursor of its own, so nothing is
 * taken from the model. When the calls have no more use for it the process takes it over, and it
 * can be read for as long as any other process that is closed. */
#include "server/model/model_process.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "base/strv.h"
#include "job/model_calls.h"
#include "server/client_session.h"
#include "server/process/rpc_process.h"
#include "server/server.h"

#include <jansson.h>
#include <stdlib.h>

bool model_process_is_id(const char *id)
{
    return str_starts(id, MODEL_PROCESS_PREFIX);
}

static char *id_of(int number)
{
    return alloc_strf(MODEL_PROCESS_PREFIX "%d", number);
}

struct json_t *model_process_id(int number)
{
    AUTO_FREE char *id = id_of(number);

    return json_string(id);
}

void model_process_add(struct client_session *owner, const struct model_exec *exec,
                       struct workspace *workspace, struct job *job)
{
    struct job_info info;
    AUTO(strv_done) struct strv argv = model_exec_argv(exec);
    char *const patch[] = {(char *)"apply_patch", NULL}; /* its text is for no list and no log */
    bool is_patch = exec->replacement && exec->replacement->input;
    const struct process_options process = {.argv = is_patch ? patch : strv_view(&argv),
                                            .env = exec->env,
                                            .cwd = exec->workdir,
                                            .stdio = exec->stdio,
                                            .input = exec->input,
                                            .asks = exec->asks};
    AUTO_FREE char *id = NULL;
    struct err ignored; /* there is nothing to start */

    job_info(job, &info);
    rpc_process_free(model_process_find(owner, info.id)); /* ended: its number was free again */
    id = id_of(info.id);
    rpc_process_new(&(struct rpc_process_options){.owner = owner,
                                                  .id = id,
                                                  .process = &process,
                                                  .workspace = workspace,
                                                  .delivery = RPC_TAKEN,
                                                  .lent = job,
                                                  .number = info.id},
                    &ignored);
}

struct rpc_process *model_process_find(const struct client_session *owner, int number)
{
    AUTO_FREE char *id = id_of(number);

    return process_table_find(&owner->processes, id);
}

void model_process_on_left(void *data, struct job *job)
{
    const struct server *server = data;
    const struct client_session *owner;
    struct rpc_process *process = NULL;
    struct job_info info;

    job_info(job, &info);
    list_for_each(owner, &server->sessions, in_server)
        if (owner->number == info.owner)
            process = model_process_find(owner, info.id);
    if (process && process->job == job)
        process->is_lent = false;
    else
        job_free(job);
}

/* patch/apply: a patch of a client, in a sandbox, by the program that `cordon patch` uses, too.
 * What that says is the answer. No approval is asked for: the sandbox is what holds a patch. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "output/output.h"
#include "server/call.h"
#include "server/client.h"
#include "server/layer/layer_table.h"
#include "server/methods.gen.h"
#include "server/rpc_path.h"
#include "server/run/exec_run.h"
#include "server/server.h"

#include <string.h>

#define PATCH_TIMEOUT_NS UINT64_C(60000000000) /* a minute; also for another patch to end */

enum { ANSWER_MAX = 64 << 20 }; /* bytes: of a diff that a message can hold */

static int patch_read(struct exec_run *run, const struct patch_apply_params *params,
                      enum rpc_code *ret_code, struct err *err)
{
    run->cwd = rpc_path_parse(params->cwd, ret_code, err);
    if (!run->cwd)
        return -1;
    run->patch.kind = PATCH_CALL_PATCH;
    run->patch.text = alloc_str(params->patch);
    run->patch.text_len = params->patch_len;
    strv_push(&run->argv, "apply_patch");
    run->sandbox = json_incref((json_t *)params->sandbox);
    run->layer = json_incref((json_t *)params->layer);
    if (exec_run_workspace(run, ret_code, err))
        return -1;
    *ret_code = RPC_INTERNAL;
    run->job.max_output = ANSWER_MAX;
    run->job.timeout_ns = PATCH_TIMEOUT_NS;
    return exec_run_patch(run, params->task ? params->task : "apply", "json", err);
}

/* Of a helper that never came to say anything. */
static json_t *failure(const char *message)
{
    return json_pack("{s:b, s:[], s:n, s:n, s:[], s:{s:s, s:o}}", "applied", 0, "files", "diff",
                     "recovered", "left_alone", "error", "code", "system", "message",
                     json_lossy(message));
}

static json_t *answer(struct exec_run *run, const struct execution_result *result)
{
    AUTO(buf_done) struct buf text = {0};
    const struct job_result *end;
    json_t *json;
    struct err err;

    if (!result->attempts_len)
        return failure(result->reason);
    end = &result->attempts[0].result;
    if (job_result_has_failed(end))
        return failure(end->process->failure.msg);
    buf_init(&text, SIZE_MAX / 2);
    output_render(job_stream(end->job, STREAM_STDOUT), &text);
    json = text.len ? json_parse(text.data, text.len, &err) : NULL;
    return json ? json : failure("the program that applies patches ended without an answer");
}

void method_patch_apply(struct call *call, const struct patch_apply_params *params)
{
    struct exec_run *run;
    enum rpc_code code = RPC_INVALID_PARAMS;
    struct err err;

    if (server_refuses(call->client->server, call) || !layer_admit(call, params->layer))
        return;
    run = exec_run_new(call, NULL);
    if (patch_read(run, params, &code, &err)) {
        exec_run_free(run);
        call_fail_with(call, code, &err);
        return;
    }
    run->answer = answer;
    exec_run_start(run);
}

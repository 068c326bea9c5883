/* capabilities/discoverV2: what is installed on this host for a client of Codex. All is done by one
 * call of a helper (src/files/capabilities.c) in the sandbox that the client names, so that nothing
 * is told that its commands could not read. */
#include "base/alloc.h"
#include "base/auto.h"
#include "server/files/file_pool.h"
#include "server/host_codex.h"
#include "server/host_home.h"
#include "server/method.h"
#include "server/place.h"
#include "server/rpc_path.h"
#include "server/server.h"

#include <stdlib.h>
#include <string.h>

struct search {
    struct call *call;
    struct file_job *job;
};

static void on_gone(void *data)
{
    struct search *search = data;

    if (search->job)
        file_job_abandon(search->job);
    free(search);
}

static void on_answer(void *user, const struct file_answer *answer)
{
    struct search *search = user;
    struct call *call = search->call;
    size_t len;

    call_on_gone(call, NULL, NULL);
    free(search);
    if (answer->failure) {
        call_fail_with(call, RPC_INTERNAL, answer->failure);
        return;
    }
    len = answer->text->len;
    call_reply_text(call, buf_take(answer->text), len);
}

/* What the helper is asked; caller frees. NULL on failure. */
static char *make_request(struct err *err)
{
    AUTO_FREE char *codex = host_codex_find(err);
    AUTO_FREE char *home = host_home();
    AUTO_JSON json_t *request = NULL;

    if (!codex)
        return NULL;
    request = json_pack("{s:s, s:{s:o, s:o, s:o}}", "method", "capabilities/discover", "params",
                        "codexHome", rpc_path_to_json(codex), "userHome", rpc_path_to_json(home),
                        "system", rpc_path_to_json(HOST_CODEX_SYSTEM));
    return json_dumps(request, JSON_COMPACT);
}

void method_capabilities_discover_v2(struct call *call, const json_t *params)
{
    struct server *server = call_server(call);
    enum rpc_code code = RPC_INTERNAL;
    struct err err;
    AUTO_FREE char *cwd =
        rpc_path_parse(json_string_value(json_object_get(params, "cwd")), &code, &err);
    const struct place_request request = {
        .sandbox = json_object_get(params, "sandbox"), .cwd = cwd, .tmpdir = getenv("TMPDIR")};
    AUTO(file_call_done) struct file_call how = {.on_answer = on_answer};
    struct place *place = cwd ? place_find(server_places(server), &request, &code, &err) : NULL;
    struct search *search;

    if (!place) {
        call_fail_with(call, code, &err);
        return;
    }
    how.text = make_request(&err);
    if (!how.text) {
        call_fail_with(call, RPC_INTERNAL, &err);
        return;
    }
    how.len = strlen(how.text);
    search = alloc_zero(1, sizeof *search);
    search->call = call;
    how.user = search;
    call_on_gone(call, on_gone, search);
    file_pool_call(server_file_pool(server), place, &how, &search->job);
}

/* What is installed on this host for a client of Codex: capabilities/discoverV2, and what single
 * directories of it offer: capabilityRoots/discoverV1. A helper looks (src/files), in the sandbox
 * that the client or the root names, so that nothing is told that its commands could not read.
 * Roots are looked at one after the other; one that fails says so in its own place and does not
 * spoil the others. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "files/call.h"
#include "server/call.h"
#include "server/client.h"
#include "server/files/file_pool.h"
#include "server/host.h"
#include "server/methods.gen.h"
#include "server/rpc_path.h"
#include "server/sandbox_request.h"
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

void method_capabilities_discover_v2(struct call *call,
                                     const struct capabilities_discover_v2_params *params)
{
    struct server *server = call->client->server;
    enum rpc_code code = RPC_INTERNAL;
    struct err err;
    AUTO_FREE char *cwd = rpc_path_parse(params->cwd, &code, &err);
    const struct sandbox_call request = {.sandbox = params->sandbox,
                                         .otherwise = server->default_sandbox,
                                         .cwd = cwd,
                                         .tmpdir = getenv("TMPDIR")};
    AUTO(file_call_done) struct file_call how = {.on_answer = on_answer};
    struct workspace *workspace =
        cwd ? workspace_for_call(server->workspaces, &request, &code, &err) : NULL;
    struct search *search;

    if (!workspace) {
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
    file_pool_call(server_file_pool(server), workspace, &how, &search->job);
}

enum { ROOTS_MAX = 128 };

struct discovery {
    struct call *call;
    const json_t *roots; /* of the call */
    json_t *results;
    struct file_job *job;
    bool is_running; /* the loop below goes on when a job has ended at once */
};

static void discovery_free(struct discovery *discovery)
{
    json_decref(discovery->results);
    free(discovery);
}

static void roots_on_gone(void *data)
{
    struct discovery *discovery = data;

    if (discovery->job)
        file_job_abandon(discovery->job);
    discovery_free(discovery);
}

/* Takes `result`, which may be NULL; then `error` says why. */
static void add_result(struct discovery *discovery, json_t *result, const char *error)
{
    const json_t *root = json_array_get(discovery->roots, json_array_size(discovery->results));

    if (!result)
        result = json_pack("{s:n, s:[], s:[], s:[]}", "plugin", "skills", "namespaceManifests",
                           "warnings");
    json_object_set(result, "id", json_object_get(root, "id"));
    json_object_set(result, "path", json_object_get(root, "path"));
    json_object_set_new(result, "error", json_lossy(error));
    json_array_append_new(discovery->results, result);
}

static void discovery_go_on(struct discovery *discovery);

static void roots_on_answer(void *user, const struct file_answer *answer)
{
    struct discovery *discovery = user;
    char text[ERROR_TEXT_SIZE] = "the helper for files made no sense";
    json_t *result = NULL;

    discovery->job = NULL;
    if (answer->failure)
        error_text(answer->failure, text);
    else
        result = json_loadb(answer->text->data ? answer->text->data : "", answer->text->len,
                            JSON_ALLOW_NUL, NULL);
    add_result(discovery, result, result ? NULL : text);
    discovery_go_on(discovery);
}

/* The URI, spelled plainly, and the workspace that a root names. Caller frees; NULL on failure. */
static char *read_root(struct server *server, const json_t *root, struct workspace **ret_workspace,
                       enum rpc_code *ret_code, struct err *err)
{
    const struct sandbox_call request = {.sandbox = json_object_get(root, "sandbox"),
                                         .otherwise = server->default_sandbox,
                                         .tmpdir = getenv("TMPDIR")};
    AUTO_FREE char *path =
        rpc_path_parse(json_string_value(json_object_get(root, "path")), ret_code, err);

    *ret_workspace = path ? workspace_for_call(server->workspaces, &request, ret_code, err) : NULL;
    return *ret_workspace ? file_uri_format(path) : NULL;
}

/* -1 when it cannot even be asked. */
static int ask(struct discovery *discovery, const json_t *root, struct err *err)
{
    struct server *server = discovery->call->client->server;
    AUTO(file_call_done) struct file_call call = {.on_answer = roots_on_answer, .user = discovery};
    enum rpc_code code = RPC_INTERNAL;
    struct workspace *workspace = NULL;
    AUTO_FREE char *uri = read_root(server, root, &workspace, &code, err);
    AUTO_JSON json_t *text = NULL;

    if (!uri)
        return -1;
    text = json_pack("{s:s, s:{s:s}}", "method", "capabilityRoots/discover", "params", "path", uri);
    call.text = json_dumps(text, JSON_COMPACT);
    call.len = strlen(call.text);
    file_pool_call(server_file_pool(server), workspace, &call, &discovery->job);
    return 0;
}

static void discovery_go_on(struct discovery *discovery)
{
    size_t count = json_array_size(discovery->roots);
    struct err err;

    if (discovery->is_running)
        return;
    discovery->is_running = true;
    while (!discovery->job && json_array_size(discovery->results) < count) {
        const json_t *root = json_array_get(discovery->roots, json_array_size(discovery->results));

        if (ask(discovery, root, &err))
            add_result(discovery, NULL, err.msg);
    }
    discovery->is_running = false;
    if (discovery->job)
        return;
    call_on_gone(discovery->call, NULL, NULL);
    call_reply(discovery->call, json_pack("{s:O}", "roots", discovery->results));
    discovery_free(discovery);
}

/* All of them make sense, or else the call is answered. */
static bool check_roots(struct call *call, const json_t *roots)
{
    enum rpc_code code = RPC_INTERNAL;
    struct workspace *workspace = NULL;
    struct err err;

    if (json_array_size(roots) > ROOTS_MAX) {
        call_fail(call, RPC_INVALID_REQUEST, "capability root discovery accepts at most %d roots",
                  ROOTS_MAX);
        return false;
    }
    for (size_t i = 0; i < json_array_size(roots); i++) {
        AUTO_FREE char *uri =
            read_root(call->client->server, json_array_get(roots, i), &workspace, &code, &err);

        if (!uri) {
            call_fail_with(call, code, &err);
            return false;
        }
    }
    return true;
}

void method_capability_roots_discover_v1(struct call *call,
                                         const struct capability_roots_discover_v1_params *params)
{
    const json_t *roots = params->roots;
    struct discovery *discovery;

    if (!check_roots(call, roots))
        return;
    discovery = alloc_zero(1, sizeof *discovery);
    *discovery = (struct discovery){.call = call, .roots = roots, .results = json_array()};
    call_on_gone(call, roots_on_gone, discovery);
    discovery_go_on(discovery);
}

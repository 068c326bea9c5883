/* session/exec: the parameters of exec_command, made into what job/model_calls.h takes. What the rules
 * forbid is refused before anything of it is run, the start-up files of a login shell included. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/strv.h"
#include "job/job_environment.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/model/model_methods.h"
#include "server/model/model_process.h"
#include "server/model/session_replacement.h"
#include "server/model/session_rules.h"
#include "server/place.h"
#include "server/rpc_path.h"
#include "server/server.h"
#include "server/start_env.h"
#include "workspace/host_shell.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TOOL "exec_command" /* as its model knows it */

static const struct screen_limits screen_limits = {.lines_max = 1000, .bytes_max = 1 << 18};

/* --- pace --- */

static bool read_number(const json_t *object, const char *name, uint64_t *ret)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_integer(value))
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

/* Exactly one of {"text"}, {"quietMs"}, {"bytes"}. */
static int read_until(const json_t *params, struct model_pace *ret, struct err *err)
{
    struct json_at root = json_at_root(params);
    struct json_at until = json_at_field(&root, "until");
    const json_t *text = json_object_get(until.value, "text");

    if (!json_at_is_given(&until))
        return 0;
    if (json_is_string(text) && json_string_length(text)) {
        ret->until = MODEL_UNTIL_TEXT;
        ret->text = json_string_value(text);
        ret->text_len = json_string_length(text);
    } else if (read_number(until.value, "quietMs", &ret->number)) {
        ret->until = MODEL_UNTIL_QUIET;
    } else if (read_number(until.value, "bytes", &ret->number)) {
        ret->until = MODEL_UNTIL_BYTES;
    } else {
        return json_at_fail(&until, err,
                            "should be {\"text\": STRING}, {\"quietMs\": N} or {\"bytes\": N}");
    }
    return 0;
}

int model_request_pace_read(const json_t *params, struct model_request_pace *ret, struct err *err)
{
    *ret = (struct model_request_pace){0};
    if (read_number(params, "yieldTimeMs", &ret->yield_ms))
        ret->pace.yield_ms = &ret->yield_ms;
    if (read_number(params, "maxOutputTokens", &ret->max_tokens))
        ret->pace.max_tokens = &ret->max_tokens;
    return read_until(params, &ret->pace, err);
}

/* --- environment --- */

enum own_variables { WITHOUT_OWN, WITH_OWN };

/* With what the call itself sets, or without. */
static void make_env(const json_t *whole, enum own_variables own, const struct server *server,
                     struct strv *ret)
{
    AUTO_JSON json_t *params = json_copy((json_t *)whole);
    AUTO(strv_done) struct strv base = {0};
    AUTO(strv_done) struct strv chosen = {0};
    struct job_env_request request = {.thread_id =
                                          json_string_value(json_object_get(params, "threadId"))};
    const char *name;
    json_t *value;

    if (own == WITHOUT_OWN)
        json_object_del(params, "env");
    start_env_for_call(params, server->config.file, &base);
    json_object_foreach(json_object_get(params, "env"), name, value) strv_push(&chosen, name);
    request.base = strv_view(&base);
    request.chosen = (const char *const *)strv_view(&chosen);
    job_env_build(&request, ret);
}

/* --- the call --- */

static bool flag_of(const json_t *params, const char *name)
{
    return json_is_true(json_object_get(params, name));
}

/* What one exec borrows while it is started. */
struct exec_parts {
    char *cwd;
    struct strv env;
    struct strv base; /* of env, what is not the call's own */
    struct model_request_pace pace;
    struct place *place;
};

static void exec_parts_done(struct exec_parts *parts)
{
    free(parts->cwd);
    strv_done(&parts->env);
    strv_done(&parts->base);
}

/* -1: `*ret_code` and `err` say why not. */
static int exec_parts_read(struct call *call, const json_t *params, struct exec_parts *parts,
                           enum rpc_code *ret_code, struct err *err)
{
    struct server *server = call->client->server;
    struct place_request request = {.sandbox = json_object_get(params, "sandbox"),
                                    .tmpdir = getenv("TMPDIR")};
    struct stat st;

    parts->cwd = rpc_path_parse(json_string_value(json_object_get(params, "cwd")), ret_code, err);
    if (!parts->cwd)
        return -1;
    *ret_code = RPC_INTERNAL;
    if (stat(parts->cwd, &st))
        return err_sys(err, "the working folder %s", parts->cwd);
    *ret_code = RPC_INVALID_PARAMS;
    if (model_request_pace_read(params, &parts->pace, err))
        return -1;
    make_env(params, WITH_OWN, server, &parts->env);
    make_env(params, WITHOUT_OWN, server, &parts->base);
    request.cwd = parts->cwd;
    parts->place = place_find(server->places, &request, ret_code, err);
    return parts->place ? 0 : -1;
}

static void exec_start(struct call *call, const json_t *params, const struct exec_parts *parts,
                       struct model_exec *exec)
{
    struct client_session *session = call->client->session;
    AUTO(session_replacement_done) struct session_replacement stand_in = {.cwd = NULL};
    struct model_request *request = model_request_new(call, TOOL);
    struct err err = {0};
    struct model_calls *calls = server_model_calls(session->server, &err);
    struct model_call *waiting = NULL;

    if (calls && session_replacement_init(&stand_in, call, params, parts->place,
                                          strv_view(&parts->base), exec, &err) == 0)
        waiting = model_calls_exec(calls, exec, model_request_on_done, request, &err);
    if (waiting)
        model_process_add(session, exec, parts->place,
                          model_calls_find(calls, model_call_id(waiting), &err));
    model_request_began(request, waiting, exec->cmd, &err);
}

static void exec_begin(struct call *call, const json_t *params, const struct exec_parts *parts)
{
    const char *asked = json_string_value(json_object_get(params, "shell"));
    AUTO_FREE char *shell = asked ? alloc_str(asked) : host_shell_for(strv_view(&parts->env));
    const json_t *login = json_object_get(params, "login");
    struct model_exec exec = {
        .cmd = json_string_value(json_object_get(params, "cmd")),
        .shell = shell,
        .is_login = !login || json_is_true(login),
        .workdir = parts->cwd,
        .env = strv_view(&parts->env),
        .sandbox = parts->place->sandbox,
        .stdio = flag_of(params, "tty") ? PROCESS_TTY : PROCESS_PIPES,
        .input = flag_of(params, "pipeStdin") ? PROCESS_STDIN_PIPE : PROCESS_STDIN_NULL,
        .size = {.rows = (unsigned short)json_integer_value(json_object_get(params, "rows")),
                 .columns = (unsigned short)json_integer_value(json_object_get(params, "columns"))},
        .screen = flag_of(params, "screen") ? &screen_limits : NULL,
        .owner = call->client->session->number,
        .pace = parts->pace.pace,
    };
    AUTO_FREE char *forbidden = session_rules_refusal(call, &exec, parts->place);

    if (forbidden)
        model_request_refuse(call, TOOL, exec.cmd, forbidden);
    else
        exec_start(call, params, parts, &exec);
}

void method_session_exec(struct call *call, const json_t *params)
{
    AUTO(exec_parts_done) struct exec_parts parts = {0};
    enum rpc_code code = RPC_INTERNAL;
    struct err err;

    if (server_refuses(call->client->server, call))
        return;
    if (exec_parts_read(call, params, &parts, &code, &err))
        call_fail_with(call, code, &err);
    else
        exec_begin(call, params, &parts);
}

/* process/start: from parameters that are right by themselves to a process, or an error that says
 * what is wrong with them here. The answer comes when the launcher has told whether the program
 * could be executed. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/strv.h"
#include "policy/access.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/model/model_process.h"
#include "server/place.h"
#include "server/process/rpc_process.h"
#include "server/rpc_path.h"
#include "server/server.h"
#include "server/start_env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Everything that a start is made of. */
struct start {
    const json_t *params;
    char *cwd;
    struct strv argv;
    struct strv env;
    const char *program; /* NULL: argv[0] */
};

static void start_done(struct start *start)
{
    free(start->cwd);
    strv_done(&start->argv);
    strv_done(&start->env);
}

static bool flag_of(const json_t *params, const char *name)
{
    return json_is_true(json_object_get(params, name));
}

/* --- what may not be --- */

static bool is_uuid(const char *text)
{
    for (int i = 0; i < 36; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (is_dash ? text[i] != '-' : !strchr("0123456789abcdefABCDEF", text[i]) || !text[i])
            return false;
    }
    return !text[36];
}

static int check_metadata(const json_t *params, struct err *err)
{
    const json_t *metadata = json_object_get(params, "metadata");
    const char *thread = json_string_value(json_object_get(metadata, "threadId"));

    if (thread && !is_uuid(thread))
        return err_set(err, ERR_INVALID, "metadata.threadId \"%.60s\" is not a UUID", thread);
    return 0;
}

/* Without the managed proxy a command that wants it has to be refused: it would have either no
 * network or all of it. */
static int check_network(const json_t *params, struct err *err)
{
    const json_t *proxy = json_object_get(params, "networkProxy");

    if (flag_of(params, "enforceManagedNetwork") || (proxy && !json_is_null(proxy)))
        return err_set(err, ERR_UNSUPPORTED,
                       "the managed network proxy is wanted, which this server has not");
    return 0;
}

static bool call_refuse_start(struct call *call, const json_t *params)
{
    struct client_session *session = call->client->session;
    const char *id = json_string_value(json_object_get(params, "processId"));
    struct rpc_process *old = process_table_find(&session->processes, id);
    struct err err;

    if (old && old->state == RPC_PROCESS_FAILED)
        rpc_process_free(TAKE_PTR(old));
    if (old)
        call_fail(call, RPC_INVALID_REQUEST, "process %s already exists", id);
    else if (model_process_is_id(id))
        call_fail(call, RPC_INVALID_REQUEST,
                  "process ids that begin with \"" MODEL_PROCESS_PREFIX
                  "\" are those of session/exec; choose another one");
    else if (check_metadata(params, &err) || check_network(params, &err))
        call_fail_err(call, &err);
    else
        return server_refuses(session->server, call);
    return true;
}

/* --- what it is made of --- */

/* A missing folder is the error of the original here, and not one that comes from the inside. */
static bool folder_is_missing(const char *cwd)
{
    struct stat st;

    return stat(cwd, &st) && errno == ENOENT;
}

/* The program is found by argv[0] when arg0 says something else for the command to see. */
static void start_read_argv(struct start *start)
{
    const char *arg0 = json_string_value(json_object_get(start->params, "arg0"));
    const json_t *argv = json_object_get(start->params, "argv");
    size_t i;
    json_t *item;

    json_array_foreach(argv, i, item) strv_push(&start->argv, json_string_value(item));
    if (!arg0)
        return;
    start->program = json_string_value(json_array_get(argv, 0));
    free(start->argv.items[0]);
    start->argv.items[0] = alloc_str(arg0);
}

static int start_read(struct start *start, enum rpc_code *ret_code, struct err *err)
{
    const json_t *params = start->params;

    start->cwd = rpc_path_parse(json_string_value(json_object_get(params, "cwd")), ret_code, err);
    if (!start->cwd)
        return -1;
    start_read_argv(start);
    start_env_build(json_object_get(params, "envPolicy"), json_object_get(params, "env"),
                    &start->env);
    return 0;
}

static struct process_options start_options(const struct start *start, const struct server *server,
                                            struct place *place)
{
    const json_t *params = start->params;
    bool has_tty = flag_of(params, "tty");
    bool is_bare = strcmp(place->type, "none") == 0;

    return (struct process_options){
        .loop = server->loop,
        .sandbox = place->sandbox,
        .argv = strv_view(&start->argv),
        .program = start->program,
        .env = strv_view(&start->env),
        .cwd = start->cwd,
        .stdio = has_tty ? PROCESS_TTY : PROCESS_PIPES,
        .input = flag_of(params, "pipeStdin") ? PROCESS_STDIN_PIPE : PROCESS_STDIN_NULL,
        .lingers = is_bare && !has_tty,
        .size = {.rows = (unsigned short)json_integer_value(json_object_get(params, "rows")),
                 .columns = (unsigned short)json_integer_value(json_object_get(params, "columns"))},
        .cgroup = -1,
    };
}

static enum rpc_delivery delivery_of(const json_t *params)
{
    const char *word = json_string_value(json_object_get(params, "delivery"));

    return word && strcmp(word, "pull") == 0 ? RPC_PULL : RPC_PUSH;
}

static uint64_t spool_of(const json_t *params, const struct server *server)
{
    uint64_t asked = (uint64_t)json_integer_value(json_object_get(params, "spoolBytes"));

    return asked < server->limits.spool_quota ? asked : server->limits.spool_quota;
}

static void start_process(struct call *call, const struct start *start, struct place *place)
{
    struct client_session *session = call->client->session;
    const struct process_options process = start_options(start, session->server, place);
    const json_t *metadata = json_object_get(start->params, "metadata");
    const struct rpc_process_options options = {
        .owner = session,
        .id = json_string_value(json_object_get(start->params, "processId")),
        .process = &process,
        .place = place,
        .metadata = json_is_object(metadata) ? (json_t *)metadata : NULL,
        .delivery = delivery_of(start->params),
        .spool_bytes = spool_of(start->params, session->server),
        .start = call,
    };
    struct err err;

    if (rpc_process_new(&options, &err))
        return;
    call_fail_with(call, RPC_INTERNAL, &err);
}

void method_process_start(struct call *call, const json_t *params)
{
    AUTO(start_done) struct start start = {.params = params};
    struct place_request request = {.sandbox = json_object_get(params, "sandbox"),
                                    .tmpdir = getenv("TMPDIR")};
    struct place *place;
    enum rpc_code code;
    struct err err;

    if (call_refuse_start(call, params))
        return;
    if (start_read(&start, &code, &err)) {
        call_fail_with(call, code, &err);
        return;
    }
    if (folder_is_missing(start.cwd)) {
        call_fail(call, RPC_INTERNAL, "%s (os error %d)", strerror(ENOENT), ENOENT);
        return;
    }
    request.cwd = start.cwd;
    place = place_find(call->client->server->places, &request, &code, &err);
    if (place)
        start_process(call, &start, place);
    else
        call_fail_with(call, code, &err);
}

/* The program behind `cordon mcp`, a part of cordon-server: a server that listens nowhere, and before it the face that
 * speaks MCP. */
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/console.h"
#include "cli/mcp.h"
#include "cli/remote_policy.h"
#include "cli/serve.h"
#include "cli/serve_auth.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/path.h"
#include "layer/accept.h"
#include "layer/layer.h"
#include "mcp/http/door.h"
#include "mcp/http/server.h"
#include "mcp/layer.h"
#include "mcp/mcp.h"
#include "mcp/stdio_transport.h"
#include "policy/config/config.h"
#include "rpc/transport/listener.h"
#include "server/server.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct mcp_program {
    const struct mcp_extra *extra; /* NULL in the product */
    struct mcp_run_options options;
    struct config_file file;
    char dir[PATH_MAX]; /* in which it was started */
    char *workspace;
    json_t *sandbox; /* of its commands, as server and MCP take it */
    struct server *server;
    struct mcp *mcp;
    struct mcp_stdio *stdio; /* NULL: over HTTP, as is the rest */
    struct serve_auth door;
    struct rpc_address addresses[MCP_LISTEN_MAX];
    struct mcp_http *http;
};

/* Nothing runs any more, and nobody is spoken to. */
static void program_stop(struct mcp_program *program)
{
    mcp_stdio_free(TAKE_PTR(program->stdio));
    mcp_http_free(TAKE_PTR(program->http));
    mcp_free(TAKE_PTR(program->mcp));
    server_free(TAKE_PTR(program->server));
}

static void program_done(struct mcp_program *program)
{
    program_stop(program);
    serve_auth_done(&program->door);
    config_file_done(&program->file);
    free(program->workspace);
    mcp_options_done(&program->options);
    json_decref(program->sandbox);
}

static int configure(void *data, struct server_config *ret, struct err *err)
{
    const struct mcp_program *program = data;

    return serve_configure(program->options.policy.config, program->dir, ret, err);
}

/* The client is gone: nothing that runs has anybody left. */
static void on_end(void *data)
{
    struct mcp_program *program = data;

    server_stop(program->server);
    server_stop(program->server); /* at once */
}

static int renew(void *data, struct server_secrets *ret, struct err *err)
{
    struct mcp_program *program = data;

    return serve_auth_renew(&program->door, ret, err);
}

static int read_addresses(struct mcp_program *program, struct err *err)
{
    const struct strv *texts = &program->options.listen;

    for (size_t i = 0; i < texts->len; i++)
        if (rpc_address_parse_http(texts->items[i], DOOR_PATH, &program->addresses[i], err))
            return err_wrap(err, "--listen");
    return 0;
}

static int listen_at(struct mcp_program *program, struct err *err)
{
    const struct mcp_http_options options = {
        .mcp = program->mcp,
        .addresses = program->addresses,
        .addresses_len = program->options.listen.len,
        .auth = program->door.auth,
        .session_idle_ns = program->options.session_idle_ns ? program->options.session_idle_ns
                                                            : 30 * 60 * CLOCK_NS_PER_S,
    };

    program->http = mcp_http_new(&options, err);
    if (!program->http)
        return -1;
    for (size_t i = 0; i < options.addresses_len; i++)
        printf("%s\n", mcp_http_url(program->http, i));
    fflush(stdout);
    return 0;
}

static int read_sandbox(struct mcp_program *program, struct err *err)
{
    const struct policy_options *policy = &program->options.policy;

    if (policy->hosts.hooks)
        return err_set(err, ERR_UNSUPPORTED,
                       "--credential: name it in a profile of config.toml, "
                       "[permissions.NAME.network.credentials], and give that by --profile");
    if (serve_check_sandbox(&program->file, policy->profile, err))
        return err_wrap(err, "--profile");
    program->workspace = path_clean(program->dir, policy->directory ? policy->directory : ".");
    program->sandbox = remote_policy_sandbox(policy, program->workspace, err);
    return program->sandbox ? 0 : -1;
}

static int open_layer(struct mcp_program *program, struct err *err)
{
    const struct config_mcp *config = config_mcp(program->file.config);
    const char *name = program->options.layer ? program->options.layer : config->layer;

    if (!name && program->options.at_end)
        return err_set(err, ERR_INVALID, "--at-end has no effect without --layer");
    return name ? mcp_layer_open(program->mcp, name, err) : 0;
}

/* The server is gone, and with it all that ran: here there is time. */
static void end_layer(const struct mcp_program *program, const char *id)
{
    const enum config_mcp_at_end at_end = program->options.at_end
                                              ? program->options.at_end - 1
                                              : config_mcp(program->file.config)->at_end;
    AUTO(accept_result_done) struct accept_result result = {0};
    const struct accept_request all = {.paths = NULL};
    struct layer *layer;
    struct err err;
    int status;

    if (at_end == CONFIG_MCP_AT_END_KEEP)
        return;
    layer = layer_open(id, NULL, LAYER_CHANGE, "cordon mcp", &err);
    if (!layer) {
        if (err.code != ERR_NOT_FOUND) /* else nothing ran in it */
            console_fail(&err);
        return;
    }
    status = (at_end == CONFIG_MCP_AT_END_DROP ? change_drop : change_accept)(layer, &all, &result,
                                                                              &err);
    if (status)
        console_fail(&err);
    else if (result.left_len)
        console_say("%zu changes stay in the layer %s: cordon changes %s shows them",
                    result.left_len, layer_name(layer), layer_name(layer));
    layer_close(layer);
}

static int serve(struct mcp_program *program, struct err *err)
{
    struct server_options server = {.configure = configure, .data = program};
    struct mcp_options mcp = {.version = CORDON_VERSION, .extra = program->extra};

    if (!getcwd(program->dir, sizeof program->dir))
        return err_sys(err, "finding the current directory");
    program->door.options = &program->options.auth;
    if (program->options.session_idle_ns && !program->options.listen.len)
        return err_set(err, ERR_INVALID, "--session-idle has no effect without --listen");
    if (read_addresses(program, err) ||
        config_file_load(program->options.policy.config, program->dir, &program->file, err) ||
        serve_auth_read(&program->door, &program->file, program->options.listen.len > 0, err))
        return -1;
    if (read_sandbox(program, err))
        return -1;
    mcp.cwd = program->workspace;
    mcp.sandbox = program->sandbox;
    mcp.yield_max_ms = config_mcp(program->file.config)->yield_max_ms;
    server.own_paths = strv_view(&program->file.own_paths);
    server.secrets = strv_view(&program->door.secrets);
    server.renew = program->door.auth && !rpc_auth_is_open(program->door.auth) ? renew : NULL;
    server.default_sandbox = program->options.policy.profile;
    program->server = server_new(&server, err);
    if (!program->server)
        return -1;
    mcp.server = program->server;
    program->mcp = mcp_new(&mcp, err);
    if (!program->mcp || open_layer(program, err))
        return -1;
    if (program->options.listen.len) {
        if (listen_at(program, err))
            return -1;
    } else {
        program->stdio = mcp_stdio_new(program->mcp, on_end, program, err);
        if (!program->stdio)
            return -1;
    }
    return server_run(program->server, err);
}

int mcp_program(char **argv, const struct mcp_extra *extra)
{
    AUTO(program_done) struct mcp_program program = {.extra = extra};
    struct log_options log = {.fd = STDERR_FILENO};
    AUTO_FREE char *layer = NULL;
    struct err err;
    int status;

    if (!mcp_parse(argv, &program.options, &status))
        return status;
    log.form = program.options.log_form;
    log.level = program.options.log_level;
    log_init(&log);
    status = serve(&program, &err);
    if (status)
        console_fail(&err);
    layer = alloc_str(program.mcp ? mcp_layer_id(program.mcp) : NULL);
    program_stop(&program);
    if (layer)
        end_layer(&program, layer);
    return status ? EXIT_NO : EXIT_OK;
}

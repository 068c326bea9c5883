/* See server.h. The server owns what connections come and go over: sessions, workspaces, the
 * limits. It ends in steps, each of which the loop drives:
 *
 *     running --server_stop()--> draining --(nothing runs, or time)--> terminating
 *             --(nothing runs, or 2 s more)--> closing --(every connection closed)--> done
 *
 * While it drains nothing new is started. A second server_stop() skips to the last step. */
#include "server/server.h"

#include "approval/approver_terminal.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "loop/loop.h"
#include "policy/config/config.h"
#include "rpc/rpc.h"
#include "sandbox/sandbox.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/files/file_pool.h"
#include "server/layer/layer_table.h"
#include "server/model/model_request.h"
#include "server/process/rpc_process.h"
#include "server/run/exec_run.h"
#include "server/sandbox_request.h"
#include "server/server_audit.h"
#include "server/service.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- the end ---
 *
 * Clients hear how their processes ended, as far as they listen, before their connections are
 * closed. */

#define STOPPING_CLOSE_NS UINT64_C(5000000000) /* for connections to take what is queued */
#define STOPPING_CHECK_NS UINT64_C(20000000)   /* sessions of models do not tell when they end */

static bool has_running(const struct server *server)
{
    return server->open || server->model_requests || exec_runs_count(server) ||
           layer_table_is_busy(server->layers);
}

static void terminate_all(struct server *server, uint64_t grace_ns)
{
    struct err ignored; /* the next step kills what is left */
    struct client_session *session;
    struct rpc_process *process;
    bool was_running;

    list_for_each(session, &server->sessions, in_server)
        list_for_each(process, &session->processes.list, in_table)
            rpc_process_terminate(process, grace_ns, &was_running, &ignored);
    exec_runs_cancel(server);
}

/* The next look, at the end of the step at the latest. */
static void check_later(struct stopping *stopping)
{
    uint64_t now = clock_now_ns();
    uint64_t left = stopping->until_ns > now ? stopping->until_ns - now : 0;

    loop_timer_start(stopping->timer, left < STOPPING_CHECK_NS ? left : STOPPING_CHECK_NS);
}

static void step_close(struct server *server)
{
    server->stopping.step = STOPPING_CLOSE;
    loop_timer_start(server->stopping.timer, STOPPING_CLOSE_NS);
    rpc_hub_shutdown(server->hub, RPC_CLOSE_GOING_AWAY, "the server is stopping");
}

static void step_terminate(struct server *server)
{
    server->stopping.step = STOPPING_TERMINATE;
    server->stopping.until_ns = clock_after(clock_now_ns(), SERVER_GRACE_NS + SERVER_GRACE_NS / 2);
    terminate_all(server, SERVER_GRACE_NS);
    check_later(&server->stopping);
}

static void give_up(struct server *server)
{
    log_event(LOG_LEVEL_WARN, "stopping-unfinished", log_uint("processes", server->open),
              log_uint("model-calls", server->model_requests),
              log_uint("runs", exec_runs_count(server)));
    step_close(server);
}

void stopping_check(struct server *server)
{
    struct stopping *stopping = &server->stopping;

    if (stopping->step == STOPPING_CLOSE && list_is_empty(&server->clients))
        server->is_done = true;
    if ((stopping->step == STOPPING_DRAIN || stopping->step == STOPPING_TERMINATE) &&
        !has_running(server))
        loop_timer_start(stopping->timer, 0);
}

static void stopping_on_time(void *data)
{
    struct server *server = data;
    struct stopping *stopping = &server->stopping;
    bool is_over = clock_now_ns() >= stopping->until_ns;

    if (stopping->step == STOPPING_CLOSE)
        server->is_done = true;
    else if (!has_running(server))
        step_close(server);
    else if (!is_over)
        check_later(stopping);
    else if (stopping->step == STOPPING_DRAIN)
        step_terminate(server);
    else
        give_up(server);
    stopping_check(server);
}

static void stopping_now(struct server *server)
{
    server->is_stopping = true;
    terminate_all(server, 0);
    step_close(server);
    stopping_check(server);
}

void server_stop(struct server *server)
{
    if (server->is_stopping) {
        stopping_now(server);
        return;
    }
    server->is_stopping = true;
    service_notify_stopping(server->service);
    log_event(LOG_LEVEL_INFO, "stopping", log_uint("processes", server->open));
    server->stopping.step = STOPPING_DRAIN;
    server->stopping.until_ns = clock_after(clock_now_ns(), server->limits.drain_ns);
    check_later(&server->stopping);
}

/* --- /metrics: one row per number; what is counted is counted anyway --- */

struct metric {
    const char *name;
    const char *type;
    const char *help;
    uint64_t value;
};

static uint64_t count_sessions(const struct server *server)
{
    const struct client_session *session;
    uint64_t count = 0;

    list_for_each(session, &server->sessions, in_server)
        count++;
    return count;
}

static void on_metrics(void *data, struct buf *body)
{
    const struct server *server = data;
    struct rpc_stats stats;

    rpc_hub_stats(server->hub, &stats);
    const struct metric metrics[] = {
        {"connections", "gauge", "Open connections.", stats.peers_open},
        {"connections_total", "counter", "Connections accepted.", stats.peers_opened},
        {"connections_refused_total", "counter", "Connections refused.", stats.peers_refused},
        {"messages_received_total", "counter", "Messages received.", stats.messages_in},
        {"messages_sent_total", "counter", "Messages sent.", stats.messages_out},
        {"received_bytes_total", "counter", "Bytes received.", stats.bytes_in},
        {"sent_bytes_total", "counter", "Bytes sent.", stats.bytes_out},
        {"queued_bytes", "gauge", "Bytes that wait for clients to take them.", stats.bytes_queued},
        {"parse_errors_total", "counter", "Messages that were none.", stats.parse_errors},
        {"sessions", "gauge", "Sessions of clients, detached ones included.",
         count_sessions(server)},
        {"processes", "gauge", "Processes that are not closed.", server->open},
        {"processes_retained", "gauge", "Processes that are closed and can be read.",
         server->retained.len},
        {"processes_started_total", "counter", "Processes started.", server->started},
    };

    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        buf_appendf(body, "# HELP cordon_%s %s\n# TYPE cordon_%s %s\ncordon_%s %" PRIu64 "\n",
                    metrics[i].name, metrics[i].help, metrics[i].name, metrics[i].type,
                    metrics[i].name, metrics[i].value);
}

/* --- what the transports tell --- */

static void on_open(void *data, struct rpc_peer *peer)
{
    client_on_open(data, peer);
}

static void on_message(void *data, struct rpc_peer *peer, struct rpc_message *message)
{
    client_on_message(rpc_peer_data(peer), message);
}

static void on_room(void *data, struct rpc_peer *peer)
{
    client_on_room(rpc_peer_data(peer));
}

/* The end of standard input is the end of a server that speaks over it: no other client can
 * come. */
static void on_closed(void *data, struct rpc_peer *peer, const char *why)
{
    struct server *server = data;
    bool was_stdio = rpc_peer_transport(peer) == RPC_STDIO;

    log_event(LOG_LEVEL_INFO, "client-closed", log_text("peer", rpc_peer_name(peer)),
              log_text("why", why));
    client_on_closed(rpc_peer_data(peer));
    if (was_stdio)
        stopping_now(server);
    else
        stopping_check(server);
}

static const struct rpc_handlers handlers = {
    .on_open = on_open,
    .on_message = on_message,
    .on_room = on_room,
    .on_closed = on_closed,
    .on_metrics = on_metrics,
};

/* --- limits --- */

bool server_refuses(const struct server *server, struct call *call)
{
    size_t max = server->limits.processes ? server->limits.processes : SERVER_PROCESSES_MAX;
    AUTO_FREE char *text = NULL;

    if (server->is_stopping) {
        call_fail_data(call, RPC_INTERNAL, "the server is stopping",
                       json_pack("{s:s}", "reason", "stopping"));
        return true;
    }
    if (server->open + exec_runs_count(server) < max)
        return false;
    text = alloc_strf("the server runs %zu processes, which is its limit (--max-processes)", max);
    call_fail_data(call, RPC_INTERNAL, text, limit_data("max-processes", max));
    return true;
}

/* --- the next command's launcher --- */

static void on_prepare_time(void *data)
{
    struct server *server = data;
    struct workspace *workspace = TAKE_PTR(server->next_workspace);

    sandbox_prepare(workspace->sandbox);
    workspace_release(workspace);
}

void server_on_started(struct server *server, struct workspace *workspace)
{
    server->started++;
    if (server->next_workspace)
        workspace_release(server->next_workspace);
    server->next_workspace = workspace;
    workspace_hold(workspace);
    loop_timer_start(server->prepare_timer, 0);
}

/* --- configuration --- */

static void config_done(struct server_config *config)
{
    config_free(config->file);
    free(config->path);
    free(config->text);
    free(config->dir);
    free(config->home);
    *config = (struct server_config){0};
}

static int server_configure(struct server *server, bool *ret_changed, struct err *err)
{
    struct server_config config = {0};

    if (server->configure && server->configure(server->configure_data, &config, err))
        return -1;
    *ret_changed =
        !str_eq(config.path ? config.path : "", server->config.path ? server->config.path : "") ||
        !str_eq(config.text ? config.text : "", server->config.text ? server->config.text : "");
    config_done(&server->config);
    server->config = config;
    if (server->workspaces)
        workspaces_configure(server->workspaces, config.file, config.home, config.dir);
    return 0;
}

/* One part of it, as it is from now on; `err` NULL: it was read. */
static void log_reloaded(const char *what, const char *file, bool has_changed,
                         const struct err *err)
{
    if (err)
        log_event(LOG_LEVEL_ERROR, "reload-failed", log_text("what", what), log_text("file", file),
                  log_text("why", err->msg), log_text("kept", "what counted before"));
    else
        log_event(LOG_LEVEL_INFO, "reloaded", log_text("what", what), log_text("file", file),
                  log_bool("changed", has_changed));
}

static void reload_secrets(struct server *server)
{
    struct server_secrets secrets = {0};
    struct err err;
    int failed = server->renew(server->configure_data, &secrets, &err);

    workspaces_hide(server->workspaces, secrets.files);
    log_reloaded(secrets.flag, secrets.file, secrets.has_changed, failed ? &err : NULL);
}

const char *server_own_default(const struct server *server)
{
    const char *name = server->default_sandbox;

    return name && !str_eq(name, SANDBOX_NONE) ? name : SANDBOX_DEFAULT;
}

void server_reload(struct server *server)
{
    bool has_changed = false;
    struct err err;
    int failed = server_configure(server, &has_changed, &err);

    log_reloaded("config", server->config.path, has_changed, failed ? &err : NULL);
    if (server->renew)
        reload_secrets(server);
    workspaces_forget(server->workspaces);
}

/* --- life --- */

static int server_listen(struct server *server, const struct server_options *options,
                         struct err *err)
{
    if (service_adopt(server->service, server->hub, err))
        return -1;
    for (size_t i = 0; i < options->addresses_len; i++) {
        const struct rpc_listener *listener =
            rpc_hub_listen(server->hub, &options->addresses[i], err);

        if (!listener)
            return -1;
        service_announce(listener);
    }
    return 0;
}

static struct server *server_alloc(const struct server_options *options)
{
    struct server *server = alloc_zero(1, sizeof *server);

    server->limits = options->limits;
    server->configure = options->configure;
    server->renew = options->renew;
    server->configure_data = options->data;
    server->approval_hook = options->approval_hook;
    server->approval_hook_env = options->approval_hook_env;
    buf_init(&server->scratch, SIZE_MAX / 2);
    return server;
}

static int open_prompt(struct server *server, const struct server_options *options, struct err *err)
{
    if (!(options->flags & SERVER_ASKS_TERMINAL))
        return 0;
    server->prompt = prompt_open(server->loop, err);
    return server->prompt
               ? 0
               : err_wrap(err, "--approval-terminal: there is no controlling terminal to ask at");
}

static void server_auto_free(struct server **slot)
{
    server_free(*slot);
}

struct server *server_new(const struct server_options *options, struct err *err)
{
    AUTO(server_auto_free) struct server *server = server_alloc(options);
    const struct rpc_hub_options hub = {
        .handlers = &handlers,
        .data = server,
        .auth = options->auth,
        .max_peers = options->limits.connections,
    };
    bool ignored;

    server->loop = loop_new(err);
    if (!server->loop || server_configure(server, &ignored, err) ||
        open_prompt(server, options, err))
        return NULL;
    server->workspaces = sandbox_workspaces_new(server->loop, options->own_paths, options->secrets);
    workspaces_configure(server->workspaces, server->config.file, server->config.home,
                         server->config.dir);
    server->default_sandbox = options->default_sandbox;
    server->hub = rpc_hub_new(server->loop, &hub);
    server->prepare_timer = loop_timer_new(server->loop, on_prepare_time, server);
    server->stopping.timer = loop_timer_new(server->loop, stopping_on_time, server);
    server->service = service_new(server, err);
    if (!server->service || server_listen(server, options, err))
        return NULL;
    return TAKE_PTR(server);
}

void server_free(struct server *server)
{
    if (!server)
        return;
    exec_runs_free(server);
    while (!list_is_empty(&server->sessions))
        client_session_free(list_first(&server->sessions, struct client_session, in_server));
    while (!list_is_empty(&server->clients))
        client_on_closed(list_first(&server->clients, struct client, in_server));
    model_part_free(server);
    prompt_free(server->prompt);
    rules_cache_done(&server->rules);
    server_audit_free(server);
    if (server->next_workspace)
        workspace_release(TAKE_PTR(server->next_workspace));
    file_pool_free(TAKE_PTR(server->file_pool));
    layer_table_free(server->layers);
    workspaces_free(server->workspaces);
    rpc_hub_free(server->hub);
    service_free(server->service);
    loop_timer_free(server->prepare_timer);
    loop_timer_free(server->stopping.timer);
    loop_free(server->loop);
    config_done(&server->config);
    buf_done(&server->scratch);
    free(server);
}

int server_run(struct server *server, struct err *err)
{
    service_notify_ready(server->service);
    return loop_run(server->loop, &server->is_done, err);
}

/* See stopping.h. Clients hear how their processes ended, as far as they listen, before their
 * connections are closed. */
#include "server/stopping.h"

#include "base/clock.h"
#include "base/log.h"
#include "loop/loop.h"
#include "rpc/rpc.h"
#include "server/client_session.h"
#include "server/process/rpc_process.h"
#include "server/run/exec_run.h"
#include "server/server.h"
#include "server/service.h"

#define STOPPING_CLOSE_NS UINT64_C(5000000000) /* for connections to take what is queued */
#define STOPPING_CHECK_NS UINT64_C(20000000)   /* sessions of models do not tell when they end */

static bool has_running(const struct server *server)
{
    return server->open || server->model_requests || exec_runs_count(server);
}

static void terminate_all(struct server *server, uint64_t grace_ns)
{
    struct err ignored; /* the next step kills what is left */
    bool was_running;

    for (struct client_session *session = server->sessions; session; session = session->next)
        for (struct rpc_process *process = session->processes.first; process;
             process = process->next)
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

    if (stopping->step == STOPPING_CLOSE && !server->clients)
        server->is_done = true;
    if ((stopping->step == STOPPING_DRAIN || stopping->step == STOPPING_TERMINATE) &&
        !has_running(server))
        loop_timer_start(stopping->timer, 0);
}

void stopping_on_time(void *data)
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

void stopping_now(struct server *server)
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

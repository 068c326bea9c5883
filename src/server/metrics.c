/* See metrics.h. One row per number; what is counted is counted anyway. */
#include "server/metrics.h"

#include "base/buf.h"
#include "rpc/rpc.h"
#include "server/client_session.h"
#include "server/server.h"

#include <inttypes.h>

struct metric {
    const char *name;
    const char *type;
    const char *help;
    uint64_t value;
};

static uint64_t count_sessions(const struct server *server)
{
    uint64_t count = 0;

    for (const struct client_session *session = server->sessions; session; session = session->next)
        count++;
    return count;
}

void metrics_append(const struct server *server, struct buf *body)
{
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

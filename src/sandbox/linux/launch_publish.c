/* See launch_publish.h. The proxy knows of this as of a command of its own, one without listeners inside and without rules: so
 * it makes no difference whether the command's network leads to the proxy. What it has to tell, which is little, nobody is
 * woken for: it comes with the next fact of the command, or with its end. */
#include "sandbox/linux/launch_publish.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/pass.h"
#include "base/sys.h"
#include "policy/network_policy.h"
#include "sandbox/launcher/plan_format.h"
#include "sandbox/linux/proxy_link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { END_MS = 1000 }; /* the proxy has let go of it in far less */

struct way_in {
    struct proxy_channel *channel;
    int sockets; /* the proxy's end, of which it gets a copy with each port */
};

static void way_in_free(struct way_in *way_in)
{
    proxy_channel_free(way_in->channel);
    auto_close(&way_in->sockets);
    free(way_in);
}

static int attach(struct way_in *way_in, const struct way_in_start *how, struct err *err)
{
    const struct network_policy nothing = {0};
    AUTO_FREE char *program = proxy_link_program(how->launcher);
    AUTO_CLOSE int policy = proxy_link_policy(&nothing, err);
    const struct proxy_start start = {
        .start = {.program = program, .dies_with_thread = how->dies_with_thread}, .policy = policy};

    if (policy < 0)
        return -1;
    if (!program)
        return err_set(err, ERR_UNSUPPORTED,
                       "publishing a port needs the program " PROXY_PROGRAM
                       ", which is missing: install it beside cordon-linux-sandbox");
    way_in->channel = proxy_channel_open(&start, err);
    return way_in->channel ? 0 : -1;
}

/* The launcher gets its end of the sockets. */
static int open_sockets(struct way_in *way_in, const struct launch *launch, struct err *err)
{
    const struct plan_signal order = {.signal = 0};
    int pair[2];
    int status;

    if (sys_fault() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
        return err_sys(err, "making the way into the command's network");
    way_in->sockets = pair[0];
    status = pass_send(launch->status, &order, sizeof order, &pair[1], 1);
    if (status && (errno == EPIPE || errno == ECONNRESET))
        status = 0; /* one that has ended is told as such */
    if (status)
        err_sys(err, "handing the way in to the launcher");
    close(pair[1]);
    return status;
}

static int hand_port(const struct way_in *way_in, uint16_t port, int listener, struct err *err)
{
    const struct proxy_order order = {
        .magic = PROXY_MAGIC, .kind = PROXY_ORDER_PUBLISH, .number = port};
    const int fds[PROXY_WAYS_IN] = {
        [PROXY_WAY_IN_LISTENER] = listener, [PROXY_WAY_IN_SOCKETS] = way_in->sockets};

    if (sys_fault() ||
        pass_send(proxy_channel_end(way_in->channel), &order, sizeof order, fds, PROXY_WAYS_IN))
        return err_sys(err, "handing the published port %u to the proxy", port);
    return 0;
}

int way_in_publish(struct launch *launch, const struct way_in_start *how, uint16_t port,
                   int listener, struct err *err)
{
    struct way_in *way_in = launch->way_in;

    if (!how->has_network)
        return err_set(
            err, ERR_UNSUPPORTED,
            "the command shares this machine's network: its ports are there already, and "
            "cannot be published");
    if (launch->is_over)
        return err_set(err, ERR_NOT_FOUND, "the command has ended");
    if (!way_in) {
        way_in = alloc_zero(1, sizeof *way_in);
        way_in->sockets = -1;
        if (attach(way_in, how, err) || open_sockets(way_in, launch, err)) {
            way_in_free(way_in);
            return -1;
        }
        launch->way_in = way_in;
    }
    return hand_port(way_in, port, listener, err);
}

bool launch_publish_next(const struct launch *launch, struct proxy_fact *ret)
{
    return launch->way_in && proxy_channel_next(launch->way_in->channel, ret);
}

void launch_unpublish(struct launch *launch)
{
    struct pollfd end = {.events = 0}; /* POLLHUP comes unasked */

    if (!launch->way_in)
        return;
    end.fd = proxy_channel_end(launch->way_in->channel);
    shutdown(end.fd, SHUT_WR);
    poll(&end, 1, END_MS);
    way_in_free(launch->way_in);
    launch->way_in = NULL;
}

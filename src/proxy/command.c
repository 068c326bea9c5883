/* See command.h.
 *
 *     hello (host) -> listeners (launcher) -> connections, look-ups, questions and answers -> the end of the channel
 *
 * When a listener cannot be served for want of descriptors it is left alone for a moment: nobody tells when there are
 * some again. */
#include "proxy/command.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/pass.h"
#include "loop/loop.h"
#include "proxy/connection.h"
#include "proxy/ender.h"
#include "proxy/limits.h"
#include "proxy/proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPT_BATCH = 16 };

#define ACCEPT_PAUSE_NS (100 * CLOCK_NS_PER_MS)

void command_decide(const struct command *command, const struct target *target, const char *method,
                    struct network_decision *ret)
{
    const struct network_request request = {.host = &target->host,
                                            .port = target->port,
                                            .protocol = target->protocol,
                                            .method = method,
                                            .is_looked_into = command->ender};

    network_policy_decide(&command->policy, &request, ret);
    if (ret->verdict != NETWORK_ASK)
        return;
    ret->verdict = target->port ? question_known(&command->questions, target) : NETWORK_ASK;
    if (ret->verdict == NETWORK_DENY)
        ret->reason = NETWORK_POLICY_DENIED;
    else if (ret->verdict == NETWORK_ASK && !command->asks)
        ret->verdict = NETWORK_DENY;
}

/* --- connections --- */

static void accept_again(void *data)
{
    struct command *command = data;

    loop_watch_set(command->listener_watch, LOOP_READ);
}

static void on_client(void *data, int fd, unsigned ready)
{
    struct command *command = data;

    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (client >= 0) {
            connection_new(command, client);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            loop_watch_set(command->listener_watch, LOOP_NOTHING);
            loop_timer_start(command->accept_again, ACCEPT_PAUSE_NS);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

/* --- the channel --- */

static void set_nonblocking(int fd)
{
    struct err ignored;

    fd_set_nonblocking(fd, true, &ignored);
}

/* Takes the descriptors. */
static void take_listeners(struct command *command, const int *fds, size_t count)
{
    struct err ignored;

    if (command->listener >= 0 || count <= PROXY_LISTENER_DNS4 || count > PROXY_LISTENERS) {
        pass_close(fds, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        set_nonblocking(fds[i]);
    command->listener = fds[PROXY_LISTENER_TCP];
    for (size_t i = PROXY_LISTENER_DNS4; i < count; i++)
        dns_server_add(command, (unsigned)(i - PROXY_LISTENER_DNS4), fds[i]);
    command->listener_watch = loop_watch_new(command->proxy->loop, command->listener, LOOP_READ,
                                             on_client, command, &ignored);
}

static void on_channel(void *data, int fd, unsigned ready)
{
    struct command *command = data;
    struct proxy_order order = {0};
    int fds[PASS_MAX];
    size_t count;
    ssize_t len = pass_receive(fd, &order, sizeof order, MSG_DONTWAIT, fds, &count);

    if (len < 0 && (errno == EAGAIN || errno == EINTR || errno == EMFILE))
        return;
    if (len <= 0) {
        command_free(command);
        return;
    }
    if (len == (ssize_t)sizeof order && order.magic == PROXY_MAGIC &&
        order.kind == PROXY_ORDER_LISTENERS) {
        take_listeners(command, fds, count);
        return;
    }
    if (len == (ssize_t)sizeof order && order.magic == PROXY_MAGIC &&
        order.kind == PROXY_ORDER_PUBLISH && count == PROXY_WAYS_IN && order.number <= UINT16_MAX) {
        published_add(command, (uint16_t)order.number, fds);
        return;
    }
    pass_close(fds, count);
    if (len == (ssize_t)sizeof order && order.magic == PROXY_MAGIC &&
        order.kind == PROXY_ORDER_ANSWER)
        question_answer(command, order.id, order.number == 1);
}

/* --- its life --- */

static int read_policy(int fd, struct network_policy *ret, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};

    buf_init(&text, PROXY_MAX_BYTES);
    if (lseek(fd, 0, SEEK_SET) || buf_read_fd(&text, fd, err))
        return -1;
    return network_policy_parse(text.data ? text.data : "", text.len, ret, err);
}

struct command *command_new(struct proxy *proxy, int channel, int policy, int tls, unsigned flags)
{
    struct command *command = alloc_zero(1, sizeof *command);
    struct err err;
    int rc;

    command->proxy = proxy;
    command->channel = channel;
    command->listener = -1;
    way_in_init(&command->way_in);
    command->ender = tls < 0 ? NULL : ender_join(proxy, tls);
    command->asks = flags & PROXY_HELLO_ASKS;
    command->traces = flags & PROXY_HELLO_TRACES;
    command->is_led = flags & PROXY_HELLO_LED;
    dns_server_init(&command->dns);
    list_append(&proxy->commands, &command->in_commands);
    rc = read_policy(policy, &command->policy, &err);
    close(policy);
    if (rc == 0) {
        command->accept_again = loop_timer_new(proxy->loop, accept_again, command);
        command->channel_watch =
            loop_watch_new(proxy->loop, channel, LOOP_READ, on_channel, command, &err);
    }
    if (!command->channel_watch) {
        command_free(command);
        return NULL;
    }
    return command;
}

void command_free(struct command *command)
{
    struct connection *connection, *following;

    list_for_each_safe(connection, following, &command->connections, in_connections)
        connection_free(connection);
    way_in_done(&command->way_in);
    dns_server_done(command);
    names_done(&command->names);
    questions_done(&command->questions);
    facts_end(command);
    loop_watch_free(command->listener_watch);
    loop_timer_free(command->accept_again);
    if (command->listener >= 0)
        close(command->listener);
    loop_watch_free(command->channel_watch);
    close(command->channel);
    ender_leave(command->ender);
    network_policy_done(&command->policy);
    list_remove(&command->in_commands);
    proxy_command_ended(command->proxy);
    free(command);
}

/* See ender.h. Each command comes with the control socket, and all of one host with the same, which the kernel's number of the socket
 * tells: answers are read in one place. When cordon-tls dies, all who wait are told, and no order is taken any
 * more. */
#include "proxy/ender.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/pass.h"
#include "base/str.h"
#include "loop/loop.h"
#include "proxy/limits.h"
#include "proxy/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct ender {
    struct list in_enders;
    int control;
    uint64_t cookie;
    struct loop_watch *watch; /* NULL: it has died */
    struct list waiting;
    uint64_t last_id;
    unsigned users;
};

_Static_assert((int)TLS_READ_MAX >= (int)LIMIT_HELLO + 1024,
               "a hello, with the heads of its records");

static void tell(struct ender_waiter *waiter, const char *why)
{
    ender_forget(waiter);
    waiter->on_answer(waiter, why);
}

static void has_died(struct ender *ender)
{
    struct ender_waiter *waiter;

    loop_watch_free(TAKE_PTR(ender->watch));
    ender->users++; /* who is told may be the last of them */
    while ((waiter = list_first(&ender->waiting, struct ender_waiter, in_ender)))
        tell(waiter, "cordon-tls has died");
    ender_leave(ender);
}

static void on_control(void *data, int fd, unsigned ready)
{
    struct ender *ender = data;
    struct tls_answer answer;
    ssize_t len = recv(fd, &answer, sizeof answer, MSG_DONTWAIT | MSG_TRUNC);
    struct ender_waiter *waiter;

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len != (ssize_t)sizeof answer || answer.magic != TLS_MAGIC) {
        has_died(ender);
        return;
    }
    answer.why[sizeof answer.why - 1] = '\0';
    list_for_each(waiter, &ender->waiting, in_ender) {
        if (waiter->id != answer.id)
            continue;
        tell(waiter, answer.is_connected ? NULL : answer.why);
        return;
    }
}

static struct ender *find(const struct proxy *proxy, uint64_t cookie)
{
    struct ender *ender;

    list_for_each(ender, &proxy->enders, in_enders)
        if (ender->cookie == cookie)
            return ender;
    return NULL;
}

struct ender *ender_join(struct proxy *proxy, int control)
{
    uint64_t cookie = 0;
    socklen_t len = sizeof cookie;
    struct ender *ender;
    struct err ignored;

    if (getsockopt(control, SOL_SOCKET, SO_COOKIE, &cookie, &len)) {
        close(control);
        return NULL;
    }
    ender = find(proxy, cookie);
    if (ender) {
        close(control);
        ender->users++;
        return ender;
    }
    ender = alloc_zero(1, sizeof *ender);
    *ender = (struct ender){.control = control, .cookie = cookie, .users = 1};
    list_init(&ender->waiting);
    list_append(&proxy->enders, &ender->in_enders);
    ender->watch = loop_watch_new(proxy->loop, control, LOOP_READ, on_control, ender, &ignored);
    return ender;
}

void ender_leave(struct ender *ender)
{
    if (!ender || --ender->users)
        return;
    list_remove(&ender->in_enders);
    loop_watch_free(ender->watch);
    close(ender->control);
    free(ender);
}

int ender_order(struct ender *ender, const struct ender_socket *socket, struct ender_waiter *waiter)
{
    AUTO_CLOSE int fd = socket->fd;
    char packet[sizeof(struct tls_order) + TLS_READ_MAX];
    struct tls_order order = {
        .magic = TLS_MAGIC, .version = TLS_VERSION, .id = ++ender->last_id, .kind = socket->kind};
    int pair[2], fds[TLS_FDS], rc;

    if (!ender->watch || socket->read_len > TLS_READ_MAX ||
        strlen(socket->name) >= TLS_ORDER_NAME ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
        return -1;
    snprintf(order.name, sizeof order.name, "%s", socket->name);
    memcpy(packet, &order, sizeof order);
    if (socket->read_len)
        memcpy(packet + sizeof order, socket->read, socket->read_len);
    fds[TLS_FD_ENCRYPTED] = fd;
    fds[TLS_FD_PLAIN] = pair[1];
    rc = pass_send(ender->control, packet, sizeof order + socket->read_len, fds, TLS_FDS);
    close(pair[1]);
    if (rc) {
        close(pair[0]);
        return -1;
    }
    waiter->id = order.id;
    list_append(&ender->waiting, &waiter->in_ender);
    return pair[0];
}

void ender_forget(struct ender_waiter *waiter)
{
    if (!waiter->id)
        return;
    list_remove(&waiter->in_ender);
    waiter->id = 0;
}

/* See lead.h. Within this machine a connection stands when connect(2) returns, but while the proxy's queue is full: then a
 * child waits. */
#include "guard/lead.h"

#include "guard/child.h"
#include "guard/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LOOK_MS = 1000 }; /* whether the caller is still there */

struct leading {
    int copy;
    int flags;  /* of the socket */
    int answer; /* the first errno of connect(2) */
    struct address to;
    uint8_t first[GUARD_LED_BYTES];
};

static int give_answer(const struct leading *leading)
{
    const bool waits = !(leading->flags & O_NONBLOCK);

    if (waits && connect(leading->copy, &leading->to.any, leading->to.len) && errno != EISCONN)
        return errno;
    return waits ? 0 : leading->answer;
}

/* EAGAIN: it does not stand yet. */
static int send_first(const struct leading *leading)
{
    const ssize_t len =
        send(leading->copy, leading->first, sizeof leading->first, MSG_DONTWAIT | MSG_NOSIGNAL);

    return len < 0 ? errno : 0;
}

static void lead_patiently(const struct request *request, const struct leading *leading)
{
    struct pollfd ready = {.fd = leading->copy, .events = POLLOUT};
    struct k_seccomp_notif_resp response = {.id = request->notif->id};
    int error;

    child_interrupt_every(LOOK_MS);
    while ((error = send_first(leading)) == EAGAIN) {
        (void)poll(&ready, 1, LOOK_MS);
        if (!request_is_valid(request))
            return;
    }
    response.error = -(error ? error : give_answer(leading));
    ioctl(request->command->listener, (int)K_SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* Without a child it is as if nothing had been asked. */
static struct answer lead_later(const struct request *request, const struct leading *leading)
{
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    pid_t child = -1;

    if (child_has_room(request))
        child = child_fork((int[]){leading->copy, request->command->listener}, 2);
    if (child == 0) {
        lead_patiently(request, leading);
        _exit(0);
    }
    if (child < 0) {
        connect(leading->copy, &nowhere, sizeof nowhere);
        return answer_error(EAGAIN);
    }
    child_remember(request, child);
    return (struct answer){.kind = ANSWER_LATER};
}

static void leading_init(struct leading *leading, int copy, const struct address *address)
{
    struct address *to = &leading->to;
    in_port_t *port = address->any.sa_family == AF_INET6 ? &to->ip6.sin6_port : &to->ip4.sin_port;

    *leading = (struct leading){.copy = copy, .flags = fcntl(copy, F_GETFL), .to = *address};
    leading->first[0] = GUARD_LED;
    memcpy(leading->first + 1, port, sizeof *port);
    *port = htons(GUARD_PROXY_PORT);
}

struct answer lead_to_proxy(const struct request *request, int copy, const struct address *address)
{
    struct leading leading;
    int error;

    leading_init(&leading, copy, address);
    if (leading.flags < 0)
        return answer_error(errno);
    if (!request_is_valid(request))
        return answer_error(EINTR);
    fcntl(copy, F_SETFL, leading.flags | O_NONBLOCK);
    leading.answer = connect(copy, &leading.to.any, leading.to.len) ? errno : 0;
    error = leading.answer;
    if (error == 0 || error == EINPROGRESS || error == EINTR)
        error = send_first(&leading);
    else if (error == EAGAIN)
        error = EADDRNOTAVAIL;
    fcntl(copy, F_SETFL, leading.flags);
    if (error == EAGAIN)
        return lead_later(request, &leading);
    if (!error)
        error = give_answer(&leading);
    return error ? answer_error(error) : answer_value(0);
}

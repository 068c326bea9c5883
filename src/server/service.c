/* See service.h. Without systemd every message goes nowhere. The watchdog is fed by a timer of the
 * loop, so that a loop that hangs is not fed. */
#include "server/service.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "loop/loop.h"
#include "rpc/rpc.h"
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { LISTEN_FDS_START = 3 }; /* sd_listen_fds(3) */

struct service {
    struct server *server;
    struct loop_signals *signals;
    struct loop_timer *watchdog;
    uint64_t watchdog_ns; /* 0: none */
    int notify;           /* -1: not under systemd */
};

/* --- sd_notify --- */

/* NOTIFY_SOCKET is a path, or with '@' a name in the abstract namespace. */
static int notify_open(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = name ? strlen(name) : 0;
    AUTO_CLOSE int fd = -1;

    if (len < 2 || len >= sizeof address.sun_path || (name[0] != '/' && name[0] != '@'))
        return -1;
    memcpy(address.sun_path, name, len);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)))
        return -1;
    return TAKE_FD(fd);
}

static void notify(const struct service *service, const char *text)
{
    if (service->notify >= 0)
        (void)!send(service->notify, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A number in an environment variable; 0 when there is none. */
static uint64_t number_of(const char *name)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : 0;
}

/* Variables that speak to one process only do so with its pid. */
static bool is_for_us(const char *name)
{
    return !getenv(name) || number_of(name) == (uint64_t)getpid();
}

static void on_watchdog(void *data)
{
    struct service *service = data;

    notify(service, "WATCHDOG=1");
    loop_timer_start(service->watchdog, service->watchdog_ns);
}

void service_notify_ready(struct service *service)
{
    notify(service, "READY=1");
    if (service->watchdog_ns)
        on_watchdog(service);
}

void service_notify_stopping(struct service *service)
{
    notify(service, "STOPPING=1");
}

static void service_reload(struct service *service)
{
    char text[64];

    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_now_ns() / 1000);
    notify(service, text);
    server_reload(service->server);
    notify(service, "READY=1");
}

/* --- signals --- */

static void on_signal(void *data, int signal)
{
    struct service *service = data;

    if (signal == SIGHUP)
        service_reload(service);
    else
        server_stop(service->server);
}

/* --- sockets --- */

static int adopted_count(void)
{
    return getenv("LISTEN_PID") && is_for_us("LISTEN_PID") ? (int)number_of("LISTEN_FDS") : 0;
}

bool service_gets_ws(void)
{
    struct rpc_address address;
    struct err ignored; /* is said when they are taken */

    for (int fd = LISTEN_FDS_START; fd < LISTEN_FDS_START + adopted_count(); fd++)
        if (listener_identify(fd, &address, &ignored) == 0 && address.transport == RPC_WS)
            return true;
    return false;
}

/* They must not reach a command; and the variables are for us alone. */
int service_adopt(struct service *service, struct rpc_hub *hub, struct err *err)
{
    int count = adopted_count();

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    for (int fd = LISTEN_FDS_START; fd < LISTEN_FDS_START + count; fd++) {
        const struct rpc_listener *listener;

        if (fcntl(fd, F_SETFD, FD_CLOEXEC))
            return err_sys(err, "the socket %d from systemd", fd);
        listener = rpc_hub_adopt(hub, fd, err);
        if (!listener)
            return -1;
        log_event(LOG_LEVEL_INFO, "listening", log_text("url", rpc_listener_url(listener)));
    }
    return 0;
}

void service_announce(const struct rpc_listener *listener)
{
    const char *url = rpc_listener_url(listener);

    if (strcmp(url, "stdio") == 0)
        return;
    printf("%s\n", url);
    fflush(stdout);
}

/* --- life --- */

struct service *service_new(struct server *server, struct err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, 0};
    struct service *service = alloc_zero(1, sizeof *service);

    service->server = server;
    service->notify = notify_open(getenv("NOTIFY_SOCKET"));
    if (is_for_us("WATCHDOG_PID"))
        service->watchdog_ns = number_of("WATCHDOG_USEC") * 1000 / 2;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    service->watchdog = loop_timer_new(server->loop, on_watchdog, service);
    service->signals = loop_signals_new(server->loop, signals, on_signal, service, err);
    if (service->signals)
        return service;
    service_free(service);
    return NULL;
}

void service_free(struct service *service)
{
    if (!service)
        return;
    /* A second signal must not kill a server that is on its way out, nor one that waits already. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    loop_signals_free(service->signals);
    loop_timer_free(service->watchdog);
    if (service->notify >= 0)
        close(service->notify);
    free(service);
}

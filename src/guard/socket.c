/* See socket.h.
 *
 * No connect is ever let go on: the kernel would read the address again, and another thread may have
 * put another socket under the number. Instead the guard takes a copy of the caller's socket and
 * connects that. A socket stays in the network that it was made in, so addresses and abstract names
 * mean what they mean for the command. A path is another matter: it leads to a socket of whatever
 * network. It is looked up in the command's view, what is found there is pinned by a descriptor,
 * judged, and connected to by that descriptor, so it is the very file that was judged.
 *
 * Free are sockets that a command with the same map has bound, and those that the map allows. (The
 * sockets of the host's own ssh-agent, tmux or X11 lie in /tmp, where the command may write, too.)
 *
 * The server sees the guard's process as its peer (SO_PEERCRED), which is of the same user.
 *
 * In the host's own network no abstract name is connected to: whose it is cannot be told and kept.
 *
 * The guard must not wait, for anybody. So the socket is made non-blocking for a moment, and as
 * another thread may undo that, or make closing it wait (SO_LINGER), a timer interrupts whatever
 * waits. What has to wait goes on in a child. */
#include "guard/socket.h"

#include "base/auto.h"
#include "base/sys.h"
#include "guard/bind.h"
#include "guard/child.h"
#include "guard/facts.h"
#include "guard/grant.h"
#include "guard/hold.h"
#include "guard/lead.h"
#include "guard/listening.h"
#include "guard/place.h"
#include "guard/remote.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define DNS_PORT 53 /* RFC 1035, 4.2 */

enum {
    INTERRUPT_MS = 20,        /* in the guard */
    CHILD_INTERRUPT_MS = 1000 /* in a child, which looks then whether it is still waited for */
};

/* --- addresses --- */

const char *address_path(const struct address *address)
{
    size_t start = offsetof(struct sockaddr_un, sun_path);

    if (address->len <= start || address->len > sizeof address->local ||
        address->any.sa_family != AF_UNIX || !address->bytes[start])
        return NULL;
    return address->bytes + start;
}

/* IPv6 can spell an IPv4 address, too. */
static bool is_own(const struct address *address)
{
    const struct in6_addr *ip6 = &address->ip6.sin6_addr;
    uint32_t ip4;

    if (address->any.sa_family == AF_INET)
        ip4 = ntohl(address->ip4.sin_addr.s_addr);
    else if (!IN6_IS_ADDR_V4MAPPED(ip6))
        return IN6_IS_ADDR_LOOPBACK(ip6) || IN6_IS_ADDR_UNSPECIFIED(ip6);
    else
        ip4 = (uint32_t)ip6->s6_addr[12] << 24 | ip6->s6_addr[13];
    return ip4 >> 24 == 127 || ip4 == 0;
}

/* false when it is none of the internet. */
static bool address_format(const struct address *address, char *ret, size_t size)
{
    bool is_ip6 = address->any.sa_family == AF_INET6;
    const void *ip = is_ip6 ? (const void *)&address->ip6.sin6_addr : &address->ip4.sin_addr;
    char text[INET6_ADDRSTRLEN];
    in_port_t port = is_ip6 ? address->ip6.sin6_port : address->ip4.sin_port;

    if (!(is_ip6 && address->len >= offsetof(struct sockaddr_in6, sin6_scope_id)) &&
        !(address->any.sa_family == AF_INET && address->len >= sizeof address->ip4))
        return false;
    if (!inet_ntop(address->any.sa_family, ip, text, sizeof text))
        return false;
    snprintf(ret, size, is_ip6 ? "[%s]:%u" : "%s:%u", text, ntohs(port));
    return true;
}

static in_port_t port_of(const struct address *address)
{
    return address->any.sa_family == AF_INET6 ? address->ip6.sin6_port : address->ip4.sin_port;
}

/* IPv4 as IPv6 spells it. */
static void ip_of(const struct address *address, uint8_t ret[16])
{
    memset(ret, 0, 16);
    if (address->any.sa_family == AF_INET6) {
        memcpy(ret, &address->ip6.sin6_addr, 16);
    } else {
        ret[10] = ret[11] = 0xff;
        memcpy(ret + 12, &address->ip4.sin_addr, 4);
    }
}

static bool is_abstract(const struct address *address)
{
    const size_t start = offsetof(struct sockaddr_un, sun_path);

    return address->any.sa_family == AF_UNIX && address->len > start && !address->bytes[start];
}

static bool has_flag(const struct request *request, uint32_t flag)
{
    return request->command->map.header->flags & flag;
}

bool address_format_remote(const struct address *address, char *ret, size_t size)
{
    return address_format(address, ret, size) && port_of(address) &&
           (!is_own(address) || port_of(address) == htons(DNS_PORT));
}

static int address_read(const struct request *request, struct address *ret)
{
    const bool is_send = request->call->kind == CALL_SEND;
    int len = (int)request_argument(request, is_send ? 5 : 2);
    int error;

    memset(ret, 0, sizeof *ret);
    if (len < 0 || len > (int)sizeof(struct sockaddr_storage))
        return -EINVAL;
    ret->len = (socklen_t)len;
    error = len ? remote_bytes(request->thread, request_argument(request, is_send ? 4 : 1),
                               ret->bytes, (size_t)len)
                : 0;
    return error;
}

/* --- the timeline --- */

static void tell_done(const struct request *request, const char *path, bool is_socket)
{
    facts_tell_done(request,
                    &(struct fact){.operation = request->call->kind == CALL_BIND ? GUARD_OP_BIND
                                                                                 : GUARD_OP_CONNECT,
                                   .path = path,
                                   .entry = GUARD_NO_ENTRY,
                                   .is_socket = is_socket});
}

/* What the answer says was done, or is on its way. `path`: of a Unix socket, as it was found; NULL. */
static struct answer told(const struct request *request, const struct address *address,
                          const char *path, struct answer answer)
{
    char text[sizeof address->local.sun_path + INET6_ADDRSTRLEN + 16];
    size_t start = offsetof(struct sockaddr_un, sun_path) + 1;

    if (!request->command->traces_network ||
        (answer.kind == ANSWER_ERROR && answer.number != EINPROGRESS))
        return answer;
    if (path) {
        tell_done(request, path, true);
    } else if (address->any.sa_family == AF_UNIX && address->len > start) {
        snprintf(text, sizeof text, "@%.*s", (int)(address->len - start), address->bytes + start);
        tell_done(request, text, true);
    } else if (address->any.sa_family != AF_UNIX && address_format(address, text, sizeof text)) {
        tell_done(request, text, false);
    }
    return answer;
}

/* --- connecting a copy --- */

static uint64_t timeout_of(int copy)
{
    struct timeval timeout = {0};
    socklen_t len = sizeof timeout;

    if (getsockopt(copy, SOL_SOCKET, SO_SNDTIMEO, &timeout, &len))
        return 0;
    return (uint64_t)timeout.tv_sec * 1000000000u + (uint64_t)timeout.tv_usec * 1000;
}

/* In a child. A timeout of the socket's own counts from the beginning, not from the interruption. While a call waits
 * here no handler of the caller's runs, so that is looked for. */
static void connect_patiently(const struct request *request, int copy,
                              const struct address *address)
{
    const uint64_t timeout = timeout_of(copy);
    const uint64_t start = now_ns();
    struct k_seccomp_notif_resp response = {.id = request->notif->id};

    child_interrupt_every(CHILD_INTERRUPT_MS);
    while (connect(copy, &address->any, address->len)) {
        response.error = -errno;
        if (errno != EINTR)
            break;
        if (!request_is_valid(request))
            return;
        if (remote_has_signal(request->thread))
            break;
        if (timeout && now_ns() - start >= timeout) {
            response.error = address->any.sa_family == AF_UNIX ? -EAGAIN : -EINPROGRESS;
            break;
        }
        response.error = 0;
    }
    ioctl(request->command->listener, (int)K_SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* `pin`: what the address leads to through /proc/self/fd; -1. */
static struct answer connect_later(const struct request *request, int copy,
                                   const struct address *address, int pin)
{
    pid_t child;

    if (!child_has_room(request))
        return answer_error(EAGAIN);
    child = child_fork((int[]){copy, pin, request->command->listener}, 3);
    if (child == 0) {
        connect_patiently(request, copy, address);
        _exit(0);
    }
    if (child < 0)
        return answer_error(EAGAIN);
    child_remember(request, child);
    return (struct answer){.kind = ANSWER_LATER};
}

/* On this machine a connection stands at once, but the first answer does not know yet. */
static int try_connect(int copy, const struct address *address)
{
    if (connect(copy, &address->any, address->len) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    return connect(copy, &address->any, address->len) ? errno : 0;
}

static struct answer connect_copy(const struct request *request, int copy,
                                  const struct address *address, int pin)
{
    int flags = fcntl(copy, F_GETFL);
    int error;

    if (flags < 0)
        return answer_error(errno);
    if (!request_is_valid(request))
        return answer_error(EINTR);
    if (flags & O_NONBLOCK) {
        error = connect(copy, &address->any, address->len) ? errno : 0;
        return error ? answer_error(error) : answer_value(0);
    }
    fcntl(copy, F_SETFL, flags | O_NONBLOCK);
    error = try_connect(copy, address);
    fcntl(copy, F_SETFL, flags);
    if (error == EINPROGRESS || error == EALREADY || error == EAGAIN || error == EINTR)
        return connect_later(request, copy, address, pin);
    return error ? answer_error(error) : answer_value(0);
}

/* --- Unix sockets by path --- */

/* What is no name in a directory: "/", "..", or nothing at all, and why. A socket is refused: the way to
 * it is one that we do not follow. */
static int find_other(const struct request *request, const char *text, struct stat *ret)
{
    const struct sys_open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = SYS_RESOLVE_NO_MAGICLINKS | (*text == '/' ? SYS_RESOLVE_IN_ROOT : 0),
    };
    char base[64];
    AUTO_CLOSE int dir = -1;
    AUTO_CLOSE int found = -1;

    snprintf(base, sizeof base, "/proc/%d/%s", (int)request->thread, *text == '/' ? "root" : "cwd");
    dir = open(base, O_PATH | O_CLOEXEC);
    if (dir < 0)
        return -EACCES;
    found = sys_openat2(dir, text, &how);
    if (found < 0)
        return -errno;
    return fstat(found, ret) || S_ISSOCK(ret->st_mode) ? -EACCES : TAKE_FD(found);
}

/* Pins what the path leads to for the caller. A negative errno when it leads nowhere. */
static int find_file(const struct request *request, const char *text, struct stat *ret)
{
    AUTO(place_done) struct place place = {.dir = -1, .lock = -1};
    int fd = place_descriptor(request, text);

    if (fd >= 0)
        return fstat(fd, ret) ? -EACCES : fd;
    if (!place_find(request, AT_FDCWD, text, &place))
        return find_other(request, text, ret);
    for (int i = 0; i < LINKS_MAX; i++) {
        fd = openat(place.dir, place.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return -errno;
        if (fstat(fd, ret) == 0 && !S_ISLNK(ret->st_mode))
            return fd;
        close(fd);
        if (!place_may_follow(&place, ret))
            return -EACCES;
        if (!place_follow(request, &place))
            return -ENOENT;
    }
    return -ELOOP;
}

/* Nobody is behind the socket any more, as after a tmux that was killed. Connecting a datagram socket
 * asks for that without a word to whoever it is: of another type it fails, and of the same nothing
 * comes until something is sent. */
static bool is_left_behind(const struct address *pinned)
{
    AUTO_CLOSE int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return probe >= 0 && connect(probe, &pinned->any, pinned->len) && errno == ECONNREFUSED;
}

/* Where the C library asks first who a name or user is, each time, and without a word does by itself what nobody answers. */
static bool is_name_service(const char *path)
{
    static const char *const paths[] = {"/run/nscd/socket",
                                        "/run/systemd/resolve/io.systemd.Resolve",
                                        "/run/systemd/userdb/io.systemd.DynamicUser",
                                        "/run/systemd/userdb/io.systemd.Machine",
                                        "/run/systemd/userdb/io.systemd.Multiplexer",
                                        "/run/avahi-daemon/socket",
                                        NULL};
    size_t at = 0;

    while (paths[at] && strcmp(paths[at], path) != 0)
        at++;
    return paths[at];
}

static struct answer refuse(const struct request *request, struct object *socket)
{
    const struct fact fact = {.operation = GUARD_OP_CONNECT,
                              .path = socket->path,
                              .entry = socket->entry,
                              .error = EACCES,
                              .is_socket = true};
    const struct answer answer = answer_error(EACCES);

    if (is_name_service(socket->path))
        return answer_error(ECONNREFUSED);
    if (place_permits(request->command, socket->path, W_OK) &&
        hold_call(request, &fact, (struct object *const[2]){socket, NULL}, answer))
        return (struct answer){.kind = ANSWER_HELD};
    facts_tell(request, &fact);
    return answer;
}

/* It is one of the command's own, or the map allows it. */
static bool is_free(struct command *command, const struct object *socket,
                    const struct identity *identity)
{
    return (socket->entry != GUARD_NO_ENTRY &&
            command->map.entries[socket->entry].flags & GUARD_ENTRY_SOCKETS) ||
           bind_is_known(command, identity);
}

static struct answer connect_path(const struct request *request, int copy,
                                  const struct address *address)
{
    struct command *command = request->command;
    struct address pinned = {.local = {.sun_family = AF_UNIX}, .len = sizeof pinned.local};
    struct object found = {.place = {.dir = -1, .lock = -1}, .exists = true, .is_denied = true};
    struct answer answer;
    struct identity identity;
    ssize_t len;
    AUTO_CLOSE int pin = find_file(request, address_path(address), &found.st);

    if (pin < 0)
        return answer_error(-pin);
    snprintf(pinned.local.sun_path, sizeof pinned.local.sun_path, "/proc/self/fd/%d", pin);
    len = readlink(pinned.local.sun_path, found.path, sizeof found.path - 1);
    if (!S_ISSOCK(found.st.st_mode)) /* the kernel has an error for each case */
        return connect_copy(request, copy, &pinned, pin);
    if (len <= 0 || found.path[0] != '/' || !identify(pin, &identity))
        return answer_error(EACCES);
    found.path[len] = '\0';
    found.entry = map_find(&command->map, found.path);
    if (is_free(command, &found, &identity))
        return told(request, address, found.path, connect_copy(request, copy, &pinned, pin));
    if (!grants_cover(request, &command->grants, &found))
        return is_left_behind(&pinned) ? answer_error(ECONNREFUSED) : refuse(request, &found);
    answer = connect_copy(request, copy, &pinned, pin);
    if (request->attempt == ATTEMPT_FIRST) /* else the fact is that of the question */
        told(request, address, found.path, answer);
    answer.is_granted = true;
    return answer;
}

/* --- the calls --- */

static void tell_unreachable(const struct request *request, const struct address *address,
                             int error)
{
    char text[INET6_ADDRSTRLEN + 16];

    if (error != ENETUNREACH && error != EHOSTUNREACH && error != EADDRNOTAVAIL && error != EACCES)
        return;
    if (address_format_remote(address, text, sizeof text))
        facts_tell(request, &(struct fact){.operation = GUARD_OP_CONNECT,
                                           .path = text,
                                           .entry = GUARD_NO_ENTRY,
                                           .error = error});
}

static int type_of(int copy)
{
    int type = 0;
    socklen_t len = sizeof type;

    return getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &len) ? 0 : type;
}

/* On this machine a refusal is there before the answer is, which does not know yet; the error is for the caller to take. */
static bool is_closed(int copy)
{
    struct tcp_info info;
    socklen_t len = sizeof info;

    return getsockopt(copy, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           info.tcpi_state == TCP_CLOSE;
}

/* Nobody listens there inside. Who means a server of the host's, or of another command, is told how to reach it: the
 * address is written as a number for the one, as a name for the other. */
static void tell_left_outside(const struct request *request, int copy,
                              const struct address *address, struct answer answer)
{
    const uint16_t port = ntohs(port_of(address));
    char text[] = "127.0.0.1:65535";
    enum listening listening;

    if (answer.kind != ANSWER_ERROR || !is_own(address) || type_of(copy) != SOCK_STREAM ||
        (answer.number != ECONNREFUSED && (answer.number != EINPROGRESS || !is_closed(copy))))
        return;
    listening = listening_outside(request->command, port);
    if (listening == LISTENING_NOBODY)
        return;
    snprintf(text, sizeof text, "%s:%u", listening == LISTENING_HOST ? "127.0.0.1" : "localhost",
             port);
    facts_tell(request, &(struct fact){.operation = GUARD_OP_CONNECT,
                                       .path = text,
                                       .entry = GUARD_NO_ENTRY,
                                       .error = ECONNREFUSED});
}

/* Many hosts have their resolver on an address of their own, which is another host's in here. To
 * connect a UDP socket to it works all the same. None can be in here: that takes a capability. */
static bool is_lost_resolver(int copy, int domain, const struct address *address)
{
    return (domain == AF_INET || domain == AF_INET6) && is_own(address) &&
           type_of(copy) == SOCK_DGRAM;
}

static struct answer refuse_abstract(const struct request *request, const struct address *address)
{
    const size_t start = offsetof(struct sockaddr_un, sun_path) + 1;
    char text[sizeof address->bytes];

    snprintf(text, sizeof text, "@%.*s", (int)(address->len - start), address->bytes + start);
    facts_tell(request, &(struct fact){.operation = GUARD_OP_CONNECT,
                                       .path = text,
                                       .entry = GUARD_NO_ENTRY,
                                       .error = EACCES,
                                       .is_socket = true});
    return answer_error(EACCES);
}

/* --- where the network leads to the proxy --- */

static uint16_t port_of_copy(int copy)
{
    struct address own = {.len = sizeof own.bytes - 1};

    return getsockname(copy, &own.any, &own.len) ? 0 : ntohs(port_of(&own));
}

/* Nobody is there for UDP but the resolver. (Port 0 is for who wants to know which address it would have.) */
static bool is_refused_udp(int copy, const struct address *address)
{
    return type_of(copy) == SOCK_DGRAM && !is_own(address) && port_of(address) &&
           port_of(address) != htons(DNS_PORT);
}

static struct answer refuse_udp(const struct request *request, const struct address *address)
{
    char text[INET6_ADDRSTRLEN + 16];

    if (address_format(address, text, sizeof text))
        facts_tell(request, &(struct fact){.operation = GUARD_OP_CONNECT,
                                           .path = text,
                                           .entry = GUARD_NO_ENTRY,
                                           .error = ECONNREFUSED});
    return answer_error(ECONNREFUSED);
}

/* To be led: nothing redirects it, and it is for a port that would be redirected. A socket that has been somewhere already the
 * kernel answers. */
static bool is_led(const struct request *request, int copy, const struct address *address)
{
    const struct guard_map *map = request->command->map.header;
    const uint16_t port = ntohs(port_of(address));
    uint32_t at = 0;

    if (!has_flag(request, GUARD_MAP_LED) || !port || type_of(copy) != SOCK_STREAM ||
        !is_closed(copy))
        return false;
    if (!is_own(address) || port == DNS_PORT)
        return true;
    while (at < map->host_ports_len && map->host_ports[at] != port)
        at++;
    return at < map->host_ports_len;
}

/* What is told of it is the proxy's to tell, who knows the name; we say who it was. That comes before the connection, by
 * its address; or, where addresses are shared by all, after it, by the port of its own. */
static struct answer connect_proxied(const struct request *request, int copy,
                                     const struct address *address)
{
    const bool leads = is_led(request, copy, address);
    const in_port_t port = port_of(address);
    uint8_t ip[16] = {0};
    struct answer answer;

    if (is_refused_udp(copy, address))
        return refuse_udp(request, address);
    if (type_of(copy) != SOCK_DGRAM && !is_own(address)) {
        ip_of(address, ip);
        facts_tell_caller(request, ip, ntohs(port));
        return leads ? lead_to_proxy(request, copy, address)
                     : connect_copy(request, copy, address, -1);
    }
    answer =
        leads ? lead_to_proxy(request, copy, address) : connect_copy(request, copy, address, -1);
    tell_left_outside(request, copy, address, answer);
    if (port != htons(DNS_PORT) && port != htons(GUARD_PROXY_PORT))
        return told(request, address, NULL, answer);
    facts_tell_caller(request, ip, port_of_copy(copy));
    return answer;
}

static struct answer connect_call(const struct request *request, int copy, int domain,
                                  const struct address *address)
{
    const struct k_sockaddr_nl *netlink = (const void *)address->bytes;
    char text[INET6_ADDRSTRLEN + 16];
    struct answer answer;

    if (domain == AF_UNIX && address_path(address))
        return connect_path(request, copy, address);
    if (domain == AF_UNIX && is_abstract(address) && has_flag(request, GUARD_MAP_SHARED))
        return refuse_abstract(request, address);
    /* Needs a capability that we, the owner of the command's user namespace, seem to have. */
    if (domain == AF_NETLINK && address->len >= sizeof *netlink &&
        (netlink->port || netlink->groups))
        return answer_error(EPERM);
    if ((domain == AF_INET || domain == AF_INET6) && has_flag(request, GUARD_MAP_PROXIED) &&
        address_format(address, text, sizeof text))
        return connect_proxied(request, copy, address);
    answer = connect_copy(request, copy, address, -1);
    if (has_flag(request, GUARD_MAP_SHARED))
        return told(request, address, NULL, answer);
    if (domain == AF_INET || domain == AF_INET6)
        tell_left_outside(request, copy, address, answer);
    if (answer.kind == ANSWER_ERROR)
        tell_unreachable(request, address, answer.number);
    else if (answer.kind == ANSWER_VALUE && is_lost_resolver(copy, domain, address))
        tell_unreachable(request, address, EHOSTUNREACH);
    return told(request, address, NULL, answer);
}

/* A bind without a path is the kernel's: what another thread could make of it, the kernel refuses
 * where it has to. */
static struct answer bind_call(const struct request *request, int copy, int domain,
                               const struct address *address)
{
    struct answer answer;

    if (domain == AF_UNIX && address_path(address))
        return bind_path(request, copy, address);
    if (!(request->command->map.header->flags & GUARD_MAP_NO_LANDLOCK))
        answer = answer_continue();
    else
        answer = bind(copy, &address->any, address->len) ? answer_error(errno) : answer_value(0);
    return told(request, address, NULL, answer);
}

/* The kernel sends it, to wherever it reads then: out of this network it does not come. A connection that begins with
 * data (MSG_FASTOPEN) is one. */
static struct answer send_call(const struct request *request)
{
    AUTO_CLOSE int copy = remote_fd(request->thread, (int)request_argument(request, 0));
    struct address address;
    uint8_t ip[16];

    if (copy < 0 || address_read(request, &address) ||
        (address.any.sa_family != AF_INET && address.any.sa_family != AF_INET6))
        return answer_continue();
    if (is_refused_udp(copy, &address))
        return refuse_udp(request, &address);
    if (is_led(request, copy, &address) && request_argument(request, 3) & MSG_FASTOPEN)
        return answer_error(EOPNOTSUPP); /* programs connect then */
    if (type_of(copy) == SOCK_STREAM && !is_own(&address)) {
        ip_of(&address, ip);
        facts_tell_caller(request, ip, ntohs(port_of(&address)));
    }
    return answer_continue();
}

static struct answer handle(const struct request *request)
{
    AUTO_CLOSE int copy = remote_fd(request->thread, (int)request_argument(request, 0));
    int domain = 0;
    socklen_t len = sizeof domain;
    struct address address;
    int error;

    if (copy < 0)
        return answer_error(copy == -EBADF || copy == -EMFILE ? -copy : EACCES);
    error = address_read(request, &address);
    if (error)
        return answer_error(-error);
    if (getsockopt(copy, SOL_SOCKET, SO_DOMAIN, &domain, &len))
        return answer_error(errno);
    if (domain == AF_UNIX && request->nested) /* whose sandbox may allow less */
        return answer_error(EPERM);
    if (request->call->kind == CALL_CONNECT)
        return connect_call(request, copy, domain, &address);
    return bind_call(request, copy, domain, &address);
}

/* The address of a datagram comes with sendmsg(2), in memory: nobody can look at it and be sure. */
static struct answer refuse_socket(const struct request *request)
{
    facts_tell(request, &(struct fact){.operation = GUARD_OP_CONNECT,
                                       .path = "datagram",
                                       .entry = GUARD_NO_ENTRY,
                                       .error = EPERM,
                                       .is_socket = true});
    return answer_error(EPERM);
}

struct answer socket_call(const struct request *request)
{
    struct answer answer;

    if (request->call->kind == CALL_SOCKET)
        return refuse_socket(request);
    child_interrupt_every(INTERRUPT_MS);
    answer = request->call->kind == CALL_SEND ? send_call(request) : handle(request);
    child_interrupt_every(0);
    return answer;
}

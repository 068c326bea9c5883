/* See dns_server.h.
 *
 *     localhost and its like            this machine
 *     a name that policy may allow      A: its address of the pool, when it exists and its own addresses may be reached
 *     a name that may be asked about    A: its address of the pool, at once
 *     any other name                    NXDOMAIN, at once, and a fact
 *
 * Records other than A are said not to be there, without a question to anybody: no second way to an address, no hint at
 * another protocol (HTTPS, SVCB), and no text that somebody else wrote. PTR of what we gave out is known here. */
#include "proxy/dns_server.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "loop/loop.h"
#include "proxy/command.h"
#include "proxy/dial.h"
#include "proxy/dns_message.h"
#include "proxy/limits.h"
#include "proxy/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 16, PREFIX = 2, DNS_PORT = 53, CONTROL_MAX = 64 };

static const unsigned char loopback4[4] = {127, 0, 0, 1};

/* A connection to port 53. */
struct stream {
    struct command *command;
    struct list in_streams;
    struct deadline deadline;
    struct sockaddr_storage from;
    int fd;
    struct loop_watch *watch;
    struct buf in;
};

/* Where an answer goes. Sent back as it came, `control` is the address that was asked (IP_PKTINFO, IPV6_PKTINFO). */
struct asker {
    int fd; /* of UDP */
    size_t control_len;
    uint8_t control[CONTROL_MAX] __attribute__((aligned(sizeof(size_t))));
    struct sockaddr_storage from;
    socklen_t from_len;
    struct stream *stream; /* NULL: UDP */
};

struct pending {
    struct command *command;
    struct list in_pending;
    struct name_waiter waiter;
    struct asker asker;
    struct dns_query query;
};

void dns_server_init(struct dns_server *server)
{
    for (unsigned i = 0; i < DNS_SOCKETS; i++)
        server->fds[i] = -1;
}

/* --- answers --- */

static void send_datagram(const struct asker *to, unsigned char *bytes, size_t len)
{
    struct iovec part = {.iov_base = bytes, .iov_len = len};
    const struct msghdr message = {.msg_name = (void *)&to->from,
                                   .msg_namelen = to->from_len,
                                   .msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = to->control_len ? (void *)to->control : NULL,
                                   .msg_controllen = to->control_len};

    sendmsg(to->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* What does not fit into the socket's buffer is lost, as answers may be: programs ask again. */
static void reply(const struct asker *to, const struct dns_query *query, enum dns_code code,
                  const struct dns_record *record)
{
    unsigned char message[PREFIX + DNS_ANSWER_MAX];
    size_t len = dns_answer_format(query, code, record, message + PREFIX);

    message[0] = (unsigned char)(len >> 8);
    message[1] = (unsigned char)len;
    if (to->stream) {
        if (send(to->stream->fd, message, PREFIX + len, MSG_DONTWAIT | MSG_NOSIGNAL) !=
            (ssize_t)(PREFIX + len))
            shutdown(to->stream->fd, SHUT_RDWR); /* who does not read answers gets no half ones */
    } else {
        send_datagram(to, message + PREFIX, len);
    }
}

static void reply_address(const struct asker *to, const struct dns_query *query,
                          const unsigned char address[4])
{
    struct dns_record record = {.type = DNS_A};
    bool is_wanted = query->type == DNS_A || query->type == DNS_ANY;

    memcpy(record.bytes, address, 4);
    reply(to, query, DNS_NOERROR, is_wanted ? &record : NULL);
}

static void reply_local(const struct asker *to, const struct dns_query *query)
{
    static const struct dns_record itself6 = {.type = DNS_AAAA, .bytes = {[15] = 1}};

    if (query->type == DNS_AAAA)
        reply(to, query, DNS_NOERROR, &itself6);
    else
        reply_address(to, query, loopback4);
}

static void reply_reverse(struct command *command, const struct asker *to,
                          const struct dns_query *query)
{
    struct dns_record record = {.type = DNS_PTR};
    unsigned char bytes[4];
    const struct name *name = NULL;

    if (dns_reverse_parse(query->name, bytes)) {
        struct net_address address = net_address_v4(bytes);

        name = names_at(&command->names, &address);
        record.name = bytes[0] == loopback4[0] ? "localhost" : name ? name->host.text : NULL;
    }
    reply(to, query, record.name ? DNS_NOERROR : DNS_NXDOMAIN, record.name ? &record : NULL);
}

static void reply_name(const struct asker *to, const struct dns_query *query,
                       const struct name *name)
{
    unsigned char address[4];

    name_address(name, address);
    reply_address(to, query, address);
}

static struct target target_of(const struct net_host *host, const struct asker *asker)
{
    const struct sockaddr_in *from =
        (const struct sockaddr_in *)&asker->from; /* or in6: same place */

    return (struct target){.host = *host, .local_port = ntohs(from->sin_port)};
}

/* --- questions that go upstream --- */

static void pending_free(struct pending *pending)
{
    name_leave(&pending->waiter);
    list_remove(&pending->in_pending);
    pending->command->dns.pending_len--;
    free(pending);
}

/* One address that may not be reached refuses the name. */
static bool is_refused(const struct command *command, const struct name *name)
{
    const struct network_request request = {.host = &name->host};

    for (size_t i = 0; i < name->addresses_len; i++)
        if (dial_judge(command, &request, &name->addresses[i]) != NETWORK_REASON_NONE)
            return true;
    return false;
}

static void on_resolved(struct name_waiter *waiter, struct name *name)
{
    struct pending *pending = container_of(waiter, struct pending, waiter);
    struct command *command = pending->command;
    const struct dns_query *query = &pending->query;

    if (name->found == LOOP_NO_SUCH_NAME) {
        reply(&pending->asker, query, DNS_NXDOMAIN, NULL);
    } else if (name->found == LOOP_NO_ANSWER) {
        reply(&pending->asker, query, DNS_SERVFAIL, NULL);
    } else if (name->found == LOOP_NO_ADDRESS) {
        reply(&pending->asker, query, DNS_NOERROR, NULL);
    } else if (is_refused(command, name)) {
        struct target target = target_of(&name->host, &pending->asker);

        facts_denied(command, &target, network_reason_word(NETWORK_NOT_ALLOWED_LOCAL), NULL);
        reply(&pending->asker, query, DNS_NXDOMAIN, NULL);
    } else {
        reply_name(&pending->asker, query, name);
    }
    pending_free(pending);
}

static void resolve(struct command *command, const struct asker *to, const struct dns_query *query,
                    struct name *name)
{
    const struct target target = target_of(&name->host, to);
    struct pending *pending;

    if (command->dns.pending_len == LIMIT_LOOK_UPS) {
        facts_denied(command, &target,
                     "256 look-ups of the command wait for an answer, which is the limit", NULL);
        reply(to, query, DNS_SERVFAIL, NULL);
        return;
    }
    pending = alloc_zero(1, sizeof *pending);
    *pending = (struct pending){.command = command, .asker = *to, .query = *query};
    pending->waiter.on_resolved = on_resolved;
    list_append(&command->dns.pending, &pending->in_pending);
    command->dns.pending_len++;
    name_resolve(name, &target, &pending->waiter);
}

/* --- questions --- */

/* One that was meant, as it seems. False: there is none. */
static bool tell_guess(struct command *command)
{
    struct target target = {.port = 0};
    AUTO_FREE char *name = search_take(&command->dns.guesses, &target.local_port);

    if (!name)
        return false;
    snprintf(target.host.text, sizeof target.host.text, "%s", name);
    facts_denied(command, &target, network_reason_word(NETWORK_NOT_ALLOWED), NULL);
    return true;
}

static void refuse(struct command *command, const struct asker *to, const struct dns_query *query,
                   const struct network_decision *decision)
{
    const struct net_host none = {.kind = NET_HOST_IS_NAME};
    struct target target = target_of(&none, to);

    memcpy(target.host.text, query->name, sizeof query->name);
    facts_denied(command, &target, network_reason_word(decision->reason),
                 decision->rule ? decision->rule->origin : NULL);
    reply(to, query, DNS_NXDOMAIN, NULL);
}

/* A name that a resolver made of another one, and that no rule is about. */
static bool is_guess(struct command *command, const struct net_host *host,
                     const struct network_decision *decision, uint16_t asked_by)
{
    struct dns_server *server = &command->dns;
    bool is_meant = search_is_meant(&server->guesses, host->text);
    size_t prefix;

    if (is_meant || decision->verdict == NETWORK_ALLOW || decision->rule)
        return false;
    proxy_refresh_resolver(command->proxy);
    prefix = search_prefix_len(&command->proxy->search, host->text);
    if (prefix && strlen(server->last_refused) == prefix &&
        memcmp(server->last_refused, host->text, prefix) == 0)
        return true;
    if (server->guesses.count == SEARCH_GUESSES_MAX)
        tell_guess(command);
    return search_is_guess(&command->proxy->search, &server->guesses, host->text, asked_by);
}

/* Nobody means anything by it that has to be told: a program that asks for the machine's own name, to write it down (git,
 * Java); a short name, after it was refused with a domain of the search list. */
static bool is_idle(const struct command *command, const struct net_host *host,
                    const struct network_decision *decision)
{
    return !decision->rule &&
           (strcasecmp(host->text, command->proxy->own_name) == 0 ||
            search_leads_to(&command->proxy->search, host->text, command->dns.last_refused));
}

static void answer_name(struct command *command, const struct asker *to,
                        const struct dns_query *query, const struct net_host *host)
{
    struct target target = target_of(host, to);
    struct network_decision decision;
    const char *limit;
    struct name *name;

    command_decide(command, &target, NULL, &decision);
    if (is_guess(command, host, &decision, target.local_port) ||
        (decision.verdict == NETWORK_DENY && is_idle(command, host, &decision))) {
        reply(to, query, DNS_NXDOMAIN, NULL);
        return;
    }
    if (decision.verdict == NETWORK_DENY) {
        memcpy(command->dns.last_refused, host->text, sizeof host->text);
        refuse(command, to, query, &decision);
        return;
    }
    if (query->type != DNS_A && query->type != DNS_ANY) {
        reply(to, query, DNS_NOERROR, NULL);
        return;
    }
    name = names_get(command, host, &limit);
    if (!name) {
        facts_denied(command, &target, limit, NULL);
        reply(to, query, DNS_SERVFAIL, NULL);
    } else if (decision.verdict == NETWORK_ASK ||
               upstream_for(&command->proxy->upstreams, &command->policy, host, 0, NETWORK_HTTPS)) {
        reply_name(to, query, name);
    } else {
        resolve(command, to, query, name);
    }
}

static void answer(struct command *command, const struct asker *to, const struct dns_query *query)
{
    static const struct network_decision none = {.verdict = NETWORK_DENY,
                                                 .reason = NETWORK_NOT_ALLOWED};
    struct net_host host;
    struct err ignored;

    if (!*query->name)
        reply(to, query, DNS_NOERROR, NULL); /* the root */
    else if (query->type == DNS_PTR && str_ends(query->name, ".arpa"))
        reply_reverse(command, to, query);
    else if (query->is_odd || net_host_parse(query->name, strlen(query->name), &host, &ignored) ||
             host.kind != NET_HOST_IS_NAME)
        refuse(command, to, query, &none);
    else if (net_host_name_is_local(host.text))
        reply_local(to, query);
    else
        answer_name(command, to, query, &host);
}

static void take_message(struct command *command, const struct asker *from, const void *data,
                         size_t len)
{
    struct dns_query query;
    enum dns_code code;

    switch (dns_query_parse(data, len, &query, &code)) {
    case DNS_ANSWERABLE:
        answer(command, from, &query);
        break;
    case DNS_UNREADABLE:
        reply(from, &query, code, NULL);
        break;
    case DNS_SILENT:
        break;
    }
}

/* --- UDP --- */

static void on_datagram(void *data, int fd, unsigned ready)
{
    struct asker from = {.fd = fd};
    char message[DNS_QUERY_MAX + 1];

    for (int i = 0; i < BATCH; i++) {
        struct iovec part = {.iov_base = message, .iov_len = sizeof message};
        struct msghdr header = {.msg_name = &from.from,
                                .msg_namelen = sizeof from.from,
                                .msg_iov = &part,
                                .msg_iovlen = 1,
                                .msg_control = from.control,
                                .msg_controllen = sizeof from.control};
        ssize_t len = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (len < 0)
            return;
        from.from_len = header.msg_namelen;
        from.control_len = header.msg_controllen;
        take_message(data, &from, message, (size_t)len);
    }
}

void dns_server_add(struct command *command, unsigned index, int fd)
{
    struct dns_server *server = &command->dns;
    struct err ignored;

    server->watches[index] =
        loop_watch_new(command->proxy->loop, fd, LOOP_READ, on_datagram, command, &ignored);
    server->fds[index] = fd;
}

/* --- TCP --- */

static void stream_free(struct stream *stream)
{
    struct pending *pending, *following;

    list_for_each_safe(pending, following, &stream->command->dns.pending, in_pending)
        if (pending->asker.stream == stream)
            pending_free(pending);
    deadline_clear(&stream->deadline);
    list_remove(&stream->in_streams);
    stream->command->dns.streams_len--;
    loop_watch_free(stream->watch);
    close(stream->fd);
    buf_done(&stream->in);
    free(stream);
}

void dns_server_on_idle(struct deadline *deadline)
{
    stream_free(container_of(deadline, struct stream, deadline));
}

/* All messages that are whole. */
static void read_messages(struct stream *stream)
{
    struct asker from = {.stream = stream, .from = stream->from};
    const unsigned char *bytes;
    size_t len;

    while (stream->in.len >= PREFIX) {
        bytes = (const unsigned char *)stream->in.data;
        len = (size_t)bytes[0] << 8 | bytes[1];
        if (stream->in.len - PREFIX < len)
            return;
        take_message(stream->command, &from, bytes + PREFIX, len);
        buf_consume(&stream->in, PREFIX + len);
    }
}

static void on_stream(void *data, int fd, unsigned ready)
{
    struct stream *stream = data;
    char block[DNS_QUERY_MAX];
    ssize_t len = recv(fd, block, sizeof block, MSG_DONTWAIT);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0 || !buf_append(&stream->in, block, (size_t)len)) {
        stream_free(stream);
        return;
    }
    deadline_touch(&stream->deadline);
    read_messages(stream);
}

void dns_server_add_stream(struct command *command, int fd)
{
    struct dns_server *server = &command->dns;
    struct stream *stream;
    socklen_t from_len;
    struct err ignored;

    if (server->streams_len == LIMIT_DNS_STREAMS) {
        const struct target resolver = {.host = {.text = "the resolver"}, .port = DNS_PORT};

        facts_denied(command, &resolver,
                     "32 connections of the command to the resolver are open, which is the limit",
                     NULL);
        close(fd);
        return;
    }
    stream = alloc_zero(1, sizeof *stream);
    stream->command = command;
    stream->fd = fd;
    from_len = sizeof stream->from;
    getpeername(fd, (struct sockaddr *)&stream->from, &from_len);
    buf_init(&stream->in, PREFIX + 2 * DNS_QUERY_MAX);
    list_append(&server->streams, &stream->in_streams);
    server->streams_len++;
    deadline_set(&stream->deadline, &command->proxy->dns_streams);
    stream->watch =
        loop_watch_new(command->proxy->loop, fd, LOOP_READ, on_stream, stream, &ignored);
    if (!stream->watch)
        stream_free(stream);
}

void dns_server_done(struct command *command)
{
    struct dns_server *server = &command->dns;
    struct pending *pending, *following;
    struct stream *stream, *next;

    while (tell_guess(command))
        continue;
    list_for_each_safe(pending, following, &server->pending, in_pending)
        pending_free(pending);
    list_for_each_safe(stream, next, &server->streams, in_streams)
        stream_free(stream);
    for (unsigned i = 0; i < DNS_SOCKETS; i++) {
        loop_watch_free(server->watches[i]);
        if (server->fds[i] >= 0)
            close(server->fds[i]);
    }
}

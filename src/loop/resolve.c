/* See resolve.h. Both families are asked for side by side. When one is there the other is waited for a second more, since
 * there are servers that never answer for IPv6. (evdns_getaddrinfo() would do that, too, but takes a name without
 * addresses for a failure.) evdns calls back from the loop alone, exactly once for each question, also for one that
 * was called off. It leaves an answer at that which did not fit into a datagram: we ask again by TCP. */
#include "loop/resolve.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "loop/dns_stream.h"
#include "loop/loop.h"
#include "loop/loop_base.h"

#include <event2/dns.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOWER_NS CLOCK_NS_PER_S
#define IN_FLIGHT "4096" /* questions; evdns has 64 */

struct loop_resolver {
    struct loop *loop;
    struct evdns_base *dns;
    uint64_t wait_ns;
};

enum { V4, V6, FAMILIES };

struct loop_look_up {
    struct loop_resolver *resolver;
    char *name;
    struct evdns_request *requests[FAMILIES]; /* NULL: not, or no more, on its way */
    struct dns_stream *streams[FAMILIES];     /* likewise */
    int servers[FAMILIES];                    /* number of the next to be asked by it */
    struct loop_timer *patience;
    bool is_over; /* told, or cancelled: what is on its way is waited for, and means nothing */
    loop_found_fn *on_found;
    void *data;
    int results[FAMILIES]; /* DNS_ERR_... */
    size_t counts[FAMILIES];
    struct in6_addr addresses[FAMILIES][LOOP_ADDRESSES_MAX / FAMILIES];
};

/* Failures come back as results. */
static void resolver_log(int is_warning, const char *message)
{
}

struct loop_resolver *loop_resolver_new(struct loop *loop, uint64_t wait_ns, struct err *err)
{
    struct evdns_base *dns =
        evdns_base_new(loop_event_base(loop), EVDNS_BASE_DISABLE_WHEN_INACTIVE);
    struct loop_resolver *resolver;

    if (!dns) {
        err_set(err, ERR_SYSTEM, "making a resolver");
        return NULL;
    }
    evdns_set_log_fn(resolver_log);
    evdns_base_set_option(dns, "max-inflight:", IN_FLIGHT); /* one command holds nobody up */
    resolver = alloc_zero(1, sizeof *resolver);
    *resolver = (struct loop_resolver){.loop = loop, .dns = dns, .wait_ns = wait_ns};
    return resolver;
}

void loop_resolver_free(struct loop_resolver *resolver)
{
    if (!resolver)
        return;
    evdns_base_free(resolver->dns, 1);
    free(resolver);
}

void loop_resolver_read(struct loop_resolver *resolver, const char *resolv_conf)
{
    evdns_base_clear_nameservers_and_suspend(resolver->dns);
    evdns_base_resolv_conf_parse(resolver->dns, DNS_OPTION_NAMESERVERS | DNS_OPTION_MISC,
                                 resolv_conf);
    evdns_base_resume(resolver->dns);
}

static void look_up_free_when_over(struct loop_look_up *look_up)
{
    if (!look_up->is_over || look_up->requests[V4] || look_up->requests[V6])
        return;
    loop_timer_free(look_up->patience);
    free(look_up->name);
    free(look_up);
}

/* What is still on its way is called off: evdns calls back for that, too, later. */
static void look_up_end(struct loop_look_up *look_up)
{
    look_up->is_over = true;
    loop_timer_stop(look_up->patience);
    for (int i = 0; i < FAMILIES; i++) {
        dns_stream_free(TAKE_PTR(look_up->streams[i]));
        if (look_up->requests[i])
            evdns_cancel_request(look_up->resolver->dns, look_up->requests[i]);
    }
    look_up_free_when_over(look_up);
}

static enum loop_found found_of(const struct loop_look_up *look_up)
{
    const int *results = look_up->results;

    if (look_up->counts[V4] + look_up->counts[V6])
        return LOOP_FOUND;
    if (results[V4] == DNS_ERR_NOTEXIST || results[V6] == DNS_ERR_NOTEXIST)
        return LOOP_NO_SUCH_NAME;
    return results[V4] == DNS_ERR_NODATA && results[V6] == DNS_ERR_NODATA ? LOOP_NO_ADDRESS
                                                                          : LOOP_NO_ANSWER;
}

static void tell(struct loop_look_up *look_up)
{
    struct in6_addr all[LOOP_ADDRESSES_MAX];
    size_t count = look_up->counts[V4];
    loop_found_fn *on_found = look_up->on_found;
    enum loop_found found = found_of(look_up);
    void *data = look_up->data;

    memcpy(all, look_up->addresses[V4], count * sizeof *all);
    memcpy(all + count, look_up->addresses[V6], look_up->counts[V6] * sizeof *all);
    count += look_up->counts[V6];
    look_up_end(look_up);
    on_found(data, found, all, count);
}

static void out_of_patience(void *data)
{
    tell(data);
}

static void take(struct loop_look_up *look_up, int family, const void *addresses, int count)
{
    const unsigned char *bytes = addresses;
    const size_t size = family == V4 ? 4 : 16;
    size_t *len = &look_up->counts[family];

    for (; count > 0 && *len < LOOP_ADDRESSES_MAX / FAMILIES; count--, bytes += size) {
        struct in6_addr *slot = &look_up->addresses[family][(*len)++];

        if (family == V4)
            slot->s6_addr[10] = slot->s6_addr[11] = 0xff;
        memcpy(slot->s6_addr + sizeof *slot - size, bytes, size);
    }
}

/* One family is known. */
static void go_on(struct loop_look_up *look_up, int family)
{
    if (!look_up->requests[!family] && !look_up->streams[!family])
        tell(look_up);
    else if (look_up->counts[family])
        loop_timer_start(look_up->patience, SLOWER_NS);
}

static bool ask_by_tcp(struct loop_look_up *look_up, int family);

static void on_stream(struct loop_look_up *look_up, int family, const uint8_t *addresses, int count)
{
    look_up->streams[family] = NULL;
    if (count < 0 && ask_by_tcp(look_up, family))
        return;
    if (count >= 0)
        look_up->results[family] = count ? DNS_ERR_NONE : DNS_ERR_NODATA;
    take(look_up, family, addresses, count);
    go_on(look_up, family);
}

static void on_stream4(void *data, const uint8_t *addresses, int count)
{
    on_stream(data, V4, addresses, count);
}

static void on_stream6(void *data, const uint8_t *addresses, int count)
{
    on_stream(data, V6, addresses, count);
}

/* The next server. False: there is none. */
static bool ask_by_tcp(struct loop_look_up *look_up, int family)
{
    struct sockaddr_storage server;
    struct dns_stream **stream = &look_up->streams[family];
    int len;

    while (!*stream &&
           (len = evdns_base_get_nameserver_addr(look_up->resolver->dns, look_up->servers[family]++,
                                                 (struct sockaddr *)&server, sizeof server)) > 0)
        *stream =
            dns_stream_new(look_up->resolver->loop, (struct sockaddr *)&server, (socklen_t)len,
                           look_up->name, family == V4 ? DNS_STREAM_A : DNS_STREAM_AAAA,
                           family == V4 ? on_stream4 : on_stream6, look_up);
    return *stream;
}

static void on_answer(struct loop_look_up *look_up, int family, int result, int count,
                      const void *addresses)
{
    look_up->requests[family] = NULL;
    if (look_up->is_over) {
        look_up_free_when_over(look_up);
        return;
    }
    look_up->results[family] = result;
    if (result == DNS_ERR_TRUNCATED && ask_by_tcp(look_up, family))
        return;
    if (result == DNS_ERR_NONE)
        take(look_up, family, addresses, count);
    go_on(look_up, family);
}

static void on_answer4(int result, char type, int count, int ttl, void *addresses, void *data)
{
    on_answer(data, V4, result, count, addresses);
}

static void on_answer6(int result, char type, int count, int ttl, void *addresses, void *data)
{
    on_answer(data, V6, result, count, addresses);
}

/* Whether there is a way to any of the servers: without one evdns would wait for an answer until its time is up. Connecting
 * looks for the way, and sends nothing. */
static bool may_be_answered(struct evdns_base *dns)
{
    bool has_way = false;

    for (int i = 0; i < evdns_base_count_nameservers(dns) && !has_way; i++) {
        struct sockaddr_storage server;
        int len = evdns_base_get_nameserver_addr(dns, i, (struct sockaddr *)&server, sizeof server);
        int fd = socket(server.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        has_way = connect(fd, (struct sockaddr *)&server, (socklen_t)len) == 0;
        if (fd >= 0)
            close(fd);
    }
    return has_way;
}

struct loop_look_up *loop_look_up_start(struct loop_resolver *resolver, const char *name,
                                        loop_found_fn *on_found, void *data)
{
    struct loop_look_up *look_up = alloc_zero(1, sizeof *look_up);
    struct evdns_base *dns = resolver->dns;

    *look_up = (struct loop_look_up){.resolver = resolver,
                                     .name = alloc_str(name),
                                     .on_found = on_found,
                                     .data = data,
                                     .results = {DNS_ERR_UNKNOWN, DNS_ERR_UNKNOWN}};
    look_up->patience = loop_timer_new(resolver->loop, out_of_patience, look_up);
    if (may_be_answered(dns)) {
        look_up->requests[V4] =
            evdns_base_resolve_ipv4(dns, name, DNS_QUERY_NO_SEARCH, on_answer4, look_up);
        look_up->requests[V6] =
            evdns_base_resolve_ipv6(dns, name, DNS_QUERY_NO_SEARCH, on_answer6, look_up);
    }
    loop_timer_start(look_up->patience,
                     look_up->requests[V4] || look_up->requests[V6] ? resolver->wait_ns : 0);
    return look_up;
}

void loop_look_up_cancel(struct loop_look_up *look_up)
{
    if (look_up)
        look_up_end(look_up);
}

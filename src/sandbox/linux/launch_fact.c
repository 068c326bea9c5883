/* What guard and proxy say of a launch, in the words of sandbox/sandbox.h, and what they are told.
 *
 * Both are programs of ours, but ones that read what hostile processes write: nothing is taken of
 * a packet that is not one of their own (guard/guard_format.h, proxy/proxy_format.h).
 *
 * The proxy knows of a connection where it was to lead, the guard which program makes it: it says so before the
 * connection is there, so that the last word on that address is the program of what the proxy tells next. What comes by
 * UDP, or from who knows of the proxy, has no such address: there it is the command's own port, told by the guard
 * before anything can be sent. */
#include "sandbox/linux/launch_fact.h"

#include "base/alloc.h"
#include "base/str.h"
#include "sandbox/linux/launch_publish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The proxy's questions have numbers of their own. */
#define OF_PROXY (UINT64_C(1) << 62)

enum { CALLERS_MAX = 64, DNS_PORT = 53 };

/* Who connected to where, as the guard saw it. */
struct caller {
    uint8_t address[16]; /* zero: by UDP, or on loopback */
    uint16_t port;       /* of the address; without one the command's own */
    pid_t pid;
    char program[GUARD_COMM];
};

struct proxied {
    struct proxy_channel *channel;
    struct caller callers[CALLERS_MAX];
    unsigned next; /* the oldest */
};

/* The proxy's fact that is given out next, or was last. */
struct told_connect {
    struct proxy_fact fact;
    bool is_kept; /* it is still to be given out */
    struct launch_connect connect;
    char path[PROXY_HOST_MAX + 8];
};

_Static_assert((int)GUARD_PROXY_PORT == (int)PROXY_PORT, "who connects there is told");

_Static_assert((int)FACT_WRITE == (int)GUARD_OP_WRITE && (int)FACT_CREATE == (int)GUARD_OP_CREATE &&
                   (int)FACT_EXECUTE == (int)GUARD_OP_EXECUTE &&
                   (int)FACT_CONNECT == (int)GUARD_OP_CONNECT &&
                   (int)FACT_BIND == (int)GUARD_OP_BIND &&
                   (int)FACT_SIGNAL == (int)GUARD_OP_SIGNAL && (int)FACT_READ == (int)GUARD_OP_READ,
               "read as they are");

_Static_assert((int)LAUNCH_NO == (int)GUARD_NO && (int)LAUNCH_YES == (int)GUARD_YES &&
                   (int)LAUNCH_OUTSIDE == (int)GUARD_OUTSIDE && (int)LAUNCH_STOP == (int)GUARD_STOP,
               "sent as they are");

static bool is_of_exec(const struct guard_fact *fact)
{
    return fact->kind == GUARD_FACT_EXEC || fact->kind == GUARD_FACT_OUTSIDE ||
           ((fact->kind == GUARD_FACT_ASKED || fact->kind == GUARD_FACT_DENIED) &&
            fact->operation == GUARD_OP_EXECUTE);
}

static void decode_fact(const struct launch *launch, const struct guard_fact *fact,
                        struct launch_fact *ret)
{
    const struct access_map *map = sandbox_access(launch->sandbox);
    const char *other = fact->strings + strlen(fact->strings) + 1;

    static const enum fact_kind kinds[] = {
        [GUARD_FACT_DENIED] = FACT_DENIED,
        [GUARD_FACT_MORE] = FACT_DENIED,
        [GUARD_FACT_ASKED] = FACT_ASKED,
        [GUARD_FACT_WITHDRAWN] = FACT_WITHDRAWN,
        [GUARD_FACT_DONE] = FACT_DONE,
        [GUARD_FACT_EXEC] = FACT_EXEC,
        [GUARD_FACT_EXIT] = FACT_EXIT,
        [GUARD_FACT_OUTSIDE] = FACT_OUTSIDE,
        [GUARD_FACT_SIGNAL] = FACT_OUTSIDE_SIGNAL,
        [GUARD_FACT_LOST] = FACT_LOST,
    };

    *ret = (struct launch_fact){
        .kind = kinds[fact->kind],
        .id = fact->id,
        .operation = (enum fact_operation)fact->operation,
        .path = fact->strings,
        .other_path = *other && !is_of_exec(fact) ? other : NULL,
        .program = fact->program,
        .pid = fact->pid,
        .error = fact->error,
        .call = (int)fact->call,
        .is_socket = fact->is_socket,
        .more = fact->kind == GUARD_FACT_MORE || fact->kind == GUARD_FACT_LOST ||
                        (fact->kind == GUARD_FACT_EXEC && !fact->id)
                    ? fact->count
                    : 0,
        .time_ns = fact->time_ns,
        .is_truncated = fact->flags & GUARD_FLAG_TRUNCATED,
        .parent = fact->parent,
        .number = fact->number,
    };
    if (fact->kind == GUARD_FACT_ASKED && !is_of_exec(fact)) {
        const char *covers = other + strlen(other) + 1;
        const char *other_covers = covers + strlen(covers) + 1;

        ret->covers = *covers ? covers : NULL;
        ret->other_covers = *other_covers ? other_covers : NULL;
    }
    if (is_of_exec(fact)) {
        ret->cwd = other;
        ret->argv = guard_channel_argv(launch->channel);
    }
    if (fact->entry >= 0 && (size_t)fact->entry < map->len)
        ret->entry = &map->entries[fact->entry];
}

/* --- of the proxy --- */

static void remember_caller(struct launch *launch, const struct guard_fact *fact)
{
    struct proxied *proxied = launch->proxied;
    struct caller *caller;

    if (!proxied)
        return;
    caller = &proxied->callers[proxied->next];
    proxied->next = (proxied->next + 1) % CALLERS_MAX;
    *caller = (struct caller){.port = (uint16_t)fact->number, .pid = fact->pid};
    memcpy(caller->address, fact->address, sizeof caller->address);
    memcpy(caller->program, fact->program, sizeof caller->program);
}

static const struct caller *find_caller(const struct proxied *proxied,
                                        const struct proxy_fact *fact)
{
    static const uint8_t none[16], own[16] = {[15] = 1}, own4[13] = {[10] = 0xff, 0xff, 127};
    const bool is_by_port = memcmp(fact->meant, none, sizeof none) == 0 ||
                            memcmp(fact->meant, own, sizeof own) == 0 ||
                            memcmp(fact->meant, own4, sizeof own4) == 0;
    const uint8_t *address = is_by_port ? none : fact->meant;
    const uint16_t port = is_by_port ? fact->local_port : fact->port ? fact->port : DNS_PORT;

    for (unsigned i = 1; i <= CALLERS_MAX; i++) {
        const struct caller *caller =
            &proxied->callers[(proxied->next + CALLERS_MAX - i) % CALLERS_MAX];

        if (caller->pid && caller->port == port &&
            memcmp(caller->address, address, sizeof none) == 0)
            return caller;
    }
    return NULL;
}

static void decode_connect(const struct launch *launch, struct launch_fact *ret)
{
    struct told_connect *told = launch->told;
    const struct proxy_fact *fact = &told->fact;
    const struct caller *caller = launch->proxied ? find_caller(launch->proxied, fact) : NULL;
    const bool is_ip6 = strchr(fact->host, ':');

    static const enum fact_kind kinds[] = {
        [PROXY_FACT_DENIED] = FACT_DENIED,       [PROXY_FACT_ASKED] = FACT_ASKED,
        [PROXY_FACT_WITHDRAWN] = FACT_WITHDRAWN, [PROXY_FACT_DONE] = FACT_DONE,
        [PROXY_FACT_MORE] = FACT_DENIED,         [PROXY_FACT_FAILED] = FACT_DENIED,
    };

    if (fact->port)
        snprintf(told->path, sizeof told->path, is_ip6 ? "[%s]:%u" : "%s:%u", fact->host,
                 fact->port);
    else
        snprintf(told->path, sizeof told->path, "%s", fact->host);
    told->connect = (struct launch_connect){
        .host = fact->host,
        .port = fact->port,
        .protocol = (enum network_protocol)fact->protocol,
        .reason = fact->reason,
        .rule = fact->rule,
        .has_failed = fact->kind == PROXY_FACT_FAILED,
    };
    *ret = (struct launch_fact){
        .kind = kinds[fact->kind],
        .id = fact->id ? fact->id | OF_PROXY : 0,
        .operation = FACT_CONNECT,
        .path = told->path,
        .program = caller ? caller->program : "",
        .pid = caller ? caller->pid : 0,
        .error = kinds[fact->kind] != FACT_DENIED || fact->kind == PROXY_FACT_MORE ? 0
                 : fact->port                                                      ? ECONNRESET
                                                                                   : ENOENT,
        .more = fact->kind == PROXY_FACT_MORE ? fact->count : 0,
        .time_ns = fact->time_ns,
        .connect = &told->connect,
    };
}

static bool next_connect(const struct launch *launch, struct proxy_fact *ret)
{
    return (launch->proxied && proxy_channel_next(launch->proxied->channel, ret)) ||
           launch_publish_next(launch, ret);
}

/* Keeps what the proxy tells next until it is its turn. */
static void take_connect(struct launch *launch)
{
    struct proxy_fact fact;

    while (!(launch->told && launch->told->is_kept) && next_connect(launch, &fact)) {
        if (fact.protocol >= NETWORK_PROTOCOLS || fact.id >= OF_PROXY)
            continue; /* nothing that a proxy of ours says */
        if (!launch->told)
            launch->told = alloc_zero(1, sizeof *launch->told);
        launch->told->fact = fact;
        launch->told->is_kept = true;
    }
}

static bool read_connect(const struct launch *launch, struct launch_fact *ret)
{
    if (!launch->told || !launch->told->is_kept)
        return false;
    launch->told->is_kept = false;
    decode_connect(launch, ret);
    return true;
}

/* --- both --- */

int launch_facts_open(struct launch *launch, struct guard_channel *guard,
                      struct proxy_channel *proxy, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN};

    launch->channel = guard;
    if (guard)
        launch->facts = guard_channel_fd(guard);
    if (!proxy)
        return 0;
    launch->proxied = alloc_zero(1, sizeof *launch->proxied);
    launch->proxied->channel = proxy;
    launch->facts = epoll_create1(EPOLL_CLOEXEC);
    if (launch->facts < 0 ||
        (guard && epoll_ctl(launch->facts, EPOLL_CTL_ADD, guard_channel_fd(guard), &event)) ||
        epoll_ctl(launch->facts, EPOLL_CTL_ADD, proxy_channel_fd(proxy), &event))
        return err_sys(err, "watching guard and proxy");
    return 0;
}

struct proxy_channel *launch_facts_proxy(const struct launch *launch)
{
    return launch->proxied ? launch->proxied->channel : NULL;
}

void launch_facts_finish(struct launch *launch)
{
    if (launch->channel)
        guard_channel_finish(launch->channel, launch->lingers);
    if (launch->proxied && !launch->lingers)
        proxy_channel_finish(launch->proxied->channel);
}

void launch_facts_close(struct launch *launch)
{
    if (launch->proxied) {
        if (launch->facts >= 0)
            close(launch->facts);
        proxy_channel_free(launch->proxied->channel);
        free(launch->proxied);
    }
    free(launch->told);
    guard_channel_free(launch->channel);
}

/* A guard that has ended is readable for ever. */
static void leave_ended(const struct launch *launch)
{
    if (launch->proxied && launch->channel && guard_channel_has_ended(launch->channel))
        epoll_ctl(launch->facts, EPOLL_CTL_DEL, guard_channel_fd(launch->channel), NULL);
}

static bool is_of_guard(const struct guard_fact *fact)
{
    return fact->kind >= GUARD_FACT_DENIED && fact->kind <= GUARD_FACT_CALLER &&
           fact->operation <= GUARD_OP_READ && !fact->program[GUARD_COMM - 1];
}

/* The guard has told who causes what the proxy tells before the proxy could: so one of the proxy's is taken first,
 * and given out when the guard has nothing more to say. */
bool launch_read_fact(struct launch *launch, struct launch_fact *ret)
{
    const struct guard_fact *fact;

    take_connect(launch);
    while (launch->channel && (fact = guard_channel_next(launch->channel))) {
        if (!is_of_guard(fact))
            continue;
        if (fact->kind == GUARD_FACT_CALLER) {
            remember_caller(launch, fact);
            continue;
        }
        decode_fact(launch, fact, ret);
        return true;
    }
    if (launch->channel && guard_channel_is_broken(launch->channel))
        launch->is_unguarded = true;
    if (read_connect(launch, ret))
        return true;
    leave_ended(launch);
    return false;
}

void launch_answer(const struct launch *launch, uint64_t id, enum launch_verdict verdict)
{
    const struct guard_order order = {
        .magic = GUARD_MAGIC,
        .kind = GUARD_ORDER_ANSWER,
        .id = id,
        .verdict = verdict,
    };

    if (id & OF_PROXY && launch->proxied)
        proxy_channel_answer(launch->proxied->channel, id & ~OF_PROXY, verdict == LAUNCH_YES);
    else if (launch->channel)
        guard_channel_send(launch->channel, &order);
}

void launch_take_stdio(struct launch *launch, int ret_fds[3])
{
    ret_fds[0] = ret_fds[1] = ret_fds[2] = -1;
    if (launch->channel)
        guard_channel_take_stdio(launch->channel, ret_fds);
}

void launch_answer_exit(const struct launch *launch, uint64_t id, int wait_status)
{
    const struct guard_order order = {
        .magic = GUARD_MAGIC,
        .kind = GUARD_ORDER_EXIT,
        .id = id,
        .number = (uint32_t)wait_status,
    };

    if (launch->channel)
        guard_channel_send(launch->channel, &order);
}

/* See names.h. Every name that a look-up goes upstream for, and every one that gets an address, is counted for the
 * command's life, whether it exists or not, and their rate is bounded: what can be told by asking for names has a
 * limit. /etc/hosts of the host comes first, as it does for the host's own programs. */
#include "proxy/names.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/str.h"
#include "proxy/command.h"
#include "proxy/limits.h"
#include "proxy/proxy.h"

#include <stdlib.h>
#include <string.h>

static const unsigned char pool[2] = {
    198, 18}; /* and 19: RFC 2544, for benchmarks, never of the internet */

static unsigned bucket_of(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash % NAMES_BUCKETS;
}

void names_done(struct names *names)
{
    for (size_t i = 0; i < names->len; i++) {
        loop_look_up_cancel(names->list[i]->look_up);
        free(names->list[i]->addresses);
        free(names->list[i]);
    }
    free(names->list);
}

/* One more name may come now. */
static bool take_budget(struct names *names)
{
    uint64_t now = clock_now_ns();
    double grown = names->budget_ns ? (double)(now - names->budget_ns) * LIMIT_NAMES_PER_S /
                                          (double)CLOCK_NS_PER_S
                                    : LIMIT_NAMES_AT_ONCE;

    names->budget += grown;
    if (names->budget > LIMIT_NAMES_AT_ONCE)
        names->budget = LIMIT_NAMES_AT_ONCE;
    names->budget_ns = now;
    if (names->budget < 1)
        return false;
    names->budget -= 1;
    return true;
}

struct name *names_get(struct command *command, const struct net_host *host, const char **ret_limit)
{
    struct names *names = &command->names;
    unsigned bucket = bucket_of(host->text);
    struct name *name;

    for (name = names->buckets[bucket]; name; name = name->next_in_bucket)
        if (str_eq(name->host.text, host->text))
            return name;
    if (names->len == LIMIT_NAMES) {
        *ret_limit = "the command has looked up 4096 different names, which is the limit";
        return NULL;
    }
    if (!take_budget(names)) {
        *ret_limit =
            "the command looks up more than 32 different names a second, which is the limit";
        return NULL;
    }
    name = alloc_zero(1, sizeof *name);
    *name = (struct name){.command = command,
                          .host = *host,
                          .number = (unsigned)names->len + 1,
                          .next_in_bucket = names->buckets[bucket]};
    names->buckets[bucket] = name;
    names->list = alloc_grow(names->list, names->len, &names->cap, sizeof(struct name *));
    names->list[names->len++] = name;
    return name;
}

bool names_is_pool(const struct net_address *address)
{
    return net_address_is_v4(address) && address->bytes[12] == pool[0] &&
           (address->bytes[13] & 0xfe) == pool[1];
}

struct name *names_at(const struct names *names, const struct net_address *address)
{
    unsigned number =
        (address->bytes[13] & 1u) << 16 | (unsigned)address->bytes[14] << 8 | address->bytes[15];

    return names_is_pool(address) && number && number <= names->len ? names->list[number - 1]
                                                                    : NULL;
}

void name_address(const struct name *name, unsigned char ret[4])
{
    ret[0] = pool[0];
    ret[1] = (unsigned char)(pool[1] | (name->number >> 16 & 1));
    ret[2] = (unsigned char)(name->number >> 8);
    ret[3] = (unsigned char)name->number;
}

/* Tells all that wait now; who joins meanwhile, and who leaves, is right, too. */
static void tell(struct name *name)
{
    struct list told = {0};
    struct name_waiter *waiter;

    while ((waiter = list_first(&name->waiting, struct name_waiter, in_name))) {
        list_remove(&waiter->in_name);
        list_append(&told, &waiter->in_name);
    }
    while ((waiter = list_first(&told, struct name_waiter, in_name))) {
        list_remove(&waiter->in_name);
        waiter->on_resolved(waiter, name);
    }
}

static void set(struct name *name, enum loop_found found, const struct net_address *addresses,
                size_t count)
{
    free(TAKE_PTR(name->addresses));
    name->found = found;
    name->addresses_len = count;
    if (count) {
        name->addresses = alloc_zero(count, sizeof *addresses);
        memcpy(name->addresses, addresses, count * sizeof *addresses);
    }
    name->fresh_until_ns = clock_now_ns() + LIMIT_FRESH_NS;
}

static void on_found(void *data, enum loop_found found, const struct in6_addr *addresses,
                     size_t count)
{
    struct name *name = data;
    struct net_address copy[LOOP_ADDRESSES_MAX];

    for (size_t i = 0; i < count; i++)
        memcpy(copy[i].bytes, addresses[i].s6_addr, sizeof copy[i].bytes);
    name->look_up = NULL;
    set(name, found, copy, count);
    if (found == LOOP_NO_ANSWER)
        name->fresh_until_ns = 0; /* asked again when it is wanted again */
    tell(name);
}

/* A look-up is a message to whoever has the zone. */
static void tell_look_up(struct name *name, const struct target *asker)
{
    const struct target look_up = {
        .host = name->host, .local_port = asker->local_port, .meant = asker->meant};

    if (!name->is_told)
        facts_done(name->command, &look_up);
    name->is_told = true;
}

void name_resolve(struct name *name, const struct target *asker, struct name_waiter *waiter)
{
    struct proxy *proxy = name->command->proxy;
    struct net_address addresses[LOOP_ADDRESSES_MAX];
    size_t count;

    if (!name->look_up && clock_now_ns() >= name->fresh_until_ns) {
        count = hosts_find(&proxy->hosts, name->host.text, addresses, LOOP_ADDRESSES_MAX);
        if (count) {
            set(name, LOOP_FOUND, addresses, count);
        } else {
            proxy_refresh_resolver(proxy);
            tell_look_up(name, asker);
            name->look_up = loop_look_up_start(proxy->resolver, name->host.text, on_found, name);
        }
    }
    if (!name->look_up) {
        waiter->on_resolved(waiter, name);
        return;
    }
    list_append(&name->waiting, &waiter->in_name);
}

void name_leave(struct name_waiter *waiter)
{
    list_remove(&waiter->in_name);
}

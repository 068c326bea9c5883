/* See store.h. One node for each id that means something: reserved, a session, or a tombstone; one
 * map finds it. Sessions are in a list by last use, tombstones in one by age; those sessions that
 * have exited are also in a heap, the least recently used on top.
 *
 * So who has to go is found without looking at everybody: the newest eight begin the list; an
 * exited one that may go is the top of the heap, or there is none; and when there is none the
 * exited ones are all among the newest, so the list read from its other end gives the rest. */
#include "job/job_table.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "job/id_map.h"
#include "job/job_order.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/random.h>

/* So many ids can be reserved, sessions included: few enough that a drawn id is mostly free. */
#define RESERVED_MAX ((size_t)STORE_CAPACITY_MAX * 2)

#define IDS_DRAWN ((uint32_t)(STORE_ID_MAX - STORE_ID_MIN + 1))

struct store {
    struct store_options options;
    size_t tombstones_max;
    struct id_map ids;
    struct order_list sessions;
    struct order_list tombstones;
    struct order_heap exited;
    size_t reserved; /* ids, those of sessions included */
    int largest;     /* of them, at least STORE_ID_MIN - 1; for STORE_IDS_IN_ORDER */
};

const char *store_fate_name(enum store_fate fate)
{
    static const char *const names[] = {"exited", "signaled", "failed", "terminated", "pruned"};

    return names[fate];
}

struct store *store_new(const struct store_options *options, struct err *err)
{
    struct store *store;

    if (options->capacity > STORE_CAPACITY_MAX) {
        err_set(err, ERR_INVALID, "%zu sessions are too many, at most %d are possible",
                options->capacity, STORE_CAPACITY_MAX);
        return NULL;
    }
    store = alloc_zero(1, sizeof *store);
    store->options = *options;
    if (!store->options.capacity)
        store->options.capacity = STORE_CAPACITY_DEFAULT;
    if (!store->options.tombstone_age_ns)
        store->options.tombstone_age_ns = STORE_TOMBSTONE_AGE_NS;
    store->tombstones_max = store->options.capacity > STORE_TOMBSTONES_MIN ? store->options.capacity
                                                                           : STORE_TOMBSTONES_MIN;
    store->largest = STORE_ID_MIN - 1;
    return store;
}

void store_free(struct store *store)
{
    struct store_node *node;

    if (!store)
        return;
    for (size_t at = 0; (node = id_map_next(&store->ids, &at));)
        free(node);
    id_map_done(&store->ids);
    order_heap_done(&store->exited);
    free(store);
}

/* --- ids --- */

static int draw_number(uint32_t *ret_number, struct err *err)
{
    const uint32_t end = UINT32_MAX / IDS_DRAWN * IDS_DRAWN; /* from here on it would be uneven */
    uint32_t number;

    do {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            return err_sys(err, "asking for a random number");
    } while (number >= end);
    *ret_number = number % IDS_DRAWN;
    return 0;
}

static int draw_id(const struct store *store, int *ret_id, struct err *err)
{
    uint32_t number = 0;

    do {
        if (draw_number(&number, err))
            return -1;
    } while (id_map_find(&store->ids, STORE_ID_MIN + (int)number));
    *ret_id = STORE_ID_MIN + (int)number;
    return 0;
}

static void tombstone_forget(struct store *store, struct store_node *node)
{
    order_list_remove(&store->tombstones, node);
    id_map_remove(&store->ids, node->id);
    free(node);
}

int store_reserve(struct store *store, int *ret_id, struct err *err)
{
    struct store_node *node;
    int id = store->largest;

    if (store->reserved >= RESERVED_MAX || id == INT_MAX)
        return err_set(err, ERR_LIMIT, "no session id is free: %zu are in use", store->reserved);
    if (store->options.ids == STORE_IDS_RANDOM) {
        if (draw_id(store, &id, err))
            return -1;
    } else {
        id++;
        node = id_map_find(&store->ids, id);
        if (node)
            tombstone_forget(store, node);
        store->largest = id;
    }
    node = alloc_zero(1, sizeof *node);
    node->id = id;
    id_map_add(&store->ids, id, node);
    store->reserved++;
    *ret_id = id;
    return 0;
}

/* An id is no longer reserved. */
static void store_unreserve(struct store *store, int id)
{
    const struct store_node *node;

    store->reserved--;
    if (store->options.ids == STORE_IDS_RANDOM || id != store->largest)
        return;
    store->largest = STORE_ID_MIN - 1;
    for (size_t at = 0; (node = id_map_next(&store->ids, &at));)
        if (node->kind != STORE_TOMBSTONE && node->id != id && node->id > store->largest)
            store->largest = node->id;
}

static struct store_node *find_kind(const struct store *store, int id, enum store_kind kind)
{
    struct store_node *node = id_map_find(&store->ids, id);

    return node && node->kind == kind ? node : NULL;
}

void store_release(struct store *store, int id)
{
    struct store_node *node = find_kind(store, id, STORE_RESERVED);

    if (!node)
        return;
    store_unreserve(store, id);
    id_map_remove(&store->ids, id);
    free(node);
}

/* --- who has to go --- */

static bool is_busy(const struct store *store, const struct store_node *node)
{
    return store->options.is_busy && store->options.is_busy(store->options.data, node->session);
}

static bool is_protected(const struct store *store, const struct store_node *node)
{
    const struct store_node *newest = store->sessions.newest;

    for (int i = 0; i < STORE_PROTECTED && newest; i++, newest = newest->older)
        if (newest == node)
            return true;
    return false;
}

/* The least recently used that has exited and may go. `*ret_spared` tells whether there is one that
 * may not only because it is busy. */
static struct store_node *choose_exited(struct store *store, bool *ret_spared)
{
    AUTO(order_heap_done) struct order_heap spared = {0};
    struct store_node *chosen;
    struct store_node *back;

    for (;;) {
        chosen = order_heap_top(&store->exited);
        if (!chosen || is_protected(store, chosen) || !is_busy(store, chosen))
            break;
        order_heap_remove(&store->exited, chosen);
        order_heap_add(&spared, chosen);
    }
    if (chosen && is_protected(store, chosen)) /* all that have exited are, then */
        chosen = NULL;
    *ret_spared = spared.len > 0;
    while ((back = order_heap_top(&spared))) {
        order_heap_remove(&spared, back);
        order_heap_add(&store->exited, back);
    }
    return chosen;
}

static struct store_node *choose_any(const struct store *store)
{
    struct store_node *node = store->sessions.oldest;

    for (size_t left = store->sessions.len; left > STORE_PROTECTED; left--, node = node->newer)
        if (!is_busy(store, node))
            return node;
    return NULL;
}

static struct store_node *choose(struct store *store)
{
    bool has_spared;
    struct store_node *exited = choose_exited(store, &has_spared);

    return exited || has_spared ? exited : choose_any(store);
}

/* --- sessions --- */

/* A session becomes a tombstone. */
static void *store_bury(struct store *store, struct store_node *node, struct store_end end)
{
    void *session = node->session;

    order_heap_remove(&store->exited, node);
    order_list_remove(&store->sessions, node);
    store_unreserve(store, node->id);
    node->kind = STORE_TOMBSTONE;
    node->session = NULL;
    node->end = end;
    node->time_ns = clock_now_ns();
    order_list_add(&store->tombstones, node);
    if (store->tombstones.len > store->tombstones_max)
        tombstone_forget(store, store->tombstones.oldest);
    return session;
}

void store_insert(struct store *store, const struct store_entry *entry,
                  struct store_pushed *ret_pushed)
{
    struct store_node *node = find_kind(store, entry->id, STORE_RESERVED);
    struct store_node *leaving =
        store->sessions.len >= store->options.capacity ? choose(store) : NULL;

    assert(node);
    *ret_pushed = (struct store_pushed){0};
    if (leaving) {
        ret_pushed->id = leaving->id;
        ret_pushed->session = store_bury(store, leaving, (struct store_end){.fate = STORE_PRUNED});
    }
    node->kind = STORE_SESSION;
    node->session = entry->session;
    node->owner = entry->owner;
    node->time_ns = entry->used_ns;
    order_list_add(&store->sessions, node);
}

void *store_find(const struct store *store, int id)
{
    const struct store_node *node = find_kind(store, id, STORE_SESSION);

    return node ? node->session : NULL;
}

uint64_t store_owner(const struct store *store, int id)
{
    const struct store_node *node = find_kind(store, id, STORE_SESSION);

    return node ? node->owner : 0;
}

size_t store_count(const struct store *store)
{
    return store->sessions.len;
}

void store_touch(struct store *store, int id, uint64_t now_ns)
{
    struct store_node *node = find_kind(store, id, STORE_SESSION);
    bool has_exited = node && node->heap_at;

    if (!node)
        return;
    order_heap_remove(&store->exited, node);
    order_list_remove(&store->sessions, node);
    node->time_ns = now_ns;
    order_list_add(&store->sessions, node);
    if (has_exited)
        order_heap_add(&store->exited, node);
}

void store_mark_exited(struct store *store, int id)
{
    struct store_node *node = find_kind(store, id, STORE_SESSION);

    if (node && !node->heap_at)
        order_heap_add(&store->exited, node);
}

void *store_remove(struct store *store, int id, struct store_end end)
{
    struct store_node *node = find_kind(store, id, STORE_SESSION);

    return node ? store_bury(store, node, end) : NULL;
}

static int compare_ids(const void *left, const void *right)
{
    int a = *(const int *)left;
    int b = *(const int *)right;

    return (a > b) - (a < b);
}

int *store_list(const struct store *store, uint64_t owner, size_t *ret_len)
{
    int *ids = alloc_zero(store->sessions.len, sizeof *ids);
    size_t len = 0;

    for (const struct store_node *node = store->sessions.newest; node; node = node->older)
        if (!owner || node->owner == owner)
            ids[len++] = node->id;
    qsort(ids, len, sizeof *ids, compare_ids);
    *ret_len = len;
    return ids;
}

bool store_tombstone(const struct store *store, int id, struct store_tombstone *ret)
{
    const struct store_node *node = find_kind(store, id, STORE_TOMBSTONE);

    if (!node || clock_now_ns() - node->time_ns > store->options.tombstone_age_ns)
        return false;
    *ret = (struct store_tombstone){
        .end = node->end, .owner = node->owner, .removed_ns = node->time_ns};
    return true;
}

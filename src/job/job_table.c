/* See job_table.h. One node for each id that means something: reserved, a job, or a tombstone; one
 * map finds it. Jobs are in a list by last use, tombstones in one by age; those jobs that
 * have exited are also in a heap, the least recently used on top.
 *
 * So who has to go is found without looking at all of them: the newest eight begin the list; an
 * exited one that may go is the top of the heap, if there is one; and when there is not, the
 * exited ones are all among the newest, so the list read from its other end gives the rest. */
#include "job/job_table.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/list.h"
#include "job/id_map.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/random.h>

/* So many ids can be reserved, jobs included: few enough that a drawn id is mostly free. */
#define RESERVED_MAX ((size_t)JOB_TABLE_CAPACITY_MAX * 2)

#define IDS_DRAWN ((uint32_t)(JOB_TABLE_ID_MAX - JOB_TABLE_ID_MIN + 1))

enum job_table_kind { JOB_TABLE_RESERVED, JOB_TABLE_JOB, JOB_TABLE_TOMBSTONE };

/* One id. Later in time means: a larger time_ns, or the same and added later. */
struct job_table_node {
    int id;
    enum job_table_kind kind;
    void *job;
    uint64_t owner;
    struct job_outcome end; /* of a tombstone */
    uint64_t time_ns;       /* when the job was used last, or removed */
    uint64_t turn;          /* which addition to the list it was */
    struct list in_list;    /* the newest first */
    size_t heap_at;         /* its index in the heap + 1; 0: not there */
};

/* A list by time, the newest first. */
struct order_list {
    struct list nodes;
    size_t len;
    uint64_t turns;
};

/* A heap by time, the earliest on top. Its nodes know their index, so that any of them can be taken
 * out. */
struct order_heap {
    struct job_table_node **nodes;
    size_t len;
    size_t cap;
};

struct job_table {
    struct job_table_options options;
    size_t tombstones_max;
    struct id_map ids;
    struct order_list jobs;
    struct order_list tombstones;
    struct order_heap exited;
    size_t reserved; /* ids, those of jobs included */
    int largest;     /* of them, at least JOB_TABLE_ID_MIN - 1; for JOB_TABLE_IDS_IN_ORDER */
};

/* --- the two orders --- */

/* Costs as much as there are later nodes, of which there are few: time moves on. */
static void order_list_add(struct order_list *list, struct job_table_node *node)
{
    struct job_table_node *other;

    node->turn = ++list->turns;
    list->len++;
    list_for_each(other, &list->nodes, in_list)
        if (other->time_ns <= node->time_ns)
            break;
    list_insert_before(other ? &other->in_list : &list->nodes, &node->in_list);
}

static void order_list_remove(struct order_list *list, struct job_table_node *node)
{
    list_remove(&node->in_list);
    list->len--;
}

static void order_heap_done(struct order_heap *heap)
{
    free(heap->nodes);
    *heap = (struct order_heap){0};
}

static bool is_earlier(const struct job_table_node *a, const struct job_table_node *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->turn < b->turn;
}

static void heap_put(struct order_heap *heap, size_t at, struct job_table_node *node)
{
    heap->nodes[at] = node;
    node->heap_at = at + 1;
}

/* Puts the node at `at` or above it. */
static void heap_rise(struct order_heap *heap, size_t at, struct job_table_node *node)
{
    while (at && is_earlier(node, heap->nodes[(at - 1) / 2])) {
        heap_put(heap, at, heap->nodes[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(heap, at, node);
}

/* Puts the node at `at` or below it. */
static void heap_sink(struct order_heap *heap, size_t at, struct job_table_node *node)
{
    for (size_t child = 2 * at + 1; child < heap->len; child = 2 * at + 1) {
        if (child + 1 < heap->len && is_earlier(heap->nodes[child + 1], heap->nodes[child]))
            child++;
        if (!is_earlier(heap->nodes[child], node))
            break;
        heap_put(heap, at, heap->nodes[child]);
        at = child;
    }
    heap_put(heap, at, node);
}

static void order_heap_add(struct order_heap *heap, struct job_table_node *node)
{
    heap->nodes = alloc_grow(heap->nodes, heap->len, &heap->cap, sizeof(struct job_table_node *));
    heap->len++;
    heap_rise(heap, heap->len - 1, node);
}

static void order_heap_remove(struct order_heap *heap, struct job_table_node *node)
{
    size_t at = node->heap_at - 1;
    struct job_table_node *last;

    if (!node->heap_at)
        return;
    node->heap_at = 0;
    last = heap->nodes[--heap->len];
    if (last == node)
        return;
    heap_sink(heap, at, last);
    heap_rise(heap, last->heap_at - 1, last);
}

static struct job_table_node *order_heap_top(const struct order_heap *heap)
{
    return heap->len ? heap->nodes[0] : NULL;
}

/* --- life --- */

const char *job_fate_name(enum job_fate fate)
{
    static const char *const names[] = {"exited", "signaled", "failed", "terminated", "pruned"};

    return names[fate];
}

struct job_table *job_table_new(const struct job_table_options *options, struct err *err)
{
    struct job_table *table;

    if (options->capacity > JOB_TABLE_CAPACITY_MAX) {
        err_set(err, ERR_INVALID, "%zu sessions are too many, at most %d are possible",
                options->capacity, JOB_TABLE_CAPACITY_MAX);
        return NULL;
    }
    table = alloc_zero(1, sizeof *table);
    table->options = *options;
    if (!table->options.capacity)
        table->options.capacity = JOB_TABLE_CAPACITY_DEFAULT;
    if (!table->options.tombstone_age_ns)
        table->options.tombstone_age_ns = JOB_TABLE_TOMBSTONE_AGE_NS;
    table->tombstones_max = table->options.capacity > JOB_TABLE_TOMBSTONES_MIN
                                ? table->options.capacity
                                : JOB_TABLE_TOMBSTONES_MIN;
    table->largest = JOB_TABLE_ID_MIN - 1;
    return table;
}

void job_table_free(struct job_table *table)
{
    struct job_table_node *node;

    if (!table)
        return;
    for (size_t at = 0; (node = id_map_next(&table->ids, &at));)
        free(node);
    id_map_done(&table->ids);
    order_heap_done(&table->exited);
    free(table);
}

/* --- ids --- */

static int draw_id(const struct job_table *table, int *ret_id, struct err *err)
{
    const uint32_t end = UINT32_MAX / IDS_DRAWN * IDS_DRAWN; /* from here on it would be uneven */
    uint32_t number;
    int id;

    do {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            return err_sys(err, "asking for a random number");
        id = JOB_TABLE_ID_MIN + (int)(number % IDS_DRAWN);
    } while (number >= end || id_map_find(&table->ids, id));
    *ret_id = id;
    return 0;
}

static void tombstone_forget(struct job_table *table, struct job_table_node *node)
{
    order_list_remove(&table->tombstones, node);
    id_map_remove(&table->ids, node->id);
    free(node);
}

int job_table_reserve(struct job_table *table, int *ret_id, struct err *err)
{
    struct job_table_node *node;
    int id = table->largest;

    if (table->reserved >= RESERVED_MAX || id == INT_MAX)
        return err_set(err, ERR_LIMIT, "no session id is free: %zu are in use", table->reserved);
    if (table->options.ids == JOB_TABLE_IDS_RANDOM) {
        if (draw_id(table, &id, err))
            return -1;
    } else {
        id++;
        node = id_map_find(&table->ids, id);
        if (node)
            tombstone_forget(table, node);
        table->largest = id;
    }
    node = alloc_zero(1, sizeof *node);
    node->id = id;
    id_map_add(&table->ids, id, node);
    table->reserved++;
    *ret_id = id;
    return 0;
}

/* An id is no longer reserved. */
static void table_unreserve(struct job_table *table, int id)
{
    const struct job_table_node *node;

    table->reserved--;
    if (table->options.ids == JOB_TABLE_IDS_RANDOM || id != table->largest)
        return;
    table->largest = JOB_TABLE_ID_MIN - 1;
    for (size_t at = 0; (node = id_map_next(&table->ids, &at));)
        if (node->kind != JOB_TABLE_TOMBSTONE && node->id != id && node->id > table->largest)
            table->largest = node->id;
}

static struct job_table_node *find_kind(const struct job_table *table, int id,
                                        enum job_table_kind kind)
{
    struct job_table_node *node = id_map_find(&table->ids, id);

    return node && node->kind == kind ? node : NULL;
}

void job_table_release(struct job_table *table, int id)
{
    struct job_table_node *node = find_kind(table, id, JOB_TABLE_RESERVED);

    if (!node)
        return;
    table_unreserve(table, id);
    id_map_remove(&table->ids, id);
    free(node);
}

/* --- who has to go --- */

static bool is_busy(const struct job_table *table, const struct job_table_node *node)
{
    return table->options.is_busy && table->options.is_busy(table->options.data, node->job);
}

static bool is_protected(const struct job_table *table, const struct job_table_node *node)
{
    const struct job_table_node *newest;
    int rank = 0;

    list_for_each(newest, &table->jobs.nodes, in_list)
        if (newest == node || ++rank == JOB_TABLE_PROTECTED)
            return newest == node;
    return false;
}

/* The least recently used that has exited and may go. `*ret_spared` tells whether there is one that
 * may not only because it is busy. */
static struct job_table_node *choose_exited(struct job_table *table, bool *ret_spared)
{
    AUTO(order_heap_done) struct order_heap spared = {0};
    struct job_table_node *chosen;
    struct job_table_node *back;

    for (;;) {
        chosen = order_heap_top(&table->exited);
        if (!chosen || is_protected(table, chosen) || !is_busy(table, chosen))
            break;
        order_heap_remove(&table->exited, chosen);
        order_heap_add(&spared, chosen);
    }
    if (chosen && is_protected(table, chosen)) /* all that have exited are, then */
        chosen = NULL;
    *ret_spared = spared.len > 0;
    while ((back = order_heap_top(&spared))) {
        order_heap_remove(&spared, back);
        order_heap_add(&table->exited, back);
    }
    return chosen;
}

static struct job_table_node *choose_any(const struct job_table *table)
{
    struct list *link = list_before(&table->jobs.nodes, &table->jobs.nodes);

    for (size_t left = table->jobs.len; left > JOB_TABLE_PROTECTED; left--) {
        struct job_table_node *node = container_of(link, struct job_table_node, in_list);

        if (!is_busy(table, node))
            return node;
        link = list_before(&table->jobs.nodes, link);
    }
    return NULL;
}

/* --- jobs --- */

/* A job becomes a tombstone. */
static void *table_bury(struct job_table *table, struct job_table_node *node,
                        struct job_outcome end)
{
    void *job = node->job;

    order_heap_remove(&table->exited, node);
    order_list_remove(&table->jobs, node);
    table_unreserve(table, node->id);
    node->kind = JOB_TABLE_TOMBSTONE;
    node->job = NULL;
    node->end = end;
    node->time_ns = clock_now_ns();
    order_list_add(&table->tombstones, node);
    if (table->tombstones.len > table->tombstones_max)
        tombstone_forget(
            table, container_of(table->tombstones.nodes.previous, struct job_table_node, in_list));
    return job;
}

void job_table_insert(struct job_table *table, const struct job_table_entry *entry,
                      struct job_table_pushed *ret_pushed)
{
    struct job_table_node *node = find_kind(table, entry->id, JOB_TABLE_RESERVED);
    struct job_table_node *leaving = NULL;
    bool has_spared = false;

    assert(node);
    *ret_pushed = (struct job_table_pushed){0};
    if (table->jobs.len >= table->options.capacity) {
        leaving = choose_exited(table, &has_spared);
        if (!leaving && !has_spared)
            leaving = choose_any(table);
    }
    if (leaving) {
        ret_pushed->id = leaving->id;
        ret_pushed->job = table_bury(table, leaving, (struct job_outcome){.fate = JOB_FATE_PRUNED});
    }
    node->kind = JOB_TABLE_JOB;
    node->job = entry->job;
    node->owner = entry->owner;
    node->time_ns = entry->used_ns;
    order_list_add(&table->jobs, node);
}

void *job_table_find(const struct job_table *table, int id)
{
    const struct job_table_node *node = find_kind(table, id, JOB_TABLE_JOB);

    return node ? node->job : NULL;
}

size_t job_table_count(const struct job_table *table)
{
    return table->jobs.len;
}

void job_table_touch(struct job_table *table, int id, uint64_t now_ns)
{
    struct job_table_node *node = find_kind(table, id, JOB_TABLE_JOB);
    bool has_exited = node && node->heap_at;

    if (!node)
        return;
    order_heap_remove(&table->exited, node);
    order_list_remove(&table->jobs, node);
    node->time_ns = now_ns;
    order_list_add(&table->jobs, node);
    if (has_exited)
        order_heap_add(&table->exited, node);
}

void job_table_mark_exited(struct job_table *table, int id)
{
    struct job_table_node *node = find_kind(table, id, JOB_TABLE_JOB);

    if (node && !node->heap_at)
        order_heap_add(&table->exited, node);
}

void *job_table_remove(struct job_table *table, int id, struct job_outcome end)
{
    struct job_table_node *node = find_kind(table, id, JOB_TABLE_JOB);

    return node ? table_bury(table, node, end) : NULL;
}

static int compare_ids(const void *left, const void *right)
{
    int a = *(const int *)left;
    int b = *(const int *)right;

    return (a > b) - (a < b);
}

int *job_table_list(const struct job_table *table, uint64_t owner, size_t *ret_len)
{
    int *ids = alloc_zero(table->jobs.len, sizeof *ids);
    const struct job_table_node *node;
    size_t len = 0;

    list_for_each(node, &table->jobs.nodes, in_list)
        if (!owner || node->owner == owner)
            ids[len++] = node->id;
    qsort(ids, len, sizeof *ids, compare_ids);
    *ret_len = len;
    return ids;
}

bool job_table_tombstone(const struct job_table *table, int id, struct job_table_tombstone *ret)
{
    const struct job_table_node *node = find_kind(table, id, JOB_TABLE_TOMBSTONE);

    if (!node || clock_now_ns() - node->time_ns > table->options.tombstone_age_ns)
        return false;
    *ret = (struct job_table_tombstone){
        .end = node->end, .owner = node->owner, .removed_ns = node->time_ns};
    return true;
}

/* See store_order.h. A list that links its nodes, and a binary heap whose nodes know their place,
 * so that any of them can be taken out. */
#include "job/job_order.h"

#include "base/alloc.h"

#include <stdlib.h>

void order_list_add(struct order_list *list, struct job_table_node *node)
{
    struct job_table_node *newer = NULL;
    struct job_table_node *older = list->newest;

    while (older && older->time_ns > node->time_ns) {
        newer = older;
        older = older->older;
    }
    node->turn = ++list->turns;
    node->newer = newer;
    node->older = older;
    *(newer ? &newer->older : &list->newest) = node;
    *(older ? &older->newer : &list->oldest) = node;
    list->len++;
}

void order_list_remove(struct order_list *list, struct job_table_node *node)
{
    *(node->newer ? &node->newer->older : &list->newest) = node->older;
    *(node->older ? &node->older->newer : &list->oldest) = node->newer;
    list->len--;
}

void order_heap_done(struct order_heap *heap)
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

void order_heap_add(struct order_heap *heap, struct job_table_node *node)
{
    heap->nodes = alloc_grow(heap->nodes, heap->len, &heap->cap, sizeof(struct job_table_node *));
    heap->len++;
    heap_rise(heap, heap->len - 1, node);
}

void order_heap_remove(struct order_heap *heap, struct job_table_node *node)
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

struct job_table_node *order_heap_top(const struct order_heap *heap)
{
    return heap->len ? heap->nodes[0] : NULL;
}

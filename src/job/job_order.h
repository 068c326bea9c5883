/* Entries of a store, and the two orders that it keeps them in. Internal to store.h. */
#pragma once

#include "job/job_table.h"

enum store_kind { STORE_RESERVED, STORE_SESSION, STORE_TOMBSTONE };

/* One id. Later in time means: a larger time_ns, or the same and added later. */
struct store_node {
    int id;
    enum store_kind kind;
    void *session;
    uint64_t owner;
    struct store_end end; /* of a tombstone */
    uint64_t time_ns;     /* when the session was used last, or removed */
    uint64_t turn;        /* which addition to the list it was */
    struct store_node *newer;
    struct store_node *older;
    size_t heap_at; /* its index in the heap + 1; 0: not there */
};

/* A list by time. */
struct order_list {
    struct store_node *newest;
    struct store_node *oldest;
    size_t len;
    uint64_t turns;
};

/* Costs as much as there are later nodes, of which there are few: time moves on. */
void order_list_add(struct order_list *list, struct store_node *node);
void order_list_remove(struct order_list *list, struct store_node *node);

/* A heap by time, the earliest on top. */
struct order_heap {
    struct store_node **nodes;
    size_t len;
    size_t cap;
};

void order_heap_done(struct order_heap *heap); /* the nodes are the caller's */
void order_heap_add(struct order_heap *heap, struct store_node *node);
void order_heap_remove(struct order_heap *heap, struct store_node *node); /* if it is there */
struct store_node *order_heap_top(const struct order_heap *heap);         /* NULL: empty */

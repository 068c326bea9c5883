/* Entries of a table, and the two orders that it keeps them in. Internal to job_table.h. */
#pragma once

#include "job/job_table.h"

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
    struct job_table_node *newer;
    struct job_table_node *older;
    size_t heap_at; /* its index in the heap + 1; 0: not there */
};

/* A list by time. */
struct order_list {
    struct job_table_node *newest;
    struct job_table_node *oldest;
    size_t len;
    uint64_t turns;
};

/* Costs as much as there are later nodes, of which there are few: time moves on. */
void order_list_add(struct order_list *list, struct job_table_node *node);
void order_list_remove(struct order_list *list, struct job_table_node *node);

/* A heap by time, the earliest on top. */
struct order_heap {
    struct job_table_node **nodes;
    size_t len;
    size_t cap;
};

void order_heap_done(struct order_heap *heap); /* the nodes are the caller's */
void order_heap_add(struct order_heap *heap, struct job_table_node *node);
void order_heap_remove(struct order_heap *heap, struct job_table_node *node); /* if it is there */
struct job_table_node *order_heap_top(const struct order_heap *heap);         /* NULL: empty */

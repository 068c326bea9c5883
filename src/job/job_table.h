/* Which jobs there are: ids, owners, the order of use, who has to go when there are too many,
 * and for a while how those that are gone ended.
 *
 *     job_table_reserve()   an id, at once; job_table_release() on every way on which no job comes
 *     job_table_insert()    the job, under its reserved id; may push out another one
 *       job_table_touch()          it was used
 *       job_table_mark_exited()    its process has ended
 *     job_table_remove()    the id is free again and answers with a tombstone
 *
 * The table knows nothing of processes: a job is a pointer that it hands back, and it kills and
 * frees none. Nothing here costs more than O(log n), but for job_table_list() and ids in order.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job_table;

/* docs/model-calls.md */
#define JOB_TABLE_CAPACITY_DEFAULT 64
#define JOB_TABLE_CAPACITY_MAX 10000
#define JOB_TABLE_PROTECTED 8
#define JOB_TABLE_ID_MIN 1000
#define JOB_TABLE_ID_MAX 99999

#define JOB_TABLE_TOMBSTONES_MIN 256 /* kept; as many as the capacity when that is more */
#define JOB_TABLE_TOMBSTONE_AGE_NS UINT64_C(3600000000000) /* 1 h */

enum job_table_ids {
    JOB_TABLE_IDS_RANDOM,   /* uniform in JOB_TABLE_ID_MIN to JOB_TABLE_ID_MAX */
    JOB_TABLE_IDS_IN_ORDER, /* for tests: from JOB_TABLE_ID_MIN on, behind the largest */
};

struct job_table_options {
    size_t capacity; /* jobs, 0: the default; see job_table_insert() */
    enum job_table_ids ids;
    uint64_t tombstone_age_ns; /* 0: the default */
    /* A call on this job is in progress, so it must not be pushed out. NULL: never. */
    bool (*is_busy)(void *data, void *job);
    void *data;
};

/* ERR_INVALID for a capacity beyond JOB_TABLE_CAPACITY_MAX. */
struct job_table *job_table_new(const struct job_table_options *options, struct err *err);
void job_table_free(struct job_table *table); /* jobs still in it are the caller's */

/* --- ids --- */

/* ERR_LIMIT when too many are reserved already. An id that has a tombstone is not drawn. */
int job_table_reserve(struct job_table *table, int *ret_id, struct err *err);

/* Gives back an id that has no job; any other is left alone. */
void job_table_release(struct job_table *table, int id);

/* --- jobs --- */

struct job_table_pushed {
    void *job; /* NULL: there was room */
    int id;
};

struct job_table_entry {
    int id; /* reserved, without a job */
    void *job;
    uint64_t owner;   /* who started it; 0: unknown */
    uint64_t used_ns; /* when it was used last: its start */
};

/* Puts a job under its id. When there were as many as the capacity, one has to go first: it is
 * removed, has a tombstone JOB_FATE_PRUNED, and is the caller's to kill. Of those that are neither
 * busy nor among the JOB_TABLE_PROTECTED used last it is the least recently used that has exited;
 * if there is no such one, the least recently used, but not if an exited one was only spared for
 * being busy.
 * When none can go the table grows beyond its capacity. */
void job_table_insert(struct job_table *table, const struct job_table_entry *entry,
                      struct job_table_pushed *ret_pushed);

void *job_table_find(const struct job_table *table, int id); /* NULL: no job under this id */
size_t job_table_count(const struct job_table *table);       /* jobs */

void job_table_touch(struct job_table *table, int id, uint64_t now_ns);
void job_table_mark_exited(struct job_table *table, int id);

/* Ids of all jobs (owner 0), or of one owner's, ascending; `*ret_len` of them. The array is the
 * caller's (free()), and stays as it is when the table changes. */
int *job_table_list(const struct job_table *table, uint64_t owner, size_t *ret_len);

/* --- ends --- */

enum job_fate {
    JOB_FATE_EXITED,     /* `number` is the exit code */
    JOB_FATE_SIGNALED,   /* `number` is the signal */
    JOB_FATE_FAILED,     /* it failed to start, or for another reason */
    JOB_FATE_TERMINATED, /* on request */
    JOB_FATE_PRUNED,     /* pushed out by another one */
};

const char *job_fate_name(enum job_fate fate); /* "exited", "signaled", ... */

struct job_outcome {
    enum job_fate fate;
    int number;
};

struct job_table_tombstone {
    struct job_outcome end;
    uint64_t owner;
    uint64_t removed_ns; /* clock_now_ns() */
};

/* Takes a job out and frees its id; NULL when there is no such job. */
void *job_table_remove(struct job_table *table, int id, struct job_outcome end);

/* How the job that had this id ended. false when that is not known: there was none, it is still
 * there, the id is in use again, or it was too long ago. */
bool job_table_tombstone(const struct job_table *table, int id, struct job_table_tombstone *ret);

/* Which sessions there are: ids, owners, the order of use, who has to go when there are too many,
 * and for a while how those that are gone ended (spec/unified-exec.md 2).
 *
 *     store_reserve()   an id, at once; store_release() on every way on which no session comes
 *     store_insert()    the session, under its reserved id; may push out another one
 *       store_touch()          it was used
 *       store_mark_exited()    its process has ended
 *     store_remove()    the id is free again and answers with a tombstone
 *
 * The store knows nothing of processes: a session is a pointer that it hands back, and it kills and
 * frees none. Nothing here costs more than O(log n), but for store_list() and ids in order.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/* spec/unified-exec.md 1 and 2 */
#define STORE_CAPACITY_DEFAULT 64
#define STORE_CAPACITY_MAX 10000
#define STORE_PROTECTED 8
#define STORE_ID_MIN 1000
#define STORE_ID_MAX 99999

#define STORE_TOMBSTONES_MIN 256 /* kept; as many as the capacity when that is more */
#define STORE_TOMBSTONE_AGE_NS UINT64_C(3600000000000) /* 1 h */

enum store_ids {
    STORE_IDS_RANDOM,   /* uniform in STORE_ID_MIN to STORE_ID_MAX */
    STORE_IDS_IN_ORDER, /* for tests: one more than the largest reserved, at least STORE_ID_MIN */
};

struct store_options {
    size_t capacity; /* sessions, 0: the default; see store_insert() */
    enum store_ids ids;
    uint64_t tombstone_age_ns; /* 0: the default */
    /* A call on this session is in progress, so it must not be pushed out. NULL: never. */
    bool (*is_busy)(void *data, void *session);
    void *data;
};

/* ERR_INVALID for a capacity beyond STORE_CAPACITY_MAX. */
struct store *store_new(const struct store_options *options, struct err *err);
void store_free(struct store *store); /* sessions still in it are the caller's */

/* --- ids --- */

/* ERR_LIMIT when too many are reserved already. An id that has a tombstone is not drawn. */
int store_reserve(struct store *store, int *ret_id, struct err *err);

/* Gives back an id that has no session; any other is left alone. */
void store_release(struct store *store, int id);

/* --- sessions --- */

struct store_pushed {
    void *session; /* NULL: nobody had to go */
    int id;
};

struct store_entry {
    int id; /* reserved, without a session */
    void *session;
    uint64_t owner;   /* whoever started it; 0: nobody */
    uint64_t used_ns; /* when it was used last: its start */
};

/* Puts a session under its id. When there were as many as the capacity, one has to go first: it is
 * removed, has a tombstone STORE_PRUNED, and is the caller's to kill. Of those that are neither
 * busy nor among the STORE_PROTECTED used last it is the least recently used that has exited; if
 * there is none, the least recently used, but not if an exited one was only spared for being busy.
 * When nobody can go the store grows beyond its capacity. */
void store_insert(struct store *store, const struct store_entry *entry,
                  struct store_pushed *ret_pushed);

void *store_find(const struct store *store, int id);     /* NULL: no session under this id */
uint64_t store_owner(const struct store *store, int id); /* 0 without a session */
size_t store_count(const struct store *store);           /* sessions */

void store_touch(struct store *store, int id, uint64_t now_ns);
void store_mark_exited(struct store *store, int id);

/* Ids of all sessions (owner 0), or of one owner's, ascending; `*ret_len` of them. The array is the
 * caller's (free()), and stays as it is when the store changes. */
int *store_list(const struct store *store, uint64_t owner, size_t *ret_len);

/* --- ends --- */

enum store_fate {
    STORE_EXITED,     /* `number` is the exit code */
    STORE_SIGNALED,   /* `number` is the signal */
    STORE_FAILED,     /* it failed to start, or for another reason */
    STORE_TERMINATED, /* on request */
    STORE_PRUNED,     /* pushed out by another one */
};

const char *store_fate_name(enum store_fate fate); /* "exited", "signaled", ... */

struct store_end {
    enum store_fate fate;
    int number;
};

struct store_tombstone {
    struct store_end end;
    uint64_t owner;
    uint64_t removed_ns; /* clock_now_ns() */
};

/* Takes a session out and frees its id; NULL when there is none. */
void *store_remove(struct store *store, int id, struct store_end end);

/* How the session that had this id ended. false when that is not known: there was none, it is still
 * there, the id is in use again, or it was too long ago. */
bool store_tombstone(const struct store *store, int id, struct store_tombstone *ret);

/* Which sessions there are: ids, owners, the order of use, who has to go when there are too many,
 * and for a while how those that are gone ended (spec/unified-exec.md 2).
 *
 *     store_reserve()   an id, at once; store_release() on every way on which no session comes
 *       store_insert()  the session, under its reserved id; may push out another one
 *       store_touch()   it was used; store_mark_exited() its process has ended
 *     store_remove()    the id is free again and answers with a tombstone
 *
 * The store knows nothing of processes: a session is a pointer that it hands back. It kills and
 * frees nothing. Everything here costs O(1), store_list() and a deterministic id apart.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/* spec/unified-exec.md 1, 2 */
#define STORE_CAPACITY_DEFAULT 64
#define STORE_CAPACITY_MAX 10000
#define STORE_PROTECTED 8
#define STORE_ID_MIN 1000
#define STORE_ID_MAX 99999

#define STORE_TOMBSTONES_MIN 256                       /* or the capacity, when that is larger */
#define STORE_TOMBSTONE_AGE_NS UINT64_C(3600000000000) /* 1 h */

enum store_ids {
    STORE_IDS_RANDOM,
    STORE_IDS_IN_ORDER, /* for tests: one more than the largest reserved, at least STORE_ID_MIN */
};

struct store_options {
    size_t capacity; /* sessions; 0: the default. A soft limit, see store_insert() */
    enum store_ids ids;
    uint64_t tombstone_age_ns;                  /* 0: the default */
    bool (*is_busy)(void *data, void *session); /* a call is in progress: not to be pushed out;
                                                   NULL: never */
    void *data;
};

/* NULL when the capacity is beyond STORE_CAPACITY_MAX. */
struct store *store_new(const struct store_options *options, struct err *err);
void store_free(struct store *store); /* the sessions are the caller's: store_list() them first */

/* --- ids --- */

/* ERR_LIMIT when no id is free. An id with a tombstone is not given out at random. */
int store_reserve(struct store *store, int *ret_id, struct err *err);

/* Gives back an id that has no session; any other is left alone. */
void store_release(struct store *store, int id);

/* --- sessions --- */

struct store_pushed {
    void *session; /* NULL: nobody had to go */
    int id;
};

/* Puts a session under its reserved id, used last at `used_ns`. When the store was at its capacity,
 * one is pushed out first, already removed when this returns, with a tombstone STORE_PRUNED; it is
 * the caller's to kill. Who: of those that are neither among the STORE_PROTECTED used last nor busy
 * the least recently used that has exited; else, unless an exited one was only spared for being
 * busy, the least recently used. When there is none the store grows beyond its capacity. */
void store_insert(struct store *store, int id, void *session, uint64_t owner, uint64_t used_ns,
                  struct store_pushed *ret_pushed);

void *store_find(const struct store *store, int id);     /* NULL: no session under this id */
uint64_t store_owner(const struct store *store, int id); /* 0 without a session */
size_t store_count(const struct store *store);           /* sessions */

void store_touch(struct store *store, int id, uint64_t now_ns); /* used; time does not go back */
void store_mark_exited(struct store *store, int id);

enum store_fate {
    STORE_EXITED,     /* `code` */
    STORE_SIGNALED,   /* `code` is the signal */
    STORE_FAILED,     /* it could not be started, or it failed for another reason */
    STORE_TERMINATED, /* on request */
    STORE_PRUNED,     /* pushed out by newer sessions */
};

const char *store_fate_name(enum store_fate fate); /* "exited", "signaled", ... */

/* What is left of a session that is gone. */
struct tombstone {
    enum store_fate fate;
    int code;
    uint64_t owner;
    uint64_t removed_ns; /* clock_now_ns() */
};

/* Takes the session out and frees its id; returns it (NULL: there was none). `fate` and `code` are
 * what store_tombstone() will tell. */
void *store_remove(struct store *store, int id, enum store_fate fate, int code);

/* How a session ended that was under this id lately. false when that is not known: there was none,
 * it is there still, its id is in use again, or it was too long ago. */
bool store_tombstone(struct store *store, int id, struct tombstone *ret);

/* Ids of all sessions (owner 0), or of one owner's, ascending; `*ret_len` of them. The array is the
 * caller's (free()); the store may change meanwhile. */
int *store_list(const struct store *store, uint64_t owner, size_t *ret_len);

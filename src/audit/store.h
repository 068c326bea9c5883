/* The audit log's database: an SQLite file to which records are moved from the tail (tail.h), and
 * from which the oldest are pruned. Only the program `cordon-log` links this.
 *
 *     PRAGMA application_id = 0x436f7264 ("Cord"), user_version = 1
 *     records  (seq INTEGER PRIMARY KEY, time INTEGER, event TEXT, session TEXT, body TEXT,
 *               hash BLOB)                                    as in record.h
 *     anchor   (id INTEGER PRIMARY KEY, seq INTEGER, hash BLOB)     one row, id 1: the last record
 *                                                    that was pruned, which the first one follows
 *
 * There is no index: whatever is in the file besides the records and the anchor says nothing about
 * them, and a change to either breaks the chain. */
#pragma once

#include "audit/record.h"

#include <stdbool.h>

#define AUDIT_STORE_NAME "audit.db"

struct audit_store;
struct audit_tail;

enum audit_store_mode { AUDIT_STORE_READ, AUDIT_STORE_WRITE };

/* What is kept. */
struct audit_limits {
    uint64_t max_bytes;
    uint64_t max_age_ns;
};

#define AUDIT_KEEP_BYTES (UINT64_C(64) << 20)                           /* 64 MiB */
#define AUDIT_KEEP_NS (UINT64_C(90) * 24 * 3600 * UINT64_C(1000000000)) /* 90 days */

/* The database in `dir`. For reading, `*ret` is NULL when there is none yet; for writing it is
 * made. Waits up to two seconds for others who have it open. Who reads has what was there then, and nobody
 * waits for him. */
int audit_store_open(const char *dir, enum audit_store_mode mode, struct audit_store **ret,
                     struct err *err);
void audit_store_close(struct audit_store *store);

/* The last record, or the anchor when there is none. */
int audit_store_head(struct audit_store *store, struct audit_link *ret, struct err *err);

/* Adds the tail's records that are not there yet, safe against a crash on return. ERR_INVALID, and
 * nothing changed, when the tail does not continue the database. */
int audit_store_import(struct audit_store *store, const struct audit_tail *tail, struct err *err);

/* Where the tail's records begin that are not in a database which ends with `head`: 0, or more
 * after a crash between importing and dropping. ERR_INVALID when the two do not fit together. */
int audit_store_find_new(const struct audit_tail *tail, const struct audit_link *head, size_t *ret,
                         struct err *err);

/* Takes the oldest records away until the limits are kept. */
int audit_store_prune(struct audit_store *store, const struct audit_limits *limits,
                      uint64_t wall_now_ns, struct err *err);

/* Calls back for every record in order, the texts borrowed for the call, until it fails. A record
 * whose columns are not what they should be fails with ERR_INVALID. */
int audit_store_each(struct audit_store *store,
                     int (*each)(void *data, const struct audit_record *record, struct err *err),
                     void *data, struct err *err);

/* The chain from the anchor to the last record, which is then `*ret_head`, and the structure of the
 * file. ERR_INVALID says what is wrong. */
int audit_store_verify(struct audit_store *store, struct audit_link *ret_head,
                       uint64_t *ret_records, struct err *err);

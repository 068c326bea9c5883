/* The newest end of the audit log: a file of text to which every cordon appends, until its records
 * are moved to the database (store.h). It is what makes a record cheap: one lock and two writes.
 *
 *     cordon-audit 1 base SEQ HASH head SEQ HASH size SIZE\n      AUDIT_TAIL_HEAD bytes
 *     a line per record (record.h)
 *
 * `base` is the record that the first line follows, `head` the last record, `size` the length of
 * the file that has it. Numbers have 20 digits here. So that records which are cut off or taken
 * away are missed, the database and this file each say where the other has to fit. */
#pragma once

#include "audit/record.h"

#include <sys/types.h>

struct buf;

#define AUDIT_TAIL_NAME "audit.tail"

enum {
    AUDIT_TAIL_HEAD = 223,
    AUDIT_TAIL_TIDY = 256 * 1024,      /* bytes from which on its records should be moved */
    AUDIT_TAIL_MAX = 16 * 1024 * 1024, /* bytes beyond which nothing is appended */
};

struct audit_tail_head {
    struct audit_link base;
    struct audit_link head;
    uint64_t size;
};

/* Everything that a file holds, as far as it is sound. */
struct audit_tail {
    struct audit_tail_head head; /* `head.head` and `head.size` count what came behind, too */
    struct audit_record *items;  /* the texts point into `text` */
    size_t len;
    size_t cap;
    char *text;
};

/* The records of one append. */
struct audit_batch {
    struct audit_record *items; /* `link` is filled in */
    size_t len;
    uint64_t begin; /* filled in: the size of the file before and after */
    uint64_t end;
};

/* The lock that is held while anything is done with a file of the log: flock(2) on a file of its own in `dir`,
 * which no command can open. A descriptor, as long as which it lasts. ERR_LIMIT when others keep it for
 * `wait_ns`. On a read-only file system nothing has to be locked: then it is one of /dev/null. */
int audit_lock(const char *dir, const char *name, uint64_t wait_ns, struct err *err);

/* Appends the records, chained, to the tail in `dir`, which is there; makes the file when it is
 * not. Waits at most `wait_ns` for others who append. All of them or none. ERR_LIMIT when the tail
 * is full, ERR_INVALID when it is damaged. */
int audit_tail_append(const char *dir, struct audit_batch *batch, uint64_t wait_ns,
                      struct err *err);

/* Reads and checks all of it: the chain from `base` to `head`. A file that is not there is an empty
 * tail whose base is all zeros. On failure (ERR_INVALID says which record is wrong) `ret` holds the
 * records before the first wrong one. audit_tail_done() in any case. */
int audit_tail_read(const char *dir, struct audit_tail *ret, struct err *err);
void audit_tail_done(struct audit_tail *tail);

/* Takes away the records up to `until`, one that audit_tail_read() gave, now that they are kept
 * elsewhere; what was appended since stays. Nothing to do when another process has done it. */
int audit_tail_drop(const char *dir, const struct audit_link *until, uint64_t wait_ns,
                    struct err *err);

/* Verifying; see store.h. The chain says that the records are what was written; SQLite's own check
 * says that they are where it looks for them, so that no query can be answered otherwise than by
 * reading all of them in order. */
#include "audit/store_part.h"

#include <inttypes.h>
#include <string.h>

/* --- verifying --- */

struct walk {
    struct audit_store *store;
    struct audit_link last;
    uint64_t count;
};

static int check_record(void *data, const struct audit_record *record, struct err *err)
{
    struct walk *walk = data;

    if (record->link.seq != walk->last.seq + 1)
        return err_set(err, ERR_INVALID,
                       "%s: record %" PRIu64 " is followed by record %" PRIu64
                       ": records between were taken away",
                       walk->store->path, walk->last.seq, record->link.seq);
    if (!audit_record_follows(record, &walk->last))
        return err_set(err, ERR_INVALID, "%s: record %" PRIu64 " was changed, or the one before it",
                       walk->store->path, record->link.seq);
    walk->last = record->link;
    walk->count++;
    return 0;
}

static int check_structure(struct audit_store *store, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *statement = store_query(store, "PRAGMA integrity_check(1)", err);
    const char *said;

    if (!statement || store_step(store, statement, err) < 0)
        return -1;
    said = (const char *)sqlite3_column_text(statement, 0);
    if (said && strcmp(said, "ok") == 0)
        return 0;
    return err_set(err, ERR_INVALID, "%s is damaged: %s", store->path, said ? said : "no answer");
}

int audit_store_verify(struct audit_store *store, struct audit_link *ret_head,
                       uint64_t *ret_records, struct err *err)
{
    struct walk walk = {.store = store};

    if (store_anchor(store, &walk.last, err) || audit_store_each(store, check_record, &walk, err) ||
        check_structure(store, err))
        return -1;
    *ret_head = walk.last;
    *ret_records = walk.count;
    return 0;
}

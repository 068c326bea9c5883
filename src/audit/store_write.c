/* Moving records in and pruning old ones; see store.h. Both are one transaction each, and both keep
 * the chain whole: what comes in has to follow what is there, and what goes leaves its last hash
 * behind as the anchor. */
#include "audit/store_part.h"

#include "audit/tail.h"

#include <inttypes.h>

enum { DELETE_BATCH = 256 };

/* --- writing --- */

static int insert(struct audit_store *store, sqlite3_stmt *statement,
                  const struct audit_record *record, struct err *err)
{
    const struct audit_text texts[] = {record->event, record->session, record->body};

    sqlite3_reset(statement);
    sqlite3_bind_int64(statement, 1, (int64_t)record->link.seq);
    sqlite3_bind_int64(statement, 2, (int64_t)record->time_ns);
    for (int i = 0; i < 3; i++)
        sqlite3_bind_text(statement, 3 + i, texts[i].at, (int)texts[i].len, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 6, record->link.hash, AUDIT_HASH_SIZE, SQLITE_STATIC);
    return store_step(store, statement, err);
}

int audit_store_find_new(const struct audit_tail *tail, const struct audit_link *head, size_t *ret,
                         struct err *err)
{
    size_t at = 0;
    const struct audit_link *link = &tail->head.base;

    while (!audit_link_eq(link, head) && at < tail->len)
        link = &tail->items[at++].link;
    if (!audit_link_eq(link, head))
        return err_set(err, ERR_INVALID,
                       AUDIT_TAIL_NAME " continues record %" PRIu64 ", but " AUDIT_STORE_NAME
                                       " ends with record %" PRIu64
                                       ": records between were changed or taken away",
                       tail->head.base.seq, head->seq);
    *ret = at;
    return 0;
}

static int import(struct audit_store *store, const struct audit_tail *tail, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *statement =
        store_query(store, "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", err);
    struct audit_link head;
    size_t at;

    if (!statement || audit_store_head(store, &head, err) ||
        audit_store_find_new(tail, &head, &at, err))
        return -1;
    for (; at < tail->len; at++)
        if (insert(store, statement, &tail->items[at], err))
            return -1;
    return 0;
}

static int finish(struct audit_store *store, int failed, struct err *err)
{
    struct err ignored;

    if (!failed && store_execute(store, "COMMIT", err) == 0)
        return 0;
    (void)store_execute(store, "ROLLBACK", &ignored);
    return -1;
}

int audit_store_import(struct audit_store *store, const struct audit_tail *tail, struct err *err)
{
    if (store_execute(store, "BEGIN IMMEDIATE", err))
        return -1;
    return finish(store, import(store, tail, err), err);
}

/* --- pruning --- */

static int used_bytes(struct audit_store *store, uint64_t *ret, struct err *err)
{
    int64_t pages;
    int64_t unused;
    int64_t size;

    if (store_number(store, "PRAGMA page_count", &pages, err) ||
        store_number(store, "PRAGMA freelist_count", &unused, err) ||
        store_number(store, "PRAGMA page_size", &size, err))
        return -1;
    *ret = (uint64_t)((pages - unused) * size);
    return 0;
}

/* Moves the anchor to record `seq` and deletes all up to it. */
static int prune_to(struct audit_store *store, int64_t seq, struct err *err)
{
    static const char *const sqls[] = {
        "UPDATE anchor SET (seq, hash) = (SELECT seq, hash FROM records WHERE seq = ?) "
        "WHERE id = 1",
        "DELETE FROM records WHERE seq <= ?",
    };

    for (size_t i = 0; i < sizeof sqls / sizeof *sqls; i++) {
        AUTO_STATEMENT sqlite3_stmt *statement = store_query(store, sqls[i], err);

        if (!statement)
            return -1;
        sqlite3_bind_int64(statement, 1, seq);
        if (store_step(store, statement, err) < 0)
            return -1;
    }
    return 0;
}

static int prune_by_age(struct audit_store *store, uint64_t oldest_ns, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *statement =
        store_query(store,
                    "SELECT max(seq) FROM records WHERE seq < coalesce((SELECT min(seq) FROM "
                    "records WHERE time >= ?), 9223372036854775807)",
                    err);
    int64_t seq;

    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, (int64_t)oldest_ns);
    if (store_step(store, statement, err) < 0)
        return -1;
    seq = sqlite3_column_int64(statement, 0); /* NULL reads as 0 */
    return seq ? prune_to(store, seq, err) : 0;
}

static int prune_by_size(struct audit_store *store, uint64_t max_bytes, struct err *err)
{
    uint64_t used;
    int64_t first;
    int64_t last;

    for (;;) {
        if (used_bytes(store, &used, err) ||
            store_number(store, "SELECT min(seq) FROM records", &first, err) ||
            store_number(store, "SELECT max(seq) FROM records", &last, err))
            return -1;
        if (used <= max_bytes || !last)
            return 0;
        first += DELETE_BATCH - 1;
        if (prune_to(store, first < last ? first : last, err))
            return -1;
    }
}

int audit_store_prune(struct audit_store *store, const struct audit_limits *limits,
                      uint64_t wall_now_ns, struct err *err)
{
    uint64_t oldest = limits->max_age_ns < wall_now_ns ? wall_now_ns - limits->max_age_ns : 0;

    if (store_execute(store, "BEGIN IMMEDIATE", err))
        return -1;
    return finish(store,
                  prune_by_age(store, oldest, err) || prune_by_size(store, limits->max_bytes, err),
                  err);
}

/* SQLite brings transactions and recovery after a crash; the chain brings what it has not: that a change by
 * any program that can write the file shows.
 *
 * SQLite's own locks are not used (its VFS "unix-none"): they are POSIX locks on the database, and any command
 * that can read that could take them and keep records out of it for as long as it runs. One lock on a file
 * that nobody can read (tail.h) is held instead while the database is open. So that who reads, perhaps
 * through a pager, keeps nobody out, it reads a copy in memory (64 MiB at most), and lets go at once.
 *
 * Every read checks the type of each column, because a value of another type can read as the same
 * one (a text and a blob of the same bytes differ in one bit of the file). Commits are synchronous
 * (PRAGMA synchronous = FULL): records leave the tail right after, and must not get lost between.
 *
 * Importing and pruning are one transaction each, and both keep the chain whole: what comes in has
 * to follow what is there, and what goes leaves its last hash behind as the anchor.
 *
 * When verifying, the chain says that the records are what was written; SQLite's own check says
 * that they are where it looks for them, so that no query can be answered otherwise than by reading
 * all of them in order. */
#include "audit/store.h"

#include "audit/tail.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#define LOCK_NAME AUDIT_STORE_NAME ".lock"
#define WAIT_NS UINT64_C(2000000000) /* 2 s */

enum { APPLICATION_ID = 0x436f7264, VERSION = 1, DELETE_BATCH = 256 };

struct audit_store {
    sqlite3 *db;
    char *path;
    int lock; /* -1: `db` is a copy */
};

static void statement_auto(sqlite3_stmt **slot)
{
    sqlite3_finalize(*slot);
}
#define AUTO_STATEMENT AUTO(statement_auto)

/* --- calling SQLite --- */

/* The failure that SQLite just reported; returns -1. */
static int store_fail(struct audit_store *store, struct err *err)
{
    int code = sqlite3_errcode(store->db) & 0xff;
    enum err_code kind = code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? ERR_INVALID
                         : code == SQLITE_BUSY || code == SQLITE_LOCKED  ? ERR_LIMIT
                                                                         : ERR_SYSTEM;

    return err_set(err, kind, "%s: %s", store->path, sqlite3_errmsg(store->db));
}

static int store_execute(struct audit_store *store, const char *sql, struct err *err)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_fail(store, err);
}

static sqlite3_stmt *store_query(struct audit_store *store, const char *sql, struct err *err)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
        store_fail(store, err);
    return statement;
}

/* 1: a row, 0: none any more, -1: failed. */
static int store_step(struct audit_store *store, sqlite3_stmt *statement, struct err *err)
{
    int code = sqlite3_step(statement);

    return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : store_fail(store, err);
}

/* The one number that the query gives; 0 when there is no row, or NULL in it. */
static int store_number(struct audit_store *store, const char *sql, int64_t *ret, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *statement = store_query(store, sql, err);
    int got = statement ? store_step(store, statement, err) : -1;

    if (got < 0)
        return -1;
    *ret = got ? sqlite3_column_int64(statement, 0) : 0;
    return 0;
}

/* --- open --- */

void audit_store_close(struct audit_store *store)
{
    if (!store)
        return;
    sqlite3_close(store->db);
    auto_close(&store->lock);
    free(store->path);
    free(store);
}

static void store_auto(struct audit_store **slot)
{
    audit_store_close(*slot);
}

/* Makes the tables in an empty file. */
static int store_create(struct audit_store *store, struct err *err)
{
    static const char schema[] =
        "BEGIN IMMEDIATE;"
        "CREATE TABLE records (seq INTEGER PRIMARY KEY, time INTEGER, event TEXT, session TEXT,"
        " body TEXT, hash BLOB);"
        "CREATE TABLE anchor (id INTEGER PRIMARY KEY, seq INTEGER, hash BLOB);"
        "INSERT INTO anchor VALUES (1, 0, zeroblob(32));"
        "PRAGMA application_id = 0x436f7264;"
        "PRAGMA user_version = 1;"
        "COMMIT";
    struct err other;

    if (store_execute(store, schema, err) == 0)
        return 0;
    (void)store_execute(store, "ROLLBACK", &other);
    return -1;
}

static int check_version(struct audit_store *store, struct err *err)
{
    int64_t id;
    int64_t version;

    if (store_number(store, "PRAGMA application_id", &id, err) ||
        store_number(store, "PRAGMA user_version", &version, err))
        return -1;
    if (id != APPLICATION_ID || version != VERSION)
        return err_set(err, ERR_INVALID, "%s is not an audit log of this version of Cordon",
                       store->path);
    return 0;
}

/* Without locks SQLite knows a write-ahead log, which older versions of Cordon left, only when nobody else can
 * have the database open. */
static int store_ready(struct audit_store *store, enum audit_store_mode mode, int64_t *ret_pages,
                       struct err *err)
{
    if (store_execute(store, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF", err) ||
        (mode == AUDIT_STORE_WRITE &&
         store_execute(store, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL", err)) ||
        store_number(store, "PRAGMA page_count", ret_pages, err))
        return -1;
    if (!*ret_pages && mode == AUDIT_STORE_WRITE) {
        *ret_pages = 1;
        return store_create(store, err);
    }
    return *ret_pages ? check_version(store, err) : 0;
}

/* From now on all is read of the copy. */
static int store_copy(struct audit_store *store, struct err *err)
{
    sqlite3 *copy = NULL;
    sqlite3_backup *backup;

    if (sqlite3_open(":memory:", &copy) != SQLITE_OK) {
        sqlite3_close(copy);
        return err_set(err, ERR_SYSTEM, "%s: no memory for a copy", store->path);
    }
    backup = sqlite3_backup_init(copy, "main", store->db, "main");
    (void)sqlite3_backup_step(backup, -1);
    (void)sqlite3_backup_finish(backup); /* its failure is that of the step */
    sqlite3_close(store->db);
    store->db = copy;
    auto_close(&store->lock);
    store->lock = -1;
    return sqlite3_errcode(copy) == SQLITE_OK ? 0 : store_fail(store, err);
}

/* Made by us, because SQLite would let other users read it. */
static int store_make(const char *path, struct err *err)
{
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

    return fd < 0 ? err_sys(err, "%s", path) : 0;
}

int audit_store_open(const char *dir, enum audit_store_mode mode, struct audit_store **ret,
                     struct err *err)
{
    AUTO(store_auto) struct audit_store *store = alloc_zero(1, sizeof *store);
    int64_t pages;

    store->path = path_join(dir, AUDIT_STORE_NAME);
    store->lock = -1;
    if (mode == AUDIT_STORE_READ && access(store->path, F_OK)) {
        *ret = NULL;
        return errno == ENOENT ? 0 : err_sys(err, "%s", store->path);
    }
    store->lock = audit_lock(dir, LOCK_NAME, WAIT_NS, err);
    if (store->lock < 0 || (mode == AUDIT_STORE_WRITE && store_make(store->path, err)))
        return -1;
    /* A file that may only be read is opened so by SQLite itself. */
    if (sqlite3_open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW,
                        "unix-none") != SQLITE_OK)
        return store_fail(store, err);
    if (store_ready(store, mode, &pages, err) ||
        (mode == AUDIT_STORE_READ && pages && store_copy(store, err)))
        return -1;
    *ret = pages ? TAKE_PTR(store) : NULL;
    return 0;
}

/* --- reading --- */

static bool store_read_hash(sqlite3_stmt *statement, int column, uint8_t ret[AUDIT_HASH_SIZE])
{
    if (sqlite3_column_type(statement, column) != SQLITE_BLOB ||
        sqlite3_column_bytes(statement, column) != AUDIT_HASH_SIZE)
        return false;
    memcpy(ret, sqlite3_column_blob(statement, column), AUDIT_HASH_SIZE);
    return true;
}

static bool store_read_count(sqlite3_stmt *statement, int column, uint64_t *ret)
{
    *ret = (uint64_t)sqlite3_column_int64(statement, column);
    return sqlite3_column_type(statement, column) == SQLITE_INTEGER;
}

static bool read_text(sqlite3_stmt *statement, int column, struct audit_text *ret)
{
    if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
        return false;
    ret->at = (const char *)sqlite3_column_text(statement, column);
    ret->len = (size_t)sqlite3_column_bytes(statement, column);
    return ret->at != NULL;
}

int audit_store_each(struct audit_store *store,
                     int (*each)(void *data, const struct audit_record *record, struct err *err),
                     void *data, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *statement = store_query(
        store, "SELECT seq, time, event, session, body, hash FROM records ORDER BY seq", err);
    int got = statement ? 1 : -1;

    while (got > 0 && (got = store_step(store, statement, err)) > 0) {
        struct audit_record record;

        if (!store_read_count(statement, 0, &record.link.seq) ||
            !store_read_count(statement, 1, &record.time_ns) ||
            !read_text(statement, 2, &record.event) || !read_text(statement, 3, &record.session) ||
            !read_text(statement, 4, &record.body) ||
            !store_read_hash(statement, 5, record.link.hash))
            return err_set(err, ERR_INVALID, "%s: record %" PRIu64 " has a column of another type",
                           store->path, (uint64_t)sqlite3_column_int64(statement, 0));
        if (each(data, &record, err))
            return -1;
    }
    return got;
}

/* The place in the chain that the query gives (seq, hash). 1: `*ret` is it, 0: no row, -1: failed,
 * when it is damaged with the message `damaged`. */
static int store_link(struct audit_store *store, const char *sql, struct audit_link *ret,
                      const char *damaged, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *statement = store_query(store, sql, err);
    struct audit_link link;
    int got = statement ? store_step(store, statement, err) : -1;

    if (got <= 0)
        return got;
    if (!store_read_count(statement, 0, &link.seq) || !store_read_hash(statement, 1, link.hash))
        return err_set(err, ERR_INVALID, "%s: %s", store->path, damaged);
    *ret = link;
    return 1;
}

static int store_anchor(struct audit_store *store, struct audit_link *ret, struct err *err)
{
    static const char damaged[] = "the anchor is missing or damaged";
    int got = store_link(store, "SELECT seq, hash FROM anchor WHERE id = 1", ret, damaged, err);

    if (!got)
        return err_set(err, ERR_INVALID, "%s: %s", store->path, damaged);
    return got > 0 ? 0 : -1;
}

int audit_store_head(struct audit_store *store, struct audit_link *ret, struct err *err)
{
    int got = store_link(store, "SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1", ret,
                         "the last record is damaged", err);

    if (!got)
        return store_anchor(store, ret, err);
    return got > 0 ? 0 : -1;
}

/* --- writing --- */

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
    size_t at = 0;

    if (!statement || audit_store_head(store, &head, err) ||
        audit_store_find_new(tail, &head, &at, err))
        return -1;
    for (; at < tail->len; at++) {
        const struct audit_record *record = &tail->items[at];
        const struct audit_text texts[] = {record->event, record->session, record->body};

        sqlite3_reset(statement);
        sqlite3_bind_int64(statement, 1, (int64_t)record->link.seq);
        sqlite3_bind_int64(statement, 2, (int64_t)record->time_ns);
        for (int i = 0; i < 3; i++)
            sqlite3_bind_text(statement, 3 + i, texts[i].at, (int)texts[i].len, SQLITE_STATIC);
        sqlite3_bind_blob(statement, 6, record->link.hash, AUDIT_HASH_SIZE, SQLITE_STATIC);
        if (store_step(store, statement, err))
            return -1;
    }
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
    static const char used_bytes[] = "SELECT (page_count - freelist_count) * page_size FROM"
                                     " pragma_page_count, pragma_freelist_count, pragma_page_size";
    int64_t used;
    int64_t first;
    int64_t last;

    for (;;) {
        if (store_number(store, used_bytes, &used, err) ||
            store_number(store, "SELECT min(seq) FROM records", &first, err) ||
            store_number(store, "SELECT max(seq) FROM records", &last, err))
            return -1;
        if ((uint64_t)used <= max_bytes || !last)
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

int audit_store_verify(struct audit_store *store, struct audit_link *ret_head,
                       uint64_t *ret_records, struct err *err)
{
    AUTO_STATEMENT sqlite3_stmt *structure = NULL;
    struct walk walk = {.store = store};
    const char *said;

    if (store_anchor(store, &walk.last, err) || audit_store_each(store, check_record, &walk, err))
        return -1;
    structure = store_query(store, "PRAGMA integrity_check(1)", err);
    if (!structure || store_step(store, structure, err) < 0)
        return -1;
    said = (const char *)sqlite3_column_text(structure, 0);
    if (!said || strcmp(said, "ok") != 0)
        return err_set(err, ERR_INVALID, "%s is damaged: %s", store->path,
                       said ? said : "no answer");
    *ret_head = walk.last;
    *ret_records = walk.count;
    return 0;
}

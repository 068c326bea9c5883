/* What the files of the store share: calling SQLite with our errors. Internal to audit; store.h is
 * the interface. */
#pragma once

#include "audit/store.h"
#include "base/auto.h"

#include <sqlite3.h>

struct audit_store {
    sqlite3 *db;
    char *path;
};

static inline void statement_auto(sqlite3_stmt **slot)
{
    sqlite3_finalize(*slot);
}
#define AUTO_STATEMENT AUTO(statement_auto)

/* The failure that SQLite just told; returns -1. */
int store_fail(struct audit_store *store, struct err *err);

int store_execute(struct audit_store *store, const char *sql, struct err *err);
sqlite3_stmt *store_query(struct audit_store *store, const char *sql, struct err *err);

/* 1: a row, 0: none any more, -1: failed. */
int store_step(struct audit_store *store, sqlite3_stmt *statement, struct err *err);

/* The one number that the query gives; 0 when there is no row, or NULL in it. */
int store_number(struct audit_store *store, const char *sql, int64_t *ret, struct err *err);

int store_anchor(struct audit_store *store, struct audit_link *ret, struct err *err);

/* The column; false when it is of another type. */
bool store_read_hash(sqlite3_stmt *statement, int column, uint8_t ret[AUDIT_HASH_SIZE]);
bool store_read_count(sqlite3_stmt *statement, int column, uint64_t *ret);

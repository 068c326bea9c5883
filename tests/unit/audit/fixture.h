/* A dir of its own for a test of the audit log, and records to put there. */
#pragma once

#include "audit/record.h"
#include "audit/store.h"
#include "audit/tail.h"

#include <stddef.h>

struct fixture {
    char dir[4096];
};

int fixture_setup(void **state);
int fixture_teardown(void **state);

char *fixture_path(const struct fixture *fixture, const char *name); /* caller frees */

/* The bytes of a file; NUL-terminated, caller frees. */
char *fixture_read(const struct fixture *fixture, const char *name, size_t *ret_len);
void fixture_write(const struct fixture *fixture, const char *name, const void *data, size_t len);
void fixture_remove(const struct fixture *fixture, const char *name);

/* Appends `count` records to the tail; their bodies count on from `first`. */
void fixture_append(const struct fixture *fixture, unsigned first, unsigned count);

/* Moves all of the tail to the database. */
void fixture_import(const struct fixture *fixture);

/* The whole log: the database's records and those of the tail behind them. 0, or -1 and why. */
int fixture_verify(const struct fixture *fixture, uint64_t *ret_records, struct err *err);

/* Everything that a reader of the log gets to see, one line per record; caller frees. NULL when
 * it cannot be read to its end. */
char *fixture_show(const struct fixture *fixture);

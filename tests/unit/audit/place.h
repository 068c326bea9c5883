/* A folder of its own for a test of the audit log, and records to put there. */
#pragma once

#include "audit/record.h"
#include "audit/store.h"
#include "audit/tail.h"

#include <stddef.h>

struct place {
    char folder[4096];
};

int place_setup(void **state);
int place_teardown(void **state);

char *place_path(const struct place *place, const char *name); /* caller frees */

/* The bytes of a file; NUL-terminated, caller frees. */
char *place_read(const struct place *place, const char *name, size_t *ret_len);
void place_write(const struct place *place, const char *name, const void *data, size_t len);
void place_remove(const struct place *place, const char *name);

/* Appends `count` records to the tail; their bodies count on from `first`. */
void place_append(const struct place *place, unsigned first, unsigned count);

/* Moves all of the tail to the database. */
void place_import(const struct place *place);

/* The whole log: the database's records and those of the tail behind them. 0, or -1 and why. */
int place_verify(const struct place *place, uint64_t *ret_records, struct err *err);

/* Everything that a reader of the log gets to see, one line per record; caller frees. NULL when
 * it cannot be read to its end. */
char *place_show(const struct place *place);

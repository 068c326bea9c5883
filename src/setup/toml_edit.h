/* Changing one table of a TOML text that people keep. The table is known by its header and by what is in it, and ends before
 * the next empty line, comment or header; every other byte stays as it is. A comment of ours stands before it, as long
 * as no program that rewrites the file drops it (`codex mcp add` does). */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct toml_node;

struct toml_block {
    const char *mark;        /* the comment, without a line feed: "# Written by ..." */
    const char *table;       /* "mcp_servers.cordon": bare keys and dots */
    const char *const *keys; /* the same as keys; NULL-terminated */
    bool (*is_ours)(
        const struct toml_node *table); /* of one that is there: Cordon may have written it */
    const char *body;                   /* lines, each with its line feed, none of them empty */
};

/* Appends the text with the table, at its end or in the place of the one that is ours. The same text when it is there
 * already. ERR_INVALID: the text is no TOML; ERR_FORBIDDEN: it has such a table that is not ours, or writes what is
 * above it in a way that takes no more tables. */
int toml_edit_put(const char *text, size_t len, const struct toml_block *block, struct buf *ret,
                  struct err *err);

/* Appends the text without the table that is ours and the tables below it; the same text when there is none.
 * ERR_FORBIDDEN: it is not ours. */
int toml_edit_remove(const char *text, size_t len, const struct toml_block *block, struct buf *ret,
                     struct err *err);

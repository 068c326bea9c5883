/* Cuts a stream into lines. Internal to rpc. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct rpc_lines {
    struct buf buf;
    size_t at;      /* where the next line begins */
    size_t scanned; /* there is no line feed between `at` and here */
    size_t max;     /* bytes of one line */
};

void rpc_lines_init(struct rpc_lines *lines, size_t max);
void rpc_lines_done(struct rpc_lines *lines);

/* false when the line that is not complete yet is longer than the limit already. */
bool rpc_lines_append(struct rpc_lines *lines, const char *data, size_t len);

/* The next complete line without its line feed, borrowed until the next call; blank ones are left
 * out. */
bool rpc_lines_next(struct rpc_lines *lines, const char **ret_line, size_t *ret_len);

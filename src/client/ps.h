/* The table that `ps` prints. Pure. */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct buf;

/* `processes` is the array of process/list; `now_ns` is the wall clock. One line each behind a line
 * of headings; ids are as short as they can be without two being the same. */
void ps_table(const json_t *processes, uint64_t now_ns, struct buf *ret);

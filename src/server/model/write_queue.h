/* Writes to the sessions of models: one call per session at a time, in the order in which they
 * came. The next one begins when the answer to the one before is out, so that each answer has what
 * its own write led to.
 *
 *     write_queue_add(call, id, begin)     begins at once, or waits
 *       begin(call, write)                 called once, unless the connection goes before
 *     queued_write_end(write)              the call is answered, or has failed
 */
#pragma once

#include <stddef.h>

struct call;
struct server;
struct queued_write;
struct write_queue;

typedef void queued_write_fn(struct call *call, struct queued_write *write);

/* While it waits the call's on_gone is ours. */
void write_queue_add(struct call *call, int session_id, queued_write_fn *begin);
void queued_write_end(struct queued_write *write); /* NULL is nothing */

void write_queue_free(struct server *server); /* no call is left */

/* Whose turn it is to write to a session of a model: one call at a time, in the order in which they
 * came. The next one begins when the answer to the one before is out, so that each answer has what
 * its own write led to.
 *
 *     write_turn_take(call, id, begin)     begins at once, or waits
 *       begin(call, turn)                  called once, unless the connection goes before
 *     write_turn_end(turn)                 the call is answered, or has failed
 */
#pragma once

#include <stddef.h>

struct call;
struct server;
struct write_turn;
struct write_turns;

typedef void write_turn_fn(struct call *call, struct write_turn *turn);

/* While it waits the call's on_gone is ours. */
void write_turn_take(struct call *call, int session_id, write_turn_fn *begin);
void write_turn_end(struct write_turn *turn); /* NULL is nothing */

void write_turns_free(struct server *server); /* no call is left */

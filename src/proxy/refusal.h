/* A refusal as a client that speaks HTTP gets it: a reply whose body says to a program what happened, and to
 * a person what to do about it. */
#pragma once

struct buf;
struct connection;
struct refusal;

/* Appends the whole reply. Without a body when it is one to HEAD. `method` may be NULL. */
void refusal_write(const struct connection *connection, const struct refusal *refusal,
                   const char *method, struct buf *ret);

/* A connection whose TLS is ended: cordon-tls is between us and both sides, and what comes is HTTP/1.1 in plain, of which each
 * request is judged by the hooks of its host, and goes on with the secrets that they, or credentials, say.
 *
 *     ended_wants()      whether TLS to its host is ended
 *     ended_leave()      of the filter that has found a hello: the relay ends, and
 *     ended_begin()      when it has
 *     ended_free() */
#pragma once

#include "proxy/relay.h"

struct connection;
struct ended;

bool ended_wants(const struct connection *connection);

/* What is not TLS, or not HTTP in it, has no place there: nothing could be said about it. */
bool ended_has_to(const struct connection *connection);

/* `in` is all that was read. */
enum relay_step ended_leave(struct connection *connection, const struct buf *in);

bool ended_has_begun(const struct ended *ended);

/* May free the connection. */
void ended_begin(struct connection *connection);

void ended_free(struct ended *ended); /* NULL is fine */

/* A client that knows of the proxy: HTTP/1.1 (CONNECT, and requests with the whole URL) or SOCKS 5, told apart by
 * the first byte. What it wants to reach is decided as for any other; it hears why not. */
#pragma once

struct connection;
struct deadline;
struct dial_result;
struct explicit_client;
struct refusal;

/* Reads whom the client wants to reach. May free the connection. */
void explicit_new(struct connection *connection);
void explicit_free(struct explicit_client *client);

/* For the queue of those whose request is not whole yet. */
void explicit_on_time(struct deadline *deadline);

/* Each says so to the client, and closes. */
void explicit_refuse(struct connection *connection, const struct refusal *refusal);
void explicit_fail(struct connection *connection, const struct dial_result *result);

/* The server is there: says so, and sets up the relay, which starts next. */
void explicit_begin(struct connection *connection);

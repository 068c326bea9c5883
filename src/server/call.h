/* A request that waits for its answer. Internal to server; method.h is what handlers see. */
#pragma once

#include "rpc/message.h"
#include "server/method.h"

struct client;

struct call {
    struct client *client;
    struct call *next; /* of the client's calls */
    struct call *previous;
    struct rpc_message message; /* owned */
    void (*on_gone)(void *data);
    void *data;
};

#define CALLS_MAX 1024 /* that wait on one connection */

/* Takes the message over. */
struct call *call_begin(struct client *client, struct rpc_message *message);

/* The method's parameters, an empty object when there are none. */
const json_t *call_params(const struct call *call);

/* As call_fail(), with more for a program. `data` is taken over. */
void call_fail_data(struct call *call, enum rpc_code code, const char *message, json_t *data);

/* For bulk: the text of an answer, in the server's own buffer, up to where the result is to be
 * appended; and what sends it. Nothing else may be sent between the two. */
struct buf *call_result_begin(struct call *call);
void call_result_end(struct call *call);

/* No answer can come any more: tells the handlers. */
void calls_drop(struct client *client);

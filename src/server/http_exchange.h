/* One HTTP request on its way: a `cordon-http` that carries it out (src/http). */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct http_exchange;
struct loop;
struct workspace;

/* In this order: on_head, on_body any number of times, on_end once. The exchange may be freed from
 * on_end only. */
struct http_events {
    void (*on_head)(void *data, const json_t *head); /* {"status", "headers"}; borrowed */
    /* base64; only the last is padded, so texts can be put one behind the other */
    void (*on_body)(void *data, const char *text, size_t len);
    void (*on_end)(void *data, const char *error); /* NULL: the answer is whole */
};

struct http_options {
    struct loop *loop;
    struct workspace *workspace; /* held meanwhile */
    const struct http_events *events;
    void *data;
};

/* `request` is the JSON for the program. NULL on failure. */
struct http_exchange *http_exchange_start(const struct http_options *options, const json_t *request,
                                          struct err *err);
void http_exchange_free(struct http_exchange *exchange); /* ends it; also from on_end */

/* Stops on_body for a while, and with it the sender at the other end. */
void http_exchange_hold(struct http_exchange *exchange, bool on);

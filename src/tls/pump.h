/* One connection whose TLS is ended here: an encrypted socket, a plain one, and what goes from each to the
 * other. */
#pragma once

#include "loop/loop.h"

#include <openssl/ssl.h>

struct pump;

struct pump_options {
    struct loop *loop;
    SSL *ssl;      /* its own from then on: ready to connect or to accept */
    int encrypted; /* as are these two */
    int plain;
    const char *read; /* what has been read of the encrypted one before */
    size_t read_len;
    /* Once: the hands have been shaken (`why` is NULL), or will not be. */
    void (*on_answer)(void *data, struct pump *pump, const char *why);
    void (*on_end)(void *data, struct pump *pump); /* it frees itself after that */
    void *data;
};

/* Calls nothing back before it returns. NULL on failure, with everything closed. */
struct pump *pump_new(const struct pump_options *options, struct err *err);
void pump_free(struct pump *pump);

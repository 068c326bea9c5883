/* One `cordon-layer` at work: a thing that is done with a layer beside the server's one thread (layer/call.h).
 *
 *     layer_helper_start()     exactly one on_answer follows, from the loop
 *     layer_helper_free()      any time, also from on_answer: ends it
 *
 * What it says is held against limits, and what makes no sense is a failure, as is its death. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>

struct layer_helper;
struct loop;
struct workspace;

struct layer_helper_answer {
    const json_t *result;      /* borrowed; NULL: */
    const struct err *failure; /* and */
    const char *reason;        /* a word for programs; NULL: none */
    int *fd;                   /* came with it, or -1; may be taken (TAKE_FD()) */
};

struct layer_helper_options {
    struct loop *loop;
    struct workspace *workspace; /* one without a sandbox; held meanwhile */
    const int *fds; /* for the program, in the order of struct layer_call_fds; copied */
    size_t fds_len;
    void (*on_answer)(void *data, const struct layer_helper_answer *answer);
    void *data;
};

/* `request` as in layer/call.h. NULL on failure. */
struct layer_helper *layer_helper_start(const struct layer_helper_options *options,
                                        const json_t *request, struct err *err);
void layer_helper_free(struct layer_helper *helper);

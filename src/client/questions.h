/* What the server asks about a command, answered by a program of ours, or by the person at our terminal, one
 * question after the other. Where there is none, and as long as nobody answers, it is a no there. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct connection;
struct questions;

struct questions_options {
    struct connection *connection; /* borrowed */
    /* The terminal is needed for a question, or is not any more; what reads and writes it otherwise has to
     * leave it alone meanwhile. */
    void (*on_lend)(void *data, bool is_lent);
    void *data;
    const char *hook;      /* a program that is asked first: absolute; NULL: none */
    char *const *hook_env; /* complete */
    uint64_t timeout_ns;   /* no answer after that is a no; 0: none */
};

/* NULL: the hook cannot be asked. */
struct questions *questions_new(const struct questions_options *options, struct err *err);

/* Before the connection; safe on NULL. */
void questions_free(struct questions *questions);

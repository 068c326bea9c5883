/* The parameters of process/start. */
#pragma once

#include "client/client.h"
#include "process/pty.h"

#include <jansson.h>

/* What the person's side of it adds to the options. */
struct start_place {
    const char *id;       /* of the process */
    const char *folder;   /* the server's, as a file: URI; NULL: not known */
    const char *term;     /* $TERM; NULL: none */
    struct pty_size size; /* of the terminal; 0: none */
};

/* New reference; NULL (ERR_INVALID) when an option is wrong. Names without a value in options->env
 * are looked up in our environment. */
json_t *start_params(const struct client_run *options, const struct start_place *place,
                     struct err *err);

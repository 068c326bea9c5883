/* The parameters of process/start and exec/run, as `run` sends them, pure but for our environment; and what
 * both ways of running have in common. */
#pragma once

#include "client/client.h"
#include "process/pty.h"

#include <jansson.h>

/* What is known of both ends beside the options. */
struct start_context {
    const char *id;       /* of the process */
    const char *dir;      /* the server's, as a file: URI; NULL: not known */
    const char *term;     /* $TERM; NULL: none */
    struct pty_size size; /* of the terminal; 0: none */
    bool knows_profiles;  /* connection_knows_profiles() */
};

/* New reference; NULL (ERR_INVALID) when an option is wrong. Names without a value in options->env
 * are looked up in our environment. */
json_t *start_params(const struct client_run *options, const struct start_context *context,
                     struct err *err);

/* The same of exec/run, for options with `execution`. */
json_t *exec_params(const struct client_run *options, const struct start_context *context,
                    struct err *err);

/* Adds the texts as a list; nothing when there are none. ERR_INVALID for what is no UTF-8. */
int client_add_texts(json_t *object, const char *key, char *const *texts, struct err *err);

/* The sandbox object of our own protocol that the options come to; `cwd` is a file: URI, the workspace. A new reference in `ret`;
 * ERR_INVALID for what is no UTF-8. */
int client_run_sandbox(const struct client_run *options, const char *cwd, json_t **ret,
                       struct err *err);

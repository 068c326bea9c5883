/* What clients that come by WebSocket or HTTP have to bring, as the options of `cordon serve` and `cordon mcp` say it.
 *
 *     serve_auth_read(&door, &file, true, err)
 *     door.auth, door.secrets       for the server
 *     serve_auth_renew()            its files may have changed
 *     serve_auth_done() */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "rpc/transport/auth.h"

#include <stdbool.h>

struct config_file;
struct server_secrets;

/* Zeroed but for the first. */
struct serve_auth {
    struct rpc_auth_options *options; /* borrowed; what was left open is filled in */
    struct rpc_auth *auth;            /* NULL: only the process counts */
    char *token_path;                 /* of the user's token; NULL: not known */
    struct strv secrets; /* canonical: what clients have to bring is derived from these files */
};

/* `is_needed`: there is an address to which it applies; else it may not be asked for. `file` has to outlive it. */
int serve_auth_read(struct serve_auth *door, const struct config_file *file, bool is_needed,
                    struct err *err);
void serve_auth_done(struct serve_auth *door);

/* As server_options.renew. */
int serve_auth_renew(struct serve_auth *door, struct server_secrets *ret, struct err *err);

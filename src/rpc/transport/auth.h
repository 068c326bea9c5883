/* Who may use a WebSocket listener: checks an Authorization header.
 *
 *     rpc_auth_new(&options)       reads the files; says what is wrong with the flags
 *     rpc_auth_allows(auth, text)  for each upgrade
 *     rpc_auth_reload()            the files may have changed
 *     rpc_auth_free()              wipes the secrets
 *
 * An answer is yes or no, without a reason: a peer that may not come in learns nothing about how
 * near it was. Secrets come from files and stay in this struct: not in argv, log or environment. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct rpc_auth;

enum rpc_auth_mode {
    RPC_AUTH_NONE,
    RPC_AUTH_CAPABILITY_TOKEN,    /* "capability-token" */
    RPC_AUTH_SIGNED_BEARER_TOKEN, /* "signed-bearer-token": JWT, HS256 */
    RPC_AUTH_ANYBODY,             /* "anybody": who can connect is let in */
};

enum { RPC_AUTH_SKEW_DEFAULT_S = 30, RPC_AUTH_SECRET_MIN = 32 /* bytes */ };

/* As the flags are called; NULL where not given. */
struct rpc_auth_options {
    enum rpc_auth_mode mode;        /* --ws-auth */
    const char *token_file;         /* --ws-token-file */
    const char *token_sha256;       /* --ws-token-sha256: 64 hex digits */
    const char *shared_secret_file; /* --ws-shared-secret-file */
    const char *issuer;             /* --ws-issuer */
    const char *audience;           /* --ws-audience */
    const char *max_clock_skew_s;   /* --ws-max-clock-skew-seconds, as given */
};

/* The word behind --ws-auth. */
int rpc_auth_mode_parse(const char *word, enum rpc_auth_mode *ret, struct err *err);

/* NULL with ERR_INVALID for flags that do not go together, else as reading the files fails.
 * `*ret` is NULL for RPC_AUTH_NONE. */
int rpc_auth_new(const struct rpc_auth_options *options, struct rpc_auth **ret, struct err *err);
void rpc_auth_free(struct rpc_auth *auth);

/* Reads the files again, in place: who comes from now on has to bring what is in them now.
 * `*ret_changed` tells whether that is anything else. On failure all stays as it was. */
int rpc_auth_reload(struct rpc_auth *auth, const struct rpc_auth_options *options,
                    bool *ret_changed, struct err *err);

/* Everybody is let in. */
bool rpc_auth_is_open(const struct rpc_auth *auth);

/* `header` is the value of Authorization, NULL when there was none. Time by clock_wall_ns(). */
bool rpc_auth_allows(const struct rpc_auth *auth, const char *header);

/* Who may use a WebSocket listener: checks an Authorization header.
 *
 *     rpc_auth_new(&options)                reads the files; says what is wrong with the flags
 *     rpc_auth_allows(auth, text, address)  for each upgrade
 *     rpc_auth_reload()                     the files may have changed
 *     rpc_auth_free()                       wipes the secrets
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
    RPC_AUTH_USER_TOKEN,          /* "user-token": of base/user_token.h, to processes as below */
    RPC_AUTH_CAPABILITY_TOKEN,    /* "capability-token" */
    RPC_AUTH_SIGNED_BEARER_TOKEN, /* "signed-bearer-token": JWT, HS256 */
    RPC_AUTH_OWN_PROCESSES,       /* "own-processes": whom peer_admission.h lets in */
    RPC_AUTH_ANYBODY,             /* "anybody": who can connect is let in */
};

enum {
    RPC_AUTH_SKEW_DEFAULT_S = 30,
    RPC_AUTH_SECRET_MIN = 32, /* bytes */
    RPC_AUTH_PROOF_SIZE = 45, /* 32 bytes in base64, and the NUL */
};

/* As the flags are called; NULL where not given. */
struct rpc_auth_options {
    enum rpc_auth_mode mode;        /* --ws-auth */
    const char *user_dir;           /* of RPC_AUTH_USER_TOKEN: the user's configuration directory */
    const char *token_file;         /* --ws-token-file */
    const char *token_sha256;       /* --ws-token-sha256: 64 hex digits */
    const char *shared_secret_file; /* --ws-shared-secret-file */
    const char *issuer;             /* --ws-issuer */
    const char *audience;           /* --ws-audience */
    const char *max_clock_skew_s;   /* --ws-max-clock-skew-seconds, as given */
};

/* The word behind --ws-auth. */
int rpc_auth_mode_parse(const char *word, enum rpc_auth_mode *ret, struct err *err);
const char *rpc_auth_mode_word(enum rpc_auth_mode mode); /* but of RPC_AUTH_NONE */

/* -1 with ERR_INVALID for flags that do not go together, else as reading the files fails. `*ret` is
 * NULL where only the process counts. A user's token that is missing is made. */
int rpc_auth_new(const struct rpc_auth_options *options, struct rpc_auth **ret, struct err *err);
void rpc_auth_free(struct rpc_auth *auth);

/* Reads the files again, in place: who comes from now on has to bring what is in them now.
 * `*ret_changed` tells whether that is anything else. On failure all stays as it was. */
int rpc_auth_reload(struct rpc_auth *auth, const struct rpc_auth_options *options,
                    bool *ret_changed, struct err *err);

/* Everybody is let in. */
bool rpc_auth_is_open(const struct rpc_auth *auth);

/* Who brings the right thing has to be one of the processes of peer_admission.h, too. */
bool rpc_auth_is_for_own_processes(const struct rpc_auth *auth);

/* What who brings nothing, or the wrong thing, is told. */
const char *rpc_auth_refusal(const struct rpc_auth *auth);

/* `header` is the value of Authorization, NULL when there was none. Time by clock_wall_ns().
 * `address` is that which the client came to, as rpc_address_format() has it. */
bool rpc_auth_allows(const struct rpc_auth *auth, const char *header, const char *address);

/* What shows who asked with this Sec-WebSocket-Key that we know the user's token. false when there
 * is none. */
bool rpc_auth_prove(const struct rpc_auth *auth, const char *key, char ret[RPC_AUTH_PROOF_SIZE]);

/* --- the side that connects, with the user's token --- */

/* What to bring to the server at this address and to no other, for the next half a minute: a bearer
 * token signed by the user's. Caller frees. */
char *rpc_auth_sign(const char *token, const char *address);

/* rpc_auth_prove() with this token and key gives `proof`, which may be NULL. */
bool rpc_auth_is_proof(const char *token, const char *key, const char *proof);

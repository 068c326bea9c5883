/* What is done to requests whose TLS the proxy ends, because a profile says so about their host: hooks, which
 * say what may be asked for there and put secrets into the request, and credentials, of which the command has a
 * worthless stand-in that becomes the real one on the way. Pure.
 *
 *     network_hooks_from_json()
 *     network_hooks_end_tls(&hooks, host)          whether TLS to the host is ended at all
 *     network_hooks_decide(&hooks, &request, &hook)     of each request
 *     network_hooks_apply(&hooks, hook, &request, ...)       what its head becomes
 *
 * A host with hooks is open for what one of them is about, and for nothing else; one with credentials alone for
 * everything. A zeroed struct is about no host. */
#pragma once

#include "base/err.h"
#include "base/http_head.h"
#include "base/strv.h"
#include "policy/network_policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_at;

/* All that are there of this name have to match one of the patterns, and one has to be there. */
struct network_field_rule {
    char *name;
    struct strv patterns;
};

/* A header that is put into requests: `prefix` and the secret. */
struct network_injection {
    char *name;
    char *prefix;         /* NULL: none */
    char *secret_env_var; /* of the host's environment; or */
    char *secret_file;    /* absolute */
    char *secret;         /* what is there, once somebody has looked; NULL before, as is the next */
    char *stand_in;       /* what commands have where they would have that */
};

/* Patterns match the whole (of a path, its beginning); "*" and "?" are wildcards in those that start with "pattern:",
 * and "literal:" in front of a text keeps it from being read as one. */
struct network_hook {
    char *host;          /* one name or address, as struct net_host has it */
    struct strv methods; /* in capitals; one at least */
    struct strv paths;   /* patterns, of what is decoded; one at least */
    struct network_field_rule *query, *headers;
    size_t query_len, headers_len;
    struct strv strip; /* headers that are taken out */
    struct network_injection *inject;
    size_t inject_len;
    char *origin; /* for people: "config.toml:12 mitm.hooks.github" */
};

struct network_credential {
    char *name;        /* of the environment variable */
    struct strv hosts; /* as in network_hook */
    char *stand_in; /* what the command has; NULL before somebody has chosen it, as is the next */
    char *secret;
};

struct network_hooks {
    struct network_hook *hooks;
    size_t hooks_len;
    struct network_credential *credentials;
    size_t credentials_len;
};

enum { NETWORK_HOOKS_MAX = 256, NETWORK_SECRET_MAX = 4096 };

void network_hooks_done(struct network_hooks *hooks);
void network_hooks_copy(const struct network_hooks *hooks, struct network_hooks *ret);

/* Adds copies; a credential of the same name gets the hosts of both. */
void network_hooks_add(struct network_hooks *hooks, const struct network_hooks *from);

/* A variable, and the hosts that its secret is for. */
int network_hooks_add_credential(struct network_hooks *hooks, const char *name, char *const *hosts,
                                 struct err *err);

/* {"hooks": [{"host", "methods": [], "path_prefixes": [], "query": {NAME: []}, "headers": {NAME: []},
 *             "strip_request_headers": [], "inject_request_headers": [{"name", "prefix", "secret_env_var" |
 *             "secret_file", "secret", "stand_in"}], "origin"}],
 *  "credentials": [{"name", "hosts": [], "stand_in", "secret"}]}
 * A missing value has none. Errors start with the JSON path. */
int network_hooks_from_json(const struct json_at *at, struct network_hooks *ret, struct err *err);

/* New reference; with the secrets: for the proxy alone. */
json_t *network_hooks_to_json(const struct network_hooks *hooks);

/* The same without them and the stand-ins, for people and programs that want to know what is done. */
json_t *network_hooks_describe(const struct network_hooks *hooks);

/* Whether a secret can stand in a head: visible ASCII and spaces, not too long, not empty. */
bool network_secret_is_valid(const char *secret);

/* Something that looks like the secret and is worth nothing: the same length and kinds of characters, and the same
 * beginning where that only says what it is ("ghp_"). `random` are 64 bytes. Caller frees. */
char *network_stand_in(const char *secret, const uint8_t random[64]);

/* Puts the stand-in in the place of each secret in the values of `env` ("NAME=VALUE"), also in what is base64 there. One of less than 8 bytes could
 * be part of anything, and is only a value as a whole. NULL: there are none. */
void network_hooks_withhold(const struct network_hooks *hooks, struct strv *env);

/* Whether what is not HTTP over TLS is refused there, because nothing could be said about it. */
bool network_hooks_has_hooks(const struct network_hooks *hooks, const char *host);

bool network_hooks_end_tls(const struct network_hooks *hooks, const char *host);

struct network_hook_request {
    const char *host;             /* as struct net_host has it */
    const struct http_head *head; /* whose target is a path */
};

/* NETWORK_REASON_NONE with the hook that is about the request (NULL: credentials alone are about its host), or
 * NETWORK_MITM_HOOK_DENIED. A path that could be read in two ways (an encoded slash, dots, a broken escape) is no
 * hook's. */
enum network_reason network_hooks_decide(const struct network_hooks *hooks,
                                         const struct network_hook_request *request,
                                         const struct network_hook **ret);

/* `head` as it goes on to the server: its new texts are in `storage`, which has to outlive it. ERR_LIMIT: too
 * many fields. */
int network_hooks_apply(const struct network_hooks *hooks, const struct network_hook *hook,
                        const char *host, struct http_head *head, struct strv *storage,
                        struct err *err);

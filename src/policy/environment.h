/* Which environment variables a command gets: a pure function of a policy and the variables that
 * are there. The algorithm is that of Codex; where Cordon differs (default excludes
 * are on, two more of them) docs/compatibility.md says so. */
#pragma once

#include "base/strv.h"
#include "policy/access.h"

#include <stdbool.h>
#include <stddef.h>

enum environment_inherit {
    ENVIRONMENT_ALL,
    ENVIRONMENT_CORE, /* PATH, SHELL, TMPDIR, TEMP, TMP, HOME, LANG, LC_ALL, LC_CTYPE, LOGNAME,
                         USER; names compared without case */
    ENVIRONMENT_NONE,
};

enum environment_defaults {
    ENVIRONMENT_DEFAULTS_ON,  /* drop *KEY* *SECRET* *TOKEN* *PASSWORD* *CREDENTIAL* */
    ENVIRONMENT_DEFAULTS_OFF, /* `ignore_default_excludes = true` */
};

/* A zeroed one is the default policy. Patterns: `*` and `?` over the whole name, without case. */
struct environment_policy {
    enum environment_inherit inherit;
    enum environment_defaults defaults;
    struct strv exclude;
    struct strv include_only; /* empty: no restriction */
    struct strv set;          /* "NAME=value" */
};

void environment_policy_done(struct environment_policy *policy);

/* `ret` is overwritten. */
void environment_policy_copy(const struct environment_policy *policy,
                             struct environment_policy *ret);

/* Why a variable is as it is, for `explain`. */
enum environment_reason {
    ENVIRONMENT_INHERITED,       /* passed on */
    ENVIRONMENT_SET,             /* given by the policy's `set` */
    ENVIRONMENT_PRESET,          /* given by a preset for a tool */
    ENVIRONMENT_ADDED,           /* put there by Cordon: sandbox markers, thread id */
    ENVIRONMENT_NOT_CORE,        /* dropped: inherit is core (or none) */
    ENVIRONMENT_DEFAULT_EXCLUDE, /* dropped: a default pattern */
    ENVIRONMENT_EXCLUDE,         /* dropped: a pattern of `exclude` */
    ENVIRONMENT_NOT_INCLUDED,    /* dropped: no pattern of `include_only` */
    ENVIRONMENT_RESERVED,        /* dropped: never passed on */
};

struct environment_note {
    char *name;
    enum environment_reason reason;
    char *pattern; /* the pattern that dropped it, NULL when there is none */
};

/* What happened to each name, ordered by name: one note for every variable that there was or is. */
struct environment_report {
    struct environment_note *notes;
    size_t len;
    size_t cap;
};

void environment_report_done(struct environment_report *report);
bool environment_reason_is_drop(enum environment_reason reason);
const char *environment_reason_name(enum environment_reason reason); /* "inherited", "set", ... */

enum environment_sandbox { ENVIRONMENT_SANDBOXED, ENVIRONMENT_BARE };

struct environment_request {
    const struct environment_policy *policy; /* NULL: the default policy */
    char *const *base;                       /* environ of the caller, NULL-terminated */
    char *const *presets;             /* "NAME=value", in place of what is in `base`; NULL: none */
    const char *thread_id;            /* becomes CODEX_THREAD_ID; NULL: none */
    enum environment_sandbox sandbox; /* SANDBOXED adds CORDON_SANDBOX=linux */
    enum network_access network;      /* RESTRICTED adds CORDON_SANDBOX_NETWORK_DISABLED=1 and
                                    CODEX_SANDBOX_NETWORK_DISABLED=1, and in a sandbox, unless
                                    there is a value, that tools do not try again what needs it.
                                    PROXIED adds CORDON_ and CODEX_NETWORK_PROXY_ACTIVE=1 and
                                    _NETWORK_ALLOW_LOCAL_BINDING; inherited variables that name a
                                    proxy name Cordon's */
    bool allows_local_binding;        /* PROXIED */
};

/* Where the proxy is in the command's own network: PROXY_PORT of proxy/proxy_format.h, which sandbox/linux/proxy_link.c holds it
 * against. */
#define PROXY_AT "127.0.0.1:1008"
#define NO_PROXY_FOR "localhost,127.0.0.1,::1"

/* The complete environment, ordered by name, as `ret_env` (overwritten; strv_done() by the caller).
 * `ret_report` may be NULL. An entry of `base` without "=" or with an empty name is dropped; of two
 * with the same name the first counts. */
void environment_build(const struct environment_request *request, struct strv *ret_env,
                       struct environment_report *ret_report);

/* The names of what `base` has and `env` has not, and that a default pattern is about. */
void environment_withheld(char *const *base, char *const *env, struct strv *ret);

/* What HTTPS_PROXY and its like name, as they have it. */
void environment_proxies(char *const *env, struct strv *ret);

/* Never passed on, wherever they were set: CORDON_TOKEN, CORDON_BEARER_TOKEN,
 * CORDON_LINUX_SANDBOX_EXE. */
bool environment_is_reserved(const char *name);

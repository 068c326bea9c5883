/* What a policy comes to on this host: the sandbox and the environment of commands. Made once for
 * each policy and kept until the engine is closed, with the sandbox kept warm. */
#pragma once

#include "base/err.h"
#include "base/strv.h"

struct access_map;
struct cordon_engine;
struct cordon_policy;
struct sandbox;

struct place {
    struct place *next;
    char *key;       /* the policy as text */
    char *workspace; /* clean, absolute */
    struct sandbox *sandbox;
    struct strv env;                 /* of a command */
    struct strv session_env;         /* of a model's command: exec/session_env.h */
    const struct access_map *access; /* the sandbox's, for naming denials; NULL without a sandbox */
};

/* The place of `policy`; NULL means the engine's own, or the default one before there is one. NULL
 * on failure. */
const struct place *place_find(struct cordon_engine *engine, const struct cordon_policy *policy,
                               struct err *err);
void places_free(struct place *places);

/* Where a command starts: `cwd` from the workspace, or the workspace. Caller frees. */
char *place_folder(const struct place *place, const char *cwd);

/* What a policy comes to on this host: the sandbox and the environment of commands. Made once for
 * each policy, and anew when that has come to mean something else (a file that a pattern matches is
 * there now); kept until the engine is closed, since sessions may still be in the old one, with the
 * sandbox kept warm while it is in use (workspace/idle_reaper.h). */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "libcordon/policy_copy.h"
#include "policy/access.h"
#include "policy/profile.h"

struct idle_reaper;
struct cordon_engine;
struct cordon_policy;
struct profile_overlay;
struct sandbox;

struct place {
    struct place *next;
    char *key;       /* the policy as text; NULL: of no more use for new commands */
    char *workspace; /* clean, absolute */
    struct sandbox *sandbox;
    struct strv env;           /* of a command */
    struct strv session_env;   /* of a model's command: job/job_environment.h */
    struct policy_copy policy; /* that it is of */
    struct strv set_names;     /* of the environment, what the configuration sets on purpose */
    struct strv own_paths;     /* canonical: what no answer opens */
    struct profile profile;
    struct strv roots;        /* of the workspace */
    struct access_map map;    /* what profile and roots meant, before the sandbox added to it */
    const char *profile_name; /* the profile's */
    const struct access_map *access; /* the sandbox's, for naming denials; NULL without a sandbox */
};

/* The place of `policy`; NULL means the engine's own, or the default one before there is one. NULL
 * on failure. */
const struct place *place_find(struct cordon_engine *engine, const struct cordon_policy *policy,
                               struct err *err);

/* What somebody has agreed to, for one attempt of a command: another place of the same policy, with
 * the overlay laid over its profile, or, with NULL, without any sandbox. NULL on failure. */
struct place *place_open(struct cordon_engine *engine, const struct place *like,
                         const struct profile_overlay *overlay, struct err *err);
void place_close(struct cordon_engine *engine, struct place *place);

void places_free(struct place *places, struct idle_reaper *idle_reaper);

/* Where a command starts: `cwd` from the workspace, or the workspace. Caller frees. */
char *place_folder(const struct place *place, const char *cwd);

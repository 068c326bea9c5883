/* Where a client's commands and file calls run: the sandbox that its `sandbox` object means on this
 * host. Each distinct one is made once and kept next_place.
 *
 * Two schemas are taken (spec/exec-server.md 6): that of 0.169.0 with `permissions`, and the older
 * SandboxLaunchConfig with `mode`, `policy`, `fileSystemPolicy`, `networkPolicy`,
 * `sandboxPolicyCwd`. */
#pragma once

#include "base/err.h"
#include "rpc/message.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct access_map;
struct places;
struct profile;
struct profile_overlay;
struct sandbox;

struct place {
    uint64_t number; /* of this place, and of no other before or after it */
    struct sandbox *sandbox;
    const struct access_map *access; /* of the sandbox; NULL: nothing is held back */
    const char *type;                /* "none", "linuxSeccomp": sandboxType on the wire */
    const struct profile *profile;   /* NULL: the call named none */
};

struct place_request {
    const json_t *sandbox; /* the object of the call; NULL or JSON null: none */
    const char *cwd;       /* absolute: stands in for a missing sandbox.cwd; NULL: none, as for fs/
                              calls */
    const char *tmpdir;    /* $TMPDIR of the server, never of the call: a variable that a model
                              chooses must not make a folder writable; NULL: none */
    const struct profile_overlay *widened; /* what a person allowed beyond the object; such a place
                                              is for one command only; NULL: nothing */
};

/* NULL on failure, `*ret_code` is the code for the wire then. Borrowed for the call only, unless it
 * is held: one that nobody holds may go when others are asked for. */
struct place *place_find(struct places *places, const struct place_request *request,
                         enum rpc_code *ret_code, struct err *err);

/* While anything runs in it. Every hold is ended once. A place that nobody holds for a second gives
 * back what it keeps next_place, above all the placeholders that its user can see. */
void place_hold(struct place *place);
void place_release(struct place *place);

/* `path` (clean) lies in a workspace root that the call's object named. */
bool place_has_root(const struct place *place, const char *path);

/* What no yes of a person opens: the configuration of Cordon. Canonical; borrowed. */
char *const *places_own_paths(const struct places *places);

/* The program that applies patches (PATCH_HELPER_NAME of patch/patch.h), visible in every place.
 * Borrowed; NULL when it is not installed. */
const char *places_patch_program(const struct places *places);

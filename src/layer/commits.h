/* Commits that were made in a layer with git directories (--layer-git), and how they come to the real repositories: whole,
 * as branches of a name of their own. Nothing else of a git directory ever comes out of a layer: no hook, no
 * configuration, no index, nothing that is checked out.
 *
 *     commits_list()      which branches are others in the layer; reads only
 *     commits_take()      fetches them to refs/heads/cordon/LAYER/BRANCH */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "layer/layer.h"
#include "layer/packed_refs.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct commits_branch {
    char *repository; /* the real git directory, absolute */
    char *name;       /* "main"; "HEAD": commits on no branch */
    char *target;     /* "cordon/LAYER/main" */
    char commit[COMMIT_ID_MAX + 1];
    bool is_new;   /* there is no such branch really */
    bool is_gone;  /* deleted in the layer: never taken */
    bool is_taken; /* the target is at this commit */
    size_t ahead;  /* taken: commits that the real branch (of a new one HEAD) does not have */
    char *why;     /* it was not taken: for people, ends in the remedy; NULL */
};

struct commits {
    struct commits_branch *items;
    size_t len;
    size_t cap;
    struct strv notes; /* lines for people: what is left in the layer, and why */
};

/* commits_done() by the caller. Empty for a layer without git directories. */
int commits_list(const struct layer *layer, struct commits *ret, struct err *err);

struct commits_wish {
    const char *branch; /* NULL: all */
    bool is_forced;     /* also when the target has commits that the layer does not */
    bool is_dry;        /* nothing is fetched */
};

/* Needs the layer for LAYER_CHANGE; commands in it may live. 0 also when something was left: `why`. */
int commits_take(struct layer *layer, const struct commits_wish *wish, struct commits *ret,
                 struct err *err);

void commits_done(struct commits *commits);

/* {"branches": [{"repository", "name", "target", "commit", "new", "deleted", "taken", "ahead"?, "why"?}], "notes": [...]}; a new reference. */
json_t *commits_to_json(const struct commits *commits);

/* One thing to be done with a layer, as JSON: what a server has the program cordon-layer do (main.c), because
 * its own thread neither walks nor accepts.
 *
 *     {"call": "accept", "layer": "4a0b...", "heldBy": "cordon serve (4711)",
 *      "held": true, "alive": false, "space": false,
 *      "params": {...}}                      as in schema/layer/NAME.json, but for layerId
 *  -> {"result": {...}}                      as there
 *  or {"error": {"code": "conflict", "message": "...", "reason"?: "no-layer"}}
 *
 * "held": the descriptor of the layer's lock came with the request, behind it ("space") those of the namespaces in
 * which its commands live. The answer to "open" brings the lock. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "layer/accept.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum layer_call_kind {
    LAYER_CALL_OPEN, /* takes the lock for the server, which gets it, and recovers from a kill */
    LAYER_CALL_LIST,
    LAYER_CALL_INFO,
    LAYER_CALL_CHANGES,
    LAYER_CALL_SUMMARY, /* of a step and of all: counts, and which paths */
    LAYER_CALL_DIFF,
    LAYER_CALL_READ,
    LAYER_CALL_ACCEPT,
    LAYER_CALL_DROP,
    LAYER_CALL_UNDO,
    LAYER_CALL_REFRESH,
    LAYER_CALL_SETTLE,
    LAYER_CALL_SQUASH,
    LAYER_CALL_REMOVE,
    LAYER_CALL_CLOSED, /* whether there is one; nobody here has it open */
};

/* Zero, NULL or empty is what is not given or not of its kind. */
struct layer_call {
    enum layer_call_kind kind;
    char *layer; /* id or name */
    char *held_by;
    bool is_held;
    bool is_alive;
    bool has_space;

    struct strv paths; /* absolute, clean; empty: all */
    int step;
    int accept;
    unsigned flags; /* of enum accept_flag */
    struct accept_expected *expected;
    size_t expected_len;
    char *text; /* in place of the layer's contents */
    size_t text_len;

    size_t after_root; /* the last one that was answered, of this root: */
    char *after;       /* NULL: begin */
    size_t limit;
    uint64_t offset;
    size_t context;
    enum change_side side;
    bool counts_bytes;
    char *holder;    /* LAYER_CALL_LIST: who asks, as it stands in the locks that it has */
    bool counts_all; /* LAYER_CALL_SUMMARY: beside the step, everything */
};

/* ERR_INVALID names the place, in the parameters as in the request of the client: "$.paths[1]: ...". On failure
 * nothing is to be released. */
int layer_call_parse(const json_t *request, struct layer_call *ret, struct err *err);
void layer_call_done(struct layer_call *call);

/* Descriptors that come with a request, or go with an answer; -1: none. */
struct layer_call_fds {
    int lock;
    int users;
    int mounts;
};

/* The answer; a new reference, never NULL. What it takes of `fds` is -1 afterwards. */
json_t *layer_call_perform(const struct layer_call *call, struct layer_call_fds *fds);

/* {"error": ...}; a new reference. */
json_t *layer_call_failure(const struct err *err, const char *reason);

/* Taking what a layer holds into the real files, taking that back, and throwing it away.
 *
 * Accepting a path exchanges names: the layer's file takes the place of the real one, which is kept in accepted/N
 * of the layer. What was to be done is written down before (journal.h), so that whoever opens the layer after a kill
 * can go on with it. Nothing is overwritten that was changed since the step that wrote it began (conflict.h): that
 * stays in the layer. While commands of the layer live, contents are copied and not moved: the kernel would let
 * them write into the real file by what they have open. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "layer/change.h"
#include "layer/layer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum accept_flag {
    ACCEPT_FORCE = 1, /* also what conflicts, and of a suspect layer */
    ACCEPT_MARKED =
        2, /* also what is marked (MARKS_LATER); of paths that are named one by one that is understood */
    ACCEPT_DRY_RUN = 4, /* says what would be done */
};

/* What somebody was shown of a path, so that a yes means just that. */
struct accept_expected {
    char *path; /* absolute */
    struct change_stamp layer;
};

/* Contents in place of the layer's, for a part of its hunks: the rest stays in the layer. */
struct accept_text {
    const char *path; /* absolute */
    const char *text;
    size_t len;
};

struct accept_request {
    char *const *paths; /* absolute, clean; with what lies below; NULL: all */
    unsigned flags;     /* of enum accept_flag */
    const struct accept_expected *expected;
    size_t expected_len;
    const struct accept_text *text; /* NULL: none; with just its path in `paths` */
};

/* Why a path was left as it is. */
enum left_why {
    LEFT_CONFLICT, /* the real one was changed meanwhile */
    LEFT_MARKED,   /* and was not told to be taken */
    LEFT_CHANGED,  /* it is not what was expected, or listed */
    LEFT_SPECIAL,  /* a pipe, socket or device */
    LEFT_SUSPECT,
    LEFT_BUSY,   /* commands of the layer live */
    LEFT_FAILED, /* the system refused: `detail` */
    LEFT_LATER,  /* undo: something was done to it since */
};

extern const char
    *const left_why_words[]; /* "conflict", "marked", "changed", ...; NULL-terminated */

struct left {
    char *path; /* absolute */
    enum left_why why;
    char *detail; /* for people, ends in the remedy; NULL */
};

struct accept_result {
    int accept;       /* number, to be undone by; 0: nothing was done */
    struct strv done; /* absolute paths */
    struct left *left;
    size_t left_len;
    size_t left_cap;
    struct strv problems; /* lines about what could not be looked at, as of change_list() */
};

/* 0 also when something was left: that is in the result. -1: nothing has changed, unless `err` says otherwise.
 * accept_result_done() by the caller in any case. */
int change_accept(struct layer *layer, const struct accept_request *request,
                  struct accept_result *ret, struct err *err);

/* Removes the paths from the layer; quiet only: else all of them are left (LEFT_BUSY). */
int change_drop(struct layer *layer, const struct accept_request *request,
                struct accept_result *ret, struct err *err);

/* Takes back an accept: `accept` 0 is the last one that can be. Paths as in the request; what somebody changed
 * since is left alone (LEFT_LATER). What is taken back is in the layer again, and can be accepted once more. */
int change_undo(struct layer *layer, int accept, const struct accept_request *request,
                struct accept_result *ret, struct err *err);

void accept_result_done(struct accept_result *result);

/* {"acceptId"?, "done": [...], "doneBase64"?: [...], "left": [{"path", "pathBase64"?, "reason", "detail"?}], "problems"?: [...]}; a new reference. */
json_t *accept_result_to_json(const struct accept_result *result);

/* Of an accept, for lists: when, how many paths, whether it can be undone; newest first. */
struct accept_info {
    int number;
    struct timespec when;
    size_t paths;
    bool is_undone;
};
int layer_accepts(const struct layer *layer, struct accept_info **ret, size_t *ret_len,
                  struct err *err);

/* After a kill: goes on with what was decided, and takes back what was not. By layer_open(LAYER_CHANGE), and by each of the others
 * above before it begins. */
int accept_recover(struct layer *layer, struct err *err);

/* Removes from the layer what equals the real files: contents, type, permissions; and steps in which nothing is then
 * (layer_tidy()). Quiet only. The number of the paths in `ret_settled`. */
int change_settle(struct layer *layer, size_t *ret_settled, struct err *err);

/* An accept of which nothing is left to be undone, and those older than `keep`, give their room back. */
int layer_forget_accepts(struct layer *layer, size_t keep, struct err *err);

/* The layer of `cordon run`: what --layer and --undo mean, and what becomes of the changes at the end. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "cli/options.h"
#include "layer/layer.h"

#include <stdbool.h>

struct buf;
struct config;
struct json_t;
struct layer_words;
struct policy_options;
struct run_audit;

enum layer_end {
    LAYER_END_OF_CONFIG,
    LAYER_END_ASK,
    LAYER_END_KEEP,
    LAYER_END_ACCEPT,
    LAYER_END_DROP
};

/* Zeroed: no layer. Texts are borrowed from argv. */
struct layer_options_given {
    bool is_wanted;     /* --layer */
    const char *name;   /* NULL: a new one without a name */
    struct strv direct; /* --layer-direct */
    bool has_git;       /* --layer-git */
    bool is_undoable;   /* --undo */
    bool is_never;      /* --no-undo */
    unsigned at_end;    /* of enum layer_end */
};

/* A table of a struct layer_options_given. */
extern const struct option run_layer_options[];

/* Zeroed: there is none. */
struct run_layer {
    const struct layer_options_given *given;
    struct layer *layer;
    enum layer_end at_end;
    int last_step;    /* before the command; 0: none */
    bool is_undoable; /* all is accepted at the end, to be undone */
    bool is_default;  /* by the configuration alone */
    bool is_dropped;  /* it goes when nothing uses it any more */
    bool is_quiet;    /* of what is as it was wanted nothing is said */
};

/* Opens or makes it, when the options or the configuration want one; `dir`: where the command runs. `*ret`: `given` and
 * `is_quiet` are filled in. */
int run_layer_open(struct run_layer *ret, const struct policy_options *policy,
                   const struct config *config, const char *dir, struct err *err);

/* The command has run to its end, and nothing runs in the layer. Does what is to be done at the end, and says what came of it. With
 * `wants_json` nobody is asked, and it is what the document has of it as "changes". NULL: there is no layer. */
struct json_t *run_layer_end(struct run_layer *layer, struct run_audit *audit, const char *cwd,
                             bool wants_json);

void run_layer_done(struct run_layer *layer); /* no workspace uses it any more */

/* The layer here whose last accept can be undone: the one that was used last. As layer_words_open(). */
struct layer *run_layer_open_undoable(struct layer_words *words, const char *held_by,
                                      struct err *err);

/* Each line of the text on stderr, as a line of ours. */
void run_layer_say_lines(const struct buf *text);

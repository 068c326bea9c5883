/* The arguments of the commands about layers, [LAYER] [PATH]...: which layer is meant, and what of it. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "layer/change.h"
#include "layer/layer.h"

#include <stdbool.h>

struct command;

struct layer_words {
    char *cwd;         /* absolute */
    char *layer;       /* id; NULL: none was named: the one that was used last here */
    struct strv paths; /* absolute, clean; in the layer's folders once it is open */
    char **behind;     /* what follows "--", NULL-terminated; NULL: nothing does */
};

/* Reads options, which may stand anywhere before "--", into `data`, and the other words. The first one is a layer if one
 * has that name or id (or is the only one whose id begins with it), and has no slash; all others are paths; those behind "--"
 * are in `behind`. False when there is nothing more to do: `*ret_status` is to be returned. layer_words_done() in any case. */
bool layer_words_parse(const struct command *command, char **argv, void *data,
                       struct layer_words *ret, int *ret_status);
void layer_words_done(struct layer_words *words);

/* `held_by` static: "cordon accept". NULL on failure, also for a path in none of its folders. */
struct layer *layer_words_open(struct layer_words *words, enum layer_use use, const char *held_by,
                               struct err *err);

/* The paths as a request wants them; NULL: none, so all. */
char *const *layer_words_paths(const struct layer_words *words);

/* Tells of each path at which nothing is changed, by what was found (absolute paths). How many these are. */
size_t layer_words_tell_idle(const struct layer_words *words, const struct layer *layer,
                             const struct strv *found);

/* The same for what is listed. */
size_t layer_words_tell_unchanged(const struct layer_words *words, const struct layer *layer,
                                  const struct changes *changes);

/* As a person would write it from `cwd`: caller frees. Any bytes, not made plain. */
char *layer_shown_path(const char *cwd, const char *path);

/* How the layer is named in a command that is proposed: its name, else the beginning of its id. Caller frees. */
char *layer_shown_name(const struct layer *layer);

/* A path as a word of a command that is proposed: quoted where a shell wants it. Caller frees. */
char *layer_shell_word(const char *text);

void layer_auto(struct layer **slot); /* layer_close() */

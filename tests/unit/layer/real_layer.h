/* Layers on the disk, with real mounts, in a scratch directory; commands in them are shells that join the namespaces, with
 * nothing else of a sandbox around them. */
#pragma once

#include "layer/layer.h"
#include "policy/access.h"

#include <stdbool.h>

struct place {
    char *dir;  /* canonical */
    char *root; /* dir/root: what layers lie over, with a few files */
    struct access_map map;
};

/* Layers are kept below `dir` from now on. False: no overlay can be had here, with a line about it. */
bool place_init(struct place *place);
void place_done(struct place *place);

struct layer *place_layer(struct place *place, const char *name); /* made, and covers the root */

/* A command in it, which is a step of its own when nothing else lives. Its exit status. */
int place_run(struct layer *layer, const char *script);

/* The next step is mounted ahead. */
void place_prepare(struct layer *layer);

/* Started and not waited for. */
struct living {
    struct layer *layer;
    pid_t pid;
    int pipe; /* closing it ends `read line` */
};
void living_start(struct layer *layer, const char *script, struct living *ret);
void living_join(struct layer *layer, const char *script, struct living *ret); /* without enter() */
int living_end(struct living *living);

/* The file below dir has just this text. */
void assert_text(const struct place *place, const char *path, const char *text);
void assert_none(const struct place *place, const char *path);
char *place_text(const struct place *place, const char *path); /* NULL: there is none */

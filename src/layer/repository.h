/* The git directories of a layer that has them (layer_has_git()), each with what the layer would change in it. Only those that
 * are real: a repository that is new in a layer is a folder like any other. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "layer/change.h"
#include "layer/layer.h"

#include <stddef.h>

struct repository {
    const struct layer *layer;
    size_t root;
    char *path;             /* of the git directory, relative to the root */
    char *absolute;         /* and as it is really */
    int real;               /* O_PATH descriptor of it */
    struct changes changes; /* all of it */
};

struct repositories {
    struct repository *items;
    size_t len;
    size_t cap;
};

/* repositories_done() by the caller in any case. */
int repositories_find(const struct layer *layer, struct repositories *ret, struct err *err);
void repositories_done(struct repositories *repositories);

/* What a change is about, relative to the git directory. */
const char *repository_name_in(const struct repository *repository, const struct change *change);

/* NULL: the layer has nothing to do with it. */
const struct change *repository_change(const struct repository *repository, const char *name);

/* The text of a file that is really there, and as commands in the layer have it; ERR_NOT_FOUND also of what is no
 * file. */
int repository_read_real(const struct repository *repository, const char *name, size_t max,
                         struct buf *ret, struct err *err);
int repository_read(const struct repository *repository, const char *name, size_t max,
                    struct buf *ret, struct err *err);

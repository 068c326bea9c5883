/* A layer of plain directories, for tests that mount nothing: real/ and a directory for each step, as overlayfs would have left
 * it. Stands in for layer.c. */
#pragma once

#include "layer/change.h"
#include "layer/layer.h"

/* In a scratch directory ($TMPDIR names the file system), with `steps` steps. */
struct layer *fake_layer_new(size_t steps);
void fake_layer_free(struct layer *layer);

/* Each makes the directories above, too. `step` 0: what is real. */
char *fake_path(const struct layer *layer, size_t step, const char *path); /* caller frees */
void fake_file(const struct layer *layer, size_t step, const char *path, const char *text);
void fake_bytes(const struct layer *layer, size_t step, const char *path, const void *data,
                size_t len);
void fake_dir(const struct layer *layer, size_t step, const char *path);
void fake_opaque(const struct layer *layer, size_t step, const char *path);
void fake_gone(const struct layer *layer, size_t step, const char *path);
void fake_link(const struct layer *layer, size_t step, const char *path, const char *target);
void fake_pipe(const struct layer *layer, size_t step, const char *path);
void fake_mode(const struct layer *layer, size_t step, const char *path, mode_t mode);
void fake_attribute(const struct layer *layer, size_t step, const char *path, const char *name,
                    const char *value);

/* The step begins now: what is changed later is newer. */
void fake_begin(struct layer *layer, size_t step);

/* Lists, and fails the test unless these are the changes: a line each, "M a/file", with more words where they are not as
 * usual: "from=PATH", "marks=xr", "by=make", "step=2", "first=1" (1 both), "binary", "copy", "edited", "within". NULL for
 * no query. */
void assert_changes(const struct layer *layer, const struct change_query *query,
                    const char *wanted);

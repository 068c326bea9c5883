/* Trees of files for tests of patches: a JSON object {"path": "text"}, as a source in memory and as
 * a folder on the disk. */
#pragma once

#include "patch/changes.h"
#include "patch/dir.h"

#include <jansson.h>

/* Reads from `tree`, which is borrowed, with the messages of the real one. */
struct source tree_source(json_t *tree);

/* The tree after the changes; new reference. */
json_t *tree_changed(const json_t *tree, const struct changes *changes);

/* A new folder below /tmp that holds the tree. Fails the test when it cannot be made; the path is
 * to be given to tree_remove(). */
char *tree_make(const json_t *tree);
void tree_remove(char *path);

/* Writes or replaces one file below the folder, and the folders on the way. */
void tree_put(const char *folder, const char *path, const char *text);

/* Everything in the folder: files as text, empty folders as {}, links as {"link": "TARGET"}, other
 * things as null. New reference. */
json_t *tree_read(const char *folder);

/* The patch, applied to the folder as a program does it. */
int tree_patch(const char *folder, const char *text, struct err *err);

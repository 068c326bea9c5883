/* Trees of files for tests of patches: a JSON object {"path": "text"}, as a source in memory and as
 * a directory on the disk. */
#pragma once

#include "patch/changes.h"
#include "patch/dir.h"

#include <jansson.h>

/* Reads from `tree`, which is borrowed, with the messages of the real one. */
struct source tree_source(json_t *tree);

/* The tree after the changes; new reference. */
json_t *tree_changed(const json_t *tree, const struct changes *changes);

/* A new directory below /tmp that holds the tree. Fails the test when it cannot be made; the path is
 * to be given to tree_remove(). */
char *tree_make(const json_t *tree);
void tree_remove(char *path);

/* Writes or replaces one file below the directory, and the directories on the way. */
void tree_put(const char *dir, const char *path, const char *text);

/* Everything in the directory: files as text, empty directories as {}, links as {"link": "TARGET"}, other
 * things as null. New reference. */
json_t *tree_read(const char *dir);

/* The patch, applied to the directory as a program does it. */
int tree_patch(const char *dir, const char *text, struct err *err);

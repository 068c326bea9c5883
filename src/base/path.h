/* Paths as text, compared by component and never by prefix. None of these touches the disk. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Absolute, no empty, "." or ".." component, no trailing slash (but "/" itself). */
bool path_is_clean(const char *path);

/* Lexical clean-up of `path`, made absolute with `base` (itself absolute) when it is relative.
 * ".." removes the component before it, at the root it stays at the root. Caller frees. */
char *path_clean(const char *base, const char *path);

/* `dir` joined with the relative `name`; caller frees. */
char *path_join(const char *dir, const char *name);

/* Both clean, or relative to the same directory. True when `path` is `root` or lies below it. */
bool path_is_within(const char *path, const char *root);

/* Number of components of a clean path; "/" has none. */
size_t path_depth(const char *path);

/* Order in which a parent comes right before everything below it: bytewise, with '/' first. */
int path_compare(const char *a, const char *b);

/* What follows the last slash. */
const char *path_name(const char *path);

/* The directory of a clean path; caller frees. "/" is its own parent. */
char *path_parent(const char *path);

/* What is Cordon's own in the access map of every workspace, whatever its profile says: what is hidden, what is not
 * for commands to write, what is seen. */
#pragma once

#include "base/err.h"

#include <stddef.h>

struct access_map;
struct host_view;
struct strv;

/* What Cordon keeps to itself in what belongs to it (base/user_token.h) no command sees. What cannot be looked
 * at is closed. */
int own_files_hide(const struct strv *own, const struct host_view *view, struct access_map *map,
                   struct err *err);

/* Appends to `ret` the canonical paths of what belongs to Cordon, and of what links in its folders of rules and
 * presets lead to: what sandboxes of `map` have to hold. ERR_FORBIDDEN when a command could turn such a link. */
int own_files_guard(const struct strv *own, const struct access_map *map, struct strv *ret,
                    struct err *err);

/* Hides those of the files that are there, in `map` if it is not NULL. How many there are. */
size_t own_files_hide_secrets(const struct strv *secrets, struct access_map *map);

/* A program of Cordon's can be executed. */
void own_files_show(const char *program, const char *why, struct access_map *map);

/* The directories that names are kept out of, and whether a name is one of those. */
#pragma once

#include "guard/place.h"

/* Looks the directories up in the command's own view, once its file system stands. On failure
 * nothing is done on behalf of the command: what has to be done here is refused. */
void folders_open(struct command *command);
void folders_close(struct command *command);

/* The directory lies in a root (by its canonical path), where the kernel refuses what the guard is there
 * to do. Nothing is allowed by this. */
bool folder_is_guarded(const struct command *command, const char *path);

/* The mount is that of a root: what lies on it is writable. */
bool folder_is_mount_of_root(const struct command *command, uint64_t mount);

/* It is a root itself, whose name belongs to the directory above. */
bool folder_is_root(const struct command *command, const struct identity *identity);

/* Names that are spelled differently may be the same in the directory that is open as `fd`; or it cannot be told. */
bool folder_folds_case(int fd);

/* The one may be the other's name where case is folded; `held` is ASCII. */
bool folder_may_be(const char *spelled, const char *held);

/* The file system numbers its directories by itself, each differently. */
bool folder_has_own_numbers(int fd);

/* Nothing may be created under this name. `ret_entry` is the entry that says so. The place may be
 * locked by this, until it is done. */
bool folder_refuses(const struct command *command, struct place *place, int *ret_entry);

/* The same for a name in whatever directory: none that is refused anywhere passes. */
bool folder_refuses_name(const struct command *command, const char *name);

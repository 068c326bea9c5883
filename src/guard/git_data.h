/* What git believes of the files by which it is led, and whether what a command has written may take
 * their place. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What git takes a HEAD for: a directory with another one would be no repository any more. */
bool git_head_is_whole(const char *text, size_t len);

/* Between the two configurations nothing differs but data: what `git init` writes, what the branches
 * follow among the remotes that are there, and the user's name. */
bool git_config_is_same(const char *old, size_t old_len, const char *new, size_t new_len);

/* How long the hashes of the repository are, which an index does not say; 0: it cannot be told. What the configuration
 * says of it is no data: it is what a command cannot change. */
size_t git_config_hash_bytes(const char *config, size_t len);

/* Each submodule that the index names is taken. false: one was not, or it is split, or names what git would make outside of
 * the work tree, or no index. */
bool git_index_each_link(const void *bytes, size_t len, size_t hash,
                         bool (*take)(void *data, const char *path), void *data);

/* git's index, entry by entry, as gitformat-index(5) has it in versions 2 to 4. Pure, allocates nothing: the
 * guard reads what a command wants to put in its place, policy what is there before one starts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GIT_HASH_BYTES = 20, GIT_HASH_BYTES_SHA256 = 32 };

enum { GIT_INDEX_BYTES_MAX = 256 << 20 }; /* that is read */

enum git_index_mode {
    GIT_MODE_TYPE = 0170000,
    GIT_MODE_FILE = 0100000,
    GIT_MODE_SYMLINK = 0120000,
    GIT_MODE_GITLINK = 0160000, /* a submodule */
};

/* Who reads; a false ends the reading. */
struct git_index_visitor {
    /* `path` is relative to the work tree; empty in a split index, for an entry of its shared one. */
    bool (*entry)(void *data, const char *path, uint32_t mode);
    bool (*extension)(void *data, const char name[static 4], const unsigned char *bytes,
                      size_t size);
    void *data;
};

/* Of `len` bytes, with hashes of `hash` bytes, which an index does not say. false: malformed, or a
 * visitor said so. */
bool git_index_read(const void *bytes, size_t len, size_t hash,
                    const struct git_index_visitor *visitor);

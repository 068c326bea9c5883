/* The arguments of an exec, read out of the caller's memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARGV_PAGE = 4096 }; /* the smallest that there are: what is mapped is mapped by whole ones */

/* Where it is read from. */
struct memory {
    /* The page that begins at `address`; false when there is none. */
    bool (*read)(void *data, uint64_t address, char ret[ARGV_PAGE]);
    void *data;
};

struct argv {
    uint32_t count;
    size_t len;        /* of the strings, one behind the other, NUL-terminated each */
    bool is_truncated; /* there are more, or they could not be read */
};

/* The strings that the array at `address` (0: none) points to, as far as they fit into `size` bytes, the
 * last one cut off if need be. */
struct argv argv_read(const struct memory *memory, uint64_t address, char *ret, size_t size);

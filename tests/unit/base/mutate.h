/* Broken copies of a good message, always the same ones. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { MUTATIONS = 10000, MUTATED_MAX = 4096 };

/* The `nth` of `len` bytes (at most half of MUTATED_MAX): a few bytes are changed, repeated, or cut away. Returns
 * how many there are in `ret`. */
size_t mutate(const void *bytes, size_t len, unsigned nth, uint8_t ret[MUTATED_MAX]);

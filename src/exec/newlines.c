/* See newlines.h. Sixteen bytes at a time with the vector types of gcc and clang: a comparison
 * gives -1 in each lane that is equal, and each lane counts up to 255 before it has to be emptied.
 * Wider vectors gcc 12 takes apart into bytes where the machine has none (measured: 30 times
 * slower). */
#include "exec/newlines.h"

#include <stdint.h>
#include <string.h>

enum { LANES = 16, ROUNDS_MAX = 255 };

typedef uint8_t lanes __attribute__((vector_size(LANES)));

static size_t newlines_count_rounds(const char *bytes, size_t rounds)
{
    lanes sums = {0};
    size_t count = 0;

    for (size_t i = 0; i < rounds; i++) {
        lanes part;

        memcpy(&part, bytes + i * LANES, LANES);
        sums -= (lanes)(part == '\n');
    }
    for (size_t i = 0; i < LANES; i++)
        count += sums[i];
    return count;
}

size_t newlines_count(const char *bytes, size_t len)
{
    size_t count = 0;

    while (len >= LANES) {
        size_t rounds = len / LANES < ROUNDS_MAX ? len / LANES : ROUNDS_MAX;

        count += newlines_count_rounds(bytes, rounds);
        bytes += rounds * LANES;
        len -= rounds * LANES;
    }
    for (size_t i = 0; i < len; i++)
        count += bytes[i] == '\n';
    return count;
}

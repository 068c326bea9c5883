/* See newlines.h. Sixteen bytes at a time with the vector types of gcc and clang: a comparison
 * gives -1 in each lane that is equal, and each lane counts up to 255 before it has to be emptied.
 * Wider vectors gcc 12 takes apart into bytes where the machine has none (measured: 30 times
 * slower). */
#include "output/newlines.h"

#include <stdint.h>
#include <string.h>

enum { LANES = 16, STEP = 4 * LANES, ROUNDS_MAX = 63 };

typedef uint8_t lanes __attribute__((vector_size(LANES)));

static lanes equal(const char *bytes)
{
    lanes part;

    memcpy(&part, bytes, LANES);
    return (lanes)(part == '\n');
}

static size_t newlines_count_rounds(const char *bytes, size_t rounds)
{
    lanes sums = {0};
    size_t count = 0;

    for (; rounds; rounds--, bytes += STEP)
        sums -= (equal(bytes) + equal(bytes + LANES)) +
                (equal(bytes + 2 * LANES) + equal(bytes + 3 * LANES));
    for (size_t i = 0; i < LANES; i++)
        count += sums[i];
    return count;
}

size_t newlines_count(const char *bytes, size_t len)
{
    size_t count = 0;

    while (len >= STEP) {
        size_t rounds = len / STEP < ROUNDS_MAX ? len / STEP : ROUNDS_MAX;

        count += newlines_count_rounds(bytes, rounds);
        bytes += rounds * STEP;
        len -= rounds * STEP;
    }
    for (size_t i = 0; i < len; i++)
        count += bytes[i] == '\n';
    return count;
}

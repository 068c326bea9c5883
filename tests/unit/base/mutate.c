#include "mutate.h"

#include <string.h>

/* xorshift64 */
static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const uint8_t favourites[] = {0,    1,   3,   5,   0x16, 0x7f, 0x80, 0xff, ' ',
                                     '\t', ':', '/', '0', 'f',  ';',  ',',  '\r', '\n'};

size_t mutate(const void *bytes, size_t len, unsigned nth, uint8_t ret[MUTATED_MAX])
{
    uint64_t state = (nth + 1) * 0x9e3779b97f4a7c15u;
    size_t have = len;

    memcpy(ret, bytes, len);
    for (unsigned changes = (unsigned)(next(&state) % 4 + 1); changes && have; changes--) {
        size_t at = next(&state) % have;
        size_t some = next(&state) % 8 + 1;

        switch (next(&state) % 4) {
        case 0:
            ret[at] = favourites[next(&state) % sizeof favourites];
            break;
        case 1:
            ret[at] ^= (uint8_t)(1u << next(&state) % 8);
            break;
        case 2:
            some = some < have - at ? some : have - at;
            memmove(ret + at, ret + at + some, have - at - some);
            have -= some;
            break;
        default:
            some = some < have - at ? some : have - at;
            memmove(ret + at + some, ret + at, have - at);
            have += some;
            break;
        }
    }
    return have;
}

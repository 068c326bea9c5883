/* See match.h. Knuth, Morris and Pratt (SIAM J. Comput. 6, 1977): `fail[i]` is the length of the
 * longest text that both begins and ends the first i bytes, not all of them. The state between two
 * bytes is one number, which is what makes chunk borders invisible. While nothing has matched,
 * memchr() looks for the first byte. */
#include "output/match.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct match {
    char *text;
    size_t len;
    uint16_t *fail;
    size_t state[STREAM_COUNT]; /* bytes of the text that the stream ends with */
};

_Static_assert(MATCH_TEXT_MAX <= UINT16_MAX, "an entry of `fail` holds a length");

static size_t match_step(const struct match *match, size_t state, char byte)
{
    while (state && match->text[state] != byte)
        state = match->fail[state];
    return state + (match->text[state] == byte);
}

struct match *match_new(const char *text, size_t len, struct err *err)
{
    struct match *match;

    if (!len || len > MATCH_TEXT_MAX) {
        err_set(err, ERR_INVALID, "the text to wait for has %zu bytes; 1 to %d are possible", len,
                MATCH_TEXT_MAX);
        return NULL;
    }
    match = alloc_zero(1, sizeof *match);
    match->text = alloc_zero(len, 1);
    memcpy(match->text, text, len);
    match->len = len;
    match->fail = alloc_zero(len + 1, sizeof *match->fail);
    for (size_t i = 1; i < len; i++)
        match->fail[i + 1] = (uint16_t)match_step(match, match->fail[i], text[i]);
    return match;
}

void match_free(struct match *match)
{
    if (!match)
        return;
    free(match->text);
    free(match->fail);
    free(match);
}

bool match_feed(struct match *match, enum stream stream, const char *bytes, size_t len,
                size_t *ret_len)
{
    size_t state = match->state[stream];

    for (size_t i = 0; i < len; i++) {
        const char *first = state ? bytes + i : memchr(bytes + i, match->text[0], len - i);

        if (!first)
            break;
        i = (size_t)(first - bytes);
        state = match_step(match, state, *first);
        if (state == match->len) {
            match->state[stream] = 0;
            if (ret_len)
                *ret_len = i + 1;
            return true;
        }
    }
    match->state[stream] = state;
    return false;
}

void match_reset(struct match *match)
{
    memset(match->state, 0, sizeof match->state);
}

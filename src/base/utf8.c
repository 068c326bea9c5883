/* UTF-8: one function, utf8_next(), knows what is well-formed; the others walk with it.
 *
 * Only the second byte of a sequence has a range that depends on the first one (that is where
 * overlong forms, surrogates and values above U+10FFFF are excluded), so one table row per kind of
 * first byte says everything. The maximal subpart of an ill-formed sequence is what was accepted
 * before the first byte that does not fit, at least one byte; that byte begins the next sequence.
 */
#include "base/utf8.h"

#include "base/buf.h"

#include <stdint.h>
#include <string.h>

enum { UTF8_TAIL_MAX = 3 };

/* Unicode Standard 15, table 3-7, rows of more than one byte */
static const struct utf8_row {
    uint8_t first_min, first_max;
    uint8_t second_min, second_max;
    uint8_t len;
} utf8_rows[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

enum utf8_kind utf8_next(const char *text, size_t len, size_t *ret_len)
{
    const uint8_t *bytes = (const uint8_t *)text;
    const struct utf8_row *row = utf8_rows;
    const struct utf8_row *end = utf8_rows + sizeof utf8_rows / sizeof *utf8_rows;
    size_t n = 1;

    *ret_len = 1;
    if (bytes[0] < 0x80)
        return UTF8_VALID;
    while (row < end && (bytes[0] < row->first_min || bytes[0] > row->first_max))
        row++;
    if (row == end)
        return UTF8_INVALID;
    for (uint8_t min = row->second_min, max = row->second_max; n < row->len; n++) {
        *ret_len = n;
        if (n == len)
            return UTF8_INCOMPLETE;
        if (bytes[n] < min || bytes[n] > max)
            return UTF8_INVALID;
        min = 0x80;
        max = 0xbf;
    }
    *ret_len = n;
    return UTF8_VALID;
}

/* Bytes of ASCII in front. Output of commands is mostly that: eight at a time. */
static size_t utf8_ascii_len(const char *text, size_t len)
{
    size_t i = 0;

    for (uint64_t word; len - i >= sizeof word; i += sizeof word) {
        memcpy(&word, text + i, sizeof word);
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    while (i < len && (uint8_t)text[i] < 0x80)
        i++;
    return i;
}

size_t utf8_valid_len(const char *text, size_t len, size_t *ret_tail)
{
    enum utf8_kind kind = UTF8_VALID;
    size_t step = 0;
    size_t i = 0;

    while (kind == UTF8_VALID && i + step < len) {
        i += step;
        step = utf8_ascii_len(text + i, len - i);
        if (step == 0)
            kind = utf8_next(text + i, len - i, &step);
    }
    if (kind == UTF8_VALID)
        i += step;
    if (ret_tail)
        *ret_tail = kind == UTF8_INCOMPLETE ? step : 0;
    return i;
}

size_t utf8_torn_len(const char *text, size_t len)
{
    for (size_t back = 1; back <= UTF8_TAIL_MAX && back <= len; back++) {
        size_t step;

        if (((uint8_t)text[len - back] & 0xc0) == 0x80)
            continue;
        return utf8_next(text + len - back, back, &step) == UTF8_INCOMPLETE ? back : 0;
    }
    return 0;
}

bool utf8_is_valid(const char *text, size_t len)
{
    return utf8_valid_len(text, len, NULL) == len;
}

bool utf8_append_character(struct buf *buf, uint32_t c)
{
    const char bytes[] = {(char)(c < 0x80      ? c
                                 : c < 0x800   ? 0xc0 | c >> 6
                                 : c < 0x10000 ? 0xe0 | c >> 12
                                               : 0xf0 | c >> 18),
                          (char)(0x80 | (c >> 12 & 0x3f)), (char)(0x80 | (c >> 6 & 0x3f)),
                          (char)(0x80 | (c & 0x3f))};
    size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    char text[4] = {bytes[0]};

    memcpy(text + 1, bytes + 4 - more, more);
    return buf_append(buf, text, more + 1);
}

bool utf8_append_lossy(struct buf *buf, const char *text, size_t len)
{
    const size_t before = buf->len;
    size_t i = 0;

    while (i < len) {
        size_t step = utf8_valid_len(text + i, len - i, NULL);
        bool fits;

        if (step) {
            fits = buf_append(buf, text + i, step);
        } else {
            utf8_next(text + i, len - i, &step);
            fits = buf_append_str(buf, "\xef\xbf\xbd");
        }
        if (!fits) {
            buf->len = before;
            if (buf->data)
                buf->data[before] = '\0';
            return false;
        }
        i += step;
    }
    return true;
}

size_t utf8_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    for (size_t back = 1; back <= UTF8_TAIL_MAX && back <= max; back++) {
        size_t step;

        if (((uint8_t)text[max - back] & 0xc0) == 0x80)
            continue;
        if (utf8_next(text + max - back, len - (max - back), &step) == UTF8_VALID && step > back)
            return max - back;
        break;
    }
    return max;
}

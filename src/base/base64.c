/* Base64 in both directions. Groups of four characters are decoded without looking at errors one by
 * one: a character outside the alphabet has a table value with the high bit set, which survives
 * being or-ed with its neighbours, and only a group that shows it is searched for the place. The
 * last group is the only one that may hold padding, so it goes through a function of its own. */
#include "base/base64.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_encoded_len(size_t len)
{
    return (len / 3 + (len % 3 != 0)) * 4;
}

static void base64_encode_group(uint32_t bits, char *ret_text)
{
    ret_text[0] = alphabet[bits >> 18];
    ret_text[1] = alphabet[bits >> 12 & 63];
    ret_text[2] = alphabet[bits >> 6 & 63];
    ret_text[3] = alphabet[bits & 63];
}

/* Two characters for every 12 bits, as they lie in memory: half the look-ups, and output of
 * commands is encoded by the gigabyte. */
static const uint16_t *base64_pairs(void)
{
    static uint16_t pairs[4096];
    static bool is_filled;

    if (!is_filled) {
        for (size_t i = 0; i < 4096; i++)
            memcpy(&pairs[i], (const char[]){alphabet[i >> 6], alphabet[i & 63]}, 2);
        is_filled = true;
    }
    return pairs;
}

/* Six bytes to eight characters; reads eight. */
static void base64_encode_six(const uint16_t *pairs, const uint8_t *in, char *ret_text)
{
    uint64_t bits;
    uint16_t out[4];

    memcpy(&bits, in, sizeof bits);
    bits = be64toh(bits);
    out[0] = pairs[bits >> 52];
    out[1] = pairs[bits >> 40 & 4095];
    out[2] = pairs[bits >> 28 & 4095];
    out[3] = pairs[bits >> 16 & 4095];
    memcpy(ret_text, out, sizeof out);
}

void base64_encode(const void *data, size_t len, char *ret_text)
{
    const uint16_t *pairs = base64_pairs();
    const uint8_t *in = data;

    for (; len >= 8; len -= 6, in += 6, ret_text += 8)
        base64_encode_six(pairs, in, ret_text);
    for (; len >= 3; len -= 3, in += 3, ret_text += 4)
        base64_encode_group((uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2], ret_text);
    if (len) {
        base64_encode_group((uint32_t)in[0] << 16 | (len == 2 ? (uint32_t)in[1] << 8 : 0),
                            ret_text);
        ret_text[3] = '=';
        if (len == 1)
            ret_text[2] = '=';
        ret_text += 4;
    }
    *ret_text = '\0';
}

/* Value of every character, 0x80 for those outside the alphabet. */
static const uint8_t *base64_values(void)
{
    static uint8_t values[256];
    static bool is_filled;

    if (!is_filled) {
        memset(values, 0x80, sizeof values);
        for (size_t i = 0; i < 64; i++)
            values[(uint8_t)alphabet[i]] = (uint8_t)i;
        is_filled = true;
    }
    return values;
}

static size_t base64_padding(const char *text, size_t len)
{
    if (len < 4 || text[len - 1] != '=')
        return 0;
    return text[len - 2] == '=' ? 2 : 1;
}

size_t base64_decoded_len(const char *text, size_t len)
{
    return len / 4 * 3 - base64_padding(text, len);
}

/* Names the first character from `at` on that is not of the alphabet, or else the early end. */
static int base64_fail(const char *text, size_t at, size_t len, struct err *err)
{
    const uint8_t *values = base64_values();

    while (at < len && !(values[(uint8_t)text[at]] & 0x80))
        at++;
    if (at == len)
        return err_set(err, ERR_INVALID,
                       "base64: ends early, at byte %zu: the length must be a multiple of 4", at);
    if (text[at] == '=')
        return err_set(err, ERR_INVALID, "base64: misplaced padding (=) at byte %zu", at);
    return err_set(err, ERR_INVALID,
                   "base64: byte %zu (0x%02x) is not one of A-Z a-z 0-9 + / or final =", at,
                   (uint8_t)text[at]);
}

/* The last group, of which `padding` characters are '='. */
static int base64_decode_last(const char *text, size_t at, size_t padding, uint8_t *out,
                              struct err *err)
{
    const uint8_t *values = base64_values();
    const size_t used = 4 - padding;
    uint32_t bits = 0;

    for (size_t i = 0; i < 4; i++) {
        uint8_t value = i < used ? values[(uint8_t)text[at + i]] : 0;

        if (value & 0x80)
            return base64_fail(text, at + i, at + 4, err);
        bits = bits << 6 | value;
    }
    if (bits & ((UINT32_C(1) << 8 * padding) - 1))
        return err_set(err, ERR_INVALID,
                       "base64: byte %zu ('%c') sets bits that its padding leaves unused",
                       at + used - 1, text[at + used - 1]);
    for (size_t i = 0; i < 3 - padding; i++)
        out[i] = (uint8_t)(bits >> (16 - 8 * i));
    return 0;
}

int base64_decode(const char *text, size_t len, void *ret_data, struct err *err)
{
    const uint8_t *values = base64_values();
    const uint8_t *in = (const uint8_t *)text;
    uint8_t *out = ret_data;
    size_t at = 0;

    if (len % 4)
        return base64_fail(text, 0, len, err);
    for (; len - at > 4; at += 4, out += 3) {
        uint8_t a = values[in[at]], b = values[in[at + 1]];
        uint8_t c = values[in[at + 2]], d = values[in[at + 3]];

        if ((a | b | c | d) & 0x80)
            return base64_fail(text, at, len, err);
        out[0] = (uint8_t)(a << 2 | b >> 4);
        out[1] = (uint8_t)(b << 4 | c >> 2);
        out[2] = (uint8_t)(c << 6 | d);
    }
    return len ? base64_decode_last(text, at, base64_padding(text, len), out, err) : 0;
}

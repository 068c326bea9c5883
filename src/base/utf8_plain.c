/* utf8_plain(). Two kinds of characters are shown by their number: those that command a terminal or are not
 * seen, wherever they stand; and those that pass for others, by the word they are in. A word is what stands
 * between blanks and ASCII punctuation:
 *
 *     in a word with Latin letters   letters of scripts that have some alike: p<U+0430>ypal
 *     in a word of its own           the same, if all of them look like Latin ones: <U+0441><U+0440>
 *     anywhere                       letters made of Latin ones (mathematical, full width), slashes, dots
 *                                    and semicolons that are none; dashes beside letters and digits; Hebrew, Arabic and
 *                                    Thai marks without a letter, or more than two upon one
 *
 * So a name that is Cyrillic, Greek, Hebrew or Chinese altogether stays as it is. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct range {
    uint32_t first, last;
};

/* Unicode 15: control characters; Default_Ignorable_Code_Point; what ends a line, turns its direction or
 * annotates; spaces (Zs) but U+0020, and what looks like one; marks that are drawn over other characters, in
 * the blocks that are for any script; private use and noncharacters; planes in which
 * nothing is assigned. */
static const struct range harmful[] = {
    {0x00, 0x1f},       {0x7f, 0xa0},       {0xad, 0xad},        {0x300, 0x36f},
    {0x483, 0x489},     {0x61c, 0x61c},     {0x115f, 0x1160},    {0x1680, 0x1680},
    {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x1ab0, 0x1aff},    {0x1dc0, 0x1dff},
    {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},    {0x20d0, 0x20ff},
    {0x2800, 0x2800},   {0x3000, 0x3000},   {0x3164, 0x3164},    {0xe000, 0xf8ff},
    {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},   {0xfe20, 0xfe2f},    {0xfeff, 0xfeff},
    {0xffa0, 0xffa0},   {0xfff0, 0xfffc},   {0xfffe, 0xffff},    {0x13430, 0x1345f},
    {0x16fe4, 0x16fe4}, {0x1bca0, 0x1bca3}, {0x1d159, 0x1d159},  {0x1d173, 0x1d17a},
    {0x1fffe, 0x1ffff}, {0x2fffe, 0x2ffff}, {0x3fffe, 0x10ffff},
};

/* Blocks of scripts with letters that look like Latin ones, or that are written from right to left, so that
 * what stands beside them in a word may be shown in another order. */
static const struct range scripts[] = {
    {0x370, 0x8ff},     /* Greek, Cyrillic, Armenian, Hebrew, Arabic and its neighbours */
    {0x10a0, 0x10ff},   /* Georgian */
    {0x13a0, 0x16ff},   /* Cherokee, Canadian syllabics, Ogham, Runic */
    {0x1c80, 0x1cbf},   /* Cyrillic, Georgian */
    {0x1f00, 0x1fff},   /* Greek */
    {0x2c00, 0x2c5f},   /* Glagolitic */
    {0x2c80, 0x2dff},   /* Coptic, Georgian, Tifinagh, Ethiopic, Cyrillic */
    {0xa4d0, 0xa4ff},   /* Lisu */
    {0xa640, 0xa69f},   /* Cyrillic */
    {0xab70, 0xabbf},   /* Cherokee */
    {0xfb1d, 0xfdff},   /* Hebrew, Arabic */
    {0xfe70, 0xfefc},   /* Arabic */
    {0x10280, 0x1044f}, /* Lycian, Old Italic, Gothic, Deseret, ... */
    {0x10800, 0x10fff}, /* right to left */
    {0x1e800, 0x1efff}, /* right to left */
};

/* Of these scripts, letters that look like Latin ones in most fonts. */
static const struct range alike[] = {
    {0x391, 0x392},   {0x395, 0x397}, {0x399, 0x39a}, {0x39c, 0x39d},   {0x39f, 0x39f},
    {0x3a1, 0x3a1},   {0x3a4, 0x3a5}, {0x3a7, 0x3a7}, {0x3b1, 0x3b1},   {0x3b3, 0x3b3},
    {0x3b9, 0x3ba},   {0x3bd, 0x3bd}, {0x3bf, 0x3bf}, {0x3c1, 0x3c1},   {0x3c4, 0x3c5},
    {0x3c7, 0x3c7},   {0x3c9, 0x3c9}, {0x3f2, 0x3f3}, {0x405, 0x406},   {0x408, 0x408},
    {0x410, 0x410},   {0x412, 0x412}, {0x415, 0x415}, {0x41a, 0x41a},   {0x41c, 0x41e},
    {0x420, 0x423},   {0x425, 0x425}, {0x430, 0x430}, {0x435, 0x435},   {0x43a, 0x43a},
    {0x43e, 0x43e},   {0x440, 0x441}, {0x443, 0x443}, {0x445, 0x445},   {0x455, 0x456},
    {0x458, 0x458},   {0x475, 0x475}, {0x4ae, 0x4af}, {0x4ba, 0x4bb},   {0x4c0, 0x4c0},
    {0x4cf, 0x4cf},   {0x501, 0x501}, {0x51a, 0x51d}, {0x555, 0x555},   {0x561, 0x561},
    {0x566, 0x566},   {0x570, 0x570}, {0x578, 0x578}, {0x57d, 0x57d},   {0x581, 0x581},
    {0x584, 0x585},   {0x5d5, 0x5d5}, {0x5df, 0x5df}, {0x13a0, 0x13f5}, {0x2c82, 0x2cb1},
    {0xa4d0, 0xa4f7},
};

/* Made of Latin letters, or of a slash, a dot, a semicolon, a colon, a tick. */
static const struct range copies[] = {
    {0x1c0, 0x1c3},     {0x251, 0x251},   {0x261, 0x261},   {0x269, 0x269},   {0x2cb, 0x2cb},
    {0x37e, 0x37e},     {0x2024, 0x2024}, {0x2044, 0x2044}, {0x2100, 0x214f}, {0x2160, 0x217f},
    {0x2215, 0x2216},   {0x2223, 0x2223}, {0x2236, 0x2236}, {0x24b6, 0x24e9}, {0x2571, 0x2572},
    {0x29f8, 0x29f9},   {0xa789, 0xa789}, {0xfe52, 0xfe52}, {0xfe68, 0xfe68}, {0xff0e, 0xff0f},
    {0xff10, 0xff19},   {0xff21, 0xff3a}, {0xff3c, 0xff3c}, {0xff41, 0xff5a}, {0x1d400, 0x1d7ff},
    {0x1f100, 0x1f1e5},
};

static const struct range dashes[] = {
    {0x2010, 0x2015}, {0x2043, 0x2043}, {0x2212, 0x2212},
    {0xfe58, 0xfe58}, {0xfe63, 0xfe63}, {0xff0d, 0xff0d},
};

/* Marks of scripts that put some upon a letter. */
static const struct range marks[] = {
    {0x591, 0x5bd}, {0x5bf, 0x5bf}, {0x5c1, 0x5c7}, {0x610, 0x61a}, {0x64b, 0x65f},
    {0x670, 0x670}, {0x6d6, 0x6ed}, {0xe31, 0xe31}, {0xe34, 0xe3a}, {0xe47, 0xe4e},
};

enum { MARKS_MAX = 2 /* upon one letter */ };

#define IS_IN(c, ranges) is_in(c, ranges, sizeof(ranges) / sizeof *(ranges))

static bool is_in(uint32_t c, const struct range *ranges, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

static uint32_t code_point(const char *at, size_t len)
{
    uint32_t c = (unsigned char)*at;

    if (len > 1)
        c &= 0x7fu >> len;
    for (size_t i = 1; i < len; i++)
        c = c << 6 | ((unsigned char)at[i] & 0x3f);
    return c;
}

static bool is_ascii_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_latin(uint32_t c)
{
    return (c > '9' && is_ascii_word(c)) || (c >= 0xc0 && c <= 0x24f && c != 0xd7 && c != 0xf7) ||
           (c >= 0x1e00 && c <= 0x1eff);
}

static bool is_in_word(uint32_t c)
{
    return c < 0x80 ? is_ascii_word(c) : !IS_IN(c, harmful) && !IS_IN(c, dashes);
}

/* What is known of the word that is being shown. */
struct word {
    size_t end;     /* where it ends */
    bool has_latin; /* letters */
    bool has_other; /* letters that look like no Latin one */
};

static void word_read(const struct buf *text, size_t at, struct word *ret)
{
    *ret = (struct word){.end = at};
    for (size_t len; ret->end < text->len; ret->end += len) {
        uint32_t c;

        utf8_next(text->data + ret->end, text->len - ret->end, &len);
        c = code_point(text->data + ret->end, len);
        if (!is_in_word(c))
            return;
        ret->has_latin |= is_latin(c);
        ret->has_other |= c >= 0x80 && !is_latin(c) && !IS_IN(c, alike) && !IS_IN(c, marks);
    }
}

/* Of a character that is not harmful. */
static bool is_misleading(uint32_t c, const struct word *word, uint32_t before, uint32_t behind,
                          unsigned marks_before)
{
    if (c < 0x80)
        return false;
    if (IS_IN(c, marks))
        return marks_before >= MARKS_MAX ||
               (!marks_before && (before < 0x80 ? !is_ascii_word(before) : !is_in_word(before)));
    if (IS_IN(c, dashes))
        return is_ascii_word(before) || is_ascii_word(behind) || before == '-' || behind == '-';
    return IS_IN(c, copies) || (IS_IN(c, scripts) && (word->has_latin || !word->has_other));
}

char *utf8_plain(const char *text)
{
    AUTO(buf_done) struct buf valid = {0};
    AUTO(buf_done) struct buf plain = {0};
    struct word word = {.end = 0};
    unsigned marks_before = 0;
    uint32_t before = ' ';

    buf_init(&valid, SIZE_MAX / 2);
    buf_init(&plain, SIZE_MAX / 2);
    utf8_append_lossy(&valid, text, strlen(text));
    for (size_t at = 0, len, next; at < valid.len; at += len) {
        uint32_t c, behind = ' ';

        utf8_next(valid.data + at, valid.len - at, &len);
        c = code_point(valid.data + at, len);
        if (at + len < valid.len) {
            utf8_next(valid.data + at + len, valid.len - at - len, &next);
            behind = code_point(valid.data + at + len, next);
        }
        if (at >= word.end)
            word_read(&valid, at, &word);
        if (IS_IN(c, harmful) || is_misleading(c, &word, before, behind, marks_before))
            buf_appendf(&plain, "<U+%04X>", c);
        else
            buf_append(&plain, valid.data + at, len);
        marks_before = IS_IN(c, marks) ? marks_before + 1 : 0;
        before = c;
    }
    return buf_take(&plain);
}

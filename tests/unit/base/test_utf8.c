/* utf8: against a slow decoder written from the definition, and against the examples that the
 * standard and WHATWG give. */
#include "support.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define R "\xef\xbf\xbd"

/* The code point's bytes; 0 for what has none. */
static size_t encode(uint32_t c, char *out)
{
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* In a block of its own size, so that a sanitizer sees reads behind the end. */
static enum utf8_kind next_exact(const char *text, size_t len, size_t *ret_len)
{
    AUTO_FREE char *exact = malloc(len);

    memcpy(exact, text, len);
    return utf8_next(exact, len, ret_len);
}

static void every_character_is_valid_and_its_beginning_incomplete(void **state)
{
    AUTO(buf_done) struct buf appended = {.max = 4};

    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        char text[4];
        size_t len = encode(c, text);
        size_t step = 0;

        if (!len)
            continue;
        buf_clear(&appended);
        assert_true(utf8_append_character(&appended, c));
        if (appended.len != len || memcmp(appended.data, text, len) != 0)
            fail_msg("U+%04X is appended as something else", c);
        if (utf8_next(text, len, &step) != UTF8_VALID || step != len)
            fail_msg("U+%04X", c);
        for (size_t part = 1; part < len; part++)
            if (utf8_next(text, part, &step) != UTF8_INCOMPLETE || step != part)
                fail_msg("U+%04X cut at %zu", c, part);
    }
}

/* All texts of two bytes are valid if and only if some code point is encoded so. */
static void all_pairs_of_bytes(void **state)
{
    static bool is_char[65536];

    for (uint32_t c = 0x80; c < 0x800; c++) {
        char text[4];

        encode(c, text);
        is_char[(unsigned char)text[0] << 8 | (unsigned char)text[1]] = true;
    }
    for (unsigned i = 0; i < 65536; i++) {
        char text[2] = {(char)(i >> 8), (char)i};
        bool both_ascii = i >> 8 < 0x80 && (i & 255) < 0x80;

        assert_int_equal(utf8_is_valid(text, 2), is_char[i] || both_ascii);
    }
}

static void ill_formed_sequences(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        enum utf8_kind kind;
        size_t step;
    } cases[] = {
        {"\x80", 1, UTF8_INVALID, 1},     /* continuation alone */
        {"\xc0\x80", 2, UTF8_INVALID, 1}, /* overlong NUL */
        {"\xc1\xbf", 2, UTF8_INVALID, 1}, /* overlong */
        {"\xc2", 1, UTF8_INCOMPLETE, 1},  /* */
        {"\xc2"
         "A",
         2, UTF8_INVALID, 1},                 /* */
        {"\xe0\x9f\xbf", 3, UTF8_INVALID, 1}, /* overlong */
        {"\xe0\xa0", 2, UTF8_INCOMPLETE, 2},  /* */
        {"\xed\xa0\x80", 3, UTF8_INVALID, 1}, /* surrogate */
        {"\xed\x9f\xbf", 3, UTF8_VALID, 3},   /* the last before them */
        {"\xe2\x82"
         "A",
         3, UTF8_INVALID, 2},                     /* */
        {"\xf0\x8f\xbf\xbf", 4, UTF8_INVALID, 1}, /* overlong */
        {"\xf0\x9f\x98", 3, UTF8_INCOMPLETE, 3},  /* */
        {"\xf0\x9f\x98"
         "A",
         4, UTF8_INVALID, 3}, /* */
        {"\xf0\x9f"
         "AB",
         4, UTF8_INVALID, 2},                     /* */
        {"\xf4\x8f\xbf\xbf", 4, UTF8_VALID, 4},   /* U+10FFFF */
        {"\xf4\x90\x80\x80", 4, UTF8_INVALID, 1}, /* above it */
        {"\xf5\x80\x80\x80", 4, UTF8_INVALID, 1}, /* */
        {"\xff", 1, UTF8_INVALID, 1},             /* */
        {"\0", 1, UTF8_VALID, 1},                 /* NUL is a character */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t step = 0;
        enum utf8_kind kind = next_exact(cases[i].text, cases[i].len, &step);

        if (kind != cases[i].kind || step != cases[i].step)
            fail_msg("case %zu: kind %d, %zu bytes", i, kind, step);
    }
}

static void valid_length_and_tail(void **state)
{
    static const struct {
        const char *text;
        size_t valid, tail;
    } cases[] = {
        {"", 0, 0},
        {"plain ascii, longer than a word", 31, 0},
        {"caf\xc3\xa9", 5, 0},
        {"caf\xc3", 3, 1},
        {"12345678\xf0\x9f\x98", 8, 3},
        {"1234567\xf0\x9f", 7, 2},
        {"abc\xff"
         "def",
         3, 0},
        {"abc\xc3"
         "def",
         3, 0},
        {"abc\xe2\x82", 3, 2},
        {"\xe2\x82\xac\xe2\x82\xac\x80", 6, 0},
        {"123456789\xc3\xa9"
         "123456789\x80",
         20, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t tail = 99;
        size_t len = strlen(cases[i].text);

        assert_int_equal(utf8_valid_len(cases[i].text, len, &tail), cases[i].valid);
        assert_int_equal(tail, cases[i].tail);
        assert_int_equal(utf8_valid_len(cases[i].text, len, NULL), cases[i].valid);
        assert_int_equal(utf8_is_valid(cases[i].text, len), cases[i].valid == len);
    }
    assert_int_equal(utf8_valid_len(NULL, 0, NULL), 0);
}

static void a_torn_end_is_seen_whatever_is_before(void **state)
{
    assert_int_equal(utf8_torn_len("", 0), 0);
    assert_int_equal(utf8_torn_len("\xff"
                                   "a",
                                   2),
                     0);
    assert_int_equal(utf8_torn_len("\xff\xc3", 2), 1);
    assert_int_equal(utf8_torn_len("\x80\xe2\x82", 3), 2);
    assert_int_equal(utf8_torn_len("a\xf0\x9f\x98", 4), 3);
    assert_int_equal(utf8_torn_len("\xf0\x9f\x98\x80", 4), 0);
    assert_int_equal(utf8_torn_len("\xe2\x82\xac", 3), 0);
    assert_int_equal(utf8_torn_len("\x80\x80\x80\x80", 4), 0); /* continues nothing */
    assert_int_equal(utf8_torn_len("\xe0\x80", 2), 0);         /* cannot become one */
}

static void lossy_replaces_each_maximal_subpart_once(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"abc", "abc"},
        {"\xff", R},
        {"a\xff\xfe"
         "b",
         "a" R R "b"},
        /* Unicode 15, table 3-8 */
        {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", R R R R R R R R "A"},
        /* table 3-9 */
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", R R R R R R R R "A"},
        /* table 3-10 */
        {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", R R R R R "A" R R "B"},
        /* table 3-11 */
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", R R R R "A"},
        /* the end inside a character */
        {"\xe2\x82\xac\xe2\x82", "\xe2\x82\xac" R},
        {"\xf0\x9f\x98", R},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO(buf_done) struct buf buf;

        buf_init(&buf, 100);
        buf_append_str(&buf, "<");
        assert_true(utf8_append_lossy(&buf, cases[i][0], strlen(cases[i][0])));
        assert_string_equal(buf.data + 1, cases[i][1]);
        assert_true(utf8_is_valid(buf.data, buf.len));
    }
}

static void lossy_keeps_the_limit(void **state)
{
    AUTO(buf_done) struct buf buf;

    buf_init(&buf, 5);
    assert_false(utf8_append_lossy(&buf, "\xff\xff", 2));
    assert_int_equal(buf.len, 0);
    assert_true(utf8_append_lossy(&buf, "ab\xff", 3));
    assert_false(utf8_append_lossy(&buf, "x", 1));
    assert_string_equal(buf.data, "ab" R);
    assert_true(utf8_append_lossy(&buf, NULL, 0));
    buf_clear(&buf);
    assert_false(utf8_append_lossy(&buf, "abc\xff", 4));
    assert_string_equal(buf.data, "");
}

static void cut_tears_no_character(void **state)
{
    const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"; /* a, 2, 3, 4 bytes, z */
    static const size_t cuts[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11, 11};

    for (size_t max = 0; max < sizeof cuts / sizeof *cuts; max++)
        assert_int_equal(utf8_cut(text, sizeof text - 1, max), cuts[max]);
}

static void cut_of_ill_formed_text_is_at_the_limit(void **state)
{
    assert_int_equal(utf8_cut("\x80\x80\x80\x80\x80\x80", 6, 5), 5);
    assert_int_equal(utf8_cut("\xff\xff\xff", 3, 2), 2);
    assert_int_equal(utf8_cut("\xe2\x82 x", 4, 1), 1);       /* no character begins there */
    assert_int_equal(utf8_cut("\xe2\x82\xac\xac", 4, 3), 3); /* behind a whole one */
    assert_int_equal(utf8_cut("\xf0\x9f\x98", 3, 2), 2);     /* the text itself is cut short */
}

/* On any bytes: what comes out is valid, and valid parts come through unchanged. */
static void random_bytes(void **state)
{
    static const unsigned char bytes[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f,
                                          0xa0, 0xbf, 0xc1, 0xc2, 0xe0, 0xe1, 0xed,
                                          0xef, 0xf0, 0xf1, 0xf4, 0xf5};
    unsigned seed = 7;

    for (int round = 0; round < 50000; round++) {
        AUTO(buf_done) struct buf buf;
        char text[12];
        size_t tail, valid;

        for (size_t i = 0; i < sizeof text; i++) {
            seed = seed * 1103515245 + 12345;
            text[i] = (char)bytes[(seed >> 16) % sizeof bytes];
        }
        valid = utf8_valid_len(text, sizeof text, &tail);
        assert_true(valid + tail <= sizeof text);
        assert_true(tail == 0 || valid + tail == sizeof text);
        if (valid + tail == sizeof text)
            assert_int_equal(utf8_torn_len(text, sizeof text), tail);
        buf_init(&buf, 100);
        assert_true(utf8_append_lossy(&buf, text, sizeof text));
        assert_true(utf8_is_valid(buf.data, buf.len));
        assert_memory_equal(buf.data, text, valid);
        for (size_t max = 0; max <= valid; max++)
            assert_true(utf8_is_valid(text, utf8_cut(text, sizeof text, max)));
    }
}

static void plain_text_commands_nothing(void **state)
{
    static const struct {
        const char *text;
        const char *plain;
    } cases[] = {
        {"", ""},
        {"a/b c~", "a/b c~"},
        {"\xc3\xa9\xe2\x80\x98\xf0\x9f\x99\x82", "\xc3\xa9\xe2\x80\x98\xf0\x9f\x99\x82"},
        {"a\x1b[2J\t\r\n\x7f", "a<U+001B>[2J<U+0009><U+000D><U+000A><U+007F>"},
        {"\xc2\x9b"
         "2J\xc2\xa0\xc2\xad\xd8\x9c",
         "<U+009B>2J<U+00A0><U+00AD><U+061C>"},
        {"\xe2\x80\x8b\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa9\xef\xbb\xbf",
         "<U+200B><U+2028><U+202E><U+2069><U+FEFF>"},
        {"\xe2\x80\x90\xe3\x84\xb0\xef\xbd\xa1", "\xe2\x80\x90\xe3\x84\xb0\xef\xbd\xa1"},
        {"\xe3\x85\xa4\xe2\xa0\x80\xe1\x85\x9f\xcd\x8f\xef\xb8\x8f\xe2\x80\x8a\xef\xbe\xa0",
         "<U+3164><U+2800><U+115F><U+034F><U+FE0F><U+200A><U+FFA0>"},
        {"\xf3\xa0\x81\x81\xf4\x8f\xbf\xbf\xee\x80\x80", "<U+E0041><U+10FFFF><U+E000>"},
        {"e\xcc\x81\xe2\x83\xa0", "e<U+0301><U+20E0>"},
        {"\x9b\xff", "\xef\xbf\xbd\xef\xbf\xbd"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *plain = utf8_plain(cases[i].text);

        assert_string_equal(plain, cases[i].plain);
    }
}

/* What passes for something else is told by its number; a name in its own script is left alone. */
static void plain_text_passes_for_nothing(void **state)
{
    static const struct {
        const char *text;
        const char *plain;
    } cases[] = {
        /* a letter of another script in a Latin word, with and without others beside it */
        {"/usr/bin/p\u0430ypal", "/usr/bin/p<U+0430>ypal"},
        {"\u0441at x", "<U+0441>at x"},
        {"g\u03bft push", "g<U+03BF>t push"},
        {"caf\u00e9\u0456", "caf\u00e9<U+0456>"},
        {"rm-\u0434isk", "rm-<U+0434>isk"},
        {"a\u05d0b c\u0627", "a<U+05D0>b c<U+0627>"},
        {"\u13a0DB", "<U+13A0>DB"},
        /* a word of nothing but letters that look Latin */
        {"\u0441\u0440 a b", "<U+0441><U+0440> a b"},
        {"/\u0430\u0441/x", "/<U+0430><U+0441>/x"},
        {"-\u0430 -\u04301", "-<U+0430> -<U+0430>1"},
        /* names of their own scripts */
        {"\u0444\u0430\u0439\u043b.txt", "\u0444\u0430\u0439\u043b.txt"},
        {"\u041e\u0442\u0447\u0451\u0442_2024-a", "\u041e\u0442\u0447\u0451\u0442_2024-a"},
        {"/srv/\u5831\u544av2\uff08\u7d42\uff09", "/srv/\u5831\u544av2\uff08\u7d42\uff09"},
        {"/\u05e9\u05dc\u05d5\u05dd/x", "/\u05e9\u05dc\u05d5\u05dd/x"},
        {"\u03b4\u03bf\u03ba\u03b9\u03bc\u03ae", "\u03b4\u03bf\u03ba\u03b9\u03bc\u03ae"},
        {"\ud55c\uae00 \u3072\u3089 Stra\u00dfe na\u00efve",
         "\ud55c\uae00 \u3072\u3089 Stra\u00dfe na\u00efve"},
        /* copies of ASCII */
        {"\uff52\uff4d x", "<U+FF52><U+FF4D> x"},
        {"a\u2215b\u2044c\uff0fd\u2024e", "a<U+2215>b<U+2044>c<U+FF0F>d<U+2024>e"},
        {"a\u037e b", "a<U+037E> b"},
        {"\U0001d42b\U0001d426", "<U+1D42B><U+1D426>"},
        {"rm \u2013rf x \u2013 y", "rm <U+2013>rf x \u2013 y"},
        /* marks: as languages have them; many, or without a letter */
        {"\u0e14\u0e35\u0e49 \u05e9\u05c1\u05b8", "\u0e14\u0e35\u0e49 \u05e9\u05c1\u05b8"},
        {"\u0e14\u0e49\u0e49\u0e49\u0e49", "\u0e14\u0e49\u0e49<U+0E49><U+0E49>"},
        {" \u0e49/\u0e49", " <U+0E49>/<U+0E49>"},
        {"n\u0336o", "n<U+0336>o"},
        /* the direction */
        {"a\u202eb\u2067c\u200fd", "a<U+202E>b<U+2067>c<U+200F>d"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_FREE char *plain = utf8_plain(cases[i].text);

        assert_string_equal(plain, cases[i].plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_is_valid_and_its_beginning_incomplete),
        cmocka_unit_test(all_pairs_of_bytes),
        cmocka_unit_test(ill_formed_sequences),
        cmocka_unit_test(valid_length_and_tail),
        cmocka_unit_test(a_torn_end_is_seen_whatever_is_before),
        cmocka_unit_test(lossy_replaces_each_maximal_subpart_once),
        cmocka_unit_test(lossy_keeps_the_limit),
        cmocka_unit_test(cut_tears_no_character),
        cmocka_unit_test(cut_of_ill_formed_text_is_at_the_limit),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(plain_text_commands_nothing),
        cmocka_unit_test(plain_text_passes_for_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

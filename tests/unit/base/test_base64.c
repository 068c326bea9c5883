/* base64: RFC 4648's vectors, round trips, and every way to be wrong. Decoding writes into a block
 * of exactly the promised size, so a sanitizer build sees one byte too many. */
#include "support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* RFC 4648 section 10, and the two characters that the URL alphabet has changed */
static const char *const pairs[][2] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xff\xbf", "+/+/"},
};

/* Exactly base64_decoded_len() bytes on the heap; not terminated. */
static void *decode(const char *text, size_t len, size_t *ret_len, struct err *err)
{
    AUTO_FREE char *exact = malloc(len ? len : 1);
    size_t size = base64_decoded_len(text, len);
    AUTO_FREE char *data = malloc(size ? size : 1);

    assert_non_null(exact);
    assert_non_null(data);
    memcpy(exact, text, len);
    if (base64_decode(exact, len, data, err))
        return NULL;
    *ret_len = size;
    return TAKE_PTR(data);
}

static void vectors_both_ways(void **state)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        size_t plain_len = strlen(pairs[i][0]);
        size_t text_len = strlen(pairs[i][1]);
        AUTO_FREE char *text = alloc_zero(text_len + 1, 1);
        AUTO_FREE char *plain = NULL;
        struct err err = ERR_UNTOUCHED;
        size_t len;

        assert_int_equal(base64_encoded_len(plain_len), text_len);
        base64_encode(pairs[i][0], plain_len, text);
        assert_string_equal(text, pairs[i][1]);
        plain = decode(pairs[i][1], text_len, &len, &err);
        assert_non_null(plain);
        assert_int_equal(len, plain_len);
        assert_memory_equal(plain, pairs[i][0], len);
        assert_untouched(err);
    }
}

static void every_length_and_byte_comes_back(void **state)
{
    unsigned char data[600];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 167 + (i >> 8) * 31);
    for (size_t len = 0; len <= sizeof data; len++) {
        size_t text_len = base64_encoded_len(len);
        AUTO_FREE char *text = malloc(text_len + 1);
        AUTO_FREE unsigned char *back = NULL;
        struct err err;
        size_t back_len;

        base64_encode(data, len, text);
        assert_int_equal(strlen(text), text_len);
        back = decode(text, text_len, &back_len, &err);
        assert_non_null(back);
        assert_int_equal(back_len, len);
        assert_memory_equal(back, data, len);
    }
}

static void wrong_texts_are_refused_where_they_are_wrong(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"Z", "ends early, at byte 1"},
        {"Zg", "ends early, at byte 2"},
        {"Zm9vYg", "ends early, at byte 6"},
        {"Zg=", "padding (=) at byte 2"},
        {"=", "padding (=) at byte 0"},
        {"====", "padding (=) at byte 0"},
        {"Z===", "padding (=) at byte 1"},
        {"Zg==Zg==", "padding (=) at byte 2"},
        {"Zm=v", "padding (=) at byte 2"},
        {"Zm9vYg===", "padding (=) at byte 6"},
        {"Zm9v\n", "byte 4 (0x0a)"},
        {"Zm9v\r\nZm9vZm", "byte 4 (0x0d)"},
        {" Zm9", "byte 0 (0x20)"},
        {"Zm9vZ-9v", "byte 5 (0x2d)"},
        {"Zm9_Zm9v", "byte 3 (0x5f)"},
        {"Zm9vZm\xc3\xa4", "byte 6 (0xc3)"},
        {"Zh==", "byte 1 ('h') sets bits"},
        {"Zm9=", "byte 2 ('9') sets bits"},
        {"Zm9vZm9=", "byte 6 ('9') sets bits"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err;
        size_t len = 0;

        assert_null(decode(cases[i].text, strlen(cases[i].text), &len, &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_contains(err.msg, cases[i].says);
    }
}

static void nul_byte_is_not_of_the_alphabet(void **state)
{
    struct err err;
    size_t len;

    assert_null(decode("Zm9v\0m9v", 8, &len, &err));
    assert_contains(err.msg, "byte 4 (0x00)");
}

/* Of all texts of one group, the accepted ones are exactly those that encoding can produce. */
static void accepted_means_canonical(void **state)
{
    static const char letters[] = "AQgwEIPZaz09+/= -_";
    const size_t n = sizeof letters - 1;
    unsigned accepted = 0;

    for (size_t i = 0; i < n * n * n * n; i++) {
        char text[5] = {letters[i % n], letters[i / n % n], letters[i / n / n % n],
                        letters[i / n / n / n]};
        char again[5];
        AUTO_FREE char *data = NULL;
        struct err err;
        size_t len;

        data = decode(text, 4, &len, &err);
        if (!data)
            continue;
        base64_encode(data, len, again);
        assert_string_equal(again, text);
        accepted++;
    }
    /* 14 letters: 14^4 full groups; 14^2 times those with 2 low bits zero; 14 times 4 */
    assert_true(accepted > 14 * 14 * 14 * 14);
}

static void lengths_of_large_input(void **state)
{
    assert_int_equal(base64_encoded_len(3), 4);
    assert_int_equal(base64_encoded_len(4), 8);
    assert_true(base64_encoded_len(SIZE_MAX / 2) > SIZE_MAX / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_both_ways),
        cmocka_unit_test(every_length_and_byte_comes_back),
        cmocka_unit_test(wrong_texts_are_refused_where_they_are_wrong),
        cmocka_unit_test(nul_byte_is_not_of_the_alphabet),
        cmocka_unit_test(accepted_means_canonical),
        cmocka_unit_test(lengths_of_large_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

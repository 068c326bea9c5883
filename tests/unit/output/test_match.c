/* match: a text is found wherever the pieces are cut, and only where it is. */
#include "../base/support.h"
#include "script.h"

#include "output/match.h"

#include <string.h>

static struct match *new_match(const char *text)
{
    struct err err = ERR_UNTOUCHED;
    struct match *match = match_new(text, strlen(text), &err);

    assert_non_null(match);
    assert_untouched(err);
    return match;
}

static bool feed(struct match *match, const char *text)
{
    return match_feed(match, STREAM_STDOUT, text, strlen(text), NULL);
}

static void found_across_pieces(void **state)
{
    struct match *match = new_match("login: ");

    assert_false(feed(match, "Debian\nlo"));
    assert_false(feed(match, "gin:"));
    assert_true(feed(match, " "));
    assert_false(feed(match, "ogin: "));
    match_free(match);
}

static void streams_are_apart(void **state)
{
    struct match *match = new_match("ab");

    assert_false(match_feed(match, STREAM_STDOUT, "a", 1, NULL));
    assert_false(match_feed(match, STREAM_STDERR, "b", 1, NULL));
    assert_true(match_feed(match, STREAM_STDOUT, "b", 1, NULL));
    match_free(match);
}

static void a_reset_forgets_a_beginning(void **state)
{
    struct match *match = new_match("ab");

    feed(match, "a");
    match_reset(match);
    assert_false(feed(match, "b"));
    assert_true(feed(match, "ab"));
    match_free(match);
}

static void a_text_that_repeats_itself(void **state)
{
    struct match *match = new_match("aab");

    assert_false(feed(match, "aaaaaaaa"));
    assert_true(feed(match, "b"));
    match_free(match);
    match = new_match("abacabad");
    assert_true(feed(match, "abacabacabad"));
    match_free(match);
}

static void limits(void **state)
{
    static const char text[MATCH_TEXT_MAX + 1];
    struct match *match;
    struct err err;

    assert_null(match_new("", 0, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_contains(err.msg, "0 bytes; 1 to 4096");
    assert_null(match_new(text, sizeof text, &err));
    assert_contains(err.msg, "4097 bytes");
    match = match_new(text, sizeof text - 1, &err); /* NULs are bytes like others */
    assert_non_null(match);
    assert_false(match_feed(match, STREAM_STDOUT, text, 4095, NULL));
    assert_true(match_feed(match, STREAM_STDOUT, text, 1, NULL));
    match_free(match);
}

/* Occurrences that do not overlap, against memmem(), over few letters so that there are many. */
static void random_texts_and_pieces(void **state)
{
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct script script;
        struct match *match;
        struct err err;
        char text[8];
        char all[400];
        size_t text_len;
        size_t at = 0;

        script_init(&script, seed);
        text_len = 1 + (size_t)script_random(&script, sizeof text);
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = "ab"[script_random(&script, 2)];
        for (size_t i = 0; i < sizeof all; i++)
            all[i] = "ab"[script_random(&script, 2)];
        match = match_new(text, text_len, &err);
        for (const char *next; at < sizeof all;) {
            next = memmem(all + at, sizeof all - at, text, text_len);
            for (bool found = false; !found && at < sizeof all;) {
                size_t piece = 1 + (size_t)script_random(&script, 20);
                size_t used;

                piece = piece < sizeof all - at ? piece : sizeof all - at;
                found = match_feed(match, STREAM_STDERR, all + at, piece, &used);
                at += found ? used : piece;
                if (found)
                    assert_ptr_equal(all + at, next + text_len);
                else if (at == sizeof all)
                    assert_null(next);
            }
        }
        match_free(match);
        script_done(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_across_pieces),
        cmocka_unit_test(streams_are_apart),
        cmocka_unit_test(a_reset_forgets_a_beginning),
        cmocka_unit_test(a_text_that_repeats_itself),
        cmocka_unit_test(limits),
        cmocka_unit_test(random_texts_and_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

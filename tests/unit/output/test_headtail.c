/* headtail: what is kept and what is counted (tests/cases/output/headtail).
 *
 *     max, writes      see output_cases.h
 *     head, tail       bytes kept
 *     omitted          between them
 *     rendered         the text, and `marker` the number in its marker when that is another one */
#include "output_cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "output/headtail.h"

#include <string.h>

static void check_ring(const struct ring *ring, const json_t *wanted)
{
    AUTO_FREE char *got = alloc_zero(ring->len, 1);
    AUTO(buf_done) struct buf bytes;

    buf_init(&bytes, 1 << 22);
    case_bytes(wanted, &bytes);
    ring_copy(ring, 0, got, ring->len);
    assert_bytes(got, ring->len, bytes.data, bytes.len);
}

static void headtail_case(void **state)
{
    static const char *const keys[] = {"why",     "max",      "writes", "head", "tail",
                                       "omitted", "rendered", "marker", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const uint64_t omitted = case_number(json, "omitted", 0);
    AUTO(headtail_done) struct headtail headtail;
    AUTO(buf_done) struct buf rendered;
    AUTO(buf_done) struct buf wanted;
    uint64_t marker = 0;

    case_check_keys(json, keys);
    buf_init(&rendered, 1 << 22);
    buf_init(&wanted, 1 << 22);
    headtail_init(&headtail, case_number(json, "max", 0));
    case_fill(json_object_get(json, "writes"), &headtail);
    check_ring(&headtail.head, json_object_get(json, "head"));
    check_ring(&headtail.tail, json_object_get(json, "tail"));
    assert_int_equal(headtail.omitted, omitted);
    assert_true(headtail_render(&headtail, &rendered, &marker));
    case_bytes(json_object_get(json, "rendered"), &wanted);
    assert_bytes(rendered.data, rendered.len, wanted.data, wanted.len);
    assert_int_equal(marker, case_number(json, "marker", omitted));
}

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* The marker and what is shown account for every byte, wherever characters are torn. */
static void every_byte_is_accounted_for(void **state)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";

    for (size_t len = 0; len < 40; len++) {
        for (size_t max = 0; max < 24; max++) {
            AUTO(headtail_done) struct headtail headtail;
            AUTO(buf_done) struct buf out;
            uint64_t marker = 0;
            const char *shown;
            size_t cut;

            headtail_init(&headtail, max);
            buf_init(&out, 1000);
            for (size_t i = 0; i < len; i++)
                headtail_add(&headtail, text + i % (sizeof text - 1), 1);
            assert_int_equal(headtail_total(&headtail), len);
            assert_true(headtail_render(&headtail, &out, &marker));
            if (!headtail.omitted || is_continuation(text[len % (sizeof text - 1)]))
                continue; /* the text ends inside a character */
            shown = strstr(out.data, "\n... ");
            cut = (size_t)(strstr(out.data, " ...\n") + 5 - shown);
            assert_int_equal(out.len - cut + marker, len);
            assert_null(strstr(out.data, "\xef\xbf\xbd"));
        }
    }
}

static void a_buffer_that_is_too_small_stays_as_it_was(void **state)
{
    AUTO(headtail_done) struct headtail headtail;
    AUTO(buf_done) struct buf out;
    uint64_t marker = 77;

    headtail_init(&headtail, 4);
    headtail_add(&headtail, "abcdefgh", 8);
    for (size_t max = 5; max < 5 + strlen("ab\n... 4 bytes omitted ...\ngh"); max++) {
        buf_init(&out, max);
        buf_append_str(&out, "kept:");
        assert_false(headtail_render(&headtail, &out, &marker));
        assert_string_equal(out.data, "kept:");
        assert_int_equal(marker, 77);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(every_byte_is_accounted_for),
        cmocka_unit_test(a_buffer_that_is_too_small_stays_as_it_was),
    };

    return cases_run("output/headtail", headtail_case, more, sizeof more / sizeof *more);
}

/* record: the chain, against values that another implementation gave (Python's hashlib), and the
 * one way to write a line. */
#include "audit/record.h"

#include "base/auto.h"
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* hashlib.sha256(bytes(32) + (1).to_bytes(8, "big") + (1795170840123456789).to_bytes(8, "big") +
 * b"".join(len(t).to_bytes(4, "big") + t for t in (b"begin", b"s-1", b'{"a":1}'))) */
#define HASH "b05290072a0d0fda207fd9897c22afa7a4615211d868935b9e6547ff194d55b4"
#define LINE HASH " 1 1795170840123456789 begin s-1 {\"a\":1}"

static struct audit_record first(void)
{
    return (struct audit_record){
        .link.seq = 1,
        .time_ns = UINT64_C(1795170840123456789),
        .event = audit_text_of("begin"),
        .session = audit_text_of("s-1"),
        .body = audit_text_of("{\"a\":1}"),
    };
}

static void hash_is_sha_256_over_the_documented_bytes(void **state)
{
    const struct audit_link none = {0};
    struct audit_record record = first();
    char hex[AUDIT_HEX_SIZE];

    audit_record_hash(&record, none.hash, record.link.hash);
    audit_hash_format(record.link.hash, hex);
    assert_memory_equal(hex, HASH, AUDIT_HEX_SIZE);
    assert_true(audit_record_follows(&record, &none));
    record.link.seq = 2;
    assert_false(audit_record_follows(&record, &none));
}

static void line_is_read_and_written(void **state)
{
    AUTO(buf_done) struct buf text = {0};
    struct audit_record record;
    struct err err;

    assert_int_equal(audit_record_parse(LINE, strlen(LINE), &record, &err), 0);
    assert_true(audit_text_eq(record.body, audit_text_of("{\"a\":1}")));
    assert_true(audit_text_eq(record.session, audit_text_of("s-1")));
    buf_init(&text, SIZE_MAX / 2);
    assert_true(audit_record_format(&record, &text));
    assert_string_equal(text.data, LINE "\n");
}

/* Each value of each byte of a line: it is no record then, or its hash is another one. */
static void every_changed_byte_shows(void **state)
{
    const struct audit_link none = {0};
    char line[] = LINE;
    struct audit_record record;
    struct err err;

    for (size_t at = 0; at < sizeof line - 1; at++)
        for (unsigned value = 0; value < 256; value++) {
            char was = line[at];

            if ((char)value == was)
                continue;
            line[at] = (char)value;
            if (audit_record_parse(line, sizeof line - 1, &record, &err) == 0)
                assert_false(audit_record_follows(&record, &none));
            line[at] = was;
        }
    assert_int_equal(audit_record_parse(line, sizeof line - 1, &record, &err), 0);
    assert_true(audit_record_follows(&record, &none));
}

static void other_spellings_are_no_record(void **state)
{
    static const char *const lines[] = {
        "",
        " ",
        HASH,
        HASH " 1 2 begin s-1",
        HASH " 1 2 begin s-1 ",
        HASH " 01 2 begin s-1 {}",
        HASH " 1 +2 begin s-1 {}",
        HASH " 1  2 begin s-1 {}",
        HASH " 1 18446744073709551616 begin s-1 {}",
        HASH " 1 2 be/gin s-1 {}",
        HASH " 1 2 begin  {}",
        "0" HASH " 1 2 begin s-1 {}",
    };
    struct audit_record record;
    struct err err;

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(audit_record_parse(lines[i], strlen(lines[i]), &record, &err), -1);
}

static void words_have_a_length_and_an_alphabet(void **state)
{
    char longest[AUDIT_WORD_MAX + 2];

    memset(longest, 'a', sizeof longest);
    assert_true(audit_word_is_valid((struct audit_text){longest, AUDIT_WORD_MAX}));
    assert_false(audit_word_is_valid((struct audit_text){longest, AUDIT_WORD_MAX + 1}));
    assert_false(audit_word_is_valid(audit_text_of("")));
    assert_false(audit_word_is_valid(audit_text_of("a b")));
    assert_false(audit_word_is_valid(audit_text_of("a\n")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_is_sha_256_over_the_documented_bytes),
        cmocka_unit_test(line_is_read_and_written),
        cmocka_unit_test(every_changed_byte_shows),
        cmocka_unit_test(other_spellings_are_no_record),
        cmocka_unit_test(words_have_a_length_and_an_alphabet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

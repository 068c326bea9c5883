/* Questions of resolvers, whole and broken, and their answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../base/mutate.h"
#include "proxy/dns_message.h"

#include <string.h>

/* A? Www.Example.com with EDNS, recursion wanted. */
static const uint8_t with_edns[] = {
    0x12, 0x34, 1, 0,   0,   1,   0, 0, 0, 0, 0, 1, 3, 'W', 'w', 'w',  7, 'E', 'x', 'a', 'm', 'p',
    'l',  'e',  3, 'c', 'o', 'm', 0, 0, 1, 0, 1, 0, 0, 41,  4,   0xd0, 0, 0,   0,   0,   0,   0};

enum { QUESTION = 33, OPT = 33 }; /* where the question ends, and OPT begins */

static void questions(void **state)
{
    struct dns_query query;
    enum dns_code code;

    assert_int_equal(dns_query_parse(with_edns, sizeof with_edns, &query, &code), DNS_ANSWERABLE);
    assert_string_equal(query.name, "www.example.com");
    assert_int_equal(query.type, DNS_A);
    assert_int_equal(query.id, 0x1234);
    assert_true(query.has_edns && query.wants_recursion && !query.is_odd);
    assert_int_equal(query.raw_len, QUESTION - 12);
    assert_memory_equal(query.raw, with_edns + 12, query.raw_len); /* as it was written */
}

/* The verdict about the good one with `len` bytes from `at` on in place of its own. */
static enum dns_code code_of(size_t at, const void *bytes, size_t len)
{
    uint8_t message[sizeof with_edns];
    struct dns_query query;
    enum dns_code code;

    memcpy(message, with_edns, sizeof message);
    memcpy(message + at, bytes, len);
    assert_int_not_equal(dns_query_parse(message, sizeof message, &query, &code), DNS_SILENT);
    return code;
}

static void broken_questions(void **state)
{
    struct dns_query query;
    enum dns_code code;

    for (size_t len = 0; len < sizeof with_edns; len++)
        assert_int_equal(dns_query_parse(with_edns, len, &query, &code),
                         len < 12 ? DNS_SILENT : DNS_UNREADABLE);
    assert_int_equal(code_of(2, "\x29", 1), DNS_NOTIMP);
    assert_int_equal(code_of(5, "\2", 1), DNS_FORMERR);
    assert_int_equal(code_of(5, "\0", 1), DNS_FORMERR);
    assert_int_equal(code_of(7, "\1", 1), DNS_FORMERR);
    assert_int_equal(code_of(12, "\xc0\x0c", 2), DNS_FORMERR); /* no pointers */
    assert_int_equal(code_of(12, "\x40", 1), DNS_FORMERR);
    assert_int_equal(code_of(OPT - 1, "\3", 1), DNS_REFUSED);   /* CHAOS */
    assert_int_equal(code_of(OPT - 3, "\xfc", 1), DNS_REFUSED); /* AXFR */
    assert_int_equal(code_of(OPT + 6, "\1", 1), DNS_BADVERS);
    assert_int_equal(code_of(OPT + 10, "\1", 1), DNS_FORMERR);
    assert_int_equal(dns_query_parse("\0\1\x80\0\0\1\0\0\0\0\0\0", 12, &query, &code), DNS_SILENT);
}

static void odd_names(void **state)
{
    struct dns_query query;
    enum dns_code code;
    uint8_t message[12 + 300] = {0, 1, 0, 0, 0, 1};

    memcpy(message + 12, "\4a.b\0\3com\0\0\1\0\1", 14);
    assert_int_equal(dns_query_parse(message, 12 + 14, &query, &code), DNS_ANSWERABLE);
    assert_true(query.is_odd);
    assert_string_equal(query.name, "a?b?.com");
    memcpy(message + 12, "\0\0\1\0\1", 5);
    assert_int_equal(dns_query_parse(message, 12 + 5, &query, &code), DNS_ANSWERABLE);
    assert_string_equal(query.name, "");
    memset(message + 12, 1, 254); /* 127 labels of a byte are the most that there can be */
    message[12 + 254] = 0;
    memcpy(message + 12 + 255, "\0\1\0\1", 4);
    assert_int_equal(dns_query_parse(message, 12 + 259, &query, &code), DNS_ANSWERABLE);
    assert_int_equal(strlen(query.name), 253);
    memset(message + 12, 1, 256);
    message[12 + 256] = 0;
    memcpy(message + 12 + 257, "\0\1\0\1", 4);
    assert_int_equal(dns_query_parse(message, 12 + 261, &query, &code), DNS_UNREADABLE);
}

static void ten_thousand_broken_ones(void **state)
{
    uint8_t answer[DNS_ANSWER_MAX];

    for (unsigned i = 0; i < MUTATIONS; i++) {
        uint8_t bytes[MUTATED_MAX];
        size_t len = mutate(with_edns, sizeof with_edns, i, bytes);
        struct dns_query query;
        enum dns_code code;
        enum dns_verdict verdict = dns_query_parse(bytes, len, &query, &code);

        if (verdict == DNS_SILENT)
            continue;
        assert_true((verdict == DNS_ANSWERABLE) == (code == DNS_NOERROR));
        assert_true(strlen(query.name) < DNS_NAME_MAX);
        assert_true(dns_answer_format(&query, code, NULL, answer) <= sizeof answer);
        assert_memory_equal(answer, bytes, 2);
    }
}

static void answers(void **state)
{
    static const uint8_t wanted[] = {
        0x12, 0x34, 0x81, 0x80, 0, 1,   0,   1,   0, 0, 0, 1,  3, 'W',  'w', 'w', 7, 'E', 'x', 'a',
        'm',  'p',  'l',  'e',  3, 'c', 'o', 'm', 0, 0, 1, 0,  1, 0xc0, 12,  0,   1, 0,   1,   0,
        0,    0,    30,   0,    4, 198, 18,  0,   1, 0, 0, 41, 4, 0xd0, 0,   0,   0, 0,   0,   0};
    struct dns_record record = {.type = DNS_A, .bytes = {198, 18, 0, 1}};
    uint8_t answer[DNS_ANSWER_MAX];
    struct dns_query query;
    enum dns_code code;

    dns_query_parse(with_edns, sizeof with_edns, &query, &code);
    assert_int_equal(dns_answer_format(&query, DNS_NOERROR, &record, answer), sizeof wanted);
    assert_memory_equal(answer, wanted, sizeof wanted);
    record = (struct dns_record){.type = DNS_PTR, .name = "a.example"};
    assert_int_equal(dns_answer_format(&query, DNS_NOERROR, &record, answer),
                     sizeof wanted - 4 + 11);
    assert_memory_equal(answer + QUESTION + 12, "\1a\7example\0", 11);
    assert_int_equal(dns_answer_format(&query, DNS_BADVERS, NULL, answer), QUESTION + 11);
    assert_int_equal(answer[3] & 15, 0);
    assert_int_equal(answer[QUESTION + 5], 1); /* the upper half of 16 */
}

static void reverse_names(void **state)
{
    unsigned char address[4];

    assert_true(dns_reverse_parse("7.2.18.198.in-addr.arpa", address));
    assert_memory_equal(address, "\306\22\2\7", 4);
    assert_false(dns_reverse_parse("7.2.18.256.in-addr.arpa", address));
    assert_false(dns_reverse_parse("07.2.18.198.in-addr.arpa", address));
    assert_false(dns_reverse_parse("2.18.198.in-addr.arpa", address));
    assert_false(dns_reverse_parse("1.7.2.18.198.in-addr.arpa", address));
    assert_false(dns_reverse_parse("7.2.18.198.in-addr.arpa.x", address));
    assert_false(dns_reverse_parse("99999999999999999999.2.18.198.in-addr.arpa", address));
    assert_false(dns_reverse_parse("", address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions), cmocka_unit_test(broken_questions),
        cmocka_unit_test(odd_names), cmocka_unit_test(ten_thousand_broken_ones),
        cmocka_unit_test(answers),   cmocka_unit_test(reverse_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What clients of SOCKS 5 send, byte by byte, whole and broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../base/mutate.h"
#include "proxy/socks.h"

#include <string.h>

static const uint8_t by_name[] = {5,   1,   0,   3,   11,  'e', 'x', 'a', 'm',
                                  'p', 'l', 'e', '.', 'o', 'r', 'g', 1,   0xbb};
static const uint8_t by_ip4[] = {5, 1, 0, 1, 192, 0, 2, 7, 0, 80};
static const uint8_t by_ip6[] = {5, 3, 0, 4, 0x20, 1, 0xd, 0xb8, 0, 0, 0,
                                 0, 0, 0, 0, 0,    0, 0,   0,    1, 0, 53};

static void assert_request(const uint8_t *bytes, size_t len, const char *host, unsigned port,
                           enum socks_command command)
{
    struct socks_request request;
    enum socks_reply reply;
    size_t used;

    for (size_t i = 0; i < len; i++)
        assert_int_equal(socks_read_request(bytes, i, &request, &used, &reply), SOCKS_MORE);
    assert_int_equal(socks_read_request(bytes, len, &request, &used, &reply), SOCKS_WHOLE);
    assert_int_equal(used, len);
    assert_string_equal(request.host, host);
    assert_int_equal(request.port, port);
    assert_int_equal(request.command, command);
}

static void requests(void **state)
{
    assert_request(by_name, sizeof by_name, "example.org", 443, SOCKS_CONNECT);
    assert_request(by_ip4, sizeof by_ip4, "192.0.2.7", 80, SOCKS_CONNECT);
    assert_request(by_ip6, sizeof by_ip6, "2001:db8::1", 53, SOCKS_UDP);
}

static void greetings(void **state)
{
    size_t used = 0;

    assert_int_equal(socks_read_greeting((uint8_t[]){5, 2, 2, 0, 5}, 5, &used), SOCKS_WHOLE);
    assert_int_equal(used, 4);
    assert_int_equal(socks_read_greeting((uint8_t[]){5, 2, 2}, 3, &used), SOCKS_MORE);
    assert_int_equal(socks_read_greeting((uint8_t[]){5, 1, 2}, 3, &used), SOCKS_BAD);
    assert_int_equal(socks_read_greeting((uint8_t[]){5, 0}, 2, &used), SOCKS_BAD);
    assert_int_equal(socks_read_greeting((uint8_t[]){4, 1}, 2, &used), SOCKS_BAD);
}

static void assert_bad(size_t at, uint8_t value, enum socks_reply wanted)
{
    uint8_t bytes[sizeof by_name];
    struct socks_request request;
    enum socks_reply reply;
    size_t used;

    memcpy(bytes, by_name, sizeof bytes);
    bytes[at] = value;
    assert_int_equal(socks_read_request(bytes, sizeof bytes, &request, &used, &reply), SOCKS_BAD);
    assert_int_equal(reply, wanted);
}

static void broken_requests(void **state)
{
    assert_bad(0, 4, SOCKS_FAILURE);
    assert_bad(2, 1, SOCKS_FAILURE);
    assert_bad(3, 2, SOCKS_NO_ADDRESS_TYPE);
    assert_bad(4, 0, SOCKS_FAILURE); /* an empty name */
    assert_bad(9, 0, SOCKS_FAILURE); /* a NUL in it */
    assert_bad(9, '\n', SOCKS_FAILURE);
    assert_bad(9, 0xe9, SOCKS_FAILURE);
}

static void ten_thousand_broken_ones(void **state)
{
    for (unsigned i = 0; i < MUTATIONS; i++) {
        uint8_t bytes[MUTATED_MAX];
        size_t len = mutate(by_name, sizeof by_name, i, bytes), used = 0;
        struct socks_request request;
        enum socks_reply reply;

        if (socks_read_request(bytes, len, &request, &used, &reply) != SOCKS_WHOLE)
            continue;
        assert_true(used <= len && *request.host);
        for (const char *c = request.host; *c; c++)
            assert_true(*c > ' ' && *c < 0x7f);
    }
}

static void replies(void **state)
{
    uint8_t reply[SOCKS_REPLY_BYTES];

    socks_write_reply(SOCKS_NOT_ALLOWED, reply);
    assert_memory_equal(reply, ((uint8_t[]){5, 2, 0, 1, 0, 0, 0, 0, 0, 0}), sizeof reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),        cmocka_unit_test(greetings),
        cmocka_unit_test(broken_requests), cmocka_unit_test(ten_thousand_broken_ones),
        cmocka_unit_test(replies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

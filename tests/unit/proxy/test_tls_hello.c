/* The name in what a TLS client says first. The hello is made here, as RFC 8446 has it: version, random, session,
 * suites, compression, extensions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../base/mutate.h"
#include "proxy/tls_hello.h"

#include <string.h>

struct bytes {
    uint8_t at[2048];
    size_t len;
};

static void put(struct bytes *bytes, const void *data, size_t len)
{
    memcpy(bytes->at + bytes->len, data, len);
    bytes->len += len;
}

static void put_number(struct bytes *bytes, size_t value, size_t size)
{
    while (size--)
        bytes->at[bytes->len++] = (uint8_t)(value >> 8 * size);
}

static void put_name(struct bytes *bytes, const char *name, size_t len)
{
    put_number(bytes, 0, 2); /* server_name */
    put_number(bytes, len + 5, 2);
    put_number(bytes, len + 3, 2);
    put_number(bytes, 0, 1); /* host_name */
    put_number(bytes, len, 2);
    put(bytes, name, len);
}

/* A message whose extensions are these; NULL: it has none. */
static struct bytes hello(const struct bytes *extensions)
{
    struct bytes body = {.len = 0}, message = {.len = 0};

    put_number(&body, 0x303, 2);
    for (int i = 0; i < 32; i++)
        put_number(&body, (size_t)i, 1);
    put_number(&body, 0, 1);
    put_number(&body, 2, 2);
    put_number(&body, 0x1301, 2);
    put_number(&body, 1, 1);
    put_number(&body, 0, 1);
    if (extensions) {
        put_number(&body, extensions->len, 2);
        put(&body, extensions->at, extensions->len);
    }
    put_number(&message, 1, 1);
    put_number(&message, body.len, 3);
    put(&message, body.at, body.len);
    return message;
}

/* In records of so many bytes. */
static struct bytes records(const struct bytes *message, size_t size)
{
    struct bytes bytes = {.len = 0};

    for (size_t at = 0; at < message->len; at += size) {
        size_t len = message->len - at < size ? message->len - at : size;

        put_number(&bytes, 22, 1);
        put_number(&bytes, 0x301, 2);
        put_number(&bytes, len, 2);
        put(&bytes, message->at + at, len);
    }
    return bytes;
}

static struct bytes to_example(size_t record)
{
    struct bytes extensions = {.len = 0}, message;

    put_number(&extensions, 16, 2); /* another extension */
    put_number(&extensions, 2, 2);
    put_number(&extensions, 0, 2);
    put_name(&extensions, "example.org", 11);
    message = hello(&extensions);
    return records(&message, record);
}

static void assert_step(const struct bytes *bytes, enum tls_step step, const char *name)
{
    struct tls_hello hello;

    assert_int_equal(tls_hello_read(bytes->at, bytes->len, &hello), step);
    if (name)
        assert_string_equal(hello.name, name);
}

static void a_name(void **state)
{
    static const size_t sizes[] = {1024, 40, 7, 2};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct bytes whole = to_example(sizes[i]);
        struct tls_hello hello;

        for (size_t len = 0; len < whole.len; len++)
            assert_int_equal(tls_hello_read(whole.at, len, &hello), TLS_MORE);
        assert_step(&whole, TLS_WHOLE, "example.org");
    }
}

static void without_a_name(void **state)
{
    struct bytes message = hello(NULL), whole = records(&message, 1024);

    assert_step(&whole, TLS_WHOLE, "");
    message = hello(&(struct bytes){.len = 0});
    whole = records(&message, 1024);
    assert_step(&whole, TLS_WHOLE, "");
}

static void assert_name(const char *name, size_t len, enum tls_step step)
{
    struct bytes extensions = {.len = 0}, message, whole;

    put_name(&extensions, name, len);
    message = hello(&extensions);
    whole = records(&message, 1024);
    assert_step(&whole, step, step == TLS_WHOLE ? name : NULL);
}

static void names(void **state)
{
    char longest[256];

    memset(longest, 'a', sizeof longest);
    longest[255] = '\0';
    assert_name(longest, 255, TLS_WHOLE);
    assert_name(longest, 256, TLS_BAD);
    assert_name("", 0, TLS_BAD);
    assert_name("a\0b", 3, TLS_BAD);
    assert_name("a b", 3, TLS_BAD);
    assert_name("\xc3\xa4", 2, TLS_BAD);
}

static void two_names(void **state)
{
    struct bytes extensions = {.len = 0}, message, whole;

    put_name(&extensions, "good.example", 12);
    put_name(&extensions, "evil.example", 12);
    message = hello(&extensions);
    whole = records(&message, 1024);
    assert_step(&whole, TLS_BAD, NULL);
}

static void what_is_no_tls(void **state)
{
    struct bytes bytes = {.at = "SSH-2.0-x", .len = 9};

    assert_step(&bytes, TLS_NONE, NULL);
    bytes = (struct bytes){.at = {22, 1, 0}, .len = 3};
    assert_step(&bytes, TLS_NONE, NULL);
    bytes = (struct bytes){.at = {21, 1}, .len = 2};
    assert_step(&bytes, TLS_NONE, NULL);
    bytes = (struct bytes){.at = {21}, .len = 1};
    assert_step(&bytes, TLS_MORE, NULL);
    bytes = (struct bytes){.at = {21, 3, 1, 0, 2, 1, 90}, .len = 7}; /* a warning in front */
    assert_step(&bytes, TLS_BAD, NULL);
    bytes = (struct bytes){.at = {22, 3, 1, 0, 0}, .len = 5}; /* an empty record */
    assert_step(&bytes, TLS_BAD, NULL);
    bytes = (struct bytes){.at = {22, 3, 1, 0, 4, 2, 0, 0, 0}, .len = 9}; /* a server's */
    assert_step(&bytes, TLS_BAD, NULL);
    bytes = (struct bytes){.at = {22, 3, 1, 0, 4, 1, 1, 0, 0}, .len = 9}; /* 64 KiB */
    assert_step(&bytes, TLS_BAD, NULL);
}

/* Every byte that is another one, and many other slips: what is taken for a hello has a name as it may be. */
static void ten_thousand_broken_ones(void **state)
{
    struct bytes whole = to_example(60);

    for (unsigned i = 0; i < MUTATIONS; i++) {
        uint8_t bytes[MUTATED_MAX];
        size_t len = mutate(whole.at, whole.len, i, bytes);
        struct tls_hello hello;

        if (tls_hello_read(bytes, len, &hello) == TLS_WHOLE)
            for (const char *c = hello.name; *c; c++)
                assert_true(*c > ' ' && *c < 0x7f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name),         cmocka_unit_test(without_a_name),
        cmocka_unit_test(names),          cmocka_unit_test(two_names),
        cmocka_unit_test(what_is_no_tls), cmocka_unit_test(ten_thousand_broken_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

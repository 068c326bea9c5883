/* sha256: the examples of NIST, and every length over several blocks, against Python's hashlib. */
#include "audit/record.h"
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_hash(const void *data, size_t len, const char *expected)
{
    uint8_t hash[SHA256_SIZE];
    char hex[AUDIT_HEX_SIZE];
    struct sha256 sha;

    sha256_start(&sha);
    sha256_add(&sha, data, len);
    sha256_finish(&sha, hash);
    audit_hash_format(hash, hex);
    assert_memory_equal(hex, expected, AUDIT_HEX_SIZE);
}

/* https://csrc.nist.gov, "SHA256.pdf": one block, two blocks; and the empty message. */
static void examples(void **state)
{
    static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

    assert_hash("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_hash(two, strlen(two),
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_million_times_a(void **state)
{
    char *text = malloc(1000000);

    assert_non_null(text);
    memset(text, 'a', 1000000);
    assert_hash(text, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(text);
}

/* m = bytes((i * 7 + 3) & 255 for i in range(300))
 * sha256(b"".join(sha256(m[:n]).digest() for n in range(300))).hexdigest() */
static void every_length(void **state)
{
    uint8_t message[300];
    uint8_t all[300 * SHA256_SIZE];

    for (unsigned i = 0; i < 300; i++)
        message[i] = (uint8_t)(i * 7 + 3);
    for (size_t len = 0; len < 300; len++) {
        struct sha256 sha;

        sha256_start(&sha);
        sha256_add(&sha, message, len / 3); /* in pieces */
        sha256_add(&sha, message + len / 3, len - len / 3);
        sha256_finish(&sha, all + len * SHA256_SIZE);
    }
    assert_hash(all, sizeof all,
                "7b074096cabb18dd0d1b468a173cb2f97f80e952525bca29542e606fd6d0753a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples),
        cmocka_unit_test(a_million_times_a),
        cmocka_unit_test(every_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

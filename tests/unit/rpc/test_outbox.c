/* The queue of what a peer has not taken yet. */
#include "../base/support.h"

#include "base/auto.h"
#include "rpc/peer.h"

#include <stdlib.h>
#include <string.h>

/* A sequence of numbers that is the same every time (Knuth's linear generator). */
static unsigned next_number(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*state >> 33);
}

static void outbox_push_some(struct outbox *outbox, uint64_t *state, uint8_t *next_byte)
{
    char bytes[3][50];
    struct iovec parts[3];
    size_t total = 0;
    size_t skip;

    for (size_t i = 0; i < 3; i++) {
        parts[i] = (struct iovec){bytes[i], next_number(state) % 50};
        total += parts[i].iov_len;
    }
    skip = next_number(state) % (total + 1);
    total = 0;
    for (size_t i = 0; i < 3; i++) /* what is skipped is no part of the sequence */
        for (size_t j = 0; j < parts[i].iov_len; j++)
            bytes[i][j] = (char)(total++ < skip ? 0xee : (*next_byte)++);
    if (next_number(state) % 2) {
        outbox_push(outbox, parts, 3, skip);
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        size_t len = parts[i].iov_len;
        size_t skipped = skip < len ? skip : len;
        char *copy = malloc(len + 1);

        memcpy(copy, bytes[i], len);
        outbox_push_take(outbox, copy, len, skipped);
        skip -= skipped;
    }
}

/* Takes some of what comes next, and checks it. */
static size_t outbox_take_some(struct outbox *outbox, uint64_t *state, uint8_t *expected)
{
    struct iovec parts[5];
    size_t count = outbox_peek(outbox, parts, 5);
    size_t available = 0;
    size_t taken;
    size_t left;

    for (size_t i = 0; i < count; i++)
        available += parts[i].iov_len;
    taken = available ? next_number(state) % (available + 1) : 0;
    left = taken;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < parts[i].iov_len && left; j++, left--)
            assert_int_equal(((uint8_t *)parts[i].iov_base)[j], (*expected)++);
    outbox_consume(outbox, taken);
    return taken;
}

static void outbox_keeps_every_byte_in_order(void **state)
{
    AUTO(outbox_done) struct outbox outbox = {0};
    uint64_t numbers = 1;
    uint8_t pushed = 0;
    uint8_t expected = 0;

    for (int i = 0; i < 20000; i++) {
        if (next_number(&numbers) % 100 < 55) {
            outbox_push_some(&outbox, &numbers, &pushed);
        } else {
            size_t before = outbox.len;
            size_t taken = outbox_take_some(&outbox, &numbers, &expected);

            assert_int_equal(outbox.len, before - taken);
        }
    }
    while (outbox.len)
        outbox_take_some(&outbox, &numbers, &expected);
    assert_int_equal(expected, pushed);
    assert_null(outbox.pieces); /* idle peers hold no memory */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outbox_keeps_every_byte_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

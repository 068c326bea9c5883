/* Two texts, "OLD\0NEW": all hunks make the new one of the old one, none leave it, every other one something that has
 * them; hunks are in order and apart. And a text as a stamp: what is read is written as it was. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "layer/diff.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool takes_all(void *data, size_t hunk)
{
    (void)hunk;
    return *(bool *)data;
}

static void check_applied(const char *old, size_t old_len, const char *text, size_t len,
                          const struct hunks *hunks, bool all)
{
    AUTO(buf_done) struct buf made;

    buf_init(&made, SIZE_MAX / 2);
    diff_apply(old, old_len, text, len, hunks, takes_all, &all, &made);
    check(made.len == (all ? len : old_len));
    check(made.len == 0 || memcmp(made.data, all ? text : old, made.len) == 0);
}

static void check_stamp(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = alloc_strn((const char *)data, size);
    AUTO_FREE char *again = NULL;
    struct change_stamp stamp, other;
    struct err err;

    if (change_stamp_parse(text, &stamp, &err))
        return;
    again = change_stamp_format(&stamp);
    check(change_stamp_parse(again, &other, &err) == 0);
    check(change_stamp_equal(&stamp, &other));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *old = (const char *)data;
    const char *end = size ? memchr(old, 0, size) : NULL;
    size_t old_len = end ? (size_t)(end - old) : size;
    const char *text = end ? end + 1 : "";
    size_t len = end ? size - old_len - 1 : 0, at = 0;
    AUTO(buf_done) struct buf unified;
    struct hunks hunks;

    diff_lines(old, old_len, text, len, &hunks);
    for (size_t i = 0; i < hunks.len; i++) {
        check(hunks.items[i].old_len || hunks.items[i].new_len);
        check(i == 0 || hunks.items[i].old_at > at);
        at = hunks.items[i].old_at + hunks.items[i].old_len;
    }
    check_applied(old, old_len, text, len, &hunks, true);
    check_applied(old, old_len, text, len, &hunks, false);
    buf_init(&unified, SIZE_MAX / 2);
    diff_unified(old, old_len, text, len, &hunks, size % 4, &unified);
    check((hunks.len == 0) == (unified.len == 0));
    hunks_done(&hunks);
    check_stamp(data, size);
    return 0;
}

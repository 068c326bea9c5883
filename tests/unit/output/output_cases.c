/* See output_cases.h. */
#include "output_cases.h"

#include "base/auto.h"
#include "base/buf.h"
#include "output/headtail.h"

#include <stdio.h>
#include <string.h>

uint64_t case_number(const json_t *object, const char *key, uint64_t otherwise)
{
    const json_t *value = json_object_get(object, key);

    if (!value || json_is_null(value))
        return otherwise;
    if (!json_is_integer(value))
        fail_msg("\"%s\" should be a number", key);
    return (uint64_t)json_integer_value(value);
}

static void hex_bytes(const char *hex, struct buf *ret)
{
    for (unsigned byte; *hex; hex += 2) {
        char c;

        if (sscanf(hex, "%2x", &byte) != 1)
            fail_msg("not hex: %s", hex);
        c = (char)byte;
        assert_true(buf_append(ret, &c, 1));
    }
}

void case_bytes(const json_t *json, struct buf *ret)
{
    const json_t *item;
    size_t i;

    if (json_is_string(json)) {
        assert_true(buf_append(ret, json_string_value(json), json_string_length(json)));
    } else if (json_object_get(json, "hex")) {
        hex_bytes(case_string(json, "hex"), ret);
    } else if (json_object_get(json, "repeat")) {
        for (uint64_t n = case_number(json, "times", 0); n; n--)
            assert_true(buf_append_str(ret, case_string(json, "repeat")));
    } else if (json_is_array(json)) {
        json_array_foreach(json, i, item) case_bytes(item, ret);
    } else {
        fail_msg("these are no bytes");
    }
}

void case_fill(const json_t *json, struct headtail *ret)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json, i, item)
    {
        AUTO(buf_done) struct buf bytes;

        buf_init(&bytes, 1 << 22);
        if (json_object_get(item, "omit")) {
            headtail_omit(ret, case_number(item, "omit", 0));
            continue;
        }
        case_bytes(item, &bytes);
        headtail_add(ret, bytes.data, bytes.len);
    }
}

static void escape(const char *bytes, size_t len, struct buf *ret)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] == '\n' || (bytes[i] >= ' ' && bytes[i] <= '~'))
            buf_append(ret, bytes + i, 1);
        else
            buf_appendf(ret, "<%02x>", (unsigned char)bytes[i]);
}

void assert_bytes(const char *got, size_t got_len, const char *wanted, size_t wanted_len)
{
    AUTO(buf_done) struct buf left;
    AUTO(buf_done) struct buf right;

    buf_init(&left, SIZE_MAX / 2);
    buf_init(&right, SIZE_MAX / 2);
    escape(got, got_len, &left);
    escape(wanted, wanted_len, &right);
    if (left.len != right.len ||
        memcmp(left.data ? left.data : "", right.data ? right.data : "", left.len) != 0)
        fail_msg("got \"%s\"\nwanted \"%s\"", left.data ? left.data : "",
                 right.data ? right.data : "");
}

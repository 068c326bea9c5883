/* An entry put into a text, put there again, and removed: the second changes nothing, all bytes of the text are
 * still there in their order, and without the entry the text says what it said before. That the change itself is
 * right is what json_edit_put() finds out on its own; an error of its scanner (ERR_BUG) is a finding. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "setup/json_edit.h"

#include <stdlib.h>
#include <string.h>

static bool is_item(const json_t *item)
{
    return json_is_integer(item) && json_integer_value(item) == 7;
}

static void must(bool is_so)
{
    if (!is_so)
        abort();
}

/* 0, or -1 for what is refused. */
static int put(const struct buf *text, const struct json_place *place, const json_t *value,
               struct buf *ret)
{
    struct err err;
    int status = json_edit_put(text->data, text->len, place, value, ret, &err);

    must(!status || err.code == ERR_INVALID);
    return status;
}

static bool is_within(const struct buf *part, const struct buf *whole)
{
    size_t at = 0;

    for (size_t i = 0; i < whole->len && at < part->len; i++)
        at += whole->data[i] == part->data[at];
    return at == part->len;
}

static void try_place(const struct buf *text, const struct json_place *place, const json_t *value)
{
    AUTO(buf_done) struct buf first = {.max = SIZE_MAX / 2}, second = {.max = SIZE_MAX / 2};
    AUTO(buf_done) struct buf without = {.max = SIZE_MAX / 2};
    struct err err;
    AUTO_JSON json_t *before = json_edit_parse(text->data, text->len, &err);
    AUTO_JSON json_t *after = NULL;
    bool was_there = before && json_edit_find(before, place);

    if (put(text, place, value, &first))
        return;
    must(put(&first, place, value, &second) == 0 && second.len == first.len &&
         !memcmp(first.data, second.data, first.len));
    must(was_there || is_within(text, &first));
    must(json_edit_remove(first.data, first.len, place, true, &without, &err) == 0);
    after = json_edit_parse(without.data, without.len, &err);
    must(after && !json_edit_find(after, place));
    buf_clear(&second);
    must(put(&without, place, value, &second) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const entry[] = {"mcpServers", "cordon", NULL};
    static const char *const list[] = {"hooks", "BeforeTool", NULL};
    const struct json_place as_member = {.keys = entry};
    const struct json_place as_item = {.keys = list, .is_item = is_item};
    AUTO_JSON json_t *value = json_pack("{s:s, s:[s]}", "command", "/c", "args", "mcp");
    AUTO_JSON json_t *number = json_integer(7);
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    buf_append_str(&text, "");
    buf_append(&text, data, size);
    try_place(&text, &as_member, value);
    try_place(&text, &as_item, number);
    return 0;
}

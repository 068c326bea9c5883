/* A table put into a text, put there again, and removed: the second changes nothing, and without the table the text is
 * what it was, byte for byte, if the table was not there. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/buf.h"
#include "policy/config/toml.h"
#include "setup/toml_edit.h"

#include <stdlib.h>
#include <string.h>

static const char *const keys[] = {"mcp_servers", "cordon", NULL};
static bool is_ours(const struct toml_node *table)
{
    const struct toml_node *command = toml_find(table, "command");

    return command && command->kind == TOML_STRING && command->string[0] == '/';
}

static const struct toml_block block = {
    .mark = "# ours",
    .table = "mcp_servers.cordon",
    .keys = keys,
    .is_ours = is_ours,
    .body = "command = \"/c\"\nargs = [\"mcp\"]\n",
};

static void must(bool is_so)
{
    if (!is_so)
        abort();
}

static bool is_there(const char *text, size_t len)
{
    struct err err;
    struct toml_node *root = toml_parse(text, len, &err);
    bool ret = root && toml_find(toml_find(root, keys[0]), keys[1]);

    toml_free(root);
    return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2}, first = {.max = SIZE_MAX / 2};
    AUTO(buf_done) struct buf second = {.max = SIZE_MAX / 2}, without = {.max = SIZE_MAX / 2};
    struct err err;

    buf_append_str(&text, "");
    buf_append(&text, data, size);
    if (toml_edit_put(text.data, text.len, &block, &first, &err)) {
        must(err.code == ERR_INVALID || err.code == ERR_FORBIDDEN);
        return 0;
    }
    must(toml_edit_put(first.data, first.len, &block, &second, &err) == 0);
    must(second.len == first.len && !memcmp(first.data, second.data, first.len));
    if (toml_edit_remove(first.data, first.len, &block, &without, &err)) {
        /* also when a string has lines that look like ours */
        must(err.code == ERR_FORBIDDEN &&
             (is_there(text.data, text.len) || strstr(text.data, "[mcp_servers.cordon")));
        return 0;
    }
    must(!is_there(without.data ? without.data : "", without.len));
    if (!is_there(text.data, text.len))
        must(without.len == text.len &&
             !memcmp(without.data ? without.data : "", text.data, text.len));
    return 0;
}

/* What a model is told of a command (tests/cases/mcp_result).
 *
 *     answer        of the engine
 *     lines         the text
 *     structured    the same as an object */
#include "../base/cases.h"

#include "base/auto.h"
#include "base/buf.h"
#include "mcp/result.h"

#include <string.h>

static json_t *lines_of(const char *text)
{
    json_t *lines = json_array();

    while (*text) {
        size_t len = strcspn(text, "\n");

        json_array_append_new(lines, json_stringn(text, len + (text[len] == '\n')));
        text += len + (text[len] == '\n');
    }
    return lines;
}

static void result_case(void **state)
{
    static const char *const keys[] = {"why", "answer", "lines", "structured", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const json_t *answer = json_object_get(json, "answer");
    AUTO(buf_done) struct buf text;
    AUTO_JSON json_t *lines = NULL;
    AUTO_JSON json_t *structured = mcp_result_structured(answer);

    case_check_keys(json, keys);
    buf_init(&text, 1 << 20);
    mcp_result_text(answer, &text);
    lines = lines_of(text.data);
    assert_json_equal(lines, json_object_get(json, "lines"));
    assert_json_equal(structured, json_object_get(json, "structured"));
}

int main(void)
{
    return cases_run("mcp_result", result_case, NULL, 0);
}

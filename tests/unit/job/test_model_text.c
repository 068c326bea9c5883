/* model_text: what a model sees, byte for byte (tests/cases/job/layout).
 *
 *     chunk_id, wall_ns, asked_tokens, notes
 *     exit_code or session_id
 *     max, output           of a headtail, see output_cases.h
 *     policy                {tokens} or {bytes}; none unless given
 *     text                  all that the model sees */
#include "output_cases.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "job/model_text.h"
#include "output/headtail.h"

#include <ctype.h>
#include <string.h>

static struct truncate_budget policy_of(const json_t *json)
{
    const json_t *policy = json_object_get(json, "policy");
    bool in_tokens = json_object_get(policy, "tokens") != NULL;

    return (struct truncate_budget){
        .unit = in_tokens ? TRUNCATE_TOKENS : TRUNCATE_BYTES,
        .limit = case_number(policy, in_tokens ? "tokens" : "bytes", UINT64_MAX),
    };
}

static void set_end(const json_t *json, struct model_response *response)
{
    response->end = MODEL_UNKNOWN;
    if (json_object_get(json, "exit_code")) {
        response->end = MODEL_EXITED;
        response->number = (int)case_number(json, "exit_code", 0);
    } else if (json_object_get(json, "session_id")) {
        response->end = MODEL_RUNNING;
        response->number = (int)case_number(json, "session_id", 0);
    }
}

static void layout_case(void **state)
{
    static const char *const keys[] = {"why",        "chunk_id", "wall_ns", "asked_tokens",
                                       "notes",      "max",      "output",  "exit_code",
                                       "session_id", "policy",   "text",    NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const uint64_t asked = case_number(json, "asked_tokens", 0);
    AUTO_FREE char **notes = case_strings(json, "notes");
    AUTO(headtail_done) struct headtail output;
    AUTO(buf_done) struct buf wanted;
    AUTO(buf_done) struct buf text;
    struct model_response response = {
        .chunk_id = case_string_or(json, "chunk_id", NULL),
        .wall_ns = case_number(json, "wall_ns", 0),
        .output = &output,
        .asked_tokens = json_object_get(json, "asked_tokens") ? &asked : NULL,
        .policy = policy_of(json),
        .notes = json_object_get(json, "notes") ? notes : NULL,
    };

    case_check_keys(json, keys);
    set_end(json, &response);
    headtail_init(&output, case_number(json, "max", 1 << 20));
    case_fill(json_object_get(json, "output"), &output);
    buf_init(&text, 1 << 22);
    buf_init(&wanted, 1 << 22);
    assert_true(model_text_format(&response, &text));
    case_bytes(json_object_get(json, "text"), &wanted);
    assert_bytes(text.data, text.len, wanted.data, wanted.len);
}

/* Whatever the sizes: the response fits 1.2 times the policy as soon as its fixed lines do. */
static void a_response_fits_its_policy(void **state)
{
    for (uint64_t tokens = 0; tokens < 400; tokens += 3) {
        for (size_t len = 0; len < 3000; len += 177) {
            AUTO(headtail_done) struct headtail output;
            AUTO(buf_done) struct buf text;
            const struct model_response response = {
                .chunk_id = "abcdef",
                .output = &output,
                .policy = {.unit = tokens % 2 ? TRUNCATE_TOKENS : TRUNCATE_BYTES,
                           .limit = tokens % 2 ? tokens : tokens * 4},
            };

            headtail_init(&output, 2000);
            for (size_t i = 0; i < len; i++)
                headtail_add(&output, i % 30 ? "x" : "\n", 1);
            buf_init(&text, 1 << 20);
            assert_true(model_text_format(&response, &text));
            if (tokens * 4 >= 250)
                assert_true(text.len <= tokens * 4 + tokens * 4 / 5);
        }
    }
}

static void chunk_ids(void **state)
{
    char id[MODEL_CHUNK_ID_SIZE];
    char other[MODEL_CHUNK_ID_SIZE];
    struct err err;

    model_chunk_id(0xfe00ab12, id);
    assert_string_equal(id, "00ab12");
    assert_int_equal(model_chunk_id_random(id, &err), 0);
    assert_int_equal(strlen(id), 6);
    for (int i = 0; i < 6; i++)
        assert_true(isdigit((unsigned char)id[i]) || (id[i] >= 'a' && id[i] <= 'f'));
    for (int i = 0; i < 20; i++) { /* twenty times the same: once in 10^144 runs */
        assert_int_equal(model_chunk_id_random(other, &err), 0);
        if (strcmp(id, other) != 0)
            return;
    }
    fail_msg("always %s", id);
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(a_response_fits_its_policy),
        cmocka_unit_test(chunk_ids),
    };

    return cases_run("job/layout", layout_case, more, sizeof more / sizeof *more);
}

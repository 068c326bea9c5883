/* truncate: the forms that models know (tests/cases/output/truncate).
 *
 *     text               bytes, see output_cases.h
 *     tokens or bytes    the budget
 *     total, omitted     of struct truncate_source; the length and 0 unless given
 *     middle, formatted  what truncate_middle() and truncate_formatted() give */
#include "output_cases.h"

#include "base/auto.h"
#include "base/buf.h"
#include "output/truncate.h"

static struct truncate_budget budget_of(const json_t *json)
{
    bool in_tokens = json_object_get(json, "tokens") != NULL;

    return (struct truncate_budget){
        .unit = in_tokens ? TRUNCATE_TOKENS : TRUNCATE_BYTES,
        .limit = case_number(json, in_tokens ? "tokens" : "bytes", 0),
    };
}

static void check(const json_t *wanted, const struct buf *got)
{
    AUTO(buf_done) struct buf bytes;

    buf_init(&bytes, 1 << 22);
    if (!wanted)
        return;
    case_bytes(wanted, &bytes);
    assert_bytes(got->data, got->len, bytes.data, bytes.len);
}

static void truncate_case(void **state)
{
    static const char *const keys[] = {"why",     "text",   "tokens",    "bytes", "total",
                                       "omitted", "middle", "formatted", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    struct truncate_budget budget = budget_of(json);
    AUTO(buf_done) struct buf text;
    AUTO(buf_done) struct buf middle;
    AUTO(buf_done) struct buf formatted;
    struct truncate_source source;

    case_check_keys(json, keys);
    buf_init(&text, 1 << 22);
    buf_init(&middle, 1 << 22);
    buf_init(&formatted, 1 << 22);
    case_bytes(json_object_get(json, "text"), &text);
    source = (struct truncate_source){.text = text.data,
                                      .len = text.len,
                                      .total = case_number(json, "total", text.len),
                                      .omitted = case_number(json, "omitted", 0)};
    assert_true(truncate_middle(text.data, text.len, budget, &middle));
    assert_true(truncate_formatted(&source, budget, &formatted));
    check(json_object_get(json, "middle"), &middle);
    check(json_object_get(json, "formatted"), &formatted);
}

static void tokens_round_up(void **state)
{
    assert_int_equal(truncate_tokens(0), 0);
    assert_int_equal(truncate_tokens(1), 1);
    assert_int_equal(truncate_tokens(4), 1);
    assert_int_equal(truncate_tokens(5), 2);
    assert_int_equal(truncate_tokens(UINT64_MAX), UINT64_C(1) << 62);
}

static void the_smaller_budget_counts_in_bytes(void **state)
{
    const struct truncate_budget ten_tokens = {TRUNCATE_TOKENS, 10};
    const struct truncate_budget forty_bytes = {TRUNCATE_BYTES, 40};
    const struct truncate_budget less = {TRUNCATE_BYTES, 39};
    const struct truncate_budget none = {TRUNCATE_TOKENS, UINT64_MAX};

    assert_int_equal(truncate_budget_bytes(ten_tokens), 40);
    assert_int_equal(truncate_budget_bytes(none), UINT64_MAX);
    assert_int_equal(truncate_budget_min(ten_tokens, forty_bytes).unit, TRUNCATE_TOKENS);
    assert_int_equal(truncate_budget_min(forty_bytes, ten_tokens).unit, TRUNCATE_BYTES);
    assert_int_equal(truncate_budget_min(ten_tokens, less).limit, 39);
    assert_int_equal(truncate_budget_min(none, ten_tokens).limit, 10);
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(tokens_round_up),
        cmocka_unit_test(the_smaller_budget_counts_in_bytes),
    };

    return cases_run("output/truncate", truncate_case, more, sizeof more / sizeof *more);
}

/* search: which lines are reported (tests/cases/session/search).
 *
 *     memory     of the output; 1 MiB unless given
 *     chunks     each appended by itself, see session_cases.h
 *     plain or regex; from, to, before, after, matches_max, shown_max
 *     error      part of the message, instead of the rest
 *     lines      in order: "N@OFFSET text" for context, with "*" before it for a match,
 *                "[" and "]" around what matched, "<" and ">" where the line is cut;
 *                "gap N@OFFSET BYTES NEWLINES"
 *     matches, looked_at, gap, limited   of the result */
#include "session_cases.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "exec/output.h"
#include "exec/search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void on_line(void *data, const struct search_line *line)
{
    AUTO(buf_done) struct buf text;
    const char *found = line->text + line->match_at;
    bool marks = line->kind == SEARCH_MATCH && line->match_len;

    buf_init(&text, 1 << 22);
    if (line->kind == SEARCH_GAP) {
        buf_appendf(&text, "gap %" PRIu64 "@%" PRIu64 " %" PRIu64 " %" PRIu64, line->line,
                    line->offset, line->gap_bytes, line->gap_newlines);
    } else {
        buf_appendf(&text, "%s%" PRIu64 "@%" PRIu64 " %s", line->kind == SEARCH_MATCH ? "*" : "",
                    line->line, line->offset, line->cut & SEARCH_CUT_BEGIN ? "<" : "");
        buf_append(&text, line->text, marks ? line->match_at : line->len);
        if (marks) {
            buf_appendf(&text, "[%.*s]", (int)line->match_len, found);
            buf_append(&text, found + line->match_len,
                       line->len - line->match_at - line->match_len);
        }
        buf_append_str(&text, line->cut & SEARCH_CUT_END ? ">" : "");
    }
    json_array_append_new(data, json_string(text.data));
}

static struct output *output_of(const json_t *json)
{
    struct output *output =
        output_new(&(struct output_options){.memory_max = case_number(json, "memory", 1 << 20)});
    const json_t *chunk;
    size_t i;

    json_array_foreach(json_object_get(json, "chunks"), i, chunk)
    {
        AUTO(buf_done) struct buf bytes;

        buf_init(&bytes, 1 << 22);
        case_bytes(chunk, &bytes);
        output_append(output, i % 2 ? STREAM_STDERR : STREAM_STDOUT, bytes.data, bytes.len);
    }
    return output;
}

static struct search_options options_of(const json_t *json)
{
    const char *plain = case_string_or(json, "plain", NULL);
    const char *regex = case_string_or(json, "regex", NULL);

    return (struct search_options){
        .syntax = plain   ? SEARCH_PLAIN
                  : regex ? SEARCH_REGEX
                          : SEARCH_ALL,
        .pattern = plain ? plain : regex,
        .from = (int64_t)case_number(json, "from", 0),
        .to = (int64_t)case_number(json, "to", 0),
        .before = (unsigned)case_number(json, "before", 0),
        .after = (unsigned)case_number(json, "after", 0),
        .matches_max = case_number(json, "matches_max", 0),
        .shown_max = case_number(json, "shown_max", 0),
    };
}

/* In steps of `step` bytes. */
static void check(const json_t *json, struct output *output, size_t step)
{
    const struct search_options options = options_of(json);
    AUTO_JSON json_t *lines = json_array();
    struct search_result result;
    struct search *search;
    struct err err;

    search = search_new(output, &options, &err);
    if (json_object_get(json, "error")) {
        assert_null(search);
        assert_int_equal(err.code, ERR_INVALID);
        assert_contains(err.msg, case_string(json, "error"));
        return;
    }
    if (!search)
        fail_msg("%s", err.msg);
    while (search_step(search, step, on_line, lines))
        ;
    assert_false(search_step(search, step, on_line, lines));
    search_result(search, &result);
    search_free(search);
    assert_json_equal(lines, json_object_get(json, "lines"));
    assert_int_equal(result.matches, case_number(json, "matches", result.matches));
    assert_int_equal(result.lines, case_number(json, "looked_at", result.lines));
    assert_int_equal(result.gap, case_number(json, "gap", 0));
    assert_int_equal(result.was_limited, json_is_true(json_object_get(json, "limited")));
}

static void search_case(void **state)
{
    static const char *const keys[] = {"why",       "memory",  "chunks", "plain",   "regex",
                                       "from",      "to",      "before", "after",   "matches_max",
                                       "shown_max", "error",   "lines",  "matches", "looked_at",
                                       "gap",       "limited", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    struct output *output = output_of(json);

    case_check_keys(json, keys);
    check(json, output, 1);
    check(json, output, SIZE_MAX);
    output_free(output);
}

/* --- when the output goes on meanwhile --- */

static void append(struct output *output, const char *text)
{
    output_append(output, STREAM_STDOUT, text, strlen(text));
}

static void what_comes_later_is_not_seen_and_what_goes_is_a_gap(void **state)
{
    struct output *output = output_new(&(struct output_options){.memory_max = 20});
    AUTO_JSON json_t *lines = json_array();
    AUTO_JSON json_t *wanted = json_pack("[s,s,s]", "*1@0 head", "*2@5 bbbb", "gap 3@10 15 3");
    struct search_result result;
    struct search *search;
    struct err err;

    append(output, "head\nbbbb\ncccc\n");
    search = search_new(output, &(struct search_options){0}, &err);
    for (int i = 0; i < 4; i++)
        append(output, "dddd\n");
    /* the first ten bytes stay, and the last ten; "cccc" is gone */
    while (search_step(search, 1, on_line, lines))
        ;
    search_result(search, &result);
    assert_json_equal(lines, wanted);
    assert_int_equal(result.gap, 15);
    search_free(search);
    output_free(output);
}

/* --- against lines split by hand --- */

static uint64_t random_state;

static uint64_t number_below(uint64_t end)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (random_state >> 33) % end;
}

struct tally {
    const char *bytes;
    size_t len;
    uint64_t lines;
    uint64_t next_line;
};

/* Every line that is reported is what is there, under its right number. */
static void on_random_line(void *data, const struct search_line *line)
{
    struct tally *tally = data;
    uint64_t number = 1;

    for (uint64_t i = 0; i < line->offset; i++)
        number += tally->bytes[i] == '\n';
    assert_int_equal(line->line, number);
    assert_true(line->line >= tally->next_line);
    tally->next_line = line->line;
    if (line->kind == SEARCH_GAP)
        return;
    tally->lines++;
    assert_memory_equal(line->text, tally->bytes + line->offset, line->len);
    if (!(line->cut & SEARCH_CUT_BEGIN))
        assert_true(line->offset == 0 || tally->bytes[line->offset - 1] == '\n');
    if (!(line->cut & SEARCH_CUT_END))
        assert_true(line->offset + line->len == tally->len ||
                    tally->bytes[line->offset + line->len] == '\n');
    if (line->kind == SEARCH_MATCH)
        assert_memory_equal(line->text + line->match_at, "ab", 2);
    else
        assert_null(memmem(line->text, line->len, "ab", 2));
}

static void random_searches(void **state)
{
    for (random_state = 0; random_state < 400; random_state++) {
        uint64_t seed = random_state;
        size_t memory_max = (size_t)number_below(300);
        struct output *output = output_new(&(struct output_options){.memory_max = memory_max});
        struct tally tally = {.len = (size_t)number_below(400)};
        struct search_options options = {.syntax = SEARCH_PLAIN,
                                         .pattern = "ab",
                                         .before = (unsigned)number_below(3),
                                         .after = (unsigned)number_below(3)};
        struct search *search;
        struct err err;
        char bytes[400];

        for (size_t i = 0; i < tally.len; i++)
            bytes[i] = "abcdefg\n"[number_below(8)];
        tally.bytes = bytes;
        output_append(output, STREAM_STDOUT, bytes, tally.len);
        search = search_new(output, &options, &err);
        while (search_step(search, 1 + (size_t)number_below(50), on_random_line, &tally))
            ;
        search_free(search);
        output_free(output);
        random_state = seed;
    }
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(what_comes_later_is_not_seen_and_what_goes_is_a_gap),
        cmocka_unit_test(random_searches),
    };

    return cases_run("session/search", search_case, more, sizeof more / sizeof *more);
}

/* profile_json: every shape in, one shape out (tests/cases/profile_json).
 *
 *     in       the JSON value, or "text": the document as text
 *     out      what profile_to_json() gives; reading that again has to give the same
 *     ignored  paths of unknown keys; with "strict": true none are tolerated
 *     error    instead of out: how the message begins */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/profile_json.h"

#include <string.h>

static int read_case(const json_t *json, struct strv *ignored, struct profile *ret, struct err *err)
{
    struct strv *tolerated = json_is_true(json_object_get(json, "strict")) ? NULL : ignored;
    const char *text = case_string_or(json, "text", NULL);

    if (text)
        return profile_parse(text, strlen(text), tolerated, ret, err);
    return profile_from_json(json_object_get(json, "in"), tolerated, ret, err);
}

static void check_ignored(const json_t *json, const struct strv *ignored)
{
    AUTO_FREE char **wanted = case_strings(json, "ignored");
    size_t i = 0;

    for (; wanted[i]; i++) {
        assert_true(i < ignored->len);
        assert_string_equal(ignored->items[i], wanted[i]);
    }
    assert_int_equal(ignored->len, i);
}

static void profile_case(void **state)
{
    static const char *const keys[] = {"why",   "in",     "text",    "out",
                                       "error", "strict", "ignored", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const char *wanted_error = case_string_or(json, "error", NULL);
    AUTO(strv_done) struct strv ignored = {0};
    AUTO(profile_done) struct profile profile = {0};
    AUTO(profile_done) struct profile again = {0};
    AUTO_JSON json_t *out = NULL;
    AUTO_JSON json_t *out_again = NULL;
    struct err err = {0};

    case_check_keys(json, keys);
    if (wanted_error) {
        assert_int_equal(read_case(json, &ignored, &profile, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        if (!str_starts(err.msg, wanted_error))
            fail_msg("\"%s\" does not begin with \"%s\"", err.msg, wanted_error);
        return;
    }
    if (read_case(json, &ignored, &profile, &err))
        fail_msg("%s", err.msg);
    out = profile_to_json(&profile);
    assert_json_equal(out, json_object_get(json, "out"));
    check_ignored(json, &ignored);
    if (profile_from_json(out, NULL, &again, &err))
        fail_msg("what was written is not read: %s", err.msg);
    out_again = profile_to_json(&again);
    assert_json_equal(out_again, out);
    assert_int_equal(again.entries.len, profile.entries.len);
    for (size_t i = 0; i < profile.entries.len; i++)
        assert_true(profile_entry_equal(&profile.entries.items[i], &again.entries.items[i]));
}

static void origins_are_json_paths(void **state)
{
    static const char text[] = "{\"type\":\"managed\",\"file_system\":{\"type\":\"restricted\","
                               "\"entries\":[{\"path\":{\"type\":\"path\",\"path\":\"/a\"},"
                               "\"access\":\"read\"}]}}";
    AUTO(profile_done) struct profile profile = {0};
    struct err err;

    assert_int_equal(profile_parse(text, strlen(text), NULL, &profile, &err), 0);
    assert_string_equal(profile.entries.items[0].origin, "$.file_system.entries[0]");
}

static void a_path_that_is_not_utf8_becomes_a_uri(void **state)
{
    struct profile_entry entry = {.path = (char *)"/a\xff b", .access = ACCESS_READ};
    AUTO(profile_done) struct profile profile = {0};
    AUTO(profile_done) struct profile again = {0};
    AUTO_JSON json_t *out = NULL;
    struct err err;

    profile_entries_add(&profile.entries, &entry);
    out = profile_to_json(&profile);
    assert_int_equal(profile_from_json(out, NULL, &again, &err), 0);
    assert_string_equal(again.entries.items[0].path, "/a\xff b");
}

static void too_many_entries_are_refused(void **state)
{
    AUTO_JSON json_t *json = json_pack("{s:s, s:{s:s, s:[]}}", "type", "managed", "file_system",
                                       "type", "restricted", "entries");
    json_t *entries = json_object_get(json_object_get(json, "file_system"), "entries");
    AUTO(profile_done) struct profile profile = {0};
    struct err err;

    for (int i = 0; i < 4097; i++)
        json_array_append_new(entries, json_pack("{s:{s:s, s:s}, s:s}", "path", "type", "path",
                                                 "path", "/a", "access", "read"));
    assert_int_equal(profile_from_json(json, NULL, &profile, &err), -1);
    assert_contains(err.msg, "$.file_system.entries: has more than 4096 items");
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(origins_are_json_paths),
        cmocka_unit_test(a_path_that_is_not_utf8_becomes_a_uri),
        cmocka_unit_test(too_many_entries_are_refused),
    };

    return cases_run("profile_json", profile_case, more, sizeof more / sizeof *more);
}

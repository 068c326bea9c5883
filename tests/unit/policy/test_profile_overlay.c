/* profile_overlay: additional permissions (tests/cases/overlay).
 *
 *     a, b          overlays in JSON; or error: how the message about `a` begins
 *     normalised    what `a` becomes; normalise_error: part of the message
 *     merged        a with b
 *     profile       with applied: what it becomes with `a` */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "policy/profile.h"
#include "policy/profile_json.h"

static void overlay_of(const json_t *json, const char *key, struct profile_overlay *ret)
{
    struct err err;

    if (json_object_get(json, key) &&
        profile_overlay_from_json(json_object_get(json, key), ret, &err))
        fail_msg("%s: %s", key, err.msg);
}

/* In the shape that profile_overlay_from_json() reads; a new reference. */
static json_t *overlay_to_json(const struct profile_overlay *overlay)
{
    const struct profile profile = {.entries = overlay->entries,
                                    .glob_scan_max_depth = overlay->glob_scan_max_depth};
    AUTO_JSON json_t *whole = profile_to_json(&profile);
    json_t *files = json_object_get(whole, "file_system");
    json_t *json = json_object();

    if (overlay->network != OVERLAY_NETWORK_UNSET)
        json_object_set_new(
            json, "network",
            json_pack("{s:b}", "enabled", overlay->network == OVERLAY_NETWORK_ENABLED));
    json_object_del(files, "type");
    if (overlay->entries.len)
        json_object_set(json, "file_system", files);
    return json;
}

static void check_overlay(const struct profile_overlay *got, const json_t *wanted)
{
    AUTO_JSON json_t *json = overlay_to_json(got);
    AUTO(profile_overlay_done) struct profile_overlay again = {0};
    AUTO_JSON json_t *json_again = NULL;
    struct err err;

    assert_json_equal(json, wanted);
    assert_int_equal(profile_overlay_from_json(json, &again, &err), 0);
    json_again = overlay_to_json(&again);
    assert_json_equal(json_again, wanted);
    assert_int_equal(profile_overlay_is_empty(got),
                     json_object_size(json_object_get(wanted, "file_system")) == 0 &&
                         got->network != OVERLAY_NETWORK_ENABLED);
}

static void check_normalised(const json_t *json, struct profile_overlay *a)
{
    const char *error = case_string_or(json, "normalise_error", NULL);
    struct err err;

    if (error) {
        assert_int_equal(profile_overlay_normalise(a, &err), -1);
        assert_contains(err.msg, error);
    } else if (json_object_get(json, "normalised")) {
        assert_int_equal(profile_overlay_normalise(a, &err), 0);
        check_overlay(a, json_object_get(json, "normalised"));
    }
}

static void check_applied(const json_t *json, const struct profile_overlay *a)
{
    AUTO(profile_done) struct profile profile = {0};
    AUTO(profile_done) struct profile copy = {0};
    AUTO_JSON json_t *before = NULL;
    AUTO_JSON json_t *after = NULL;
    struct err err;

    if (!json_object_get(json, "profile"))
        return;
    if (profile_from_json(json_object_get(json, "profile"), NULL, &profile, &err))
        fail_msg("%s", err.msg);
    profile_copy(&profile, &copy);
    profile_overlay_apply(&copy, a);
    after = profile_to_json(&copy);
    assert_json_equal(after, json_object_get(json, "applied"));
    before = profile_to_json(&profile);
    assert_json_equal(before, json_object_get(json, "profile"));
}

static void overlay_case(void **state)
{
    static const char *const keys[] = {"why",        "a",       "b",       "error",
                                       "merged",     "profile", "applied", "normalise_error",
                                       "normalised", NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const char *error = case_string_or(json, "error", NULL);
    AUTO(profile_overlay_done) struct profile_overlay a = {0};
    AUTO(profile_overlay_done) struct profile_overlay b = {0};
    AUTO(profile_overlay_done) struct profile_overlay merged = {0};
    struct err err;

    case_check_keys(json, keys);
    if (error) {
        assert_int_equal(profile_overlay_from_json(json_object_get(json, "a"), &a, &err), -1);
        if (!str_starts(err.msg, error))
            fail_msg("\"%s\" does not begin with \"%s\"", err.msg, error);
        return;
    }
    overlay_of(json, "a", &a);
    overlay_of(json, "b", &b);
    profile_overlay_merge(&a, &b, &merged);
    if (json_object_get(json, "merged"))
        check_overlay(&merged, json_object_get(json, "merged"));
    check_applied(json, &a);
    check_normalised(json, &a);
}

int main(void)
{
    return cases_run("overlay", overlay_case, NULL, 0);
}

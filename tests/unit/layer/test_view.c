/* What a name comes to: the cases below tests/cases/layer_view. */
#include "layer/view.h"

#include "../base/cases.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"

static const char *const known[] = {"why", "dir", "from", "entries", "real", "expect", NULL};

static mode_t mode_of(const char *word)
{
    static const struct {
        const char *word;
        mode_t mode;
    } modes[] = {{"none", 0},
                 {"file", S_IFREG | 0644},
                 {"folder", S_IFDIR | 0755},
                 {"link", S_IFLNK | 0777},
                 {"whiteout", S_IFCHR}};

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (str_eq(modes[i].word, word))
            return modes[i].mode;
    fail_msg("\"%s\" is no type", word);
    return 0;
}

static json_t *side_to_json(const struct view_entry *entry, bool is_real)
{
    return entry ? json_integer((json_int_t)entry->step) : json_string(is_real ? "real" : "none");
}

static json_t *flags_to_json(const uint8_t *flags, size_t len)
{
    json_t *list = json_array();

    for (size_t i = 0; i < len; i++) {
        json_t *words = json_array();

        if (flags[i] & VIEW_HAS_DIR)
            json_array_append_new(words, json_string("dir"));
        if (flags[i] & VIEW_COVERS)
            json_array_append_new(words, json_string("covers"));
        json_array_append_new(list, words);
    }
    return list;
}

static json_t *view_to_json(const struct view_name *name, mode_t real)
{
    AUTO_FREE uint8_t *below = alloc_zero(name->steps, 1);
    json_t *object = json_object();
    char kind[2] = "";
    struct view view;

    view_of(name, &view);
    if (view.is_untouched) {
        json_object_set_new(object, "untouched", json_true());
        return object;
    }
    view_below(name, below);
    kind[0] = (char)view_kind(view.now ? view.now->mode : 0,
                              view.before           ? view.before->mode
                              : view.is_before_real ? real
                                                    : 0,
                              false);
    json_object_set_new(object, "now", side_to_json(view.now, false));
    json_object_set_new(object, "before", side_to_json(view.before, view.is_before_real));
    json_object_set_new(object, "kind", json_string(kind));
    json_object_set_new(object, "step", json_integer((json_int_t)view.step));
    json_object_set_new(object, "first", json_integer((json_int_t)view.first));
    json_object_set_new(object, "below", flags_to_json(below, name->steps));
    return object;
}

static void read_flags(const json_t *words, uint8_t *ret)
{
    for (size_t i = 0; i < json_array_size(words); i++)
        *ret |=
            str_eq(json_string_value(json_array_get(words, i)), "dir") ? VIEW_HAS_DIR : VIEW_COVERS;
}

static void test_view(void **state)
{
    const struct test_case *test = *state;
    const json_t *dir = json_object_get(test->json, "dir");
    const json_t *list = json_object_get(test->json, "entries");
    AUTO_FREE uint8_t *flags = alloc_zero(json_array_size(dir), 1);
    AUTO_FREE struct view_entry *entries = alloc_zero(json_array_size(list) + 1, sizeof *entries);
    mode_t real = mode_of(case_string(test->json, "real"));
    struct view_name name = {
        .dir = flags,
        .steps = json_array_size(dir),
        .from = (size_t)json_integer_value(json_object_get(test->json, "from")),
        .entries = entries,
        .len = json_array_size(list),
        .has_real = real,
    };
    AUTO_JSON json_t *got = NULL;

    case_check_keys(test->json, known);
    for (size_t i = 0; i < name.steps; i++)
        read_flags(json_array_get(dir, i), &flags[i]);
    for (size_t i = 0; i < name.len; i++) {
        const json_t *item = json_array_get(list, i);
        mode_t mode = mode_of(case_string(item, "is"));

        entries[i] = (struct view_entry){
            .step = (size_t)json_integer_value(json_object_get(item, "step")),
            .mode = mode,
            .is_whiteout = S_ISCHR(mode),
        };
    }
    got = view_to_json(&name, real);
    assert_json_equal(got, json_object_get(test->json, "expect"));
}

int main(void)
{
    return cases_run("layer_view", test_view, NULL, 0);
}

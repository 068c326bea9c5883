/* See cases.h. CASES is the folder tests/cases, from meson.build. */
#include "cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASE_SIZE_MAX = 1 << 22 };

static void test_case_free(struct test_case *test)
{
    free(test->path);
    free(test->name);
    json_decref(test->json);
    free(test);
}

static int case_open(void **state)
{
    struct test_case *test = *state;
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    if (fd_read_file(test->path, CASE_SIZE_MAX, &text, &err))
        fail_msg("%s", err.msg);
    test->json = json_parse(text.data, text.len, &err);
    if (!test->json)
        fail_msg("%s: %s", test->path, err.msg);
    (void)case_string(test->json, "why");
    return 0;
}

static void cases_list(const char *folder, struct strv *ret)
{
    AUTO_FREE char *path = path_join(CASES, folder);
    DIR *dir = opendir(path);
    const struct dirent *item;

    while (dir && (item = readdir(dir)))
        if (str_ends(item->d_name, ".json"))
            strv_push(ret, item->d_name);
    if (dir)
        closedir(dir);
    strv_sort(ret);
}

int cases_run(const char *folder, CMUnitTestFunction test, const struct CMUnitTest *more,
              size_t more_len)
{
    AUTO(strv_done) struct strv names = {0};
    AUTO_FREE struct CMUnitTest *tests = NULL;
    AUTO_FREE char *path = path_join(CASES, folder);
    int failed;

    cases_list(folder, &names);
    if (!names.len) {
        fprintf(stderr, "%s holds no cases\n", path);
        return 1;
    }
    tests = alloc_zero(names.len + more_len, sizeof *tests);
    for (size_t i = 0; i < names.len; i++) {
        struct test_case *state = alloc_zero(1, sizeof *state);

        state->path = path_join(path, names.items[i]);
        state->name = alloc_str(names.items[i]);
        tests[i] = (struct CMUnitTest){.name = state->name,
                                       .test_func = test,
                                       .setup_func = case_open,
                                       .initial_state = state};
    }
    for (size_t i = 0; i < more_len; i++)
        tests[names.len + i] = more[i];
    failed = _cmocka_run_group_tests(folder, tests, names.len + more_len, NULL, NULL);
    for (size_t i = 0; i < names.len; i++)
        test_case_free(tests[i].initial_state);
    return failed;
}

const char *case_string(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_string(value))
        fail_msg("\"%s\" should be a string", key);
    return json_string_value(value);
}

const char *case_string_or(const json_t *object, const char *key, const char *otherwise)
{
    const json_t *value = json_object_get(object, key);

    return !value || json_is_null(value) ? otherwise : case_string(object, key);
}

char **case_strings(const json_t *object, const char *key)
{
    const json_t *list = json_object_get(object, key);
    char **items;

    if (list && !json_is_array(list))
        fail_msg("\"%s\" should be an array", key);
    items = alloc_zero(json_array_size(list) + 1, sizeof *items);
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!json_is_string(json_array_get(list, i)))
            fail_msg("\"%s\" should hold strings", key);
        items[i] = (char *)json_string_value(json_array_get(list, i));
    }
    return items;
}

void case_check_keys(const json_t *object, const char *const *known)
{
    struct json_at at = json_at_root(object);
    struct err err;

    if (json_at_check_keys(&at, known, NULL, &err))
        fail_msg("%s", err.msg);
}

char *case_text(const char *folder, const char *name, size_t *ret_len)
{
    AUTO_FREE char *path = alloc_strf("%s/%s/%s", CASES, folder, name);
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    if (fd_read_file(path, CASE_SIZE_MAX, &text, &err))
        fail_msg("%s", err.msg);
    *ret_len = text.len;
    return buf_take(&text);
}

void assert_json_equal(const json_t *got, const json_t *wanted)
{
    AUTO_FREE char *got_text = json_dumps(got, JSON_INDENT(1) | JSON_ENCODE_ANY);
    AUTO_FREE char *wanted_text = json_dumps(wanted, JSON_INDENT(1) | JSON_ENCODE_ANY);

    if (!json_equal(got, wanted))
        fail_msg("got %s\nwanted %s", got_text, wanted_text);
}

void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

/* See cases.h. CASES is the directory tests/cases, from meson.build.
 *
 * An update leaves a case as it was written by hand but for the member that changed: this is found
 * in the text, and replaced by JSON in the layout of the cases (what fits on a line is on one). */
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

enum { CASE_SIZE_MAX = 1 << 22, LINE_WIDTH = 100 };

static struct test_case *running;

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
    running = test;
    return 0;
}

static void cases_list(const char *dir, struct strv *ret)
{
    AUTO_FREE char *path = path_join(CASES, dir);
    DIR *opened = opendir(path);
    const struct dirent *item;

    while (opened && (item = readdir(opened)))
        if (str_ends(item->d_name, ".json"))
            strv_push(ret, item->d_name);
    if (opened)
        closedir(opened);
    strv_sort(ret);
}

int cases_run(const char *dir, CMUnitTestFunction test, const struct CMUnitTest *more,
              size_t more_len)
{
    AUTO(strv_done) struct strv names = {0};
    AUTO_FREE struct CMUnitTest *tests = NULL;
    AUTO_FREE char *path = path_join(CASES, dir);
    int failed;

    cases_list(dir, &names);
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
    failed = _cmocka_run_group_tests(dir, tests, names.len + more_len, NULL, NULL);
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

void case_lines(const json_t *object, const char *key, struct buf *ret)
{
    AUTO_FREE char **lines = case_strings(object, key);

    buf_append_str(ret, "");
    for (size_t i = 0; lines[i]; i++)
        buf_appendf(ret, "%s%s", i ? "\n" : "", lines[i]);
}

void case_check_keys(const json_t *object, const char *const *known)
{
    struct json_at at = json_at_root(object);
    struct err err;

    if (json_at_check_keys(&at, known, NULL, &err))
        fail_msg("%s", err.msg);
}

char *case_text(const char *dir, const char *name, size_t *ret_len)
{
    AUTO_FREE char *path = alloc_strf("%s/%s/%s", CASES, dir, name);
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    if (fd_read_file(path, CASE_SIZE_MAX, &text, &err))
        fail_msg("%s", err.msg);
    *ret_len = text.len;
    return buf_take(&text);
}

/* --- CORDON_UPDATE_GOLDEN --- */

static const char *string_end(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

/* Where the value at `at` ends; the text is well-formed JSON. */
static const char *value_end(const char *at)
{
    int depth = 0;

    while (*at) {
        if (!depth && strchr(",}] \n", *at))
            return at;
        if (*at == '"') {
            at = string_end(at);
            continue;
        }
        depth += *at == '{' || *at == '[' ? 1 : *at == '}' || *at == ']' ? -1 : 0;
        at++;
    }
    return at;
}

/* The value of the member `key` of the object that is the whole `text`; NULL when there is none. */
static const char *member_value(const char *text, const char *key)
{
    const char *at = strchr(text, '{') + 1;

    while (*(at += strspn(at, " \n,")) == '"') {
        const char *name = at + 1;
        const char *name_end = string_end(at) - 1;

        at = name_end + 1 + strspn(name_end + 1, " \n:");
        if ((size_t)(name_end - name) == strlen(key) && !strncmp(name, key, strlen(key)))
            return at;
        at = value_end(at);
    }
    return NULL;
}

/* On one line when it fits behind `used` columns of it. */
static void layout_value(const json_t *value, size_t used, size_t indent, struct buf *ret)
{
    AUTO_FREE char *line = json_dumps(value, JSON_ENCODE_ANY);
    bool is_object = json_is_object(value);
    const char *separator = "";
    const char *key;
    json_t *item;
    size_t i;

    if (used + strlen(line) < LINE_WIDTH || (!is_object && !json_is_array(value))) {
        buf_append_str(ret, line);
        return;
    }
    buf_append_str(ret, is_object ? "{" : "[");
    json_object_foreach((json_t *)value, key, item)
    {
        buf_appendf(ret, "%s\n%*s\"%s\": ", separator, (int)indent + 2, "", key);
        layout_value(item, indent + strlen(key) + 6, indent + 2, ret);
        separator = ",";
    }
    json_array_foreach(value, i, item)
    {
        buf_appendf(ret, "%s\n%*s", separator, (int)indent + 2, "");
        layout_value(item, indent + 2, indent + 2, ret);
        separator = ",";
    }
    buf_appendf(ret, "\n%*s%s", (int)indent, "", is_object ? "}" : "]");
}

static void write_member(const struct test_case *test, const char *key)
{
    AUTO(buf_done) struct buf text = {0};
    AUTO(buf_done) struct buf changed = {.max = CASE_SIZE_MAX};
    struct err err;
    const char *at;
    FILE *file;

    if (fd_read_file(test->path, CASE_SIZE_MAX, &text, &err))
        fail_msg("%s", err.msg);
    at = member_value(text.data, key);
    if (!at)
        fail_msg("%s: no member \"%s\" is found", test->path, key);
    buf_append(&changed, text.data, (size_t)(at - text.data));
    layout_value(json_object_get(test->json, key), strlen(key) + 6, 2, &changed);
    buf_append_str(&changed, value_end(at));
    file = fopen(test->path, "w");
    if (!file || fputs(changed.data, file) < 0 || fclose(file))
        fail_msg("%s cannot be written", test->path);
}

static bool json_holds(const json_t *tree, const json_t *node)
{
    const char *key;
    json_t *item;
    size_t i;

    if (tree == node)
        return true;
    json_object_foreach((json_t *)tree, key, item) if (json_holds(item, node)) return true;
    json_array_foreach(tree, i, item) if (json_holds(item, node)) return true;
    return false;
}

/* Makes `wanted`, a list or an object in the case that runs, equal to `got`, also in its file. */
static bool update_golden(const json_t *got, json_t *wanted)
{
    const char *key;
    json_t *member;

    if (!getenv("CORDON_UPDATE_GOLDEN") || !running || json_typeof(got) != json_typeof(wanted))
        return false;
    json_object_foreach(running->json, key, member)
    {
        AUTO_JSON json_t *copy = NULL;

        if (!json_holds(member, wanted))
            continue;
        copy = json_deep_copy(got);
        json_array_clear(wanted);
        json_array_extend(wanted, copy);
        json_object_clear(wanted);
        json_object_update(wanted, copy);
        write_member(running, key);
        return true;
    }
    return false;
}

void assert_json_equal(const json_t *got, const json_t *wanted)
{
    AUTO_FREE char *got_text = json_dumps(got, JSON_INDENT(1) | JSON_ENCODE_ANY);
    AUTO_FREE char *wanted_text = json_dumps(wanted, JSON_INDENT(1) | JSON_ENCODE_ANY);

    if (!json_equal(got, wanted) && !update_golden(got, (json_t *)wanted))
        fail_msg("got %s\nwanted %s", got_text, wanted_text);
}

void assert_lines_equal(const struct buf *got, const json_t *object, const char *key)
{
    AUTO_JSON json_t *lines = json_array();

    for (const char *at = got->data ? got->data : "";; at++) {
        size_t len = strcspn(at, "\n");

        json_array_append_new(lines, json_stringn(at, len));
        at += len;
        if (!*at)
            break;
    }
    assert_json_equal(lines, json_object_get(object, key));
}

void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

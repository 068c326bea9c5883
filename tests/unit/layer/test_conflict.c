/* The rule of conflicts: tests/cases/layer_conflict, with times in milliseconds. */
#include "layer/conflict.h"
#include "layer/records.h"

#include "../base/cases.h"

#include "base/auto.h"

#include <stdlib.h>
#include <string.h>

static const char *const words[] = {"none", "changed", "gone", "moved", NULL};

static int64_t ms(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key)) * 1000000;
}

static struct change_stamp stamp_in(const json_t *object)
{
    static const char *const keys[] = {"mode",     "ino",   "size", "ctime_ms",
                                       "mtime_ms", "known", NULL};

    case_check_keys(object, keys);
    return (struct change_stamp){
        .ino = (uint64_t)json_integer_value(json_object_get(object, "ino")),
        .size = (uint64_t)json_integer_value(json_object_get(object, "size")),
        .ctime_ns = ms(object, "ctime_ms"),
        .mode = (uint32_t)strtoul(case_string_or(object, "mode", "0"), NULL, 8),
    };
}

static void test_case(void **state)
{
    static const char *const keys[] = {"why",    "base_ms", "layer",  "real", "known",
                                       "folder", "is_copy", "wanted", NULL};
    const json_t *json = ((struct test_case *)*state)->json;
    const json_t *known_in = json_object_get(json, "known");
    const json_t *folder_in = json_object_get(json, "folder");
    const struct change_stamp layer = stamp_in(json_object_get(json, "layer"));
    const struct change_stamp real = stamp_in(json_object_get(json, "real"));
    struct change_stamp known = {0};
    struct conflict_look look = {
        .base_ns = ms(json, "base_ms"),
        .layer = &layer,
        .real = &real,
        .is_copy = json_is_true(json_object_get(json, "is_copy")),
    };

    case_check_keys(json, keys);
    if (known_in) {
        known = stamp_in(known_in);
        look.known = &known;
    }
    if (folder_in) {
        const json_t *folder_known = json_object_get(folder_in, "known");
        const struct change_stamp folder = stamp_in(folder_in);
        struct change_stamp left = {0};

        if (folder_known)
            left = stamp_in(folder_known);
        look.moved_ns =
            conflict_folder(&folder, ms(folder_in, "mtime_ms"), folder_known ? &left : NULL);
    }
    assert_string_equal(words[conflict_of(&look)], case_string(json, "wanted"));
}

static void records_come_back(void **state)
{
    const struct change_stamp stamps[] = {
        {0},
        {.dev = 0xfe00, .ino = UINT64_MAX, .size = 1, .ctime_ns = -1, .mode = 0100644},
    };
    AUTO(buf_done) struct buf text = {.max = 4096};
    struct records records;
    struct change_stamp stamp;
    uint64_t number;

    assert_true(record_put_stamp(&text, &stamps[0]) && record_put_stamp(&text, &stamps[1]) &&
                record_put_number(&text, 0) && record_put_number(&text, UINT64_MAX) &&
                record_put(&text, "a\nb") && buf_append(&text, "torn", 4));
    records = (struct records){.next = text.data, .end = text.data + text.len};
    for (size_t i = 0; i < 2; i++) {
        assert_true(record_take_stamp(&records, &stamp));
        assert_true(change_stamp_equal(&stamp, &stamps[i]));
    }
    assert_true(record_take_number(&records, &number) && number == 0);
    assert_true(record_take_number(&records, &number) && number == UINT64_MAX);
    assert_string_equal(record_take(&records), "a\nb");
    assert_null(record_take(&records));
}

static void what_is_no_record_is_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "1 2 3 4",
                                        "1 2 3 4 5 ",
                                        "1  2 3 4 5",
                                        "1 2 3 4 g",
                                        "1 2 3 4 100000000",
                                        "11112222333344445 2 3 4 5"};
    struct change_stamp stamp;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct records records = {.next = texts[i], .end = texts[i] + strlen(texts[i]) + 1};

        assert_false(record_take_stamp(&records, &stamp));
    }
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(what_is_no_record_is_refused),
    };

    return cases_run("layer_conflict", test_case, more, sizeof more / sizeof *more);
}

/* strv: at every moment an argv. */
#include "support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/strv.h"

#include <stdio.h>
#include <string.h>

static void push_words(struct strv *strv, const char *const *words)
{
    for (; *words; words++)
        strv_push(strv, *words);
}

static void empty_list_has_a_view(void **state)
{
    struct strv strv = {0};

    assert_null(*strv_view(&strv));
    assert_false(strv_has(&strv, ""));
    strv_sort(&strv);
    strv_push_all(&strv, NULL);
    assert_null(strv.items);
    strv_done(&strv);
    strv_done(&strv);
}

static void push_keeps_order_and_the_null_behind(void **state)
{
    AUTO(strv_done) struct strv strv = {0};
    char text[16];

    for (size_t i = 0; i < 1000; i++) {
        strv_pushf(&strv, "item %zu", i);
        assert_int_equal(strv.len, i + 1);
        assert_null(strv.items[strv.len]);
    }
    for (size_t i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "item %zu", i);
        assert_string_equal(strv.items[i], text);
    }
}

static void push_copies_and_push_take_does_not(void **state)
{
    AUTO(strv_done) struct strv strv = {0};
    char text[] = "abc";
    char *owned = alloc_str("xyz");

    strv_push(&strv, text);
    text[0] = '!';
    assert_string_equal(strv.items[0], "abc");
    strv_push_take(&strv, owned);
    assert_ptr_equal(strv.items[1], owned);
}

static void push_all_copies_another_list(void **state)
{
    const char *const words[] = {"a", "b", NULL};
    AUTO(strv_done) struct strv from = {0};
    AUTO(strv_done) struct strv to = {0};

    push_words(&from, words);
    strv_push(&to, "first");
    strv_push_all(&to, strv_view(&from));
    strv_done(&from);
    assert_int_equal(to.len, 3);
    assert_string_equal(to.items[0], "first");
    assert_string_equal(to.items[2], "b");
    assert_null(to.items[3]);
}

static void sort_is_bytewise(void **state)
{
    const char *const words[] = {"b", "\xc3\xa4", "a/b", "B", "a", "", "a-b", NULL};
    const char *const sorted[] = {"", "B", "a", "a-b", "a/b", "b", "\xc3\xa4"};
    AUTO(strv_done) struct strv strv = {0};

    push_words(&strv, words);
    strv_sort(&strv);
    for (size_t i = 0; i < strv.len; i++)
        assert_string_equal(strv.items[i], sorted[i]);
    assert_null(strv.items[strv.len]);
}

static void has_compares_whole_strings(void **state)
{
    const char *const words[] = {"abc", "", NULL};
    AUTO(strv_done) struct strv strv = {0};

    push_words(&strv, words);
    assert_true(strv_has(&strv, "abc"));
    assert_true(strv_has(&strv, ""));
    assert_false(strv_has(&strv, "ab"));
    assert_ptr_equal(strv_view(&strv), strv.items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_list_has_a_view),
        cmocka_unit_test(push_keeps_order_and_the_null_behind),
        cmocka_unit_test(push_copies_and_push_take_does_not),
        cmocka_unit_test(push_all_copies_another_list),
        cmocka_unit_test(sort_is_bytewise),
        cmocka_unit_test(has_compares_whole_strings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

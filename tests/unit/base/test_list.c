/* list: items join at both ends, leave from anywhere, and are met in order. */
#include "support.h"

#include "base/alloc.h"
#include "base/list.h"

#include <stdlib.h>
#include <string.h>

/* The link is not the first member: container_of() must not rest on that. */
struct item {
    char name;
    struct list link;
};

/* The names of the items, walked forward; checks that the way back meets the same ones. */
static const char *names(const struct list *head)
{
    static char text[16];
    struct item *item;
    const struct list *at = head;
    size_t len = 0;

    list_for_each(item, head, link)
        text[len++] = item->name;
    text[len] = '\0';
    for (size_t i = len; i-- > 0;) {
        at = list_before(head, at);
        assert_true(at && container_of(at, struct item, link)->name == text[i]);
    }
    assert_true(at && !list_before(head, at));
    return text;
}

static void zeros_are_an_empty_list(void **state)
{
    struct list zeros = {0}, made;

    list_init(&made);
    assert_true(list_is_empty(&zeros));
    assert_true(list_is_empty(&made));
    assert_string_equal(names(&made), "");
    assert_null(list_first(&zeros, struct item, link));
    assert_null(list_last(&zeros, struct item, link));
    assert_null(list_first(&made, struct item, link));
    assert_null(list_last(&made, struct item, link));
}

static void items_join_at_both_ends(void **state)
{
    struct item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'}, d = {.name = 'd'};
    struct list head = {0};

    list_add(&head, &b.link);
    list_append(&head, &c.link);
    list_add(&head, &a.link);
    assert_string_equal(names(&head), "abc");
    list_insert_before(&c.link, &d.link);
    assert_string_equal(names(&head), "abdc");
    assert_ptr_equal(list_first(&head, struct item, link), &a);
    assert_ptr_equal(list_last(&head, struct item, link), &c);
    assert_false(list_is_empty(&head));
}

static void items_leave_from_anywhere_and_may_come_back(void **state)
{
    struct item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
    struct list head = {0}, other = {0};

    list_append(&head, &a.link);
    list_append(&head, &b.link);
    list_append(&head, &c.link);
    list_remove(&b.link);
    assert_string_equal(names(&head), "ac");
    assert_false(list_is_linked(&b.link));
    assert_true(list_is_linked(&a.link));
    list_remove(&b.link); /* once more: it is in no list */
    assert_string_equal(names(&head), "ac");
    list_append(&other, &b.link);
    list_remove(&a.link);
    list_remove(&c.link);
    assert_string_equal(names(&head), "");
    assert_true(list_is_empty(&head));
    assert_string_equal(names(&other), "b");
}

static void a_link_of_zeros_is_in_no_list(void **state)
{
    struct item alone = {0};

    assert_false(list_is_linked(&alone.link));
    list_remove(&alone.link);
    assert_false(list_is_linked(&alone.link));
}

static void a_walk_may_remove_what_it_meets(void **state)
{
    struct list head = {0};
    struct item *item, *following;

    for (char name = 'a'; name <= 'e'; name++) {
        item = alloc_zero(1, sizeof *item);
        item->name = name;
        list_append(&head, &item->link);
    }
    list_for_each_safe(item, following, &head, link) {
        if (item->name == 'a' || item->name == 'c' || item->name == 'e') {
            list_remove(&item->link);
            free(item);
        }
    }
    assert_string_equal(names(&head), "bd");
    list_for_each_safe(item, following, &head, link)
        free(item);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_are_an_empty_list),
        cmocka_unit_test(items_join_at_both_ends),
        cmocka_unit_test(items_leave_from_anywhere_and_may_come_back),
        cmocka_unit_test(a_link_of_zeros_is_in_no_list),
        cmocka_unit_test(a_walk_may_remove_what_it_meets),
    };

    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}

/* store: ids, owners, tombstones, and that nothing depends on how many there are. Who is pushed out
 * is in test_pruning.c. */
#include "../base/support.h"
#include "script.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "job/id_map.h"
#include "job/job_table.h"

#include <stdlib.h>
#include <string.h>

static void store_free_slot(struct store **slot)
{
    store_free(*slot);
}

#define AUTO_STORE AUTO(store_free_slot) struct store *

static struct store *new_store(size_t capacity, enum store_ids ids)
{
    struct err err = ERR_UNTOUCHED;
    struct store *store =
        store_new(&(struct store_options){.capacity = capacity, .ids = ids}, &err);

    assert_non_null(store);
    assert_untouched(err);
    return store;
}

static int reserve(struct store *store)
{
    struct err err = ERR_UNTOUCHED;
    int id = 0;

    assert_int_equal(store_reserve(store, &id, &err), 0);
    assert_untouched(err);
    return id;
}

/* A session of that owner, used now. Sessions are pointers to nothing in particular. */
static int insert(struct store *store, void *session, uint64_t owner)
{
    int id = reserve(store);
    struct store_pushed pushed;

    store_insert(store,
                 &(struct store_entry){
                     .id = id, .session = session, .owner = owner, .used_ns = clock_now_ns()},
                 &pushed);
    assert_null(pushed.session);
    return id;
}

static const struct store_end exit_3 = {.fate = STORE_EXITED, .number = 3};

static int setup(void **state)
{
    clock_freeze(CLOCK_NS_PER_S, 0);
    return 0;
}

static int teardown(void **state)
{
    clock_release();
    return 0;
}

static void ids_in_order_follow_the_largest(void **state)
{
    AUTO_STORE store = new_store(0, STORE_IDS_IN_ORDER);
    char session;

    assert_int_equal(reserve(store), 1000);
    assert_int_equal(reserve(store), 1001);
    assert_int_equal(insert(store, &session, 0), 1002);
    store_release(store, 1001);
    assert_int_equal(reserve(store), 1003);
    store_release(store, 1003);
    assert_int_equal(reserve(store), 1003);
    store_release(store, 1003);
    store_release(store, 1002); /* has a session: stays */
    assert_ptr_equal(store_find(store, 1002), &session);
    assert_ptr_equal(store_remove(store, 1002, exit_3), &session);
    assert_int_equal(reserve(store), 1001);
    store_release(store, 1001);
    store_release(store, 1000);
    store_release(store, 1000);
    assert_int_equal(reserve(store), 1000);
}

static void random_ids_are_in_range_and_apart(void **state)
{
    AUTO_STORE store = new_store(0, STORE_IDS_RANDOM);
    AUTO_FREE bool *seen = alloc_zero(STORE_ID_MAX + 1, sizeof *seen);
    int low = STORE_ID_MAX;
    int high = 0;

    for (int i = 0; i < 5000; i++) {
        int id = reserve(store);

        assert_in_range(id, STORE_ID_MIN, STORE_ID_MAX);
        assert_false(seen[id]);
        seen[id] = true;
        low = id < low ? id : low;
        high = id > high ? id : high;
    }
    /* each fails once in 10^115 runs */
    assert_true(low < 6000);
    assert_true(high > 95000);
}

static void ids_can_run_out(void **state)
{
    AUTO_STORE store = new_store(0, STORE_IDS_RANDOM);
    struct err err;
    int id = -7;

    for (int i = 0; i < 2 * STORE_CAPACITY_MAX; i++)
        reserve(store);
    assert_int_equal(store_reserve(store, &id, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_contains(err.msg, "20000 are in use");
    assert_int_equal(id, -7);
}

static void a_reserved_id_is_no_session(void **state)
{
    AUTO_STORE store = new_store(0, STORE_IDS_IN_ORDER);
    struct store_tombstone tombstone;
    int id = reserve(store);

    assert_null(store_find(store, id));
    assert_int_equal(store_count(store), 0);
    assert_null(store_remove(store, id, exit_3));
    assert_false(store_tombstone(store, id, &tombstone));
    store_touch(store, id, 5); /* no effect */
    store_mark_exited(store, id);
    assert_null(store_find(store, 4711));
    store_release(store, 4711);
}

static void the_capacity_has_a_limit(void **state)
{
    struct store_options options = {.capacity = STORE_CAPACITY_MAX + 1};
    struct err err;

    assert_null(store_new(&options, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_contains(err.msg, "at most 10000");
}

static void listing_is_sorted_and_by_owner(void **state)
{
    AUTO_STORE store = new_store(100, STORE_IDS_RANDOM);
    AUTO_FREE int *all = NULL;
    AUTO_FREE int *of_two = NULL;
    size_t len;
    char session;

    for (int i = 0; i < 90; i++)
        insert(store, &session, 1 + (uint64_t)i % 3);
    reserve(store);
    all = store_list(store, 0, &len);
    assert_int_equal(len, 90);
    for (size_t i = 1; i < len; i++)
        assert_true(all[i - 1] < all[i]);
    of_two = store_list(store, 2, &len);
    assert_int_equal(len, 30);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(store_owner(store, of_two[i]), 2);
    for (size_t i = 0; i < len; i++)
        assert_ptr_equal(store_remove(store, of_two[i], exit_3), &session);
    free(of_two);
    of_two = store_list(store, 2, &len);
    assert_int_equal(len, 0);
    assert_int_equal(store_count(store), 60);
}

static void a_removed_session_leaves_a_tombstone(void **state)
{
    AUTO_STORE store = new_store(0, STORE_IDS_IN_ORDER);
    struct store_tombstone tombstone = {0};
    char session;
    int id = insert(store, &session, 42);

    assert_false(store_tombstone(store, id, &tombstone));
    clock_advance(CLOCK_NS_PER_S);
    assert_ptr_equal(store_remove(store, id, exit_3), &session);
    assert_null(store_find(store, id));
    assert_int_equal(store_owner(store, id), 0);
    assert_true(store_tombstone(store, id, &tombstone));
    assert_string_equal(store_fate_name(tombstone.end.fate), "exited");
    assert_int_equal(tombstone.end.number, 3);
    assert_int_equal(tombstone.owner, 42);
    assert_int_equal(tombstone.removed_ns, 2 * CLOCK_NS_PER_S);
    clock_advance(STORE_TOMBSTONE_AGE_NS);
    assert_true(store_tombstone(store, id, &tombstone));
    clock_advance(1);
    assert_false(store_tombstone(store, id, &tombstone));
}

static void an_id_in_use_again_has_no_tombstone(void **state)
{
    AUTO_STORE store = new_store(0, STORE_IDS_IN_ORDER);
    struct store_tombstone tombstone;
    char session;
    int id = insert(store, &session, 0);

    store_remove(store, id, exit_3);
    assert_int_equal(reserve(store), id);
    assert_false(store_tombstone(store, id, &tombstone));
    store_release(store, id);
    assert_false(store_tombstone(store, id, &tombstone));
}

static void tombstones_are_bounded_the_oldest_go(void **state)
{
    AUTO_STORE store = new_store(8, STORE_IDS_RANDOM);
    struct store_tombstone tombstone;
    int ids[STORE_TOMBSTONES_MIN + 10];
    char session;

    for (int i = 0; i < STORE_TOMBSTONES_MIN + 10; i++) {
        ids[i] = insert(store, &session, 0);
        store_remove(store, ids[i], (struct store_end){.fate = STORE_SIGNALED, .number = i});
    }
    for (int i = 0; i < STORE_TOMBSTONES_MIN + 10; i++) {
        assert_int_equal(store_tombstone(store, ids[i], &tombstone), i >= 10);
        if (i >= 10)
            assert_int_equal(tombstone.end.number, i);
    }
}

/* Ten thousand sessions, ten times over: with work of O(n) per session this would be 10^9 steps. */
static void a_full_store_of_the_largest_size(void **state)
{
    AUTO_STORE store = new_store(STORE_CAPACITY_MAX, STORE_IDS_RANDOM);
    struct script script;
    size_t pushed_out = 0;
    char session;

    script_init(&script, 1);
    for (int i = 0; i < 10 * STORE_CAPACITY_MAX; i++) {
        int id = reserve(store);
        struct store_pushed pushed;

        clock_advance(1);
        store_insert(
            store, &(struct store_entry){.id = id, .session = &session, .used_ns = clock_now_ns()},
            &pushed);
        pushed_out += pushed.session != NULL;
        if (script_random(&script, 2))
            store_mark_exited(store, id);
        if (script_random(&script, 2))
            store_touch(store, id, clock_now_ns());
    }
    assert_int_equal(store_count(store), STORE_CAPACITY_MAX);
    assert_int_equal(pushed_out, 9 * STORE_CAPACITY_MAX);
    script_done(&script);
}

/* The map below it, against an array. */
static void random_map(void **state)
{
    enum { KEYS = 200 };
    void *expected[KEYS + 1] = {0};
    struct id_map map = {0};
    struct script script;
    char value;

    script_init(&script, 9);
    for (int round = 0; round < 20000; round++) {
        int id = 1 + (int)script_random(&script, KEYS);
        size_t count = 0;
        size_t at = 0;

        if (!expected[id] && script_random(&script, 2)) {
            expected[id] = &value;
            id_map_add(&map, id, &value);
        } else {
            expected[id] = NULL;
            id_map_remove(&map, id);
        }
        if (round % 50)
            continue;
        for (int i = 1; i <= KEYS; i++) {
            assert_ptr_equal(id_map_find(&map, i), expected[i]);
            count += expected[i] != NULL;
        }
        assert_int_equal(map.len, count);
        while (id_map_next(&map, &at))
            count--;
        assert_int_equal(count, 0);
    }
    id_map_done(&map);
    script_done(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_in_order_follow_the_largest),
        cmocka_unit_test(random_ids_are_in_range_and_apart),
        cmocka_unit_test(ids_can_run_out),
        cmocka_unit_test(a_reserved_id_is_no_session),
        cmocka_unit_test(the_capacity_has_a_limit),
        cmocka_unit_test(listing_is_sorted_and_by_owner),
        cmocka_unit_test(a_removed_session_leaves_a_tombstone),
        cmocka_unit_test(an_id_in_use_again_has_no_tombstone),
        cmocka_unit_test(tombstones_are_bounded_the_oldest_go),
        cmocka_unit_test(a_full_store_of_the_largest_size),
        cmocka_unit_test(random_map),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

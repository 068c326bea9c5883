/* job_table: ids, owners, tombstones, and that nothing depends on how many there are. Who is pushed
 * out is in test_pruning.c. */
#include "../base/support.h"
#include "script.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "job/id_map.h"
#include "job/job_table.h"

#include <stdlib.h>
#include <string.h>

static void store_free_slot(struct job_table **slot)
{
    job_table_free(*slot);
}

#define AUTO_STORE AUTO(store_free_slot) struct job_table *

static struct job_table *new_store(size_t capacity, enum job_table_ids ids)
{
    struct err err = ERR_UNTOUCHED;
    struct job_table *table =
        job_table_new(&(struct job_table_options){.capacity = capacity, .ids = ids}, &err);

    assert_non_null(table);
    assert_untouched(err);
    return table;
}

static int reserve(struct job_table *table)
{
    struct err err = ERR_UNTOUCHED;
    int id = 0;

    assert_int_equal(job_table_reserve(table, &id, &err), 0);
    assert_untouched(err);
    return id;
}

/* A job of that owner, used now. Jobs are pointers to nothing in particular. */
static int insert(struct job_table *table, void *job, uint64_t owner)
{
    int id = reserve(table);
    struct job_table_pushed pushed;

    job_table_insert(
        table,
        &(struct job_table_entry){.id = id, .job = job, .owner = owner, .used_ns = clock_now_ns()},
        &pushed);
    assert_null(pushed.job);
    return id;
}

static const struct job_outcome exit_3 = {.fate = JOB_FATE_EXITED, .number = 3};

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
    AUTO_STORE table = new_store(0, JOB_TABLE_IDS_IN_ORDER);
    char job;

    assert_int_equal(reserve(table), 1000);
    assert_int_equal(reserve(table), 1001);
    assert_int_equal(insert(table, &job, 0), 1002);
    job_table_release(table, 1001);
    assert_int_equal(reserve(table), 1003);
    job_table_release(table, 1003);
    assert_int_equal(reserve(table), 1003);
    job_table_release(table, 1003);
    job_table_release(table, 1002); /* has a job: stays */
    assert_ptr_equal(job_table_find(table, 1002), &job);
    assert_ptr_equal(job_table_remove(table, 1002, exit_3), &job);
    assert_int_equal(reserve(table), 1001);
    job_table_release(table, 1001);
    job_table_release(table, 1000);
    job_table_release(table, 1000);
    assert_int_equal(reserve(table), 1000);
}

static void random_ids_are_in_range_and_apart(void **state)
{
    AUTO_STORE table = new_store(0, JOB_TABLE_IDS_RANDOM);
    AUTO_FREE bool *seen = alloc_zero(JOB_TABLE_ID_MAX + 1, sizeof *seen);
    int low = JOB_TABLE_ID_MAX;
    int high = 0;

    for (int i = 0; i < 5000; i++) {
        int id = reserve(table);

        assert_in_range(id, JOB_TABLE_ID_MIN, JOB_TABLE_ID_MAX);
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
    AUTO_STORE table = new_store(0, JOB_TABLE_IDS_RANDOM);
    struct err err;
    int id = -7;

    for (int i = 0; i < 2 * JOB_TABLE_CAPACITY_MAX; i++)
        reserve(table);
    assert_int_equal(job_table_reserve(table, &id, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_contains(err.msg, "20000 are in use");
    assert_int_equal(id, -7);
}

static void a_reserved_id_is_no_session(void **state)
{
    AUTO_STORE table = new_store(0, JOB_TABLE_IDS_IN_ORDER);
    struct job_table_tombstone tombstone;
    int id = reserve(table);

    assert_null(job_table_find(table, id));
    assert_int_equal(job_table_count(table), 0);
    assert_null(job_table_remove(table, id, exit_3));
    assert_false(job_table_tombstone(table, id, &tombstone));
    job_table_touch(table, id, 5); /* no effect */
    job_table_mark_exited(table, id);
    assert_null(job_table_find(table, 4711));
    job_table_release(table, 4711);
}

static void the_capacity_has_a_limit(void **state)
{
    struct job_table_options options = {.capacity = JOB_TABLE_CAPACITY_MAX + 1};
    struct err err;

    assert_null(job_table_new(&options, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_contains(err.msg, "at most 10000");
}

static void listing_is_sorted_and_by_owner(void **state)
{
    AUTO_STORE table = new_store(100, JOB_TABLE_IDS_RANDOM);
    AUTO_FREE int *all = NULL;
    AUTO_FREE int *of_two = NULL;
    size_t len;
    char job;

    for (int i = 0; i < 90; i++)
        insert(table, &job, 1 + (uint64_t)i % 3);
    reserve(table);
    all = job_table_list(table, 0, &len);
    assert_int_equal(len, 90);
    for (size_t i = 1; i < len; i++)
        assert_true(all[i - 1] < all[i]);
    of_two = job_table_list(table, 2, &len);
    assert_int_equal(len, 30);
    for (size_t i = 0; i < len; i++)
        assert_ptr_equal(job_table_remove(table, of_two[i], exit_3), &job);
    free(of_two);
    of_two = job_table_list(table, 2, &len);
    assert_int_equal(len, 0);
    assert_int_equal(job_table_count(table), 60);
}

static void a_removed_job_leaves_a_tombstone(void **state)
{
    AUTO_STORE table = new_store(0, JOB_TABLE_IDS_IN_ORDER);
    struct job_table_tombstone tombstone = {0};
    char job;
    int id = insert(table, &job, 42);

    assert_false(job_table_tombstone(table, id, &tombstone));
    clock_advance(CLOCK_NS_PER_S);
    assert_ptr_equal(job_table_remove(table, id, exit_3), &job);
    assert_null(job_table_find(table, id));
    assert_true(job_table_tombstone(table, id, &tombstone));
    assert_string_equal(job_fate_name(tombstone.end.fate), "exited");
    assert_int_equal(tombstone.end.number, 3);
    assert_int_equal(tombstone.owner, 42);
    assert_int_equal(tombstone.removed_ns, 2 * CLOCK_NS_PER_S);
    clock_advance(JOB_TABLE_TOMBSTONE_AGE_NS);
    assert_true(job_table_tombstone(table, id, &tombstone));
    clock_advance(1);
    assert_false(job_table_tombstone(table, id, &tombstone));
}

static void an_id_in_use_again_has_no_tombstone(void **state)
{
    AUTO_STORE table = new_store(0, JOB_TABLE_IDS_IN_ORDER);
    struct job_table_tombstone tombstone;
    char job;
    int id = insert(table, &job, 0);

    job_table_remove(table, id, exit_3);
    assert_int_equal(reserve(table), id);
    assert_false(job_table_tombstone(table, id, &tombstone));
    job_table_release(table, id);
    assert_false(job_table_tombstone(table, id, &tombstone));
}

static void tombstones_are_bounded_the_oldest_go(void **state)
{
    AUTO_STORE table = new_store(8, JOB_TABLE_IDS_RANDOM);
    struct job_table_tombstone tombstone;
    int ids[JOB_TABLE_TOMBSTONES_MIN + 10];
    char job;

    for (int i = 0; i < JOB_TABLE_TOMBSTONES_MIN + 10; i++) {
        ids[i] = insert(table, &job, 0);
        job_table_remove(table, ids[i],
                         (struct job_outcome){.fate = JOB_FATE_SIGNALED, .number = i});
    }
    for (int i = 0; i < JOB_TABLE_TOMBSTONES_MIN + 10; i++) {
        assert_int_equal(job_table_tombstone(table, ids[i], &tombstone), i >= 10);
        if (i >= 10)
            assert_int_equal(tombstone.end.number, i);
    }
}

/* Ten thousand jobs, ten times over: with work of O(n) per job this would be 10^9 steps. */
static void a_full_store_of_the_largest_size(void **state)
{
    AUTO_STORE table = new_store(JOB_TABLE_CAPACITY_MAX, JOB_TABLE_IDS_RANDOM);
    struct script script;
    size_t pushed_out = 0;
    char job;

    script_init(&script, 1);
    for (int i = 0; i < 10 * JOB_TABLE_CAPACITY_MAX; i++) {
        int id = reserve(table);
        struct job_table_pushed pushed;

        clock_advance(1);
        job_table_insert(
            table, &(struct job_table_entry){.id = id, .job = &job, .used_ns = clock_now_ns()},
            &pushed);
        pushed_out += pushed.job != NULL;
        if (script_random(&script, 2))
            job_table_mark_exited(table, id);
        if (script_random(&script, 2))
            job_table_touch(table, id, clock_now_ns());
    }
    assert_int_equal(job_table_count(table), JOB_TABLE_CAPACITY_MAX);
    assert_int_equal(pushed_out, 9 * JOB_TABLE_CAPACITY_MAX);
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
        cmocka_unit_test(a_removed_job_leaves_a_tombstone),
        cmocka_unit_test(an_id_in_use_again_has_no_tombstone),
        cmocka_unit_test(tombstones_are_bounded_the_oldest_go),
        cmocka_unit_test(a_full_store_of_the_largest_size),
        cmocka_unit_test(random_map),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

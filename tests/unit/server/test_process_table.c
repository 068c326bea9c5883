/* process_table: processes by their ids, and those that are closed and can still be read. */
#include "../base/support.h"

#include "base/alloc.h"
#include "loop/loop.h"
#include "server/process/process_table.h"
#include "server/process/rpc_process.h"

#include <stdbool.h>
#include <stdlib.h>

enum { MIB = 1 << 20 };

struct desk {
    struct loop *loop;
    struct retained retained;
    struct rpc_process *gone[4]; /* whose time was up, in this order */
    size_t gone_len;
};

struct kept {
    struct rpc_process process;
    struct desk *desk;
};

static void on_last(void *data)
{
    struct kept *kept = data;

    kept->desk->gone[kept->desk->gone_len++] = &kept->process;
}

static struct rpc_process *keep(struct desk *desk, size_t bytes)
{
    struct kept *kept = alloc_zero(1, sizeof *kept);

    kept->desk = desk;
    kept->process.last = loop_timer_new(desk->loop, on_last, kept);
    retained_add(&desk->retained, &kept->process, bytes);
    return &kept->process;
}

static void forget(struct desk *desk, struct rpc_process *process)
{
    retained_remove(&desk->retained, process);
    loop_timer_free(process->last);
    free(container_of(process, struct kept, process));
}

static void turn(const struct desk *desk)
{
    struct err err;

    assert_int_equal(loop_dispatch(desk->loop, &err), 0);
}

static int setup(void **state)
{
    struct desk *desk = alloc_zero(1, sizeof *desk);
    struct err err;

    desk->loop = loop_new(&err);
    *state = desk;
    return desk->loop ? 0 : -1;
}

static int teardown(void **state)
{
    struct desk *desk = *state;

    loop_free(desk->loop);
    free(desk);
    return 0;
}

static void what_is_removed_gives_its_bytes_back(void **state)
{
    struct desk *desk = *state;
    struct rpc_process *first = keep(desk, 5 * MIB);
    struct rpc_process *second = keep(desk, 7 * MIB);

    assert_int_equal(desk->retained.len, 2);
    assert_int_equal(desk->retained.bytes, 12 * MIB);
    forget(desk, first);
    assert_int_equal(desk->retained.len, 1);
    assert_int_equal(desk->retained.bytes, 7 * MIB);
    retained_remove(&desk->retained, second);
    retained_remove(&desk->retained, second); /* it is in it no more */
    assert_int_equal(desk->retained.len, 0);
    assert_int_equal(desk->retained.bytes, 0);
    forget(desk, second);
}

static void the_oldest_go_when_they_hold_too_much(void **state)
{
    struct desk *desk = *state;
    struct rpc_process *first = keep(desk, 12 * MIB);
    struct rpc_process *second = keep(desk, 12 * MIB);
    struct rpc_process *third = keep(desk, 8 * MIB);
    struct rpc_process *fourth;

    turn(desk);
    assert_int_equal(desk->gone_len, 0); /* exactly RETAINED_BYTES_MAX */
    fourth = keep(desk, 13 * MIB);
    assert_int_equal(desk->gone_len, 0); /* in the next round only */
    turn(desk);
    assert_int_equal(desk->gone_len, 2);
    assert_ptr_equal(desk->gone[0], first);
    assert_ptr_equal(desk->gone[1], second);
    assert_int_equal(desk->retained.bytes, 21 * MIB);
    forget(desk, first);
    forget(desk, second);
    assert_int_equal(desk->retained.bytes, 21 * MIB); /* they were out of it already */
    forget(desk, third);
    forget(desk, fourth);
}

static void one_that_holds_too_much_alone_stays(void **state)
{
    struct desk *desk = *state;
    struct rpc_process *huge = keep(desk, 2 * RETAINED_BYTES_MAX);

    turn(desk);
    assert_int_equal(desk->gone_len, 0);
    assert_int_equal(desk->retained.len, 1);
    forget(desk, huge);
}

static void no_more_than_so_many_are_kept(void **state)
{
    struct desk *desk = *state;
    struct rpc_process *oldest = keep(desk, 0);
    struct rpc_process *next = keep(desk, 0);
    struct rpc_process *others[RETAINED_MAX];
    size_t len = 0;

    while (desk->retained.len < RETAINED_MAX)
        others[len++] = keep(desk, 0);
    turn(desk);
    assert_int_equal(desk->gone_len, 0);
    others[len++] = keep(desk, 0);
    turn(desk);
    assert_int_equal(desk->gone_len, 1);
    assert_ptr_equal(desk->gone[0], oldest);
    assert_int_equal(desk->retained.len, RETAINED_MAX);
    forget(desk, oldest);
    forget(desk, next);
    while (len > 0)
        forget(desk, others[--len]);
    assert_int_equal(desk->retained.len, 0);
}

static void processes_are_found_by_id_and_kept_in_order(void **state)
{
    struct process_table table = {0};
    struct rpc_process zebra = {.id = (char *)"zebra"};
    struct rpc_process ant = {.id = (char *)"ant"};
    struct rpc_process mole = {.id = (char *)"mole"};

    process_table_add(&table, &zebra);
    process_table_add(&table, &ant);
    process_table_add(&table, &mole);
    assert_ptr_equal(process_table_find(&table, "ant"), &ant);
    assert_null(process_table_find(&table, "an"));
    assert_int_equal(table.len, 3);
    assert_ptr_equal(list_first(&table.list, struct rpc_process, in_table), &zebra);
    assert_ptr_equal(list_last(&table.list, struct rpc_process, in_table), &mole);
    process_table_remove(&table, &zebra);
    assert_null(process_table_find(&table, "zebra"));
    assert_ptr_equal(list_first(&table.list, struct rpc_process, in_table), &ant);
    process_table_remove(&table, &mole);
    process_table_remove(&table, &ant);
    assert_int_equal(table.len, 0);
    assert_true(list_is_empty(&table.list));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_removed_gives_its_bytes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(the_oldest_go_when_they_hold_too_much, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_holds_too_much_alone_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(no_more_than_so_many_are_kept, setup, teardown),
        cmocka_unit_test(processes_are_found_by_id_and_kept_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

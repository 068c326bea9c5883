/* write_queue: one write at a time for each session of a model, in the order of their calls. */
#include "../base/support.h"

#include "base/alloc.h"
#include "loop/loop.h"
#include "server/call.h"
#include "server/client.h"
#include "server/model/write_queue.h"
#include "server/server.h"

#include <stdlib.h>

enum { CALLS = 4 };

static struct server server;
static struct client client;
static struct call calls[CALLS];
static struct queued_write *begun[CALLS]; /* of each call; NULL: it waits */
static unsigned begun_len;

static void begin(struct call *call, struct queued_write *queued)
{
    begun[call - calls] = queued;
    begun_len++;
}

static void turn(void)
{
    struct err err;

    assert_int_equal(loop_dispatch(server.loop, &err), 0);
}

static int setup(void **state)
{
    struct err err;

    server = (struct server){.loop = loop_new(&err)};
    client = (struct client){.server = &server};
    begun_len = 0;
    for (int i = 0; i < CALLS; i++) {
        calls[i] = (struct call){.client = &client};
        begun[i] = NULL;
    }
    return server.loop ? 0 : -1;
}

static int teardown(void **state)
{
    write_queue_free(&server);
    loop_free(server.loop);
    return 0;
}

static void writes_of_a_session_begin_one_behind_the_other(void **state)
{
    for (int i = 0; i < 3; i++)
        write_queue_add(&calls[i], 7, begin);
    assert_non_null(begun[0]);
    assert_int_equal(begun_len, 1);
    turn();
    assert_int_equal(begun_len, 1); /* the first is still at it */
    queued_write_end(begun[0]);
    assert_int_equal(begun_len, 1); /* in the next round only */
    turn();
    assert_non_null(begun[1]);
    assert_null(begun[2]);
    queued_write_end(begun[1]);
    turn();
    assert_non_null(begun[2]);
    queued_write_end(begun[2]);
}

static void sessions_do_not_wait_for_each_other(void **state)
{
    write_queue_add(&calls[0], 7, begin);
    write_queue_add(&calls[1], 8, begin);
    write_queue_add(&calls[2], 7 + 1024, begin); /* in the bucket of 7 */
    assert_int_equal(begun_len, 3);
    write_queue_add(&calls[3], 7 + 1024, begin);
    queued_write_end(begun[0]);
    turn();
    assert_null(begun[3]); /* what ended was another session's */
    queued_write_end(begun[2]);
    turn();
    assert_non_null(begun[3]);
    queued_write_end(begun[1]);
    queued_write_end(begun[3]);
}

static void a_server_that_stops_knows_of_those_that_wait(void **state)
{
    write_queue_add(&calls[0], 7, begin);
    assert_int_equal(server.model_requests, 0); /* who answers it counts it */
    write_queue_add(&calls[1], 7, begin);
    write_queue_add(&calls[2], 7, begin);
    assert_int_equal(server.model_requests, 2);
    queued_write_end(begun[0]);
    turn();
    assert_int_equal(server.model_requests, 1);
    queued_write_end(begun[1]);
    turn();
    assert_int_equal(server.model_requests, 0);
    queued_write_end(begun[2]);
}

static void a_call_whose_connection_goes_is_left_out(void **state)
{
    for (int i = 0; i < 3; i++)
        write_queue_add(&calls[i], 7, begin);
    calls[1].on_gone(calls[1].data);
    assert_int_equal(server.model_requests, 1);
    turn();
    assert_int_equal(begun_len, 1); /* the first has not ended */
    queued_write_end(begun[0]);
    turn();
    assert_null(begun[1]);
    assert_non_null(begun[2]);
    queued_write_end(begun[2]);
}

static void one_that_is_at_work_has_no_word_of_the_queue_s(void **state)
{
    write_queue_add(&calls[0], 7, begin);
    write_queue_add(&calls[1], 7, begin);
    assert_null(calls[0].on_gone); /* its handler's business from here on */
    assert_non_null(calls[1].on_gone);
    queued_write_end(begun[0]);
    turn();
    assert_null(calls[1].on_gone);
    queued_write_end(begun[1]);
    queued_write_end(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_of_a_session_begin_one_behind_the_other, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(sessions_do_not_wait_for_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(a_server_that_stops_knows_of_those_that_wait, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_call_whose_connection_goes_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_at_work_has_no_word_of_the_queue_s, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

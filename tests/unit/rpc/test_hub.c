/* Time and back pressure of connections. */
#include "hub_fixture.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"

#include <string.h>
#include <sys/resource.h>

static void pings_every_30_seconds(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = dial_ws(f);

    for (int i = 0; i < 2; i++) {
        later_exactly(f, fd, 30000);
        assert_ping(f, fd);
    }
    assert_false(f->is_closed);
}

static void drops_a_silent_peer_after_90_seconds(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = dial_ws(f);
    char byte[2];

    for (int i = 0; i < 2; i++) {
        later(f, 30000);
        assert_ping(f, fd);
    }
    later_exactly(f, fd, 30000);
    wait_for(f, &f->is_closed);
    assert_string_equal(f->why, "silent for too long");
    assert_int_equal(receive(f, fd, byte, sizeof byte), 0);
}

static void does_not_judge_whom_it_does_not_read(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = dial_ws(f);

    rpc_peer_pause(f->peer);
    later(f, 91000);
    assert_ping(f, fd); /* instead of the end */
}

static void keeps_a_peer_that_answers(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = dial_ws(f);
    struct rpc_stats before;

    for (int i = 0; i < 10; i++) {
        later(f, 30000);
        assert_ping(f, fd);
        rpc_hub_stats(f->hub, &before);
        put(fd, PONG, sizeof PONG - 1);
        wait_for_bytes(f, before.bytes_in + 1);
    }
    assert_false(f->is_closed);
}

static void lines_are_not_pinged_or_dropped(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = attach(f);

    later(f, 24 * 3600 * 1000);
    assert_nothing_to_read(fd);
    assert_false(f->is_closed);
}

static void head_has_ten_seconds(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = dial(f);
    char reply[1000];

    put(fd, "GET / HT", 8);
    wait_for_bytes(f, 8);
    later_exactly(f, fd, 10000);
    receive(f, fd, reply, sizeof reply);
    assert_contains(reply, " 408 ");
    assert_int_equal(receive(f, fd, reply, sizeof reply), 0);
    assert_false(f->is_opened);
}

/* The Close is answered by nothing, and the connection stays open on the other side. */
static void good_bye_has_two_seconds(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = dial_ws(f);
    char got[100];

    rpc_hub_shutdown(f->hub, RPC_CLOSE_GOING_AWAY, "bye");
    assert_int_equal(receive(f, fd, got, sizeof got), 2 + 2 + 3);
    assert_memory_equal(got,
                        "\x88\x05\x03\xe9"
                        "bye",
                        7);
    wait_for(f, &f->is_closed);
    later(f, 1999);
    assert_int_equal(receive(f, fd, got, sizeof got), 0);
    assert_false(f->is_idle);
    later(f, 1);
    wait_for(f, &f->is_idle);
}

static void fill(struct fixture *f)
{
    AUTO_FREE char *text = alloc_zero(100001, 1);

    memset(text, ' ', 100000);
    while (rpc_peer_send(f->peer, text, 100000))
        ;
}

static void good_bye_to_one_that_takes_nothing_has_five_seconds(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = dial_ws(f);

    assert_true(fd >= 0); /* and nobody reads from it */
    fill(f);
    rpc_hub_shutdown(f->hub, RPC_CLOSE_GOING_AWAY, NULL);
    wait_for(f, &f->is_closed);
    later(f, 4999);
    assert_false(f->is_idle);
    later(f, 1);
    wait_for(f, &f->is_idle);
}

static uint64_t queued_bytes(const struct fixture *f)
{
    struct rpc_stats stats;

    rpc_hub_stats(f->hub, &stats);
    return stats.bytes_queued;
}

static void room_comes_back_at_the_low_mark(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = dial_ws(f);
    AUTO_FREE char *bytes = alloc_zero(1 << 20, 1);

    fill(f);
    assert_false(rpc_peer_has_room(f->peer));
    assert_in_range(queued_bytes(f), 1 << 20, (1 << 20) + 100100);
    while (!f->has_room)
        receive(f, fd, bytes, 1 << 20);
    assert_in_range(queued_bytes(f), 0, 256 << 10);
    assert_true(rpc_peer_has_room(f->peer));
}

/* Taking bytes is a sign of life, even when the ping is still behind them. */
static void slow_reader_is_alive(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = dial_ws(f);
    AUTO_FREE char *bytes = alloc_zero(1 << 20, 1);
    size_t queued;

    fill(f);
    for (int i = 0; i < 5; i++) {
        queued = queued_bytes(f);
        later(f, 80000);
        while (queued_bytes(f) == queued)
            receive(f, fd, bytes, 1 << 20);
        fill(f);
    }
    later(f, 90000);
    wait_for(f, &f->is_closed);
    assert_string_equal(f->why, "silent for too long");
}

static void pause_is_exact(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int lines = attach(f);
    AUTO_CLOSE int ws = -1;
    struct err err;

    rpc_peer_pause(f->peer);
    put_line(lines, "{\"id\":1,\"method\":\"a\"}\n{\"id\":2,\"method\":\"b\"}");
    for (int i = 0; i < 5; i++)
        assert_int_equal(loop_dispatch(f->loop, &err), 0);
    assert_int_equal(f->messages, 0);
    rpc_peer_resume(f->peer);
    wait_for(f, &f->has_message);
    assert_int_equal(f->messages, 2);
    ws = dial_ws(f);
    rpc_peer_pause(f->peer);
    put(ws, "\x81\x95\0\0\0\0{\"id\":1,\"method\":\"a\"}", 27);
    for (int i = 0; i < 5; i++)
        assert_int_equal(loop_dispatch(f->loop, &err), 0);
    assert_int_equal(f->messages, 2);
    rpc_peer_resume(f->peer);
    wait_for(f, &f->has_message);
    assert_int_equal(f->messages, 3);
}

static void pause_message(void *data, struct rpc_peer *peer, struct rpc_message *message)
{
    struct fixture *f = data;

    f->messages++;
    f->has_message = true;
    rpc_peer_pause(peer);
}

/* From inside on_message, with more messages behind it that were read already. */
static void pause_holds_back_what_was_read(void **state)
{
    struct fixture *f = *state;
    static const struct rpc_handlers pausing = {
        .on_open = fixture_on_open, .on_message = pause_message, .on_closed = fixture_on_closed};
    const struct rpc_hub_options options = {.handlers = &pausing, .data = f, .auth = f->auth};
    static const char frame[] = "\x81\x95\0\0\0\0{\"id\":1,\"method\":\"a\"}";
    AUTO_CLOSE int fd = -1;

    rpc_hub_free(f->hub);
    open_hub(f, &options);
    fd = dial_ws(f);
    for (int i = 0; i < 10; i++)
        put(fd, frame, sizeof frame - 1);
    for (int i = 1; i <= 10; i++) {
        wait_for(f, &f->has_message);
        assert_int_equal(f->messages, i);
        rpc_peer_resume(f->peer);
    }
}

static void on_answer(void *data, const struct rpc_message *answer)
{
    struct fixture *f = data;

    f->is_answered = true;
    snprintf(f->answer, sizeof f->answer, "%s",
             !answer                      ? "nothing"
             : answer->kind == RPC_RESULT ? json_string_value(answer->result)
                                          : answer->error_text);
}

static int64_t call(struct fixture *f, uint64_t timeout_ms)
{
    f->is_answered = false;
    return rpc_peer_call(f->peer, &(struct rpc_call){.method = "m",
                                                     .timeout_ns = timeout_ms * CLOCK_NS_PER_MS,
                                                     .on_answer = on_answer,
                                                     .data = f});
}

static void call_is_answered(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = attach(f);
    char got[200];

    assert_int_equal(call(f, 0), 1);
    receive(f, fd, got, sizeof got);
    assert_string_equal(got, "{\"id\":1,\"method\":\"m\",\"params\":{}}\n");
    put_line(fd, "{\"id\":1,\"result\":\"yes\"}");
    wait_for(f, &f->is_answered);
    assert_string_equal(f->answer, "yes");
    assert_int_equal(call(f, 0), 2);
    put_line(fd, "{\"id\":2,\"error\":{\"code\":-5,\"message\":\"no\",\"data\":[]}}");
    wait_for(f, &f->is_answered);
    assert_string_equal(f->answer, "no");
}

static void call_times_out_and_its_answer_is_too_late(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = attach(f);
    int64_t cancelled = call(f, 0);

    rpc_peer_call_cancel(f->peer, cancelled);
    rpc_peer_call_cancel(f->peer, 99);
    call(f, 500);
    later(f, 499);
    assert_false(f->is_answered);
    later(f, 1);
    assert_true(f->is_answered);
    assert_string_equal(f->answer, "nothing");
    f->is_answered = false;
    put_line(fd, "{\"id\":2,\"result\":\"late\"}\n{\"id\":1,\"result\":\"cancelled\"}\n"
                 "{\"method\":\"after\"}");
    wait_for(f, &f->has_message);
    assert_false(f->is_answered);
    assert_false(f->is_closed);
}

static void calls_are_answered_with_nothing_at_the_end(void **state)
{
    struct fixture *f = *state;
    int fd = attach(f);

    call(f, 0);
    close(fd);
    wait_for(f, &f->is_closed);
    assert_true(f->was_answered_before_close);
    assert_string_equal(f->answer, "nothing");
}

static void closed_peer_takes_nothing_more(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = attach(f);
    AUTO_JSON json_t *id = json_integer(1);
    char got[100];

    assert_true(rpc_peer_result(f->peer, id, id));
    rpc_peer_close(f->peer, RPC_CLOSE_NORMAL, NULL);
    rpc_peer_close(f->peer, RPC_CLOSE_NORMAL, "again");
    assert_false(rpc_peer_result(f->peer, id, id));
    assert_false(rpc_peer_notify(f->peer, "m", NULL));
    assert_false(rpc_peer_has_room(f->peer));
    assert_false(f->is_closed); /* not from inside our call */
    put_line(fd, "{\"method\":\"too late\"}");
    assert_int_equal(receive(f, fd, got, sizeof got), 20);
    assert_string_equal(got, "{\"id\":1,\"result\":1}\n");
    wait_for(f, &f->is_closed);
    assert_string_equal(f->why, "closed by us");
    assert_int_equal(f->messages, 0);
}

static void accepting_goes_on_a_second_after_descriptors_ran_out(void **state)
{
    struct fixture *f = *state;
    AUTO_CLOSE int fd = dial(f);
    struct rlimit before;
    struct rlimit none;
    struct err err;
    char reply[1000];

    put(fd, "GET /readyz HTTP/1.1\r\n\r\n", 24);
    getrlimit(RLIMIT_NOFILE, &before);
    none = (struct rlimit){3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    for (int i = 0; i < 5; i++)
        assert_int_equal(loop_dispatch(f->loop, &err), 0);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < 5; i++)
        assert_int_equal(loop_dispatch(f->loop, &err), 0);
    assert_nothing_to_read(fd);
    later(f, 1000);
    receive(f, fd, reply, sizeof reply);
    assert_contains(reply, " 200 ");
}

#define with_hub(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_hub(pings_every_30_seconds),
        with_hub(drops_a_silent_peer_after_90_seconds),
        with_hub(does_not_judge_whom_it_does_not_read),
        with_hub(keeps_a_peer_that_answers),
        with_hub(lines_are_not_pinged_or_dropped),
        with_hub(head_has_ten_seconds),
        with_hub(good_bye_has_two_seconds),
        with_hub(good_bye_to_one_that_takes_nothing_has_five_seconds),
        with_hub(room_comes_back_at_the_low_mark),
        with_hub(slow_reader_is_alive),
        with_hub(pause_is_exact),
        with_hub(pause_holds_back_what_was_read),
        with_hub(call_is_answered),
        with_hub(call_times_out_and_its_answer_is_too_late),
        with_hub(calls_are_answered_with_nothing_at_the_end),
        with_hub(closed_peer_takes_nothing_more),
        with_hub(accepting_goes_on_a_second_after_descriptors_ran_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

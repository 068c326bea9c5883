/* A whole server in this process, over socket pairs: what is looked at is its own bookkeeping. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "loop/loop.h"
#include "rpc/rpc.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/process/observer.h"
#include "server/process/process_wait.h"
#include "server/process/rpc_process.h"
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BLOCK_MAX = 1 << 20, CLIENTS_MAX = 2, FLOOD = 8 << 20 };

#define SECOND UINT64_C(1000000000)

/* One end of a connection. */
struct end {
    int fd;
    struct buf text; /* that was read; the next line begins at `at` */
    size_t at;
};

struct desk {
    struct server *server;
    struct end ends[CLIENTS_MAX];
};

/* --- talking --- */

static void turn(const struct desk *desk)
{
    struct err err;

    assert_int_equal(loop_wait(desk->server->loop, -1, &err), 0);
    assert_int_equal(loop_dispatch(desk->server->loop, &err), 0);
}

static void say(const struct end *end, const char *line)
{
    size_t len = strlen(line);

    while (len > 0) {
        ssize_t n = send(end->fd, line, len, 0);

        assert_true(n > 0);
        line += n;
        len -= (size_t)n;
    }
}

static bool read_more(struct end *end)
{
    static char piece[1 << 16];
    ssize_t n = recv(end->fd, piece, sizeof piece, MSG_DONTWAIT);

    assert_true(n > 0 || (n < 0 && errno == EAGAIN));
    if (n > 0)
        assert_true(buf_append(&end->text, piece, (size_t)n));
    return n > 0;
}

/* The next message; new reference. */
static json_t *hear(const struct desk *desk, struct end *end)
{
    const char *start;
    const char *line_end;
    json_t *json;
    struct err err;

    for (;;) {
        start = end->text.data ? end->text.data + end->at : "";
        line_end = memchr(start, '\n', end->text.len - end->at);
        if (line_end)
            break;
        if (!read_more(end))
            turn(desk);
    }
    json = json_parse(start, (size_t)(line_end - start), &err);
    assert_non_null(json);
    end->at += (size_t)(line_end - start) + 1;
    if (end->at == end->text.len) {
        buf_clear(&end->text);
        end->at = 0;
    }
    return json;
}

static const char *method_of(const json_t *message)
{
    const char *method = json_string_value(json_object_get(message, "method"));

    return method ? method : "";
}

/* The answer to the call with this id, whatever else comes before; new reference. */
static json_t *answer_to(const struct desk *desk, struct end *end, int id)
{
    for (;;) {
        json_t *message = hear(desk, end);

        if (!*method_of(message) && json_integer_value(json_object_get(message, "id")) == id)
            return message;
        json_decref(message);
    }
}

static json_t *ask(const struct desk *desk, struct end *end, int id, const char *call)
{
    AUTO_FREE char *line = alloc_strf("{\"id\":%d,%s}\n", id, call);

    say(end, line);
    return answer_to(desk, end, id);
}

static void assert_fails(const struct desk *desk, struct end *end, const char *call,
                         const char *why)
{
    AUTO_JSON json_t *answer = ask(desk, end, 99, call);
    const json_t *error = json_object_get(answer, "error");

    assert_non_null(error);
    assert_string_equal(json_string_value(json_object_get(error, "message")), why);
}

static struct end *connect_one(struct desk *desk, int which)
{
    struct end *end = &desk->ends[which];
    AUTO_JSON json_t *answer = NULL;
    struct err err;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_non_null(rpc_hub_attach(desk->server->hub, fds[0], fds[0], &err));
    end->fd = fds[1];
    buf_init(&end->text, 64 << 20);
    end->at = 0;
    answer = ask(desk, end, 1, "\"method\":\"initialize\",\"params\":{\"clientName\":\"test\"}");
    assert_non_null(json_object_get(answer, "result"));
    say(end, "{\"method\":\"initialized\"}\n");
    return end;
}

/* Starts `script` as process "p" without a sandbox. */
static struct rpc_process *start(struct desk *desk, struct end *end, const char *script)
{
    AUTO_FREE char *call = alloc_strf(
        "\"method\":\"process/start\",\"params\":{\"processId\":\"p\",\"cwd\":\"file:///\","
        "\"argv\":[\"/bin/sh\",\"-c\",\"%s\"],\"env\":{\"PATH\":\"/usr/bin:/bin\"},"
        "\"tty\":false,\"pipeStdin\":true}",
        script);
    AUTO_JSON json_t *answer = ask(desk, end, 2, call);
    struct client_session *session;

    assert_non_null(json_object_get(answer, "result"));
    list_for_each(session, &desk->server->sessions, in_server)
        if (session->processes.len)
            return process_table_find(&session->processes, "p");
    fail_msg("no session has the process");
    return NULL;
}

static int open_with(void **state, struct server_limits limits)
{
    static char *none[] = {NULL};
    const struct server_options options = {.own_paths = none, .secrets = none, .limits = limits};
    struct desk *desk = alloc_zero(1, sizeof *desk);
    struct err err;

    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < CLIENTS_MAX; i++)
        desk->ends[i].fd = -1;
    desk->server = server_new(&options, &err);
    if (!desk->server || loop_fd(desk->server->loop, &err) < 0)
        return -1;
    *state = desk;
    return 0;
}

static int setup(void **state)
{
    return open_with(state, (struct server_limits){.lifetime_ns = 60 * SECOND});
}

static int setup_with_drain(void **state)
{
    clock_freeze(1000 * SECOND, 1000 * SECOND);
    return open_with(state, (struct server_limits){.drain_ns = 10 * SECOND});
}

static int teardown(void **state)
{
    struct desk *desk = *state;

    server_free(desk->server);
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (desk->ends[i].fd >= 0)
            close(desk->ends[i].fd);
        buf_done(&desk->ends[i].text);
    }
    free(desk);
    return 0;
}

/* --- blocks of files --- */

static void assert_block_read(const struct desk *desk, struct end *end, const char *numbers,
                              const char *why)
{
    AUTO_FREE char *call =
        alloc_strf("\"method\":\"fs/readBlock\",\"params\":{\"handleId\":\"h\",%s}", numbers);

    assert_fails(desk, end, call, why);
}

static void blocks_have_from_one_byte_to_a_mebibyte(void **state)
{
    static const char too_long[] = "file read block length must be between 1 and 1048576";
    static const char unknown[] = "unknown file handle `h`"; /* it was right but for that */
    struct desk *desk = *state;
    struct end *end = connect_one(desk, 0);

    assert_block_read(desk, end, "\"offset\":0,\"len\":0", too_long);
    assert_block_read(desk, end, "\"offset\":0,\"len\":1", unknown);
    assert_block_read(desk, end, "\"offset\":0,\"len\":1048576", unknown);
    assert_block_read(desk, end, "\"offset\":0,\"len\":1048577", too_long);
}

static void blocks_end_where_files_can(void **state)
{
    static const char too_far[] = "file read range exceeds the signed 64-bit file offset limit";
    struct desk *desk = *state;
    struct end *end = connect_one(desk, 0);

    assert_block_read(desk, end, "\"offset\":9223372036854775797,\"len\":10",
                      "unknown file handle `h`");
    assert_block_read(desk, end, "\"offset\":9223372036854775798,\"len\":10", too_far);
}

static void assert_block_written(const struct desk *desk, struct end *end, size_t len,
                                 const char *why)
{
    AUTO_FREE char *bytes = alloc_zero(len + 1, 1);
    AUTO_FREE char *chunk = alloc_zero(base64_encoded_len(len) + 1, 1);
    AUTO_FREE char *call = NULL;

    base64_encode(bytes, len, chunk);
    call = alloc_strf("\"method\":\"fs/writeBlock\",\"params\":{\"handleId\":\"h\",\"offset\":0,"
                      "\"chunk\":\"%s\"}",
                      chunk);
    assert_fails(desk, end, call, why);
}

static void the_same_holds_of_blocks_that_are_written(void **state)
{
    static const char too_long[] = "file write block length must be between 1 and 1048576";
    struct desk *desk = *state;
    struct end *end = connect_one(desk, 0);

    assert_block_written(desk, end, 0, too_long);
    assert_block_written(desk, end, 1, "unknown file handle `h`");
}

/* --- calls that wait --- */

static void a_read_waits_for_output(void **state)
{
    struct desk *desk = *state;
    struct end *end = connect_one(desk, 0);
    struct rpc_process *process = start(desk, end, "read x; echo $x; read y");
    AUTO_JSON json_t *listed = NULL;
    AUTO_JSON json_t *answer = NULL;
    const json_t *chunk;

    say(end, "{\"id\":5,\"method\":\"process/read\",\"params\":{\"processId\":\"p\","
             "\"waitMs\":600000}}\n");
    listed = ask(desk, end, 6, "\"method\":\"process/list\",\"params\":{}");
    assert_non_null(json_object_get(listed, "result"));
    assert_false(list_is_empty(&process->waits)); /* it is not answered yet */
    say(end, "{\"id\":7,\"method\":\"process/write\",\"params\":{\"processId\":\"p\","
             "\"chunk\":\"aGVsbG8K\",\"writeId\":\"w\"}}\n");
    answer = answer_to(desk, end, 5);
    chunk = json_array_get(json_object_get(json_object_get(answer, "result"), "chunks"), 0);
    assert_string_equal(json_string_value(json_object_get(chunk, "chunk")), "aGVsbG8K");
    assert_true(list_is_empty(&process->waits));
}

static void a_wait_that_is_over_is_answered_with_what_there_is(void **state)
{
    struct desk *desk = *state;
    struct end *end = connect_one(desk, 0);
    struct rpc_process *process = start(desk, end, "read x");
    AUTO_JSON json_t *answer =
        ask(desk, end, 5,
            "\"method\":\"process/wait\",\"params\":{\"processId\":\"p\",\"timeoutMs\":1}");
    const json_t *result = json_object_get(answer, "result");

    assert_true(json_is_false(json_object_get(result, "exited")));
    assert_true(list_is_empty(&process->waits));
}

static void the_end_answers_those_that_wait_for_it(void **state)
{
    struct desk *desk = *state;
    struct end *end = connect_one(desk, 0);
    int answered = 0;

    start(desk, end, "read x; exit 3");
    say(end, "{\"id\":5,\"method\":\"process/wait\",\"params\":{\"processId\":\"p\"}}\n"
             "{\"id\":6,\"method\":\"process/wait\",\"params\":{\"processId\":\"p\","
             "\"until\":\"closed\"}}\n"
             "{\"id\":7,\"method\":\"process/closeStdin\",\"params\":{\"processId\":\"p\"}}\n");
    while (answered != 5 + 6) {
        AUTO_JSON json_t *message = hear(desk, end);
        const json_t *result = json_object_get(message, "result");
        json_int_t id = json_integer_value(json_object_get(message, "id"));

        if (id != 5 && id != 6)
            continue;
        answered += (int)id;
        assert_true(json_is_true(json_object_get(result, "exited")));
        assert_int_equal(json_integer_value(json_object_get(result, "exitCode")), 3);
        assert_true(id == 5 || json_is_true(json_object_get(result, "closed")));
    }
}

static void a_process_that_goes_fails_those_that_wait(void **state)
{
    struct desk *desk = *state;
    struct end *end = connect_one(desk, 0);
    struct rpc_process *process = start(desk, end, "read x");

    say(end, "{\"id\":5,\"method\":\"process/wait\",\"params\":{\"processId\":\"p\"}}\n"
             "{\"id\":6,\"method\":\"process/read\",\"params\":{\"processId\":\"p\","
             "\"waitMs\":600000}}\n");
    while (list_is_empty(&process->waits) ||
           list_first(&process->waits, struct process_wait, in_process)->kind != WAIT_READ)
        turn(desk);
    rpc_process_free(process);
    for (int i = 0; i < 2; i++) {
        AUTO_JSON json_t *failed = hear(desk, end);
        const json_t *error = json_object_get(failed, "error");

        assert_string_equal(json_string_value(json_object_get(error, "message")),
                            "unknown process id p");
    }
}

static void a_connection_that_goes_takes_its_waits_along(void **state)
{
    struct desk *desk = *state;
    struct end *end = connect_one(desk, 0);
    struct rpc_process *process = start(desk, end, "read x");

    say(end, "{\"id\":5,\"method\":\"process/wait\",\"params\":{\"processId\":\"p\"}}\n");
    while (list_is_empty(&process->waits))
        turn(desk);
    close(end->fd);
    end->fd = -1;
    while (!list_is_empty(&desk->server->clients))
        turn(desk);
    assert_true(list_is_empty(&process->waits));
}

/* --- observers --- */

struct seen {
    uint64_t bytes;
    uint64_t lost;
    unsigned exits;
    unsigned closes;
};

/* One event of process "p"; output and gaps join without a hole. */
static void look(const json_t *message, struct seen *seen)
{
    const char *method = method_of(message);
    const json_t *params = json_object_get(message, "params");
    json_int_t offset = json_integer_value(json_object_get(params, "offset"));

    if (strcmp(method, "process/output") == 0) {
        const json_t *chunk = json_object_get(params, "chunk");

        assert_int_equal(offset, seen->bytes + seen->lost);
        seen->bytes += base64_decoded_len(json_string_value(chunk), json_string_length(chunk));
    } else if (strcmp(method, "process/gap") == 0) {
        assert_int_equal(offset, seen->bytes + seen->lost);
        seen->lost += (uint64_t)json_integer_value(json_object_get(params, "bytes"));
    } else if (strcmp(method, "process/exited") == 0) {
        assert_int_equal(seen->closes, 0);
        seen->exits++;
    } else if (strcmp(method, "process/closed") == 0) {
        seen->closes++;
    }
}

static void watch_to_the_end(const struct desk *desk, struct end *end, struct seen *seen)
{
    while (!seen->closes) {
        AUTO_JSON json_t *message = hear(desk, end);

        look(message, seen);
    }
}

static void attach(struct desk *desk, struct end *end, const struct rpc_process *process)
{
    AUTO_FREE char *call = alloc_strf("\"method\":\"process/attach\",\"params\":{\"sessionId\":"
                                      "\"%s\",\"processId\":\"p\"}",
                                      process->owner->id);
    AUTO_JSON json_t *answer = ask(desk, end, 3, call);

    assert_non_null(json_object_get(answer, "result"));
}

static void an_observer_that_does_not_read_holds_nothing_up(void **state)
{
    struct desk *desk = *state;
    struct end *owner = connect_one(desk, 0);
    struct end *other = connect_one(desk, 1);
    struct rpc_process *process = start(desk, owner, "read x; head -c 8388608 /dev/zero");
    struct seen by_owner = {0};
    struct seen by_other = {0};

    attach(desk, other, process);
    say(owner, "{\"id\":5,\"method\":\"process/closeStdin\",\"params\":{\"processId\":\"p\"}}\n");
    watch_to_the_end(desk, owner, &by_owner);
    assert_int_equal(by_owner.bytes, FLOOD);
    assert_int_equal(by_owner.lost, 0);
    watch_to_the_end(desk, other, &by_other);
    assert_true(by_other.lost > 0); /* what it came too late for */
    assert_int_equal(by_other.bytes + by_other.lost, FLOOD);
    assert_int_equal(by_other.exits, 1);
    assert_int_equal(by_other.closes, 1);
}

static void an_observer_goes_with_its_connection(void **state)
{
    struct desk *desk = *state;
    struct end *owner = connect_one(desk, 0);
    struct end *other = connect_one(desk, 1);
    struct rpc_process *process = start(desk, owner, "read x");
    const struct observer *observer;

    attach(desk, other, process);
    attach(desk, other, process); /* again: the same observer */
    observer = list_first(&process->observers, struct observer, in_process);
    assert_ptr_equal(observer, list_last(&process->observers, struct observer, in_process));
    close(other->fd);
    other->fd = -1;
    while (!list_is_empty(&process->observers))
        turn(desk);
}

/* --- the end of the server --- */

static void a_server_in_which_nothing_runs_ends_at_once(void **state)
{
    struct desk *desk = *state;
    struct err err;

    server_stop(desk->server);
    assert_int_equal(desk->server->stopping.step, STOPPING_DRAIN);
    assert_int_equal(server_run(desk->server, &err), 0);
    assert_int_equal(desk->server->stopping.step, STOPPING_CLOSE);
}

static void what_runs_has_time_and_then_is_ended(void **state)
{
    struct desk *desk = *state;
    struct server *server = desk->server;

    server->open = 1; /* as if a process ran that does not end */
    server_stop(server);
    clock_advance(10 * SECOND - 1);
    turn(desk);
    assert_int_equal(server->stopping.step, STOPPING_DRAIN);
    clock_advance(1);
    while (server->stopping.step == STOPPING_DRAIN)
        turn(desk);
    assert_int_equal(server->stopping.step, STOPPING_TERMINATE);
    clock_advance(SERVER_GRACE_NS);
    turn(desk);
    assert_int_equal(server->stopping.step, STOPPING_TERMINATE); /* it gets its SIGKILL now */
    clock_advance(SERVER_GRACE_NS / 2);
    while (server->stopping.step == STOPPING_TERMINATE)
        turn(desk);
    assert_int_equal(server->stopping.step, STOPPING_CLOSE);
    server->open = 0;
}

static void the_last_that_ends_lets_the_server_go_on(void **state)
{
    struct desk *desk = *state;
    struct server *server = desk->server;
    struct err err;

    server->open = 1;
    server_stop(server);
    turn(desk);
    assert_int_equal(server->stopping.step, STOPPING_DRAIN);
    server->open = 0;
    stopping_check(server);
    assert_int_equal(server_run(server, &err), 0);
    assert_int_equal(server->stopping.step, STOPPING_CLOSE);
}

static void a_call_of_a_model_that_waits_is_waited_for(void **state)
{
    struct desk *desk = *state;
    struct server *server = desk->server;

    server->model_requests = 1;
    server_stop(server);
    turn(desk);
    assert_int_equal(server->stopping.step, STOPPING_DRAIN);
    server->model_requests = 0;
}

static void the_second_word_ends_it_now(void **state)
{
    struct desk *desk = *state;
    struct server *server = desk->server;

    server->open = 1;
    server_stop(server);
    assert_false(server->is_done);
    server_stop(server);
    assert_int_equal(server->stopping.step, STOPPING_CLOSE);
    assert_true(server->is_done); /* it has no connections */
    server->open = 0;
}

static void nothing_new_is_started_while_it_drains(void **state)
{
    struct desk *desk = *state;
    struct end *end = connect_one(desk, 0);

    desk->server->open = 1;
    server_stop(desk->server);
    assert_fails(
        desk, end,
        "\"method\":\"process/start\",\"params\":{\"processId\":\"p\",\"cwd\":\"file:///\","
        "\"argv\":[\"true\"],\"env\":{},\"tty\":false}",
        "the server is stopping");
    desk->server->open = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_OF_THE_END(name) cmocka_unit_test_setup_teardown(name, setup_with_drain, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(blocks_have_from_one_byte_to_a_mebibyte),
        TEST(blocks_end_where_files_can),
        TEST(the_same_holds_of_blocks_that_are_written),
        TEST(a_read_waits_for_output),
        TEST(a_wait_that_is_over_is_answered_with_what_there_is),
        TEST(the_end_answers_those_that_wait_for_it),
        TEST(a_process_that_goes_fails_those_that_wait),
        TEST(a_connection_that_goes_takes_its_waits_along),
        TEST(an_observer_that_does_not_read_holds_nothing_up),
        TEST(an_observer_goes_with_its_connection),
        TEST_OF_THE_END(a_server_in_which_nothing_runs_ends_at_once),
        TEST_OF_THE_END(what_runs_has_time_and_then_is_ended),
        TEST_OF_THE_END(the_last_that_ends_lets_the_server_go_on),
        TEST_OF_THE_END(a_call_of_a_model_that_waits_is_waited_for),
        TEST_OF_THE_END(the_second_word_ends_it_now),
        TEST_OF_THE_END(nothing_new_is_started_while_it_drains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

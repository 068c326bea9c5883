/* model_calls: when a call comes back, what it brings, and what becomes of the job. */
#include "fake_sandbox.h"
#include "run.h"

#include "base/auto.h"
#include "base/str.h"
#include "job/model_calls.h"
#include "output/headtail.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct desk {
    struct loop *loop;
    struct model_calls *calls;
};

/* One call and its answer. */
struct answer {
    unsigned count;
    bool has_come;
    enum model_call_reason reason;
    int session_id; /* 0: it has ended */
    int exit_code;
    uint64_t bytes;
    char *text;
    char *output;
};

static void on_done(void *data, const struct model_call_answer *response)
{
    struct answer *answer = data;
    struct buf output;
    uint64_t omitted;

    buf_init(&output, 1 << 22);
    headtail_render(response->output, &output, &omitted);
    free(answer->text);
    free(answer->output);
    *answer = (struct answer){
        .count = answer->count + 1,
        .has_come = true,
        .reason = response->reason,
        .session_id = response->end ? 0 : response->session_id,
        .exit_code = response->end ? response->exit_code : -1,
        .bytes = headtail_total(response->output),
        .text = strndup(response->text, response->text_len),
        .output = buf_take(&output),
    };
}

static void answer_done(struct answer *answer)
{
    free(answer->text);
    free(answer->output);
}

static void desk_open(struct desk *desk, size_t capacity)
{
    struct model_calls_options options = {.capacity = capacity, .ids = JOB_TABLE_IDS_IN_ORDER};
    struct err err;

    fake = (struct fake){0};
    options.loop = desk->loop = loop_new(&err);
    desk->calls = model_calls_new(&options, &err);
    assert_non_null(desk->calls);
}

static void desk_close(struct desk *desk)
{
    model_calls_free(desk->calls);
    loop_free(desk->loop);
}

static struct model_exec command(const char *cmd)
{
    return (struct model_exec){
        .cmd = cmd,
        .shell = "/bin/sh",
        .workdir = "/",
        .env = test_env,
        .sandbox = fake_sandbox(),
        .stdio = PROCESS_PIPES,
        .input = PROCESS_STDIN_PIPE,
    };
}

static const uint64_t far_ms = 30000;

static struct model_pace until_text(const char *text)
{
    return (struct model_pace){
        .until = MODEL_UNTIL_TEXT, .text = text, .text_len = strlen(text), .yield_ms = &far_ms};
}

static void run_until(const struct desk *desk, struct answer *answer)
{
    struct err err;

    assert_int_equal(loop_run(desk->loop, &answer->has_come, &err), 0);
    answer->has_come = false;
}

static void exec_run(const struct desk *desk, const struct model_exec *exec, struct answer *answer)
{
    struct err err;

    assert_non_null(model_calls_exec(desk->calls, exec, on_done, answer, &err));
    assert_int_equal(answer->count, 0); /* never from inside */
    run_until(desk, answer);
}

static void write_run(const struct desk *desk, int id, const char *chars, struct model_pace pace,
                      struct answer *answer)
{
    const struct model_write write = {
        .session_id = id, .chars = chars, .len = strlen(chars), .pace = pace};
    struct err err;

    assert_non_null(model_calls_write(desk->calls, &write, on_done, answer, &err));
    run_until(desk, answer);
}

/* The text with the time, which differs, made "T". */
static char *without_time(const char *text)
{
    const char *time = strstr(text, "Wall time: ");
    struct buf out;

    assert_non_null(time);
    time += strlen("Wall time: ");
    buf_init(&out, 1 << 22);
    buf_append(&out, text, (size_t)(time - text));
    buf_append_str(&out, "T");
    buf_append_str(&out, strstr(time, " seconds"));
    return buf_take(&out);
}

#define assert_text(answer, expected)                                                              \
    do {                                                                                           \
        AUTO_FREE char *text_ = without_time((answer).text);                                       \
        assert_string_equal(text_, expected);                                                      \
    } while (0)

static void the_text_is_the_one_that_models_know(void **state)
{
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("echo hello; exit 3");
    struct desk desk;

    desk_open(&desk, 0);
    exec_run(&desk, &exec, &answer);
    assert_int_equal(answer.reason, MODEL_CALL_ENDED);
    assert_int_equal(answer.exit_code, 3);
    assert_text(answer, "Chunk ID: 000001\nWall time: T seconds\nProcess exited with code 3\n"
                        "Original token count: 2\nOutput:\nhello\n");
    desk_close(&desk);
}

static void a_session_goes_on_until_its_end_is_told(void **state)
{
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("echo ready; read x; echo \"got $x\"; read y; exit 5");
    struct job_table_tombstone tombstone;
    struct desk desk;
    struct err err;

    desk_open(&desk, 0);
    exec.pace = until_text("ready\n");
    exec_run(&desk, &exec, &answer);
    assert_int_equal(answer.reason, MODEL_CALL_MET);
    assert_int_equal(answer.session_id, 1000);
    assert_text(answer, "Chunk ID: 000001\nWall time: T seconds\n"
                        "Process running with session ID 1000\n"
                        "Original token count: 2\nOutput:\nready\n");
    write_run(&desk, 1000, "abc\n", until_text("abc\n"), &answer);
    assert_string_equal(answer.output, "got abc\n");
    write_run(&desk, 1000, "\n", (struct model_pace){.yield_ms = &far_ms}, &answer);
    assert_int_equal(answer.reason, MODEL_CALL_ENDED);
    assert_int_equal(answer.exit_code, 5);
    assert_null(model_calls_find(desk.calls, 1000, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_string_equal(err.msg, "session 1000 has ended: it exited with code 5");
    assert_true(model_calls_tombstone(desk.calls, 1000, &tombstone));
    assert_int_equal(tombstone.end.number, 5);
    assert_null(model_calls_find(desk.calls, 77, &err));
    assert_string_equal(err.msg, "there is no session 77");
    desk_close(&desk);
}

static void a_clamp_is_reported(void **state)
{
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("exit 0");
    const uint64_t asked = 60000;
    struct desk desk;

    desk_open(&desk, 0);
    exec.pace.yield_ms = &asked;
    exec_run(&desk, &exec, &answer);
    assert_contains(answer.text,
                    "\nNote: yield_time_ms: 60000 was asked for, 30000 was used (250 to "
                    "30000 is possible)\nOutput:\n");
    desk_close(&desk);
}

static void waits_for_bytes_quiet_and_exit(void **state)
{
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("read x; printf 12345; read x; exit 9");
    struct model_pace bytes = {.until = MODEL_UNTIL_BYTES, .number = 5};
    struct model_pace quiet = {.until = MODEL_UNTIL_QUIET, .number = 20};
    struct desk desk;
    struct err err;

    desk_open(&desk, 0);
    exec.pace = quiet;
    exec_run(&desk, &exec, &answer);
    assert_int_equal(answer.reason, MODEL_CALL_MET);
    assert_int_equal(answer.bytes, 0);
    bytes.yield_ms = &far_ms;
    write_run(&desk, 1000, "\n", bytes, &answer);
    assert_int_equal(answer.reason, MODEL_CALL_MET);
    assert_string_equal(answer.output, "12345");
    assert_non_null(model_calls_write(
        desk.calls,
        &(struct model_write){.session_id = 1000, .chars = "\n", .len = 1, .pace = quiet}, on_done,
        &answer, &err));
    run_until(&desk, &answer);
    if (answer.reason != MODEL_CALL_ENDED) {
        assert_non_null(
            model_calls_wait(desk.calls, 1000, &(struct model_pace){0}, on_done, &answer, &err));
        run_until(&desk, &answer);
    }
    assert_int_equal(answer.exit_code, 9);
    desk_close(&desk);
}

/* A text that is there already counts, one that was shown does not. */
static void waiting_begins_at_what_was_not_shown(void **state)
{
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("printf mar; read x; printf ker; read y; printf 'mar%s' ker");
    struct model_pace pace = until_text("marker");
    struct desk desk;
    struct err err;

    desk_open(&desk, 0);
    exec.pace = until_text("mar");
    exec_run(&desk, &exec, &answer);
    write_run(&desk, 1000, "\n", until_text("ker"), &answer);
    assert_int_equal(answer.reason, MODEL_CALL_MET);
    assert_non_null(model_calls_wait(desk.calls, 1000, &pace, on_done, &answer, &err));
    assert_non_null(job_output(model_calls_find(desk.calls, 1000, &err)));
    {
        enum job_written written;

        job_write(model_calls_find(desk.calls, 1000, &err), "\n", 1, NULL, &written, &err);
        assert_int_equal(written, JOB_WRITTEN);
    }
    run_until(&desk, &answer);
    assert_string_equal(answer.output, "marker");
    desk_close(&desk);
}

static void a_text_that_cannot_be_waited_for_starts_nothing(void **state)
{
    struct model_exec exec = command("exit 0");
    struct desk desk;
    struct err err;

    desk_open(&desk, 0);
    exec.pace = until_text("");
    assert_null(model_calls_exec(desk.calls, &exec, on_done, NULL, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(fake.launches, 0);
    exec = command("");
    assert_null(model_calls_exec(desk.calls, &exec, on_done, NULL, &err));
    assert_int_equal(fake.launches, 0);
    desk_close(&desk);
}

static void an_id_is_given_back_when_nothing_starts(void **state)
{
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("echo x; read y");
    struct desk desk;
    struct err err;

    desk_open(&desk, 0);
    fake.fails = true;
    assert_null(model_calls_exec(desk.calls, &exec, on_done, &answer, &err));
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    fake.fails = false;
    exec.pace = until_text("x");
    exec_run(&desk, &exec, &answer);
    assert_int_equal(answer.session_id, 1000);
    assert_int_equal(answer.count, 1);
    desk_close(&desk);
}

static void each_shell_gets_its_own_words(void **state)
{
    struct model_exec exec = command("ls");
    AUTO(strv_done) struct strv sh = model_exec_argv(&exec);
    AUTO(strv_done) struct strv pwsh = {0};

    assert_int_equal(sh.len, 3);
    assert_string_equal(sh.items[1], "-c");
    assert_string_equal(sh.items[2], "ls");
    exec.shell = "/usr/bin/pwsh";
    exec.is_login = true;
    pwsh = model_exec_argv(&exec);
    assert_int_equal(pwsh.len, 3);
    assert_string_equal(pwsh.items[1], "-Command");
    assert_true(str_ends(pwsh.items[2], ":UTF8;\nls"));
}

static void a_shell_that_is_not_there_is_told(void **state)
{
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("ls");
    struct desk desk;

    desk_open(&desk, 0);
    exec.shell = "/no/such/shell";
    exec_run(&desk, &exec, &answer);
    assert_int_equal(answer.exit_code, 127);
    assert_contains(answer.text, "exec_command failed for `ls`: ");
    assert_contains(answer.text, "/no/such/shell");
    desk_close(&desk);
}

static void a_cancelled_call_has_taken_nothing(void **state)
{
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("echo kept; read x");
    struct model_call *call;
    struct desk desk;
    struct err err;

    desk_open(&desk, 0);
    exec.pace = until_text("never");
    call = model_calls_exec(desk.calls, &exec, on_done, &answer, &err);
    assert_non_null(call);
    model_call_cancel(call);
    exec.pace = until_text("kept");
    assert_non_null(model_calls_wait(desk.calls, 1000, &exec.pace, on_done, &answer, &err));
    run_until(&desk, &answer);
    assert_int_equal(answer.count, 1);
    assert_string_equal(answer.output, "kept\n");
    desk_close(&desk);
}

static void two_calls_on_one_session_are_both_answered(void **state)
{
    AUTO(answer_done) struct answer first = {0};
    AUTO(answer_done) struct answer second = {0};
    struct model_exec exec = command("echo x; read y; echo end; exit 2");
    struct desk desk;
    struct err err;

    desk_open(&desk, 0);
    exec.pace = until_text("x");
    exec_run(&desk, &exec, &first);
    assert_non_null(
        model_calls_wait(desk.calls, 1000, &(struct model_pace){0}, on_done, &second, &err));
    write_run(&desk, 1000, "\n", (struct model_pace){.yield_ms = &far_ms}, &first);
    if (!second.count)
        run_until(&desk, &second);
    assert_int_equal(first.exit_code, 2);
    assert_int_equal(second.exit_code, 2);
    assert_int_equal(first.bytes + second.bytes, 4); /* each byte once */
    assert_null(model_calls_find(desk.calls, 1000, &err));
    desk_close(&desk);
}

/* Nobody waits for anybody: writes are done in the order in which they were asked for, also while
 * others wait, and what is written goes to whoever comes back first, and to nobody else. */
static void calls_on_one_session_share_its_output(void **state)
{
    AUTO(answer_done) struct answer start = {0};
    AUTO(answer_done) struct answer first = {0};
    AUTO(answer_done) struct answer second = {0};
    AUTO(answer_done) struct answer writer = {0};
    struct model_exec exec = command("echo up; read x y; echo \"one $x$y\"; read x; echo two; "
                                     "read x; echo three; exit 3");
    const struct model_pace one = until_text("one ab\n");
    const struct model_pace two = until_text("two\n");
    const struct model_write writes[] = {
        {.session_id = 1000, .chars = "a ", .len = 2, .pace = {.yield_ms = &far_ms}},
        {.session_id = 1000, .chars = "b\n", .len = 2, .pace = one}};
    struct desk desk;
    struct err err;

    desk_open(&desk, 0);
    exec.pace = until_text("up\n");
    exec_run(&desk, &exec, &start);
    assert_non_null(model_calls_wait(desk.calls, 1000, &two, on_done, &second, &err));
    assert_non_null(model_calls_write(desk.calls, &writes[0], on_done, &first, &err));
    assert_non_null(model_calls_write(desk.calls, &writes[1], on_done, &writer, &err));
    run_until(&desk, &writer);
    assert_string_equal(writer.output, "one ab\n");
    assert_int_equal(first.count + second.count, 0);
    write_run(&desk, 1000, "\n", two, &writer);
    if (!second.count)
        run_until(&desk, &second);
    assert_int_equal(writer.reason, MODEL_CALL_MET);
    assert_int_equal(second.reason, MODEL_CALL_MET);
    assert_int_equal(second.bytes + writer.bytes, strlen("two\n"));
    assert_int_equal(first.count, 0);
    write_run(&desk, 1000, "\n", (struct model_pace){.yield_ms = &far_ms}, &writer);
    if (!first.count)
        run_until(&desk, &first);
    assert_int_equal(first.exit_code, 3);
    assert_int_equal(writer.exit_code, 3);
    assert_int_equal(first.bytes + writer.bytes, strlen("three\n"));
    desk_close(&desk);
}

static void input_that_nobody_takes_is_an_error(void **state)
{
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("echo x; while :; do sleep 1; done");
    const struct model_write write = {.session_id = 1000, .chars = "abc", .len = 3};
    struct desk desk;
    struct err err;

    desk_open(&desk, 0);
    exec.input = PROCESS_STDIN_NULL;
    exec.pace = until_text("x");
    exec_run(&desk, &exec, &answer);
    assert_null(model_calls_write(desk.calls, &write, on_done, &answer, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_contains(err.msg, "tty=true");
    write_run(&desk, 1000, "\003", (struct model_pace){.yield_ms = &far_ms}, &answer);
    assert_int_equal(answer.exit_code, 128 + SIGINT);
    desk_close(&desk);
}

/* spec 2: the least recently used of those that are not among the newest eight. */
static void the_one_that_is_pushed_out_is_killed(void **state)
{
    enum { CAPACITY = 9 };
    struct answer answers[CAPACITY + 1] = {0};
    struct model_exec exec = command("echo $$ x; exec cat");
    struct desk desk;
    struct err err;
    size_t len;
    pid_t pid;

    desk_open(&desk, CAPACITY);
    exec.pace = until_text("x\n");
    for (int i = 0; i < CAPACITY; i++)
        exec_run(&desk, &exec, &answers[i]);
    pid = (pid_t)strtol(answers[0].output, NULL, 10);
    assert_int_equal(kill(pid, 0), 0);
    exec_run(&desk, &exec, &answers[CAPACITY]);
    assert_int_equal(answers[CAPACITY].session_id, 1000 + CAPACITY);
    assert_null(model_calls_find(desk.calls, 1000, &err));
    assert_contains(err.msg, "make room");
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
    free(model_calls_list(desk.calls, 0, &len));
    assert_int_equal(len, CAPACITY);
    for (int i = 0; i <= CAPACITY; i++)
        answer_done(&answers[i]);
    desk_close(&desk);
}

static void a_short_command_pushes_nobody_out(void **state)
{
    enum { CAPACITY = 9 };
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("echo x; exec cat");
    struct model_exec brief = command("exit 0");
    struct desk desk;
    size_t len;

    desk_open(&desk, CAPACITY);
    exec.pace = until_text("x\n");
    for (int i = 0; i < CAPACITY; i++) {
        answer.count = 0;
        exec_run(&desk, &exec, &answer);
    }
    for (int i = 0; i < 3; i++) {
        answer.count = 0;
        exec_run(&desk, &brief, &answer);
        assert_int_equal(answer.exit_code, 0);
    }
    free(model_calls_list(desk.calls, 0, &len));
    assert_int_equal(len, CAPACITY);
    desk_close(&desk);
}

static void ending_those_of_one_owner(void **state)
{
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("echo x; exec cat");
    struct desk desk;
    struct err err;
    size_t len;
    int *ids;

    desk_open(&desk, 0);
    exec.pace = until_text("x\n");
    for (uint64_t owner = 1; owner <= 3; owner++) {
        exec.owner = owner;
        answer.count = 0;
        exec_run(&desk, &exec, &answer);
    }
    ids = model_calls_list(desk.calls, 2, &len);
    assert_int_equal(len, 1);
    assert_int_equal(ids[0], 1001);
    free(ids);
    assert_int_equal(model_calls_terminate_all(desk.calls, 2, FAR_NS), 1);
    assert_non_null(
        model_calls_wait(desk.calls, 1001, &(struct model_pace){0}, on_done, &answer, &err));
    run_until(&desk, &answer);
    assert_int_equal(answer.exit_code, 128 + SIGTERM);
    assert_null(model_calls_find(desk.calls, 1001, &err));
    assert_contains(err.msg, "terminated");
    ids = model_calls_list(desk.calls, 0, &len);
    assert_int_equal(len, 2);
    free(ids);
    desk_close(&desk);
}

/* The end is confirmed, and what was written before it can still be had. */
static void terminating_keeps_the_output(void **state)
{
    AUTO(answer_done) struct answer answer = {0};
    struct model_exec exec = command("echo x; trap 'echo bye; exit 1' TERM; echo y; "
                                     "while :; do sleep 1; done");
    struct desk desk;
    struct err err;

    desk_open(&desk, 0);
    exec.pace = until_text("y\n");
    exec_run(&desk, &exec, &answer);
    assert_non_null(model_calls_terminate(desk.calls, 1000, FAR_NS, on_done, &answer, &err));
    run_until(&desk, &answer);
    assert_int_equal(answer.reason, MODEL_CALL_ENDED);
    assert_int_equal(answer.bytes, 0);
    write_run(&desk, 1000, "", (struct model_pace){0}, &answer);
    assert_contains(answer.output, "bye\n"); /* and perhaps what sh says of its sleep */
    assert_int_equal(answer.exit_code, 1);
    desk_close(&desk);
}

static void freeing_ends_calls_without_an_answer(void **state)
{
    struct answer answer = {0};
    struct model_exec exec = command("exec cat");
    unsigned before = support_open_fds();
    struct desk desk;
    struct err err;

    desk_open(&desk, 0);
    assert_non_null(model_calls_exec(desk.calls, &exec, on_done, &answer, &err));
    assert_non_null(model_calls_exec(desk.calls, &exec, on_done, &answer, &err));
    assert_non_null(
        model_calls_wait(desk.calls, 1000, &(struct model_pace){0}, on_done, &answer, &err));
    desk_close(&desk);
    assert_int_equal(answer.count, 0);
    assert_int_equal(support_open_fds(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_the_one_that_models_know),
        cmocka_unit_test(a_session_goes_on_until_its_end_is_told),
        cmocka_unit_test(a_clamp_is_reported),
        cmocka_unit_test(waits_for_bytes_quiet_and_exit),
        cmocka_unit_test(waiting_begins_at_what_was_not_shown),
        cmocka_unit_test(a_text_that_cannot_be_waited_for_starts_nothing),
        cmocka_unit_test(an_id_is_given_back_when_nothing_starts),
        cmocka_unit_test(each_shell_gets_its_own_words),
        cmocka_unit_test(a_shell_that_is_not_there_is_told),
        cmocka_unit_test(a_cancelled_call_has_taken_nothing),
        cmocka_unit_test(two_calls_on_one_session_are_both_answered),
        cmocka_unit_test(calls_on_one_session_share_its_output),
        cmocka_unit_test(input_that_nobody_takes_is_an_error),
        cmocka_unit_test(the_one_that_is_pushed_out_is_killed),
        cmocka_unit_test(a_short_command_pushes_nobody_out),
        cmocka_unit_test(ending_those_of_one_owner),
        cmocka_unit_test(terminating_keeps_the_output),
        cmocka_unit_test(freeing_ends_calls_without_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* See run.h. */
#include "run.h"

#include "fake_sandbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *const test_env[] = {(char *)"PATH=/usr/local/bin:/usr/bin:/bin", (char *)"LC_ALL=C", NULL};

static void on_started(void *data)
{
    struct run *run = data;

    run->started++;
    run->has_come = true;
}

static void look(struct run *run)
{
    for (int i = 0; run->awaited && i < STREAM_COUNT; i++)
        if (strstr(run_text(run, (enum stream)i), run->awaited))
            run->has_come = true;
}

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    struct run *run = data;

    assert_int_equal(run->ends, 0);
    assert_int_equal(offset, run->offset);
    assert_true(len > 0);
    run->offset += len;
    assert_true(buf_append(&run->out[stream], bytes, len));
    look(run);
}

static void on_input(void *data, enum input_event event)
{
    struct run *run = data;

    assert_int_equal(run->ends, 0);
    if (event == INPUT_ROOM)
        run->room++;
    else
        run->closed++;
    run->has_come = true;
}

static void on_fact(void *data, const struct launch_fact *fact)
{
    struct run *run = data;

    assert_int_equal(run->ends, 0);
    assert_ptr_equal(fact->path, fake.facts[run->facts].path);
    run->facts++;
    run->has_come = true;
}

static void on_end(void *data, const struct process_end *end)
{
    struct run *run = data;

    run->ends++;
    run->end = *end;
    run->is_over = run->has_come = true;
    if (!run->frees_itself)
        return;
    process_free(run->process);
    run->process = NULL;
}

static const struct process_events events = {
    .on_started = on_started,
    .on_output = on_output,
    .on_input = on_input,
    .on_fact = on_fact,
    .on_end = on_end,
};

void run_init(struct run *run)
{
    struct err err;

    *run = (struct run){.loop = loop_new(&err)};
    assert_non_null(run->loop);
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_init(&run->out[i], (size_t)64 << 20);
    run->options = (struct process_options){
        .loop = run->loop,
        .sandbox = fake_sandbox(),
        .env = test_env,
        .cwd = "/",
        .events = &events,
        .data = run,
    };
    fake = (struct fake){0};
}

void run_done(struct run *run)
{
    process_free(run->process);
    loop_free(run->loop);
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_done(&run->out[i]);
    assert_int_equal(fake.done, fake.launches);
}

void run_start(struct run *run, const char *script)
{
    char *const shell[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    struct err err = ERR_UNTOUCHED;

    if (script)
        run->options.argv = shell;
    run->process = process_start(&run->options, &err);
    if (!run->process)
        fail_msg("process_start: %s", err.msg);
    assert_untouched(err);
}

static void run_until(struct run *run, const bool *flag)
{
    struct err err;

    if (loop_run(run->loop, flag, &err))
        fail_msg("loop_run: %s", err.msg);
}

/* The command may speak before its init does. */
void run_until_started(struct run *run)
{
    while (!run->started) {
        run->has_come = false;
        run_until(run, &run->has_come);
    }
}

void run_until_fact(struct run *run, unsigned number)
{
    while (run->facts < number) {
        run->has_come = false;
        run_until(run, &run->has_come);
    }
}

void run_until_end(struct run *run)
{
    run_until(run, &run->is_over);
    assert_int_equal(run->ends, 1);
}

void run_until_text(struct run *run, const char *text)
{
    run->has_come = false;
    run->awaited = text;
    look(run);
    while (!strstr(run_text(run, STREAM_STDOUT), text) &&
           !strstr(run_text(run, STREAM_STDERR), text)) {
        if (run->is_over)
            fail_msg("ended without '%s': '%s' '%s'", text, run_text(run, STREAM_STDOUT),
                     run_text(run, STREAM_STDERR));
        run->has_come = false;
        run_until(run, &run->has_come);
    }
    run->awaited = NULL;
}

void run_shell(struct run *run, const char *script)
{
    run_start(run, script);
    run_until_end(run);
}

const char *run_text(const struct run *run, enum stream stream)
{
    return run->out[stream].data ? run->out[stream].data : "";
}

void assert_emitted(const char *bytes, size_t len, size_t expected)
{
    assert_int_equal(len, expected);
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != (char)('a' + i % 23))
            fail_msg("byte %zu of %zu is wrong", i, len);
}

void gate_init(struct gate *gate)
{
    gate->dir = support_scratch_new();
    assert_true(asprintf(&gate->path, "%s/gate", gate->dir) > 0);
    assert_int_equal(mkfifo(gate->path, 0600), 0);
}

void gate_open(const struct gate *gate)
{
    int fd = open(gate->path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    close(fd);
}

void gate_done(struct gate *gate)
{
    support_scratch_remove(gate->dir);
    free(gate->path);
}

void gate_script(const struct gate *gate, char *script, size_t size, const char *fmt)
{
    const char *mark = strstr(fmt, "GATE");

    snprintf(script, size, "%.*s%s%s", (int)(mark - fmt), fmt, gate->path, mark + 4);
}

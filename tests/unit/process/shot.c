/* See shot.h. */
#include "shot.h"

#include "fake_sandbox.h"

#include "output/output.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_output(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset)
{
    struct shot *shot = data;

    assert_int_equal(offset, shot->live.len);
    assert_true(buf_append(&shot->live, bytes, len));
    if (shot->shows_on)
        assert_int_equal(write(shot->shows_on, bytes, len), len);
    if (!strstr(shot->live.data, "ready"))
        return;
    if (shot->raises)
        raise(shot->raises);
    if (shot->cancels)
        assert_int_equal(write(shot->cancel[1], "x", 1), 1);
    if (shot->opens)
        close(open(shot->opens, O_WRONLY | O_CLOEXEC));
    shot->raises = 0;
    shot->cancels = false;
    shot->opens = NULL;
}

void shot_init(struct shot *shot, const char *script)
{
    *shot = (struct shot){.argv = {(char *)"sh", (char *)"-c", (char *)script}};
    fake = (struct fake){0};
    job_run_defaults(&shot->options);
    assert_int_equal(pipe2(shot->cancel, O_CLOEXEC), 0);
    buf_init(&shot->live, (size_t)64 << 20);
    shot->options.sandbox = fake_sandbox();
    shot->options.argv = shot->argv;
    shot->options.env = test_env;
    shot->options.cwd = "/";
    shot->options.cancel_fd = shot->cancel[0];
    shot->options.without_cgroup = true;
    shot->options.on_output = on_output;
    shot->options.data = shot;
}

void shot_run(struct shot *shot)
{
    struct err err = ERR_UNTOUCHED;

    if (job_run(&shot->options, &shot->result, &err))
        fail_msg("job_run: %s", err.msg);
    assert_untouched(err);
    assert_int_equal(fake.done, fake.launches);
}

void shot_done(struct shot *shot)
{
    job_result_done(&shot->result);
    buf_done(&shot->live);
    close(shot->cancel[0]);
    close(shot->cancel[1]);
}

char *shot_text(struct shot *shot, enum stream stream)
{
    struct buf text;

    buf_init(&text, (size_t)64 << 20);
    output_render(job_stream(shot->result.job, stream), &text);
    return buf_take(&text);
}

void assert_text(struct shot *shot, enum stream stream, const char *expected)
{
    char *text = shot_text(shot, stream);

    assert_string_equal(text, expected);
    free(text);
}

void assert_text_has(struct shot *shot, const char *part)
{
    char *text = shot_text(shot, STREAM_STDOUT);

    assert_contains(text, part);
    free(text);
}

void assert_end(const struct shot *shot, enum job_run_end end, int exit_code, int signal,
                int shell_code)
{
    const struct job_result *result = &shot->result;

    assert_string_equal(job_run_end_name(result->end), job_run_end_name(end));
    assert_int_equal(result->process->code, exit_code);
    assert_int_equal(result->process->signal, signal);
    assert_int_equal(job_result_exit_code(result), shell_code);
}

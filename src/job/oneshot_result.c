/* See oneshot_result.h. Two things may be true at once: how the command ended, and why we say that
 * it did. The first is kept in exit_code and signal in any case; the second decides about `end`, in
 * this order: we stopped it, the sandbox denied it something, it never ran, it ended by itself. */
#include "job/oneshot_result.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "output/capture.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>

const char *oneshot_end_name(enum oneshot_end end)
{
    static const char *const names[] = {
        [ONESHOT_EXITED] = "exited",       [ONESHOT_SIGNALED] = "signaled",
        [ONESHOT_TIMED_OUT] = "timed-out", [ONESHOT_CANCELLED] = "cancelled",
        [ONESHOT_DENIED] = "denied",       [ONESHOT_FAILED_TO_START] = "failed-to-start",
    };

    return names[end];
}

static uint64_t timeval_ns(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * CLOCK_NS_PER_S + (uint64_t)time->tv_usec * 1000;
}

static void result_set_usage(struct oneshot_result *result, const struct process_end *end)
{
    const struct rusage *usage = &end->usage;

    result->usage_known = end->usage_known;
    result->usage = (struct oneshot_usage){
        .user_ns = timeval_ns(&usage->ru_utime),
        .system_ns = timeval_ns(&usage->ru_stime),
        .memory_peak_kb = result->limits.memory_peak ? result->limits.memory_peak / 1024
                                                     : (uint64_t)usage->ru_maxrss,
        .voluntary_switches = (uint64_t)usage->ru_nvcsw,
        .involuntary_switches = (uint64_t)usage->ru_nivcsw,
        .bytes_written = end->bytes_written,
    };
}

static void result_set_end(struct oneshot_result *result, const struct oneshot_facts *facts)
{
    const struct process_end *end = facts->end;

    result->exit_code = end->how == PROCESS_EXITED ? end->code : -1;
    result->signal = end->how == PROCESS_SIGNALED ? end->signal : 0;
    result->failed = end->how == PROCESS_FAILED_TO_START;
    result->stage = end->stage;
    result->failure = end->failure;
    if (facts->stop == STOP_TIMEOUT)
        result->end = ONESHOT_TIMED_OUT;
    else if (facts->stop == STOP_CANCEL)
        result->end = ONESHOT_CANCELLED;
    else if (denials_by_sandbox(&result->denials))
        result->end = ONESHOT_DENIED;
    else if (result->failed)
        result->end = ONESHOT_FAILED_TO_START;
    else
        result->end = result->signal ? ONESHOT_SIGNALED : ONESHOT_EXITED;
    result->cancel_signal = facts->stop_signal;
}

/* As a C string: the readers of lines stop at a NUL. Caller frees. */
static char *capture_text(struct capture *capture, enum stream stream)
{
    AUTO(buf_done) struct buf text = {0};

    buf_init(&text, SIZE_MAX / 2);
    capture_render(capture, stream, &text);
    for (size_t i = 0; i < text.len; i++)
        if (!text.data[i])
            text.data[i] = ' ';
    return buf_take(&text);
}

static void result_set_denials(struct oneshot_result *result, const struct oneshot_facts *facts)
{
    const struct oneshot_options *options = facts->options;
    const struct process_end *end = facts->end;
    AUTO_FREE char *out = NULL;
    AUTO_FREE char *errors = NULL;
    struct denial_input input = {
        .access = options->access,
        .cwd = options->cwd,
        .end = end,
        .program = options->program ? options->program : options->argv[0],
    };

    if (end->how == PROCESS_EXITED && end->code == 0)
        return;
    if (options->access) {
        input.texts[STREAM_STDOUT] = out = capture_text(result->capture, STREAM_STDOUT);
        input.texts[STREAM_STDERR] = errors = capture_text(result->capture, STREAM_STDERR);
    }
    denials_find(&input, &result->denials);
}

void oneshot_result_fill(struct oneshot_result *result, const struct oneshot_facts *facts)
{
    const struct process_end *end = facts->end;

    resource_limits_report(facts->limits, end, &result->limits);
    result_set_usage(result, end);
    result_set_denials(result, facts);
    result_set_end(result, facts);
    result->wall_ns = end->ended_ns - end->started_ns;
    result->drain_cut |= end->drain_cut;
    result->limits_asked = facts->options->limits;
    result->stdio = facts->options->stdio;
    result->sandbox = facts->options->sandbox;
}

void oneshot_result_done(struct oneshot_result *result)
{
    capture_free(result->capture);
    denials_done(&result->denials);
    result->capture = NULL;
}

/* 126 and 127: POSIX XCU 2.8.2; 124 and 125: as timeout(1) and env(1) do. */
int oneshot_exit_code(const struct oneshot_result *result)
{
    if (result->end == ONESHOT_TIMED_OUT)
        return 124;
    if (result->end == ONESHOT_CANCELLED)
        return 128 + (result->cancel_signal ? result->cancel_signal : SIGTERM);
    if (result->failed && result->stage != LAUNCH_STAGE_EXEC)
        return 125;
    if (result->failed)
        return result->failure.sys == ENOENT ? 127 : 126;
    return result->signal ? 128 + result->signal : result->exit_code;
}

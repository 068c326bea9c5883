/* See snapshot.h.
 *
 *     TAKING --> CHECKING --> READY
 *       |  ^         |
 *       +--+         +------> FAILED     zsh is taken once more, without start-up files, when these
 *                                        did not end in time
 *
 * Each arrow is one command of the very sandbox that will use it, so start-up files can do what the
 * commands can, and no more. */
#include "workspace/snapshot.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "output/output.h"
#include "rules/shell/shell_snapshot.h"

#include <stdlib.h>
#include <string.h>

enum snapshot_state { TAKING, TAKING_BARE, CHECKING, READY, FAILED };

struct snapshot {
    struct snapshot_options options;
    char *shell;
    char *cwd;
    enum snapshot_state state;
    struct job_run *run; /* in the first three states */
    struct job_run_options job;
    struct strv argv;
    struct strv carried; /* entries of the environment that are the state */
    struct strv check_env;
    struct err failure;
};

static void snapshot_on_over(void *data);

/* --- steps --- */

static int snapshot_run(struct snapshot *snapshot, enum snapshot_state state, struct err *err)
{
    snapshot->state = state;
    snapshot->job.argv = snapshot->argv.items;
    snapshot->run = job_run_start(&snapshot->job, err);
    return snapshot->run ? 0 : -1;
}

static int snapshot_take(struct snapshot *snapshot, struct err *err)
{
    const char *shell = snapshot->shell;

    if (!shell_snapshot_take(shell, &snapshot->argv))
        return err_set(err, ERR_UNSUPPORTED, "%s: no snapshots of this shell", shell);
    return snapshot_run(snapshot, TAKING, err);
}

/* `*ret_again`: a second attempt has begun. */
static int snapshot_retake(struct snapshot *snapshot, bool *ret_again, struct err *err)
{
    strv_done(&snapshot->argv);
    *ret_again =
        snapshot->state == TAKING && shell_snapshot_take_bare(snapshot->shell, &snapshot->argv);
    return *ret_again ? snapshot_run(snapshot, TAKING_BARE, err) : 0;
}

static int snapshot_check(struct snapshot *snapshot, struct err *err)
{
    strv_done(&snapshot->argv);
    shell_snapshot_check(snapshot->shell, snapshot->carried.len, &snapshot->argv);
    strv_push_all(&snapshot->check_env, snapshot->options.job.env);
    strv_push_all(&snapshot->check_env, strv_view(&snapshot->carried));
    snapshot->job.env = strv_view(&snapshot->check_env);
    return snapshot_run(snapshot, CHECKING, err);
}

/* Keeps the state that was printed. */
static int snapshot_save(struct snapshot *snapshot, struct job_result *result, struct err *err)
{
    struct output *output = job_stream(result->job, STREAM_STDOUT);
    AUTO(buf_done) struct buf all = {0};
    struct output_info info;
    const char *text;
    size_t len;

    output_info(output, &info);
    if (info.prefix_end < info.tail_start)
        return err_set(err, ERR_LIMIT, "the state of %s is larger than %d bytes", snapshot->shell,
                       SHELL_SNAPSHOT_MAX);
    buf_init(&all, SIZE_MAX / 2);
    output_render(output, &all);
    text = shell_snapshot_cut(all.data, all.len, &len);
    if (!text || memchr(text, '\0', len))
        return err_set(err, ERR_INVALID, "%s did not print its state", snapshot->shell);
    shell_snapshot_carry(text, len, &snapshot->carried);
    return 0;
}

/* --- ends of steps --- */

static bool has_succeeded(const struct job_result *result)
{
    return result->end == JOB_RUN_EXITED && result->process->code == 0;
}

static int snapshot_taken(struct snapshot *snapshot, struct job_result *result, struct err *err)
{
    bool again = false;

    if (result->end == JOB_RUN_TIMED_OUT && snapshot_retake(snapshot, &again, err))
        return -1;
    if (again)
        return 0;
    if (!has_succeeded(result))
        return err_set(err, ERR_INVALID, "the start-up files of %s %s", snapshot->shell,
                       result->end == JOB_RUN_TIMED_OUT ? "take too long" : "fail");
    if (snapshot_save(snapshot, result, err))
        return -1;
    return snapshot_check(snapshot, err);
}

static int snapshot_checked(struct snapshot *snapshot, const struct job_result *result,
                            struct err *err)
{
    if (!has_succeeded(result))
        return err_set(err, ERR_INVALID, "%s cannot read its own state", snapshot->shell);
    snapshot->state = READY;
    return 0;
}

static void snapshot_on_over(void *data)
{
    struct snapshot *snapshot = data;
    struct job_result result;
    int failed;

    job_run_take(snapshot->run, &result);
    job_run_free(TAKE_PTR(snapshot->run));
    if (snapshot->state == CHECKING)
        failed = snapshot_checked(snapshot, &result, &snapshot->failure);
    else
        failed = snapshot_taken(snapshot, &result, &snapshot->failure);
    job_result_done(&result);
    if (failed)
        snapshot->state = FAILED;
    if ((snapshot->state == READY || snapshot->state == FAILED) && snapshot->options.on_over)
        snapshot->options.on_over(snapshot->options.data);
}

/* --- life --- */

struct snapshot *snapshot_start(const struct snapshot_options *options, struct err *err)
{
    struct snapshot *snapshot = alloc_zero(1, sizeof *snapshot);

    snapshot->options = *options;
    snapshot->shell = alloc_str(options->shell);
    snapshot->cwd = alloc_str(options->job.cwd);
    job_run_defaults(&snapshot->job);
    snapshot->job.loop = options->job.loop;
    snapshot->job.sandbox = options->job.sandbox;
    snapshot->job.access = options->job.access;
    snapshot->job.cgroup_base = options->job.cgroup_base;
    snapshot->job.env = options->job.env;
    snapshot->job.cwd = snapshot->cwd;
    snapshot->job.timeout_ns = options->job.timeout_ns ? options->job.timeout_ns
                                                       : SHELL_SNAPSHOT_TIMEOUT_S * CLOCK_NS_PER_S;
    snapshot->job.max_output = SHELL_SNAPSHOT_MAX;
    snapshot->job.on_over = snapshot_on_over;
    snapshot->job.data = snapshot;
    if (snapshot_take(snapshot, err) == 0)
        return snapshot;
    snapshot_free(snapshot);
    return NULL;
}

void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    job_run_free(snapshot->run);
    strv_done(&snapshot->argv);
    strv_done(&snapshot->carried);
    strv_done(&snapshot->check_env);
    free(snapshot->shell);
    free(snapshot->cwd);
    free(snapshot);
}

bool snapshot_is_ready(const struct snapshot *snapshot)
{
    return snapshot->state == READY;
}

const struct err *snapshot_failure(const struct snapshot *snapshot)
{
    return snapshot->state == FAILED ? &snapshot->failure : NULL;
}

bool snapshot_use(const struct snapshot *snapshot, char *const *argv, const char *cwd,
                  char *const *keep, struct strv *ret, struct strv *ret_env)
{
    if (snapshot->state != READY || !str_eq(cwd, snapshot->cwd) ||
        !shell_snapshot_use(argv, snapshot->shell, snapshot->carried.len, keep, ret))
        return false;
    strv_push_all(ret_env, strv_view(&snapshot->carried));
    return true;
}

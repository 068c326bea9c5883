/* See snapshots.h. A handful is kept; the one that was used least recently makes room. One that
 * failed stays in the list, so that it is not tried again with every command.
 *
 *     TAKING --> CHECKING --> READY
 *       |  ^         |
 *       +--+         +------> FAILED     zsh is taken once more, without start-up files, when these
 *                                        did not end in time
 *
 * Each arrow is one command of the very sandbox that will use it, so start-up files can do what the
 * commands can, and no more. */
#include "workspace/snapshots.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "job/job_run.h"
#include "output/output.h"
#include "rules/shell/shell_choice.h"
#include "rules/shell/shell_snapshot.h"
#include "workspace/workspace.h"

#include <stdlib.h>
#include <string.h>

enum { SNAPSHOTS_MAX = 16 };

/* Whatever start-up files do, these are as Cordon set them. */
static const char *const always_kept[] = {"CODEX_THREAD_ID",
                                          "CORDON_THREAD_ID",
                                          "CORDON_SANDBOX",
                                          "CORDON_SANDBOX_NETWORK_DISABLED",
                                          "CODEX_SANDBOX_NETWORK_DISABLED",
                                          "CORDON_NETWORK_PROXY_ACTIVE",
                                          "CODEX_NETWORK_PROXY_ACTIVE",
                                          "CORDON_NETWORK_ALLOW_LOCAL_BINDING",
                                          "CODEX_NETWORK_ALLOW_LOCAL_BINDING",
                                          "HTTP_PROXY",
                                          "HTTPS_PROXY",
                                          "ALL_PROXY",
                                          "NO_PROXY",
                                          "http_proxy",
                                          "https_proxy",
                                          "all_proxy",
                                          "no_proxy",
                                          NULL};

enum snapshot_state { TAKING, TAKING_BARE, CHECKING, READY, FAILED };

struct snapshot {
    struct list link;
    /* what it is for */
    uint64_t number;
    char *shell;
    char *cwd;
    struct strv env;

    enum snapshot_state state;
    struct job_run *run; /* in the first three states */
    struct job_run_options job;
    struct strv argv;
    struct strv carried; /* entries of the environment that are the state */
    struct strv check_env;
    struct err failure;
    bool is_told; /* why it failed */
    void (*release)(void *data);
    void *data;
};

struct snapshots {
    struct loop *loop;
    struct list all; /* the one used last first */
};

struct snapshots *snapshots_new(struct loop *loop)
{
    struct snapshots *snapshots = alloc_zero(1, sizeof *snapshots);

    snapshots->loop = loop;
    return snapshots;
}

static void snapshot_release(struct snapshot *snapshot)
{
    void (*release)(void *data) = TAKE_PTR(snapshot->release);

    if (release)
        release(snapshot->data);
}

static void snapshot_free(struct snapshot *snapshot)
{
    list_remove(&snapshot->link);
    job_run_free(snapshot->run);
    snapshot_release(snapshot);
    strv_done(&snapshot->env);
    strv_done(&snapshot->argv);
    strv_done(&snapshot->carried);
    strv_done(&snapshot->check_env);
    free(snapshot->shell);
    free(snapshot->cwd);
    free(snapshot);
}

void snapshots_free(struct snapshots *snapshots)
{
    if (!snapshots)
        return;
    while (!list_is_empty(&snapshots->all))
        snapshot_free(list_first(&snapshots->all, struct snapshot, link));
    free(snapshots);
}

/* --- taking one --- */

static int snapshot_run(struct snapshot *snapshot, enum snapshot_state state, struct err *err)
{
    snapshot->state = state;
    snapshot->job.argv = snapshot->argv.items;
    snapshot->run = job_run_start(&snapshot->job, err);
    return snapshot->run ? 0 : -1;
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

/* A step has ended: begins the next one, or the state is READY. -1 when it failed. */
static int snapshot_step(struct snapshot *snapshot, struct job_result *result, struct err *err)
{
    bool is_late = result->end == JOB_RUN_TIMED_OUT;
    bool has_succeeded = result->end == JOB_RUN_EXITED && result->process->code == 0;

    strv_done(&snapshot->argv);
    if (snapshot->state == CHECKING && !has_succeeded)
        return err_set(err, ERR_INVALID, "%s cannot read its own state", snapshot->shell);
    if (snapshot->state == CHECKING) {
        snapshot->state = READY;
        return 0;
    }
    if (is_late && snapshot->state == TAKING &&
        shell_snapshot_take_bare(snapshot->shell, &snapshot->argv))
        return snapshot_run(snapshot, TAKING_BARE, err);
    if (!has_succeeded)
        return err_set(err, ERR_INVALID, "the start-up files of %s %s", snapshot->shell,
                       is_late ? "take too long" : "fail");
    if (snapshot_save(snapshot, result, err))
        return -1;
    shell_snapshot_check(snapshot->shell, snapshot->carried.len, &snapshot->argv);
    strv_push_all(&snapshot->check_env, strv_view(&snapshot->env));
    strv_push_all(&snapshot->check_env, strv_view(&snapshot->carried));
    snapshot->job.env = strv_view(&snapshot->check_env);
    return snapshot_run(snapshot, CHECKING, err);
}

static void on_over(void *data)
{
    struct snapshot *snapshot = data;
    struct job_result result;

    job_run_take(snapshot->run, &result);
    job_run_free(TAKE_PTR(snapshot->run));
    if (snapshot_step(snapshot, &result, &snapshot->failure))
        snapshot->state = FAILED;
    job_result_done(&result);
    if (snapshot->state == READY || snapshot->state == FAILED)
        snapshot_release(snapshot);
}

static void begin(struct snapshots *snapshots, const struct snapshot_request *request)
{
    struct snapshot *snapshot = alloc_zero(1, sizeof *snapshot);
    struct snapshot *oldest;
    struct snapshot *newer;
    size_t len = 0;

    list_for_each_safe(oldest, newer, &snapshots->all, link)
        if (++len >= SNAPSHOTS_MAX)
            snapshot_free(oldest);
    list_add(&snapshots->all, &snapshot->link);
    snapshot->number = request->number;
    snapshot->shell = alloc_str(request->argv[0]);
    snapshot->cwd = alloc_str(request->cwd);
    strv_push_all(&snapshot->env, request->env);
    job_run_defaults(&snapshot->job);
    snapshot->job.loop = snapshots->loop;
    snapshot->job.sandbox = request->sandbox;
    snapshot->job.access = request->access;
    snapshot->job.env = strv_view(&snapshot->env);
    snapshot->job.cwd = snapshot->cwd;
    snapshot->job.timeout_ns =
        request->timeout_ns ? request->timeout_ns : SHELL_SNAPSHOT_TIMEOUT_S * CLOCK_NS_PER_S;
    snapshot->job.max_output = SHELL_SNAPSHOT_MAX;
    snapshot->job.on_over = on_over;
    snapshot->job.data = snapshot;
    if (!shell_snapshot_take(snapshot->shell, &snapshot->argv))
        err_set(&snapshot->failure, ERR_UNSUPPORTED, "%s: no snapshots of this shell",
                snapshot->shell);
    else
        snapshot_run(snapshot, TAKING, &snapshot->failure);
    if (!snapshot->run) {
        snapshot->state = FAILED;
        return;
    }
    snapshot->release = request->release;
    snapshot->data = request->data;
    if (request->hold)
        request->hold(request->data);
}

/* --- using --- */

static void on_hold(void *data)
{
    workspace_hold(data);
}

static void on_release(void *data)
{
    log_event(LOG_LEVEL_DEBUG, "shell-snapshot-over");
    workspace_release(data);
}

struct snapshot_request snapshot_request_for(struct workspace *workspace)
{
    return (struct snapshot_request){
        .number = workspace->number,
        .sandbox = workspace->sandbox,
        .access = workspace->access,
        .env = strv_view(&workspace->env),
        .keep = strv_view(&workspace->set_names),
        .hold = on_hold,
        .release = on_release,
        .data = workspace,
    };
}

/* The shells without snapshots are known and no failure. */
static bool is_login(char *const *argv)
{
    enum shell_kind kind = argv[0] ? shell_kind_of(argv[0]) : SHELL_UNKNOWN;

    return (kind == SHELL_BASH || kind == SHELL_ZSH || kind == SHELL_SH) && argv[0][0] == '/' &&
           argv[1] && str_eq(argv[1], "-lc") && argv[2] && !argv[3];
}

static bool is_same_env(const struct strv *a, char *const *b)
{
    size_t i = 0;

    for (; i < a->len && b[i]; i++)
        if (!str_eq(a->items[i], b[i]))
            return false;
    return i == a->len && !b[i];
}

/* Moves it to the front. */
static struct snapshot *find(struct snapshots *snapshots, const struct snapshot_request *request)
{
    struct snapshot *snapshot;

    list_for_each(snapshot, &snapshots->all, link) {
        if (snapshot->number != request->number || !str_eq(snapshot->shell, request->argv[0]) ||
            !str_eq(snapshot->cwd, request->cwd) || !is_same_env(&snapshot->env, request->env))
            continue;
        list_remove(&snapshot->link);
        list_add(&snapshots->all, &snapshot->link);
        return snapshot;
    }
    return NULL;
}

bool snapshots_use(struct snapshots *snapshots, const struct snapshot_request *request,
                   struct strv *ret_argv, struct strv *ret_env, const struct err **ret_failure)
{
    AUTO(strv_done) struct strv keep = {0};
    struct snapshot *snapshot;

    *ret_failure = NULL;
    if (!is_login(request->argv))
        return false;
    snapshot = find(snapshots, request);
    if (!snapshot) {
        begin(snapshots, request);
        return false;
    }
    if (snapshot->state == FAILED && !snapshot->is_told) {
        snapshot->is_told = true;
        *ret_failure = &snapshot->failure;
    }
    strv_push_all(&keep, request->keep);
    for (size_t i = 0; always_kept[i]; i++)
        strv_push(&keep, always_kept[i]);
    if (snapshot->state != READY ||
        !shell_snapshot_use(request->argv, snapshot->shell, snapshot->carried.len, strv_view(&keep),
                            ret_argv))
        return false;
    strv_push_all(ret_env, strv_view(&snapshot->carried));
    return true;
}

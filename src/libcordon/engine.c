/* See cordon.h. Everything here is a thin coat: structs that say their size are read, errors are
 * passed on, and the work is done by the layers below. What the engine adds is the workspace of each
 * policy and one descriptor for all of it. */
#include "libcordon/engine.h"

#include "approval/approvals.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "denial/denial.h"
#include "job/model_calls.h"
#include "loop/loop.h"
#include "policy/config/config.h"
#include "process/process.h"
#include "process/resource_limits.h"
#include "workspace/snapshots.h"
#include "workspace/workspace.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)CORDON_ERROR_BUG == (int)ERR_BUG, "the codes are the same");

const char *cordon_version(void)
{
    return CORDON_VERSION;
}

int options_read(void *to, size_t size, const void *from, struct err *err)
{
    size_t given;

    memcpy(&given, from, sizeof given);
    if (given < sizeof given || given > 4096)
        return err_set(err, ERR_INVALID,
                       "the member `size` of the options is %zu: it has to be set", given);
    for (size_t i = size; i < given; i++)
        if (((const char *)from)[i])
            return err_set(err, ERR_UNSUPPORTED,
                           "the options say something that this version of Cordon does not know");
    memset(to, 0, size);
    memcpy(to, from, given < size ? given : size);
    return 0;
}

int error_give(struct cordon_error *error, const struct err *err)
{
    if (!error)
        return -1;
    error->code = (int)err->code;
    error->sys = err->sys;
    snprintf(error->message, sizeof error->message, "%s", err->msg);
    return -1;
}

uint64_t ms_to_ns(uint64_t ms)
{
    return ms > UINT64_MAX / CLOCK_NS_PER_MS ? UINT64_MAX : ms * CLOCK_NS_PER_MS;
}

static uint64_t timeval_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * CLOCK_NS_PER_S + (uint64_t)time.tv_usec * 1000;
}

void end_fill(struct cordon_end *end, const struct process_end *from, int exit_code)
{
    static const enum cordon_how hows[] = {
        [PROCESS_EXITED] = CORDON_EXITED,
        [PROCESS_SIGNALED] = CORDON_SIGNALED,
        [PROCESS_FAILED_TO_START] = CORDON_FAILED_TO_START,
    };

    *end = (struct cordon_end){
        .how = (int)hows[from->how],
        .exit_code = exit_code,
        .signal = from->how == PROCESS_SIGNALED ? from->signal : 0,
        .wall_ns = from->ended_ns - from->started_ns,
    };
    if (from->usage_known) {
        end->user_ns = timeval_ns(from->usage.ru_utime);
        end->system_ns = timeval_ns(from->usage.ru_stime);
    }
    if (from->how == PROCESS_FAILED_TO_START)
        error_give(&end->failure, &from->failure);
}

/* --- limits and denials --- */

int limits_read(struct resource_limits *ret, const struct cordon_limits *from, struct err *err)
{
    struct cordon_limits given = {0};

    if (from && options_read(&given, sizeof given, from, err))
        return err_wrap(err, "limits");
    *ret = (struct resource_limits){
        .memory = given.memory,
        .cpu_time_ns = ms_to_ns(given.cpu_time_ms),
        .pids = given.pids,
        .file_size = given.file_size,
    };
    return 0;
}

unsigned limits_hit(const struct resource_limits_report *report)
{
    static const unsigned flags[LIMIT_COUNT] = {
        [LIMIT_MEMORY] = CORDON_LIMIT_MEMORY,
        [LIMIT_CPU_TIME] = CORDON_LIMIT_CPU_TIME,
        [LIMIT_PIDS] = CORDON_LIMIT_PIDS,
        [LIMIT_FILE_SIZE] = CORDON_LIMIT_FILE_SIZE,
    };
    unsigned hit = 0;

    for (int i = 0; i < LIMIT_COUNT; i++)
        hit |= report->hit[i] ? flags[i] : 0;
    return hit;
}

char *denials_say(const struct denials *denials)
{
    const struct denial *denial = denials->items;

    if (!denials->len)
        return NULL;
    return alloc_strf("%s of %s was refused. %s", denial_operation_name(denial->operation),
                      denial->path   ? denial->path
                      : denial->host ? denial->host
                                     : "something",
                      denial->remedy);
}

/* --- opening --- */

static void find_home(struct cordon_engine *engine)
{
    const char *home = getenv("HOME");
    const char *own = getenv("CORDON_HOME");

    if (home && *home == '/')
        engine->home = path_clean("/", home);
    if (own && *own == '/')
        strv_push_take(&engine->own_paths, path_clean("/", own));
    else if (engine->home)
        strv_push_take(&engine->own_paths, path_join(engine->home, ".config/cordon"));
}

static int load_config(struct cordon_engine *engine, const char *name, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};
    const char *path;

    if (!name)
        return 0;
    path = engine->config_path = realpath(name, NULL);
    if (!path)
        return err_sys(err, "%s", name);
    if (fd_read_file(path, CONFIG_SIZE_MAX, &text, err))
        return -1;
    engine->config = config_load(text.data ? text.data : "", text.len, path, err);
    if (!engine->config)
        return -1;
    strv_push(&engine->own_paths, path);
    return 0;
}

/* What rules the next command is not for this one to write. */
static int find_rules(struct cordon_engine *engine, const char *dir, struct err *err)
{
    AUTO_FREE char *current = dir ? getcwd(NULL, 0) : NULL;

    if (!dir)
        return 0;
    if (!current)
        return err_sys(err, "the current folder");
    engine->rules = path_clean(current, dir);
    strv_push(&engine->own_paths, engine->rules);
    return 0;
}

static void open_workspaces(struct cordon_engine *engine)
{
    const struct workspaces_options options = {
        .loop = engine->loop,
        .config = engine->config,
        .config_path = engine->config_path,
        .home = engine->home,
        .own_paths = strv_view(&engine->own_paths),
        .launcher = engine->launcher,
        .is_lasting = true,
    };

    engine->workspaces = workspaces_new(&options);
}

static int engine_init(struct cordon_engine *engine, const struct cordon_engine_options *options,
                       struct err *err)
{
    struct model_calls_options calls = {
        .capacity = options->max_sessions,
        .ids = options->flags & CORDON_IDS_IN_ORDER ? JOB_TABLE_IDS_IN_ORDER : JOB_TABLE_IDS_RANDOM,
        .output_memory = options->output_memory,
        .spool_quota = options->spool_quota,
    };

    engine->launcher = alloc_str(options->launcher);
    engine->thread_id = alloc_str(options->thread_id);
    find_home(engine);
    if (load_config(engine, options->config, err) || find_rules(engine, options->rules, err))
        return -1;
    calls.loop = engine->loop = loop_new(err);
    if (!engine->loop)
        return -1;
    open_workspaces(engine);
    if (!policy_workspace(engine, options->policy, err))
        return -1;
    engine->approvals = approval_bridge_new(engine, options);
    engine->snapshots = snapshots_new(engine->loop);
    engine->model_calls = model_calls_new(&calls, err);
    return engine->model_calls ? 0 : -1;
}

static void engine_auto(struct cordon_engine **slot)
{
    cordon_close(*slot);
}

int cordon_open(const struct cordon_engine_options *given, struct cordon_engine **ret_engine,
                struct cordon_error *error)
{
    AUTO(engine_auto) struct cordon_engine *engine = alloc_zero(1, sizeof *engine);
    struct cordon_engine_options options = {0};
    struct err err;

    if ((given && options_read(&options, sizeof options, given, &err)) ||
        engine_init(engine, &options, &err))
        return error_give(error, &err);
    *ret_engine = TAKE_PTR(engine);
    return 0;
}

void cordon_close(struct cordon_engine *engine)
{
    if (!engine)
        return;
    model_calls_free(engine->model_calls);
    calls_free(engine->calls);
    executions_free(engine);
    approvals_free(engine->approvals);
    snapshots_free(engine->snapshots);
    workspaces_free(engine->workspaces);
    loop_free(engine->loop);
    config_free(engine->config);
    strv_done(&engine->own_paths);
    free(engine->config_path);
    free(engine->default_key);
    free(engine->launcher);
    free(engine->thread_id);
    free(engine->home);
    free(engine->rules);
    free(engine);
}

/* --- the loop --- */

int cordon_fd(struct cordon_engine *engine, struct cordon_error *error)
{
    struct err err;
    int fd = loop_fd(engine->loop, &err);

    return fd >= 0 ? fd : error_give(error, &err);
}

int cordon_dispatch(struct cordon_engine *engine, struct cordon_error *error)
{
    struct err err;

    return loop_dispatch(engine->loop, &err) ? error_give(error, &err) : 0;
}

int cordon_wait(struct cordon_engine *engine, int timeout_ms, struct cordon_error *error)
{
    struct err err;

    if (loop_wait(engine->loop, timeout_ms, &err))
        return error_give(error, &err);
    return cordon_dispatch(engine, error);
}

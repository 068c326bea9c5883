/* See cordon.h. Everything here is a thin coat: structs that say their size are read, errors are
 * passed on, and the work is done by the layers below. What the engine adds is the workspace of each
 * policy (policy.c), the host as an approver, and one descriptor for all of it. */
#include "libcordon/engine.h"

#include "approval/approvals.h"
#include "approval/held.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "denial/denial.h"
#include "executor/execution.h"
#include "executor/execution_exec.h"
#include "job/model_calls.h"
#include "loop/loop.h"
#include "policy/config/config.h"
#include "process/process.h"
#include "process/resource_limits.h"
#include "workspace/rule_layers.h"
#include "workspace/snapshots.h"
#include "workspace/workspace.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)CORDON_ERROR_CONFLICT == (int)ERR_CONFLICT, "the codes are the same");
_Static_assert((int)CORDON_NO_BY_RULE == (int)APPROVAL_NO_BY_RULE, "the decisions are the same");
_Static_assert((int)CORDON_QUESTION_HELD == (int)APPROVAL_KIND_HELD, "the kinds are the same");

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
    const uint64_t values[LIMIT_COUNT] = {
        [LIMIT_MEMORY] = given.memory, [LIMIT_CPU_TIME] = given.cpu_time_ms,
        [LIMIT_PIDS] = given.pids,     [LIMIT_FILE_SIZE] = given.file_size,
        [LIMIT_FILES] = given.files,   [LIMIT_ADDRESS_SPACE] = given.address_space,
    };

    *ret = (struct resource_limits){0};
    for (int i = 0; i < LIMIT_COUNT; i++) {
        uint64_t number = values[i] == CORDON_NO_LIMIT ? 0
                          : i == LIMIT_CPU_TIME        ? ms_to_ns(values[i])
                                                       : values[i];

        if (values[i] && resource_limit_check((enum resource_limit)i, number, &ret->of[i], err))
            return err_wrap(err, "limits: %s", resource_limit_name((enum resource_limit)i));
    }
    return 0;
}

unsigned limits_hit(const struct resource_limits_report *report)
{
    static const unsigned flags[LIMIT_COUNT] = {
        [LIMIT_MEMORY] = CORDON_LIMIT_MEMORY, [LIMIT_CPU_TIME] = CORDON_LIMIT_CPU_TIME,
        [LIMIT_PIDS] = CORDON_LIMIT_PIDS,     [LIMIT_FILE_SIZE] = CORDON_LIMIT_FILE_SIZE,
        [LIMIT_FILES] = CORDON_LIMIT_FILES,   [LIMIT_ADDRESS_SPACE] = CORDON_LIMIT_ADDRESS_SPACE,
    };
    unsigned hit = 0;

    for (int i = 0; i < LIMIT_COUNT; i++)
        hit |= report->hit[i] == LIMIT_HIT ? flags[i] : 0;
    return hit;
}

char *denials_say(const struct denials *denials)
{
    const struct denial *denial = denials->items;

    for (size_t i = 0; i < denials->len; i++)
        if (denial_matters(&denials->items[i])) {
            denial = &denials->items[i];
            break;
        }
    if (!denials->len)
        return NULL;
    return alloc_strf("%s of %s was refused. %s", denial_operation_name(denial->operation),
                      denial->path   ? denial->path
                      : denial->host ? denial->host
                                     : "something",
                      denial->remedy);
}

/* --- the host as an approver: questions go out through on_question and come back through
 * cordon_answer_question(), in the same moment or an hour later --- */

struct approval_bridge {
    struct approver approver; /* first */
    void (*on_question)(void *data, const struct cordon_question *question);
    void (*on_question_over)(void *data, const char *id);
    void *data;
    const char *answered; /* the question that the host is just answering; NULL: none */
    struct strv over;     /* ids that on_question_over is still to be told */
    struct loop_timer *tell;
};

static void host_ask(struct approver *approver, const struct approval_request *question)
{
    const struct approval_bridge *host = (const struct approval_bridge *)approver;
    const struct approval_host *to = &question->host;
    bool has_prefix = approval_offers(question, APPROVAL_WITH_RULE) && !to->name;
    const struct cordon_question shown = {
        .id = question->id,
        .kind = (int)question->kind,
        .argv = (const char *const *)strv_view(&question->argv),
        .cwd = question->cwd,
        .reason = question->reason,
        .covers = question->covers,
        .prefix = has_prefix ? (const char *const *)strv_view(&question->proposal) : NULL,
        .offers = question->offers,
        .programs = question->programs,
        .variables = (const char *const *)strv_view(&question->variables),
        .host = to->name,
        .port = to->port,
        .protocol = to->name ? network_protocol_words[to->protocol] : NULL,
    };

    host->on_question(host->data, &shown);
}

/* From the loop, as every callback: a question is also withdrawn by calls of the host itself. */
static void on_tell(void *data)
{
    struct approval_bridge *host = data;
    AUTO(strv_done) struct strv over = host->over;

    host->over = (struct strv){0};
    for (size_t i = 0; i < over.len; i++)
        host->on_question_over(host->data, over.items[i]);
}

static void host_withdraw(struct approver *approver, const char *id)
{
    struct approval_bridge *host = (struct approval_bridge *)approver;

    if (!host->on_question_over || (host->answered && str_eq(host->answered, id)))
        return;
    strv_push(&host->over, id);
    loop_timer_start(host->tell, 0);
}

static void host_free(struct approver *approver)
{
    struct approval_bridge *host = (struct approval_bridge *)approver;

    loop_timer_free(host->tell);
    strv_done(&host->over);
    free(host);
}

/* By these options; NULL when the host does not want to be asked. */
static struct approvals *approval_bridge_new(struct cordon_engine *engine,
                                             const struct cordon_engine_options *options)
{
    struct approvals *approvals;
    struct approval_bridge *host;

    if (!options->on_question)
        return NULL;
    approvals = approvals_new(engine->loop, ms_to_ns(options->question_timeout_ms));
    host = alloc_zero(1, sizeof *host);
    host->approver =
        (struct approver){.ask = host_ask, .withdraw = host_withdraw, .free = host_free};
    host->on_question = options->on_question;
    host->on_question_over = options->on_question_over;
    host->data = options->question_data;
    host->tell = loop_timer_new(engine->loop, on_tell, host);
    approvals_add_approver(approvals, &host->approver);
    engine->approver = host;
    return approvals;
}

int cordon_answer_question(struct cordon_engine *engine, const char *id, int decision,
                           const char *reason, struct cordon_error *error)
{
    struct approval_answer answer = {.by = "host"};
    struct err err;
    int status;

    if (decision < 0 || decision > CORDON_ABORT)
        err_set(&err, ERR_INVALID, "%d is no enum cordon_decision", decision);
    else if (!engine->approvals)
        err_set(&err, ERR_NOT_FOUND, "there is no open question \"%s\"", id);
    if (decision < 0 || decision > CORDON_ABORT || !engine->approvals)
        return error_give(error, &err);
    answer.decision = (enum approval_decision)decision;
    answer.reason = alloc_str(reason);
    engine->approver->answered = id;
    status = approvals_answer(engine->approvals, id, &answer, &err);
    engine->approver->answered = NULL;
    return status ? error_give(error, &err) : 0;
}

/* --- what is held while the host is asked --- */

static const struct approval_policy *policy_of(const struct cordon_engine *engine)
{
    static const struct approval_policy normal = {.mode = APPROVAL_ON_REQUEST};
    const struct approval_policy *own = config_approval_policy(engine->config);

    return own ? own : &normal;
}

bool engine_holds(const struct cordon_engine *engine, const struct workspace *workspace)
{
    return engine->approvals &&
           held_is_wanted(workspace->access, &workspace->profile, policy_of(engine));
}

void engine_hold(const struct cordon_engine *engine, struct workspace *workspace, struct job *job,
                 char *const *argv)
{
    const struct rule_owner rules = {
        .config = engine->config, .dir = engine->rules, .home = engine->home};
    AUTO_FREE char *rules_file = rule_layers_file(&rules);
    struct job_info info;
    struct held_execs *execs;

    job_info(job, &info);
    execs = execution_execs_for_session(&(struct execution_options){
        .loop = engine->loop,
        .workspace = workspace,
        .rules = rules,
        .gate = EXECUTION_ASKS,
        .policy = *policy_of(engine),
        .cwd = info.cwd,
    });
    if (!execs && !engine_holds(engine, workspace))
        return;
    job_set_asker(job, held_new(&(struct held_options){
                           .approvals = engine->approvals,
                           .argv = argv,
                           .cwd = info.cwd,
                           .profile = workspace->profile_name,
                           .own_paths = strv_view(&workspace->own_paths),
                           .home = engine->home,
                           .rules_file = rules_file,
                           .offers_unconfined = policy_of(engine)->yes_means_unsandboxed &&
                                                workspace_may_leave(workspace),
                           .execs = execs,
                       }));
}

/* --- opening --- */

/* The folder of the user's configuration and rules, as of the program; NULL: none. Borrowed. */
static const char *find_home(struct cordon_engine *engine)
{
    const char *home = getenv("HOME");
    const char *own = getenv("CORDON_HOME");

    if (home && *home == '/')
        engine->home = path_clean("/", home);
    if (own && *own == '/')
        strv_push_take(&engine->own_paths, path_clean("/", own));
    else if (engine->home)
        strv_push_take(&engine->own_paths, path_join(engine->home, ".config/cordon"));
    return engine->own_paths.len ? engine->own_paths.items[0] : NULL;
}

/* A host that names none gets what `cordon run` would: what it does not say is the user's. */
static int load_config(struct cordon_engine *engine, const char *name, const char *own,
                       struct err *err)
{
    AUTO_FREE char *usual = !name && own ? path_join(own, "config.toml") : NULL;
    AUTO(buf_done) struct buf text = {0};
    const char *path;

    if (usual)
        name = usual;
    if (!name || !*name)
        return 0;
    path = engine->config_path = realpath(name, NULL);
    if (!path && usual && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!path)
        return err_sys(err, "%s", name);
    if ((usual ? fd_read_file : fd_read_given)(path, CONFIG_SIZE_MAX, &text, err))
        return -1;
    engine->config = config_load(text.data ? text.data : "", text.len, path, err);
    if (!engine->config)
        return -1;
    strv_push(&engine->own_paths, path);
    config_trusted_paths(engine->config, &engine->own_paths);
    return 0;
}

/* What rules the next command is not for this one to write. */
static int find_rules(struct cordon_engine *engine, const char *dir, const char *own,
                      struct err *err)
{
    AUTO_FREE char *current = dir ? getcwd(NULL, 0) : NULL;

    if (!dir)
        engine->rules = alloc_str(own);
    if (!dir || !*dir)
        return 0;
    if (!current)
        return err_sys(err, "the current directory");
    engine->rules = path_clean(current, dir);
    strv_push(&engine->own_paths, engine->rules);
    return 0;
}

static int engine_init(struct cordon_engine *engine, const struct cordon_engine_options *options,
                       struct err *err)
{
    struct model_calls_options calls = {
        .capacity = options->max_sessions,
        .ids = options->flags & CORDON_IDS_IN_ORDER ? JOB_TABLE_IDS_IN_ORDER : JOB_TABLE_IDS_RANDOM,
        .output_memory = options->output_memory,
        .spool_quota = options->spool_quota,
        .has_events = true,
    };
    const char *own;

    engine->launcher = alloc_str(options->launcher);
    engine->thread_id = alloc_str(options->thread_id);
    own = find_home(engine);
    if (load_config(engine, options->config, own, err) ||
        find_rules(engine, options->rules, own, err))
        return -1;
    calls.loop = engine->loop = loop_new(err);
    if (!engine->loop)
        return -1;
    engine->workspaces = workspaces_new(&(struct workspaces_options){
        .loop = engine->loop,
        .config = engine->config,
        .config_path = engine->config_path,
        .home = engine->home,
        .config_dir = own,
        .own_paths = strv_view(&engine->own_paths),
        .launcher = engine->launcher,
        .is_lasting = true,
    });
    if (!policy_workspace(engine, options->policy, err))
        return -1;
    engine->approvals = approval_bridge_new(engine, options);
    engine->snapshots = snapshots_new(engine->loop);
    engine->model_calls = model_calls_new(&calls, err);
    return engine->model_calls ? 0 : -1;
}

int cordon_open(const struct cordon_engine_options *given, struct cordon_engine **ret_engine,
                struct cordon_error *error)
{
    struct cordon_engine *engine = alloc_zero(1, sizeof *engine);
    struct cordon_engine_options options = {0};
    struct err err;

    if ((given && options_read(&options, sizeof options, given, &err)) ||
        engine_init(engine, &options, &err)) {
        cordon_close(engine);
        return error_give(error, &err);
    }
    *ret_engine = engine;
    return 0;
}

void cordon_close(struct cordon_engine *engine)
{
    if (!engine)
        return;
    model_calls_free(engine->model_calls);
    calls_free(engine);
    executions_free(engine);
    approvals_free(engine->approvals);
    snapshots_free(engine->snapshots);
    workspaces_free(engine->workspaces);
    layers_free(engine);
    loop_free(engine->loop);
    config_free(engine->config);
    strv_done(&engine->own_paths);
    free(engine->config_path);
    free(engine->default_key);
    free(engine->event);
    free(engine->layers_text);
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

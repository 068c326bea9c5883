/* See execution_exec.h.
 *
 * What runs outside is Cordon's choice, not the caller's: the file that was judged, if Cordon's own
 * PATH leads to it by its name and no command in the sandbox can write it; the environment that the command
 * was given, as outside.h has it, and never the caller's (LD_PRELOAD, GIT_SSH_COMMAND); the caller's directory, if it is the same one outside,
 * by a descriptor, so that nothing put in its place meanwhile counts; the caller's standard input, output and
 * error. The words of its arguments are the caller's: those that were judged. */
#include "executor/execution_exec.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/str.h"
#include "executor/outside.h"
#include "job/job.h"
#include "policy/access.h"
#include "policy/host_view.h"
#include "process/process.h"
#include "rules/rules.h"
#include "rules/shell/command_class.h"
#include "workspace/finder.h"
#include "workspace/workspace.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct runner {
    struct list link;
    struct process *process;
    struct job *job;
    uint64_t id;
    int dir; /* where it runs, by /proc; kept open, since it is started a moment later */
};

struct execution_execs {
    struct held_execs held;
    const struct execution_options *options;
    const struct rules *rules;
    struct execution_options own_options; /* of a session: what the two above are then */
    struct rules *own_rules;
    struct strv own_env;
    struct workspace *inside;
    struct workspace *bare; /* the same without a sandbox; NULL before it is needed */
    struct list runners;
};

/* That of the workspace; on a server, whose workspaces have none, what the client gave the command. */
static char *const *env_of(const struct execution_options *options,
                           const struct workspace *workspace)
{
    return options->env && !workspace->env.len ? options->env : strv_view(&workspace->env);
}

/* --- may it --- */

static void decide(const struct execution_options *options, const struct rules *rules,
                   char *const *argv, const char *cwd, struct requirement *ret)
{
    const struct workspace *workspace = options->workspace;
    struct host_finder finder;
    const struct requirement_request request = {
        .argv = argv,
        .finder = &finder.finder,
        .access = workspace->access,
        .rules = rules,
        .policy = options->policy,
        .confinement = execution_confinement(workspace),
        .flags = REQUIREMENT_EXEC |
                 (options->gate == EXECUTION_FORBIDS_ONLY ? REQUIREMENT_FORBIDS_ONLY : 0),
    };

    *ret = (struct requirement){.where = RUN_SANDBOXED};
    if (options->gate == EXECUTION_ASKS || (rules && !rules_is_empty(rules))) {
        host_finder_init(&finder, env_of(options, workspace), cwd);
        requirement_decide(&request, ret);
    }
}

/* The words, with another first one. */
static void words_with(const char *first, const char *const *argv, struct strv *ret)
{
    strv_push(ret, first);
    for (size_t i = 1; argv[0] && argv[i]; i++)
        strv_push(ret, argv[i]);
}

/* By the same rules and classes as a command: with what it really is, and with the name that it was
 * called by, of which the stricter word counts. */
static void judge(struct held_execs *judging, const struct launch_fact *fact,
                  struct requirement *ret)
{
    const struct execution_execs *execs = container_of(judging, struct execution_execs, held);
    const struct execution_options *options = execs->options;
    const struct rules *rules = execs->rules;
    AUTO(strv_done) struct strv real = {0};
    AUTO(strv_done) struct strv called = {0};
    struct requirement by_name;

    words_with(fact->path, fact->argv, &real);
    words_with(fact->argv[0] && *fact->argv[0] ? fact->argv[0] : fact->path, fact->argv, &called);
    decide(options, rules, strv_view(&real), fact->cwd, ret);
    decide(options, rules, strv_view(&called), fact->cwd, &by_name);
    /* the name is the caller's choice: it may hold the program, and never lets it out */
    if (by_name.outcome > ret->outcome) {
        by_name.where = RUN_SANDBOXED;
        requirement_done(ret);
        *ret = by_name;
    } else {
        requirement_done(&by_name);
    }
    /* what was not read to its end is not what would run */
    if (fact->is_truncated)
        ret->where = RUN_SANDBOXED;
    execution_keep_inside(options->workspace, ret);
}

/* --- outside --- */

static void runner_free(struct runner *runner)
{
    process_free(runner->process);
    auto_close(&runner->dir);
    list_remove(&runner->link);
    free(runner);
}

static int wait_status_of(const struct process_end *end)
{
    switch (end->how) {
    case PROCESS_EXITED:
        return end->code << 8;
    case PROCESS_SIGNALED:
        return end->signal;
    case PROCESS_FAILED_TO_START:
        break;
    }
    return process_end_exit_code(end) << 8;
}

static void on_end(void *data, const struct process_end *end)
{
    struct runner *runner = data;

    job_answer_exit(runner->job, runner->id, wait_status_of(end));
    runner_free(runner);
}

static const struct process_events events = {.on_end = on_end};

/* By its name on Cordon's PATH it is this very file, which nothing in the sandbox can write. */
static int check_program(const struct execution_execs *execs, const char *path, struct err *err)
{
    const struct access_map *access = execs->inside->access;
    const char *name = strrchr(path, '/');
    AUTO_FREE char *found = NULL;
    AUTO_FREE char *real = NULL;
    struct host_finder finder;

    host_finder_init(&finder, env_of(execs->options, execs->bare), "/");
    if (!name || !finder.finder.find(&finder.finder, name + 1, &found, &real) ||
        !str_eq(real, path))
        return err_set(err, ERR_FORBIDDEN, "%s is not the program that Cordon's PATH leads to",
                       path);
    if (access && path_may_change(&host_view_real, access, found))
        return err_set(err, ERR_FORBIDDEN, "%s can be written in the sandbox", path);
    return 0;
}

/* The caller's directory as it is outside; -1. */
static int open_directory(const struct launch_fact *fact, struct err *err)
{
    char link[64];
    struct stat inside, found;
    AUTO_CLOSE int dir = open(fact->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);

    snprintf(link, sizeof link, "/proc/%d/cwd", (int)fact->pid);
    if (dir < 0 || fstat(dir, &found) || stat(link, &inside) || inside.st_dev != found.st_dev ||
        inside.st_ino != found.st_ino)
        return err_set(err, ERR_FORBIDDEN, "its directory %s is not the same one outside",
                       fact->cwd);
    return TAKE_FD(dir);
}

static struct process *start(struct execution_execs *execs, struct runner *runner,
                             const struct launch_fact *fact, const int stdio[3], struct err *err)
{
    AUTO(strv_done) struct strv argv = {0};
    AUTO(strv_done) struct strv env = {0};
    char cwd[64];
    struct process_options options = {
        .loop = execs->options->loop,
        .program = fact->path,
        .stdio = PROCESS_FDS,
        .events = &events,
        .data = runner,
    };

    if (!execs->bare)
        execs->bare = workspace_derive(execs->inside, NULL, err);
    if (!execs->bare || check_program(execs, fact->path, err))
        return NULL;
    runner->dir = open_directory(fact, err);
    if (runner->dir < 0)
        return NULL;
    snprintf(cwd, sizeof cwd, "/proc/%d/fd/%d", (int)getpid(), runner->dir);
    strv_push_all(&argv, (char *const *)fact->argv);
    options.sandbox = execs->bare->sandbox;
    options.argv = strv_view(&argv);
    outside_env(env_of(execs->options, execs->bare), fact->path, &env);
    options.env = strv_view(&env);
    options.cwd = cwd;
    for (int i = 0; i < 3; i++)
        options.fds[i] = stdio[i];
    return process_start(&options, err);
}

static void begin(struct execution_execs *execs, struct job *job, const struct launch_fact *fact)
{
    struct runner *runner = alloc_zero(1, sizeof *runner);
    struct err err;
    int stdio[3];

    *runner = (struct runner){.job = job, .id = fact->id, .dir = -1};
    job_take_stdio(job, stdio);
    for (int i = 0; i < 3; i++)
        if (stdio[i] < 0)
            stdio[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
    list_append(&execs->runners, &runner->link);
    runner->process = start(execs, runner, fact, stdio, &err);
    for (int i = 0; i < 3; i++)
        auto_close(&stdio[i]);
    if (runner->process)
        return;
    job_refuse_exec(job, fact, err.msg);
    job_answer_exit(job, fact->id, 126 << 8);
    runner_free(runner);
}

static void on_outside(struct held_execs *judging, struct job *job, const struct launch_fact *fact)
{
    struct execution_execs *execs = container_of(judging, struct execution_execs, held);
    struct runner *runner;
    struct err ignored; /* it has ended, or its end is killed with the command */

    if (fact->kind == FACT_OUTSIDE) {
        begin(execs, job, fact);
        return;
    }
    list_for_each(runner, &execs->runners, link) {
        if (runner->id != fact->id)
            continue;
        if (fact->number == SIGKILL)
            process_terminate(runner->process, 0, &ignored);
        else
            process_signal(runner->process, fact->number, &ignored);
        return;
    }
}

/* --- --- */

static void execs_free(struct held_execs *judging)
{
    struct execution_execs *execs = container_of(judging, struct execution_execs, held);
    struct runner *runner, *next;

    list_for_each_safe(runner, next, &execs->runners, link)
        runner_free(runner);
    workspace_release(execs->bare);
    rules_free(execs->own_rules);
    strv_done(&execs->own_env);
    free(execs);
}

struct held_execs *execution_execs_new(const struct execution_options *options,
                                       const struct rules *rules, struct workspace *workspace)
{
    struct execution_execs *execs = alloc_zero(1, sizeof *execs);

    *execs = (struct execution_execs){
        .held = {.judge = judge, .on_outside = on_outside, .free = execs_free},
        .options = options,
        .rules = rules,
        .inside = workspace,
    };
    list_init(&execs->runners);
    return &execs->held;
}

struct held_execs *execution_execs_for_session(const struct execution_options *options)
{
    struct workspace *workspace = options->workspace;
    struct execution_execs *execs;

    if (!workspace_judges_execs(workspace))
        return NULL;
    execs =
        container_of(execution_execs_new(options, NULL, workspace), struct execution_execs, held);
    execs->rules = execs->own_rules = execution_rules(options);
    strv_push_all(&execs->own_env, options->env);
    execs->options = &execs->own_options;
    execs->own_options = (struct execution_options){
        .loop = options->loop,
        .workspace = workspace,
        .gate = options->gate,
        .policy = options->policy,
        .env = options->env ? strv_view(&execs->own_env) : NULL,
    };
    return &execs->held;
}

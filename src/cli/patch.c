/* `cordon patch`: applies a patch in the apply_patch grammar below the current directory, all of it
 * or nothing (patch/apply.h).
 *
 * The outer half reads the patch, makes a sandbox as `cordon run` does, and runs this program again
 * in it, with the patch on stdin and no environment. What that prints is passed on. Should it be
 * killed on its way, it is run once more to put the directory right.
 *
 * The inner half runs in the sandbox: the patch is read, placed and applied there, so neither its
 * text nor the files that it names are ever parsed by a process that may do more than the profile
 * says. It prints what the user is to see, and its exit status is that of `cordon patch`. */
#include "cli/patch.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/proc.h"
#include "base/program.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "executor/execution_report.h"
#include "executor/patch_helper.h"
#include "job/job_run.h"
#include "patch/apply.h"
#include "patch/dir.h"
#include "patch/patch.h"
#include "patch/report.h"
#include "sandbox/launcher/plan_format.h"
#include "sandbox/sandbox.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the inner half --- */

enum {
    OUTPUT_MAX = 512 << 20, /* bytes: a diff of the largest changes there can be */
    DIFF_CONTEXT = 3,       /* lines, as diff(1) has it */
};

const char *const patch_task_words[] = {[PATCH_APPLY] = "apply",
                                        [PATCH_CHECK] = "check",
                                        [PATCH_DIFF] = "diff",
                                        [PATCH_RECOVER] = "recover",
                                        [PATCH_RECOVER + 1] = NULL};
const char *const patch_form_words[] = {
    [PATCH_TEXT] = "text", [PATCH_JSON] = "json", [PATCH_JSON + 1] = NULL};

struct helper {
    enum patch_task task;
    enum patch_form form;
    char *const *kept; /* of the directory */
    struct patch *patch;
    struct patch_dir dir;
    struct changes changes;
    struct apply apply;
    struct recovery recovery;
};

static void helper_done(struct helper *helper)
{
    apply_end(&helper->apply);
    recovery_done(&helper->recovery);
    patch_changes_done(&helper->changes);
    patch_dir_done(&helper->dir);
    patch_free(helper->patch);
}

/* --- what is said --- */

static void say_recovery(const struct helper *helper)
{
    const struct strv *left = &helper->recovery.left_alone;

    if (helper->recovery.what == RECOVERY_COMPLETED)
        console_say("an earlier patch that was interrupted has been completed");
    if (helper->recovery.what == RECOVERY_UNDONE)
        console_say("an earlier patch that was interrupted has been taken back");
    for (size_t i = 0; i < left->len; i++)
        console_say("%s was changed since by another program and was left as it is",
                    left->items[i]);
}

static json_t *make_json(const struct helper *helper, const char *diff)
{
    static const char *const recovered[] = {
        [RECOVERY_NONE] = NULL, [RECOVERY_COMPLETED] = "completed", [RECOVERY_UNDONE] = "undone"};
    const struct strv *left = &helper->recovery.left_alone;

    return json_pack("{s:b, s:o, s:o, s:o, s:o, s:n}", "applied", helper->task == PATCH_APPLY,
                     "files", report_to_json(&helper->changes), "diff", json_lossy(diff),
                     "recovered", json_lossy(recovered[helper->recovery.what]), "left_alone",
                     json_lossy_list(strv_view(left)), "error");
}

/* Says why nothing was done: a line on stderr, or the JSON value. Returns `status`. */
static int patch_fail(enum patch_form form, const struct err *err, int status)
{
    if (form == PATCH_JSON) {
        AUTO_JSON json_t *json =
            json_pack("{s:b, s:[], s:n, s:n, s:[], s:{s:s, s:o}}", "applied", 0, "files", "diff",
                      "recovered", "left_alone", "error", "code", err_code_name(err->code),
                      "message", json_lossy(err->msg));

        (void)console_print_json(json);
    } else {
        (void)console_fail(err);
    }
    return status;
}

/* --- what is done --- */

static int helper_work(struct helper *helper, const struct buf *text, struct err *err)
{
    struct source source = patch_dir_source(&helper->dir);
    bool is_reading = helper->task == PATCH_CHECK || helper->task == PATCH_DIFF;

    if (helper->task != PATCH_RECOVER) {
        helper->patch = patch_parse(text->data, text->len, err);
        if (!helper->patch)
            return -1;
    }
    if (patch_dir_open(".", &helper->dir, err))
        return -1;
    helper->dir.kept = helper->kept;
    if (is_reading ? apply_wait(&helper->dir, err)
                   : apply_begin(&helper->dir, &helper->recovery, &helper->apply, err))
        return -1;
    if (helper->task == PATCH_RECOVER)
        return 0;
    if (changes_compute(helper->patch, &source, helper->dir.path, &helper->changes, err))
        return -1;
    return helper->task == PATCH_APPLY ? apply_commit(&helper->apply, &helper->changes, err) : 0;
}

static bool make_text(const struct helper *helper, struct buf *out)
{
    switch (helper->task) {
    case PATCH_APPLY:
        return report_summary(&helper->changes, out);
    case PATCH_DIFF:
        return report_diff(&helper->changes, DIFF_CONTEXT, out);
    case PATCH_CHECK:
        return buf_append_str(out, "The patch can be applied.\n");
    case PATCH_RECOVER:
        break;
    }
    if (helper->recovery.what == RECOVERY_NONE)
        return buf_append_str(out, "There is no interrupted patch.\n");
    return true;
}

static int helper_print(const struct helper *helper)
{
    AUTO(buf_done) struct buf text = {.max = OUTPUT_MAX};
    AUTO_JSON json_t *json = NULL;
    struct err err;

    if (!make_text(helper, &text)) {
        err_set(&err, ERR_LIMIT, "the diff has more than %d MiB", OUTPUT_MAX >> 20);
        return patch_fail(helper->form, &err, EXIT_FAILED);
    }
    if (helper->form == PATCH_TEXT)
        return console_print(&text);
    json = make_json(helper, helper->task == PATCH_DIFF ? text.data : NULL);
    return console_print_json(json);
}

/* The index of the word; -1 when it is not one of them. */
static int word_index(const char *const *words, const char *word)
{
    for (int i = 0; word && words[i]; i++)
        if (str_eq(words[i], word))
            return i;
    return -1;
}

/* What the helper does, in this process and the current directory. Returns the exit status. */
static int patch_here(enum patch_task task, enum patch_form form, char *const *kept,
                      const struct buf *text)
{
    AUTO(helper_done)
    struct helper helper = {.task = task,
                            .form = form,
                            .kept = kept,
                            .dir = {.fd = -1},
                            .apply = {.ledger = {.fd = -1}}};
    struct err err;
    int status = helper_work(&helper, text, &err);

    if (form == PATCH_TEXT)
        say_recovery(&helper);
    return status ? patch_fail(form, &err, EXIT_NO) : helper_print(&helper);
}

int patch_helper_main(char **argv)
{
    AUTO(buf_done) struct buf text = {.max = PATCH_TEXT_MAX};
    int task = word_index(patch_task_words, argv[0]);
    int form = task < 0 ? -1 : word_index(patch_form_words, argv[1]);
    struct err err;

    if (form < 0) {
        console_say("this is the inner half of \"cordon patch\"; call that");
        return EXIT_FAILED;
    }
    if (buf_read_fd(&text, STDIN_FILENO, &err)) {
        err_wrap(&err, "the patch");
        return patch_fail((enum patch_form)form, &err, EXIT_NO);
    }
    return patch_here((enum patch_task)task, (enum patch_form)form, argv + 2, &text);
}

/* --- the outer half --- */

#define PATCH_TIMEOUT_NS UINT64_C(60000000000) /* a minute; also for another patch to end */

struct patch_options {
    struct policy_options policy;
    enum patch_task task;
    enum patch_form form;
};

/* --- options --- */

static int set_task(const struct option *option, void *member, const char *value, struct err *err)
{
    struct patch_options *options = member;
    enum patch_task task = (enum patch_task)option->number;

    if (options->task != PATCH_APPLY && options->task != task)
        return err_set(err, ERR_INVALID, "it cannot be used together with --%s",
                       patch_task_words[options->task]);
    options->task = task;
    return 0;
}

static const struct option task_options[] = {
    {.name = "check",
     .set = set_task,
     .number = PATCH_CHECK,
     .brief = "Only tells whether the patch fits",
     .help = "Changes nothing; says whether the patch can be applied, by the exit status too."},
    {.name = "diff",
     .set = set_task,
     .number = PATCH_DIFF,
     .brief = "Only prints what it would change, as a diff",
     .help = "Changes nothing; prints what the patch would change as a unified diff."},
    {.name = "recover",
     .set = set_task,
     .number = PATCH_RECOVER,
     .brief = "Ends or takes back a patch that was killed",
     .help = "Applies nothing; completes or takes back a patch in this directory that was killed. "
             "Every other patch does so first, too."},
    {.name = "json",
     .letter = 'j',
     INTO_CHOICE(struct patch_options, form, PATCH_JSON),
     .help = "Prints one JSON value."},
    {.name = NULL},
};

static const struct option_group patch_groups[] = {
    {"Patch", task_options},
    {"Permissions", policy_permission_options, offsetof(struct patch_options, policy)},
    {NULL, NULL},
};

/* --- the helper --- */

struct patch_run {
    struct patch_options options;
    struct settings settings;
    char *program;
};

/* Runs the helper to its end. */
static int helper_run(struct patch_run *run, enum patch_task task, const struct buf *text,
                      struct job_result *ret, struct err *err)
{
    char *const no_env[] = {NULL};
    AUTO(strv_done) struct strv argv = {0};
    struct job_run_options job;

    patch_helper_words(run->settings.workspace, run->settings.file.home,
                       run->settings.workspace->dir, patch_task_words[task],
                       patch_form_words[run->options.form], &argv);
    job_run_defaults(&job);
    job.sandbox = run->settings.workspace->sandbox;
    job.access = run->settings.workspace->access;
    job.is_judged = true; /* it executes nothing else */
    job.argv = strv_view(&argv);
    job.program = run->program;
    job.env = no_env;
    job.cwd = run->settings.workspace->dir;
    job.input = JOB_RUN_INPUT_DATA;
    job.input_data = text->data ? text->data : "";
    job.input_len = text->len;
    job.timeout_ns = PATCH_TIMEOUT_NS;
    job.signals = JOB_RUN_SIGNALS_HANDLE;
    job.pump_fds[STREAM_STDERR] = STDERR_FILENO;
    /* of a recovery that was not asked for, only complaints are of interest */
    job.pump_fds[STREAM_STDOUT] = task == run->options.task ? STDOUT_FILENO : -1;
    return job_run(&job, ret, err);
}

static bool has_ended_by_itself(const struct job_result *result)
{
    return result->end == JOB_RUN_EXITED || result->end == JOB_RUN_DENIED ||
           result->end == JOB_RUN_FAILED_TO_START;
}

/* After the helper was killed: the directory is put right before anything is said. */
static int recover(struct patch_run *run, const struct job_result *killed)
{
    const struct buf nothing = {.data = NULL};
    struct job_result result;
    struct err err;
    struct err why;

    err_set(&err, ERR_SYSTEM, "the patch was %s",
            killed->end == JOB_RUN_TIMED_OUT ? "not done after a minute" : "interrupted");
    if (run->options.task == PATCH_APPLY) {
        if (helper_run(run, PATCH_RECOVER, &nothing, &result, &why) == 0) {
            if (!has_ended_by_itself(&result) || result.process->code != 0)
                err_wrap(&err, "\"cordon patch --recover\" has to be called in %s",
                         run->settings.workspace->dir);
            job_result_done(&result);
        } else {
            (void)console_fail(&why);
        }
    }
    return patch_fail(run->options.form, &err, EXIT_FAILED);
}

static int report(struct patch_run *run, const struct job_result *result)
{
    bool is_text = run->options.form == PATCH_TEXT;
    struct strv *warnings = &run->settings.warnings;
    AUTO(strv_done) struct strv notes = {0};

    if (is_text)
        execution_warn_of_defences(run->settings.workspace->sandbox, warnings);
    for (size_t i = 0; is_text && i < warnings->len; i++)
        console_say("%s", warnings->items[i]);
    if (job_result_has_failed(result))
        return patch_fail(run->options.form, &result->process->failure, EXIT_FAILED);
    if (!has_ended_by_itself(result))
        return recover(run, result);
    if (is_text)
        execution_notes(result, &notes);
    for (size_t i = 0; i < notes.len; i++)
        console_say("%s", notes.items[i]);
    return job_result_exit_code(result);
}

static void patch_run_done(struct patch_run *run)
{
    settings_done(&run->settings);
    free(run->program);
    policy_options_done(&run->options.policy);
}

static int patch_with(struct patch_run *run, const struct buf *text)
{
    AUTO(run_audit_done) struct run_audit audit = {0};
    const struct patch_options *options = &run->options;
    struct job_result result;
    struct err err;
    int status;

    signal(SIGPIPE, SIG_IGN);
    run->program = program_self();
    if (!*run->program) {
        err_set(&err, ERR_SYSTEM, "/proc does not say which program this is");
        return patch_fail(options->form, &err, EXIT_FAILED);
    }
    if (settings_init(&run->settings, &options->policy, &err))
        return patch_fail(options->form, &err, EXIT_FAILED);
    if (options->task == PATCH_APPLY)
        run_audit_init(&audit, &run->settings);
    run_audit_patch_begin(&audit, run->settings.workspace->dir, text->len);
    if (workspace_open(run->settings.workspace, &err) ||
        helper_run(run, options->task, text, &result, &err)) {
        run_audit_patch_end(&audit, false, err.msg);
        return patch_fail(options->form, &err, EXIT_FAILED);
    }
    status = report(run, &result);
    run_audit_patch_end(&audit, status == EXIT_OK,
                        result.end == JOB_RUN_EXITED ? NULL : job_run_end_name(result.end));
    job_result_done(&result);
    return status;
}

/* --- the patch --- */

static int read_stdin(struct buf *text, struct err *err)
{
    if (buf_read_fd(text, STDIN_FILENO, err))
        return err_wrap(err, "the patch on stdin");
    return 0;
}

/* As if started in the directory of -C, like everything else. */
static int read_file(const struct patch_options *options, const char *path, struct buf *text,
                     struct err *err)
{
    const char *dir = options->policy.directory;
    AUTO_FREE char *whole = dir && path[0] != '/' ? path_join(dir, path) : alloc_str(path);

    if (str_eq(path, "-"))
        return read_stdin(text, err);
    return fd_read_given(whole, PATCH_TEXT_MAX, text, err);
}

static int patch_main(char **argv)
{
    AUTO(patch_run_done) struct patch_run run = {.program = NULL};
    struct patch_options *options = &run.options;
    AUTO(buf_done) struct buf text = {.max = PATCH_TEXT_MAX};
    struct err err;
    char **rest;
    int status;

    if (!command_parse(&command_patch, argv, options, &rest, &status))
        return status;
    if (*rest && (options->task == PATCH_RECOVER || rest[1])) {
        err_set(&err, ERR_INVALID, "cordon patch takes %s, not \"%s\"",
                options->task == PATCH_RECOVER ? "no file with --recover" : "one file",
                options->task == PATCH_RECOVER ? *rest : rest[1]);
        return patch_fail(options->form, &err, EXIT_FAILED);
    }
    if (options->task != PATCH_RECOVER && read_file(options, *rest ? *rest : "-", &text, &err))
        return patch_fail(options->form, &err, EXIT_FAILED);
    return patch_with(&run, &text);
}

/* --- apply_patch --- */

enum { APPLY_EXIT_FAILED = 1, APPLY_EXIT_USAGE = 2, ANCESTORS_MAX = 4096 };

/* Models also call it in scripts, which run in a sandbox of ours already. There is no other to be
 * had in there, and none is needed: what the kernel refuses to the script it refuses to us. What is
 * asked is the kernel, and not the environment, which any program may have set: that this process is
 * filtered, and that a launcher of ours is above it. Who could put a process of that name there
 * could as well write the files. */
static bool is_inside_sandbox(void)
{
    AUTO(buf_done) struct buf status = {.max = 1 << 16};
    pid_t above = getppid();
    struct err ignored;

    if (fd_read_file("/proc/self/status", status.max, &status, &ignored) ||
        !strstr(status.data, "\nNoNewPrivs:\t1\n") || !strstr(status.data, "\nSeccomp:\t2\n"))
        return false;
    for (int i = 0; i < ANCESTORS_MAX && above > 0; i++, above = proc_parent(above))
        if (proc_is_named(above, PLAN_LAUNCHER_NAME))
            return true;
    return false;
}

int patch_apply_main(char **argv)
{
    AUTO(patch_run_done) struct patch_run run = {.program = NULL};
    AUTO(buf_done) struct buf text = {.max = PATCH_TEXT_MAX};
    struct err err;
    int status;

    if (argv[0] && argv[1]) {
        console_say("usage: apply_patch PATCH, or apply_patch with the patch on stdin");
        return APPLY_EXIT_USAGE;
    }
    if (!argv[0] && read_stdin(&text, &err))
        return patch_fail(PATCH_TEXT, &err, APPLY_EXIT_FAILED);
    if (argv[0] && !buf_append_str(&text, argv[0])) {
        err_set(&err, ERR_LIMIT, "the patch has more than %d MiB", PATCH_TEXT_MAX >> 20);
        return patch_fail(PATCH_TEXT, &err, APPLY_EXIT_FAILED);
    }
    status = is_inside_sandbox() ? patch_here(PATCH_APPLY, PATCH_TEXT, NULL, &text)
                                 : patch_with(&run, &text);
    return status == EXIT_OK ? EXIT_OK : APPLY_EXIT_FAILED;
}

const struct command command_patch = {
    .name = "patch",
    .summary = "apply a patch as models write it, all of it or nothing",
    .usage = "[OPTION]... [FILE]",
    .about =
        "Applies a patch in the apply_patch grammar, from FILE or stdin, to the files below the "
        "current directory. It runs in a sandbox with the permissions of \"cordon run\", and never "
        "follows a symlink or leaves the directory. When a part of the patch does not fit, nothing "
        "is changed; the message says which line, and why.\n"
        "\n"
        "  *** Begin Patch\n"
        "  *** Update File: src/a.c\n"
        "  @@ int main(void)\n"
        "   a line that stays\n"
        "  -a line that goes\n"
        "  +a line that comes\n"
        "  *** Add File: src/b.c\n"
        "  +its first line\n"
        "  *** Delete File: src/c.c\n"
        "  *** End Patch\n"
        "\n"
        "The exit status is 0, or 1 when the patch cannot be applied, or 125 when Cordon failed or "
        "was called wrongly. Called by the name apply_patch it takes the patch as its one "
        "argument, or on stdin.\n",
    .examples = "  cordon patch fix.patch\n"
                "  cordon patch --diff fix.patch | less\n"
                "  cordon patch --check -C ../other < fix.patch && echo fits\n"
                "  cordon patch --json fix.patch | jq -r '.error.message // .files[].path'\n",
    .page = "cordon-patch",
    .groups = patch_groups,
    .run = patch_main,
};

/* `cordon accept`, `drop` and `undo`: what becomes of the changes in a layer.
 *
 *     3    something was left: each with the reason and what to do, on stderr
 *     4    nothing was done: others have the layer, or it must not be
 *
 * What was done goes to stdout, and as one record to the audit log. */
#include "layer/accept.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/change_view.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/layer_audit.h"
#include "cli/layer_words.h"
#include "cli/review.h"
#include "cli/run_layer.h"
#include "layer/commits.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct accept_options {
    bool takes_all;
    bool is_forced;
    bool takes_marked;
    bool takes_commits;
    bool is_dry;
    bool asks;
    bool wants_json;
    uint64_t step;
    uint64_t accept;
};

/* What one of the three commands does. */
struct layer_task {
    const struct command *command;
    const char *held_by; /* "cordon accept" */
    const char *done;    /* "accepted" */
    const char *would;   /* "would be accepted" */
    struct accept_options options;
    struct layer_words words;
    struct layer *layer;
    struct accept_result result;
    struct commits commits; /* of a layer with git directories */
};

static void task_done(struct layer_task *task)
{
    layer_auto(&task->layer);
    accept_result_done(&task->result);
    commits_done(&task->commits);
    layer_words_done(&task->words);
}

static int fail(const struct err *err)
{
    (void)console_fail(err);
    switch (err->code) {
    case ERR_FORBIDDEN:
    case ERR_UNSUPPORTED:
    case ERR_BUSY:
    case ERR_CONFLICT:
        return EXIT_LAYER_REFUSED;
    case ERR_NONE:
    case ERR_INVALID:
    case ERR_NOT_FOUND:
    case ERR_LIMIT:
    case ERR_SYSTEM:
    case ERR_BUG:
        break;
    }
    return EXIT_FAILED;
}

static struct accept_request request_of(const struct layer_task *task)
{
    const struct accept_options *options = &task->options;

    return (struct accept_request){
        .paths = layer_words_paths(&task->words),
        .flags = (options->is_forced ? ACCEPT_FORCE : 0u) |
                 (options->takes_marked ? ACCEPT_MARKED : 0u) |
                 (options->is_dry ? ACCEPT_DRY_RUN : 0u),
    };
}

/* That there is nothing to be taken back is no wrong call. */
static int fail_undo(const struct err *err)
{
    const int status = fail(err);

    return err->code == ERR_NOT_FOUND ? EXIT_LAYER_REFUSED : status;
}

/* False: `*ret_status` is to be returned. */
static bool task_begin(struct layer_task *task, char **argv, int *ret_status)
{
    struct err err;

    if (!layer_words_parse(task->command, argv, &task->options, &task->words, ret_status))
        return false;
    for (char **word = task->words.behind; word && *word; word++)
        strv_push_take(&task->words.paths, path_clean(task->words.cwd, *word));
    if (task->options.takes_all && (task->words.paths.len || task->options.step)) {
        *ret_status = console_failf("--all goes with neither PATH nor --step%s",
                                    task->words.paths.len && !task->words.layer
                                        ? ", and no layer is called so (cordon layers)"
                                        : "");
        return false;
    }
    if (task->words.layer || task->command != &command_undo)
        task->layer = layer_words_open(&task->words, LAYER_CHANGE, task->held_by, &err);
    else
        task->layer = run_layer_open_undoable(&task->words, task->held_by, &err);
    if (!task->layer)
        *ret_status = task->command == &command_undo ? fail_undo(&err) : fail(&err);
    return task->layer;
}

/* --- telling --- */

static int print_json(const struct layer_task *task)
{
    AUTO_JSON json_t *json = accept_result_to_json(&task->result);

    json_object_set_new(json, "layerId", json_string(layer_id(task->layer)));
    json_object_set_new(json, "name", json_lossy(layer_own_name(task->layer)));
    if (layer_has_git(task->layer))
        json_object_set_new(json, "commits", commits_to_json(&task->commits));
    json_object_set_new(json, "dryRun", json_boolean(task->options.is_dry));
    return console_print_json(json);
}

static void print_done(const struct layer_task *task, struct buf *text)
{
    enum { EACH_MAX = 20 };
    const struct strv *done = &task->result.done;
    AUTO_FREE char *name = layer_shown_name(task->layer);

    if (!done->len) {
        buf_appendf(text, "nothing %s\n", task->options.is_dry ? "would be done" : task->done);
        return;
    }
    if (task->options.is_dry || done->len <= EACH_MAX)
        for (size_t i = 0; i < done->len; i++) {
            AUTO_FREE char *path = layer_shown_path(task->words.cwd, done->items[i]);
            AUTO_FREE char *plain = utf8_plain(path);

            buf_appendf(text, "%s %s\n", task->options.is_dry ? task->would : task->done, plain);
        }
    else
        buf_appendf(text, "%s %zu paths\n", task->done, done->len);
    if (task->command == &command_accept && !task->options.is_dry)
        buf_appendf(text, "to take it back: cordon undo %s\n", name);
    if (task->command == &command_undo && !task->options.is_dry)
        buf_appendf(text,
                    "the changes are in the layer again; to throw them away: cordon drop %s "
                    "--all\n",
                    name);
}

/* Nothing is checked out by us, and nothing merged. */
static void print_ways(const struct commits_branch *branch, struct buf *text)
{
    size_t len = strlen(branch->repository);
    bool has_tree = len > 5 && str_eq(branch->repository + len - 5, "/.git");
    AUTO_FREE char *tree = alloc_strn(branch->repository, has_tree ? len - 5 : len);
    AUTO_FREE char *at = layer_shell_word(tree);
    AUTO_FREE char *target = layer_shell_word(branch->target);
    AUTO_FREE char *base = layer_shell_word(branch->is_new ? "HEAD" : branch->name);

    console_line(text, "  to look at (%zu): git -C %s log -p %s..%s", branch->ahead, at, base,
                 target);
    console_line(text, "  to take:        git -C %s merge %s", at, target);
}

/* How many branches were left. */
static size_t print_commits(const struct layer_task *task, struct buf *text, struct buf *left)
{
    size_t count = 0;

    for (size_t i = 0; i < task->commits.len; i++) {
        const struct commits_branch *branch = &task->commits.items[i];

        if (branch->why) {
            console_line(left, "left the commits of %s in %s: %s", branch->name, branch->repository,
                         branch->why);
            count++;
        } else if (branch->is_taken || task->options.is_dry) {
            console_line(text, "%s commits of %s, as the branch %s in %s",
                         task->options.is_dry ? task->would : task->done, branch->name,
                         branch->target, branch->repository);
            if (!task->options.is_dry)
                print_ways(branch, text);
        }
    }
    for (size_t i = 0; i < task->commits.notes.len; i++)
        console_line(left, "%s", task->commits.notes.items[i]);
    return count;
}

/* How many of the paths that were named have nothing that could be taken. */
static size_t tell_idle(const struct layer_task *task)
{
    AUTO(strv_done) struct strv found = {0};

    if (task->options.asks || task->options.step)
        return 0;
    strv_push_all(&found, strv_view(&task->result.done));
    for (size_t i = 0; i < task->result.left_len; i++)
        strv_push(&found, task->result.left[i].path);
    return layer_words_tell_idle(&task->words, task->layer, &found);
}

/* An exit status. */
static int tell(const struct layer_task *task)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO(buf_done) struct buf left = {.max = SIZE_MAX / 2};
    int status = EXIT_OK;
    size_t commits_left = 0;
    size_t idle;

    for (size_t i = 0; i < task->result.problems.len && !task->options.asks; i++)
        console_line(&left, "%s", task->result.problems.items[i]);
    commits_left = print_commits(task, &text, &left);
    if (task->options.wants_json) {
        status = print_json(task);
    } else {
        if (task->result.done.len || !text.len)
            print_done(task, &text);
        status = console_print(&text);
        left_print(task->layer, task->words.cwd, task->command->name, task->result.left,
                   task->result.left_len, &left);
        run_layer_say_lines(&left);
    }
    idle = tell_idle(task);
    if (status != EXIT_OK)
        return status;
    return task->result.left_len || commits_left || idle ? EXIT_LEFT : EXIT_OK;
}

static int finish(struct layer_task *task, const char *action)
{
    if (!task->options.is_dry)
        layer_audit(
            layer_audit_body(task->layer, action, (int)task->options.step, &task->result, NULL));
    return tell(task);
}

/* --- accept --- */

/* A person who has said neither what nor all is asked, at a terminal. */
static int ask(struct layer_task *task)
{
    AUTO(review_terminal_close) struct review_terminal terminal = {.fd = -1};
    AUTO(changes_done) struct changes changes = {.items = NULL};
    AUTO(strv_done) struct strv problems = {0};
    const struct change_query query = {.paths = layer_words_paths(&task->words)};
    struct err err;

    if (task->options.is_dry || task->options.is_forced || task->options.takes_marked ||
        task->options.takes_all)
        return console_failf("-i asks about each change, and goes with none of --all, --force, "
                             "--marked and --dry-run");
    if (review_terminal_open(&terminal, &err)) {
        err_wrap(&err, "-i");
        return console_fail(&err);
    }
    if (change_list(task->layer, &query, &changes, &problems, &err))
        return fail(&err);
    for (size_t i = 0; i < problems.len; i++)
        console_say("%s", problems.items[i]);
    if (layer_words_tell_unchanged(&task->words, task->layer, &changes) && !changes.len)
        return EXIT_LEFT;
    if (review_run(&terminal, task->layer, &changes, task->words.cwd, &task->result, &err))
        return fail(&err);
    return finish(task, "accept");
}

/* Commits that were made in the layer, as branches of their own. */
static int take_commits(struct layer_task *task)
{
    const struct commits_wish wish = {.is_forced = task->options.is_forced,
                                      .is_dry = task->options.is_dry};
    struct err err;

    if (!layer_has_git(task->layer))
        return task->options.takes_commits
                   ? console_failf("the layer has no commits: it was made without --layer-git")
                   : EXIT_OK;
    return commits_take(task->layer, &wish, &task->commits, &err) ? fail(&err) : EXIT_OK;
}

/* Of what was taken to the last nothing stays, and no step that has nothing. */
static void tidy(struct layer_task *task)
{
    size_t settled;
    struct err ignored; /* then it is by the next one */

    if (task->options.takes_all && !task->options.is_dry && !task->result.left_len)
        (void)change_settle(task->layer, &settled, &ignored);
}

static int accept_run(char **argv)
{
    AUTO(task_done)
    struct layer_task task = {.command = &command_accept,
                              .held_by = "cordon accept",
                              .done = "accepted",
                              .would = "would be accepted:"};
    const struct accept_options *options = &task.options;
    struct accept_request request;
    struct err err;
    int status;

    if (!task_begin(&task, argv, &status))
        return status;
    if (options->asks)
        return ask(&task);
    if (!task.words.paths.len && !options->takes_all && !options->takes_commits) {
        AUTO_FREE char *name = layer_shown_name(task.layer);

        return console_failf("which changes of the layer %s? PATH..., --all, or -i to be asked "
                             "about each (\"cordon changes %s\" lists them)",
                             name, name);
    }
    request = request_of(&task);
    if ((task.words.paths.len || options->takes_all) &&
        change_accept(task.layer, &request, &task.result, &err))
        return fail(&err);
    tidy(&task);
    status = options->takes_all || options->takes_commits ? take_commits(&task) : EXIT_OK;
    return status == EXIT_OK ? finish(&task, "accept") : status;
}

#define DRY_OPTION                                                                                 \
    {                                                                                              \
        .name = "dry-run", INTO_TRUE(struct accept_options, is_dry),                               \
        .brief = "Says what would be done", .help = "Does nothing, and says what would be done."   \
    }
#define JSON_OPTION                                                                                \
    {                                                                                              \
        .name = "json", .letter = 'j', INTO_TRUE(struct accept_options, wants_json),               \
        .help = "Prints one JSON value: acceptId, done, left with the reason of each."             \
    }

static const struct option accept_options[] = {
    {.name = "all", INTO_TRUE(struct accept_options, takes_all), .help = "All of the layer."},
    {.name = "interactive",
     .letter = 'i',
     INTO_TRUE(struct accept_options, asks),
     .brief = "Asks about each change, as git add -p",
     .help = "Asks about each change at the terminal, with its diff: y, n, a (it and all that "
             "follow), d (none of them), s (go through its hunks), / (look for a text), q."},
    {.name = "force",
     .letter = 'f',
     INTO_TRUE(struct accept_options, is_forced),
     .brief = "Also what was changed outside meanwhile",
     .help = "Also what was changed outside meanwhile, whose contents are kept for cordon undo; "
             "and of a layer that is suspect, since the machine went down."},
    {.name = "marked",
     INTO_TRUE(struct accept_options, takes_marked),
     .brief = "With --all also what is marked",
     .help = "Also what is marked: what others run or obey later, what is executable now, links "
             "that lead elsewhere, protected names. What is named itself by PATH is taken "
             "without it."},
    {.name = "commits",
     INTO_TRUE(struct accept_options, takes_commits),
     .brief = "Commits of a layer with --layer-git, as branches",
     .help = "Commits that were made in a layer with --layer-git, each branch as one of its own: "
             "cordon/LAYER/BRANCH. --all takes them, too."},
    DRY_OPTION,
    JSON_OPTION,
    {.name = NULL},
};

static const struct option_group accept_groups[] = {{"Options", accept_options}, {NULL, NULL}};

const struct command command_accept = {
    .name = "accept",
    .summary = "take changes of a change layer into the real files",
    .usage = "[LAYER] [OPTION]... [PATH...|--all|-i]",
    .about =
        "Takes changes of a change layer (cordon run --layer) into the real files: PATH and what "
        "is "
        "below, or --all. What was there before is kept for \"cordon undo\". What was changed "
        "outside "
        "since the command began stays in the layer, and so does, with --all, what is marked.\n"
        "\n"
        "Without LAYER it is the one that was used last here. The first argument is a layer if one "
        "has that name, or an id that begins so; ./NAME is a path in any case.\n"
        "\n"
        "Exits with 0; 3 when something was left, each with what to do; 4 when nothing was done "
        "since commands run in the layer or the like; 125 when Cordon was called wrongly.\n",
    .examples = "  cordon accept src/main.c\n"
                "  cordon accept agent --all\n"
                "  cordon accept agent -i\n"
                "  cordon accept --all --marked --dry-run\n",
    .groups = accept_groups,
    .page = "cordon-accept",
    .run = accept_run,
};

/* --- drop --- */

static int undo_step(struct layer_task *task)
{
    struct err err;

    if (task->words.paths.len)
        return console_failf("--step takes back a whole step: no PATH goes with it");
    if (task->options.is_dry)
        return console_failf("\"cordon changes --step %d\" shows what it would take back",
                             (int)task->options.step);
    if (layer_undo_step(task->layer, (int)task->options.step, &err))
        return fail(&err);
    layer_audit(
        layer_audit_body(task->layer, task->command->name, (int)task->options.step, NULL, NULL));
    if (!task->options.wants_json)
        (void)console_print(&(struct buf){.data = (char *)"the step is taken back\n", .len = 23});
    else
        return print_json(task);
    return EXIT_OK;
}

/* With nothing left in it, nor to be undone, it goes as a whole. */
static void remove_if_empty(struct layer_task *task)
{
    struct accept_info *accepts = NULL;
    size_t len = 0, open = 0;
    struct err ignored; /* then it stays */

    if (task->result.left_len || layer_accepts(task->layer, &accepts, &len, &ignored))
        return;
    for (size_t i = 0; i < len; i++)
        open += !accepts[i].is_undone;
    free(accepts);
    if (!open && !layer_own_name(task->layer))
        (void)layer_remove(TAKE_PTR(task->layer), &ignored);
}

static int drop_run(char **argv)
{
    AUTO(task_done)
    struct layer_task task = {.command = &command_drop,
                              .held_by = "cordon drop",
                              .done = "dropped",
                              .would = "would be dropped:"};
    const struct accept_options *options = &task.options;
    struct accept_request request;
    struct err err;
    int status;

    if (!task_begin(&task, argv, &status))
        return status;
    if (options->step)
        return undo_step(&task);
    if (!task.words.paths.len && !options->takes_all)
        return console_failf("which changes? PATH..., --step N, or --all");
    request = request_of(&task);
    if (change_drop(task.layer, &request, &task.result, &err))
        return fail(&err);
    status = finish(&task, "drop");
    if (options->takes_all && !options->is_dry)
        remove_if_empty(&task);
    return status;
}

static const struct option drop_options[] = {
    {.name = "all",
     INTO_TRUE(struct accept_options, takes_all),
     .brief = "All of the layer",
     .help = "All of the layer. One without a name goes with it, when nothing of it is left to be "
             "undone."},
    {.name = "step",
     .value = "N",
     INTO_COUNT(struct accept_options, step),
     .min = 1,
     .max = INT_MAX,
     .brief = "What step N wrote",
     .help = "What step N wrote, unless a later step has changed the same."},
    DRY_OPTION,
    JSON_OPTION,
    {.name = NULL},
};

static const struct option_group drop_groups[] = {{"Options", drop_options}, {NULL, NULL}};

const struct command command_drop = {
    .name = "drop",
    .summary = "throw changes of a change layer away",
    .usage = "[LAYER] [OPTION]... [PATH...|--all|--step N]",
    .about =
        "Throws changes of a change layer (cordon run --layer) away, for good: PATH and what is "
        "below, what a step wrote, or --all. The real files stay as they are. No command may run "
        "in "
        "the layer.\n"
        "\n"
        "Without LAYER it is the one that was used last here. The first argument is a layer if one "
        "has that name, or an id that begins so; ./NAME is a path in any case.\n"
        "\n"
        "Exits with 0; 3 when something was left; 4 when nothing was done; 125 when Cordon was "
        "called wrongly.\n",
    .examples = "  cordon drop build\n"
                "  cordon drop agent --step 2\n"
                "  cordon drop agent --all\n",
    .groups = drop_groups,
    .page = "cordon-drop",
    .run = drop_run,
};

/* --- undo --- */

static int undo_run(char **argv)
{
    AUTO(task_done)
    struct layer_task task = {.command = &command_undo,
                              .held_by = "cordon undo",
                              .done = "taken back",
                              .would = "would be taken back:"};
    struct accept_request request;
    struct err err;
    int status;

    if (!task_begin(&task, argv, &status))
        return status;
    if (task.options.step)
        return undo_step(&task);
    request = request_of(&task);
    if (change_undo(task.layer, (int)task.options.accept, &request, &task.result, &err))
        return fail_undo(&err);
    return finish(&task, "undo");
}

static const struct option undo_options[] = {
    {.name = "accept",
     .value = "N",
     INTO_COUNT(struct accept_options, accept),
     .min = 1,
     .max = INT_MAX,
     .brief = "Accept N of the layer, in place of the last one",
     .help = "Accept N of the layer (\"cordon layers LAYER\" lists them), in place of the last one "
             "that can be undone."},
    {.name = "step",
     .value = "N",
     INTO_COUNT(struct accept_options, step),
     .min = 1,
     .max = INT_MAX,
     .brief = "What step N wrote in the layer",
     .help = "What step N wrote in the layer, as cordon drop --step; the real files stay as they "
             "are."},
    DRY_OPTION,
    JSON_OPTION,
    {.name = NULL},
};

static const struct option_group undo_groups[] = {{"Options", undo_options}, {NULL, NULL}};

const struct command command_undo = {
    .name = "undo",
    .summary = "take back what was accepted of a change layer",
    .usage = "[LAYER] [OPTION]... [PATH]...",
    .about =
        "Takes back what \"cordon accept\", \"cordon run --undo\" or --at-end accept did to the "
        "real "
        "files: they become what they were, and the changes are in the layer again. Without an "
        "argument it is the last of these here that can be taken back. What somebody changed since "
        "is left alone.\n"
        "\n"
        "The first argument is a layer if one has that name, or an id that begins so, which is "
        "also "
        "what a run is called by; ./NAME is a path in any case.\n"
        "\n"
        "Exits with 0; 3 when something was left; 4 when nothing was done, or there is nothing to "
        "be "
        "taken back; 125 when Cordon was called wrongly.\n",
    .examples = "  cordon undo\n"
                "  cordon undo --dry-run\n"
                "  cordon undo agent src/main.c\n",
    .groups = undo_groups,
    .page = "cordon-undo",
    .run = undo_run,
};

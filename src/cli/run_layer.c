/* See run_layer.h. What becomes of the changes when the command has ended:
 *
 *     --undo             all is accepted, the marked ones, too: it is as without a layer, but can be taken back
 *     --at-end accept    all but the marked ones
 *              ask       a person decides, at the terminal; without one they are kept
 *              keep      they stay in the layer
 *              drop      the layer goes
 *
 * What others changed meanwhile stays in the layer in any case, and is told, also with --quiet. The exit status is the
 * command's: what became of its changes is no part of it. */
#include "cli/run_layer.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/change_view.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/diff_view.h"
#include "cli/layer_audit.h"
#include "cli/layer_words.h"
#include "cli/pager.h"
#include "cli/review.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "layer/accept.h"
#include "layer/commits.h"
#include "policy/config/config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ACCEPTS_KEPT = 16,    /* of a layer: older ones give their room back */
    PRUNE_S = 14 * 86400, /* layers without changes that nobody has used for so long go */
    LINES_ASKED = 20,     /* of changes that are shown with the question */
};

static const char *const end_words[] = {"ask", "keep", "accept", "drop", NULL};

/* --- options --- */

static int set_layer(const struct option *option, void *member, const char *value, struct err *err)
{
    struct layer_options_given *given = member;

    (void)option;
    if (value && !*value)
        return err_set(err, ERR_INVALID, "the name is empty; without \"=\" the layer has none");
    given->is_wanted = true;
    given->name = value;
    return 0;
}

const struct option run_layer_options[] = {
    {.name = "layer",
     .value = "NAME",
     .may_lack = true,
     .set = set_layer,
     .brief = "What it writes stays in a change layer",
     .help =
         "What the command writes stays in a change layer, and your files as they are, until you "
         "accept it: \"cordon changes\", \"cordon diff\", \"cordon accept\", \"cordon drop\". "
         "NAME: "
         "that one is gone on with, or made; without it a new one, which is called by its id."},
    {.name = "layer-direct",
     .value = "PATH",
     INTO_LIST(struct layer_options_given, direct),
     .brief = "A writable folder that is left out of it",
     .help = "A writable folder that the layer leaves out: what is written there is written. A "
             "cache, or what has another file system mounted in it."},
    {.name = "layer-git",
     INTO_TRUE(struct layer_options_given, has_git),
     .brief = "Git commits into the layer, too",
     .help = "Repositories may be written in the layer, so that commits are made there (with --git "
             "commit); they are accepted as a whole, and never hooks or configuration."},
    {.name = "at-end",
     .value = "WHAT",
     .words = end_words,
     INTO_WORD(struct layer_options_given, at_end, LAYER_END_ASK),
     .brief = "ask, keep, accept (all that is not marked), drop",
     .help = "What becomes of the changes when the command has ended. ask: you are asked at the "
             "terminal; the default where there is one. keep: they stay in the layer. accept: they "
             "are taken, but for what is marked, since others run or obey it later. drop: they are "
             "thrown away."},
    {.name = "undo",
     INTO_TRUE(struct layer_options_given, is_undoable),
     .brief = "Can be taken back by cordon undo",
     .help =
         "What the command wrote can be taken back by \"cordon undo\": it goes to a layer, and all "
         "of it to your files when the command has ended, where those that were there are kept. "
         "What you changed meanwhile stays in the layer."},
    {.name = "no-undo",
     INTO_TRUE(struct layer_options_given, is_never),
     .help = "Without a layer, also when the config file says [undo] default = \"layer\"."},
    {.name = NULL},
};

static int check(const struct layer_options_given *given, struct err *err)
{
    const char *alone = given->direct.len ? "--layer-direct"
                        : given->has_git  ? "--layer-git"
                        : given->at_end   ? "--at-end"
                                          : NULL;

    if (given->is_never && (given->is_wanted || given->is_undoable))
        return err_set(err, ERR_INVALID, "--no-undo goes with neither --layer nor --undo");
    if (given->is_undoable && (given->is_wanted || given->at_end))
        return err_set(err, ERR_INVALID,
                       "--undo is a layer by itself, of which all is accepted at the end: it goes "
                       "with neither --layer nor --at-end");
    if (alone && !given->is_wanted && (!given->is_undoable || given->at_end))
        return err_set(err, ERR_INVALID, "%s needs --layer", alone);
    return 0;
}

/* --- which layer --- */

/* What the configuration wants for every command means those that have a sandbox. */
static bool has_sandbox(const struct policy_options *policy, const struct config *config)
{
    const char *name = policy->profile ? policy->profile : config_default_profile(config);

    return policy->mode != SANDBOX_DISABLED &&
           !(name && (str_eq(name, "danger-full-access") || str_eq(name, ":danger-full-access")));
}

static int list_direct(const struct layer_options_given *given, const char *dir, struct strv *ret,
                       struct err *err)
{
    for (size_t i = 0; i < given->direct.len; i++) {
        AUTO_FREE char *path = path_clean(dir, given->direct.items[i]);
        char *real = realpath(path, NULL);

        if (!real)
            return err_sys(err, "--layer-direct %s", given->direct.items[i]);
        strv_push_take(ret, real);
    }
    return 0;
}

/* A layer that is there has what it was made with. */
static int check_old(const struct layer *layer, const struct layer_options_given *given,
                     const struct strv *direct, struct err *err)
{
    size_t len;
    const struct layer_root *roots = layer_roots(layer, &len);

    if (given->has_git && !layer_has_git(layer))
        return err_set(err, ERR_INVALID,
                       "the layer %s was made without --layer-git: accept or drop what is in it, "
                       "and take another name",
                       layer_name(layer));
    for (size_t i = 0; i < direct->len; i++) {
        bool is_known = false;

        for (size_t k = 0; k < len; k++)
            is_known |= roots[k].is_direct && str_eq(roots[k].path, direct->items[i]);
        if (!is_known && len)
            return err_set(
                err, ERR_INVALID,
                "the layer %s was made without --layer-direct %s: accept or drop what is "
                "in it, and take another name",
                layer_name(layer), direct->items[i]);
    }
    return 0;
}

static struct layer *open_or_create(const struct layer_options_given *given, const char *dir,
                                    struct err *err)
{
    AUTO_FREE char *id = given->name ? layers_find_id(given->name) : NULL;
    AUTO(strv_done) struct strv direct = {0};
    AUTO(layer_auto) struct layer *layer = NULL;
    const struct layer_options options = {
        .name = given->name, .has_git = given->has_git, .held_by = "cordon run"};
    struct layer_options made = options;

    if (list_direct(given, dir, &direct, err))
        return NULL;
    if (!id) {
        made.direct = strv_view(&direct);
        layers_prune_daily(PRUNE_S);
        return layer_create(&made, err);
    }
    layer = layer_open(id, dir, LAYER_CHANGE, "cordon run", err);
    if (!layer || check_old(layer, given, &direct, err))
        return NULL;
    return TAKE_PTR(layer);
}

int run_layer_open(struct run_layer *ret, const struct policy_options *policy,
                   const struct config *config, const char *dir, struct err *err)
{
    const struct layer_options_given *given = ret->given;
    bool is_default = !given->is_wanted && !given->is_undoable && !given->is_never &&
                      config_undo_is_default(config) && has_sandbox(policy, config);
    const struct layer_step *steps;
    size_t len;

    if (check(given, err))
        return -1;
    if (!given->is_wanted && !given->is_undoable && !is_default)
        return 0;
    ret->is_undoable = given->is_undoable || is_default;
    ret->is_default = is_default;
    ret->layer = open_or_create(given, dir, err);
    if (!ret->layer)
        return -1;
    ret->at_end =
        given->at_end ? (enum layer_end)given->at_end : (enum layer_end)config_layer_end(config);
    steps = layer_steps(ret->layer, &len);
    ret->last_step = len ? steps[len - 1].number : 0;
    return 0;
}

/* --- the end --- */

/* What it all came to. */
struct ending {
    struct run_layer *run;
    struct run_audit *audit;
    const char *cwd;
    int step; /* of the command; 0: it wrote nothing */
    struct changes changes;
    struct accept_result result;
    const char *done; /* what was done: "keep", "accept", "drop", "undo" */
    bool has_result;
};

static void ending_done(struct ending *ending)
{
    changes_done(&ending->changes);
    accept_result_done(&ending->result);
}

void run_layer_say_lines(const struct buf *text)
{
    for (const char *line = text->data; line && *line;) {
        size_t len = strcspn(line, "\n");

        console_say("%.*s", (int)len, line);
        line += len + (line[len] == '\n');
    }
}

static int list(struct ending *ending, struct err *err)
{
    AUTO(strv_done) struct strv problems = {0};
    const struct change_query query = {.step = 0};

    changes_done(&ending->changes);
    ending->changes = (struct changes){.items = NULL};
    if (change_list(ending->run->layer, &query, &ending->changes, &problems, err))
        return -1;
    for (size_t i = 0; i < problems.len; i++)
        console_say("%s", problems.items[i]);
    return 0;
}

/* What was shown is what is accepted. */
static int take(struct ending *ending, unsigned flags, struct err *err)
{
    const struct accept_request request = {.flags = flags};
    size_t settled;
    struct err ignored; /* then old ones take up their room a while longer */

    if (change_accept(ending->run->layer, &request, &ending->result, err))
        return -1;
    ending->has_result = true;
    (void)layer_forget_accepts(ending->run->layer, ACCEPTS_KEPT, &ignored);
    if (!ending->result.left_len && ending->run->given->name)
        (void)change_settle(ending->run->layer, &settled, &ignored);
    return 0;
}

static void print_changes(const struct ending *ending, const struct ink *ink, size_t max,
                          struct buf *text)
{
    const struct change_view view = {ending->run->layer, &ending->changes, ending->cwd, ink};
    AUTO(change_lines_done) struct change_lines lines = {.items = NULL};

    change_lines_make(&ending->changes, false, &lines);
    for (size_t i = 0; i < lines.len && i < max; i++)
        change_line_print(&view, &lines.items[i], text);
    if (lines.len > max)
        buf_appendf(text, "  ... and %zu more lines\n", lines.len - max);
}

static void show_diff(const struct ending *ending)
{
    const struct change_view view = {ending->run->layer, &ending->changes, ending->cwd,
                                     ink_of(STDOUT_FILENO)};
    struct pager pager;
    struct err err;

    pager_start(&pager);
    for (size_t i = 0; i < ending->changes.len; i++) {
        AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

        if (diff_change_print(&view, &ending->changes.items[i], true, &text, &err))
            console_line(&text, "# %s", err.msg);
        if (text.len && !pager_write(&pager, text.data, text.len))
            break;
    }
    (void)pager_end(&pager);
}

static const char ask_help[] = "a - accept all but what is marked\n"
                               "r - review: go through the changes, file by file\n"
                               "k - keep them in the layer\n"
                               "d - drop them: throw them away\n"
                               "l - list them\n"
                               "v - view the diff\n";

static int ask_at(struct ending *ending, struct review_terminal *terminal, struct err *err)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO_FREE char *name = layer_shown_name(ending->run->layer);
    char key;

    buf_appendf(&text, "%slayer %s%s: ", terminal->ink->head, name, terminal->ink->off);
    change_counts_print(&ending->changes.counts, terminal->ink, &text);
    buf_append_str(&text, "\n");
    print_changes(ending, terminal->ink, LINES_ASKED, &text);
    review_terminal_flush(terminal);
    while (true) {
        review_terminal_show(terminal, &text);
        key = review_terminal_key(terminal, "[a]ccept [r]eview [k]eep [d]rop [l]ist [v]iew?",
                                  "arkdlvq", ask_help);
        buf_clear(&text);
        if (key == 'l')
            print_changes(ending, terminal->ink, SIZE_MAX, &text);
        else if (key == 'v')
            show_diff(ending);
        else
            break;
    }
    if (key == 'd')
        ending->done = "drop";
    if (key == 'a')
        ending->done = "accept";
    if (key != 'r')
        return 0;
    if (review_run(terminal, ending->run->layer, &ending->changes, ending->cwd, &ending->result,
                   err))
        return -1;
    ending->has_result = true;
    return 0;
}

/* Somebody who can be asked, else they are kept. */
static int ask(struct ending *ending, struct err *err)
{
    AUTO(review_terminal_close) struct review_terminal terminal = {.fd = -1};
    struct err ignored;

    ending->done = "keep";
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO) ||
        review_terminal_open(&terminal, &ignored)) {
        if (ending->run->given->at_end == LAYER_END_ASK)
            console_say("--at-end ask: there is no terminal to ask at, so the changes are kept");
        return 0;
    }
    return ask_at(ending, &terminal, err);
}

static int decide(struct ending *ending, bool wants_json, struct err *err)
{
    struct run_layer *run = ending->run;

    ending->done = run->is_undoable                  ? "undo"
                   : run->at_end == LAYER_END_ACCEPT ? "accept"
                   : run->at_end == LAYER_END_DROP   ? "drop"
                                                     : "keep";
    if (!ending->changes.len)
        return 0;
    if (!run->is_undoable && !wants_json &&
        (run->at_end == LAYER_END_ASK || run->at_end == LAYER_END_OF_CONFIG) && ask(ending, err))
        return -1;
    if (str_eq(ending->done, "accept"))
        return take(ending, 0, err);
    if (str_eq(ending->done, "undo"))
        return take(ending, ACCEPT_MARKED, err);
    return 0;
}

static void note(struct ending *ending)
{
    const struct layer *layer = ending->run->layer;

    if (ending->step)
        run_audit_layer(ending->audit, layer_audit_body(layer, "step", ending->step, NULL,
                                                        &ending->changes.counts));
    if (ending->has_result)
        run_audit_layer(ending->audit, layer_audit_body(layer, "accept", 0, &ending->result, NULL));
    if (str_eq(ending->done, "drop"))
        run_audit_layer(ending->audit, layer_audit_body(layer, "drop", 0, NULL, NULL));
}

/* --- telling --- */

static void tell_kept(const struct ending *ending, const char *name)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    change_counts_print(&ending->changes.counts, ink_plain(), &text);
    console_say("layer %s: %s; your files are as they were (cordon changes %s, cordon diff %s, "
                "cordon accept %s -i, cordon drop %s --all)",
                name, text.data, name, name, name, name);
}

static void tell(const struct ending *ending)
{
    const struct run_layer *run = ending->run;
    AUTO(buf_done) struct buf left = {.max = SIZE_MAX / 2};
    AUTO_FREE char *name = layer_shown_name(run->layer);

    left_print(run->layer, ending->cwd, "accept", ending->result.left, ending->result.left_len,
               &left);
    if (!run->is_quiet) {
        if (!ending->changes.len)
            console_say("nothing is changed");
        else if (str_eq(ending->done, "drop"))
            console_say("the changes are dropped");
        else if (ending->has_result && ending->result.done.len)
            console_say("accepted %zu change%s; to take %s back: cordon undo %s",
                        ending->result.done.len, ending->result.done.len == 1 ? "" : "s",
                        ending->result.done.len == 1 ? "it" : "them", name);
        else
            tell_kept(ending, name);
    }
    run_layer_say_lines(&left);
}

static json_t *to_json(const struct ending *ending)
{
    const char *name = layer_name(ending->run->layer);
    json_t *json = accept_result_to_json(&ending->result);
    AUTO_JSON json_t *counts = change_counts_to_json(&ending->changes.counts);

    json_object_update(json, counts);
    json_object_set_new(json, "layerId", json_string(layer_id(ending->run->layer)));
    json_object_set_new(
        json, "name", str_eq(name, layer_id(ending->run->layer)) ? json_null() : json_string(name));
    json_object_set_new(json, "stepId", ending->step ? json_integer(ending->step) : json_null());
    json_object_set_new(json, "atEnd", json_string(ending->done));
    return json;
}

static bool has_commits(const struct layer *layer)
{
    AUTO(commits_done) struct commits commits = {0};
    struct err ignored; /* then nobody knows, and it stays */

    return commits_list(layer, &commits, &ignored) || commits.len || commits.notes.len;
}

/* An empty layer that nobody has named is of no use to anybody. */
static bool is_of_no_use(const struct ending *ending)
{
    const struct layer *layer = ending->run->layer;

    return str_eq(ending->done, "drop") ||
           (!ending->changes.len && !has_commits(layer) && !layer_own_name(layer));
}

json_t *run_layer_end(struct run_layer *run, struct run_audit *audit, const char *cwd,
                      bool wants_json)
{
    AUTO(ending_done)
    struct ending ending = {.run = run, .audit = audit, .cwd = cwd, .done = "keep"};
    const struct layer_step *steps = NULL;
    size_t len = 0;
    struct err err;

    if (!run->layer)
        return NULL;
    steps = layer_steps(run->layer, &len);
    if (len && steps[len - 1].number > run->last_step)
        ending.step = steps[len - 1].number;
    if (list(&ending, &err) || decide(&ending, wants_json, &err)) {
        AUTO_FREE char *name = layer_shown_name(run->layer);

        console_say("the changes stay in the layer %s: %s", name, err.msg);
        return NULL;
    }
    note(&ending);
    run->is_dropped = is_of_no_use(&ending);
    if (!wants_json)
        tell(&ending);
    return to_json(&ending);
}

void run_layer_done(struct run_layer *run)
{
    struct err err;

    if (run->layer && run->is_dropped) {
        if (layer_remove(run->layer, &err))
            console_say("the layer could not be removed: %s", err.msg);
    } else if (run->layer) {
        layer_close(run->layer);
    }
    run->layer = NULL;
}

/* --- what can be undone here --- */

static bool lies_over(const struct layer_info *info, const char *path)
{
    for (size_t i = 0; i < info->roots_len; i++)
        if (path_is_within(path, info->roots[i].path) || path_is_within(info->roots[i].path, path))
            return true;
    return false;
}

struct layer *run_layer_open_undoable(struct layer_words *words, const char *held_by,
                                      struct err *err)
{
    AUTO(layer_infos_done) struct layer_infos infos = {0};
    AUTO(strv_done) struct strv problems = {0};
    const struct layer_info *last = NULL; /* not the one whose commands were last */

    if (layers_list(false, &infos, &problems, err))
        return NULL;
    for (size_t i = 0; i < infos.len; i++) {
        const struct layer_info *info = &infos.items[i];

        if (info->accepts && lies_over(info, words->cwd) &&
            (!last || info->accepted.tv_sec > last->accepted.tv_sec ||
             (info->accepted.tv_sec == last->accepted.tv_sec &&
              info->accepted.tv_nsec > last->accepted.tv_nsec)))
            last = info;
    }
    if (last) {
        words->layer = alloc_str(last->id);
        return layer_words_open(words, LAYER_CHANGE, held_by, err);
    }
    err_set(err, ERR_NOT_FOUND, "%s",
            problems.len ? problems.items[0]
                         : "nothing was accepted here that could be taken back (\"cordon layers\" "
                           "lists the layers)");
    return NULL;
}

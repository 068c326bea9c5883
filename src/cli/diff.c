/* `cordon diff`: what is in the changes of a layer. By itself it is ours, coloured, through the person's pager; with options of
 * git behind "--" it is git's, between two trees that have just what changed: before/ and after/. */
#include "base/auto.h"
#include "base/buf.h"
#include "cli/change_view.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/diff_trees.h"
#include "cli/diff_view.h"
#include "cli/layer_words.h"
#include "cli/pager.h"

#include <limits.h>
#include <stdint.h>
#include <unistd.h>

struct diff_options {
    uint64_t step;
};

/* Large as they may be, one after the other: who leaves the pager early waits for no more. */
static int print_diffs(const struct change_view *view)
{
    const bool is_plain = isatty(STDOUT_FILENO);
    struct pager pager;
    struct err err;

    pager_start(&pager);
    for (size_t i = 0; i < view->changes->len; i++) {
        AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

        if (diff_change_print(view, &view->changes->items[i], is_plain, &text, &err)) {
            buf_clear(&text);
            console_line(&text, "# %s", err.msg);
        }
        if (text.len && !pager_write(&pager, text.data, text.len))
            break;
    }
    return pager_end(&pager);
}

static void words_auto(struct layer_words *words)
{
    layer_words_done(words);
}

static int diff_run(char **argv)
{
    struct diff_options options = {.step = 0};
    AUTO(words_auto) struct layer_words words = {.cwd = NULL};
    AUTO(changes_done) struct changes changes = {.items = NULL};
    AUTO(strv_done) struct strv problems = {0};
    AUTO(layer_auto) struct layer *layer = NULL;
    struct change_view view;
    struct change_query query;
    struct err err;
    int status;

    if (!layer_words_parse(&command_diff, argv, &options, &words, &status))
        return status;
    layer = layer_words_open(&words, LAYER_READ, "cordon diff", &err);
    if (!layer)
        return console_fail(&err);
    query = (struct change_query){
        .step = (int)options.step,
        .paths = layer_words_paths(&words),
        .flags = words.behind ? CHANGES_WITHOUT_RENAMES | CHANGES_WITHOUT_CONFLICTS : 0,
    };
    if (change_list(layer, &query, &changes, &problems, &err))
        return console_fail(&err);
    for (size_t i = 0; i < problems.len; i++)
        console_say("%s", problems.items[i]);
    (void)layer_words_tell_unchanged(&words, layer, &changes);
    if (words.behind)
        return diff_by_git(layer, &changes, words.behind);
    view = (struct change_view){layer, &changes, words.cwd, ink_of(STDOUT_FILENO)};
    return print_diffs(&view);
}

static const struct option diff_options[] = {
    {.name = "step",
     .value = "N",
     INTO_COUNT(struct diff_options, step),
     .min = 1,
     .max = INT_MAX,
     .brief = "Only what step N changed",
     .help = "Only what step N of the layer changed, against what was before it."},
    {.name = NULL},
};

static const struct option_group groups[] = {{"Options", diff_options}, {NULL, NULL}};

const struct command command_diff = {
    .name = "diff",
    .summary = "what is in the changes of a change layer",
    .usage = "[LAYER] [OPTION]... [PATH]... [-- OPTION OF GIT DIFF...]",
    .about =
        "Shows what a change layer (cordon run --layer) would change in the real files, as git "
        "diff "
        "does and through the pager that git uses: of PATH and below, or all. In a file or a pipe "
        "it "
        "is a patch. Options of git diff stand behind --.\n"
        "\n"
        "The first argument is a layer if one has that name, or an id that begins so; ./NAME is a "
        "path in any case.\n",
    .examples = "  cordon diff\n"
                "  cordon diff agent src/main.c\n"
                "  cordon diff agent -- --stat\n"
                "  cordon diff agent -- --word-diff -U10\n",
    .groups = groups,
    .page = "cordon-diff",
    .run = diff_run,
};

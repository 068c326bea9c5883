/* `cordon changes`: what a layer would change in the real files. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/change_view.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/layer_words.h"
#include "layer/change.h"
#include "layer/commits.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct changes_options {
    uint64_t step;
    bool wants_json;
    bool ends_with_nul;
    bool is_full;
};

/* Each once: what was a folder and is a file is two changes. */
static int print_names(const struct layer *layer, const struct changes *changes)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO_FREE char *last = NULL;

    buf_append_str(&text, "");
    for (size_t i = 0; i < changes->len; i++) {
        AUTO_FREE char *path = change_path(layer, &changes->items[i]);

        if (last && str_eq(path, last))
            continue;
        buf_append(&text, path, strlen(path) + 1);
        free(last);
        last = TAKE_PTR(path);
    }
    return console_print(&text);
}

static int print_json(const struct layer *layer, const struct changes *changes,
                      const struct commits *commits, const struct strv *problems)
{
    json_t *list = json_array();
    AUTO_JSON json_t *json =
        json_pack("{s:s, s:o, s:s, s:o, s:o, s:o}", "layerId", layer_id(layer), "name",
                  json_lossy(layer_own_name(layer)), "state", layer_state_words[layer_state(layer)],
                  "changes", list, "counts", change_counts_to_json(&changes->counts), "problems",
                  json_lossy_list(strv_view(problems)));

    for (size_t i = 0; i < changes->len; i++)
        json_array_append_new(list, change_to_json(layer, &changes->items[i]));
    if (layer_has_git(layer))
        json_object_set_new(json, "commits", commits_to_json(commits));
    return console_print_json(json);
}

static void print_commits(const struct commits *commits, const struct ink *ink, struct buf *text)
{
    enum { ID_SHOWN = 8 };

    for (size_t i = 0; i < commits->len; i++) {
        const struct commits_branch *branch = &commits->items[i];
        AUTO_FREE char *name = utf8_plain(branch->name);

        if (!branch->is_taken && !branch->is_gone)
            buf_appendf(text, "  %scommits %s %s, to %.*s\n", ink->moved, ink->off, name, ID_SHOWN,
                        branch->commit);
    }
}

static void print_head(const struct layer *layer, const struct ink *ink, struct buf *text)
{
    AUTO_FREE char *name = layer_shown_name(layer);
    size_t steps;

    (void)layer_steps(layer, &steps);
    buf_appendf(text, "%slayer %s%s, %zu step%s", ink->head, name, ink->off, steps,
                steps == 1 ? "" : "s");
    if (layer_state(layer) != LAYER_QUIET)
        buf_appendf(text, ", %s%s%s", ink->mark, layer_state_words[layer_state(layer)], ink->off);
    buf_append_str(text, "\n");
}

static int print_text(const struct changes_options *options, const struct layer *layer,
                      const struct changes *changes, const struct commits *commits, const char *cwd)
{
    const struct change_view view = {layer, changes, cwd, ink_of(STDOUT_FILENO)};
    AUTO(change_lines_done) struct change_lines lines = {.items = NULL};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    change_lines_make(changes, options->is_full, &lines);
    print_head(layer, view.ink, &text);
    for (size_t i = 0; i < lines.len; i++)
        change_line_print(&view, &lines.items[i], &text);
    print_commits(commits, view.ink, &text);
    change_counts_print(&changes->counts, view.ink, &text);
    buf_append_str(&text, "\n");
    return console_print(&text);
}

static void layer_words_auto(struct layer_words *words)
{
    layer_words_done(words);
}

static int changes_run(char **argv)
{
    struct changes_options options = {.step = 0};
    AUTO(layer_words_auto) struct layer_words words = {.cwd = NULL};
    AUTO(changes_done) struct changes changes = {.items = NULL};
    AUTO(commits_done) struct commits commits = {.items = NULL};
    AUTO(strv_done) struct strv problems = {0};
    AUTO(layer_auto) struct layer *layer = NULL;
    struct change_query query;
    struct err err;
    int status;

    if (!layer_words_parse(&command_changes, argv, &options, &words, &status))
        return status;
    layer = layer_words_open(&words, LAYER_READ, "cordon changes", &err);
    if (!layer)
        return console_fail(&err);
    query = (struct change_query){
        .step = (int)options.step,
        .paths = layer_words_paths(&words),
        .flags = options.ends_with_nul ? CHANGES_WITHOUT_RENAMES | CHANGES_WITHOUT_CONFLICTS : 0,
    };
    if (change_list(layer, &query, &changes, &problems, &err))
        return console_fail(&err);
    if (!options.step && !options.ends_with_nul && commits_list(layer, &commits, &err))
        console_say("%s", err.msg);
    if (options.wants_json)
        return print_json(layer, &changes, &commits, &problems);
    for (size_t i = 0; i < problems.len; i++)
        console_say("%s", problems.items[i]);
    (void)layer_words_tell_unchanged(&words, layer, &changes);
    return options.ends_with_nul ? print_names(layer, &changes)
                                 : print_text(&options, layer, &changes, &commits, words.cwd);
}

static const struct option changes_options[] = {
    {.name = "step",
     .value = "N",
     INTO_COUNT(struct changes_options, step),
     .min = 1,
     .max = INT_MAX,
     .brief = "Only what step N changed",
     .help = "Only what step N of the layer changed, against what was before it."},
    {.name = "full",
     INTO_TRUE(struct changes_options, is_full),
     .brief = "Every file has its line",
     .help = "Every file has its line, also in folders that are new, gone or moved as a whole."},
    {.name = "json",
     .letter = 'j',
     INTO_TRUE(struct changes_options, wants_json),
     .help = "Prints one JSON value."},
    {.name = "null",
     .letter = '0',
     INTO_TRUE(struct changes_options, ends_with_nul),
     .brief = "The paths alone, each ended by a NUL",
     .help = "Prints the paths alone, absolute, each ended by a NUL, for xargs -0. What was moved "
             "is there twice: where it was, and where it is."},
    {.name = NULL},
};

static const struct option_group groups[] = {{"Options", changes_options}, {NULL, NULL}};

const struct command command_changes = {
    .name = "changes",
    .summary = "what a change layer would change",
    .usage = "[LAYER] [OPTION]... [PATH]...",
    .about =
        "Lists what a change layer (cordon run --layer) would change in the real files: of PATH "
        "and "
        "below, or all. Without LAYER it is the one that was used last here. What others run or "
        "obey later, and what was changed outside meanwhile, is marked.\n"
        "\n"
        "The first argument is a layer if one has that name, or an id that begins so; ./NAME is a "
        "path in any case.\n",
    .examples = "  cordon changes\n"
                "  cordon changes agent src\n"
                "  cordon changes agent --json | jq .counts\n",
    .groups = groups,
    .page = "cordon-changes",
    .run = changes_run,
};

/* `cordon layers`: which change layers there are; what one of them is made of; and taking old ones away. What a list says
 * of changes is looked for in each: a layer that is large takes a moment. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/change_view.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/layer_words.h"
#include "layer/accept.h"
#include "layer/as_json.h"
#include "layer/change.h"
#include "layer/layer.h"
#include "timeline/timeline.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct layers_options {
    uint64_t prune_ns;
    bool prunes;
    bool with_changes;
    bool wants_json;
    bool wants_names;
};

/* What there is to be said of each. */
struct layer_row {
    const struct layer_info *info;
    struct change_counts counts;
    bool has_counts;
    bool is_empty; /* and these say nothing */
};

static void count(struct layer_row *row, const char *cwd)
{
    AUTO(changes_done) struct changes changes = {.items = NULL};
    AUTO(strv_done) struct strv problems = {0};
    AUTO(layer_auto) struct layer *layer = NULL;
    const struct change_query query = {.step = 0};
    struct err ignored; /* then nothing is said of them */

    layer = layer_open(row->info->id, cwd, LAYER_READ, "cordon layers", &ignored);
    if (!layer || change_list(layer, &query, &changes, &problems, &ignored))
        return;
    row->counts = changes.counts;
    row->is_empty = !changes.len;
    row->has_counts = true;
}

/* --- for programs --- */

static json_t *row_to_json(const struct layer_row *row)
{
    json_t *json = layer_info_to_json(row->info, true);

    json_object_set_new(json, "counts",
                        row->has_counts ? change_counts_to_json(&row->counts) : json_null());
    return json;
}

static int print_json(const struct layer_row *rows, size_t len, const struct strv *problems)
{
    json_t *list = json_array();
    AUTO_JSON json_t *json =
        json_pack("{s:o, s:o}", "layers", list, "problems", json_lossy_list(strv_view(problems)));

    for (size_t i = 0; i < len; i++)
        json_array_append_new(list, row_to_json(&rows[i]));
    return console_print_json(json);
}

/* --- for people --- */

/* "~/src/app", "~/src/app and 2 more" */
static void print_roots(const struct layer_root *roots, size_t len, struct buf *ret)
{
    const char *home = getenv("HOME");
    size_t shown = 0, more = 0;

    for (size_t i = 0; i < len; i++) {
        bool is_at_home = home && *home == '/' && home[1] && path_is_within(roots[i].path, home);
        AUTO_FREE char *name = NULL;

        if (roots[i].is_direct)
            continue;
        if (shown++) {
            more++;
            continue;
        }
        name = alloc_strf("%s%s", is_at_home ? "~" : "",
                          roots[i].path + (is_at_home ? strlen(home) : 0));
        AUTO_FREE char *plain = utf8_plain(name);

        buf_append_str(ret, plain);
    }
    if (more)
        buf_appendf(ret, " and %zu more", more);
}

static void print_row(const struct layer_row *row, const struct ink *ink, struct buf *text)
{
    enum { ID_SHOWN = 8 };
    const struct layer_info *info = row->info;

    buf_appendf(text, "%s%.*s%s  ", ink->head, info->name ? 64 : ID_SHOWN,
                info->name ? info->name : info->id, ink->off);
    print_roots(info->roots, info->roots_len, text);
    buf_append_str(text, "\n  ");
    if (!row->is_empty)
        buf_appendf(text, "%zu step%s, ", info->steps, info->steps == 1 ? "" : "s");
    if (row->has_counts)
        change_counts_print(&row->counts, ink, text);
    else
        buf_append_str(text, "changes not to be read");
    buf_append_str(text, "; ");
    size_print(info->bytes, text);
    buf_append_str(text, ", ");
    age_print(&info->used, text);
    if (info->state != LAYER_QUIET)
        buf_appendf(text, ", %s%s%s%s%s", ink->mark, layer_state_words[info->state],
                    info->held_by ? ": " : "", info->held_by ? info->held_by : "", ink->off);
    if (info->accepts)
        buf_appendf(text, ", %zu accept%s can be undone", info->accepts,
                    info->accepts == 1 ? "" : "s");
    buf_append_str(text, "\n");
}

static int list(const struct layers_options *options, const char *cwd)
{
    AUTO(layer_infos_done) struct layer_infos infos = {0};
    AUTO(strv_done) struct strv problems = {0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO_FREE struct layer_row *rows = NULL;
    struct err err;

    if (layers_list(!options->wants_names, &infos, &problems, &err))
        return console_fail(&err);
    buf_append_str(&text, "");
    if (options->wants_names) {
        for (size_t i = 0; i < infos.len; i++)
            buf_appendf(&text, "%s\n",
                        infos.items[i].name ? infos.items[i].name : infos.items[i].id);
        return console_print(&text);
    }
    rows = alloc_zero(infos.len + 1, sizeof *rows);
    for (size_t i = 0; i < infos.len; i++) {
        rows[i].info = &infos.items[i];
        count(&rows[i], cwd);
        if (!options->wants_json)
            print_row(&rows[i], ink_of(STDOUT_FILENO), &text);
    }
    if (options->wants_json)
        return print_json(rows, infos.len, &problems);
    for (size_t i = 0; i < problems.len; i++)
        console_say("%s", problems.items[i]);
    if (!infos.len && !problems.len)
        buf_append_str(&text, "there is no layer: \"cordon run --layer -- COMMAND\" makes one\n");
    return console_print(&text);
}

/* --- one of them --- */

static void print_step(const struct layer_step *step, struct buf *text)
{
    AUTO(buf_done) struct buf line = {.max = SIZE_MAX / 2};

    buf_appendf(&line, "step %d: ", step->number);
    timeline_append_argv(strv_view(&step->argv), &line);
    if (step->commands > 1)
        buf_appendf(&line, " and %u more", step->commands - 1);
    buf_append_str(&line, ", ");
    age_print(&step->begun, &line);
    if (!step->ended.tv_sec)
        buf_append_str(&line, ", has not ended");
    else if (step->wait_status > 0)
        buf_appendf(&line, WIFSIGNALED(step->wait_status) ? ", by signal %d" : ", exit status %d",
                    WIFSIGNALED(step->wait_status) ? WTERMSIG(step->wait_status)
                                                   : WEXITSTATUS(step->wait_status));
    console_line(text, "  %s", line.data);
}

static void print_one_text(const struct layer *layer, const struct accept_info *accepts, size_t len,
                           struct buf *text)
{
    size_t roots_len, steps_len;
    const struct layer_root *roots = layer_roots(layer, &roots_len);
    const struct layer_step *steps = layer_steps(layer, &steps_len);
    const struct ink *ink = ink_of(STDOUT_FILENO);

    buf_appendf(text, "%s%s%s (%s), %s\n", ink->head, layer_name(layer), ink->off, layer_id(layer),
                layer_state_words[layer_state(layer)]);
    for (size_t i = 0; i < roots_len; i++)
        console_line(text, "  %s %s", roots[i].is_direct ? "left out:" : "over", roots[i].path);
    for (size_t i = 0; i < steps_len; i++)
        print_step(&steps[i], text);
    for (size_t i = 0; i < len; i++) {
        AUTO(buf_done) struct buf age = {.max = SIZE_MAX / 2};

        age_print(&accepts[i].when, &age);
        buf_appendf(text, "  accept %d: %zu path%s, %s%s\n", accepts[i].number, accepts[i].paths,
                    accepts[i].paths == 1 ? "" : "s", age.data,
                    accepts[i].is_undone ? ", taken back" : "");
    }
}

static int show_one(const struct layers_options *options, const char *word, const char *cwd)
{
    AUTO(layer_auto) struct layer *layer = NULL;
    AUTO_FREE struct accept_info *accepts = NULL;
    AUTO_FREE char *id = layers_find_id(word);
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    size_t len = 0;
    struct err err;

    layer = layer_open(id ? id : word, cwd, LAYER_READ, "cordon layers", &err);
    if (!layer || layer_accepts(layer, &accepts, &len, &err))
        return console_fail(&err);
    if (options->wants_json) {
        AUTO_JSON json_t *json = layer_to_json(layer, accepts, len);

        return console_print_json(json);
    }
    print_one_text(layer, accepts, len, &text);
    return console_print(&text);
}

/* --- taking old ones away --- */

static int prune(const struct layers_options *options)
{
    AUTO(strv_done) struct strv gone = {0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct err err;

    if (layers_prune(options->prune_ns / CLOCK_NS_PER_S, options->with_changes, &gone, &err))
        return console_fail(&err);
    if (options->wants_json) {
        AUTO_JSON json_t *json = json_pack("{s:o}", "removed", json_lossy_list(strv_view(&gone)));

        return console_print_json(json);
    }
    for (size_t i = 0; i < gone.len; i++)
        console_line(&text, "removed %s", gone.items[i]);
    if (!gone.len)
        buf_append_str(&text, "none was that old and without changes\n");
    return console_print(&text);
}

static int layers_run(char **argv)
{
    struct layers_options options = {.prunes = false};
    AUTO_FREE char *cwd = getcwd(NULL, 0);
    const char *word = NULL;
    char **rest;
    int status;

    for (;; argv = rest) { /* options may stand behind the name, too */
        if (!command_parse(&command_layers, argv, &options, &rest, &status))
            return status;
        if (!*rest)
            break;
        if (word)
            return console_failf("cordon layers takes one layer, not \"%s\", too", *rest);
        word = *rest;
    }
    if (options.with_changes && !options.prunes)
        return console_failf("--with-changes needs --prune");
    if (word && (options.prunes || options.wants_names))
        return console_failf("--prune and --names are about all layers, not about \"%s\"", word);
    if (options.prunes)
        return prune(&options);
    return word ? show_one(&options, word, cwd ? cwd : "/") : list(&options, cwd ? cwd : "/");
}

static int set_prune(const struct option *option, void *member, const char *value, struct err *err)
{
    struct layers_options *options = member;

    (void)option;
    options->prunes = true;
    return units_parse_duration(value, &options->prune_ns, err);
}

static const struct option layers_options[] = {
    {.name = "json",
     .letter = 'j',
     INTO_TRUE(struct layers_options, wants_json),
     .help = "Prints one JSON value."},
    {.name = "names",
     INTO_TRUE(struct layers_options, wants_names),
     .help = "Prints the names alone, or the ids of those that have none."},
    {.name = "prune",
     .value = "TIME",
     .set = set_prune,
     .brief = "Removes those not used for TIME (7d) and without changes",
     .help = "Removes those that nobody has used for TIME (12h, 7d), in which nothing runs and "
             "nothing is left to be accepted; what they could undo goes with them."},
    {.name = "with-changes",
     INTO_TRUE(struct layers_options, with_changes),
     .help = "With --prune: those with changes, too, which are lost."},
    {.name = NULL},
};

static const struct option_group groups[] = {{"Options", layers_options}, {NULL, NULL}};

const struct command command_layers = {
    .name = "layers",
    .summary = "list change layers",
    .usage = "[OPTION]... [LAYER]",
    .about = "Lists your change layers (cordon run --layer), the one used last first: over which "
             "folders it lies, what it would change, how large it is. With LAYER, by its name or "
             "the beginning of its id: its steps, and what was accepted of it.\n",
    .examples = "  cordon layers\n"
                "  cordon layers agent\n"
                "  cordon layers --prune 7d\n",
    .groups = groups,
    .page = "cordon-layers",
    .run = layers_run,
};

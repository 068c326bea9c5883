/* `cordon rules list` and `cordon rules remove`.
 *
 * The rules are counted through in the order in which the files are read, so that a number names one of
 * them for as long as no file changes. What is removed is a line that `cordon rules add` could have written:
 * it is looked for again under the lock of the file, and nothing else of the file changes. A rule that
 * somebody wrote by hand, over several lines or with alternatives, is his to change; its place is told. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/rules.h"
#include "rules/file/rules_file.h"
#include "rules/rules_disk.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One rule of any file. */
struct listed {
    char *file;
    unsigned line;
    enum rule_layer layer;
    enum rule_verdict verdict;
    char *text; /* "git push|pull", "host example.org (https)" */
    char *justification;
    char *added;       /* the line that `rules add` would write; NULL: it would write none such */
    struct strv words; /* of a prefix without alternatives */
    char *host;        /* NULL: about commands */
    enum rule_protocol protocol;
};

struct listing {
    struct listed *items;
    size_t len;
    size_t cap;
    struct strv problems;
};

static void listing_done(struct listing *listing)
{
    for (size_t i = 0; i < listing->len; i++) {
        struct listed *item = &listing->items[i];

        free(item->file);
        free(item->text);
        free(item->justification);
        free(item->added);
        free(item->host);
        strv_done(&item->words);
    }
    free(listing->items);
    strv_done(&listing->problems);
}

static struct listed *add_item(struct listing *listing, const struct rules_origin *origin)
{
    listing->items =
        alloc_grow(listing->items, listing->len, &listing->cap, sizeof *listing->items);
    listing->items[listing->len] =
        (struct listed){.file = alloc_str(origin->file), .layer = origin->layer};
    return &listing->items[listing->len++];
}

static void list_prefix(struct listing *listing, const struct rules_origin *origin,
                        const struct prefix_rule *rule)
{
    struct listed *item = add_item(listing, origin);
    bool is_single = rule->reviewer == RULE_REVIEWER_USER;
    struct err ignored;

    for (size_t i = 0; i < rule->len; i++) {
        is_single &= rule->words[i].len == 1;
        strv_push(&item->words, rule->words[i].items[0]);
    }
    item->line = rule->place.line;
    item->verdict = rule->verdict;
    item->text = prefix_rule_text(rule);
    item->justification = alloc_str(rule->justification);
    if (is_single)
        item->added = rule_line_for_prefix(strv_view(&item->words), rule->verdict,
                                           rule->justification, &ignored);
    else
        strv_done(&item->words);
}

static void list_host(struct listing *listing, const struct rules_origin *origin,
                      const struct host_rule *rule)
{
    struct listed *item = add_item(listing, origin);
    struct err ignored;

    item->line = rule->place.line;
    item->verdict = rule->verdict;
    item->host = alloc_str(rule->host);
    item->protocol = rule->protocol;
    item->text = alloc_strf("host %s (%s)", rule->host, rule_protocol_name(rule->protocol));
    item->justification = alloc_str(rule->justification);
    item->added = rule_line_for_host(rule->host, rule->protocol, rule->verdict, rule->justification,
                                     &ignored);
}

/* In the order of their lines. */
static void visit(void *data, const struct rules_origin *origin, const struct err *failure)
{
    struct listing *listing = data;
    AUTO(rules_file_done) struct rules_file file = {.prefixes = NULL};
    AUTO(buf_done) struct buf text = {.max = 0};
    size_t prefix = 0;
    size_t host = 0;
    struct err err;

    if (failure) {
        strv_push(&listing->problems, failure->msg);
        return;
    }
    if (rules_read(origin->file, &text, &err) ||
        rules_file_parse(origin, text.data ? text.data : "", text.len, &file, &err))
        strv_push(&listing->problems, err.msg);
    while (prefix < file.prefixes_len || host < file.hosts_len) {
        bool is_prefix = host == file.hosts_len ||
                         (prefix < file.prefixes_len &&
                          file.prefixes[prefix].place.line <= file.hosts[host].place.line);

        if (is_prefix)
            list_prefix(listing, origin, &file.prefixes[prefix++]);
        else
            list_host(listing, origin, &file.hosts[host++]);
    }
}

static void listing_read(struct listing *listing, const struct rules_source *source)
{
    const struct rules_visitor visitor = {.visit = visit, .data = listing};
    AUTO_FREE char *dir = getcwd(NULL, 0);

    if (!source->options->files.len)
        rules_visit(&source->places, &visitor);
    for (size_t i = 0; i < source->options->files.len; i++) {
        AUTO_FREE char *path = path_clean(dir ? dir : "/", source->options->files.items[i]);
        const struct rules_origin origin = {
            .layer = RULE_LAYER_OPTION, .file = path, .home = source->places.home};

        visit(listing, &origin, NULL);
    }
}

/* --- list --- */

static void print_item(const struct listed *item, size_t number, struct buf *text)
{
    const char *sandbox = item->host ? NULL : rule_sandbox_name(item->verdict);

    console_line(text, "%3zu  %s%s%s  %s  %s:%u (%s)%s%s", number,
                 rule_decision_name(item->verdict), sandbox ? ", sandbox " : "",
                 sandbox ? sandbox : "", item->text, item->file, item->line,
                 rule_layer_name(item->layer), item->justification ? ": " : "",
                 item->justification ? item->justification : "");
}

static json_t *item_to_json(const struct listed *item, size_t number)
{
    const char *sandbox = item->host ? NULL : rule_sandbox_name(item->verdict);

    return json_pack("{s:I, s:s, s:s?, s:o, s:o, s:o, s:s?, s:o, s:I, s:s, s:o, s:b}", "number",
                     (json_int_t)number, "decision", rule_decision_name(item->verdict), "sandbox",
                     sandbox, "text", json_lossy(item->text), "words",
                     item->words.len ? json_lossy_list(strv_view(&item->words)) : json_null(),
                     "host", json_lossy(item->host), "protocol",
                     item->host ? rule_protocol_name(item->protocol) : NULL, "file",
                     json_lossy(item->file), "line", (json_int_t)item->line, "layer",
                     rule_layer_name(item->layer), "justification", json_lossy(item->justification),
                     "removable", item->added != NULL);
}

int rules_list(const struct rules_options *options, char **words)
{
    AUTO(rules_source_done) struct rules_source source = {.options = options};
    AUTO(listing_done) struct listing listing = {.len = 0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    json_t *list;
    struct err err;
    int status;

    if (!command_has_no_arguments(&command_rules, words, &status))
        return status;
    if (rules_source_init(&source, options, &err))
        return console_fail(&err);
    listing_read(&listing, &source);
    list = json_array();
    for (size_t i = 0; i < listing.len; i++) {
        print_item(&listing.items[i], i + 1, &text);
        json_array_append_new(list, item_to_json(&listing.items[i], i + 1));
    }
    if (!listing.len)
        console_line(&text, "there are no rules");
    for (size_t i = 0; i < listing.problems.len; i++)
        console_line(&text, "broken: %s", listing.problems.items[i]);
    return rules_print(options,
                       json_pack("{s:o, s:o}", "rules", list, "problems",
                                 json_lossy_list(strv_view(&listing.problems))),
                       &text);
}

/* --- remove --- */

static bool is_same_words(const struct strv *words, char **asked)
{
    size_t i = 0;

    while (i < words->len && asked[i] && str_eq(words->items[i], asked[i]))
        i++;
    return i == words->len && !asked[i];
}

/* What the options ask for, by words or by host. */
static bool is_asked(const struct listed *item, const struct rules_options *options, char **words)
{
    AUTO_FREE char *host = NULL;
    struct err ignored;

    if (item->layer != RULE_LAYER_USER && item->layer != RULE_LAYER_OPTION)
        return false;
    if (options->decision && !str_eq(options->decision, rule_decision_name(item->verdict)))
        return false;
    if (!options->host)
        return item->words.len && is_same_words(&item->words, words);
    host = host_rule_host(options->host, &ignored);
    return item->host && host && str_eq(item->host, host) &&
           (!options->protocol || str_eq(rule_protocol_name(item->protocol), options->protocol));
}

static const struct listed *find_number(const struct listing *listing, uint64_t number,
                                        struct err *err)
{
    if (number >= 1 && number <= listing->len)
        return &listing->items[number - 1];
    err_set(err, ERR_NOT_FOUND, "there is no rule %llu; \"cordon rules list\" has the numbers",
            (unsigned long long)number);
    return NULL;
}

/* The one that is asked for; NULL when there is none, or more than one. */
static const struct listed *find_asked(const struct listing *listing,
                                       const struct rules_options *options, char **words,
                                       struct err *err)
{
    const struct listed *found = NULL;
    struct err ignored;
    uint64_t number;

    if (!options->host && !words[1] && units_parse_count(words[0], &number, &ignored) == 0)
        return find_number(listing, number, err);
    for (size_t i = 0; i < listing->len; i++) {
        if (!is_asked(&listing->items[i], options, words))
            continue;
        if (found) {
            err_set(err, ERR_INVALID,
                    "several rules of yours are about that; name one by its number in \"cordon "
                    "rules list\"");
            return NULL;
        }
        found = &listing->items[i];
    }
    if (!found)
        err_set(err, ERR_NOT_FOUND,
                "no rule of yours is about just that; \"cordon rules list\" "
                "has all");
    return found;
}

int rules_remove(const struct rules_options *options, char **words)
{
    AUTO(rules_source_done) struct rules_source source = {.options = options};
    AUTO(listing_done) struct listing listing = {.len = 0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    const struct listed *item;
    struct err err;

    if (!options->host == !*words)
        return console_failf("say which rule: cordon rules remove NUMBER, -- WORD..., or --host "
                             "NAME");
    if (rules_source_init(&source, options, &err))
        return console_fail(&err);
    listing_read(&listing, &source);
    item = find_asked(&listing, options, words, &err);
    if (!item)
        return console_fail(&err);
    if (item->layer != RULE_LAYER_USER && item->layer != RULE_LAYER_OPTION)
        return console_failf("%s:%u is a rule of the %s's, and not yours to remove here",
                             item->file, item->line, rule_layer_name(item->layer));
    if (!item->added)
        return console_failf("%s:%u was not written by \"cordon rules add\"; change it there",
                             item->file, item->line);
    if (rules_delete(item->file, source.places.home, item->line, item->added, &err))
        return console_fail(&err);
    console_line(&text, "removed from %s", item->file);
    console_line(&text, "  %s", item->added);
    return rules_print(options,
                       json_pack("{s:o, s:o, s:I, s:b}", "file", json_lossy(item->file), "rule",
                                 json_lossy(item->added), "line", (json_int_t)item->line, "removed",
                                 true),
                       &text);
}

/* `cordon rules test`: every file and every example by itself, so that all that is wrong is shown
 * at once; loading rules stops at the first. */
#include "cli/rules.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/console.h"
#include "rules/file/rules_file.h"

#include <stdint.h>

struct report {
    struct buf text;
    json_t *files; /* array */
    size_t rules;
    size_t examples;
    size_t failures;
};

static void report_done(struct report *report)
{
    buf_done(&report->text);
    json_decref(report->files);
}

static void add_failure(struct report *report, json_t *failures, const struct err *err)
{
    console_line(&report->text, "%s", err->msg);
    json_array_append_new(failures, json_lossy(err->msg));
    report->failures++;
}

static void test_examples(struct report *report, const struct rules_file *file, json_t *failures)
{
    struct err err;

    for (size_t i = 0; i < file->examples_len; i++)
        if (rules_file_check_example(file, &file->examples[i], &err))
            add_failure(report, failures, &err);
}

static void test_file(struct report *report, const struct rules_origin *origin, json_t *failures,
                      struct rules_file *ret)
{
    AUTO(buf_done) struct buf text = {.max = 0};
    struct err err;

    if (rules_read(origin->file, &text, &err) ||
        rules_file_parse(origin, text.data ? text.data : "", text.len, ret, &err))
        add_failure(report, failures, &err);
    else
        test_examples(report, ret, failures);
}

static void visit(void *data, const struct rules_origin *origin, const struct err *failure)
{
    struct report *report = data;
    AUTO(rules_file_done) struct rules_file file = {.prefixes = NULL};
    json_t *failures = json_array();
    size_t rules;

    if (failure)
        add_failure(report, failures, failure);
    else
        test_file(report, origin, failures, &file);
    rules = file.prefixes_len + file.hosts_len;
    report->rules += rules;
    report->examples += file.examples_len;
    json_array_append_new(report->files,
                          json_pack("{s:o, s:s, s:I, s:I, s:o}", "file", json_lossy(origin->file),
                                    "layer", rule_layer_name(origin->layer), "rules",
                                    (json_int_t)rules, "examples", (json_int_t)file.examples_len,
                                    "failures", failures));
}

static void visit_all(const struct rules_source *source, struct report *report)
{
    const struct rules_visitor visitor = {.visit = visit, .data = report};
    const struct strv *files = &source->options->files;

    if (!files->len)
        rules_visit(&source->places, &visitor);
    for (size_t i = 0; i < files->len; i++) {
        const struct rules_origin origin = {
            .layer = RULE_LAYER_OPTION, .file = files->items[i], .home = source->places.home};

        visit(report, &origin, NULL);
    }
}

int rules_test(const struct rules_options *options, char **words)
{
    AUTO(rules_source_done) struct rules_source source = {.options = options};
    AUTO(report_done)
    struct report report = {.text = {.max = SIZE_MAX / 2}, .files = json_array()};
    size_t files;
    struct err err;
    int status;

    if (!command_has_no_arguments(&command_rules, words, &status))
        return status;
    if (rules_source_init(&source, options, &err))
        return console_fail(&err);
    visit_all(&source, &report);
    files = json_array_size(report.files);
    buf_appendf(&report.text, "%zu file%s, %zu rule%s, %zu example%s: %zu wrong\n", files,
                files == 1 ? "" : "s", report.rules, report.rules == 1 ? "" : "s", report.examples,
                report.examples == 1 ? "" : "s", report.failures);
    status = rules_print(
        options,
        json_pack("{s:O, s:I}", "files", report.files, "failures", (json_int_t)report.failures),
        &report.text);
    return status == EXIT_OK && report.failures ? EXIT_NO : status;
}

/* See report.h. No figure fails anything: on another machine, or a busy one, they are others. So
 * each is shown beside its target and, where that says more, as what it costs over the bare start
 * of the same program here and where the target was set. */
#include "report.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void report_done(struct report *report)
{
    free(report->items);
    *report = (struct report){0};
}

void report_add(struct report *report, const struct figure *figure)
{
    report->items = alloc_grow(report->items, report->len, &report->cap, sizeof *report->items);
    report->items[report->len++] = *figure;
}

void report_add_sample(struct report *report, const struct figure *figure,
                       const struct sample *sample)
{
    struct figure measured = *figure;

    measured.value = sample_median(sample);
    measured.p99 = sample_quantile(sample, 0.99);
    measured.runs = sample->len;
    report_add(report, &measured);
}

static bool figure_is_met(const struct figure *figure)
{
    if (figure->goal == GOAL_AT_LEAST)
        return figure->value >= figure->target;
    return figure->value <= figure->target &&
           (figure->p99_target <= 0 || figure->p99 <= figure->p99_target);
}

static const char *figure_verdict(const struct figure *figure)
{
    if (figure->goal == GOAL_NONE)
        return "";
    return figure_is_met(figure) ? "met" : "MISSED";
}

static int figure_digits(const struct figure *figure)
{
    if (str_eq(figure->unit, "x"))
        return 3;
    return str_eq(figure->unit, "ms") ? 2 : str_eq(figure->unit, "us") ? 1 : 0;
}

static void print_number(FILE *out, double value, const struct figure *figure)
{
    AUTO_FREE char *text = alloc_strf("%.*f %s", figure_digits(figure), value, figure->unit);

    fprintf(out, "%12s", text);
}

/* The caller frees. */
static char *format_target(const struct figure *figure)
{
    const char *sign = figure->goal == GOAL_AT_MOST ? "<=" : ">=";
    int digits = figure_digits(figure);

    if (figure->goal == GOAL_NONE)
        return alloc_str("");
    if (figure->p99_target > 0)
        return alloc_strf("%s %.*f, p99 %.0f", sign, digits, figure->target, figure->p99_target);
    return alloc_strf("%s %.*f", sign, digits, figure->target);
}

static void print_figure(FILE *out, const struct figure *figure)
{
    AUTO_FREE char *target = format_target(figure);

    fprintf(out, "%-44s", figure->name);
    print_number(out, figure->value, figure);
    if (figure->p99 > 0)
        print_number(out, figure->p99, figure);
    else
        fprintf(out, "%12s", "");
    fprintf(out, "%7zu", figure->runs);
    if (figure->goal != GOAL_NONE || figure->bare > 0)
        fprintf(out, "   %-16s%-8s", target, figure_verdict(figure));
    if (figure->bare > 0)
        fprintf(out, "%+.2f", figure->value - figure->bare);
    if (figure->bare > 0 && figure->goal == GOAL_AT_MOST)
        fprintf(out, "  (<= %+.2f)", figure->target - figure->bare_there);
    fputc('\n', out);
}

void report_print(const struct report *report, FILE *out)
{
    struct utsname machine;

    if (uname(&machine) == 0)
        fprintf(out, "%s %s, %s, %ld processors, %s\n\n", machine.sysname, machine.release,
                machine.machine, sysconf(_SC_NPROCESSORS_ONLN),
                geteuid() == 0 ? "root" : "ordinary user");
    fprintf(out, "%-44s%12s%12s%7s   %-24s%s\n", "", "median", "p99", "runs", "target",
            "over bare (target)");
    for (size_t i = 0; i < report->len; i++)
        print_figure(out, &report->items[i]);
}

static json_t *figure_to_json(const struct figure *figure)
{
    json_t *json = json_pack("{s:s, s:s, s:f, s:I}", "name", figure->name, "unit", figure->unit,
                             "value", figure->value, "runs", (json_int_t)figure->runs);

    if (figure->p99 > 0)
        json_object_set_new(json, "p99", json_real(figure->p99));
    if (figure->bare > 0)
        json_object_set_new(json, "bare", json_real(figure->bare));
    if (figure->goal != GOAL_NONE) {
        json_object_set_new(json, figure->goal == GOAL_AT_MOST ? "atMost" : "atLeast",
                            json_real(figure->target));
        json_object_set_new(json, "met", json_boolean(figure_is_met(figure)));
    }
    return json;
}

void report_print_json(const struct report *report, FILE *out)
{
    struct utsname machine = {0};
    json_t *list = json_array();
    json_t *json;

    uname(&machine);
    for (size_t i = 0; i < report->len; i++)
        json_array_append_new(list, figure_to_json(&report->items[i]));
    json = json_pack("{s:s, s:s, s:I, s:b, s:o}", "kernel", machine.release, "machine",
                     machine.machine, "processors", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN),
                     "root", geteuid() == 0, "figures", list);
    json_dumpf(json, out, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', out);
    json_decref(json);
}

/* The figures of one run, beside what they should be; as a table or as JSON. */
#pragma once

#include "sample.h"

#include <stdio.h>

enum goal { GOAL_NONE, GOAL_AT_MOST, GOAL_AT_LEAST };

struct figure {
    const char *name;
    const char *unit; /* "ms", "us", "/s", "MiB/s", "MB/s", "KiB", "x" (a ratio) */
    double value;     /* the median, where there are several values */
    double p99;       /* 0: only one value */
    size_t runs;
    enum goal goal;
    double target;
    double p99_target; /* 0: none */
    double bare;       /* median of the same program without anything; 0: of no use here */
    double bare_there; /* the same where the target was set */
};

struct report {
    struct figure *items;
    size_t len;
    size_t cap;
};

void report_done(struct report *report);

/* Copies `figure`; its name is borrowed until the end. */
void report_add(struct report *report, const struct figure *figure);

/* The figure with value, p99 and runs taken from the sample. */
void report_add_sample(struct report *report, const struct figure *figure,
                       const struct sample *sample);

void report_print(const struct report *report, FILE *out);
void report_print_json(const struct report *report, FILE *out);

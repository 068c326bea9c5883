/* Measured values of one thing, and what they come to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sample {
    double *items;
    size_t len;
    size_t cap;
};

void sample_done(struct sample *sample);
void sample_add(struct sample *sample, double value);

/* The time since `start_ns` (clock_now_ns()), in milliseconds. */
void sample_add_since(struct sample *sample, uint64_t start_ns);

/* The value below which `share` (0 to 1) of all lie: nearest rank. 0 when there is none. */
double sample_quantile(const struct sample *sample, double share);
double sample_median(const struct sample *sample);

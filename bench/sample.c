/* See sample.h. */
#include "sample.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sample_done(struct sample *sample)
{
    free(sample->items);
    *sample = (struct sample){0};
}

void sample_add(struct sample *sample, double value)
{
    sample->items = alloc_grow(sample->items, sample->len, &sample->cap, sizeof *sample->items);
    sample->items[sample->len++] = value;
}

void sample_add_since(struct sample *sample, uint64_t start_ns)
{
    sample_add(sample, (double)(clock_now_ns() - start_ns) / CLOCK_NS_PER_MS);
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return left < right ? -1 : left > right;
}

double sample_quantile(const struct sample *sample, double share)
{
    size_t rank = (size_t)ceil(share * (double)sample->len);

    if (!sample->len)
        return 0;
    qsort(sample->items, sample->len, sizeof *sample->items, compare);
    return sample->items[rank ? rank - 1 : 0];
}

double sample_median(const struct sample *sample)
{
    return sample_quantile(sample, 0.5);
}

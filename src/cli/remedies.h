/* What to do about a layer that this machine does not give. Pure: facts in, texts out. */
#pragma once

#include <stddef.h>

struct host_facts;
struct layer_report;

struct remedy {
    const char *about; /* a layer's name, or "limits"; static */
    char *cause;       /* one sentence */
    char *how;         /* lines to type or to put somewhere; "" when there is nothing to do */
};

struct remedies {
    struct remedy *items; /* owned */
    size_t len;
    size_t cap;
};

void remedies_done(struct remedies *remedies);

/* For the layers (LAYER_COUNT reports) that are partial or absent though needed. Those with one
 * cause in common get one remedy. */
void remedies_find(const struct host_facts *facts, const struct layer_report *layers,
                   struct remedies *ret);

/* For limits without a cgroup; `reason` is why there is none. */
void remedies_add_cgroup(const struct host_facts *facts, const char *reason, struct remedies *ret);

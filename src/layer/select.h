/* Which changes of a layer a request means. */
#pragma once

#include "layer/work.h"

struct chosen {
    const struct change *change;
    enum change_kind kind; /* of a rename its two halves: A and D */
    const char *path;      /* borrowed from the change */
};

struct selection {
    struct changes changes; /* all that were listed */
    struct chosen *items;
    size_t len;
    size_t cap;
};

enum select_for { SELECT_ACCEPT, SELECT_DROP };

/* Those that are asked for and may be taken; what may not is left, with the reason. The caller calls selection_done(). */
int select_changes(struct work *work, const struct accept_request *request, enum select_for use,
                   struct selection *ret, struct err *err);
void selection_done(struct selection *selection);

/* Sequences from seeds. */
#pragma once

#include "op.h"

enum { OPS_MAX = 48, PLACES_MAX = 8 };

struct wishes {
    const char *places[PLACES_MAX]; /* that are to be had */
    int places_len;
    bool is_root;     /* set-group-id modes are refused for root: none */
    bool has_sockets; /* bind is wanted, too */
};

/* The same for the same seed and wishes; returns how many. */
int invent(uint64_t seed, const struct wishes *wishes, struct op ret[OPS_MAX]);

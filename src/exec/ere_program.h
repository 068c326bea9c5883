/* What a pattern becomes: a small program for a machine that is in many states at once. Internal to
 * ere.h. */
#pragma once

#include "exec/ere.h"

#include <stdint.h>

enum ere_op {
    ERE_BYTE,  /* consumes the byte `a` */
    ERE_SET,   /* consumes a byte of sets[a] */
    ERE_JUMP,  /* goes on at +a */
    ERE_SPLIT, /* goes on at +a and at +b */
    ERE_BEGIN, /* of the text */
    ERE_END,   /* of the text */
    ERE_EDGE,  /* of a word */
    ERE_NOT_EDGE,
    ERE_MATCH,
};

/* Targets are relative, so code can be moved and copied. */
struct ere_step {
    enum ere_op op;
    int a;
    int b;
};

struct ere_set {
    uint8_t bits[32];
};

struct ere_program {
    struct ere_step *steps; /* the last is ERE_MATCH */
    size_t len;
    size_t cap;
    struct ere_set *sets;
    size_t sets_len;
    size_t sets_cap;
};

void ere_program_done(struct ere_program *program);

static inline bool ere_set_has(const struct ere_set *set, uint8_t byte)
{
    return set->bits[byte / 8] >> byte % 8 & 1;
}

static inline void ere_set_add(struct ere_set *set, uint8_t byte)
{
    set->bits[byte / 8] |= (uint8_t)(1 << byte % 8);
}

/* ere_parse.c. `program` is zeroed; on failure it holds what the caller has to release. */
int ere_parse(const char *pattern, struct ere_program *program, struct err *err);

/* ere_set.c. Of the bytes that \d \w \s \D \W \S stand for; false for another letter. */
bool ere_set_of_letter(char letter, struct ere_set *ret);

/* Reads a bracket expression, `*at` pointing behind its "[", and moves `*at` behind its "]". NULL,
 * or what is wrong. */
const char *ere_set_parse(const char **at, struct ere_set *ret);

/* String literals of a `.rules` file. Internal to rules. */
#pragma once

#include <stdbool.h>

struct buf;

struct rule_string {
    const char *at;  /* the prefix or opening quote; moves to behind the closing one, or to where
                        the problem is */
    const char *end; /* of the text */
    bool is_format;  /* f"..." */
    bool is_open;    /* the problem is that it never ends */
};

/* A quote, with or without the prefixes r, b, f, rb, rf in any case and order. */
bool rule_string_is_start(const char *at, const char *end);

/* Appends what the literal means; NULL, or what is wrong with it (static). The text has no NUL
 * bytes and is UTF-8. */
const char *rule_string_read(struct rule_string *string, struct buf *ret);

/* The key, or short sequence of keys, that leaves a terminal without ending what runs in it. Pure.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { DETACH_KEY_MAX = 8 }; /* keys in a sequence */

struct detach_key {
    char keys[DETACH_KEY_MAX];
    size_t len;  /* 0: there is none */
    size_t held; /* of them were pressed, and not passed on */
};

/* "ctrl-\", "ctrl-p,ctrl-q", "~,.", "none": keys with commas between, each one character or "ctrl-"
 * and one of a to z, [ \ ] ^ _. */
int detach_key_parse(const char *text, struct detach_key *ret, struct err *err);

/* Looks at what was typed. `ret` gets the bytes to pass on, at most len + DETACH_KEY_MAX of them;
 * returns whether the key was pressed: nothing behind it is passed on then. */
bool detach_key_filter(struct detach_key *key, const char *typed, size_t len, char *ret,
                       size_t *ret_len);

/* How the client speaks to a person: given by the layer above, which owns the console. */
#pragma once

#include <stdbool.h>

struct face {
    /* One line on stderr. */
    void (*say)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

    /* Whether the terminal is raw from here on, so that lines bring their own carriage return. */
    void (*set_raw)(bool is_raw);
};

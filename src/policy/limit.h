/* Limits of one command as people write them: which there are, what holds when nothing is said.
 *
 *     defaults <- configuration <- profile <- option or request         resource_limits_overlay()
 *
 * Who keeps them, and how it is known that one was hit: process/resource_limits.h. */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum resource_limit {
    LIMIT_MEMORY,        /* bytes of all processes together */
    LIMIT_CPU_TIME,      /* nanoseconds of each process; kept in whole seconds, rounded up */
    LIMIT_PIDS,          /* processes and threads */
    LIMIT_FILE_SIZE,     /* bytes of each file that is written */
    LIMIT_FILES,         /* open descriptors of each process */
    LIMIT_ADDRESS_SPACE, /* bytes of each process, reserved ones, too */
    LIMIT_COUNT
};

#define LIMIT_NONE UINT64_MAX /* said to be without a limit */

struct resource_limits {
    uint64_t of[LIMIT_COUNT]; /* 0: nothing is said */
    unsigned defaults;        /* bit 1 << limit: nobody said so */
};

/* What a command in a sandbox has when nobody says anything: docs/decisions/0032-limits.md. */
extern const struct resource_limits resource_limits_default;

/* "memory", "cpu-time", "pids", "file-size", "files", "address-space": as in --max-NAME. */
const char *resource_limit_name(enum resource_limit limit);

/* What `over` says counts, for the rest what is there. */
void resource_limits_overlay(struct resource_limits *limits, const struct resource_limits *over);

/* "2G", "10m", "4096", by the limit; "none" and 0 are LIMIT_NONE. ERR_INVALID also for what no program
 * could start in. */
int resource_limit_parse(enum resource_limit limit, const char *text, uint64_t *ret,
                         struct err *err);

/* The same of a number: bytes, nanoseconds, a count; 0 is LIMIT_NONE. */
int resource_limit_check(enum resource_limit limit, uint64_t number, uint64_t *ret,
                         struct err *err);

/* "2G", "90s", "4096", "none"; `ret` gets it, cut off where it does not fit. */
void resource_limit_format(enum resource_limit limit, uint64_t value, char *ret, size_t len);

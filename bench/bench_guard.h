/* The parts of bench_guard(), and what they share: the ways in which a command is run. */
#pragma once

#include "bench.h"

enum way { OUTSIDE, INSIDE, BEFORE, WAYS };

enum { WAY_ARGS_MAX = 32 };

extern const char *const way_names[WAYS];

/* BEFORE needs another build (--against). */
bool way_is_there(const struct bench *bench, enum way way);

/* `argv` as it is run this way; the words are borrowed. */
void way_argv(const struct bench *bench, enum way way, const char *const *argv,
              const char *ret[WAY_ARGS_MAX]);

/* A name that lives as long as the report. */
const char *name_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* One call at a time, on one processor and on as many as there are. */
void guard_calls_measure(struct bench *bench);

/* Programs that are told, or judged. */
void guard_execs_measure(struct bench *bench);

/* 64 sandboxes that make calls at once, by one guard; and its memory. */
void guard_crowd_measure(struct bench *bench);

/* What is there in memory beside a command of `cordon run`. */
void guard_memory_measure(struct bench *bench);

/* A command of `cordon serve`, from start to exited. */
void guard_server_measure(struct bench *bench);

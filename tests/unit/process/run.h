/* What the tests of process and of runs share: a process whose callbacks collect everything, and a
 * loop that runs until something has happened. */
#pragma once

#include "../base/support.h"

#include "base/buf.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "process/process.h"

#include <stdbool.h>

struct run {
    struct loop *loop;
    struct process *process;
    struct process_options options; /* to be changed between run_init() and run_start() */
    struct buf out[STREAM_COUNT];
    uint64_t offset; /* next one expected */
    unsigned started;
    unsigned room;
    unsigned closed;
    unsigned facts;
    unsigned ends;
    struct process_end end;
    bool is_over;
    const char *awaited; /* in either stream */
    bool has_come;
    bool frees_itself; /* in on_end */
};

void run_init(struct run *run);
void run_done(struct run *run);

/* `script` for sh -c; NULL: options.argv. */
void run_start(struct run *run, const char *script);
void run_until_started(struct run *run);
void run_until_fact(struct run *run, unsigned number);
void run_until_end(struct run *run);
void run_until_text(struct run *run, const char *text);
void run_shell(struct run *run, const char *script); /* start and until the end */

const char *run_text(const struct run *run, enum stream stream);

/* Checks the bytes of `emit`. */
void assert_emitted(const char *bytes, size_t len, size_t expected);

/* What tests of commands start from. */
extern char *const test_env[];

/* A FIFO that a command reads from, so that the test says when it goes on. */
struct gate {
    char *dir;
    char *path;
};

void gate_init(struct gate *gate);
void gate_open(const struct gate *gate); /* waits for the reader, then lets it see the end */
void gate_done(struct gate *gate);

/* `fmt` with the path for its "GATE". */
void gate_script(const struct gate *gate, char *script, size_t size, const char *fmt);

/* A bound on how long something may take that is never waited for. */
#define FAR_NS (600 * CLOCK_NS_PER_S)

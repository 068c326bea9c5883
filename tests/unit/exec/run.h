/* What the tests of process and oneshot share: a process whose callbacks collect everything, and a
 * loop that runs until something has happened. */
#pragma once

#include "../base/support.h"

#include "base/buf.h"
#include "exec/process.h"
#include "loop/loop.h"

#include <stdbool.h>

struct run {
    struct loop *loop;
    struct process *process;
    struct process_options options; /* to be changed between run_init() and run_start() */
    struct buf out[STREAM_COUNT];
    uint64_t offset; /* next one expected */
    pid_t pid;
    unsigned started;
    unsigned room;
    unsigned closed;
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
void run_until_end(struct run *run);
void run_until_text(struct run *run, const char *text);
void run_shell(struct run *run, const char *script); /* start and until the end */

const char *run_text(const struct run *run, enum stream stream);

/* Checks the bytes of `emit`. */
void assert_emitted(const char *bytes, size_t len, size_t expected);

/* What tests of commands start from. */
extern char *const test_env[];

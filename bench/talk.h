/* The two ways in which the benchmark of sessions talks to a program: by a session of cordon.h, and
 * with nothing between, by a pipe or terminal of its own. */
#pragma once

#include "bench.h"

#include "cordon.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TALK_READ_SIZE 65536 /* of one read, on both ways */

/* A session that is read as fast as it comes. */
struct talk {
    struct cordon_engine *engine;
    struct cordon_session *session;
    uint64_t total; /* bytes that came */
    bool is_over;
};

/* `policy` may be NULL: the engine's. */
void talk_start(struct talk *talk, struct cordon_engine *engine, const char *const *argv,
                unsigned flags, const struct cordon_policy *policy);

/* Waits for something, and does it. */
void talk_turn(struct cordon_engine *engine);

/* Waits for the end, which has to be exit code 0, and frees the session. */
void talk_finish(struct talk *talk);

/* A program started by posix_spawn(3). */
struct bare {
    int fd; /* gives its output, and takes its input if it is a terminal */
    pid_t pid;
};

void bare_start(struct bare *bare, const struct bench *bench, const char *const *argv, bool is_tty);
void bare_finish(struct bare *bare); /* waits for the end, which has to be exit code 0 */

void talk_check(int status, const struct cordon_error *error);

/* Programs that a command executes: told, judged, or run outside in its place. */
#pragma once

#include "guard/guard.h"

enum {
    EXECS_HELD_MAX = 1024, /* wait for an answer, or for what runs outside */
    EXECS_RUN_MAX = 1024,  /* whose end is watched */
    EXECS_TOLD_MAX = 4096, /* told one by one; what comes after is counted */
};

/* Before the first call of the command. false: what it wants cannot be had. */
bool exec_begin(struct command *command);

/* An exec that the guard was asked about. */
struct answer exec_call(const struct request *request);

/* The host's answer to a question; false when it is none about an exec. */
bool exec_answer(struct command *command, uint64_t id, enum guard_verdict verdict);

/* What ran outside for the exec `id` has ended. */
void exec_exit(struct command *command, uint64_t id, int wait_status);

/* Something has happened: a process has ended, a stub has something to say. */
void exec_look(struct command *command);

/* No process is left whose end would be told. */
bool exec_is_over(const struct command *command);

/* The command is over. */
void exec_end(struct command *command);

/* A host that has the guard tell and ask about programs: it answers as a test wants, runs outside what
 * is to run there, and writes down what it hears. */
#pragma once

#include "launching.h"

enum { OUTSIDE_MAX = 64 };

struct exec_host {
    /* What to answer to FACT_ASKED; NULL: yes to all. */
    enum launch_verdict (*judge)(struct exec_host *host, const struct launch_fact *fact);
    /* After each fact; may be NULL. */
    void (*on_fact)(struct exec_host *host, const struct launch_fact *fact);
    struct command command;
    struct buf log; /* a line for each fact: kind, name of the program, argv */
    unsigned execs, exits, asked, withdrawn, outside, refused;
    struct {
        uint64_t id;
        pid_t pid;
        int pidfd;
    } running[OUTSIDE_MAX]; /* outside */
    unsigned held;          /* never answered, by LAUNCH_HOLD */
};

enum { LAUNCH_HOLD = 100 }; /* a verdict of tests: no answer */

/* Runs the command to its end. */
struct ended exec_host_run(struct exec_host *host, struct sandbox *sandbox, const char *cwd,
                           char *const *argv);
void exec_host_done(struct exec_host *host);

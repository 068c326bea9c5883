/* What the tests of runs share: one run, and something to do once the command says "ready". */
#pragma once

#include "run.h"

#include "job/job_run.h"

struct shot {
    struct job_run_options options;
    struct job_result result;
    char *argv[4];
    struct buf live;
    int cancel[2];
    int raises;        /* signal to ourselves when ready */
    bool cancels;      /* when ready */
    const char *opens; /* FIFO to open and close when ready */
    int shows_on;      /* descriptor to copy output to; 0: none */
};

void shot_init(struct shot *shot, const char *script);
void shot_run(struct shot *shot);
void shot_done(struct shot *shot);
char *shot_text(struct shot *shot, enum stream stream);
void assert_text(struct shot *shot, enum stream stream, const char *expected);
void assert_text_has(struct shot *shot, const char *part);
void assert_end(const struct shot *shot, enum job_run_end end, int exit_code, int signal,
                int shell_code);

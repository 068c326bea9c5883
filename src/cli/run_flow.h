/* One command of `cordon run` through the engine: asked about, run, perhaps once more. */
#pragma once

#include "cli/run.h"
#include "cli/settings.h"
#include "executor/execution.h"

struct approvals;
struct prompt;
struct run_options;
struct run_audit;

/* Everything that lives as long as the command; borrowed: `options`, `audit`. */
struct run_flow {
    const struct run_options *options;
    struct run_audit *audit;
    struct settings settings;     /* given; outlives what borrows from it */
    const struct workspace *told; /* whose lacks were warned of */
    struct run_patch patch;       /* what the command is, if it is one */
    struct loop *loop;
    struct loop_timer *flush; /* of the audit, when the command runs for long */
    struct prompt *prompt;    /* the terminal that is asked at; NULL: none */
    struct approvals *approvals;
    struct execution_options execution_options;
    struct job_run_options job;
    struct execution *execution;
    size_t warned; /* of the warnings: those that were said */
    bool is_done;
};

/* Runs `argv` with the settings of the flow and the job's streams and limits, to its end.
 * -1 only for failures before there is an execution; run_flow_done() in any case. */
int run_flow_run(struct run_flow *flow, char **argv, struct err *err);
void run_flow_done(struct run_flow *flow);

/* Says, once each, what there is to warn of: before any output of the command. */
void run_flow_warn(struct run_flow *flow);

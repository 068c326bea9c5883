/* The parts of `cordon run`: its options, the command that is a patch, and what is told of a run: on
 * stderr, as JSON, and in the audit log. */
#pragma once

#include "base/err.h"
#include "cli/settings.h"
#include "patch/call.h"
#include "process/resource_limits.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit;
struct config_file;
struct execution_event;
struct execution_options;
struct execution_result;
struct job_run_options;
struct job_result;
struct settings;
struct strv;

/* --- options --- */

enum run_terminal {
    RUN_TERMINAL_AUTO, /* when stdin, stdout and stderr are one */
    RUN_TERMINAL_YES,
    RUN_TERMINAL_NO,
};

enum run_flag {
    RUN_JSON = 1,
    RUN_QUIET = 2,
    RUN_NO_AUDIT = 4,
};

enum run_input { RUN_INPUT_PIPE, RUN_INPUT_NULL };

struct run_options {
    struct policy_options policy;
    enum run_terminal terminal;
    enum run_input input; /* --stdin */
    unsigned flags;       /* of enum run_flag */
    uint64_t timeout_ns;
    uint64_t kill_after_ns;
    uint64_t max_output;
    struct resource_limits limits;
    const char *approval_hook;    /* NULL: none */
    uint64_t approval_timeout_ns; /* 0: none */
};

extern const struct option_group run_option_groups[];

void run_options_init(struct run_options *options);
void run_options_done(struct run_options *options);

/* --- run.c: a command that is a patch --- */

enum { RUN_PATCH_WORDS = 4 };

/* Zeroed: the command is no patch. */
struct run_patch {
    struct patch_call call;
    char *cwd; /* where it is applied: absolute */
    char *helper[RUN_PATCH_WORDS];
    char *program; /* which the helper is: this one */
};

/* Looks at the command, which is to be run in `directory`. ERR_INVALID for a patch without the word
 * apply_patch, and for a `cd` to a directory that is not there. */
int run_patch_init(struct run_patch *patch, char *const *argv, const char *dir, struct err *err);
void run_patch_done(struct run_patch *patch);

static inline bool run_patch_is_one(const struct run_patch *patch)
{
    return patch->call.kind == PATCH_CALL_PATCH;
}

/* Has the helper run in place of the command, and feeds it; nothing when it is no patch. */
void run_patch_fill(struct run_patch *patch, struct execution_options *execution,
                    struct job_run_options *job);

/* Says what is to be done when the helper was ended on its way. */
void run_patch_report(const struct run_patch *patch, const struct job_result *result);

/* --- run_report.c: lines and JSON --- */

/* Appends a line for the person when a needed layer is missing. */
void run_report_degradation(const struct sandbox *sandbox, struct strv *warnings);

/* ... when there is no sandbox at all. */
void run_report_no_sandbox(const struct settings *settings, struct strv *warnings);

/* Lines on stderr, after the output: time is up, a limit was reached, what was refused and what
 * would allow it. */
void run_report_notes(const struct job_result *result);

/* job/result_json.h's object on stdout, of the last attempt, and beside it:
 *
 *   "warnings": ["..."]            the lines that stand on stderr, too
 *   "approval": {...}              executor/execution.h's execution_to_json(); null when nothing was
 *                                  asked or refused
 *   in "sandbox": "mode": "auto" | "require" | "disabled", "degradation": "..." or null,
 *                 "profile": "workspace-write", "profile_from": "the default",
 *                 "network": "restricted" | "enabled"
 *
 * Returns an exit status. */
int run_report_json(const struct settings *settings, const struct execution_result *execution);

/* The same for a command that was not run: the keys as far as they are known, with "end":
 * "forbidden" | "rejected", "shell_exit_code": 126 and "failure": {"stage": "approval", ...}. */
void run_report_refusal_json(const struct settings *settings,
                             const struct execution_result *execution);

/* When Cordon failed before there was a result: the same keys as far as they are known, with
 * "end": "failed-to-start", "shell_exit_code": 125 and "failure": {"stage": "cordon", ...}. */
void run_report_failure_json(const struct err *err);

/* --- run_report.c: the audit log --- */

/* The events of a run. They are written in one go after the result is out, and when the command
 * runs for long, what is known meanwhile. A failure is said on stderr and is no reason for
 * anything. */
struct run_audit {
    struct audit *audit; /* NULL: nothing is written */
    char session[32];
    bool is_patch; /* it began as one */
    bool has_complained;
};

/* There is a directory for the log, or there may be one. */
bool run_audit_has_place(const struct config_file *file);

/* How the log names it: "auto", "require", "disabled". */
const char *run_audit_mode_name(enum sandbox_mode mode);

void run_audit_init(struct run_audit *audit, const struct settings *settings);
void run_audit_begin(struct run_audit *audit, const struct settings *settings, char *const *argv);
void run_audit_event(struct run_audit *audit, const struct settings *settings,
                     const struct execution_event *event);
void run_audit_result(struct run_audit *audit, const struct execution_result *result);
void run_audit_failure(struct run_audit *audit, const char *reason);
/* A patch, which is no command; run_audit_result() ends one, too. `reason` when it was not applied;
 * may be NULL. */
void run_audit_patch_begin(struct run_audit *audit, const char *dir, uint64_t bytes);
void run_audit_patch_end(struct run_audit *audit, bool is_applied, const char *reason);

void run_audit_flush(struct run_audit *audit); /* writes what there is by now */
void run_audit_done(struct run_audit *audit);  /* writes the rest */

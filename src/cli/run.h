/* What is told of a run: on stderr, as JSON, and in the audit log. `cordon patch` and `cordon script`
 * tell the same way. */
#pragma once

#include "base/err.h"
#include "cli/settings.h"
#include "executor/execution_audit.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

struct audit;
struct config_file;
struct execution_event;
struct execution_result;
struct job_result;
struct settings;
struct strv;
struct timeline;

/* --- lines and JSON --- */

/* Appends a line for the person when a needed layer is missing. */
void run_report_degradation(const struct sandbox *sandbox, struct strv *warnings);

/* Lines on stderr, after the output: time is up, a limit was reached, what was refused and what
 * would allow it. */
void run_report_notes(const struct job_result *result);

/* What the command made or changed that somebody runs or obeys later (policy/run_later.h); zeroed: nothing yet. */
struct run_later {
    const struct job *job; /* of the attempt that was looked at last; not used otherwise */
    uint64_t seq;          /* of its job_audit_timeline(), likewise */
    struct strv paths;     /* each once */
};

/* There are new events. */
void run_later_look(struct run_later *later, const struct job *job);

/* A line on stderr, if there is something to say: also that nobody could tell. */
void run_report_later(const struct run_later *later, const struct job_result *result);

/* Lines on stderr: what the command did, and the programs that it ran; or that nobody could tell. */
void run_report_timeline(const struct job_result *result, unsigned topics);

/* job/result_json.h's object on stdout, of the last attempt, and beside it:
 *
 *   "warnings": ["..."]            the lines that stand on stderr, too
 *   "approval": {...}              executor/execution.h's execution_to_json(); null when nothing was
 *                                  asked or refused
 *   "runs_later": [{"path": "...", "by": "make"}] or null, when nobody could tell; only with `later`,
 *                                  which may be NULL
 *   in "sandbox": "mode": "auto" | "require" | "disabled", "degradation": "..." or null,
 *                 "profile": "workspace-write", "profile_from": "the default",
 *                 "network": "restricted" | "enabled"
 *
 * Returns an exit status. */
int run_report_json(const struct settings *settings, const struct execution_result *execution,
                    const struct run_later *later);

/* The same for a command that was not run: the keys as far as they are known, with "end":
 * "forbidden" | "rejected", "shell_exit_code": 126 and "failure": {"stage": "approval", ...}. */
void run_report_refusal_json(const struct settings *settings,
                             const struct execution_result *execution);

/* When Cordon failed before there was a result: the same keys as far as they are known, with
 * "end": "failed-to-start", "shell_exit_code": 125 and "failure": {"stage": "cordon", ...}. */
void run_report_failure_json(const struct err *err);

/* --- the audit log --- */

/* The events of a run. They are written in one go after the result is out, and when the command
 * runs for long, what is known meanwhile. A failure is said on stderr and is no reason for
 * anything. */
struct run_audit {
    struct audit *audit; /* NULL: nothing is written */
    char session[32];
    bool is_patch; /* it began as one */
    bool has_complained;
    struct audit_trail trail; /* of the attempt that runs */
};

/* There is a directory for the log, or there may be one. */
bool run_audit_has_place(const struct config_file *file);

/* How the log names it: "auto", "require", "disabled". */
const char *run_audit_mode_name(enum sandbox_mode mode);

void run_audit_init(struct run_audit *audit, const struct settings *settings);
void run_audit_begin(struct run_audit *audit, const struct settings *settings, char *const *argv);
void run_audit_event(struct run_audit *audit, const struct settings *settings,
                     const struct execution_event *event);
/* What the command did since; NULL for `timeline`: it has ended. */
void run_audit_trace(struct run_audit *audit, const struct timeline *timeline);
void run_audit_result(struct run_audit *audit, const struct execution_result *result);
void run_audit_failure(struct run_audit *audit, const char *reason);
/* A patch, which is no command; run_audit_result() ends one, too. `reason` when it was not applied;
 * may be NULL. */
void run_audit_patch_begin(struct run_audit *audit, const char *dir, uint64_t bytes);
void run_audit_patch_end(struct run_audit *audit, bool is_applied, const char *reason);

/* Writes what there is by now; waits that long when others hold the log. */
void run_audit_flush(struct run_audit *audit, uint64_t wait_ns);
void run_audit_done(struct run_audit *audit); /* writes the rest */

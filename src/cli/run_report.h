/* What `cordon run` says about a run: lines for people, or one JSON value. */
#pragma once

#include "base/err.h"

struct execution_result;
struct oneshot_result;
struct sandbox;
struct settings;
struct strv;

/* Appends a line for the person when a needed layer is missing. */
void run_report_degradation(const struct sandbox *sandbox, struct strv *warnings);

/* ... when there is no sandbox at all. */
void run_report_no_sandbox(const struct settings *settings, struct strv *warnings);

/* Lines on stderr, after the output: time is up, a limit was reached, what was refused and what
 * would allow it. */
void run_report_notes(const struct oneshot_result *result);

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

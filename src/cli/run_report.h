/* What `cordon run` says about a run: lines for people, or one JSON value. */
#pragma once

#include "base/err.h"

struct oneshot_result;
struct sandbox;
struct settings;
struct strv;

/* Appends a line for the person when a needed layer is missing. */
void run_report_degradation(const struct sandbox *sandbox, struct strv *warnings);

/* ... when there is no sandbox at all, to the settings' warnings. */
void run_report_no_sandbox(struct settings *settings);

/* Lines on stderr, after the output: time is up, a limit was reached, what was refused and what
 * would allow it. */
void run_report_notes(const struct oneshot_result *result);

/* exec/result_json.h's object on stdout, and beside it:
 *
 *   "warnings": ["..."]            the lines that stand on stderr, too
 *   in "sandbox": "mode": "auto" | "require" | "disabled", "degradation": "..." or null,
 *                 "profile": "workspace-write", "profile_from": "the default",
 *                 "network": "restricted" | "enabled"
 *
 * Returns an exit status. */
int run_report_json(const struct settings *settings, const struct oneshot_result *result);

/* When Cordon failed before there was a result: the same keys as far as they are known, with
 * "end": "failed-to-start", "shell_exit_code": 125 and "failure": {"stage": "cordon", ...}. */
void run_report_failure_json(const struct err *err);

/* What is told of an execution: lines for a person, and one JSON value. `cordon run` prints them itself; the
 * client of a server gets them with the answer. */
#pragma once

#include "base/strv.h"
#include "executor/execution.h"
#include "workspace/workspace.h"

#include <jansson.h>

struct err;
struct job;
struct result_texts;
struct sandbox;

/* --- before, and while it runs --- */

/* Appends a line when a needed layer is missing. Once the sandbox stands: which layers this host has is only
 * known then. */
void execution_warn_of_defences(const struct sandbox *sandbox, struct strv *warnings);

/* Appends a line when an attempt has no sandbox, or a trace lacks something. */
void execution_warn_of_attempt(const struct workspace *workspace, enum run_where where,
                               struct strv *warnings);

/* What the command made or changed that somebody runs or obeys later (policy/run_later.h); zeroed: nothing yet. */
struct run_later {
    const struct job *job; /* of the attempt that was looked at last; not used otherwise */
    uint64_t seq;          /* of its job_audit_timeline(), likewise */
    struct strv paths;     /* each once */
};

/* There are new events. */
void run_later_look(struct run_later *later, const struct job *job);

/* --- behind the output of one that ran --- */

/* Time is up, a limit was reached, what was refused and what would allow it. */
void execution_notes(const struct job_result *result, struct strv *ret);

/* A file of this machine that the words of a command that failed name, and that it did not see because its /tmp
 * is private. */
void execution_tmp_notes(const struct job_result *result, char *const *argv, struct strv *ret);

/* What the command did, and the programs that it ran; or that nobody could tell. */
void execution_trace_notes(const struct job_result *result, unsigned topics, struct strv *ret);

/* Which files are obeyed later, if there are any; also that nobody could tell. */
void execution_later_notes(const struct run_later *later, const struct job_result *result,
                           struct strv *ret);

/* --- as JSON --- */

const char *execution_mode_name(enum sandbox_mode mode); /* "auto", "require", "disabled" */

/* job/result_json.h's object, of the last attempt, and beside it:
 *
 *   "warnings": ["..."]            the lines that stand on stderr, too
 *   "approval": {...}              execution_to_json(); null when nothing was asked or refused
 *   "runs_later": [{"path": "...", "by": "make"}] or null, when nobody could tell; only with `later`,
 *                                  which may be NULL
 *   in "sandbox": "mode": "auto" | "require" | "disabled", "degradation": "..." or null,
 *                 "profile": "workspace-write", "profile_from": "the default",
 *                 "network": "restricted" | "enabled"
 *
 * Of a command that was not run the same keys as far as they are known, with "end": "forbidden" | "rejected",
 * "shell_exit_code": 126 and "failure": {"stage": "approval", ...}. Not for one that failed by us. */
json_t *execution_document(const struct execution_result *execution,
                           const struct workspace *workspace, char *const *warnings,
                           const struct run_later *later, struct result_texts *texts);

/* When Cordon failed before there was a result: the same keys, with "end": "failed-to-start",
 * "shell_exit_code": 125 and "failure": {"stage": "cordon", ...}. */
json_t *execution_failure_document(const struct err *err);

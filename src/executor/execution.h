/* One command on its way: may it run, is there a question, where does it run, and, when its
 * sandbox refused it something, does it run once more.
 *
 *     execution_start() -> on_event ... -> on_done
 *     execution_result()
 *     execution_free()                                       at any time
 *
 *     deciding -> asking -> running -> asking about a retry -> retrying -> done
 *
 * A state machine that the loop drives: nothing in here waits, so any number of them can be on
 * their way. The flow is Codex's. Ours: the retry is offered with the
 * smallest widening of the profile that would have helped (grant.h), before it is offered without a
 * sandbox; both attempts are in the result. Where the profile says watch = "ask" the question comes
 * while the command runs, and what was refused waits for it (held.h); after a no there is no retry.
 * Time runs only while the command does. */
#pragma once

#include "approval/approval.h"
#include "approval/requirement.h"
#include "base/err.h"
#include "base/strv.h"
#include "job/job_run.h"
#include "workspace/rule_layers.h"

#include <stdbool.h>
#include <stddef.h>

struct approvals;
struct denial;
struct execution;
struct held_event;
struct job;
struct json_t;
struct loop;
struct profile_overlay;
struct result_texts;
struct rules;
struct snapshots;
struct workspace;

enum execution_event_kind {
    EXECUTION_ASKED,    /* question */
    EXECUTION_ANSWERED, /* answer, rule; question: of what is held, which may have several open */
    EXECUTION_HELD,     /* held: what was held is not any more */
    EXECUTION_DENIED,   /* denial, of an attempt that failed */
    EXECUTION_RETRIED,  /* words: with what */
};

/* All borrowed for the call. */
struct execution_event {
    enum execution_event_kind kind;
    const struct approval_request *question;
    const struct approval_answer *answer;
    const char *rule; /* the line that was added to the rules; NULL: none */
    const struct denial *denial;
    const char *words;
    const struct held_event *held; /* also with ASKED and ANSWERED, of what is held; else NULL */
};

enum execution_gate {
    EXECUTION_ASKS,         /* the approval policy decides */
    EXECUTION_FORBIDS_ONLY, /* no policy was chosen: what a rule forbids is held, as is what a
                               broken rules file might; nothing else changes */
    EXECUTION_UNRULED,      /* nothing is decided: the sandbox alone holds it */
};

/* One command and everything that its host knows of it. Borrowed until the execution is freed, but
 * for the workspace, which is held. */
struct execution_options {
    struct loop *loop;
    struct workspace *workspace; /* of the call; opened before the first attempt */
    struct rule_owner rules;     /* whose rules count: read when it starts */
    enum execution_gate gate;
    struct approval_policy policy;
    struct approvals *approvals; /* NULL: no question can be asked */

    char *const *argv;
    char *const
        *replacement_argv; /* executed in its place, with an empty environment: the helper for a
                              patch; NULL: argv itself */
    char *const *patched;  /* of a patch: its files, as in struct approval_call; NULL: none */
    char *const *env;      /* complete; NULL: that of the workspace which it runs in */
    char *const *own_env;  /* the same without what the call sets; NULL: it sets nothing */
    const char *cwd;
    const char *justification; /* by the caller who wants it run; NULL: none */
    enum sandbox_permissions permissions;
    const struct profile_overlay *additional; /* NULL: none */
    char *const *proposed; /* prefix that the caller would like to be allowed; NULL: none */
    bool is_last;          /* of its session: nothing is worth being remembered for it */

    struct snapshots *snapshots; /* of login shells; NULL: none is used */
    char *const *snapshot_env;  /* `env` without what the call itself sets; NULL: the workspace's */
    char *const *snapshot_keep; /* as in struct snapshot_request; NULL: the workspace's */

    /* How it runs: everything that is not said here. Its callbacks get its `data`. */
    const struct job_run_options *job;
    /* Each may be NULL, but for on_done. */
    void (*on_attempt)(void *data, enum run_where where, struct workspace *workspace);
    void (*on_snapshot_failed)(void *data, const struct err *why);
    void (*on_event)(void *data, const struct execution_event *event);
    void (*on_done)(void *data); /* once, never from execution_start() */
    void *data;
};

enum execution_outcome {
    EXECUTION_RAN,       /* attempts: at least one */
    EXECUTION_FORBIDDEN, /* `reason` */
    EXECUTION_REJECTED,  /* the answer was not yes: `reason`, `decision` */
    EXECUTION_FAILED,    /* by us, before anything ran: `failure` */
};

struct execution_attempt {
    enum run_where where;
    char *widened; /* what it got beyond the profile, in words; NULL: nothing */
    struct job_result result;
};

enum { EXECUTION_ATTEMPTS_MAX = 2 };

struct execution_result {
    enum execution_outcome outcome;
    enum approval_decision decision; /* the last one; only read when REJECTED */
    char *reason;                    /* NULL: none */
    struct err failure;
    struct execution_attempt attempts[EXECUTION_ATTEMPTS_MAX];
    size_t attempts_len;
    struct json_t *questions; /* array of approval_request_to_json() with "answer"; of what was held
                                 also "held_ms", and "done": a yes led to it */
    struct strv problems;     /* lines for people: rules files that do not parse; from the start */
    struct strv warnings;     /* lines for people: a rule that could not be written, ... */
};

/* Never NULL. */
struct execution *execution_start(const struct execution_options *options);
/* Begins at once and not when the loop comes round: for the caller of execution_start() that has kept
 * what it gave, right after it. Every callback but on_done may come from within. */
void execution_begin(struct execution *execution);
void execution_free(struct execution *execution);

/* The terminal of the command that runs, if one does: job_run_lend_terminal(). */
void execution_lend_terminal(struct execution *execution, bool on);

/* The command that runs; NULL when none does. Borrowed, for the call. */
struct job *execution_job(const struct execution *execution);

/* Stops waiting for an answer (the command is then rejected), or ends the command. */
void execution_cancel(struct execution *execution);

/* After on_done; borrowed until execution_free(). */
const struct execution_result *execution_result(const struct execution *execution);

/* For a shell: the last attempt's job_result_exit_code(), or one of these. */
enum { EXECUTION_EXIT_FAILED = 125, EXECUTION_EXIT_REFUSED = 126 };
int execution_exit_code(const struct execution_result *result);

/* "ran", "forbidden", "rejected", "failed" */
const char *execution_outcome_name(enum execution_outcome outcome);

/* {"outcome", "decision": null or wire name, "reason", "questions": [...], "attempts": [{"place":
 * "sandbox"|"widened"|"none", "widened": null or words, "result": {...}}]}: with `result` as
 * job/result_json.h has it. A new reference. */
struct json_t *execution_to_json(const struct execution_result *result, struct result_texts *texts);

/* --- what is decided from the options alone, before the first attempt, and after a sandbox has
 * refused it something; `cordon explain` shows what execution_start() begins with --- */

/* The rules that count for it, sealed; the caller frees them. NULL under EXECUTION_UNRULED. */
struct rules *execution_rules(const struct execution_options *options);

/* What it begins with: may it run, is there a question, where does it run. Of the options it reads
 * all but the job and the callbacks. */
void execution_decide(const struct execution_options *options, const struct rules *rules,
                      struct requirement *ret);

/* What would run outside of the sandbox of a workspace that nothing leaves is forbidden, with the remedy as its reason. */
void execution_keep_inside(const struct workspace *workspace, struct requirement *requirement);

/* What holds commands in it. */
enum confinement execution_confinement(const struct workspace *workspace);

/* Under which a yes for the session is remembered: approval_keys(). */
void execution_keys(const struct execution_options *options, struct strv *ret);

/* Flags; 0: the denial is the result. */
enum execution_retry_way {
    EXECUTION_RETRY_GRANT = 1 << 0,      /* in the sandbox, widened by what was refused */
    EXECUTION_RETRY_UNCONFINED = 1 << 1, /* without a sandbox */
    EXECUTION_RETRY_AGREED = 1 << 2,     /* the first yes covers it: no question is put */
};

unsigned execution_retry_ways(const struct execution_options *options, bool has_grant,
                              bool was_approved);

/* Whether what a sandbox refuses it is held while somebody is asked. */
bool execution_holds(const struct execution_options *options);

/* Whether a yes to the first question covers a second attempt: then it has to say so. */
bool execution_retry_is_covered(const struct execution_options *options);

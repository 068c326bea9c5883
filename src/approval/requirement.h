/* May this command run, is there a question first, and where would it run: the one decision
 * before every command. Pure: values in, a value out; no question is asked here and nothing is run.
 *
 *     struct requirement_request -> requirement_decide() -> skip | ask | forbid, where, and why
 *     after a denial:               requirement_retry()  -> no | ask | approved already
 *
 * Every cell of the decision is a row of tests/cases/requirement/table.txt. */
#pragma once

#include "approval/approval_policy.h"
#include "base/strv.h"

#include <stdbool.h>
#include <stddef.h>

struct access_map;
struct prefix_rule;
struct program_finder;
struct rules;

/* --- the decision --- */

enum requirement_flag {
    REQUIREMENT_HAS_ADDITIONAL = 1 << 0, /* the call lists additional permissions, not empty */
    REQUIREMENT_GRANTED = 1 << 1,        /* and all of them were granted earlier */
    REQUIREMENT_APPROVED = 1 << 2,       /* the session's cache holds every key of this call */
    REQUIREMENT_FORBIDS_ONLY = 1 << 3,   /* no approval policy was chosen, so no question is put:
                                          what a rule forbids, or a broken file might, is refused;
                                          all else runs in its sandbox. Of the request only `argv`
                                          and `rules` count, and `policy` (`never`) for the words */
    REQUIREMENT_EXEC =
        1 << 4, /* a program that a command in a sandbox executes, with these words: no
                                  shell's script is read, since what it executes comes here, too */
};

struct requirement_request {
    char *const *argv; /* as the caller gave it; a shell's script is read */
    const struct program_finder
        *finder; /* where names lead (rules/shell/command_class.h); NULL: nowhere,
                                            and no command is known to be harmless */
    const struct access_map *access; /* sorted: what the sandbox lets commands write; NULL: not
                                            known, and every program is what its name says */
    const struct rules *rules;       /* sealed */
    char *const *proposed; /* a prefix that the caller would like to be allowed; NULL: none */
    const char
        *variable; /* name of one that the call sets and that may change what runs, so that no
                              rule lets it out; NULL: none */
    struct approval_policy policy;
    enum confinement confinement;
    enum sandbox_permissions permissions;
    unsigned flags; /* of enum requirement_flag */
};

enum requirement_outcome { REQUIREMENT_SKIP, REQUIREMENT_ASK, REQUIREMENT_FORBID };

/* Where the first attempt runs, if it does (for ASK: if the answer is yes). */
enum run_where {
    RUN_SANDBOXED, /* as the profile says */
    RUN_WIDENED,   /* the same, with the additional permissions */
    RUN_UNCONFINED /* without a sandbox of ours */
};

enum requirement_cause {
    REQUIREMENT_BY_CALL,     /* the call asks for what it may not, or contradicts itself */
    REQUIREMENT_BY_RULE,     /* `rule` says so */
    REQUIREMENT_BY_PROBLEM,  /* a rules file is broken, and no other decides */
    REQUIREMENT_BY_DANGER,   /* the command is known to be dangerous */
    REQUIREMENT_BY_SAFETY,   /* every command is known to be harmless */
    REQUIREMENT_BY_POLICY,   /* the approval policy and the profile */
    REQUIREMENT_BY_APPROVAL, /* an answer was yes for the session */
};

struct requirement {
    enum requirement_outcome outcome;
    enum run_where where;
    enum requirement_cause cause;
    const struct prefix_rule *rule; /* of the rules; NULL unless a rule decides */
    char *reason;                   /* one sentence for people */
    struct strv proposal; /* prefix that could be allowed for good; empty: none is to be offered */
};

void requirement_decide(const struct requirement_request *request, struct requirement *ret);

void requirement_done(struct requirement *requirement);
const char *requirement_outcome_name(enum requirement_outcome outcome); /* "skip", "ask", ... */
const char *requirement_cause_name(enum requirement_cause cause);       /* "call", "rule", ... */
const char *run_where_name(enum run_where where); /* "sandbox", "widened", "none" */

/* --- after a denial --- */

enum retry_tool { RETRY_COMMAND, RETRY_PATCH };
struct retry_request {
    struct approval_policy policy;
    enum confinement confinement;
    enum retry_tool tool;
    bool was_approved; /* by a yes to a question before the first attempt */
};

enum retry_outcome {
    RETRY_NO,  /* the denial is the result */
    RETRY_ASK, /* a yes runs it once more */
    RETRY_YES, /* the yes to the first attempt covers it */
};

/* Whether a second attempt may run, without a sandbox. */
enum retry_outcome requirement_retry(const struct retry_request *request);

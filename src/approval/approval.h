/* Questions to whoever has to agree before a command runs, and their answers. Values only;
 * approvals.h asks. Source of words: spec/exec-core.md 4.6. */
#pragma once

#include "base/err.h"
#include "base/strv.h"

#include <stdbool.h>

struct json_t;

/* Wire names in the comments. */
enum approval_decision {
    APPROVAL_APPROVED,    /* approved: this once */
    APPROVAL_FOR_SESSION, /* approved_for_session: and whenever the same is asked again */
    APPROVAL_WITH_RULE,   /* approved_execpolicy_amendment: and for good, by a new rule */
    APPROVAL_UNCONFINED,  /* approved_without_sandbox: this once, and without a sandbox; of ours */
    APPROVAL_DENIED,      /* denied */
    APPROVAL_TIMED_OUT,   /* timed_out: nobody answered, which is a no */
    APPROVAL_ABORT,       /* abort: no, and stop whatever this is part of */
};

enum { APPROVAL_DECISIONS = APPROVAL_ABORT + 1 };

enum approval_kind {
    APPROVAL_KIND_COMMAND, /* command: before it runs */
    APPROVAL_KIND_RETRY,   /* retry: the sandbox refused it something; once more? */
};

/* Zeroed is valid; all owned. */
struct approval_request {
    char *id;
    enum approval_kind kind;
    struct strv argv;
    char *cwd;
    char *reason;         /* why it is asked; never NULL once asked */
    char *covers;         /* what a yes would allow, in words */
    struct strv proposal; /* prefix that APPROVAL_WITH_RULE would allow */
    struct strv keys;     /* what APPROVAL_FOR_SESSION stores (approval_key.h); empty: never */
    bool is_wider;        /* the keys stand for more than this call: it is joined only by one with
                             its words and folder */
    unsigned offers;      /* decisions that may be given: bit 1 << decision */
};

struct approval_answer {
    enum approval_decision decision;
    const char *by; /* "terminal", "hook", "client", "session", "nobody", ...; static */
    char *reason;   /* what the answerer said; owned, may be NULL */
};

void approval_request_done(struct approval_request *question);
void approval_answer_done(struct approval_answer *answer);

const char *approval_decision_name(enum approval_decision decision); /* wire name */

/* ERR_INVALID for a word that is none, or a decision that the question does not offer; the message
 * lists those that it does. */
int approval_decision_parse(const char *word, const struct approval_request *question,
                            enum approval_decision *ret, struct err *err);

bool approval_decision_is_yes(enum approval_decision decision);
bool approval_offers(const struct approval_request *question, enum approval_decision decision);

/* {"id", "kind": "command"|"retry", "argv": [...], "cwd", "reason", "covers",
 *  "proposed_execpolicy_amendment": [...] or null, "available_decisions": ["approved", ...]};
 * a new reference. */
struct json_t *approval_request_to_json(const struct approval_request *question);

/* {"decision", "by", "reason"} */
struct json_t *approval_answer_to_json(const struct approval_answer *answer);

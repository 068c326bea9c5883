/* Questions that have to be answered before a command runs or while it does, and their answers. Values only, and pure;
 * approvals.h asks. The words on the wire are those of Codex. */
#pragma once

#include "approval/requirement.h"
#include "base/err.h"
#include "base/strv.h"
#include "policy/network_policy.h"

#include <stdbool.h>

struct json_t;
struct profile;
struct profile_overlay;

/* Wire names in the comments. */
enum approval_decision {
    APPROVAL_APPROVED,    /* approved: this once */
    APPROVAL_FOR_SESSION, /* approved_for_session: and whenever the same is asked again */
    APPROVAL_WITH_RULE,   /* approved_execpolicy_amendment: and for good, by a new rule */
    APPROVAL_UNCONFINED,  /* approved_without_sandbox: this once, and without a sandbox; of ours */
    APPROVAL_DENIED,      /* denied */
    APPROVAL_TIMED_OUT,   /* timed_out: no answer came, which is a no */
    APPROVAL_ABORT,       /* abort: no, and stop whatever this is part of */
    APPROVAL_NO_BY_RULE,  /* denied_execpolicy_amendment: no, and for good, by a new rule */
};

enum { APPROVAL_DECISIONS = APPROVAL_NO_BY_RULE + 1 };

enum approval_kind {
    APPROVAL_KIND_COMMAND, /* command: before it runs */
    APPROVAL_KIND_RETRY,   /* retry: the sandbox refused it something; once more? */
    APPROVAL_KIND_HELD,    /* held: while it runs; the call that the sandbox refuses waits */
};

/* That a command wants to connect to. */
struct approval_host {
    char *
        name; /* as net_host_parse() gives it, so that none can look like another; NULL: it is about no host */
    unsigned port;
    enum network_protocol protocol;
};

/* Zeroed is valid; all owned. */
struct approval_request {
    char *id;
    enum approval_kind kind;
    struct strv argv;
    char *cwd;
    char *reason;          /* why it is asked; never NULL once asked */
    char *covers;          /* what a yes would allow, in words */
    char *programs;        /* "make = /usr/bin/make", where the names lead; "" or NULL: not known */
    struct strv variables; /* "NAME=value", that the call sets */
    struct strv proposal;  /* prefix that APPROVAL_WITH_RULE would allow */
    struct approval_host host; /* a rule is about its protocol, at every port */
    int number;                /* of the session of a model whose command asks; 0: of none */
    struct strv keys;          /* what APPROVAL_FOR_SESSION stores; empty: never */
    bool is_wider;   /* the keys stand for more than this call: it is joined only by one with
                             its words and directory */
    unsigned offers; /* decisions that may be given: bit 1 << decision */
};

struct approval_answer {
    enum approval_decision decision;
    const char *by; /* "terminal", "hook", "client", "session", "nobody", ...; static */
    char *reason;   /* what the answerer said; owned, may be NULL */
};

void approval_request_copy(const struct approval_request *question, struct approval_request *ret);
void approval_request_done(struct approval_request *question);
void approval_answer_done(struct approval_answer *answer);

const char *approval_decision_name(enum approval_decision decision); /* wire name */

/* ERR_INVALID for a word that is none, or a decision that the question does not offer; the message
 * lists those that it does. */
int approval_decision_parse(const char *word, const struct approval_request *question,
                            enum approval_decision *ret, struct err *err);

bool approval_decision_is_yes(enum approval_decision decision);
bool approval_offers(const struct approval_request *question, enum approval_decision decision);

/* {"id", "kind": "command"|"retry"|"held", "argv": [...], "cwd", "reason", "covers",
 *  "programs", "variables": [...],
 *  "proposed_execpolicy_amendment": [...] or null,
 *  "network": {"host", "port", "protocol"} or null, "available_decisions": ["approved", ...]};
 * a new reference. */
struct json_t *approval_request_to_json(const struct approval_request *question);

/* {"decision", "by", "reason"} */
struct json_t *approval_answer_to_json(const struct approval_answer *answer);

/* --- keys of the session --- */

/* No person reads the names of more; and keys are compared with each other. */
enum { APPROVAL_FILES_MAX = 500 };

/* The command and what surrounds it. */
struct approval_call {
    char *const *argv;
    const char *cwd;
    enum sandbox_permissions permissions;
    const struct profile_overlay *additional; /* NULL: none */
    char *const *patched; /* NULL: it is a command. Else it is a patch of these files, absolute and
                             clean; none: it is not known of which */
    const char *programs; /* as in struct approval_request */
    const struct strv *variables;  /* the same; NULL: none */
    const struct profile *profile; /* of its sandbox; NULL: not known */
    char *const *roots;            /* of its workspace; NULL: none */
};

/* The keys of the call, sorted: JSON texts. That of a command is equal for calls that are
 * the same: their command (a shell that runs a single plain command counts as that command; one
 * with any other script as that script), the programs that the names lead to, directory, variables, sandbox and
 * permissions. A patch
 * has one for each file, with the permissions, whatever it does to the file and wherever it is
 * applied; without a file, or with more than APPROVAL_FILES_MAX, it has none, so nothing is
 * remembered. `ret` is empty before. */
void approval_keys(const struct approval_call *call, struct strv *ret);

/* The key of what is held: what is done, and the words that say to what. Caller frees. */
char *approval_held_key(const char *what, char *const *places);

/* --- what a question says to people --- */

/* The text as one line that cannot command a terminal or pass for another one, by utf8_plain().
 * NULL becomes "". Caller frees. */
char *approval_plain_text(const char *text);

/* The command in that way, quoted as for a shell. Caller frees. */
char *approval_command_text(char *const *argv);

/* What a rule for the host of the question would be about: "https to example.com, at every port". Caller frees. */
char *approval_host_text(const struct approval_host *host);

/* The key of such a rule, as if it had been read: the answer counts at once, also where a workspace was made before it. Caller
 * frees. */
char *approval_host_key(const struct approval_host *host);

/* A path or name likewise, so that no part of it passes for the words around it. Caller frees. */
char *approval_word_text(const char *word);

struct approval_scope {
    enum run_where where;
    const char *profile;  /* its name */
    const char *widened;  /* what it gets beyond, in words; NULL: nothing */
    bool covers_retry;    /* and a second attempt without a sandbox */
    char *const *patched; /* files whose later patches a yes for the session covers; NULL: none */
};

/* What a yes would allow, as a sentence without a full stop. Of many files it names a few, and says
 * how many more there are. Caller frees. */
char *approval_covers(const struct approval_scope *scope);

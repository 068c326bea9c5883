/* What was refused to a command, as structured facts with a remedy.
 *
 * Two sources, told apart by `evidence`: what the launcher or the kernel reported (fact), and the
 * keyword rule of Codex over the output of a command that failed (heuristic), sharpened by looking
 * for the path in the line and asking the access map who decides about it. */
#pragma once

#include "policy/access.h"
#include "process/process.h"

#include <stdbool.h>
#include <stddef.h>

enum denial_operation {
    DENIAL_READ,
    DENIAL_WRITE,
    DENIAL_EXECUTE,
    DENIAL_CONNECT, /* the network */
    DENIAL_OTHER,   /* something refused without a path: a system call, a mount, ... */
};

enum denial_evidence { DENIAL_FACT, DENIAL_HEURISTIC };

/* Who refuses, as far as the profile can tell. */
enum denial_source {
    DENIAL_BY_SANDBOX, /* the profile denies it: `origin` names the deciding entry */
    DENIAL_BY_HOST,    /* the profile allows it: plain file permissions, or the host's network */
    DENIAL_BY_UNKNOWN, /* words without a path */
};

struct denial {
    enum denial_operation operation;
    enum denial_evidence evidence;
    enum denial_source source;
    char *path;   /* absolute; NULL when not known */
    char *host;   /* for DENIAL_CONNECT; NULL when not known */
    int error;    /* errno value; 0 when not known */
    char *origin; /* who decided, from the access map; NULL when not known */
    char *remedy; /* which flag or config line would allow it, one or two sentences; never NULL */
};

struct denials {
    struct denial *items;
    size_t len;
    size_t cap;
};

#define DENIALS_MAX 16 /* of one command; what comes after says nothing new */

/* Everything that the decision is made from. */
struct denial_input {
    const struct access_map *access; /* NULL: no sandbox, nothing is denied by it */
    const char *cwd;                 /* for relative paths in the output */
    const struct process_end *end;
    const char *program;             /* argv[0] or what was executed; for a failed start */
    const char *texts[STREAM_COUNT]; /* retained output, NUL-terminated, or NULL */
};

/* Pure: looks at the values only. Appends to `ret`. */
void denials_find(const struct denial_input *input, struct denials *ret);
void denials_done(struct denials *denials);

/* Whether the command was stopped by the sandbox rather than by something else. */
bool denials_by_sandbox(const struct denials *denials);

const char *denial_operation_name(enum denial_operation operation); /* "read", "write", ... */
const char *denial_evidence_name(enum denial_evidence evidence);    /* "fact", "heuristic" */
const char *denial_source_name(enum denial_source source); /* "sandbox", "host", "unknown" */

/* What was refused to a command, as structured facts with a remedy.
 *
 * Two sources, told apart by `evidence`: what the guard of the sandbox, the launcher or the kernel
 * reported (fact), and the keyword rule of Codex over the output of a command that failed
 * (heuristic), sharpened by looking for the path in the line and asking the access map who decides
 * about it. Where there is a guard, the words of the output make a denial of one thing alone: a path
 * that the profile denies altogether. It is covered inside, so that the guard is asked nothing. */
#pragma once

#include "policy/access.h"
#include "process/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct launch_fact;

enum denial_operation {
    DENIAL_READ,
    DENIAL_WRITE,
    DENIAL_EXECUTE,
    DENIAL_CONNECT, /* the network, or a Unix socket */
    DENIAL_BIND,
    DENIAL_SIGNAL,
    DENIAL_OTHER, /* something refused without a path: a system call, a mount, ... */
};

enum denial_evidence { DENIAL_FACT, DENIAL_HEURISTIC };

/* Who refuses, as far as the profile can tell. */
enum denial_source {
    DENIAL_BY_SANDBOX, /* the profile denies it: `origin` names the deciding entry */
    DENIAL_BY_HOST,    /* the profile allows it: plain file permissions, or the host's network */
    DENIAL_BY_UNKNOWN, /* words without a path */
};

enum denial_flag {
    DENIAL_CREATES = 1, /* WRITE: a new name */
    DENIAL_RENAMES = 2, /* WRITE: the name goes or moves, so that its directory is what matters */
    DENIAL_SOCKET = 4,  /* CONNECT, BIND: `path` is that of a Unix socket; "@name": abstract */
    DENIAL_FOLDER = 8,  /* `count` of them below `path`, which are not told one by one */
    DENIAL_PROBE = 16,  /* it was only asked whether it may be written */
    DENIAL_ASIDE = 32,  /* tried in passing: not what the command failed for */
    DENIAL_FAILED = 64, /* CONNECT: let through, and there is no server: `reason` says why */
    DENIAL_VARIABLE = 128, /* READ: of the environment, withheld: `reason` says which */
    DENIAL_LAYER = 256,    /* WRITE: a folder that a change layer cannot rename: `reason` says so */
};

struct denial {
    enum denial_operation operation;
    enum denial_evidence evidence;
    enum denial_source source;
    unsigned flags; /* of enum denial_flag; only facts have some */
    unsigned count; /* how often it is known to have been refused */
    int error;      /* errno value; 0 when not known */
    char *path;     /* absolute; NULL when not known */
    char *host;     /* for DENIAL_CONNECT; NULL when not known */
    char *
        reason; /* of a host, what the proxy said: network_reason_word(), or which limit was hit; of a variable or a layer; NULL */
    char *origin; /* who decided, from the access map; NULL when not known */
    char *remedy; /* which flag or config line would allow it, a sentence or two; never NULL */
    /* Known of facts of the guard alone. */
    char *other_path; /* of a rename or link, the second name; NULL */
    char *program;    /* name of the process, as ps shows it; NULL */
    const char *call; /* name of the system call; static; NULL */
    pid_t pid;        /* as seen from here; 0 */
    unsigned port;    /* of `host`; 0 */
};

struct denials {
    struct denial *items;
    size_t len;
    size_t cap;
};

/* Of one command, told one by one. More facts are counted by directory, in some entries behind;
 * more words say nothing new. */
#define DENIALS_MAX 16

/* Everything that the decision is made from. */
struct denial_input {
    const struct access_map *access; /* NULL: no sandbox, nothing is denied by it */
    const struct denials *facts;     /* of the guard; NULL: there was none to tell any */
    const char *cwd;                 /* for relative paths in the output */
    const struct process_end *end;
    const char *program;             /* argv[0] or what was executed; for a failed start */
    const struct strv *proxies;      /* that the command's variables name; NULL: none */
    const struct strv *withheld;     /* names of secret variables that it has not; NULL: none */
    bool is_in_layer;                /* it runs in a change layer */
    const char *texts[STREAM_COUNT]; /* retained output, NUL-terminated, or NULL */
};

/* Pure: looks at the values only. Appends to `ret`. Of a command that exited with 0 there are the
 * facts of the guard alone: it was denied something, but ended well. */
void denials_find(const struct denial_input *input, struct denials *ret);
void denials_done(struct denials *denials);

/* Appends copies of all. */
void denials_push_all(struct denials *denials, const struct denials *more);

/* Keeps a fact, one by one or counted: a list has a bound, however many come, and takes no memory
 * before the first. `access` says who decided where the fact does not. */
void denials_add_fact(struct denials *denials, const struct access_map *access,
                      const struct launch_fact *fact);

/* A program that was not executed because of a rule or an answer: `fact->entry` says by its origin. */
void denials_add_exec(struct denials *denials, const struct launch_fact *fact);

/* The sandbox refused it, and the command may have failed for it. */
bool denial_matters(const struct denial *denial);

/* Whether a command that failed was stopped by the sandbox rather than by something else. */
bool denials_by_sandbox(const struct denials *denials);

/* For people: "writing /etc/x", "connecting to example.com"; caller frees. */
char *denial_words(const struct denial *denial);

/* Of a call that the guard is asked about; static. NULL for others. */
const char *denial_call_name(int call);

const char *denial_operation_name(enum denial_operation operation); /* "read", "write", ... */
const char *denial_evidence_name(enum denial_evidence evidence);    /* "fact", "heuristic" */
const char *denial_source_name(enum denial_source source); /* "sandbox", "host", "unknown" */

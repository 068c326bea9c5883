/* What the files of the guard share: a command that it guards, a call that it was asked about, and
 * the answer.
 *
 * The one rule: CONTINUE lets the kernel read the arguments again, which another thread may have
 * changed by then. So it is never what allows something: whatever goes on, the kernel refuses by
 * itself what the sandbox refuses. What is allowed beyond that is done here, on copies of the
 * arguments and on descriptors that stay what they are. */
#pragma once

#include "guard/calls.h"
#include "guard/kernel.h"
#include "guard/map.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a descriptor is, wherever it has been moved to. */
struct identity {
    uint64_t device;
    uint64_t inode;
    uint64_t mount; /* in which file system tree it was found */
};

/* By whatever mount it was reached. */
static inline bool is_same_file(const struct identity *a, const struct identity *b)
{
    return a->device == b->device && a->inode == b->inode;
}

enum { LINKS_MAX = 40 }; /* symlinks that the kernel follows for one path (MAXSYMLINKS) */

/* A directory that names are kept out of. The open descriptor keeps its inode from being another's
 * later. */
struct folder {
    int fd;
    struct identity identity;
    int entry;       /* of a GUARD_ENTRY_ROOT; GUARD_NO_ENTRY */
    bool folds_case; /* names that are spelled differently may be the same there */
};

/* A name that may not come to be in a folder. */
struct held_name {
    uint32_t folder; /* index */
    int entry;
};

enum { CALLERS_MAX = 64, KEPT_MAX = 16, MOUNTS_MAX = 16 };

/* A directory that stays open (guard/kept.h). */
struct kept_dir {
    int fd;
    bool is_open;
    unsigned users; /* by whom it may not be closed */
    struct identity identity;
};

/* A thread, as it was seen last (guard/caller.h). */
struct caller {
    pid_t thread;
    mode_t mask;
    uint64_t mask_ns; /* when it was read; 0: not */
    struct kept_dir *cwd;
    uint64_t cwd_ns;
    uint64_t seen_ns;
};

/* The last one of what threads may share. */
struct change {
    pid_t thread; /* 0: of several at a time */
    uint64_t time_ns;
};

/* What was refused beyond GUARD_FACTS_MAX, in one directory. */
struct fact_count {
    uint32_t operation;
    int entry;
    uint32_t count;
    uint32_t untold; /* of them, the host does not know yet */
    char *path;      /* of the directory; "": all others */
};

enum { FACT_COUNTS_MAX = 32, CHILDREN_MAX = 256 };

struct facts {
    uint32_t told;
    uint32_t dropped;
    uint32_t lost;                  /* of what was done, the host has not been told how many */
    uint64_t seen[GUARD_FACTS_MAX]; /* hashes of what was told: a repetition is not told again */
    struct fact_count counts[FACT_COUNTS_MAX];
    uint32_t counts_len;
};

struct grant; /* guard/grant.h */

struct grants {
    struct grant *items;
    uint32_t len;
};

/* guard/hold.c */
struct question;
struct held;

struct holds {
    struct question *questions;
    struct question *refused; /* those whose answer was no */
    struct held *calls;
    uint32_t questions_len, calls_len;
};

struct exec; /* guard/exec.c */

struct execs {
    struct exec *first;
    int poller; /* of what they wait for; -1: none is told or asked about */
    uint32_t running, held;
    uint32_t told, untold, told_of_untold;
    bool has_begun; /* the launcher has executed the command */
};

enum { GUARD_GIT_LOCKS = 16, GUARD_GIT_LINKS = 4096 };

enum { REFUSED_PORTS_MAX = 16 };

struct command {
    int channel;
    int listener;   /* -1 until the launcher has sent it, and after the last process */
    bool has_ended; /* there is no process any more that could ask */
    struct map map;
    size_t map_size; /* of the mapping */
    int root;        /* of its file system; -1 until a call was seen */
    int outside; /* the root of what lies around its sandbox: AT_FDCWD, ours; or that of a layer's mounts */
    bool has_begun; /* it has made a call that the launcher does not make */
    bool is_broken; /* the folders cannot be looked at: nothing is done on behalf */
    bool has_git;   /* some entry is GUARD_ENTRY_GIT */
    int git_locks
        [GUARD_GIT_LOCKS]; /* those of the command's own (O_PATH), so that no other file is one of them */
    uint32_t git_locks_len;
    char **git_links; /* INDEX:PATH of submodules that an index has named */
    uint32_t git_links_len;
    struct folder *folders;
    uint32_t folders_len;
    struct held_name *held_names;
    uint32_t held_names_len;
    uint64_t mounts[MOUNTS_MAX]; /* of its roots */
    uint32_t mounts_len;
    uint64_t tree_mounts[MOUNTS_MAX]; /* others of the command's tree, as they are met */
    uint32_t tree_mounts_len;
    struct caller callers[CALLERS_MAX];
    uint32_t last_caller; /* index */
    struct change mask_change;
    struct change cwd_change;
    struct kept_dir kept[KEPT_MAX];
    uint32_t next_kept; /* index, after division, of whom to replace */
    struct facts facts;
    uint16_t refused_ports[REFUSED_PORTS_MAX]; /* listening.h */
    uint32_t refused_ports_len;
    bool traces_files, traces_network; /* what is done is told, too */
    struct grants grants;              /* what it may do beyond the map */
    struct holds holds;
    struct execs execs;
    uint64_t last_id; /* of questions and execs */
    int ends; /* readable when a caller that waits for an answer has ended; -1: nobody asks */
    struct points *points;        /* guard/points.c; NULL: none */
    uint64_t map_hash;            /* 0: not looked at yet */
    pid_t children[CHILDREN_MAX]; /* of the guard, which answer its calls that take long; 0: none */
    /* for the wake-up: calls since `window_ns` */
    uint32_t calls;
    bool is_sync;
    uint32_t hops;         /* a bit for each of the last calls that found us on another processor */
    uint32_t kept_calls;   /* for so many more it is kept on ours */
    struct nested *nested; /* guard/nested.c: sandboxes of its own; NULL: it has never made one */
    uint32_t nested_len;
    bool moves_threads; /* by itself: we move none */
    uint64_t window_ns;
};

/* How often the call was looked at. */
enum attempt {
    ATTEMPT_FIRST,
    ATTEMPT_AGAIN,    /* it is held, and another question was answered */
    ATTEMPT_ANSWERED, /* its question was: it is asked about no more */
};

struct request {
    struct command *command;
    const struct call *call;
    const struct k_seccomp_notif *notif;
    pid_t thread;
    enum attempt attempt;
    uint32_t nested; /* sandboxes of the command's own that the caller is in (guard/nested.c) */
};

enum answer_kind {
    ANSWER_CONTINUE, /* the kernel does it, and refuses what has to be refused */
    ANSWER_ERROR,    /* `number` is an errno */
    ANSWER_VALUE,    /* `number` is the result */
    ANSWER_LATER,    /* it has its answer, or gets one from somebody else */
    ANSWER_HELD,     /* it gets one when its question has been answered */
};

struct answer {
    enum answer_kind kind;
    int number;
    bool is_granted; /* it was done because of a yes */
};

static inline struct answer answer_continue(void)
{
    return (struct answer){.kind = ANSWER_CONTINUE};
}

static inline struct answer answer_error(int error)
{
    return (struct answer){.kind = ANSWER_ERROR, .number = error};
}

static inline struct answer answer_value(int value)
{
    return (struct answer){.kind = ANSWER_VALUE, .number = value};
}

/* What a system call has returned. */
static inline struct answer answer_of(int status)
{
    return status < 0 ? answer_error(errno) : answer_value(status);
}

/* The argument of this number; 0 for CALL_NONE. */
static inline uint64_t request_argument(const struct request *request, int index)
{
    return index < 0 ? 0 : request->notif->data.args[index];
}

/* The directory that a path argument is relative to. */
static inline int request_dir(const struct request *request, int index)
{
    return index < 0 ? -100 /* AT_FDCWD */ : (int)request->notif->data.args[index];
}

/* Looks at the call, and does what is to be done. */
struct answer request_handle(const struct request *request);

void request_respond(const struct request *request, struct answer answer);

/* The caller still waits for this answer: what was read of it under its number was its own. */
bool request_is_valid(const struct request *request);

/* The call is answered with a descriptor of the caller's own, a copy of `fd`. 0, or why not: EMFILE;
 * ENOENT: nobody waits any more. */
int request_give(const struct request *request, int fd, bool is_cloexec);

/* The caller has that descriptor, and no answer yet. Its number there, or a negative errno. */
int request_lend(const struct request *request, int fd, bool is_cloexec);

/* 64-bit FNV-1a (draft-eastlake-fnv) */
#define HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_bytes(uint64_t start, const void *bytes, size_t len)
{
    for (const unsigned char *at = bytes; len--; at++)
        start = (start ^ *at) * UINT64_C(0x100000001b3);
    return start;
}

/* Monotonic. */
uint64_t now_ns(void);

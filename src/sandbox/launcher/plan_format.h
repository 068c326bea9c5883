/* The plan as the launcher reads it: what the compiler (sandbox/linux/plan.c) writes into a sealed
 * anonymous file, and nothing else. Both programs are built together, so there is no versioning
 * beyond a number that has to match.
 *
 *     struct plan_header
 *     struct plan_record[header.records]     carried out in order
 *     struct plan_filter[header.filters]     classic BPF, as struct sock_filter
 *     char strings[header.strings]           NUL-terminated; offset 0 is the empty string
 *
 * A record names strings by their offset. argv and the environment are `argc` and `envc` strings
 * that follow each other from `argv` and `envp` on.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

enum { PLAN_MAGIC = 0x4e4c5043, PLAN_VERSION = 8 };

/* The launcher's second argument where the network leads to the proxy, and nothing is redirected; else the ports of the host's
 * loopback that are let in ("5432,6379", or ""). */
#define PLAN_NO_REDIRECT "led"

/* Upper bounds that the reader enforces before it touches anything. */
enum {
    PLAN_MAX_BYTES = 16 << 20,
    PLAN_MAX_RECORDS = 32768,
    PLAN_MAX_FILTERS = 4096, /* BPF_MAXINSNS */
    PLAN_MAX_SLOTS = 512,
    PLAN_MAX_ARGS = 262144,
};

enum plan_op {
    /* Done before there is a plan, by the maker of the process (sandbox/linux/launcher_pool.c) and by the
     * launcher as soon as it runs. */
    PLAN_NAMESPACES, /* value: CLONE_NEW* flags */
    PLAN_IDENTITY,   /* the user and group ids are kept, and nothing else is mapped */
    PLAN_LOOPBACK,   /* lo up in the new network namespace */
    PLAN_LEAD,       /* routes by which every address is ours, and the proxy's listeners */
    PLAN_LAYER,      /* an overlay lies over `path` (sandbox/linux/overlay.c) */
    PLAN_REDIRECT, /* all connections go to the listeners; without it the guard leads them there */

    /* Before anything is mounted, as long as the host's /proc is there */
    PLAN_PIDS, /* the new pid namespace has room for `value` processes and threads, the init included */

    /* File system, in the new mount namespace. Paths are below the tree being built, sources are
     * in the tree as the host has it; no symlink is followed in either. */
    PLAN_TREE_PRIVATE,   /* no mount event goes in or out */
    PLAN_HOLD_DEVICES,   /* take the harmless device nodes aside */
    PLAN_HOLD_FUSE,      /* open /dev/fuse, in `slot`, while devices can be opened */
    PLAN_HOLD,           /* take a copy of the mounts at `path` aside, in `slot` */
    PLAN_TREE_HARDEN,    /* no devices, no set-user-id, on every mount */
    PLAN_TREE_READ_ONLY, /* every mount */
    PLAN_EMPTY_ROOT,     /* from here on a new, empty root is built */
    PLAN_MASKS,          /* get the empty things ready that PLAN_MASK covers paths with */
    PLAN_DEV,            /* /dev: null zero full random urandom tty ptmx pts shm */
    PLAN_QUEUES,         /* /dev/mqueue of our own ipc namespace, if the kernel has queues */
    PLAN_PROC,           /* a /proc of our own pid namespace */
    PLAN_DIR,            /* make a directory `path` with mode `value` (it may exist) */
    PLAN_FILE,           /* make an empty file `path` with mode `value` (it may exist) */
    PLAN_LINK,           /* make a symlink `path` to the text `other` */
    PLAN_PLACE,          /* mount what `slot` holds at `path`; PLAN_FLAG_READ_ONLY applies */
    PLAN_BIND,           /* mount the host's `path` at `path`; PLAN_FLAG_READ_ONLY applies */
    PLAN_MEMORY,     /* mount an empty file system in memory at `path`, for anybody to write in */
    PLAN_PIN,        /* mount the directory `path` on itself, so that it cannot be renamed */
    PLAN_READ_ONLY,  /* `path` and below, in place */
    PLAN_MASK,       /* cover `path` with nothing; PLAN_FLAG_FILE: it is not a directory;
                            PLAN_FLAG_LISTED: a directory that may be looked into */
    PLAN_WATCHPOINT, /* cover `path` with a FUSE file system by the descriptor in `slot`, which goes
                            to the guard, for the entry `value`; PLAN_FLAG_FILE as with PLAN_MASK */
    PLAN_MASK_TREE,  /* cover the directory `path` with one of ours that gets mount points */
    PLAN_SEAL,       /* make the one mount at `path` read-only */
    PLAN_ENTER_ROOT, /* the tree built so far becomes the root; the host's is gone */

    /* The rest of the world */
    PLAN_SESSION_KEYRING, /* a new, empty one */
    PLAN_DROP,            /* all capability sets empty, no_new_privs */

    /* Put on in the command's own process, right before it is executed */
    PLAN_LIMIT,         /* resource `other` = `value` */
    PLAN_LANDLOCK,      /* handled file rights `value`, network rights `other`, scopes `flags` */
    PLAN_LANDLOCK_RULE, /* rights `value` at and below `path`; a missing path is skipped */
    PLAN_SECCOMP,       /* the filter; PLAN_FLAG_LISTENER: it asks the guard */
    PLAN_OP_COUNT,
};

enum plan_flag {
    PLAN_FLAG_READ_ONLY = 1,
    PLAN_FLAG_FILE = 2,
    PLAN_FLAG_LISTENER = 4,
    PLAN_FLAG_DIRECTORY = 8, /* LANDLOCK_RULE: skipped unless `path` is one, and no symlink;
                                PLAN_FLAG_FILE: unless it is neither */
    PLAN_FLAG_AROUND =
        16, /* SECCOMP: PLAN_FD_CHANNEL is the map for the guard around this sandbox */
    PLAN_FLAG_LISTED = 32, /* MASK */
};

struct plan_record {
    uint32_t op;
    uint32_t flags;
    uint32_t path;
    uint32_t other;
    uint64_t value;
    uint32_t slot;
    uint32_t reserved; /* zero */
};

struct plan_filter {
    uint16_t code;
    uint8_t jt;
    uint8_t jf;
    uint32_t k;
};

enum plan_command_flag {
    PLAN_COMMAND_TTY = 1,           /* standard input is a terminal; make it the controlling one */
    PLAN_COMMAND_CONSOLE = 2,       /* and show it as /dev/console */
    PLAN_COMMAND_PID_NAMESPACE = 4, /* the launcher is pid 1 of its own pid namespace */
    PLAN_COMMAND_PROBE = 8,         /* execute nothing: exit with 0 where the command would start */
    PLAN_COMMAND_DIE_WITH_PARENT = 16, /* the kernel is to kill the launcher with the thread that
                                          started it */
    PLAN_COMMAND_LINGER = 32, /* what the command leaves behind lives on: its end is told at once,
                                 and the launcher ends when nothing is left */
    PLAN_COMMAND_STOPS = 64,  /* TTY: the launcher leads the session, so that the terminal can stop
                                 the command, and tells of it */
};

struct plan_header {
    uint32_t magic;
    uint32_t version;
    uint32_t bytes; /* of the whole file */
    uint32_t records;
    uint32_t filters;
    uint32_t strings; /* bytes */
    uint32_t flags;   /* enum plan_command_flag */
    uint32_t program; /* string; empty: look argv[0] up */
    uint32_t cwd;
    uint32_t argv;
    uint32_t argc;
    uint32_t envp;
    uint32_t envc;
    uint32_t reserved; /* zero */
};

/* The only descriptor that the launcher is started with: its end of the status socket. */
enum { PLAN_STATUS_FD = 3 };

/* The first packet that it gets there: struct plan_inbox, with these descriptors (SCM_RIGHTS). CHANNEL is
 * there when the plan's filter has a listener: it goes to the guard over this channel, as
 * guard/guard_format.h says. PROXY is there when the network leads to the proxy: its listeners go over that
 * one, as proxy/proxy_format.h says. */
enum plan_descriptor {
    PLAN_FD_STDIN,
    PLAN_FD_STDOUT,
    PLAN_FD_STDERR,
    PLAN_FD_FILE,
    PLAN_FD_CHANNEL,
    PLAN_FD_PROXY,
    PLAN_FDS
};

struct plan_inbox {
    uint32_t magic;
    uint32_t has; /* bits 1 << enum plan_descriptor: which came, in their order */
};

/* What goes over the status socket (SOCK_SEQPACKET), one struct a packet. */
enum plan_message_kind {
    PLAN_MESSAGE_STARTED = 1,
    PLAN_MESSAGE_FAILED,
    PLAN_MESSAGE_EXITED,
    PLAN_MESSAGE_STOPPED, /* but not by SIGSTOP, which the other end may have sent */
};

enum plan_stage { PLAN_STAGE_SETUP, PLAN_STAGE_CWD, PLAN_STAGE_EXEC };

/* Of getrusage(2), whose struct differs between the C libraries of the launcher and its caller. */
struct plan_usage {
    uint64_t user_us;
    uint64_t system_us;
    uint64_t memory_peak_kb; /* of the largest process */
    uint64_t voluntary_switches;
    uint64_t involuntary_switches;
    uint64_t blocks_written; /* of 512 bytes */
};

struct plan_message {
    uint32_t kind;
    uint32_t stage;          /* FAILED */
    uint32_t op;             /* FAILED in set-up: the enum plan_op that failed */
    int32_t wait_status;     /* EXITED */
    struct plan_usage usage; /* EXITED: every process of the sandbox but the init */
    struct err failure;      /* FAILED */
};

_Static_assert(sizeof(struct plan_message) == 312, "both programs have to agree");

/* The other way: a signal for the command (or for all). With a descriptor (SCM_RIGHTS) and no signal, a way in: a
 * socket (SOCK_SEQPACKET) over which the launcher, as long as it lives, answers each packet of one byte, AF_INET or
 * AF_INET6, with one of the same byte and a new TCP socket of the command's network, or without one when it got none. */
struct plan_signal {
    int32_t signal;
    uint32_t everything;
};

/* argv[0] of a launcher that gets a plan; argv[1] are the namespaces that it has to make, in hex. With argv[2] its
 * network leads to the proxy; there are the ports of the host's loopback that are let in, "5432,6379" or "". */
#define PLAN_LAUNCHER_NAME "cordon-init"

/* The sandbox as the upper layers see it: make one for a profile, launch commands in it.
 *
 *     sandbox_new()       compile the plan for an access map on this host (probing by doing)
 *     sandbox_launch()    start one command in it; as often as wanted, several at a time
 *     launch_read()       what the launcher says: started, or failed, or how the command ended
 *     launch_done()       close it; a command that still runs is killed with everything it started
 *     sandbox_free()
 *
 * Nothing here blocks longer than the start of a process takes, except where said.
 */
#pragma once

#include "base/err.h"
#include "policy/access.h"
#include "policy/limit.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct sandbox;
struct plan;
struct buf;

enum sandbox_mode {
    SANDBOX_AUTO,     /* the strongest layers that this host has; never silent about a lack */
    SANDBOX_REQUIRE,  /* every layer, or an error */
    SANDBOX_DISABLED, /* none, on the user's word */
    SANDBOX_LANDLOCK, /* no namespaces, on the user's word: Landlock, seccomp and the guard alone, weaker than AUTO is
                         with namespaces, but able to write where there are none */
};

/* Each layer is reported; none is dropped silently. */
enum defence {
    DEFENCE_USER_NAMESPACE,
    DEFENCE_MOUNT_NAMESPACE,
    DEFENCE_PID_NAMESPACE,
    DEFENCE_IPC_NAMESPACE,
    DEFENCE_NET_NAMESPACE, /* not needed when the network is enabled */
    DEFENCE_UTS_NAMESPACE,
    DEFENCE_CGROUP_NAMESPACE,
    DEFENCE_LANDLOCK,
    DEFENCE_SECCOMP,
    DEFENCE_NO_NEW_PRIVS,
    DEFENCE_CAPABILITIES, /* all sets empty */
    DEFENCE_GUARD, /* asked about new names, tells facts; not needed when nothing is writable and
                           nobody wants to know */
    DEFENCE_PROXY, /* all of the network leads there; not needed unless it is proxied */
    DEFENCE_COUNT,
};

enum defence_state { DEFENCE_ENFORCED, DEFENCE_PARTIAL, DEFENCE_ABSENT, DEFENCE_NOT_NEEDED };

struct defence_report {
    enum defence_state state;
    char why[200]; /* for partial and absent: what is missing and what to do about it */
};

const char *defence_name(enum defence layer);             /* "user-namespace", ... */
const char *defence_state_name(enum defence_state state); /* "enforced", "partial", "absent", ... */

/* What the guard is to look at, beside what it has to. Nobody pays for what is not wanted. */
enum sandbox_watch {
    WATCH_FACTS = 1,    /* what is refused: FACT_DENIED */
    WATCH_EXEC = 2,     /* the programs that run, and how they end: FACT_EXEC, FACT_EXIT */
    WATCH_JUDGE = 4,    /* each program but the command's own first one waits for launch_answer() */
    WATCH_FILES = 8,    /* what is changed: FACT_DONE */
    WATCH_NETWORK = 16, /* who is connected to: FACT_DONE */
    WATCH_READS = 32, /* with WATCH_FILES what is opened to be read, too; each open costs some us */
    WATCH_DESCRIPTORS = 64, /* what is changed by a descriptor, too: fchmod(2), futimens(3) */
    WATCH_HOLDS = 128 /* what is refused waits where a launch asks; else it is the proxy's alone */
};

/* Mounts that commands share, in namespaces that their launches join (linux/overlay.h): those of a change layer, which
 * embeds this. Every launch of a sandbox that has one enters before anything is started, and leaves when every process of
 * the command is gone. */
struct launch_options;
enum { VIEW_ENDINGS_MAX = 4 };
struct sandbox_view {
    /* Makes the mounts ready, if they are not; `users` and `mounts` are set then. */
    int (*enter)(struct sandbox_view *view, const struct launch_options *options, struct err *err);
    /* `wait_status` as from waitpid(2); -1: not known */
    void (*leave)(struct sandbox_view *view, int wait_status);
    const char *const *roots; /* for the plan: what the mounts lie over; NULL-terminated */
    int users;                /* descriptors of the namespaces; between enter and leave */
    int mounts;
    int endings
        [VIEW_ENDINGS_MAX]; /* pidfds of inits whose commands are gone; each has the mounts until it has ended */
    size_t endings_len;
};

/* Waits for those, so that the mounts are gone with their descriptor. */
void sandbox_view_settle(struct sandbox_view *view);

struct sandbox_options {
    enum sandbox_mode mode;
    struct sandbox_view *view;       /* borrowed until sandbox_free(); NULL: none */
    const struct access_map *access; /* borrowed during the call only */
    bool allow_nested_namespaces;    /* the command may make namespaces of its own */
    bool cache_idle; /* for hosts that run many commands: keep network namespaces for the next one,
                        until sandbox_release_idle() or sandbox_free() */
    /* The last launch that was open is done; may be NULL. Has to leave the sandbox alone. */
    void (*on_idle)(void *data, struct sandbox *sandbox);
    void *data;            /* for on_idle */
    unsigned watch;        /* enum sandbox_watch */
    bool dies_with_thread; /* the host has one thread: let the kernel kill its commands with it,
                              even when their inits are stopped and cannot see that it is gone */
    const char *const *own_paths; /* NULL-terminated, canonical: what belongs to Cordon or its host,
                                     read-only to every command; may be NULL */
    const char *launcher;         /* path of cordon-linux-sandbox; NULL: it is looked for */
    char *const *
        env; /* copied: "NAME=value" that a command has where its caller has not chosen another value
                         than our own environment has; NULL: none */
    struct resource_limits limits; /* of each command, where its start says nothing else */
};

/* A profile that the layers of this host cannot express, and any lack in mode require, is
 * ERR_UNSUPPORTED with the reason and the remedy. NULL on failure. */
struct sandbox *sandbox_new(const struct sandbox_options *options, struct err *err);
void sandbox_free(struct sandbox *sandbox); /* no launch of it may be open any more */

/* Sets a sandbox up with nothing in it, so that the layers below are what this host really gives.
 * The first launch does the same on the way. Blocks for about a millisecond. */
int sandbox_probe(struct sandbox *sandbox, struct err *err);

/* For a sandbox that caches: starts a launcher ahead, so that the next command finds it
 * waiting in its namespaces. For a moment in which nothing else is to be done: it takes as long as
 * a launch gets faster by it. Nothing of a command has ever run in it. */
void sandbox_prepare(struct sandbox *sandbox);

/* Gives back what is cached, the spare launcher; the next command makes it again. No launch may be
 * open. False: a process of it has not ended yet, and is reaped by the next call. */
bool sandbox_release_idle(struct sandbox *sandbox);

/* No launch of it is open: no process of a command in it lives. */
bool sandbox_is_idle(const struct sandbox *sandbox);

/* How the kernel counts processes for the limit of them in launch_limits. */
enum process_counter {
    COUNTER_USER,           /* RLIMIT_NPROC: with all others of the user, and none of root's */
    COUNTER_USER_NAMESPACE, /* RLIMIT_NPROC: the command's alone */
    COUNTER_PID_NAMESPACE,  /* pid_max: the command's alone, root's, too */
};

enum process_counter sandbox_process_counter(const struct sandbox *sandbox);

/* As in its options. */
const struct resource_limits *sandbox_limits(const struct sandbox *sandbox);

/* As asked for: of enum sandbox_watch. */
unsigned sandbox_watch(const struct sandbox *sandbox);

/* Its commands see the directories of a `view`. */
bool sandbox_has_view(const struct sandbox *sandbox);

/* What the command will be held to: the map given, and what was added for Cordon's own paths. */
const struct access_map *sandbox_access(const struct sandbox *sandbox);

/* Adds what a command gets of `env`: with what presets and the network set in it, and without secrets. */
void sandbox_env(const struct sandbox *sandbox, char *const *env, struct strv *ret);

/* `new` asks for no other sandbox than `old`, which one was made for. Both sorted. */
bool map_is_same(const struct access_map *old, const struct access_map *new);

const struct defence_report *sandbox_defence(const struct sandbox *sandbox, enum defence layer);
bool sandbox_is_degraded(const struct sandbox *sandbox); /* a needed layer is partial or absent */
const char *sandbox_degradation(const struct sandbox *sandbox); /* why, in words; "" when not */

/* Why places that ask who reads them are masked instead, in words; "" when none is. */
const char *sandbox_no_watchpoint(const struct sandbox *sandbox);
const struct plan *sandbox_plan(const struct sandbox *sandbox);

/* Set inside as rlimits (setrlimit(2)), which lower what is there and never raise it, but for what
 * COUNTER_PID_NAMESPACE counts; 0: none. */
struct launch_limits {
    uint64_t data;          /* bytes of private memory */
    uint64_t address_space; /* bytes, reserved ones, too */
    uint64_t cpu_time;      /* seconds */
    uint64_t processes;     /* count */
    uint64_t file_size;     /* bytes */
    uint64_t files;         /* descriptors */
};

/* Who holds a command to its limits. Called once its launcher is there, which has started nothing
 * yet: puts that in a cgroup where it is to be in one, and gives the limits. */
typedef void launch_limiter(void *data, pid_t launcher, enum process_counter counter,
                            struct launch_limits *ret);

struct launch_options {
    char *const *argv;    /* argv[0] is looked up on the PATH of `env` when it has no slash */
    const char *program;  /* what to execute when it is not argv[0]; may be NULL */
    char *const *env;     /* complete, "NAME=value" */
    const char *cwd;      /* absolute */
    int stdio[3];         /* borrowed; become the command's 0, 1, 2; never the caller's files */
    bool controlling_tty; /* stdio[0] is a PTY slave: make it the controlling terminal */
    bool tells_stops;     /* with controlling_tty: keys may stop the command, for LAUNCH_STOPPED */
    launch_limiter *limiter; /* NULL: no limits */
    void *limiter_data;
    bool is_probe; /* set the sandbox up, execute nothing, exit with 0 */
    bool
        asks; /* what is refused may be held until launch_answer(): FACT_ASKED. By a guard that tells facts
                      where the sandbox holds (WATCH_HOLDS), by the proxy: `asks` of the launch */
    bool lingers; /* LAUNCH_EXITED comes when the command itself has ended; what it left behind
                      goes on, until it ends by itself (then `pidfd` tells) or launch_done() */
};

/* How the launcher reports; each message is one packet. */
enum launch_event {
    LAUNCH_NOTHING, /* no message yet (the descriptor would block) */
    LAUNCH_STARTED, /* the command's program was executed */
    LAUNCH_FAILED,  /* it was not: `failure` tells why; the launch is over */
    LAUNCH_EXITED,  /* the command ended; everything it left behind has been killed and reaped,
                       unless it lingers */
    LAUNCH_STOPPED, /* its terminal has stopped the command, or it itself, until a SIGCONT */
    LAUNCH_GONE,    /* the launcher died without a word (killed from outside); the launch is over */
};

/* What failed. Expected outcomes of the command itself (126, 127) are told apart from ours. */
enum launch_stage {
    LAUNCH_STAGE_SANDBOX, /* the sandbox could not be set up; `operation` names the step */
    LAUNCH_STAGE_CWD,     /* the working directory cannot be entered inside */
    LAUNCH_STAGE_EXEC,    /* the program cannot be executed: ENOENT -> 127, else 126 */
};

struct launch_report {
    enum launch_event event;
    int wait_status;         /* EXITED: as from waitpid(2) */
    struct rusage usage;     /* EXITED: the command and all it waited for */
    uint64_t bytes_written;  /* EXITED: bytes sent to storage, from rusage blocks */
    enum launch_stage stage; /* FAILED */
    struct err failure;      /* FAILED */
};

struct launch {
    int status;       /* readable when launch_read() has something to say */
    int pidfd;        /* of the command's init */
    int facts;        /* readable when launch_read_fact() may have one; -1: no guard and no proxy */
    bool has_facts;   /* and the guard was asked to tell facts */
    bool asks;        /* and to hold what is refused until somebody has answered */
    bool counts_pids; /* its pid namespace is to */
    bool is_unguarded; /* the guard died while the command ran: it has to be killed */
    pid_t init;        /* its pid */
    bool is_over;      /* every process of the command is gone */
    bool lingers;      /* as asked for */
    bool has_exited;   /* the command itself has */
    int wait_status;   /* then; as from waitpid(2), else -1 */
    bool is_in_view;   /* and has to leave it */
    struct sandbox *sandbox;
    struct guard_channel *channel; /* NULL: no guard */
    struct proxied *proxied;       /* NULL: the network does not lead to the proxy */
    struct way_in *way_in;         /* NULL: no port is published */
    struct told_connect *told;     /* what either has told last; NULL: nothing yet */
    struct launcher *launcher;
};

/* Something that the guard of the sandbox saw, or the proxy: a fact, also when the program says nothing of it. */
enum fact_kind {
    FACT_DENIED,         /* the sandbox refused it */
    FACT_ASKED,          /* it is held until launch_answer() has said yes or no to `id` */
    FACT_WITHDRAWN,      /* nobody waits for the answer to `id` any more; the rest does not count */
    FACT_DONE,           /* nothing was in the way of it; after a question: by a yes */
    FACT_EXEC,           /* `path` is executed with `argv`, as exec `id` */
    FACT_EXIT,           /* the process whose last exec was `id` ended with `wait_status` */
    FACT_OUTSIDE,        /* the caller of the exec `id` waits for what runs outside in its place:
                       launch_take_stdio(), launch_answer_exit() */
    FACT_OUTSIDE_SIGNAL, /* what runs outside for `id` is to get the signal `number` */
    FACT_LOST, /* `more` of what was done were not told: they came faster than they were read */
};

enum fact_operation {
    FACT_WRITE,  /* a file or directory that is there: opened for writing, changed, removed */
    FACT_CREATE, /* a new name */
    FACT_EXECUTE,
    FACT_CONNECT, /* `path` is "host:port", or the path of a Unix socket, "@name" if abstract */
    FACT_BIND,
    FACT_SIGNAL,
    FACT_READ,
};

struct launch_fact {
    enum fact_kind kind;
    uint64_t id; /* of a question or exec; an exec that was asked about keeps its number */
    enum fact_operation operation;
    const char *path;       /* canonical, as the command sees it */
    const char *other_path; /* of a rename or link; NULL */
    /* ASKED: what a yes covers while the command runs, but for narrower entries of the profile: a path,
     * or, with a "/" behind it, all in that folder. NULL: `path`, with what comes to be below it */
    const char *covers;
    const char *other_covers; /* the same of `other_path`; NULL: it needs no yes */
    const char *program;      /* name of the process, as ps shows it */
    pid_t pid;                /* as seen from here */
    int error;                /* errno that the call had, as far as it can be known */
    int call;                 /* number of the system call */
    bool is_socket;           /* CONNECT, BIND: `path` is a Unix socket's */
    unsigned more; /* DENIED: not 0: that many like it below `path`, not told one by one; LOST */
    const struct access_entry *entry; /* which decided; NULL: none is about it */
    uint64_t time_ns;                 /* CLOCK_MONOTONIC */
    /* EXEC, OUTSIDE, and ASKED with EXECUTE: */
    const char *const *argv; /* NULL-terminated */
    bool is_truncated;       /* `argv` goes on, or could not be read to its end */
    const char *cwd;
    uint64_t parent; /* exec of the process before, or of the nearest one above; 0: none is known */
    int number;      /* EXIT: as from waitpid(2), -1 when it cannot be told; OUTSIDE_SIGNAL */
    /* CONNECT of a network that is proxied: what the proxy says; NULL elsewhere. The program is known where the guard
     * saw it connect */
    const struct launch_connect *connect;
};

struct launch_connect {
    const char
        *host;     /* name or address, as policy/host.h has it; `path` is the same with the port */
    uint16_t port; /* 0: a name was looked up */
    enum network_protocol protocol;
    const char *reason; /* of network_reason_word(), or what limit was hit, in words; "" */
    const char *rule;   /* origin of the rule that decided; "": none is about it */
    bool has_failed;    /* it was let through, and there is no server for it: `reason` says why */
};

/* The next fact; false when there is none for now. What `ret` points to is good until the next call
 * or launch_done(). `launch->facts` is readable when there may be one (-1 without a guard). All
 * facts of a command are there when LAUNCH_EXITED is. */
bool launch_read_fact(struct launch *launch, struct launch_fact *ret);

enum launch_verdict {
    LAUNCH_NO,
    LAUNCH_YES,
    LAUNCH_OUTSIDE, /* an exec: what it asks for will run outside of the sandbox: FACT_OUTSIDE. Or,
                       when its caller cannot be made to wait, FACT_DENIED with the `id`, and the
                       errno of that in `number`; FACT_WITHDRAWN when it has ended meanwhile */
    LAUNCH_STOP,    /* no, and the caller gets SIGTERM before it hears that */
};

/* The answer to FACT_ASKED. A yes covers what the question was about, for as long as the command
 * runs, and of an exec just this one; a no is the refusal that it would have been (of an exec
 * EACCES). Of a question that was withdrawn, or of a command that has ended, it changes nothing. */
void launch_answer(const struct launch *launch, uint64_t id, enum launch_verdict verdict);

/* After FACT_OUTSIDE, before the next fact is read: the caller's descriptors 0, 1 and 2, which become
 * yours; -1 for one that it has closed. */
void launch_take_stdio(struct launch *launch, int ret_fds[3]);

/* What ran outside for the exec `id` has ended like this (as from waitpid(2)), or 127 << 8 when it
 * could not be run: its caller ends in the same way. */
void launch_answer_exit(const struct launch *launch, uint64_t id, int wait_status);

/* Starts one command. When it returns 0 the launcher runs; whether the command could be executed
 * comes as the first report. The first launch of a sandbox waits until the sandbox stands (and in
 * mode auto steps down a layer that turns out not to be had); the report is then ready at once. */
int sandbox_launch(struct sandbox *sandbox, const struct launch_options *options,
                   struct launch *ret, struct err *err);

/* The next report. -1 only for failures of our own. */
int launch_read(struct launch *launch, struct launch_report *ret, struct err *err);

/* The command's pid as seen from here; 0 when it has ended or cannot be told. */
pid_t launch_pid(const struct launch *launch);

/* Sends `signal` to the command (by way of its init, which passes it to the command's process, or
 * with `everything` to every process of the sandbox). A command that has ended is not an error. */
int launch_signal(struct launch *launch, int signal, bool everything, struct err *err);

/* Leads who connects to `listener`, which listens outside and stays the caller's, to a port of the command's own
 * localhost, until the command has ended. ERR_UNSUPPORTED when it shares the host's network. */
int launch_publish(struct launch *launch, uint16_t port, int listener, struct err *err);

/* Kills what still runs. After LAUNCH_EXITED or LAUNCH_FAILED it does not block: what is left of the
 * init is reaped by the next launch or by sandbox_free(); otherwise it waits for the end
 * (milliseconds). Safe on a zeroed or failed launch. */
void launch_done(struct launch *launch);

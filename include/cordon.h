/* libcordon: runs commands for AI agents, in a sandbox, in sessions that can be talked to.
 *
 *     struct cordon_engine_options options = {sizeof options};
 *
 *     cordon_open(&options, &engine, &error)    one for each thread that uses it
 *       cordon_run()                            a command to its end, blocking
 *       cordon_execute()                        a command by rules and questions, then in a sandbox
 *       cordon_session_start(), _read(), ...    a command to talk to, by bytes
 *       cordon_exec_command(), _write_stdin()   the calls of a model, answered with its text
 *       cordon_layer_open(), _changes(), ...    what commands write, kept apart until it is accepted
 *       poll(cordon_fd()), cordon_dispatch()    in a loop of yours; or cordon_wait()
 *     cordon_close(engine)                      kills every command that still runs
 *
 * An engine belongs to one thread at a time. Callbacks come out of cordon_dispatch(),
 * cordon_wait(), cordon_run() and cordon_session_wait() only, never out of the function that was
 * given them, and may call everything but these and cordon_close().
 *
 * Structs of options begin with their size, as above; what is zero behind it means the default, so
 * a program that was built with an older header goes on working. Structs that come from here may
 * get fields at their end. Strings are UTF-8 or plain bytes that end with a NUL; those given are
 * copied or used during the call only, those received belong to the object that they come with.
 * Functions that return int return 0, or -1 and fill `error`, which may be NULL.
 *
 * SIGCHLD and other signals are left alone, and every descriptor is close-on-exec. The host must
 * not reap children that are not its own (waitpid(-1), or SIGCHLD ignored). */
#ifndef CORDON_H
#define CORDON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CORDON_API __attribute__((visibility("default")))
#else
#define CORDON_API
#endif

/* --- errors --- */

enum cordon_error_code {
    CORDON_ERROR_NONE,
    CORDON_ERROR_INVALID,     /* what was given is wrong */
    CORDON_ERROR_NOT_FOUND,   /* there is no such session, or no longer */
    CORDON_ERROR_FORBIDDEN,   /* a policy or the kernel says no */
    CORDON_ERROR_UNSUPPORTED, /* this host cannot do it */
    CORDON_ERROR_LIMIT,       /* a bound is reached */
    CORDON_ERROR_SYSTEM,      /* a system call failed, for the reason `sys` */
    CORDON_ERROR_BUG,
    CORDON_ERROR_BUSY,    /* somebody else is at it */
    CORDON_ERROR_CONFLICT /* it is not what it was, or there is one already */
};

struct cordon_error {
    int code; /* enum cordon_error_code */
    int sys;  /* errno value, or 0 */
    char message[240];
};

/* --- what a command may do --- */

enum cordon_network {
    CORDON_NETWORK_OF_PROFILE,
    CORDON_NETWORK_RESTRICTED,
    CORDON_NETWORK_ENABLED, /* the network of this machine */
    CORDON_NETWORK_PROXIED, /* the hosts that are allowed, for every program */
    CORDON_NETWORK_HOST     /* the network of this machine, and its Unix sockets */
};

enum cordon_sandbox {
    CORDON_SANDBOX_AUTO,     /* the strongest layers that this host has */
    CORDON_SANDBOX_REQUIRE,  /* all of them, or nothing is run */
    CORDON_SANDBOX_DISABLED, /* none */
    CORDON_SANDBOX_LANDLOCK  /* no namespaces: Landlock, seccomp and the guard alone; weaker */
};

/* What becomes of what the sandbox refuses. */
enum cordon_watch {
    CORDON_WATCH_OF_PROFILE,
    CORDON_WATCH_FACTS, /* it is told */
    CORDON_WATCH_OFF,   /* only what the output of a command that failed says is */
    CORDON_WATCH_ASK,   /* told, and the call waits while on_question() is asked, where there is one
                           and the approval policy (of the config file, but for cordon_execute()) may
                           ask; not with cordon_run() */
    CORDON_WATCH_LEARN  /* told, and a trace of files has what is opened to be read, too */
};

/* What commands do is told, as events in JSON (docs/timeline.md): by cordon_result.events,
 * cordon_session_event(), and in cordon_execution_result.json; of the calls of a model by
 * cordon_answer.events and cordon_event_of(). */
enum cordon_trace {
    CORDON_TRACE_FILES = 1,   /* written, made, changed, removed, renamed, linked */
    CORDON_TRACE_NETWORK = 2, /* bound; connected to, where the network is restricted */
    CORDON_TRACE_EXEC = 4     /* which programs ran */
};

/* About what rules and the approval policy decide. */
enum cordon_judge {
    CORDON_JUDGE_OF_PROFILE,
    CORDON_JUDGE_COMMAND,   /* the command as it is given */
    CORDON_JUDGE_EVERY_EXEC /* also each program that it executes */
};

/* What may be done with the repository of the workspace. */
enum cordon_git {
    CORDON_GIT_OF_PROFILE,
    CORDON_GIT_READ,
    CORDON_GIT_COMMIT /* what git writes may be written; hooks and configuration may not */
};

struct cordon_layer;

struct cordon_policy {
    size_t size;
    const char *profile;         /* NULL: the configuration's, else workspace-write; read-only,
                                    workspace-write, danger-full-access (no sandbox), or
                                    a [permissions.NAME] table of the engine's config file */
    const char *workspace;       /* absolute; writable with workspace-write; NULL: current folder */
    const char *const *writable; /* paths as on the command line; NULL-terminated; may be NULL */
    const char *const *readable;
    const char *const *deny; /* also globs */
    int network;             /* enum cordon_network */
    int sandbox;             /* enum cordon_sandbox */
    int watch;               /* enum cordon_watch */
    unsigned trace;          /* of enum cordon_trace; 0: nothing is told */
    int judge;               /* enum cordon_judge */
    const char *const
        *protect; /* sets, as "git", and "./NAME"; NULL: what the configuration says; an
                                   empty list: only .cordon */
    const char *const *sockets; /* paths of Unix sockets that may be connected to */
    const char *const
        *with; /* names of presets for tools, as of cordon run --with; what they set is not in
                                   an environment that a call brings by itself */
    int git;   /* enum cordon_git */
    const char *const
        *allow_hosts; /* HOST, HOST:PORT, with *.D or **.D in place of a name: what may be
                                       reached; the network is proxied then. NULL-terminated */
    const char *const *deny_hosts;  /* and what may not, whatever else allows it */
    const unsigned *host_ports;     /* of this machine's localhost, that may be reached as the
                                      command's own; the network is proxied then. 0 ends them */
    const char *const *publish;     /* [ADDR:]HOSTPORT:PORT, ports of the command that this machine
                                      sees while it runs: cordon_session_published() */
    const char *const *credentials; /* NAME=HOST[,HOST], variables of this process whose secret the
                                       command uses for these hosts by https, and does not see */
    int allow_local_binding; /* hosts that are allowed may have addresses that are not public */
    struct cordon_layer
        *layer; /* open: what the commands write goes there; NULL: to the real files */
};

#define CORDON_NO_LIMIT UINT64_MAX

/* 0: what the profile and the configuration say, else the default, which in a sandbox is 4096
 * processes (not as root), files of 16 GiB and 65536 descriptors. Memory is that of all that a command starts where
 * a cgroup can be made or had from systemd; else of each process. */
struct cordon_limits {
    size_t size;
    uint64_t memory;        /* bytes */
    uint64_t cpu_time_ms;   /* of each process; rounded up to seconds */
    uint64_t pids;          /* processes and threads */
    uint64_t file_size;     /* bytes, of each file that it writes */
    uint64_t files;         /* open descriptors of each process */
    uint64_t address_space; /* bytes of each process, reserved ones, too */
};

enum cordon_limit {
    CORDON_LIMIT_MEMORY = 1,
    CORDON_LIMIT_CPU_TIME = 2,
    CORDON_LIMIT_PIDS = 4,
    CORDON_LIMIT_FILE_SIZE = 8,
    CORDON_LIMIT_FILES = 16,
    CORDON_LIMIT_ADDRESS_SPACE = 32
};

/* --- engine --- */

enum cordon_engine_flag {
    CORDON_IDS_IN_ORDER = 1 /* session and chunk ids count up; for tests */
};

struct cordon_question;

struct cordon_engine_options {
    size_t size;
    const char *
        config; /* a config.toml; NULL: the user's, as of `cordon run`, if there is one; "": none */
    const struct cordon_policy *policy; /* of commands that bring none; NULL: the default one */
    size_t max_sessions;                /* of the model's calls; 0: 64 */
    size_t output_memory;               /* bytes kept of each session; 0: 1 MiB */
    uint64_t spool_quota;  /* bytes of each session that go to disk when memory is full; 0: none */
    unsigned flags;        /* of enum cordon_engine_flag */
    const char *thread_id; /* a name of the conversation, which its commands get as CODEX_THREAD_ID
                              and CORDON_THREAD_ID; NULL: none */
    const char *launcher;  /* path of cordon-linux-sandbox; NULL: found beside the program or where
                              it was installed */
    /* For cordon_execute(). A folder with a folder "rules", like $CORDON_HOME; new rules go there.
     * NULL: the user's, as of `cordon run`. "": the rules in /etc/cordon are all there are, and no answer
     * adds one. */
    const char *rules;
    /* Somebody has to be asked; cordon_answer_question() may be called from here or later. NULL:
     * nobody can be asked, which is a no. */
    void (*on_question)(void *data, const struct cordon_question *question);
    /* A question needs no answer any more that this host has not given itself: time was up, or its
     * command was cancelled. May be NULL. */
    void (*on_question_over)(void *data, const char *id);
    void *question_data;          /* of these two */
    uint64_t question_timeout_ms; /* 0: none; 120 s at most for CORDON_QUESTION_HELD */
};

struct cordon_engine;

CORDON_API int cordon_open(const struct cordon_engine_options *options,
                           struct cordon_engine **ret_engine, struct cordon_error *error);
CORDON_API void cordon_close(struct cordon_engine *engine);
CORDON_API const char *cordon_version(void); /* "0.1.0" */

/* --- the loop --- */

/* The one descriptor to poll for reading; the engine's. -1 on failure. */
CORDON_API int cordon_fd(struct cordon_engine *engine, struct cordon_error *error);

/* Does what is to be done, calls back, and never waits. */
CORDON_API int cordon_dispatch(struct cordon_engine *engine, struct cordon_error *error);

/* Waits up to so many milliseconds (-1: as long as it takes) for something, and does it. */
CORDON_API int cordon_wait(struct cordon_engine *engine, int timeout_ms,
                           struct cordon_error *error);

/* --- how a command ended --- */

enum cordon_how {
    CORDON_EXITED,         /* exit_code */
    CORDON_SIGNALED,       /* signal; exit_code is 128 + signal */
    CORDON_FAILED_TO_START /* failure; exit_code is 127 (not found) or 126 */
};

struct cordon_end {
    int how; /* enum cordon_how */
    int exit_code;
    int signal;
    uint64_t wall_ns;
    uint64_t user_ns;
    uint64_t system_ns;
    struct cordon_error failure;
    unsigned limits_hit; /* of enum cordon_limit, those that are known to have been reached */
};

/* --- one command to its end --- */

struct cordon_run_options {
    size_t size;
    const char *const *argv;            /* NULL-terminated */
    const char *const *env;             /* complete, NULL-terminated; NULL: by the policy */
    const char *cwd;                    /* NULL: the workspace; relative: from there */
    const struct cordon_policy *policy; /* NULL: the engine's */
    const void *input;                  /* what it reads; NULL: nothing */
    size_t input_len;
    uint64_t timeout_ms;                /* 0: none */
    size_t max_output;                  /* bytes kept of each stream, half and half; 0: 1 MiB */
    const struct cordon_limits *limits; /* NULL: as a zeroed one */
};

enum cordon_outcome {
    CORDON_RUN_ENDED, /* by itself; `end` */
    CORDON_RUN_TIMED_OUT,
    CORDON_RUN_DENIED /* it failed, and the sandbox refused it something: `denial` */
};

/* Output is valid UTF-8, with "... N bytes omitted ..." where something was left out. */
struct cordon_result {
    int outcome; /* enum cordon_outcome */
    const struct cordon_end *end;
    const char *output[2]; /* stdout, stderr; NUL-terminated */
    size_t output_len[2];
    const char *denial; /* what was refused and what would allow it, also of a command that ended
                           well all the same; NULL */
    const char *events; /* with a trace: an array of JSON, the newest 4096 at most; NULL: none was
                           asked for, or nobody saw: no sandbox, or no guard on this host */
    const char *const *published; /* as cordon_session_published() has it */
};

CORDON_API int cordon_run(struct cordon_engine *engine, const struct cordon_run_options *options,
                          struct cordon_result **ret_result, struct cordon_error *error);
CORDON_API void cordon_result_free(struct cordon_result *result);

/* --- one command through the executor --- */

/* What the rules say, a question to somebody when it takes one, the sandbox, and after a denial
 * perhaps a second attempt with the smallest widening that would have helped, or without a sandbox
 * when somebody says so. Nothing waits in here, and no time of the command runs while somebody
 * thinks. examples/approve.c is a host that does this. */

enum cordon_approval {
    CORDON_APPROVAL_DEFAULT,    /* approval_policy of the engine's config file, else on-request */
    CORDON_APPROVAL_ON_REQUEST, /* what wants out of the sandbox, and what rules want asked */
    CORDON_APPROVAL_UNTRUSTED,  /* everything that is not known to be harmless */
    CORDON_APPROVAL_GRANULAR,   /* as on-request, with the questions of `asks` only */
    CORDON_APPROVAL_NEVER       /* what would be asked is refused */
};

enum cordon_asks {
    CORDON_ASKS_SANDBOX = 1, /* about the sandbox */
    CORDON_ASKS_RULES = 2    /* about what a rule wants asked */
};

enum cordon_decision {
    CORDON_APPROVED,        /* this once */
    CORDON_FOR_SESSION,     /* and whenever the same is asked again by this engine */
    CORDON_WITH_RULE,       /* and for good, by a new rule */
    CORDON_WITHOUT_SANDBOX, /* this once, and without a sandbox */
    CORDON_DENIED,
    CORDON_TIMED_OUT, /* nobody answered, which is a no */
    CORDON_ABORT,     /* no, and stop whatever this is part of */
    CORDON_NO_BY_RULE /* no, and for good, by a new rule; of a host */
};

enum cordon_question_kind {
    CORDON_QUESTION_COMMAND, /* before it runs */
    CORDON_QUESTION_RETRY,   /* the sandbox refused it something: once more? */
    CORDON_QUESTION_HELD     /* while it runs: the call that the sandbox refuses waits */
};

/* Borrowed for the call of on_question(). */
struct cordon_question {
    const char *id;
    int kind;                /* enum cordon_question_kind */
    const char *const *argv; /* NULL-terminated */
    const char *cwd;
    const char *reason;           /* why it is asked */
    const char *covers;           /* what a yes would allow, in words */
    const char *const *prefix;    /* that CORDON_WITH_RULE allows; NULL when that is not offered, or
                                     of a host */
    unsigned offers;              /* the answers that are taken: bits 1 << enum cordon_decision */
    const char *programs;         /* where the names of its programs lead; may be NULL or "" */
    const char *const *variables; /* "NAME=value", that the call sets; NULL-terminated */
    const char *host;     /* that it wants to connect to; NULL: it is about something else */
    unsigned port;        /* of `host`; a rule is about every port */
    const char *protocol; /* of `host`: "http", "https", "socks5_tcp"; else NULL */
};

/* Answers an open question, at once or at any later time; not only the host's asker may know the
 * id. `reason` may be NULL. CORDON_ERROR_NOT_FOUND when it is not open any more,
 * CORDON_ERROR_INVALID for a yes that it does not offer. */
CORDON_API int cordon_answer_question(struct cordon_engine *engine, const char *id, int decision,
                                      const char *reason, struct cordon_error *error);

struct cordon_execute_options {
    size_t size;
    const char *const *argv; /* these, to `limits`, as in struct cordon_run_options */
    const char *const *env;
    const char *cwd;
    const struct cordon_policy *policy;
    const void *input; /* of each attempt; copied */
    size_t input_len;
    uint64_t timeout_ms; /* of each attempt */
    size_t max_output;
    const struct cordon_limits *limits;
    int approval;  /* enum cordon_approval */
    unsigned asks; /* with CORDON_APPROVAL_GRANULAR: of enum cordon_asks */
    int escalated; /* it wants to run without a sandbox */
    /* Permissions that it wants beyond its policy, which are asked about: JSON as in exec/run,
     * {"file_system": {"write": ["/path"]}, "network": {"enabled": true}}; NULL: none. */
    const char *additional;
    const char *justification; /* by whoever wants it run, for whoever is asked; NULL: none */
    const char *const *prefix; /* that the caller would like to be allowed for good; NULL: none */
    /* What an attempt writes, as it comes; may be NULL. `stream` is 1 or 2. */
    void (*on_output)(void *data, int stream, const char *bytes, size_t len);
    uint64_t kill_after_ms;    /* from SIGTERM to SIGKILL, when its time is up; 0: 2 s */
    int yes_means_unsandboxed; /* a first yes covers a second run without a sandbox, as in Codex */
};

enum cordon_execution_outcome {
    CORDON_EXECUTION_RAN,       /* `attempts` */
    CORDON_EXECUTION_FORBIDDEN, /* by a rule or the policy: `reason` */
    CORDON_EXECUTION_REJECTED,  /* somebody was asked and did not say yes: `reason`, `decision` */
    CORDON_EXECUTION_FAILED     /* before anything ran: `reason` */
};

enum cordon_place {
    CORDON_PLACE_SANDBOX,
    CORDON_PLACE_WIDENED, /* in the sandbox, with `widened` more than its policy */
    CORDON_PLACE_NONE     /* without a sandbox */
};

struct cordon_attempt {
    int place;           /* enum cordon_place */
    const char *widened; /* in words; NULL: nothing */
    const struct cordon_result *result;
};

/* Borrowed for the call of `on_done`. */
struct cordon_execution_result {
    int outcome; /* enum cordon_execution_outcome */
    int decision;
    const char *reason;                       /* why it did not run; NULL */
    const struct cordon_attempt *attempts[2]; /* the last one counts; NULL: there is none */
    const char *const *warnings;              /* lines for people; NULL-terminated */
    const char *json; /* all of it with every question, as the method exec/run answers */
};

struct cordon_execution;

typedef void cordon_done_fn(void *data, const struct cordon_execution_result *result);

/* `ret_execution` may be NULL; what it is given is valid until `on_done` was called. */
CORDON_API int cordon_execute(struct cordon_engine *engine,
                              const struct cordon_execute_options *options, cordon_done_fn *on_done,
                              void *data, struct cordon_execution **ret_execution,
                              struct cordon_error *error);

/* Ends the command, or takes back the question that it waits for; `on_done` is still called. */
CORDON_API void cordon_execution_cancel(struct cordon_execution *execution);

/* --- a command to talk to, by bytes --- */

struct cordon_session;

enum cordon_session_flag {
    CORDON_TTY = 1,        /* on a terminal of its own */
    CORDON_STDIN_PIPE = 2, /* without one: stdin is a pipe, and not /dev/null */
    CORDON_SCREEN = 4 /* with CORDON_TTY: what it shows can be read, see struct cordon_screen */
};

struct cordon_session_options {
    size_t size;
    const char *const *argv; /* these four as in struct cordon_run_options */
    const char *const *env;
    const char *cwd;
    const struct cordon_policy *policy;
    unsigned flags;               /* of enum cordon_session_flag */
    unsigned short rows, columns; /* 0: 24 and 80 */
    /* There is more to read, more room to write, an event, or it has ended. May free the session. */
    void (*on_change)(void *data, struct cordon_session *session);
    void *data;
    const struct cordon_limits *limits; /* NULL: as a zeroed one */
};

CORDON_API int cordon_session_start(struct cordon_engine *engine,
                                    const struct cordon_session_options *options,
                                    struct cordon_session **ret_session,
                                    struct cordon_error *error);

/* Its ports that this machine sees, or saw until it ended: "ADDR:HOSTPORT:PORT" with what they have
 * got. NULL-terminated; borrowed until the next call of this. */
CORDON_API const char *const *cordon_session_published(struct cordon_session *session);

/* Kills it, if it still runs. To be called before cordon_close(). */
CORDON_API void cordon_session_free(struct cordon_session *session);

enum cordon_record_kind {
    CORDON_BYTES, /* of one stream */
    CORDON_GAP,   /* `len` bytes came too early to be kept until now */
    CORDON_EMPTY, /* nothing more for now: on_change tells when */
    CORDON_EOF    /* nothing more, ever */
};

struct cordon_record {
    int kind;        /* enum cordon_record_kind */
    int stream;      /* 1: stdout and terminal, 2: stderr */
    uint64_t offset; /* in all that the command wrote */
    uint64_t len;
};

/* Reads what comes next, at most `max` (>= 4) bytes of it. */
CORDON_API void cordon_session_read(struct cordon_session *session, void *into, size_t max,
                                    struct cordon_record *ret_record);

/* Takes all of it, or fails: CORDON_ERROR_LIMIT when too much waits already (on_change tells when
 * there is room), CORDON_ERROR_INVALID without an input. What has ended swallows everything. */
CORDON_API int cordon_session_write(struct cordon_session *session, const void *bytes, size_t len,
                                    struct cordon_error *error);
CORDON_API void cordon_session_close_input(struct cordon_session *session);

CORDON_API int cordon_session_resize(struct cordon_session *session, unsigned short rows,
                                     unsigned short columns, struct cordon_error *error);
CORDON_API int cordon_session_signal(struct cordon_session *session, int signal,
                                     struct cordon_error *error);

/* As Ctrl-C. */
CORDON_API int cordon_session_interrupt(struct cordon_session *session, struct cordon_error *error);

/* SIGTERM to everything that it started, SIGKILL later (at once when 0). */
CORDON_API int cordon_session_terminate(struct cordon_session *session, unsigned grace_ms,
                                        struct cordon_error *error);

/* NULL while it runs; the session's. */
CORDON_API const struct cordon_end *cordon_session_end(const struct cordon_session *session);

/* What it did, with a trace: the oldest event that is kept with a number above `*after`, as an
 * object of JSON, good until the next call with this session; `*after` becomes its number ("seq"). NULL: none
 * yet, and on_change tells when; or it has none at all. Begin with 0. Numbers that are missing are
 * of events that went before they were read: the newest 4096 are kept, also behind its end. */
CORDON_API const char *cordon_session_event(struct cordon_session *session, uint64_t *after);

/* What was refused to it, and what would allow it, also when it ended well all the same; NULL while
 * it runs, or when nothing was. */
CORDON_API const char *cordon_session_denial(struct cordon_session *session);

/* Waits for the end, up to so many milliseconds (-1: as long as it takes): 1 when it has ended, 0
 * when time was up, -1 on failure. */
CORDON_API int cordon_session_wait(struct cordon_session *session, int timeout_ms,
                                   struct cordon_error *error);

/* --- what a terminal shows --- */

/* Rows of text without escape sequences, for programs that draw. At 24x80 it costs a session 75 to
 * 150 KiB, at most 256 KiB more of scrollback, and time for every byte. */
struct cordon_screen {
    unsigned rows, columns;
    unsigned cursor_row, cursor_column; /* from 0 */
    int cursor_visible;
    int alternate; /* the screen of editors and pagers is up */
    const char *title;
    const char *text; /* each row with a newline behind it, without blanks at its end */
    size_t text_len;
    const char *scrollback; /* the newest lines that left at the top, likewise */
    size_t scrollback_len;
};

/* What it shows now, as a copy to be freed. CORDON_ERROR_INVALID without CORDON_SCREEN. */
CORDON_API int cordon_session_screen(struct cordon_session *session,
                                     struct cordon_screen **ret_screen, struct cordon_error *error);
CORDON_API void cordon_screen_free(struct cordon_screen *screen);

/* --- change layers --- */

/* What the commands of a policy with a layer write goes there, and nothing of it to the real files until it is accepted
 * (docs/layers.md). A layer stays on the disk when it is closed, for `cordon changes` and the like, too.
 *
 * These functions block: they read and move files, some 0.1 s for 10,000 changes, and the first two wait up to a second for
 * another program that has the layer. None calls back. Texts that they give are JSON, and good until the next call with
 * the same layer, or engine; in paths, bytes that are no UTF-8 are U+FFFD there, with "pathBase64" beside it. */

struct cordon_layer_options {
    size_t size;
    const char *
        name; /* this one, which is made if there is none, or an id; NULL: a new one without a name */
    const char *const *
        direct; /* of a new one, as the next two: directories that are left out, canonical; NULL: none */
    uint64_t max_bytes; /* 0: as much as the disk takes */
    int git;            /* git directories are written in it, and accepted as a whole */
};

/* CORDON_ERROR_BUSY: another program has it, which the message names. */
CORDON_API int cordon_layer_open(struct cordon_engine *engine,
                                 const struct cordon_layer_options *options,
                                 struct cordon_layer **ret_layer, struct cordon_error *error);

/* It stays open with CORDON_ERROR_BUSY: a command of it runs, an execution of it is not done, or a session of it was
 * not freed. cordon_close() closes those that are left. Of one that no command ran in, nothing stays on the disk. */
CORDON_API int cordon_layer_close(struct cordon_layer *layer, struct cordon_error *error);

CORDON_API const char *cordon_layer_id(const struct cordon_layer *layer); /* the layer's */

/* Which of all changes are meant. Zeroed: all. */
struct cordon_layer_query {
    size_t size;
    const char *const *paths; /* absolute, each with what lies below; NULL-terminated; NULL: all */
    int step; /* what this one changed, against what was there before it; 0: all of them */
    uint64_t max_bytes; /* of the text of one difference; 0: 1 MiB */
};

/* {"changes": [{"path", "kind", "marks", "step", "stamp", ...}], "counts", "problems"}: docs/protocol.md says under
 * layer/changes what is in a change. `query` may be NULL. NULL on failure, as the next ones. */
CORDON_API const char *cordon_layer_changes(struct cordon_layer *layer,
                                            const struct cordon_layer_query *query,
                                            struct cordon_error *error);

/* {"diffs": [{"change", "unified", ...}], "problems"}: each as layer/diff answers; "problem" in place of the rest says why there is
 * none. */
CORDON_API const char *cordon_layer_diff(struct cordon_layer *layer,
                                         const struct cordon_layer_query *query,
                                         struct cordon_error *error);

enum cordon_layer_action {
    CORDON_LAYER_ACCEPT,   /* into the real files; the old ones are kept */
    CORDON_LAYER_DROP,     /* out of the layer; for good, and while no command of it runs */
    CORDON_LAYER_UNDO,     /* an accept: the old files are back, and the changes in the layer */
    CORDON_LAYER_UNDO_STEP /* what one step wrote, out of the layer; while no command of it runs */
};

enum cordon_layer_flag {
    CORDON_LAYER_FORCE = 1, /* also what conflicts with changes of others, and of a suspect layer */
    CORDON_LAYER_MARKED =
        2, /* of all, also what others would run later (marks); paths that are named are taken */
    CORDON_LAYER_DRY_RUN = 4 /* says what would be done */
};

struct cordon_layer_request {
    size_t size;
    int action;               /* enum cordon_layer_action */
    const char *const *paths; /* as above */
    unsigned flags;           /* of enum cordon_layer_flag */
    int number;               /* of the accept; 0: the last one; or of the step */
    const char *
        expected; /* {"/path": "stamp"} in JSON, as a user was shown them: what is another now is left; NULL */
};

/* {"acceptId", "done": [...], "doneBase64"?, "left": [{"path", "pathBase64"?, "reason", "detail"}]}: what was left, because of
 * a conflict, a mark, ..., is no failure. */
CORDON_API const char *cordon_layer_apply(struct cordon_layer *layer,
                                          const struct cordon_layer_request *request,
                                          struct cordon_error *error);

/* All of this user, the one used last first: {"layers": [{"layerId", "name", "state", "roots", "steps", ...}], "problems"}, as
 * layer/list. */
CORDON_API const char *cordon_layers(struct cordon_engine *engine, struct cordon_error *error);

/* --- the calls of a model --- */

/* Several may wait on one session: a write is done when it is asked for, not when others have come
 * back; output goes to the one that comes back first and to no other; the end is told to all. */
struct cordon_call;

enum cordon_until {
    CORDON_UNTIL_TIME,
    CORDON_UNTIL_TEXT,  /* `text` was written */
    CORDON_UNTIL_QUIET, /* nothing was written for `number` ms */
    CORDON_UNTIL_BYTES  /* `number` bytes wait to be shown */
};

/* When a call comes back, besides at the end of the command. */
struct cordon_pace {
    size_t size;
    uint64_t yield_time_ms;     /* at the latest; 0: the default of the call */
    uint64_t max_output_tokens; /* 0: 10,000 */
    int until;                  /* enum cordon_until */
    const char *text;
    uint64_t number;
};

enum cordon_reason { CORDON_ENDED, CORDON_YIELDED, CORDON_MET };

struct cordon_answer {
    int reason;                   /* enum cordon_reason */
    int session_id;               /* to go on with while it runs; 0 when it has ended */
    const struct cordon_end *end; /* NULL while it runs */
    uint64_t wall_ns;
    uint64_t bytes;   /* that came since the last answer */
    const char *text; /* for the model */
    size_t text_len;
    const char
        *denial; /* as of cordon_session_denial(); while it runs of what was refused since the
                           last call; NULL */
    const char *events; /* with an end: as of cordon_result.events; NULL */
};

typedef void cordon_answer_fn(void *data, const struct cordon_answer *answer);

struct cordon_exec {
    size_t size;
    const char *cmd;     /* shell text */
    const char *workdir; /* NULL: the workspace; relative: from there */
    const char *shell;   /* NULL: $SHELL, the user's login shell, or /bin/sh */
    int no_login;        /* -c, not -lc */
    unsigned flags;      /* of enum cordon_session_flag */
    unsigned short rows, columns;
    uint64_t owner;                 /* any number of yours, for cordon_terminate_all(); 0: nobody */
    const struct cordon_pace *pace; /* NULL: the defaults */
    const struct cordon_policy *policy; /* NULL: the engine's */
    const struct cordon_limits *limits; /* NULL: as a zeroed one */
};

/* `ret_call` may be NULL; what it is given is valid until `on_answer` was called. */
CORDON_API int cordon_exec_command(struct cordon_engine *engine, const struct cordon_exec *exec,
                                   cordon_answer_fn *on_answer, void *data,
                                   struct cordon_call **ret_call, struct cordon_error *error);

struct cordon_write {
    size_t size;
    int session_id;
    const char *chars; /* NULL: only waits */
    size_t len;
    const char *write_id; /* of two writes with the same one the second is not done; may be NULL */
    int close;            /* the input, behind `chars` */
    const struct cordon_pace *pace; /* NULL: the defaults */
};

CORDON_API int cordon_write_stdin(struct cordon_engine *engine, const struct cordon_write *write,
                                  cordon_answer_fn *on_answer, void *data,
                                  struct cordon_call **ret_call, struct cordon_error *error);

/* Waits for what `pace` says, at most 300 s unless it says less. */
CORDON_API int cordon_wait_for(struct cordon_engine *engine, int session_id,
                               const struct cordon_pace *pace, cordon_answer_fn *on_answer,
                               void *data, struct cordon_call **ret_call,
                               struct cordon_error *error);

/* Ends a command with everything that it started, and answers when that is done. */
CORDON_API int cordon_terminate(struct cordon_engine *engine, int session_id, unsigned grace_ms,
                                cordon_answer_fn *on_answer, void *data,
                                struct cordon_call **ret_call, struct cordon_error *error);

/* Stops a call without an answer; its command runs on, and none of its output is lost. */
CORDON_API void cordon_cancel(struct cordon_call *call);

/* Asks all commands of the model's calls to end (owner 0), or those of an owner; how many. */
CORDON_API size_t cordon_terminate_all(struct cordon_engine *engine, uint64_t owner,
                                       unsigned grace_ms);

CORDON_API int cordon_resize(struct cordon_engine *engine, int session_id, unsigned short rows,
                             unsigned short columns, struct cordon_error *error);

/* As cordon_session_screen(), of a command of the model's calls. */
CORDON_API int cordon_screen_of(struct cordon_engine *engine, int session_id,
                                struct cordon_screen **ret_screen, struct cordon_error *error);

/* As cordon_session_event(), of a command of the model's calls that runs; good until the next call with this
 * engine. */
CORDON_API const char *cordon_event_of(struct cordon_engine *engine, int session_id,
                                       uint64_t *after);

/* The ids of those that run (owner 0: all), ascending, at most `max` of them into `ret_ids`; how
 * many there are. */
CORDON_API size_t cordon_list(struct cordon_engine *engine, uint64_t owner, int *ret_ids,
                              size_t max);

#ifdef __cplusplus
}
#endif

#endif

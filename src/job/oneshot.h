/* Runs one command to its completion.
 *
 *     struct oneshot_options options;
 *     struct oneshot_result result;
 *
 *     oneshot_defaults(&options);
 *     options.sandbox = ..., options.argv = ..., options.env = ..., options.cwd = ...
 *     if (oneshot_run(&options, &result, err) == 0) {
 *         ... result.end, oneshot_exit_code(&result), result_to_json(&result) ...
 *         oneshot_result_done(&result);
 *     }
 *
 * A command that fails, is killed, runs out of time, is denied something, or cannot be executed is
 * a result, with all its output; -1 is for failures of our own only.
 */
#pragma once

#include "base/err.h"
#include "denial/denial.h"
#include "output/stream.h"
#include "process/process.h"
#include "process/pty.h"
#include "process/resource_limits.h"

#include <stddef.h>
#include <stdint.h>

struct access_map;
struct capture;
struct loop;
struct oneshot;
struct sandbox;

enum oneshot_stdio {
    ONESHOT_PIPES,   /* output captured, stdout and stderr apart */
    ONESHOT_TTY,     /* a PTY of its own; all output is one stream, STREAM_STDOUT */
    ONESHOT_INHERIT, /* the caller's own descriptors 0, 1, 2: nothing captured, nothing relayed */
};

enum oneshot_input {
    ONESHOT_INPUT_NULL, /* /dev/null; a PTY just gets nothing */
    ONESHOT_INPUT_DATA, /* `input_data`, then end of file */
    ONESHOT_INPUT_FD,   /* relayed from `input_fd` until its end; the command never gets the
                           descriptor itself (spec/containment.md, hole 6) */
};

enum oneshot_signals {
    ONESHOT_SIGNALS_LEAVE, /* a library: the host's signals are its own */
    /* A program: INT and QUIT are passed on, TERM and HUP cancel, TSTP stops the command with us;
     * with a terminal also WINCH. */
    ONESHOT_SIGNALS_HANDLE,
};

/* Zeroed fields mean what is said here; start from oneshot_defaults(). Everything is borrowed for
 * the call. */
struct oneshot_options {
    struct loop *loop; /* NULL: one of its own for the call */
    struct sandbox *sandbox;
    const struct access_map *access; /* what the sandbox was made for; names denials; NULL: none */
    const char
        *cgroup_base; /* as in resource_limits_open(): NULL finds one when a limit needs it */
    char *const *argv;
    const char *program; /* executed instead of argv[0]; may be NULL */
    char *const *env;
    const char *cwd; /* absolute */

    enum oneshot_stdio stdio;
    enum oneshot_input input;
    const void *input_data;
    size_t input_len;
    int input_fd;
    /* ONESHOT_TTY: the user's terminal, which turns raw while the command runs and whose window
     * size and line settings the PTY follows; -1: none. */
    int terminal_fd;
    struct pty_size size; /* ONESHOT_TTY without a terminal; zero: 24 x 80 */

    uint64_t timeout_ns;    /* 0: none */
    uint64_t kill_after_ns; /* from TERM to KILL; 0: KILL at once */
    size_t max_output;      /* bytes retained of each stream */
    struct resource_limits limits;
    struct process_drain drain; /* zero: the defaults of process.h */
    enum oneshot_signals signals;
    int cancel_fd; /* cancels when readable; -1: none */

    /* Descriptors that get the output of each stream live, as fast as they take it; while one
     * takes nothing the command waits. When its reader is gone the command's own pipe is closed.
     * -1: none. */
    int relay[STREAM_COUNT];

    /* Live, before retention and without bound; each may be NULL. */
    void (*on_started)(void *data);
    void (*on_output)(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset);
    void (*on_over)(void *data); /* for oneshot_start() */
    void *data;
};

#define ONESHOT_KILL_AFTER_NS UINT64_C(2000000000) /* 2 s */

/* Pipes, no input, no timeout, ONESHOT_KILL_AFTER_NS, 1 MiB of output per stream, no descriptors.
 */
void oneshot_defaults(struct oneshot_options *options);

/* design.md 7 */
enum oneshot_end {
    ONESHOT_EXITED,          /* exit_code */
    ONESHOT_SIGNALED,        /* signal */
    ONESHOT_TIMED_OUT,       /* by us; exit_code or signal tell how it took that */
    ONESHOT_CANCELLED,       /* by us, on request: the same */
    ONESHOT_DENIED,          /* it failed, and the sandbox refused it something (`denials`) */
    ONESHOT_FAILED_TO_START, /* stage, failure */
};

struct oneshot_usage {
    uint64_t user_ns;
    uint64_t system_ns;
    uint64_t memory_peak_kb; /* of the tree with a cgroup, otherwise of its largest process */
    uint64_t voluntary_switches;
    uint64_t involuntary_switches;
    uint64_t bytes_written; /* sent to storage */
};

struct oneshot_result {
    enum oneshot_end end;
    int exit_code;     /* of the command; -1 when it has none */
    int signal;        /* that ended the command; 0 when none did */
    int cancel_signal; /* CANCELLED by a signal to us; 0 otherwise */
    bool failed;       /* the command was never executed: `stage` and `failure` are set */
    enum launch_stage stage;
    struct err failure;
    uint64_t wall_ns;
    bool usage_known;
    struct oneshot_usage usage;
    struct resource_limits limits_asked;
    struct resource_limits_report limits;
    enum oneshot_stdio stdio;
    struct capture *capture; /* owned; never NULL in a result */
    bool drain_cut; /* somebody still held the output when we stopped reading, or nobody took it */
    int output_pump_error
        [STREAM_COUNT]; /* errno value for which a relay was given up; 0: it was not */
    struct denials denials;
    const struct sandbox *sandbox; /* borrowed: layers and degradation; NULL: not known */
};

/* Starts the command in `options->loop`, without waiting for anything. When it has ended and its
 * output is read, `on_over` is called, once and never from in here; oneshot_take() then gives the
 * result, and oneshot_free() may be called there. The options are borrowed until oneshot_free().
 * NULL on failure. */
struct oneshot *oneshot_start(const struct oneshot_options *options, struct err *err);
void oneshot_cancel(struct oneshot *oneshot);
void oneshot_take(struct oneshot *oneshot, struct oneshot_result *ret);
void oneshot_free(struct oneshot *oneshot); /* kills what still runs */

/* The same in one go: runs the loop until it is over. */
int oneshot_run(const struct oneshot_options *options, struct oneshot_result *ret, struct err *err);
void oneshot_result_done(struct oneshot_result *result);

/* For a shell: the command's code; 124 timed out; 125 Cordon failed; 126 and 127 not executable
 * and not found; 128 + n ended by signal n (also when cancelled). */
int oneshot_exit_code(const struct oneshot_result *result);

const char *oneshot_end_name(enum oneshot_end end); /* "exited", "signaled", "timed-out", ... */

/* Runs one command to its completion: a job that its caller waits for.
 *
 *     struct job_run_options options;
 *     struct job_result result;
 *
 *     job_run_defaults(&options);
 *     options.sandbox = ..., options.argv = ..., options.env = ..., options.cwd = ...
 *     if (job_run(&options, &result, err) == 0) {
 *         ... result.end, job_result_exit_code(&result), result_to_json(&result, NULL) ...
 *         job_result_done(&result);
 *     }
 *
 * A command that fails, is killed, runs out of time, is denied something, or cannot be executed is
 * a result, with all its output; -1 is for failures of our own only.
 */
#pragma once

#include "base/err.h"
#include "denial/denial.h"
#include "job/job.h"
#include "output/order.h"
#include "process/process.h"
#include "process/pty.h"
#include "process/resource_limits.h"

#include <stddef.h>
#include <stdint.h>

struct access_map;
struct job_run;
struct loop;
struct sandbox;
struct timeline;

enum job_run_input {
    JOB_RUN_INPUT_NULL, /* /dev/null; a PTY just gets nothing */
    JOB_RUN_INPUT_DATA, /* `input_data`, then end of file */
    JOB_RUN_INPUT_FD,   /* what `input_fd` gives until its end; the command never gets the
                           descriptor itself, which may reach what the sandbox hides */
    JOB_RUN_INPUT_JOB,  /* what the caller gives with job_write() and job_close_input() */
};

enum job_run_signals {
    JOB_RUN_SIGNALS_LEAVE, /* a library: the host's signals are its own */
    /* A program: INT and QUIT are passed on, TERM and HUP cancel, TSTP stops the command with us;
     * with a terminal also WINCH and CONT, and who stops the command there stops us, too. */
    JOB_RUN_SIGNALS_HANDLE,
};

/* Zeroed fields mean what is said here; start from job_run_defaults(). Everything is borrowed for
 * the call. */
struct job_run_options {
    struct loop *loop; /* NULL: one of its own for the call */
    struct sandbox *sandbox;
    const struct access_map *access; /* what the sandbox was made for; names denials; NULL: none */
    unsigned topics;                 /* these two as in struct job_options */
    unsigned audit_topics;
    bool is_judged;      /* as in struct job_options */
    bool without_cgroup; /* as in struct resource_limits_scope */
    char *const *argv;
    const char *program; /* executed instead of argv[0]; may be NULL */
    char *const *env;
    const char *cwd; /* absolute */

    /* PIPES: output retained, stdout and stderr apart; TTY: all output is one stream, STREAM_STDOUT;
     * FDS: the caller's own descriptors 0, 1, 2, nothing retained, nothing passed on */
    enum process_stdio stdio;
    enum job_run_input input;
    const void *input_data;
    size_t input_len;
    int input_fd;
    /* PROCESS_TTY: the user's terminal, which turns raw while the command runs and whose window
     * size and line settings the PTY follows; -1: none. */
    int terminal_fd;
    struct pty_size size; /* PROCESS_TTY without a terminal; zero: 24 x 80 */

    uint64_t timeout_ns;    /* 0: none; stands still while something is held */
    uint64_t kill_after_ns; /* from TERM to KILL; 0: KILL at once */
    size_t max_output;      /* bytes retained of each stream, in memory */
    uint64_t spool;         /* ... and of its beginning on disk; 0: none (output/spool.h) */
    struct resource_limits limits;
    struct process_drain drain; /* zero: the defaults of process.h */
    enum job_run_signals signals;
    bool asks;     /* what its sandbox refuses may be held: job_set_asker() of job_run_job() */
    int cancel_fd; /* cancels when readable; -1: none */

    /* Descriptors that get the output of each stream live, as fast as they take it; while one
     * takes nothing the command waits. When its reader is gone the command's own pipe is closed.
     * -1: none. */
    int pump_fds[STREAM_COUNT];

    /* Live and without bound; each may be NULL. */
    void (*on_started)(void *data);
    void (*on_output)(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset);
    void (*on_traced)(void *data, const struct job *job); /* a timeline of it has more */
    void (*on_over)(void *data);                          /* for job_run_start() */
    void *data;
};

#define JOB_RUN_KILL_AFTER_NS UINT64_C(2000000000) /* 2 s */

/* Pipes, no input, no timeout, JOB_RUN_KILL_AFTER_NS, 1 MiB of output per stream, no descriptors.
 */
void job_run_defaults(struct job_run_options *options);

/* Two things may be true at once: how the command ended, which `process` of the result tells in any
 * case, and why we say that it did. */
enum job_run_end {
    JOB_RUN_EXITED, /* with a code of 0 also when there are denials: it ended well all the same */
    JOB_RUN_SIGNALED,
    JOB_RUN_TIMED_OUT, /* by us */
    JOB_RUN_CANCELLED, /* by us, on request */
    JOB_RUN_DENIED,    /* it failed, and the sandbox refused it something (`denials`) */
    JOB_RUN_FAILED_TO_START,
};

struct job_result {
    struct job *job; /* owned: its output by job_stream(), its job_limits() */
    enum job_run_end end;
    const struct process_end *process; /* the job's */
    int cancel_signal;                 /* CANCELLED by a signal to us; 0 otherwise */
    uint64_t wall_ns;
    uint64_t held_ns; /* of that, while somebody was being asked */
    enum process_stdio stdio;
    struct output_order order;
    bool drain_cut; /* the output was still held open when we stopped reading, or was not taken */
    int pump_error[STREAM_COUNT]; /* errno value for which passing on was given up; 0: it was not */
    struct denials denials;
    const struct sandbox *sandbox; /* borrowed: layers and degradation; NULL: not known */
};

/* Starts the command in `options->loop`, without waiting for anything. When it has ended and its
 * output is read, `on_over` is called, once and never from in here; job_run_take() then gives the
 * result, and job_run_free() may be called there. The options are borrowed until job_run_free().
 * NULL on failure. */
struct job_run *job_run_start(const struct job_run_options *options, struct err *err);
void job_run_cancel(struct job_run *run);

/* Until it is taken; borrowed. */
struct job *job_run_job(const struct job_run *run);

/* The terminal that the command's input comes from and its output goes to is wanted for something
 * else: it is as it was before the command, nothing is read from there and nothing written; or it is
 * the command's again. */
void job_run_lend_terminal(struct job_run *run, bool on);
void job_run_take(struct job_run *run, struct job_result *ret);
void job_run_free(struct job_run *run); /* kills what still runs */

/* The same in one go: runs the loop until it is over. */
int job_run(const struct job_run_options *options, struct job_result *ret, struct err *err);
void job_result_done(struct job_result *result);

/* For a shell: the command's code; 124 timed out; 125 Cordon failed; 126 and 127 not executable
 * and not found; 128 + n ended by signal n (also when cancelled). */
int job_result_exit_code(const struct job_result *result);

/* It was never executed: `process` says why. */
bool job_result_has_failed(const struct job_result *result);

const char *job_run_end_name(enum job_run_end end); /* "exited", "signaled", "timed-out", ... */

/* One running command, by pipes or a PTY or on given descriptors, driven by the loop.
 *
 *     process_start()      launch it; everything after comes as callbacks
 *       on_started         its program was executed
 *       on_output ...      bytes, in the order in which they were read
 *       on_input           room for more input again, or it has no reader any more
 *       on_fact            the guard of its sandbox saw something
 *       on_end             exactly once, and last: how it ended
 *     process_free()       any time (also from on_end, but from no other callback): kills what runs
 *
 * Output is read until its end after the command ended, but not for longer than a background
 * child that holds the pipe deserves: `drain`. Nothing that was read is ever taken back.
 */
#pragma once

#include "base/err.h"
#include "output/stream.h"
#include "process/pty.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct loop;
struct process;

enum process_stdio {
    PROCESS_PIPES, /* stdout and stderr by a pipe each */
    PROCESS_TTY,   /* all three on a PTY of its own; one stream */
    PROCESS_FDS,   /* the descriptors of `fds`; nothing is read here */
};

/* For PROCESS_PIPES. */
enum process_stdin {
    PROCESS_STDIN_NULL, /* /dev/null */
    PROCESS_STDIN_PIPE, /* process_write() feeds it, process_close_input() ends it */
};

#define INPUT_MAX 65536 /* bytes queued */

enum input_event {
    INPUT_ROOM,   /* the queue is empty again after it had refused something */
    INPUT_CLOSED, /* it has no reader any more; what was queued is dropped */
};

/* How the command came to its end. */
enum process_how {
    PROCESS_EXITED,          /* `code` */
    PROCESS_SIGNALED,        /* `signal` */
    PROCESS_FAILED_TO_START, /* `stage`, `failure` */
};

struct process_end {
    enum process_how how;
    int code;   /* -1 unless it exited */
    int signal; /* 0 unless one ended it */
    enum launch_stage stage;
    struct err failure;
    bool usage_known; /* false when its init was killed before it could tell */
    struct rusage usage;
    uint64_t bytes_written; /* sent to storage */
    uint64_t output_bytes;  /* of all streams, as passed to on_output */
    bool drain_cut;         /* the output was still held open when we stopped reading */
    uint64_t started_ns;    /* clock_now_ns() at process_start() */
    uint64_t ended_ns;      /* ... when the command itself had ended, before the drain */
};

/* For a shell and for models: the code, or 128 + n for signal n; 126 or 127 for what could not be
 * executed. */
int process_end_exit_code(const struct process_end *end);

/* Each may be NULL. `data` is the one of the options. */
struct process_events {
    void (*on_started)(void *data);
    void (*on_stopped)(void *data); /* of `tells_stops`: as by Ctrl-Z, until it gets SIGCONT */
    /* `offset` counts the bytes of all streams of this process before these. */
    void (*on_output)(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset);
    void (*on_input)(void *data, enum input_event event);
    /* As they come; all of a command are there before on_exit, those of what it left behind before
     * on_end. `fact` is borrowed for the call. */
    void (*on_fact)(void *data, const struct launch_fact *fact);
    /* These two only of a process that lingers: the command itself has ended, and what it wrote
     * until then has been passed on; then or later, its output has come to its end. */
    void (*on_exit)(void *data, const struct process_end *end);
    void (*on_output_end)(void *data);
    void (*on_end)(void *data, const struct process_end *end);
};

/* Stop reading after the end of the command when nothing came for `quiet_ns`, or `total_ns` after
 * it at the latest. */
struct process_drain {
    uint64_t quiet_ns;
    uint64_t total_ns;
};

#define PROCESS_DRAIN_QUIET_NS UINT64_C(100000000)  /* 100 ms */
#define PROCESS_DRAIN_TOTAL_NS UINT64_C(2000000000) /* 2 s, as in Codex */

struct process_options {
    struct loop *loop; /* borrowed for the life of the process, as is the sandbox */
    struct sandbox *sandbox;
    char *const *argv; /* these four as in struct launch_options; borrowed for the call */
    const char *program;
    char *const *env;
    const char *cwd;
    enum process_stdio stdio;
    enum process_stdin input;
    bool asks;    /* what its sandbox refuses may be held until process_answer(): process_asks() */
    bool lingers; /* PROCESS_PIPES: what the command leaves behind goes on; on_end comes when that
                     has ended, too, or process_terminate() asked for it */
    bool tells_stops;     /* PROCESS_TTY: the terminal may stop the command; else nobody could */
    int fds[3];           /* PROCESS_FDS; borrowed for the call */
    struct pty_size size; /* PROCESS_TTY; zero: 24 x 80 */
    const struct termios *tty_like; /* PROCESS_TTY: line settings to copy; may be NULL */
    launch_limiter *limiter;        /* these two as in struct launch_options */
    void *limiter_data;
    struct process_drain drain;          /* zero: the defaults above */
    const struct process_events *events; /* borrowed for the life of the process */
    void *data;
};

/* NULL on failure. A command that cannot be executed is no failure here but comes as on_end. */
struct process *process_start(const struct process_options *options, struct err *err);
void process_free(struct process *process);

/* The command's pid as seen from here; 0 when it has ended or cannot be told. */
pid_t process_pid(const struct process *process);

/* What its sandbox refuses is told by on_fact: it has a guard, which is to tell. */
bool process_has_facts(const struct process *process);

/* It is held until somebody has answered (FACT_ASKED), as was wanted. */
bool process_asks(const struct process *process);

/* As launch_take_stdio() and launch_answer_exit(). */
void process_take_stdio(struct process *process, int ret_fds[3]);
void process_answer_exit(const struct process *process, uint64_t id, int wait_status);

/* Answers FACT_ASKED; of a question that nobody waits for any more it changes nothing. */
void process_answer(const struct process *process, uint64_t id, enum launch_verdict verdict);

/* As launch_publish(). */
int process_publish(struct process *process, uint16_t port, int listener, struct err *err);

/* The command has not ended yet, as far as its init has told. */
bool process_is_running(const struct process *process);

/* What the kernel says now, which the loop may still be about to tell: its init is not gone. */
bool process_is_alive(const struct process *process);

/* Queues input (PIPE, TTY) and returns how much of it was taken: less than `len` when the queue of
 * INPUT_MAX bytes is full; INPUT_ROOM then follows when it is empty. Once
 * the input has no reader any more everything is taken and dropped. */
size_t process_write(struct process *process, const void *bytes, size_t len);

/* Ends the input behind what is queued: closes the pipe, or sends the terminal's end-of-file
 * byte. */
void process_close_input(struct process *process);

/* Stops reading a stream, so that the command waits once its pipe is full; or goes on. The drain
 * after the end of the command stands still meanwhile, unless the command was to be terminated. */
void process_hold_output(struct process *process, enum stream stream, bool on);

/* No more of a stream is wanted: the command gets SIGPIPE when it writes there. What a command on a
 * PTY writes goes on being read. */
void process_close_output(struct process *process, enum stream stream);

/* ERR_UNSUPPORTED without a PTY. A command that has ended is no error, here and below. */
int process_resize(struct process *process, struct pty_size size, struct err *err);

/* Sends a signal to the command alone. */
int process_signal(struct process *process, int signal, struct err *err);

/* Sends a signal to everything that the command started, too. */
int process_signal_all(struct process *process, int signal, struct err *err);

/* SIGINT as by Ctrl-C: to the foreground group of the terminal, or to everything without one. */
int process_interrupt(struct process *process, struct err *err);

/* Ends the command with everything it started: SIGTERM, and SIGKILL after `grace_ns` (at once when
 * 0). The end comes as on_end. A second call can only shorten the grace. */
int process_terminate(struct process *process, uint64_t grace_ns, struct err *err);

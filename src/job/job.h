/* A process that outlives the call that started it: its output is retained, input can be sent to it
 * at any time, and how it ended is kept until somebody has asked.
 *
 *     session_start()
 *       session_write(), session_interrupt(), session_resize(), session_terminate() ...
 *       session_output() with readers, session_unread() for a model
 *       SESSION_ENDED          once; everything that it wrote has been read by then
 *     session_free()           any time, but from no callback: kills what runs
 */
#pragma once

#include "base/err.h"
#include "denial/denial.h"
#include "job/job_table.h"
#include "output/output.h"
#include "process/process.h"
#include "process/resource_limits.h"
#include "screen/screen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct session;
struct unread;

#define SESSION_INPUT_MAX ((size_t)1 << 20) /* bytes that wait for the command to read them */

/* After the end of the command its output is read until nothing came for so long; spec 1,
 * "post-exit wait for stream close". */
#define SESSION_DRAIN_QUIET_NS UINT64_C(50000000)

struct session_options {
    int id;
    uint64_t owner;      /* 0: nobody */
    const char *command; /* to show to people; copied */
    /* Its events, data, drain, limits and cgroup do not count. */
    const struct process_options *process;
    const struct limits *limits;     /* NULL: none */
    const char *cgroup_base;         /* as in limits_open() */
    const struct access_map *access; /* what the sandbox was made for, borrowed for the life of the
                                        session; names denials; NULL: none */
    struct output_options output;
    /* Of a terminal's size, and only for a terminal; NULL: none. */
    const struct screen_limits *screen;
};

/* NULL on failure. A command that cannot be executed is no failure here but ends at once. */
struct session *session_start(const struct session_options *options, struct err *err);
void session_free(struct session *session);

/* --- being told --- */

enum session_event {
    SESSION_STARTED, /* its program was executed */
    SESSION_ROOM,    /* all input was passed on, after session_write() had found no room */
    /* These two only of a process that lingers: the command itself has ended, what it wrote until
     * then is there; and later, no more output can come. */
    SESSION_EXITED,
    SESSION_READ_OUT,
    SESSION_ENDED, /* and its output is complete */
};

/* Embedded in whoever wants to know; borrowed until session_unwatch(). The callback must neither
 * free the session nor change its set of watches. */
struct session_watch {
    void (*on_event)(struct session_watch *watch, enum session_event event);
    struct session_watch *next;
    struct session_watch *previous;
};

void session_watch(struct session *session, struct session_watch *watch);
void session_unwatch(struct session *session, struct session_watch *watch);

/* --- input --- */

enum session_written {
    SESSION_WRITTEN,
    SESSION_WRITTEN_BEFORE, /* a write of this name was: nothing was done */
    SESSION_INTERRUPTED,    /* it was the byte U+0003 for a command without a terminal */
    SESSION_NO_INPUT,       /* it has none, or it was closed */
    SESSION_NO_ROOM,        /* nothing was taken; SESSION_ROOM follows */
    SESSION_IS_OVER,        /* the command has ended */
};

/* Takes all of the bytes or none. On a PTY they mean what the line discipline makes of them;
 * without one exactly U+0003 interrupts (spec/unified-exec.md 5). `name` may be NULL; one of a
 * write that was taken is remembered. -1 only when interrupting fails. */
int session_write(struct session *session, const void *bytes, size_t len, const char *name,
                  enum session_written *ret, struct err *err);

/* Ends the input behind what was written. */
void session_close_input(struct session *session);

/* --- control; of a session that has ended none of these is an error --- */

int session_resize(struct session *session, struct pty_size size, struct err *err);
int session_interrupt(struct session *session, struct err *err);          /* as Ctrl-C */
int session_signal(struct session *session, int signal, struct err *err); /* the command */
int session_terminate(struct session *session, uint64_t grace_ns, struct err *err);

/* Stops reading its output, so that the command waits once its pipes are full; or goes on. */
void session_hold_output(struct session *session, bool on);

/* --- what is known --- */

struct session_info {
    int id;
    uint64_t owner;
    const char *command; /* these two live as long as the session */
    const char *cwd;
    bool has_tty;
    bool has_input;
    size_t input_len; /* bytes that wait for the command to read them */
    uint64_t started_ns;
};

void session_info(const struct session *session, struct session_info *ret);

/* The command's, as seen from here; 0 when it has ended or cannot be told. */
pid_t session_pid(const struct session *session);

struct output *session_output(const struct session *session); /* to be read; borrowed */
struct unread *session_unread(const struct session *session);

/* NULL unless it was asked for and there is a terminal; as it is now, also behind the end. */
const struct screen *session_screen(const struct session *session);

/* NULL until SESSION_EXITED or SESSION_ENDED. */
const struct process_end *session_end(const struct session *session);

/* Which limits were asked for; behind SESSION_ENDED also how they were kept and which was hit. */
const struct limits *session_limits(const struct session *session, struct limits_report *ret);

/* What was refused to it, as far as it still shows; only with a session_end(), and nothing of a
 * command that exited with 0. Caller frees (denials_done()). */
void session_denials(const struct session *session, struct denials *ret);

/* What the kernel says now: something of it still exists, even if its end is about to be told. */
bool session_is_alive(const struct session *session);

/* How it ended in the words of the store; only behind SESSION_ENDED. */
struct store_end session_store_end(const struct session *session);

/* For a shell and for models: the code, or 128 + n for signal n; 126 or 127 for what could not be
 * executed. Only with a session_end(). */
int session_exit_code(const struct session *session);

/* A process that outlives the call that started it: its output is retained, input can be sent to it
 * at any time, and how it ended is kept until the job is freed.
 *
 *     job_start()
 *       job_write(), job_interrupt(), job_resize(), job_terminate() ...
 *       job_output() with readers, job_model_cursor() for a model
 *       JOB_ENDED          once; everything that it wrote has been read by then
 *     job_free()           any time, but from no callback: kills what runs
 */
#pragma once

#include "base/err.h"
#include "base/list.h"
#include "denial/denial.h"
#include "job/job_table.h"
#include "output/output.h"
#include "policy/publication.h"
#include "process/process.h"
#include "process/resource_limits.h"
#include "screen/screen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct job;
struct model_cursor;
struct timeline;

#define JOB_INPUT_MAX ((size_t)1 << 20) /* bytes that wait for the command to read them */

/* After the end of the command its output is read until nothing came for so long; the value is
 * that of Codex. */
#define JOB_DRAIN_QUIET_NS UINT64_C(50000000)

enum job_streams {
    JOB_STREAMS_MERGED, /* one output: what a terminal would show */
    JOB_STREAMS_APART,  /* an output for each */
};

/* Called from inside the job, which they must not free. Each may be NULL. */
struct job_tap {
    /* Live, when the bytes are in the job's output. */
    void (*on_output)(void *data, enum stream stream, const char *bytes, size_t len,
                      uint64_t offset);
    void (*on_input)(void *data, enum input_event event); /* in place of job_write() */
};

/* Answers for the command while what its sandbox refuses is held (process_options.asks). Embedded in
 * a larger struct; the job's, from job_set_asker() on. */
struct job_asker {
    /* FACT_ASKED, FACT_WITHDRAWN, FACT_DONE, FACT_OUTSIDE, FACT_OUTSIDE_SIGNAL; FACT_DENIED of hosts. */
    void (*on_fact)(struct job_asker *asker, const struct launch_fact *fact);
    /* Nothing of the command is left; told before JOB_ENDED. */
    void (*on_end)(struct job_asker *asker);
    void (*free)(struct job_asker *asker); /* the job goes, or wants no answers any more */
    struct job *job;                       /* filled in */
};

struct job_options {
    int id;
    uint64_t owner;      /* 0: none */
    const char *command; /* to show to people; copied */
    /* Its events, data and limiter do not count; a zeroed drain is JOB_DRAIN_QUIET_NS. */
    const struct process_options *process;
    const struct resource_limits *limits; /* over the sandbox's; NULL: nothing is said */
    bool without_cgroup;                  /* as in struct resource_limits_scope */
    const struct access_map *access; /* what the sandbox was made for, borrowed until it has ended
                                        and job_denials() was called; names denials; NULL: none */
    bool
        is_judged; /* each program that it executes, by its asker: else a sandbox that wants that is refused */
    unsigned topics;       /* of its timeline, as its sandbox watches; 0: none */
    unsigned audit_topics; /* of one more, for the audit log */
    enum job_streams streams;
    struct output_options output; /* of each */
    /* Of a terminal's size, and only for a terminal; NULL: none. */
    const struct screen_limits *screen;
    const struct job_tap *tap; /* borrowed for the life of the job; NULL: none */
    void *data;                /* of the tap */
};

/* NULL on failure. A command that cannot be executed is no failure here but ends at once. */
struct job *job_start(const struct job_options *options, struct err *err);
void job_free(struct job *job);

/* --- notifications --- */

enum job_event {
    JOB_STARTED,  /* its program was executed */
    JOB_STOPPED,  /* process_options.tells_stops */
    JOB_TRACED,   /* a timeline of it has more */
    JOB_ROOM,     /* all input was passed on, after job_write() had found no room */
    JOB_HELD,     /* calls of the command wait for an answer: its clocks stand still */
    JOB_RELEASED, /* none does any more */
    /* These two only of a process that lingers: the command itself has ended, what it wrote until
     * then is there; and later, no more output can come. */
    JOB_EXITED,
    JOB_READ_OUT,
    JOB_ENDED, /* and its output is complete */
};

/* Embedded in what wants to be told; borrowed until job_unwatch(). The callback must neither
 * free the job nor change its set of watches. */
struct job_watch {
    void (*on_event)(struct job_watch *watch, enum job_event event);
    struct list link;
};

void job_watch(struct job *job, struct job_watch *watch);
void job_unwatch(struct job_watch *watch);

/* --- input --- */

enum job_written {
    JOB_WRITTEN,
    JOB_WRITTEN_BEFORE, /* a write of this name was: nothing was done */
    JOB_INTERRUPTED,    /* it was the byte U+0003 for a command without a terminal */
    JOB_NO_INPUT,       /* it has none, or it was closed */
    JOB_NO_ROOM,        /* nothing was taken; JOB_ROOM follows */
    JOB_IS_OVER,        /* the command has ended */
};

/* Takes all of the bytes or none; when none wait, any number. On a PTY they mean what the line discipline makes of them;
 * without one exactly U+0003 interrupts. `name` may be NULL; one of a
 * write that was taken is remembered. -1 only when interrupting fails. */
int job_write(struct job *job, const void *bytes, size_t len, const char *name,
              enum job_written *ret, struct err *err);

/* Ends the input behind what was written, and behind these bytes as they are, however many. */
void job_end_input(struct job *job, const void *bytes, size_t len);

static inline void job_close_input(struct job *job)
{
    job_end_input(job, NULL, 0);
}

/* --- control: on a job that has ended these do nothing, which is no error --- */

int job_resize(struct job *job, struct pty_size size, struct err *err);
int job_interrupt(struct job *job, struct err *err);          /* as Ctrl-C */
int job_signal(struct job *job, int signal, struct err *err); /* the command */
int job_terminate(struct job *job, uint64_t grace_ns, struct err *err);

/* Stops reading its output, so that the command waits once its pipes are full; or goes on. */
void job_hold_output(struct job *job, bool on);

/* --- what its sandbox refuses, held until somebody has answered --- */

/* Takes the asker over, in place of one that there was; NULL: every question is answered with no.
 * Before the loop goes round. */
void job_set_asker(struct job *job, struct job_asker *asker);

/* For the asker. */
void job_answer(const struct job *job, uint64_t id, enum launch_verdict verdict);

/* For the asker, of a program that is not executed: answers with no, and it is a denial, by `why`. */
void job_refuse_exec(struct job *job, const struct launch_fact *fact, const char *why);

/* For the asker, of a program that runs outside: as launch_take_stdio() and launch_answer_exit(). */
void job_take_stdio(const struct job *job, int ret_fds[3]);
void job_answer_exit(struct job *job, uint64_t id, int wait_status);

/* For the asker: somebody is being asked, or nobody any more. */
void job_set_held(struct job *job, bool is_held);
bool job_is_held(const struct job *job);

/* For how long clocks have stood still so far. */
uint64_t job_held_ns(const struct job *job);

/* --- its ports --- */

/* Opens one to the host's network, beside those that its sandbox's policy says, until it ends. `ret`: with the port that it
 * has got. */
int job_publish(struct job *job, const struct publication *publication, struct publication *ret,
                struct err *err);

/* Those that are open, or were until it ended. */
const struct publications *job_publications(const struct job *job);

/* --- what is known --- */

struct job_info {
    int id;
    uint64_t owner;
    const char *command; /* these two live as long as the job */
    const char *cwd;
    bool has_tty;
    bool has_input;
    size_t input_len; /* bytes that wait for the command to read them */
    uint64_t started_ns;
};

void job_info(const struct job *job, struct job_info *ret);

/* The command's, as seen from here; 0 when it has ended or cannot be told. */
pid_t job_pid(const struct job *job);

/* Its process, for the pumps of a tap; NULL once it has ended. */
struct process *job_process(const struct job *job);

/* The command has not ended yet; its last output may still be to come. */
bool job_is_running(const struct job *job);

struct output *job_output(const struct job *job);                     /* to be read; borrowed */
struct output *job_stream(const struct job *job, enum stream stream); /* with JOB_STREAMS_APART */
struct model_cursor *job_model_cursor(const struct job *job);         /* with JOB_STREAMS_MERGED */

/* NULL unless it was asked for and there is a terminal; as it is now, also behind the end. */
const struct screen *job_screen(const struct job *job);

/* NULL until JOB_EXITED or JOB_ENDED. */
const struct process_end *job_end(const struct job *job);

/* Its limits, as they hold once it has started; `ret` (NULL: not wanted) gets, behind JOB_ENDED, how they
 * were kept and which was hit. */
const struct resource_limits_scope *job_limits(const struct job *job,
                                               struct resource_limits_report *ret);

/* The facts of what was refused to it since the last call of this: for who is told while it runs; denials_done() by the
 * caller. */
void job_new_denials(struct job *job, struct denials *ret);

/* What was refused to it: facts, where there is a guard to tell them, also of a command that exited
 * with 0; otherwise what its output still shows. Only with a job_end(). Caller frees
 * (denials_done()). */
void job_denials(struct job *job, struct denials *ret);

/* NULL when none was asked for, and without a guard to tell it. */
const struct timeline *job_timeline(const struct job *job);

/* The one for the audit log: apart, since readers have only what they asked for. NULL also behind JOB_ENDED. */
const struct timeline *job_audit_timeline(const struct job *job);

/* Its end was asked for by job_terminate(). */
bool job_was_terminated(const struct job *job);

/* What the kernel says now: something of it still exists, even if its end is about to be told. */
bool job_is_alive(const struct job *job);

/* How it ended, for its tombstone in the table; only after JOB_ENDED. */
struct job_outcome job_outcome(const struct job *job);

/* For a shell and for models: the code, or 128 + n for signal n; 126 or 127 for what could not be
 * executed. Only with a job_end(). */
int job_exit_code(const struct job *job);

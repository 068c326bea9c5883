/* The calls that a model makes: exec_command and write_stdin as it knows them
 * (docs/model-calls.md), and wait_for, which waits for something instead of for time.
 *
 *     model_calls_new()
 *       model_calls_exec(), model_calls_write(), model_calls_wait(), model_calls_terminate()
 *                      start a call; on_done comes from the loop, exactly once, never from inside
 *       model_call_cancel()   stops a call without on_done: its command runs on, and nothing of its
 *                      output was taken
 *       model_calls_list(), model_calls_resize(), model_calls_terminate_all()      answer at once
 *     model_calls_free()   ends every call without on_done and kills every command; not from
 *                          on_done
 *
 * Any number of calls may wait on one job. No call waits for another: a write is done when it is
 * asked for, and everything that was written goes to the call that comes back first and to no other
 * one. The end is told to all of them.
 *
 * What can be refused at once is refused by the functions themselves; text for a model comes of
 * model_calls_format_error() then.
 */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "job/job.h"
#include "job/job_table.h"
#include "job/model_text.h"
#include "process/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct headtail;
struct loop;
struct sandbox;
struct model_calls;
struct model_call;

/* A command that ends sooner is not stored and pushes no other one out; docs/model-calls.md. */
#define MODEL_CALL_EARLY_NS UINT64_C(150000000)

#define MODEL_CALL_GRACE_NS UINT64_C(2000000000) /* between SIGTERM and SIGKILL */

struct model_calls_options {
    struct loop *loop;             /* borrowed */
    size_t capacity;               /* jobs; 0: JOB_TABLE_CAPACITY_DEFAULT */
    enum job_table_ids ids;        /* IN_ORDER: chunk ids count from 1, too */
    uint64_t poll_max_ms;          /* 0: YIELD_POLL_MAX_DEFAULT_MS */
    struct truncate_budget policy; /* of every response; limit 0: none */
    size_t output_memory;          /* bytes of each job; 0: OUTPUT_MEMORY_DEFAULT */
    uint64_t spool_quota;          /* bytes of each job on disk; 0: none */
    bool has_events;               /* an answer with an end has them */
    /* Takes over a job that no call and not the table has any more, to keep it for those who
     * still look at it; NULL: it is freed. One that had to make room may still be dying. Called
     * from the loop and from the functions below. */
    void (*on_left)(void *data, struct job *job);
    void *data; /* of on_left */
};

/* ERR_INVALID for a capacity that is too large. */
struct model_calls *model_calls_new(const struct model_calls_options *options, struct err *err);
void model_calls_free(struct model_calls *calls);

/* --- what a call waits for, besides the end of the command and its time --- */

enum model_until {
    MODEL_UNTIL_TIME,  /* nothing else */
    MODEL_UNTIL_TEXT,  /* `text` was written, whatever chunks it came in */
    MODEL_UNTIL_QUIET, /* nothing was written for `number` ms */
    MODEL_UNTIL_BYTES, /* `number` bytes wait to be shown */
};

/* Zeroed it is what a model gets that says nothing. */
struct model_pace {
    enum model_until until;
    const char *text;
    size_t text_len;
    uint64_t number;
    const uint64_t *yield_ms;   /* NULL: the default of the call; clamped, which is reported */
    const uint64_t *max_tokens; /* NULL: MODEL_TOKENS_DEFAULT */
};

/* --- the answer --- */

enum model_call_reason {
    MODEL_CALL_ENDED,   /* the command has */
    MODEL_CALL_YIELDED, /* time was up */
    MODEL_CALL_MET,     /* what it waited for has come */
};

struct model_call_answer {
    enum model_call_reason reason;
    int session_id;                       /* also when it has ended */
    const struct process_end *end;        /* NULL while it runs */
    int exit_code;                        /* as job_exit_code(), with an end */
    const struct resource_limits *limits; /* asked for */
    const struct resource_limits_report *resource_limits_report; /* with an end */
    const struct denials
        *denials; /* with an end: all; else those since the last call, which may be late ones */
    const char *events; /* with an end, of its timeline: an array of JSON; NULL: none */
    char chunk_id[MODEL_CHUNK_ID_SIZE];
    uint64_t wall_ns;
    const struct headtail *output; /* what was taken; not cut for the model */
    char *const *notes;            /* NULL-terminated */
    char *const *warnings; /* the same: limits that do not hold as they are meant; of a start */
    const char *text;      /* what the model sees */
    size_t text_len;
};

/* All of the response is gone when it returns. It may start other calls. */
typedef void model_call_done_fn(void *data, const struct model_call_answer *response);

/* --- the calls; NULL on failure --- */

/* What is executed in place of a shell on the text: the text is what people and models are shown.
 */
struct model_replacement {
    char *const *argv;
    const char *program; /* executed instead of argv[0]; may be NULL */
    const char *input;   /* all that it gets to read; NULL: as the call says */
    size_t input_len;    /* at most JOB_INPUT_MAX */
};

struct model_exec {
    const char *cmd;     /* shell text */
    const char *shell;   /* absolute, or found on the PATH of `env` */
    bool is_login;       /* with the start-up files of a login */
    const char *workdir; /* absolute */
    char *const *env;    /* complete: job_environment.h */
    struct sandbox *sandbox;
    enum process_stdio stdio; /* PIPES or TTY */
    enum process_stdin input; /* for PIPES */
    const char *given;        /* all that comes by a pipe or a terminal; NULL: what is written */
    size_t given_len;         /* at most JOB_INPUT_MAX */
    bool asks;                /* what its sandbox refuses may be held: job_set_asker() */
    bool is_judged;           /* as in struct job_options */
    struct pty_size size;
    const struct screen_limits *screen; /* as in struct job_options */
    struct resource_limits limits;
    const struct access_map *access; /* as in struct job_options */
    unsigned topics;                 /* these two as in struct job_options */
    unsigned audit_topics;
    uint64_t owner;
    struct model_pace pace;
    const struct model_replacement *replacement; /* NULL: none; borrowed for the call */
    const char *note; /* for the model, with the answer; static, or NULL */
};

/* The words that run the command in its shell (rules/shell/shell_choice.h); strv_done(). */
struct strv model_exec_argv(const struct model_exec *exec);

struct model_call *model_calls_exec(struct model_calls *calls, const struct model_exec *exec,
                                    model_call_done_fn *on_done, void *data, struct err *err);

struct model_write {
    int session_id;
    const char *chars;
    size_t len;       /* 0: only waits, for longer */
    const char *name; /* of this write, for job_write(); may be NULL */
    bool closes;      /* the input, behind `chars` */
    struct model_pace pace;
};

/* ERR_NOT_FOUND tells how the job ended when that is known. ERR_INVALID: it takes no input.
 * ERR_LIMIT: too much input waits already, nothing was taken. */
struct model_call *model_calls_write(struct model_calls *calls, const struct model_write *write,
                                     model_call_done_fn *on_done, void *data, struct err *err);

/* Waits until what `pace` says is so, from what has not been shown yet on. The shortest time is
 * that of a write, the longest that of a poll, and the default, too. */
struct model_call *model_calls_wait(struct model_calls *calls, int session_id,
                                    const struct model_pace *pace, model_call_done_fn *on_done,
                                    void *data, struct err *err);

/* Ends a command with all that it started, and waits for that as long as it takes. */
struct model_call *model_calls_terminate(struct model_calls *calls, int session_id,
                                         uint64_t grace_ns, model_call_done_fn *on_done, void *data,
                                         struct err *err);

void model_call_cancel(struct model_call *call);

/* The number that the job of this call has, or will have. */
int model_call_id(const struct model_call *call);

/* --- without waiting --- */

/* Asks all commands (owner 0) or those of an owner to end; how many there were. Their output can
 * still be polled. */
size_t model_calls_terminate_all(struct model_calls *calls, uint64_t owner, uint64_t grace_ns);

int model_calls_resize(struct model_calls *calls, int session_id, struct pty_size size,
                       struct err *err);

/* NULL with an error as of model_calls_write(). Borrowed until the next call that can end it. */
struct job *model_calls_find(struct model_calls *calls, int session_id, struct err *err);

bool model_calls_tombstone(const struct model_calls *calls, int session_id,
                           struct job_table_tombstone *ret);

/* Ids of the commands that the kernel still has, ascending; of all (owner 0) or one owner's.
 * Caller frees. */
int *model_calls_list(const struct model_calls *calls, uint64_t owner, size_t *ret_len);

/* The user's shell as `env` names it, or /bin/sh. Borrowed from `env`. */
const char *model_calls_shell(char *const *env);

/* What a model is told of a call that failed. Appends. */
void model_calls_format_error(const char *tool, const char *command, const struct err *failure,
                              struct buf *out);
/* The same, of one that was refused for a reason, however long. */
void model_calls_format_refusal(const char *tool, const char *command, const char *reason,
                                struct buf *out);

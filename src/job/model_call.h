/* A call that waits. Internal to model_calls.h. */
#pragma once

#include "job/model_calls.h"

struct match;
struct reader;

struct model_calls {
    struct model_calls_options options;
    struct job_table *table;
    struct list waiting; /* the newest first */
    uint32_t chunks;     /* numbered so far */
};

enum model_call_kind { MODEL_CALL_EXEC, MODEL_CALL_WRITE, MODEL_CALL_WAIT, MODEL_CALL_TERMINATE };

struct model_call {
    struct job_watch job_watch;
    struct output_watch output_watch;
    struct model_calls *calls;
    struct list in_waiting;
    enum model_call_kind kind;
    struct job *job;
    int id;
    bool is_met;
    struct model_pace pace; /* its pointers are not used after the start */
    uint64_t max_tokens;
    struct yield yield;
    struct loop_timer *timer;
    uint64_t start_ns;
    uint64_t deadline_ns;
    uint64_t held_since_ns; /* the clocks stand still since then; 0: they run */
    uint64_t news_ns;       /* when something was written last; for UNTIL_QUIET */
    struct match *match;
    struct reader *reader; /* feeds the match */
    char *yield_note;      /* NULL: nothing was clamped */
    const char *note;      /* another one */
    model_call_done_fn *on_done;
    void *data;
};

struct call_options {
    enum model_call_kind kind;
    struct job *job;
    int id;
    const struct model_pace *pace; /* checked */
    enum yield_call yield;
    uint64_t offset;  /* where the search for a text begins */
    const char *note; /* for the model; static, or NULL */
    model_call_done_fn *on_done;
    void *data;
};

struct model_call *call_new(struct model_calls *calls, const struct call_options *options);

/* Also leaves the job when neither the table nor another call has it. */
void call_free(struct model_call *call);

/* Whether the job is in the table; and puts it there, killing the one that has to go for it. */
bool call_is_stored(const struct model_call *call);
void call_store(struct model_call *call);

/* Some call waits on the job. */
bool model_calls_has_call(const struct model_calls *calls, const struct job *job);

/* A call that waits. Internal to unified.h. */
#pragma once

#include "job/model_calls.h"
#include "job/yield.h"

struct match;
struct reader;

struct unified {
    struct unified_options options;
    struct store *store;
    struct unified_call *calls;
    uint32_t chunks; /* numbered so far */
};

enum unified_kind { UNIFIED_EXEC, UNIFIED_WRITE, UNIFIED_WAIT, UNIFIED_TERMINATE };

struct unified_call {
    struct session_watch session_watch; /* these two first and second: see call_of_...() */
    struct output_watch output_watch;
    struct unified *unified;
    struct unified_call *next;
    struct unified_call *previous;
    enum unified_kind kind;
    struct session *session;
    int id;
    bool is_met;
    struct unified_pace pace; /* its pointers are not used after the start */
    uint64_t max_tokens;
    struct yield yield;
    struct loop_timer *timer;
    uint64_t start_ns;
    uint64_t deadline_ns;
    uint64_t news_ns; /* when something was written last; for UNTIL_QUIET */
    struct match *match;
    struct reader *reader; /* feeds the match */
    char *yield_note;      /* NULL: nothing was clamped */
    const char *note;      /* another one */
    unified_done_fn *on_done;
    void *data;
};

struct call_options {
    enum unified_kind kind;
    struct session *session;
    int id;
    const struct unified_pace *pace; /* checked */
    enum yield_call yield;
    uint64_t offset;  /* where the search for a text begins */
    const char *note; /* for the model; static, or NULL */
    unified_done_fn *on_done;
    void *data;
};

struct unified_call *call_new(struct unified *unified, const struct call_options *options);

/* Also leaves the session when nobody else has it: no call, not the store. */
void call_free(struct unified_call *call);

/* Hands the session over (unified_options.on_left), or frees it. */
void unified_leave(const struct unified *unified, struct session *session);

/* Whether the session is in the store; and puts it there, killing whoever has to go for it. */
bool call_is_stored(const struct unified_call *call);
void call_store(struct unified_call *call);

/* Answers the call and frees it. Nothing of it is touched behind on_done. */
void call_finish(struct unified_call *call);

/* Some call waits on the session. */
bool unified_has_call(const struct unified *unified, const struct session *session);

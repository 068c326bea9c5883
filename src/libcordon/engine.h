/* The engine behind include/cordon.h: one loop, one config file, a sandbox for each policy that was
 * asked for, and the sessions of the model's calls. Internal to engine. */
#pragma once

#include "base/err.h"
#include "base/list.h"
#include "base/strv.h"
#include "cordon.h"

#include <stdbool.h>
#include <stddef.h>

struct config;
struct approvals;
struct denials;
struct job;
struct approval_bridge;
struct resource_limits;
struct resource_limits_report;
struct layer;
struct loop;
struct process_end;
struct screen;
struct screen_limits;
struct snapshots;
struct model_calls;
struct workspace;
struct workspaces;

struct cordon_engine {
    struct loop *loop;
    struct model_calls *model_calls;
    struct list calls;                /* that wait; calls.c */
    struct list executions;           /* that go on; execute.c */
    struct list layers;               /* that are open; layers.c */
    char *layers_text;                /* that cordon_layers() gave last */
    struct approvals *approvals;      /* NULL: no question can be put */
    struct approval_bridge *approver; /* theirs; engine.c */
    struct snapshots *snapshots;      /* of login shells */
    char *rules;                      /* directory of the user's rules; NULL: none */
    struct config *config;            /* NULL: none */
    char *config_path;                /* NULL: none */
    char *launcher;                   /* NULL: to be found */
    char *thread_id;                  /* NULL: none */
    char *home;                       /* NULL: not known */
    struct strv own_paths;            /* clean: what of this host belongs to Cordon */
    struct workspaces *workspaces;    /* by policy */
    char *default_key;                /* of the policy of commands that bring none */
    char *event;                      /* that cordon_event_of() gave last */
};

/* Where commands under this policy run; NULL means the engine's own, or before there is one the
 * default. Opened, and there until the engine is closed. NULL on failure. */
struct workspace *policy_workspace(struct cordon_engine *engine, const struct cordon_policy *policy,
                                   struct err *err);

/* Whether what the sandbox of the workspace refuses is held while the host is asked; and who answers
 * for a job where it is, or where its programs are judged. */
bool engine_holds(const struct cordon_engine *engine, const struct workspace *workspace);
void engine_hold(const struct cordon_engine *engine, struct workspace *workspace, struct job *job,
                 char *const *argv);

/* Reads a struct of options that says its size: what the caller's header did not have is zero. A
 * larger one is of a newer header, and taken when what is unknown of it is zero. */
int options_read(void *to, size_t size, const void *from, struct err *err);

/* Fills `error`, unless it is NULL; returns -1. */
int error_give(struct cordon_error *error, const struct err *err);

/* Those that will not be answered any more. */
void calls_free(struct cordon_engine *engine);

/* Ends those that go on; the host is not told. */
void executions_free(struct cordon_engine *engine);

/* Whether one that goes on is in the layer. */
bool executions_use_layer(const struct cordon_engine *engine, const struct layer *layer);

/* layers.c: closes those that are left, when no workspace is there any more. That of a policy; NULL with an error when it is none
 * of the engine's. The count of sessions in the layer of a workspace, which is one more until one is freed; NULL: it has no layer. And a call
 * of a model in a workspace that may have one. */
void layers_free(struct cordon_engine *engine);
struct layer *layers_find(const struct cordon_engine *engine, const struct cordon_layer *wanted,
                          struct err *err);
size_t *layers_sessions(const struct cordon_engine *engine, const struct workspace *workspace);
void layers_note_call(const struct cordon_engine *engine, const struct workspace *workspace,
                      int session);

/* Of every session that has CORDON_SCREEN among its flags; else NULL. */
const struct screen_limits *view_limits(unsigned flags);

/* A copy of what is shown; ERR_INVALID when `screen` is NULL. */
struct cordon_screen *view_new(const struct screen *screen, struct err *err);

/* The first event behind `*after`, in place of `*text`; NULL when there is none. `job` may be NULL. */
const char *event_give(const struct job *job, uint64_t *after, char **text);

/* `from` may be NULL: none. */
int limits_read(struct resource_limits *ret, const struct cordon_limits *from, struct err *err);

/* Of enum cordon_limit. */
unsigned limits_hit(const struct resource_limits_report *report);

/* The first of them in words, and what would allow it; NULL when there is none. Caller frees. */
char *denials_say(const struct denials *denials);

uint64_t ms_to_ns(uint64_t ms); /* as far as that goes */

void end_fill(struct cordon_end *end, const struct process_end *from, int exit_code);

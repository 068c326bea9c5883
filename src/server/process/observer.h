/* A connection that watches a process of another session (process/attach), at its own pace: what it
 * comes too late for it gets as process/gap. One of them may hold the write lock, the right to
 * write. */
#pragma once

#include "base/list.h"
#include "output/output.h"

#include <stdbool.h>

struct call;
struct client;
struct loop_timer;
struct rpc_process;

struct observer {
    struct client *client;
    struct rpc_process *process;
    struct list in_client;
    struct list in_process;
    char *alias; /* "SESSION/PROCESS" */
    struct output_cursor cursor;
    uint64_t told; /* of its timeline, the last event that was sent */
    struct loop_timer
        *pause; /* of one that is told of growth alone, between two; NULL: it gets all */
    bool is_pausing;
    uint64_t grown; /* the output that it was told of */
    bool has_sent_exit;
    bool has_sent_close;
};

/* The process that an id means on this connection: one of its session, or one that it watches. NULL
 * when there is none. */
struct rpc_process *client_process(const struct client *client, const char *id);

/* The same; NULL: the call was answered with "unknown process id". */
struct rpc_process *call_process(struct call *call, const char *id);

/* Whether this connection may write to the process now. */
bool client_may_write(const struct client *client, const struct rpc_process *process);

/* NULL when the connection does not watch a process under this name. */
struct observer *observer_find(const struct client *client, const char *alias);

/* Watches from `cursor` and behind `told`, which the caller sets, once it is told to send. */
struct observer *observer_new(struct client *client, struct rpc_process *process);

/* Gets all of the output (true), or is only told now and then that there is more. */
void observer_set_output(struct observer *observer, bool on);
void observer_free(struct observer *observer);

/* What is new since the last time, as far as there is room. */
void observer_send(struct observer *observer);

/* Something of the process is new; or there is room again. */
void observers_on_news(struct rpc_process *process);
void observers_on_room(struct client *client);

/* The process goes, or the connection. */
void observers_drop(struct rpc_process *process);
void observers_free(struct client *client);

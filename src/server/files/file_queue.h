/* The file calls of one connection: carried out in the order in which they came, one at a time, so
 * that a client that sends a write and a read behind it reads what it wrote. */
#pragma once

#include "server/files/file_helper.h"
#include "server/method.h"

struct file_handles;
struct file_queue;
struct file_task;

/* Begins a task whose turn has come: answers its call (file_task_end() first), or goes on later. */
typedef void file_begin_fn(struct file_task *task);

/* Takes what a helper answered; file_task_end() was called. */
typedef void file_done_fn(struct call *call, struct file_handles *handles, const json_t *params,
                          const struct file_answer *answer);

struct file_task {
    struct file_task *next;
    struct file_queue *queue;
    struct call *call;
    const json_t *params; /* of the call */
    const char *method;
    file_begin_fn *begin;
    file_done_fn *done;
    struct file_job *job; /* a helper is at it */
};

/* Puts a call at the end of the queue of its connection. */
void file_queue_add(struct call *call, const json_t *params, const struct file_task *how);

/* For `begin`: has a helper carry out the call in the place that its `sandbox` means. */
void file_task_send(struct file_task *task);

/* For `begin`: the call is about to be answered. The task is gone. */
struct call *file_task_end(struct file_task *task);

struct file_handles *file_task_handles(const struct file_task *task);

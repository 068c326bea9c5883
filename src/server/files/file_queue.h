/* The file calls of one connection: carried out in the order in which they came, one at a time, so
 * that a client that sends a write and a read behind it reads what it wrote. And the files that the
 * connection holds open: names of the client's for descriptors of ours. */
#pragma once

#include "server/call.h"
#include "server/files/file_helper.h"

#include <stdbool.h>
#include <stddef.h>

struct file_handles;
struct file_queue;
struct file_task;

enum { FILE_HANDLES_MAX = 128, FILE_HANDLE_ID_MAX = 32 }; /* as the original allows */

struct file_handles *file_handles_new(void);
void file_handles_free(struct file_handles *handles); /* closes all */

size_t file_handles_count(const struct file_handles *handles);
int file_handles_find(const struct file_handles *handles, const char *id);   /* -1: none */
void file_handles_add(struct file_handles *handles, const char *id, int fd); /* takes `fd` */
void file_handles_close(struct file_handles *handles, const char *id);       /* none is fine */

/* Begins a task whose turn has come: answers its call (file_task_end() first), or goes on later. */
typedef void file_begin_fn(struct file_task *task);

/* Takes what a helper answered; file_task_end() was called. */
typedef void file_done_fn(struct call *call, struct file_handles *handles,
                          const struct file_answer *answer);

struct file_task {
    struct file_task *next;
    struct file_queue *queue;
    struct call *call;
    file_begin_fn *begin;
    file_done_fn *done;
    struct file_job *job; /* a helper is at it */
};

/* Puts a call at the end of the queue of its connection; `how` says what to do with it. */
void file_queue_add(struct call *call, const struct file_task *how);

/* For `begin`: has a helper carry out the call in the workspace that its `sandbox` means. */
void file_task_send(struct file_task *task);

/* For `begin`: the call is about to be answered. The task is gone. */
struct call *file_task_end(struct file_task *task);

struct file_handles *file_task_handles(const struct file_task *task);

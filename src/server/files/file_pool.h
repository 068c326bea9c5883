/* Helper processes that carry out file calls (server/files/file_helper.h), some for each workspace:
 * started when one is needed, kept while they are, ended when they have been idle. */
#pragma once

#include "base/err.h"
#include "server/files/file_helper.h"

struct file_job;
struct layer;
struct file_pool;
struct loop;
struct workspace;
struct server;

/* The server's; made when it is first asked for. */
struct file_pool *server_file_pool(struct server *server);

struct file_pool *file_pool_new(struct loop *loop);
void file_pool_free(struct file_pool *pool); /* answers nothing that is still open */

/* Has `call`, which is taken over, carried out inside `workspace`, which is held meanwhile. Exactly
 * one on_answer follows, maybe from inside; the job is gone when it is called. */
void file_pool_call(struct file_pool *pool, struct workspace *workspace, struct file_call *call,
                    struct file_job **ret);

/* Those of workspaces that write to this layer and have nothing to do end now, so that nothing of it lives. */
void file_pool_end_idle(struct file_pool *pool, const struct layer *layer);

/* The answer is not wanted any more. The call itself goes on for a while if it has begun, so that
 * what was asked for is not left half done. */
void file_job_abandon(struct file_job *job);

/* A session of a model (session/...) as a process of the protocol: so that people can list it, look
 * on, type to it and end it while the model's calls go on. */
#pragma once

#include <stdbool.h>

struct client_session;
struct workspace;
struct server;
struct job;
struct json_t;
struct model_exec;
struct rpc_process;

#define MODEL_PROCESS_PREFIX "session:"

/* "session:1234": such ids are ours, and no client may choose one. */
bool model_process_is_id(const char *id);

/* The id of session `number`. A new reference. */
struct json_t *model_process_id(int number);

/* The session that was just started by `exec` in `workspace`, under its number. */
void model_process_add(struct client_session *owner, const struct model_exec *exec,
                       struct workspace *workspace, struct job *job);

/* NULL when there is none, or it was forgotten. */
struct rpc_process *model_process_find(const struct client_session *owner, int number);

/* model_calls_options.on_left, with the server: keeps the session for those who look at its
 * process, as long as that is kept. */
void model_process_on_left(void *server, struct job *job);

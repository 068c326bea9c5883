/* What the sandbox of a process refuses, held while the client of its session is asked
 * (approval/held.h), and the programs that it executes, judged: for process/start and the sessions of
 * models. */
#pragma once

#include <stdbool.h>

struct client_session;
struct process_options;
struct rpc_process;
struct workspace;

/* Whether it is: the profile of the call wants it, and the server's approval policy does not forbid
 * it. */
bool process_is_held(struct client_session *session, const struct workspace *workspace);

/* Who answers for its job from here on, where it is held or its programs are judged. */
void process_hold(struct rpc_process *process, const struct process_options *options);

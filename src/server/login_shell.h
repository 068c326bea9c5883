/* What a command is really run by when it asks for a login shell: the shell as it was after an
 * earlier login (workspace/snapshots.h), so that start-up files are paid for once. */
#pragma once

#include "base/strv.h"

#include <jansson.h>
#include <stdbool.h>

struct client_session;
struct config;
struct err;
struct snapshots;
struct workspace;

struct login_shell_call {
    const json_t *params; /* of the call: envPolicy and env */
    char *const *argv;
    const char *cwd;
    struct workspace *workspace;
    char *const *env; /* without the call's own `env` */
};

/* The names of variables that the call, its policy or the user's configuration set on purpose. */
void login_shell_keep(const json_t *params, const struct config *config, struct strv *ret);

/* Those of this client. */
struct snapshots *login_shell_snapshots(struct client_session *session);

void login_shell_log_failure(const char *shell, const struct err *why);

/* As snapshots_use(). `*ret_note`: to be told, once, or NULL; static. */
bool login_shell_use(struct client_session *session, const struct login_shell_call *call,
                     struct strv *ret_argv, struct strv *ret_env, const char **ret_note);

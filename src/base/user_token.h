/* The token by which the WebSocket listeners of one user know that user's clients: a file of random
 * text, DIR/private/ws-token, where DIR is the user's configuration directory. The server makes it; who can
 * read it is the user. No sandbox shows the directory it lies in (workspace/workspace.c), which also
 * holds when the file is made anew while a command runs.
 *
 * Never followed or believed: a link, what is no regular file or has a second name, what belongs to
 * somebody else or is open to somebody else. Texts are wiped and freed by user_token_free(). */
#pragma once

#include "base/err.h"

#define USER_TOKEN_DIR "private" /* in the configuration directory */

/* Caller frees. */
char *user_token_path(const char *dir);

/* `*ret` is NULL when there is none. The message of a failure ends in what to do about it. */
int user_token_read(const char *dir, char **ret, struct err *err);

/* The same, and makes one when there is none, with every directory on the way but $HOME. Of several
 * who do at the same time all get the one that came first. */
int user_token_make(const char *dir, char **ret, struct err *err);

void user_token_free(char *token);

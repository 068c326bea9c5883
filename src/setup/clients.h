/* The MCP clients that Cordon knows: where they keep their configuration, and what is to be written there. */
#pragma once

#include "setup/entry.h"

#include <stdbool.h>

struct client {
    const char *name;    /* "claude" */
    const char *title;   /* "Claude Code" */
    const char *program; /* as it is found on PATH */
    const char *restart; /* what makes it read its configuration, as half a sentence */
    const char *covers;  /* by `cordon integrate`; NULL: that is not to be had */
    bool needs_server;   /* `covers` is of use only with `cordon mcp install` */
    const char *lacks;   /* what stays outside */
    const char *instead; /* when `covers` is NULL: what to do, a whole sentence */
};

extern const struct client clients[]; /* ended by one without a name */

/* NULL: there is no client of this name. */
const struct client *client_find(const char *name);

/* Where things are: absolute paths. */
struct client_places {
    const char *home;
    const char *project; /* NULL: the user's own configuration is meant */
    const char *cordon;  /* the program, by its real path; UTF-8 */
    const char *link;    /* what Claude Code is to start in the place of a shell */
};

/* What an entry of the server is to say beside the program. */
struct client_server {
    const char *url;       /* NULL: the client starts it, and talks to it by pipes */
    const char *token_env; /* with `url`: the variable that has the token; NULL: none is sent */
    const char *profile;   /* NULL: what the configuration says */
    const char *config;    /* NULL: where it usually is */
    const char *layer;     /* "new", or the name of one; NULL: what the configuration says */
    bool is_approved;      /* the client need not ask before it calls a tool */
};

/* The entry of the MCP server. ERR_UNSUPPORTED for what the client cannot be told. entry_done() by the caller. */
int client_server_entry(const struct client *client, const struct client_places *places,
                        const struct client_server *server, struct entry *ret, struct err *err);

/* What brings the client's own shell into the sandbox. ERR_UNSUPPORTED for a client without such a way. */
int client_shell_entry(const struct client *client, const struct client_places *places,
                       struct entry *ret, struct err *err);

/* Where it keeps what is its own in the user's home; caller frees. */
char *client_folder(const struct client *client, const char *home);

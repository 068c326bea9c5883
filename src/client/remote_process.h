/* A process at the server, found by the name that a person gives. */
#pragma once

#include "base/err.h"
#include "client/client.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct process_name {
    char session[40];    /* or the beginning of it; empty: any */
    const char *process; /* borrowed */
};

/* "PROCESS", or "SESSION/PROCESS" with a session's id or the first of its characters (at least
 * four). Pure. */
void process_name_parse(const char *id, struct process_name *ret);

/* The one process of `list` (the result of process/list) that is meant; borrowed. NULL:
 * ERR_NOT_FOUND, or ERR_INVALID when several could be. Pure. */
const json_t *process_choose(const json_t *list, const char *id, struct err *err);

enum remote_process_kind {
    REMOTE_PROCESS_WATCHED, /* by process/attach: of any session */
    REMOTE_PROCESS_RESUMED, /* of a server without process/list: our connection resumed the session */
};

struct remote_process {
    struct connection *connection;
    enum remote_process_kind kind;
    char *id;            /* by which the connection speaks of it, once it is attached */
    const json_t *entry; /* of process/list; NULL for REMOTE_PROCESS_RESUMED */
    json_t *list;        /* what holds the entry */
};

/* Connects and finds it; `ret` is zeroed before, and remote_process_done() follows in any case. */
int remote_process_open(const struct client *client, const char *id, struct remote_process *ret,
                        struct err *err);
void remote_process_done(struct remote_process *process);

/* The byte that `from` means; the end counts as 0 where it is not known. */
uint64_t remote_process_offset(const struct remote_process *process,
                               const struct client_position *from);

/* process/attach: the events from byte `offset` on come to the connection, and `id` becomes the
 * alias that the server gives. Returns a new reference to the result. Only for
 * REMOTE_PROCESS_WATCHED. */
enum process_access { PROCESS_READ, PROCESS_WRITE };
json_t *remote_process_attach(struct remote_process *process, uint64_t offset,
                              enum process_access access, struct err *err);

/* A process at the server, found by what a person calls it. */
#pragma once

#include "base/err.h"
#include "client/client.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct target_name {
    char session[40];    /* or the beginning of it; empty: any */
    const char *process; /* borrowed */
};

/* "PROCESS", or "SESSION/PROCESS" with a session's id or the first of its characters (at least
 * four). Pure. */
void target_name_parse(const char *id, struct target_name *ret);

/* The one process of `list` (the result of process/list) that is meant; borrowed. NULL:
 * ERR_NOT_FOUND, or ERR_INVALID when several could be. Pure. */
const json_t *target_choose(const json_t *list, const char *id, struct err *err);

enum target_kind {
    TARGET_WATCHED, /* by process/attach: of any session */
    TARGET_RESUMED, /* of a server without process/list: our connection took the session up */
};

struct target {
    struct connection *connection;
    enum target_kind kind;
    char *id;            /* by which the connection speaks of it, once it is attached */
    char *session;       /* */
    const json_t *entry; /* of process/list; NULL for TARGET_RESUMED */
    json_t *list;        /* what holds the entry */
};

/* Connects and finds it. */
int target_open(const struct client *client, const char *id, struct target *ret, struct err *err);
void target_done(struct target *target);

/* Bytes of output so far; 0 when that is not known. */
uint64_t target_total(const struct target *target);

/* The byte that `from` means. */
uint64_t target_offset(const struct target *target, const struct client_from *from);

/* process/attach: the events from byte `offset` on come to the connection, and `id` becomes the
 * alias that the server gives. Returns a new reference to the result. Only for TARGET_WATCHED. */
enum target_pen { TARGET_READS, TARGET_WRITES };
json_t *target_attach(struct target *target, uint64_t offset, enum target_pen pen, struct err *err);

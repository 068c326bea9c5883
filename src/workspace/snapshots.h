/* The shell snapshots of one owner (a client of the server, an engine of the library), so that what
 * a login shell's start-up costs is paid once and not by every command. What is in one says
 * rules/shell/shell_snapshot.h; it is only ever in memory.
 *
 *     snapshots_use() before each command      true: run these words instead
 *
 * A snapshot is for commands that are alike in all that it could depend on or give away: sandbox,
 * directory, shell, and environment but for what a command sets for itself. So none is ever made in
 * one sandbox and read in another, or without one. The first command of its kind runs as a login
 * and begins a snapshot besides; commands use it from when it is ready on, and nothing waits for it. */
#pragma once

#include "base/strv.h"

#include <stdbool.h>
#include <stdint.h>

struct access_map;
struct err;
struct loop;
struct sandbox;
struct snapshots;
struct workspace;

/* For the caller of a command, when a snapshot has failed. */
#define SNAPSHOTS_NOTE                                                                             \
    "what the start-up files of the login shell set up could not be kept for later commands, so "  \
    "each of them pays for it"

struct snapshots *snapshots_new(struct loop *loop);
void snapshots_free(struct snapshots *snapshots); /* ends what still runs */

/* Borrowed for the call, but for the sandbox. */
struct snapshot_request {
    char *const *argv; /* SHELL -lc SCRIPT; anything else has no use for one */
    const char *cwd;
    uint64_t number; /* of the sandbox: no other one of this owner ever had or gets this number */
    struct sandbox *sandbox;
    const struct access_map *access;
    char *const *env;    /* complete, without what this command sets for itself */
    char *const *keep;   /* names that have their value in the command's own environment whatever a
                            start-up file says; NULL-terminated */
    uint64_t timeout_ns; /* for each step; 0: SHELL_SNAPSHOT_TIMEOUT_S */
    /* Told when a snapshot was begun that needs the sandbox, and when it does not any more; may be
     * NULL. */
    void (*hold)(void *data);
    void (*release)(void *data);
    void *data;
};

/* For a command in this workspace, which is held as long as a snapshot needs it: `argv` and `cwd`
 * are missing, and `env` and `keep` are those of the workspace. */
struct snapshot_request snapshot_request_for(struct workspace *workspace);

/* True: the command shall be run by the words that were appended to `ret_argv`, with `ret_env` in
 * addition in its environment. False: as it stands; `*ret_failure` is then why no snapshot could be
 * made, once for each, and NULL otherwise. */
bool snapshots_use(struct snapshots *snapshots, const struct snapshot_request *request,
                   struct strv *ret_argv, struct strv *ret_env, const struct err **ret_failure);

/* The `sandbox` object of a call, read: a profile, its roots, and how strictly it is meant. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "policy/profile.h"
#include "rpc/message.h"
#include "workspace/workspace.h"

#include <jansson.h>

struct sandbox_request {
    struct profile profile;
    struct strv roots; /* of the workspace: absolute, clean */
    enum sandbox_mode mode;
    const char *type; /* sandboxType as the client's generation spells it; static */
};

void sandbox_request_done(struct sandbox_request *request);

/* `object` is not null. `cwd` (may be NULL) is what project roots mean where nothing else says it.
 * `*ret_code` is the code for the wire of a failure. */
int sandbox_request_read(const json_t *object, const char *cwd, struct sandbox_request *ret,
                         enum rpc_code *ret_code, struct err *err);

/* --- where a call's commands run --- */

enum { SANDBOX_PROGRAM_FILES, SANDBOX_PROGRAM_PATCH };

/* What the calls of a server are carried out in: clean paths of Cordon's own, read-only to every
 * command, and canonical files that no sandbox shows. Both NULL-terminated. */
struct workspaces *sandbox_workspaces_new(struct loop *loop, char *const *own_paths,
                                          char *const *secrets);

/* Words in the place of a profile's name. */
#define SANDBOX_NONE "none"       /* no sandbox */
#define SANDBOX_DEFAULT "default" /* what the configuration says, else workspace-write */

/* Whether a call chose by the name of a profile, or left it to the configuration, and not by an object of
 * the original: then the rules of the user count, too. */
bool sandbox_is_by_name(const json_t *sandbox);

struct sandbox_call {
    const json_t *sandbox; /* of the call: an object, or a word; NULL or JSON null: */
    const char *otherwise; /* the name of a profile, SANDBOX_DEFAULT or SANDBOX_NONE; NULL: none */
    const char *cwd;       /* absolute: stands in for a missing sandbox.cwd; NULL: none, as for fs/
                              calls */
    const char *tmpdir;    /* $TMPDIR of the server, never of the call: a variable that a model
                              chooses must not make a directory writable; NULL: none */
    unsigned topics;       /* of enum timeline_topic: sandbox_topics() */
    unsigned audit_topics; /* server_audit_topics() */
    const struct network_policy
        *hosts; /* all that its network may reach, whatever the sandbox says: process/start;
                                           NULL: the sandbox says it */
    struct layer *layer; /* what it writes goes there (layer_choose()); NULL: to the real files */
};

/* What the words of a call's `trace` mean (may be NULL: nothing); its schema has checked them. */
unsigned sandbox_topics(const json_t *words);

/* The workspace that it means on this host, open. NULL on failure, `*ret_code` is the code for the
 * wire then. Borrowed for the call only, unless it is held. */
struct workspace *workspace_for_call(struct workspaces *workspaces, const struct sandbox_call *call,
                                     enum rpc_code *ret_code, struct err *err);

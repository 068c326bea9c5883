/* Where commands run: what a profile, the configuration and this host come to. The one place that
 * makes it, for `cordon`, the server and the library, so that they cannot differ:
 *
 *     profile -> mode -> network -> entries -> roots -> access map -> Cordon's own files
 *             -> environment -> sandbox
 *
 *     workspaces_new()
 *     workspace_find()      by its key: one that was made before, if it still means the same
 *     workspace_make()      everything but the sandbox
 *     workspace_open()      the sandbox; nothing when it is open
 *     workspace_derive()    another one for a single attempt: widened, or without a sandbox
 *     workspaces_free()
 *
 * A workspace is the owner's. One that is not held may go when others are made, and one that was
 * made without a key goes when its last hold ends. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "policy/access.h"
#include "policy/environment.h"
#include "policy/profile.h"
#include "policy/protect.h"
#include "sandbox/sandbox.h"
#include "workspace/tmp_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct loop;
struct layer;
struct profile_overlay;
struct workspaces;

/* --- all of one owner --- */

/* A program that is visible in every sandbox, whatever its profile says. */
struct workspace_program {
    const char *path; /* copied; NULL: none */
    const char *why;
};

enum { WORKSPACE_PROGRAMS = 2 };

/* Borrowed until workspaces_free(), but for the lists, which are copied. */
struct workspaces_options {
    struct loop *loop;           /* NULL: nothing is cached between commands */
    const struct config *config; /* NULL: none */
    const char *config_path;     /* for messages; NULL without a config */
    const char *home;            /* for "~/"; NULL: not known */
    const char *config_dir;      /* where presets of the user's are; NULL: not known */
    char *const *own_paths;      /* clean: what of this host belongs to Cordon; read-only to every
                                    command; NULL: none */
    char *const *secrets;        /* canonical: files that no sandbox shows; NULL: none */
    struct workspace_program programs[WORKSPACE_PROGRAMS];
    const char *launcher;  /* NULL: to be found */
    bool dies_with_thread; /* as in struct sandbox_options */
    bool is_lasting;       /* what has a key stays until workspaces_free(): for an owner whose
                              commands do not hold theirs */
};

struct workspaces *workspaces_new(const struct workspaces_options *options);
void workspaces_free(struct workspaces *workspaces); /* nothing runs in one; NULL is fine */

/* These files are hidden, too, in every workspace that is made from now on. */
void workspaces_hide(struct workspaces *workspaces, char *const *secrets);

/* The configuration that counts from now on, borrowed as in the options; workspaces_forget() is for what
 * was made by another one. */
void workspaces_configure(struct workspaces *workspaces, const struct config *config,
                          const char *home, const char *config_dir);

/* None is found by its key any more. */
void workspaces_forget(struct workspaces *workspaces);

/* Something of those that write to this layer runs, or is about to: one of them is held. */
bool workspaces_hold_layer(const struct workspaces *workspaces, const struct layer *layer);

/* The layer is about to be closed, and nothing runs in it: those that write to it go, held or not. */
void workspaces_forget_layer(struct workspaces *workspaces, const struct layer *layer);

/* The path of one of `programs`; borrowed, NULL: it is not installed. */
const char *workspaces_program(const struct workspaces *workspaces, int which);

/* What no yes of a person opens: clean; borrowed. */
char *const *workspaces_own_paths(const struct workspaces *workspaces);

/* --- one of them --- */

struct workspace {
    uint64_t number;        /* of no other workspace of this owner, before or after it */
    char *dir;              /* where commands start, and what relative paths count from */
    struct profile profile; /* with everything that was laid over it */
    unsigned topics;        /* of what commands do in it, what is told: enum timeline_topic */
    unsigned audit_topics;  /* and what the audit log gets */
    bool tells_connects;    /* who asks for commands hears of the hosts that they reach, too */
    char *profile_name;
    const char *profile_from; /* who chose it: "--profile", "/x/config.toml", "the default" */
    char *network_from;       /* the same of the network */
    enum sandbox_mode mode;   /* disabled also when the profile is */
    struct strv roots;        /* of the workspace */
    size_t canonical_roots;   /* this and the next as in struct resolve_context */
    char *within;
    struct protect_choice protect; /* which names are protected in them */
    struct strv presets;           /* names of those for tools, in the order in which they count */
    struct strv presets_from;      /* who named each: "--with" */
    struct access_map map;         /* what profile and roots mean here */
    struct tmp_store tmp;          /* where its private temporary folders are kept */
    struct strv own_paths;         /* canonical: what no answer of a person opens */
    struct strv env;               /* of a command; empty when none was asked for */
    struct environment_report env_report;
    struct strv set_names; /* of `env`, what the configuration or an option sets on purpose */
    const char *type;      /* the approver's word for its sandbox; NULL: none was given */

    struct sandbox *sandbox;         /* NULL: not open */
    bool is_refused;                 /* opening it failed: this host cannot make its sandbox */
    const struct access_map *access; /* what commands are held to: the sandbox's, once it is open;
                                        NULL: no sandbox */
    struct layer *layer; /* what commands write goes there; NULL: to the real files; borrowed */
    struct workspace_inside *inside; /* workspace.c's own */
};

struct workspace_entry {
    enum access access;
    const char *text; /* as in struct profile_text */
};

/* Behind the first, in the order of enum network_access. */
enum workspace_network {
    WORKSPACE_NETWORK_OF_PROFILE,
    WORKSPACE_RESTRICTED,
    WORKSPACE_PROXIED,
    WORKSPACE_ENABLED,
    WORKSPACE_HOST,
};
enum workspace_judge {
    WORKSPACE_JUDGE_OF_PROFILE,
    WORKSPACE_JUDGE_COMMAND,
    WORKSPACE_JUDGE_EVERY_EXEC
};
/* Behind the first, in the order of enum profile_tmp. */
enum workspace_tmp { WORKSPACE_TMP_OF_PROFILE, WORKSPACE_TMP_HOST, WORKSPACE_TMP_PRIVATE };
/* Behind the first, in the order of enum profile_git. */
enum workspace_git { WORKSPACE_GIT_OF_PROFILE, WORKSPACE_GIT_READ, WORKSPACE_GIT_COMMIT };
/* Behind the first, in the order of enum profile_watch. */
enum workspace_watch {
    WORKSPACE_WATCH_OF_PROFILE,
    WORKSPACE_WATCH_FACTS,
    WORKSPACE_WATCH_OFF,
    WORKSPACE_WATCH_ASK,
    WORKSPACE_WATCH_LEARN,
};

/* What the approver calls the parts of a request, in messages and as the origin of entries. */
struct workspace_words {
    const char *profile; /* "--profile" */
    const char *sandbox;
    const char *network;
    const char *allow_host;
    const char *host_port;
    const char *publish;
    const char *credential;
    const char *allow_local_binding;
    const char *socket;
    const char *with;
    const char *narrow;
    const char *layer;
    const char *layer_git;
    const char *paths[ACCESS_WRITE + 1]; /* by their access */
    const char *origin; /* of every entry; NULL: its word and its text, "--deny .env" */
};

/* Zeroed parts are what is meant when nothing is said. */
struct workspace_request {
    const struct workspace_words *words; /* NULL: only `profile` and `roots` are given */
    const char *dir;                     /* absolute; NULL: none, nothing counts from it */
    const char *root; /* of the workspace: `dir` as it was named; NULL: only `roots`. The root of
                         the disk is never one by itself: a service that happens to start there
                         would be given everything */
    char *const *roots;
    size_t canonical_roots; /* this and the next as in struct resolve_context */
    const char *within;
    const char *profile_name;      /* NULL: the configuration's, else workspace-write */
    const struct profile *profile; /* in place of a name */
    const struct profile
        *narrow;      /* what all of it is narrowed to, too (policy/narrow.h); NULL: nothing */
    const char *type; /* static */
    enum sandbox_mode mode;
    enum workspace_network network;
    const struct network_policy *hosts; /* rules beside those of the profile; NULL: none */
    enum workspace_watch watch;
    enum workspace_judge judge;
    enum workspace_tmp tmp;
    enum workspace_git git;
    unsigned topics;       /* of enum timeline_topic */
    unsigned audit_topics; /* for the audit log, unless the profile watches nothing */
    bool tells_connects;
    const struct workspace_entry *entries; /* in front of those of the profile */
    size_t entries_len;
    const struct protect_choice *protect; /* NULL: the configuration's, else the default */
    char *const *unix_sockets; /* beside those of the profile; as in struct profile_text */
    char *const *presets;      /* names, beside those of the profile; NULL: none */
    bool is_strict;            /* an entry that may be written has to be there */
    struct layer *
        layer; /* open; what commands write goes there; borrowed until workspaces_forget_layer(); NULL:
                  to the real files. `key` has to tell it from others (layer_id()) */
    const struct environment_policy *env; /* NULL: that of the configuration */
    bool has_no_env;                      /* none is made */
    const char *tmpdir; /* that of the host, never of the command: what a model chooses must not
                           open a directory; NULL: none */
};

/* `*ret` is NULL when there is none by this key. -1 when there is one, but what it was made of
 * means nothing any more. */
int workspace_find(struct workspaces *workspaces, const char *key, struct workspace **ret,
                   struct err *err);

/* `key` NULL: for one command, not to be found again; it is held then, for the caller to release.
 * NULL on failure. */
struct workspace *workspace_make(struct workspaces *workspaces, const char *key,
                                 const struct workspace_request *request, struct err *err);

/* Of each command in it, when nothing else is said: the defaults of a sandbox, the configuration, the
 * profile. */
void workspace_limits(const struct workspace *workspace, struct resource_limits *ret);

/* ERR_UNSUPPORTED when this host cannot make its sandbox. */
int workspace_open(struct workspace *workspace, struct err *err);

/* The same, and sets the sandbox up with nothing in it, so that its layers are what this host
 * really gives. */
int workspace_probe(struct workspace *workspace, struct err *err);

/* The same, with the overlay laid over its profile, or, with NULL, without a sandbox; open, and
 * held for the caller. NULL on failure. */
struct workspace *workspace_derive(struct workspace *like, const struct profile_overlay *overlay,
                                   struct err *err);

/* Each program that a command executes in it waits until somebody has judged it. */
static inline bool workspace_judges_execs(const struct workspace *workspace)
{
    return workspace->profile.judge == PROFILE_JUDGE_EVERY_EXEC &&
           workspace->mode != SANDBOX_DISABLED;
}

/* A rule or a yes may let something of it run outside of its sandbox: not where that would write past a layer. */
static inline bool workspace_may_leave(const struct workspace *workspace)
{
    return !workspace->layer;
}

/* While anything runs in it. Every hold is released once. A sandbox that nothing runs in for a
 * second gives back what is cached. */
void workspace_hold(struct workspace *workspace);
void workspace_release(struct workspace *workspace); /* NULL is fine */

/* `path` (clean) lies in one of its roots. */
bool workspace_has_root(const struct workspace *workspace, const char *path);

/* What it is known by where something is kept for it: the canonical path of its first root; NULL: nothing.
 * Caller frees. */
char *workspace_known_by(const struct workspace *workspace);

/* A working directory, counted from `dir`; NULL: that. Caller frees. */
char *workspace_dir(const struct workspace *workspace, const char *cwd);

/* The environment of a model's command (job/job_environment.h), appended to `ret`. */
void workspace_job_env(const struct workspace *workspace, const char *thread_id, struct strv *ret);

/* The variables that presets set in it, appended to `ret`: none without a sandbox, and nothing outside of one is to
 * have them. */
void workspace_preset_env(const struct workspace *workspace, struct strv *ret);

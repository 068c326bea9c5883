/* What a command may do: the options that say so, shared by `run`, `explain`, `script` and `patch`, and
 * what they, the config file and this host come to: the workspace of the command, and how it is
 * approved. `run` uses it, `explain` prints it. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "cli/config_file.h"
#include "cli/options.h"
#include "policy/config/approval.h"
#include "policy/protect.h"
#include "workspace/workspace.h"

#include <stdbool.h>
#include <stddef.h>

struct config;
struct execution_options;
struct layer;

/* --- options: texts are borrowed from argv; zeroed is what is meant when nothing is given --- */

struct policy_options {
    enum sandbox_mode mode;
    const char *profile;           /* NULL: what the config says */
    const char *config;            /* NULL: the file in the config directory, if there is one */
    const char *directory;         /* NULL: the current directory */
    const char *guarded;           /* runs outside: never writable for the command; NULL: nothing */
    struct workspace_entry *paths; /* --writable, --readable, --deny */
    size_t paths_len;
    size_t paths_cap;
    struct network_policy hosts;   /* --allow-host, --deny-host, --allow-local-binding */
    struct strv sockets;           /* --socket */
    struct strv presets;           /* --with */
    struct protect_choice protect; /* --protect; not made: what the config says */
    enum workspace_network network;
    enum workspace_watch watch;
    enum workspace_judge judge;
    enum workspace_tmp tmp;
    enum workspace_git git;
    unsigned topics;     /* of enum timeline_topic */
    bool is_recorded;    /* in the audit log, what the configuration wants there */
    bool reports_later;  /* job_audit_timeline() has what is changed, whatever the log wants */
    const char *inherit; /* "core", "all", "none"; NULL: what the config says */
    struct strv env;     /* "NAME=VALUE" or "NAME" */
    struct strv env_include;
    struct strv env_exclude;
    struct approval_policy approval; /* --ask-for-approval */
    const char *approval_word;       /* the same, as it was given; NULL: it was not */
    bool yes_means_unsandboxed;
    struct layer *layer; /* open; what commands write goes there; borrowed; NULL: the real files */
    /* Gives it, once the configuration is known: `dir` is where commands start. NULL: it is `layer`. */
    int (*find_layer)(const struct policy_options *options, const struct config *config,
                      const char *dir, struct layer **ret, struct err *err);
    void *find_layer_data;
};

void policy_options_done(struct policy_options *options);

/* Tables of a struct policy_options. */
extern const struct option policy_permission_options[];
extern const struct option policy_environment_options[];

/* For a row --ask-for-approval, whose member is a struct policy_options. */
extern const char *const policy_approval_words[];
int policy_set_approval(const struct option *option, void *member, const char *value,
                        struct err *err);

/* --- settings --- */

struct settings {
    struct config_file file;
    struct layer *layer; /* borrowed; NULL: none */
    struct workspaces *workspaces;
    struct workspace *workspace; /* of the command; not open yet */
    struct approval_policy approval;
    const char *approval_from; /* who chose it; NULL: no policy was chosen, so no question is asked,
                                  and of the rules only those that forbid count; borrowed */
    struct strv warnings;      /* lines for the person */
};

/* ERR_INVALID also for options that contradict each other. settings_done() by the caller. */
int settings_init(struct settings *ret, const struct policy_options *options, struct err *err);
void settings_done(struct settings *settings); /* nothing runs in its workspaces any more */

/* What decides about a command, for `run` and `explain` alike: all of the options but who is asked,
 * how the command runs, and the callbacks. Borrows from the settings. */
void settings_execution(const struct settings *settings, char *const *argv,
                        struct execution_options *ret);

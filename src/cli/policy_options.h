/* The options that say what a command may do, shared by `run` and `explain`, as they were given.
 * settings.h makes something of them. */
#pragma once

#include "base/strv.h"
#include "cli/options.h"
#include "policy/config/approval.h"
#include "workspace/workspace.h"

#include <stdbool.h>
#include <stddef.h>

/* Texts are borrowed from argv. Zeroed is what is meant when nothing is given. */
struct policy_options {
    enum sandbox_mode mode;
    const char *profile;           /* NULL: what the config says */
    const char *config;            /* NULL: the file in the config directory, if there is one */
    const char *directory;         /* NULL: the current directory */
    const char *guarded;           /* runs outside: never writable for the command; NULL: nothing */
    struct workspace_entry *paths; /* --writable, --readable, --deny */
    size_t paths_len;
    size_t paths_cap;
    const char *network; /* "restricted", "enabled"; NULL: what the profile says */
    const char *inherit; /* "core", "all", "none"; NULL: what the config says */
    struct strv env;     /* "NAME=VALUE" or "NAME" */
    struct strv env_include;
    struct strv env_exclude;
    struct approval_policy approval; /* --ask-for-approval */
    bool has_approval;               /* it was given */
};

void policy_options_done(struct policy_options *options);

/* Tables of a struct policy_options. */
extern const struct option policy_permission_options[];
extern const struct option policy_environment_options[];

/* For a row --ask-for-approval, whose member is a struct policy_options. */
extern const char *const policy_approval_words[];
int policy_set_approval(const struct option *option, void *member, const char *value,
                        struct err *err);

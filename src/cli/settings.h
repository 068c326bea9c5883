/* What the options, the config file and this host come to: everything that is decided before a
 * sandbox is made. `run` uses it, `explain` prints it.
 *
 *     options + config file -> profile, roots -> access map -> environment
 */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "cli/config_file.h"
#include "policy/access.h"
#include "policy/config/approval.h"
#include "policy/config/config.h"
#include "policy/environment.h"
#include "sandbox/sandbox.h"

struct policy_options;
struct profile_overlay;

struct settings {
    struct config_file file;
    char *folder; /* canonical: where the command starts */
    char *root; /* the same as the user named it: a root must not be named through a symlink that a
                   command could have planted, which the resolution checks */
    struct config_profile chosen;
    const char *profile_name;
    char *profile_origin; /* who chose it: "--profile", "/x/config.toml", "default" */
    char *network_origin;
    struct strv roots; /* of the workspace: absolute */
    struct access_map access;
    struct strv own_paths; /* canonical */
    struct strv env;
    struct environment_report env_report;
    enum sandbox_mode mode; /* disabled also when the profile is */
    struct approval_policy approval;
    const char *approval_from; /* who chose it; NULL: nobody, so nobody is asked, and of the rules
                                  only those that forbid count; borrowed */
    struct strv warnings;      /* lines for the person */
};

/* ERR_INVALID also for options that contradict each other. settings_done() by the caller. */
int settings_init(struct settings *ret, const struct policy_options *options, struct err *err);
void settings_done(struct settings *settings);

/* The same, with the overlay laid over the profile. */
int settings_init_widened(struct settings *ret, const struct policy_options *options,
                          const struct profile_overlay *overlay, struct err *err);

/* The sandbox for these settings; NULL on failure. */
struct sandbox *settings_sandbox(const struct settings *settings, struct err *err);

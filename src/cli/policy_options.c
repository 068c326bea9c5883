/* See policy_options.h. Values are only kept here: what they mean may depend on each other and on
 * the config file, so their order on the command line does not matter. */
#include "cli/policy_options.h"

#include "base/alloc.h"
#include "base/str.h"
#include "policy/protect.h"

#include <stdlib.h>
#include <string.h>

void policy_options_done(struct policy_options *options)
{
    free(options->paths);
    strv_done(&options->env);
    strv_done(&options->env_include);
    strv_done(&options->env_exclude);
}

static const char *const mode_words[] = {"auto", "require", "disabled", NULL};

const char *const policy_approval_words[] = {"untrusted", "on-request", "granular",
                                             "never",     "on-failure", NULL};

int policy_set_approval(const struct option *option, void *member, const char *value,
                        struct err *err)
{
    struct policy_options *options = member;

    options->has_approval = true;
    return approval_policy_parse(value, &options->approval, err);
}

static int add_path(const struct option *option, void *member, const char *value, struct err *err)
{
    struct policy_options *options = member;

    if (!*value)
        return err_set(err, ERR_INVALID, "the path is empty");
    options->paths =
        alloc_grow(options->paths, options->paths_len, &options->paths_cap, sizeof *options->paths);
    options->paths[options->paths_len++] =
        (struct workspace_entry){.access = (enum access)option->number, .text = value};
    return 0;
}

static int add_env(const struct option *option, void *member, const char *value, struct err *err)
{
    struct policy_options *options = member;

    if (!*value || *value == '=')
        return err_set(err, ERR_INVALID, "\"%s\" has no name; NAME=VALUE or NAME is right", value);
    strv_push(&options->env, value);
    return 0;
}

static const char *const network_words[] = {"restricted", "enabled", NULL};
static const char *const inherit_words[] = {"core", "all", "none", NULL};

const struct option policy_permission_options[] = {
    {.name = "profile",
     .letter = 'p',
     .value = "NAME",
     INTO_TEXT(struct policy_options, profile),
     .wrong = "the value is empty",
     .help =
         "What the command may do: read-only, workspace-write, danger-full-access (no sandbox), "
         "or a [permissions.NAME] table of the config file. Default: what the config file "
         "says, else workspace-write."},
    {.name = "sandbox",
     .value = "MODE",
     .words = mode_words,
     INTO_WORD(struct policy_options, mode, SANDBOX_AUTO),
     .help = "auto (the default): the strongest layers that this machine has, and a line on stderr "
             "when one is missing. require: all of them, or nothing is run. disabled: none."},
    {.name = "directory",
     .letter = 'C',
     .value = "DIR",
     INTO_TEXT(struct policy_options, directory),
     .wrong = "the value is empty",
     .help = "As if started in DIR: the command's directory, the root of its workspace, and what "
             "relative paths in other options count from."},
    {.name = "writable",
     .letter = 'w',
     .value = "PATH",
     .set = add_path,
     .number = ACCESS_WRITE,
     .help =
         "May also be written, with everything below; a directory becomes a workspace root. Names "
         "that are protected (" PROTECT_NAMES_TEXT ") stay read-only in it, "
         "unless they are named themselves: --writable .git."},
    {.name = "readable",
     .letter = 'r',
     .value = "PATH",
     .set = add_path,
     .number = ACCESS_READ,
     .help =
         "May be read, with everything below: below a --deny it opens PATH again, to a profile "
         "that does not read everything it adds PATH, and in a writable directory it makes PATH "
         "read-only."},
    {.name = "deny",
     .letter = 'd',
     .value = "PATH|GLOB",
     .set = add_path,
     .number = ACCESS_DENY,
     .help =
         "May neither be read nor written. In a glob, * and ? stay in one directory and ** crosses "
         "directories; quote it. The entry with the longest path decides."},
    {.name = "network",
     .letter = 'n',
     .value = "MODE",
     .words = network_words,
     INTO_TEXT(struct policy_options, network),
     .wrong = "the value is empty",
     .help = "restricted: only a localhost of its own. enabled: the network of this machine."},
    {.name = "config",
     .value = "FILE",
     INTO_TEXT(struct policy_options, config),
     .wrong = "the value is empty",
     .help = "Reads FILE in place of $CORDON_HOME/config.toml (~/.config/cordon/config.toml). It "
             "may be one of Codex."},
    {.name = NULL},
};

const struct option policy_environment_options[] = {
    {.name = "env",
     .letter = 'e',
     .value = "NAME[=VALUE]",
     .set = add_env,
     .help = "Sets a variable, or passes one of yours that would be left out."},
    {.name = "env-inherit",
     .value = "SET",
     .words = inherit_words,
     INTO_TEXT(struct policy_options, inherit),
     .wrong = "the value is empty",
     .help = "Which of your variables are passed. all (the default) is without those that look "
             "like secrets: *KEY*, *SECRET*, *TOKEN*, *PASSWORD*, *CREDENTIAL*. core: PATH, HOME, "
             "USER, SHELL, the language and the temporary directory. none: none."},
    {.name = "env-include",
     .value = "PATTERN",
     INTO_LIST(struct policy_options, env_include),
     .help = "Passes only variables that match this or another --env-include."},
    {.name = "env-exclude",
     .value = "PATTERN",
     INTO_LIST(struct policy_options, env_exclude),
     .help = "Leaves out variables that match. * and ? are wildcards, case does not matter."},
    {.name = NULL},
};

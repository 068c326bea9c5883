/* See settings.h. The one rule on roots: they come from the person alone, by -C or the current
 * directory, --writable and the config file. */
#include "cli/settings.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/policy_options.h"
#include "policy/config/config.h"
#include "policy/environment.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void settings_done(struct settings *settings)
{
    workspaces_free(settings->workspaces);
    config_file_done(&settings->file);
    strv_done(&settings->warnings);
    *settings = (struct settings){0};
}

/* `*ret_dir` is canonical; `*ret_root` is the same as the user named it: a root must not be named
 * through a symlink that a command could have planted, which the resolution checks. */
static int find_dir(const char *named, char **ret_dir, char **ret_root, struct err *err)
{
    char path[PATH_MAX];
    AUTO_FREE char *root = NULL;
    struct stat st;

    if (!getcwd(path, sizeof path))
        return err_sys(err, "finding the current folder");
    root = path_clean(path, named ? named : ".");
    if (named && (!realpath(named, path) || stat(path, &st)))
        return err_sys(err, "--directory %s", named);
    if (path[0] != '/')
        return err_set(err, ERR_INVALID, "the current folder cannot be reached from /: %s", path);
    if (named && !S_ISDIR(st.st_mode))
        return err_set(err, ERR_INVALID, "--directory %s is not a folder", named);
    *ret_dir = alloc_str(path);
    *ret_root = TAKE_PTR(root);
    return 0;
}

static void take_config_warnings(struct settings *settings)
{
    const struct config_warning *warnings;
    size_t len;

    if (!settings->file.config)
        return;
    warnings = config_warnings(settings->file.config, &len);
    for (size_t i = 0; i < len; i++)
        strv_pushf(&settings->warnings, "%s:%u: %s", warnings[i].file, warnings[i].line,
                   warnings[i].text);
}

/* --- environment --- */

/* What is named by --env is meant, so it passes the patterns of --env-include, too. */
static int set_variable(struct environment_policy *policy, const char *text, struct err *err)
{
    size_t len = strcspn(text, "=");
    AUTO_FREE char *name = alloc_strn(text, len);
    const char *value = text[len] ? text + len + 1 : getenv(name);

    if (environment_is_reserved(name))
        return err_set(err, ERR_INVALID, "--env: %s is never passed on", name);
    if (!value)
        return err_set(err, ERR_INVALID, "--env: %s is not set here; give it a value: %s=VALUE",
                       name, name);
    strv_pushf(&policy->set, "%s=%s", name, value);
    if (policy->include_only.len)
        strv_push(&policy->include_only, name);
    return 0;
}

static int apply_environment_options(struct environment_policy *policy,
                                     const struct policy_options *options, struct err *err)
{
    if (options->inherit)
        policy->inherit = str_eq(options->inherit, "all")    ? ENVIRONMENT_ALL
                          : str_eq(options->inherit, "core") ? ENVIRONMENT_CORE
                                                             : ENVIRONMENT_NONE;
    strv_push_all(&policy->exclude, strv_view(&options->env_exclude));
    strv_push_all(&policy->include_only, strv_view(&options->env_include));
    for (size_t i = 0; i < options->env.len; i++)
        if (set_variable(policy, options->env.items[i], err))
            return -1;
    return 0;
}

/* --- approval --- */

/* The word "granular" alone means the switches of the config file when it has some. */
static void choose_approval(struct settings *settings, const struct policy_options *options)
{
    const struct approval_policy *own = config_approval_policy(settings->file.config);
    bool is_completed =
        own && options->approval.mode == APPROVAL_GRANULAR && own->mode == APPROVAL_GRANULAR;

    if (options->has_approval) {
        settings->approval = is_completed ? *own : options->approval;
        settings->approval_from = "--ask-for-approval";
    } else if (own) {
        settings->approval = *own;
        settings->approval_from = settings->file.path;
    } else {
        settings->approval = (struct approval_policy){.mode = APPROVAL_NEVER};
    }
}

/* --- workspace --- */

static bool grants_roots(const struct profile *profile)
{
    for (size_t i = 0; i < profile->entries.len; i++)
        if (profile->entries.items[i].path_kind == PROFILE_PATH_PROJECT_ROOTS &&
            profile->entries.items[i].access == ACCESS_WRITE)
            return true;
    return false;
}

static void open_workspaces(struct settings *settings)
{
    const struct config_file *file = &settings->file;
    const struct workspaces_options options = {
        .config = file->config,
        .config_path = file->path,
        .home = file->home,
        .own_paths = strv_view(&file->own_paths),
        .dies_with_thread = true,
    };

    settings->workspaces = workspaces_new(&options);
}

/* $TMPDIR is the caller's own and not the command's: --env must not open a directory. */
static int make_workspace(struct settings *settings, const struct policy_options *options,
                          const char *dir, const char *root, struct err *err)
{
    static const struct workspace_words words = {
        .profile = "--profile",
        .sandbox = "--sandbox",
        .network = "--network",
        .paths = {"--deny", "--readable", "--writable"},
    };
    AUTO(environment_policy_done) struct environment_policy env = {0};
    const struct workspace_request request = {
        .words = &words,
        .dir = dir,
        .root = root,
        .profile_name = options->profile,
        .mode = options->mode,
        .network = !options->network                     ? WORKSPACE_NETWORK_OF_PROFILE
                   : str_eq(options->network, "enabled") ? WORKSPACE_ENABLED
                                                         : WORKSPACE_RESTRICTED,
        .entries = options->paths,
        .entries_len = options->paths_len,
        .is_strict = true,
        .env = &env,
        .tmpdir = getenv("TMPDIR"),
    };

    if (settings->file.config)
        environment_policy_copy(config_environment(settings->file.config), &env);
    if (apply_environment_options(&env, options, err))
        return -1;
    settings->workspace = workspace_make(settings->workspaces, NULL, &request, err);
    if (!settings->workspace)
        return -1;
    if (str_eq(dir, "/") && grants_roots(&settings->workspace->profile))
        strv_push(&settings->warnings, "the folder is /, so nothing of it is writable by itself: "
                                       "choose another with -C DIR, or say --writable PATH");
    return 0;
}

static int init(struct settings *settings, const struct policy_options *options, struct err *err)
{
    AUTO_FREE char *dir = NULL;
    AUTO_FREE char *root = NULL;

    if (find_dir(options->directory, &dir, &root, err) ||
        config_file_load(options->config, dir, &settings->file, err))
        return -1;
    if (options->guarded)
        strv_push_take(&settings->file.own_paths, path_clean(dir, options->guarded));
    take_config_warnings(settings);
    choose_approval(settings, options);
    open_workspaces(settings);
    return make_workspace(settings, options, dir, root, err);
}

int settings_init(struct settings *ret, const struct policy_options *options, struct err *err)
{
    *ret = (struct settings){0};
    if (init(ret, options, err) == 0)
        return 0;
    settings_done(ret);
    return -1;
}

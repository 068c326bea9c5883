/* See settings.h. Each step below takes what the steps before it made; none is repeated.
 *
 * The one rule on roots: they come from the person alone, by -C or the current folder, --writable
 * and the config file. The root folder of the disk is never one by itself, because a service that
 * happens to start in "/" would be given everything; --writable / says so in so many words. */
#include "cli/settings.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/policy_options.h"
#include "policy/host_view.h"
#include "policy/profile_overlay.h"
#include "policy/profile_text.h"
#include "policy/resolve.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void settings_done(struct settings *settings)
{
    config_file_done(&settings->file);
    free(settings->folder);
    free(settings->root);
    config_profile_done(&settings->chosen);
    free(settings->profile_origin);
    free(settings->network_origin);
    strv_done(&settings->roots);
    access_map_done(&settings->access);
    strv_done(&settings->own_paths);
    strv_done(&settings->env);
    environment_report_done(&settings->env_report);
    strv_done(&settings->warnings);
    *settings = (struct settings){0};
}

/* --- folder and config file --- */

static int find_folder(struct settings *settings, const char *directory, struct err *err)
{
    char path[PATH_MAX];
    struct stat st;

    if (!getcwd(path, sizeof path))
        return err_sys(err, "finding the current folder");
    settings->root = path_clean(path, directory ? directory : ".");
    if (directory && (!realpath(directory, path) || stat(path, &st)))
        return err_sys(err, "--directory %s", directory);
    if (path[0] != '/')
        return err_set(err, ERR_INVALID, "the current folder cannot be reached from /: %s", path);
    if (directory && !S_ISDIR(st.st_mode))
        return err_set(err, ERR_INVALID, "--directory %s is not a folder", directory);
    settings->folder = alloc_str(path);
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

/* --- profile --- */

static int choose_profile(struct settings *settings, const char *asked, struct err *err)
{
    const struct config *config = settings->file.config;
    const char *configured = config ? config_default_profile(config) : NULL;

    settings->profile_name = asked ? asked : configured ? configured : "workspace-write";
    settings->profile_origin = alloc_str(asked        ? "--profile"
                                         : configured ? settings->file.path
                                                      : "the default");
    /* the configured one is asked for by NULL: a sandbox mode is never the name of a table */
    if (config_profile(config, !asked && configured ? NULL : settings->profile_name,
                       settings->file.home, &settings->chosen, err))
        return asked ? err_wrap(err, "--profile") : -1;
    settings->network_origin = alloc_strf("profile %s", settings->profile_name);
    return 0;
}

static bool has_narrowing_options(const struct policy_options *options)
{
    for (size_t i = 0; i < options->paths_len; i++)
        if (options->paths[i].access == ACCESS_DENY)
            return true;
    return options->network && str_eq(options->network, "restricted");
}

/* Without a sandbox nothing is held; what was asked to be held all the same is better refused than
 * forgotten. */
static int decide_mode(struct settings *settings, const struct policy_options *options,
                       struct err *err)
{
    bool is_open = settings->chosen.profile.kind == PROFILE_DISABLED;

    settings->mode = is_open ? SANDBOX_DISABLED : options->mode;
    if (is_open && options->mode == SANDBOX_REQUIRE)
        return err_set(err, ERR_INVALID,
                       "--sandbox require contradicts the profile %s (from %s), which has no "
                       "sandbox",
                       settings->profile_name, settings->profile_origin);
    if (settings->mode != SANDBOX_DISABLED || !has_narrowing_options(options))
        return 0;
    if (!is_open)
        return err_set(err, ERR_INVALID,
                       "--deny and --network restricted cannot be kept with --sandbox disabled");
    return err_set(err, ERR_INVALID,
                   "--deny and --network restricted cannot be kept with the profile %s (from %s), "
                   "which has no sandbox",
                   settings->profile_name, settings->profile_origin);
}

static int decide_network(struct settings *settings, const char *asked, struct err *err)
{
    struct profile *profile = &settings->chosen.profile;

    if (asked) {
        profile->network = str_eq(asked, "enabled") ? NETWORK_ENABLED : NETWORK_RESTRICTED;
        free(settings->network_origin);
        settings->network_origin = alloc_strf("--network %s", asked);
    }
    if (profile->network == NETWORK_PROXIED)
        return err_set(err, ERR_UNSUPPORTED,
                       "the profile %s has rules for the managed proxy, which this version of "
                       "Cordon does not have: choose --network restricted or --network enabled",
                       settings->profile_name);
    return 0;
}

static const char *access_option(enum access access)
{
    static const char *const names[] = {
        [ACCESS_DENY] = "--deny", [ACCESS_READ] = "--readable", [ACCESS_WRITE] = "--writable"};

    return names[access];
}

/* A writable path that is not there would be left out without a word. */
static int check_writable(struct settings *settings, const struct profile_entry *entry,
                          struct err *err)
{
    struct stat st;

    if (entry->path_kind != PROFILE_PATH_LITERAL)
        return 0;
    if (stat(entry->path, &st))
        return err_sys(err, "%s", entry->path);
    if (S_ISDIR(st.st_mode))
        strv_push(&settings->roots, entry->path);
    return 0;
}

static int add_path(struct settings *settings, struct profile *profile,
                    const struct path_request *request, struct err *err)
{
    const char *option = access_option(request->access);
    AUTO_FREE char *origin = alloc_strf("%s %s", option, request->text);
    struct profile_text text = {
        .text = request->text,
        .access = request->access,
        .unknown = PROFILE_UNKNOWN_REFUSE,
        .origin = origin,
        .home = settings->file.home,
        .base = settings->folder,
    };
    const struct profile_entries *entries = &profile->entries;

    if (profile_add_text(profile, &text, err))
        return err_wrap(err, "%s", option);
    if (request->access == ACCESS_WRITE &&
        check_writable(settings, &entries->items[entries->len - 1], err))
        return err_wrap(err, "%s", option);
    return 0;
}

static bool grants_workspace(const struct profile *profile)
{
    for (size_t i = 0; i < profile->entries.len; i++)
        if (profile->entries.items[i].path_kind == PROFILE_PATH_PROJECT_ROOTS &&
            profile->entries.items[i].access == ACCESS_WRITE)
            return true;
    return false;
}

static void add_roots(struct settings *settings)
{
    if (!str_eq(settings->folder, "/"))
        strv_push(&settings->roots, settings->root);
    else if (grants_workspace(&settings->chosen.profile))
        strv_push(&settings->warnings, "the folder is /, so nothing of it is writable by itself: "
                                       "choose another with -C DIR, or say --writable PATH");
    strv_push_all(&settings->roots, strv_view(&settings->chosen.workspace_roots));
}

static int add_paths(struct settings *settings, const struct policy_options *options,
                     struct err *err)
{
    AUTO(profile_done) struct profile asked = {0};
    struct profile_entries *entries = &settings->chosen.profile.entries;
    struct profile_entries rest;

    add_roots(settings);
    for (size_t i = 0; i < options->paths_len; i++)
        if (add_path(settings, &asked, &options->paths[i], err))
            return -1;
    /* In front: of two entries that say the same, the option is named as the one that decides. */
    rest = *entries;
    *entries = asked.entries;
    asked.entries = rest;
    for (size_t i = 0; i < rest.len; i++)
        profile_entries_add(entries, &rest.items[i]);
    return 0;
}

/* $TMPDIR is the caller's own and not the command's: --env must not open a folder. */
static int resolve(struct settings *settings, struct err *err)
{
    const struct resolve_context context = {
        .view = &host_view_real,
        .workspace_roots = strv_view(&settings->roots),
        .tmpdir = getenv("TMPDIR"),
    };

    if (settings->mode == SANDBOX_DISABLED) {
        settings->access = (struct access_map){.network = NETWORK_ENABLED};
        return 0;
    }
    if (profile_resolve(&settings->chosen.profile, &context, &settings->access, err))
        return -1;
    return config_file_guard(&settings->file, &settings->access, &settings->own_paths, err);
}

/* --- environment --- */

static void policy_copy(const struct environment_policy *from, struct environment_policy *to)
{
    to->inherit = from->inherit;
    to->defaults = from->defaults;
    strv_push_all(&to->exclude, strv_view(&from->exclude));
    strv_push_all(&to->include_only, strv_view(&from->include_only));
    strv_push_all(&to->set, strv_view(&from->set));
}

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

static int make_environment(struct settings *settings, const struct policy_options *options,
                            struct err *err)
{
    AUTO(environment_policy_done) struct environment_policy policy = {0};
    const struct environment_request request = {
        .policy = &policy,
        .base = environ,
        .sandbox = settings->mode == SANDBOX_DISABLED ? ENVIRONMENT_BARE : ENVIRONMENT_SANDBOXED,
        .network = settings->access.network,
    };

    if (settings->file.config)
        policy_copy(config_environment(settings->file.config), &policy);
    if (apply_environment_options(&policy, options, err))
        return -1;
    environment_build(&request, &settings->env, &settings->env_report);
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

/* --- all of it --- */

static void widen(struct settings *settings, const struct profile_overlay *overlay)
{
    enum network_access before = settings->chosen.profile.network;

    profile_overlay_apply(&settings->chosen.profile, overlay);
    if (settings->chosen.profile.network == before)
        return;
    free(settings->network_origin);
    settings->network_origin = alloc_str("an approval");
}

static int init(struct settings *settings, const struct policy_options *options,
                const struct profile_overlay *overlay, struct err *err)
{
    if (find_folder(settings, options->directory, err) ||
        config_file_load(options->config, settings->folder, &settings->file, err))
        return -1;
    if (options->guarded)
        strv_push_take(&settings->file.own_paths, path_clean(settings->folder, options->guarded));
    take_config_warnings(settings);
    choose_approval(settings, options);
    if (choose_profile(settings, options->profile, err) || decide_mode(settings, options, err) ||
        decide_network(settings, options->network, err) || add_paths(settings, options, err))
        return -1;
    widen(settings, overlay);
    if (resolve(settings, err))
        return -1;
    return make_environment(settings, options, err);
}

int settings_init(struct settings *ret, const struct policy_options *options, struct err *err)
{
    static const struct profile_overlay nothing;

    return settings_init_widened(ret, options, &nothing, err);
}

int settings_init_widened(struct settings *ret, const struct policy_options *options,
                          const struct profile_overlay *overlay, struct err *err)
{
    *ret = (struct settings){0};
    if (init(ret, options, overlay, err) == 0)
        return 0;
    settings_done(ret);
    return -1;
}

struct sandbox *settings_sandbox(const struct settings *settings, struct err *err)
{
    const struct sandbox_options options = {
        .mode = settings->mode,
        .access = &settings->access,
        .dies_with_thread = true,
        .allow_nested_namespaces = settings->chosen.profile.allow_nested_namespaces,
        .own_paths = (const char *const *)strv_view(&settings->own_paths),
    };

    return sandbox_new(&options, err);
}

/* See settings.h. Options are only kept when they are read: what they mean may depend on each other
 * and on the config file, so their order on the command line does not matter.
 *
 * The one rule on roots: they come from the person alone, by -C or the current directory, --writable
 * and the config file. */
#include "cli/settings.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "executor/execution.h"
#include "policy/config/config.h"
#include "policy/environment.h"
#include "policy/protect.h"
#include "timeline/timeline.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- options --- */

void policy_options_done(struct policy_options *options)
{
    free(options->paths);
    network_policy_done(&options->hosts);
    strv_done(&options->sockets);
    strv_done(&options->presets);
    protect_choice_done(&options->protect);
    strv_done(&options->env);
    strv_done(&options->env_include);
    strv_done(&options->env_exclude);
}

static const char *const mode_words[] = {"auto", "require", "disabled", "landlock", NULL};

const char *const policy_approval_words[] = {"untrusted", "on-request", "granular",
                                             "never",     "on-failure", NULL};

int policy_set_approval(const struct option *option, void *member, const char *value,
                        struct err *err)
{
    struct policy_options *options = member;

    options->approval_word = value;
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

static int add_gpu(const struct option *option, void *member, const char *value, struct err *err)
{
    const struct option writable = {.number = ACCESS_WRITE};

    return add_path(&writable, member, ":gpu", err);
}

static int add_host(const struct option *option, void *member, const char *value, struct err *err)
{
    struct policy_options *options = member;
    AUTO_FREE char *origin = alloc_strf("--%s %s", option->name, value);

    if (network_policy_add_text(&options->hosts, value, (enum network_verdict)option->number,
                                origin, err))
        return strstr(err->msg, value) ? -1 : err_wrap(err, "\"%s\"", value);
    return 0;
}

static int add_host_port(const struct option *option, void *member, const char *value,
                         struct err *err)
{
    struct policy_options *options = member;
    uint16_t port;

    return net_port_parse(value, &port, err) ||
                   network_policy_add_host_port(&options->hosts, port, err)
               ? -1
               : 0;
}

static int add_publication(const struct option *option, void *member, const char *value,
                           struct err *err)
{
    struct policy_options *options = member;
    struct publication publication;

    return publication_parse(value, &publication, err) ||
                   publications_add(&options->hosts.publications, &publication, err)
               ? -1
               : 0;
}

/* The hosts are open for it, at the port of https. */
static int add_credential(const struct option *option, void *member, const char *value,
                          struct err *err)
{
    struct network_policy *policy = &((struct policy_options *)member)->hosts;
    AUTO_FREE char *origin = alloc_strf("--credential %s", value);

    return network_policy_add_credential_text(policy, value, origin, err);
}

static int add_protect(const struct option *option, void *member, const char *value,
                       struct err *err)
{
    struct policy_options *options = member;

    options->protect.is_made = true;
    for (const char *at = value; *at && !str_eq(value, "none"); at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        AUTO_FREE char *word = alloc_strn(at, len);

        if (protect_choice_add(&options->protect, word, err))
            return -1;
        at += len;
    }
    return 0;
}

static int add_presets(const struct option *option, void *member, const char *value,
                       struct err *err)
{
    struct strv *names = member;

    for (const char *at = value; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");

        strv_push_take(names, alloc_strn(at, len));
        at += len;
    }
    return *value ? 0 : err_set(err, ERR_INVALID, "the name is empty");
}

static int add_env(const struct option *option, void *member, const char *value, struct err *err)
{
    struct policy_options *options = member;

    if (!*value || *value == '=')
        return err_set(err, ERR_INVALID, "\"%s\" has no name; NAME=VALUE or NAME is right", value);
    strv_push(&options->env, value);
    return 0;
}

static const char *const inherit_words[] = {"core", "all", "none", NULL};

const struct option policy_permission_options[] = {
    {.name = "profile",
     .letter = 'p',
     .value = "NAME",
     INTO_NOT_EMPTY(struct policy_options, profile),
     .brief = "What it may do: read-only, workspace-write, danger-full-access, or one of yours",
     .help =
         "What the command may do: read-only, workspace-write, danger-full-access (no sandbox), "
         "or a [permissions.NAME] table of the config file. Default: what the config file "
         "says, else workspace-write."},
    {.name = "sandbox",
     .value = "MODE",
     .words = mode_words,
     INTO_WORD(struct policy_options, mode, SANDBOX_AUTO),
     .brief = "auto, require (all layers, or nothing), disabled, landlock (without namespaces)",
     .help =
         "auto (the default): the strongest layers that this machine has, and a line on stderr "
         "when one is missing. require: all of them, or nothing is run. disabled: none. landlock: "
         "without namespaces, where none can be made (containers): weaker, see cordon-run(1)."},
    {.name = "directory",
     .letter = 'C',
     .value = "DIR",
     INTO_NOT_EMPTY(struct policy_options, directory),
     .brief = "As if started in DIR, which is the workspace then",
     .help = "As if started in DIR: the command's directory, the root of its workspace, and what "
             "relative paths in other options count from."},
    {.name = "writable",
     .letter = 'w',
     .value = "PATH",
     .set = add_path,
     .number = ACCESS_WRITE,
     .brief = "May also be written",
     .help =
         "May also be written, with everything below; a directory becomes a workspace root. Names "
         "that are protected (--protect) stay read-only in it, unless they are named themselves: "
         "--writable .git."},
    {.name = "readable",
     .letter = 'r',
     .value = "PATH",
     .set = add_path,
     .number = ACCESS_READ,
     .brief = "May be read; inside what is writable, only read",
     .help =
         "May be read, with everything below: below a --deny it opens PATH again, to a profile "
         "that does not read everything it adds PATH, and in a writable directory it makes PATH "
         "read-only."},
    {.name = "deny",
     .letter = 'd',
     .value = "PATH|GLOB",
     .set = add_path,
     .number = ACCESS_DENY,
     .brief = "May neither be read nor written",
     .help =
         "May neither be read nor written. In a glob, * and ? stay in one directory and ** crosses "
         "directories; quote it. The entry with the longest path decides."},
    {.name = "with",
     .value = "NAMES",
     .set = add_presets,
     .offset = offsetof(struct policy_options, presets),
     .brief = "What tools need: npm,pip (see cordon presets)",
     .help =
         "What tools need, by presets (npm,pip; \"cordon presets\" lists them): a cache of their "
         "own below ~/.cache/cordon, made when it is missing, which commands with that preset "
         "share and programs outside do not use, and the variables that tell them of it."},
    {.name = "protect",
     .value = "SETS",
     .set = add_protect,
     .brief = "Names that stay read-only everywhere: git, agents, editors, hooks, shell, ./NAME",
     .help =
         "Which names stay read-only in every writable directory, whether they are there or not: "
         "sets, by commas (" PROTECT_SETS_TEXT "), and ./NAME for names of your own. Default: what "
         "the config file says, else git,agents,editors; none: only .cordon. shell always holds "
         "for your home directory, when that is the workspace or lies in it."},
    {.name = "network",
     .letter = 'n',
     .value = "MODE",
     .words = network_access_words,
     INTO_WORD(struct policy_options, network, WORKSPACE_RESTRICTED),
     .brief = "restricted (its own localhost), proxied (what --allow-host names), enabled, host",
     .help = "restricted (the default): only a localhost of its own. proxied: beside that the "
             "hosts that "
             "--allow-host and the profile name, for every program. enabled: the network of this "
             "machine. host: and its Unix sockets."},
    {.name = "allow-host",
     .value = "HOST[:PORT]",
     .set = add_host,
     .number = NETWORK_ALLOW,
     .help =
         "May be reached, by its name; --network is proxied then. *.example.org: what lies below "
         "it, **.example.org: itself, too, *: every host; quote it. An address that is not of the "
         "public internet is reached only if it is named itself."},
    {.name = "deny-host",
     .value = "HOST[:PORT]",
     .set = add_host,
     .number = NETWORK_DENY,
     .help = "May not be reached, whatever else allows it."},
    {.name = "host-port",
     .value = "PORT",
     .set = add_host_port,
     .brief = "A port of this machine that it may reach",
     .help = "A port of this machine's own localhost that may be reached as one of the command's, "
             "where the "
             "command has no server there itself: a database, say. The network is proxied then."},
    {.name = "publish",
     .value = "[ADDR:]HOSTPORT:PORT",
     .set = add_publication,
     .brief = "Opens a port of the command to this machine",
     .help = "Opens the command's PORT to this machine, as its localhost's HOSTPORT (0: any that "
             "is free, "
             "which is said), while it runs. ADDR: at another address, 0.0.0.0 for all."},
    {.name = "credential",
     .value = "NAME=HOST[,HOST]",
     .set = add_credential,
     .brief = "A secret that is used for these hosts and not seen",
     .help = "The variable has a secret, which the command uses without seeing it: what it has in "
             "the variable becomes "
             "the secret in requests by https to these hosts, and is worth nothing elsewhere. "
             "--network is proxied then."},
    {.name = "allow-local-binding",
     INTO_TRUE(struct policy_options, hosts.allow_local_binding),
     .brief = "Allowed hosts may have private addresses",
     .help =
         "Hosts that are allowed may have addresses that are not of the public internet: those of "
         "a company, of this machine."},
    {.name = "socket",
     .value = "PATH",
     INTO_LIST(struct policy_options, sockets),
     .brief = "A Unix socket outside that may be connected to",
     .help = "A Unix socket of this machine that may be connected to: just this one. Those that "
             "the command makes itself, and those in its writable directories, may be without it."},
    {.name = "gpu",
     .set = add_gpu,
     .brief = "Opens the graphics cards for computing",
     .help = "Opens the graphics cards' nodes for computing that are there, and says which: "
             "/dev/dri/renderD*, /dev/nvidia*, /dev/kfd, /dev/dxg. Drivers are large: see "
             "cordon-run(1)."},
    {.name = "tmp",
     .value = "WHOSE",
     .words = profile_tmp_words,
     INTO_WORD(struct policy_options, tmp, WORKSPACE_TMP_HOST),
     .brief = "private: /tmp is the workspace's own. host: this machine's",
     .help =
         "private (the default): /tmp and /var/tmp are folders of the workspace, which its "
         "commands "
         "share and others do not see; `cordon explain` names them. host: those of this machine, "
         "as "
         "far as the profile opens them; workspace-write makes /tmp and $TMPDIR writable. Your own "
         "--writable /tmp or --readable /tmp/x goes before either."},
    {.name = "git",
     .value = "WHAT",
     .words = profile_git_words,
     INTO_WORD(struct policy_options, git, WORKSPACE_GIT_READ),
     .brief = "commit: what git writes in the repository, too; not hooks and configuration",
     .help =
         "read (the default): the repository of the workspace may be read. commit: what git writes "
         "may be written, too (commits, branches, the index, worktrees, the state of a rebase), "
         "but not what git runs or is led by: hooks, configuration (but for what branches follow, "
         "and your name), info, alternates. A workspace without a repository may become one."},
    {.name = "watch",
     .value = "WHAT",
     .words = profile_watch_words,
     INTO_WORD(struct policy_options, watch, WORKSPACE_WATCH_FACTS),
     .brief = "facts, off, ask (what is refused waits for an answer), learn",
     .help =
         "facts (the default): what the sandbox refuses is told by its guard, whatever the "
         "command says of it. off: only what the output of a command that failed says. ask: "
         "where somebody may be asked (--ask-for-approval, here on-request by default), what is "
         "refused waits for the answer, and a yes lets the command carry on. learn: as facts, and "
         "a timeline (--trace) "
         "of files has what is opened to be read, too, for which each open costs some us."},
    {.name = "judge",
     .value = "WHAT",
     .words = profile_judge_words,
     INTO_WORD(struct policy_options, judge, WORKSPACE_JUDGE_COMMAND),
     .brief = "every-exec: rules decide about each program that it executes, too",
     .help =
         "command (the default): rules and --ask-for-approval decide about the command as it is "
         "given. every-exec: also about each program that it executes: one that is forbidden gets "
         "EACCES, one that has to be asked about waits, and one that a rule or an answer "
         "allows without a sandbox runs outside of it."},
    {.name = "config",
     .value = "FILE",
     INTO_NOT_EMPTY(struct policy_options, config),
     .brief = "A config file in place of yours",
     .help = "Reads FILE in place of $CORDON_HOME/config.toml (~/.config/cordon/config.toml). It "
             "may be one of Codex."},
    {.name = NULL},
};

const struct option policy_environment_options[] = {
    {.name = "env",
     .letter = 'e',
     .value = "NAME[=VALUE]",
     .set = add_env,
     .brief = "Sets a variable, or passes one of yours",
     .help = "Sets a variable, or passes one of yours that would be left out."},
    {.name = "env-inherit",
     .value = "SET",
     .words = inherit_words,
     INTO_NOT_EMPTY(struct policy_options, inherit),
     .brief = "all (but secrets), core, none of your variables",
     .help = "Which of your variables are passed. all (the default) is without those that look "
             "like secrets: *KEY*, *SECRET*, *TOKEN*, *PASSWORD*, *CREDENTIAL*. core: PATH, HOME, "
             "USER, SHELL, the language and the temporary directory. none: none."},
    {.name = "env-include",
     .value = "PATTERN",
     INTO_LIST(struct policy_options, env_include),
     .brief = "Passes only variables that match",
     .help = "Passes only variables that match this or another --env-include."},
    {.name = "env-exclude",
     .value = "PATTERN",
     INTO_LIST(struct policy_options, env_exclude),
     .help = "Leaves out variables that match. * and ? are wildcards, case does not matter."},
    {.name = NULL},
};

/* --- settings --- */

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
        return err_sys(err, "finding the current directory");
    root = path_clean(path, named ? named : ".");
    if (named && (!realpath(named, path) || stat(path, &st)))
        return err_sys(err, "--directory %s", named);
    if (path[0] != '/')
        return err_set(err, ERR_INVALID, "the current directory cannot be reached from /: %s",
                       path);
    if (named && !S_ISDIR(st.st_mode))
        return err_set(err, ERR_INVALID, "--directory %s is not a directory", named);
    *ret_dir = alloc_str(path);
    *ret_root = TAKE_PTR(root);
    return 0;
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

static int choose_environment(const struct settings *settings, const struct policy_options *options,
                              struct environment_policy *ret, struct err *err)
{
    if (settings->file.config)
        environment_policy_copy(config_environment(settings->file.config), ret);
    if (options->inherit)
        ret->inherit = str_eq(options->inherit, "all")    ? ENVIRONMENT_ALL
                       : str_eq(options->inherit, "core") ? ENVIRONMENT_CORE
                                                          : ENVIRONMENT_NONE;
    strv_push_all(&ret->exclude, strv_view(&options->env_exclude));
    strv_push_all(&ret->include_only, strv_view(&options->env_include));
    for (size_t i = 0; i < options->env.len; i++)
        if (set_variable(ret, options->env.items[i], err))
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

    if (options->approval_word) {
        settings->approval = is_completed ? *own : options->approval;
        settings->approval_from = "--ask-for-approval";
    } else if (own) {
        settings->approval = *own;
        settings->approval_from = settings->file.path;
    } else if (settings->workspace->profile.watch == PROFILE_WATCH_ASK) {
        settings->approval = (struct approval_policy){.mode = APPROVAL_ON_REQUEST};
        settings->approval_from = "watch = \"ask\"";
    } else {
        settings->approval = (struct approval_policy){.mode = APPROVAL_NEVER};
    }
    settings->approval.yes_means_unsandboxed =
        options->yes_means_unsandboxed || config_yes_means_unsandboxed(settings->file.config);
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

static bool matches_something(const struct workspace *workspace, const struct profile_entry *entry)
{
    const size_t len = strlen(entry->origin);
    struct stat st;

    if (entry->path_kind == PROFILE_PATH_LITERAL)
        return lstat(entry->path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
    if (entry->path_kind != PROFILE_PATH_GLOB)
        return true;
    for (size_t i = 0; i < workspace->map.len; i++)
        if (strncmp(workspace->map.entries[i].origin, entry->origin, len) == 0 &&
            workspace->map.entries[i].origin[len] == ',') /* ", pattern ..." */
            return true;
    return false;
}

/* What lets the very path be written that was to be read only: of equal paths that goes before. NULL: nothing. */
static const char *what_opens(const struct workspace *workspace, const struct profile_entry *entry)
{
    const struct access_entry *found =
        entry->path_kind == PROFILE_PATH_LITERAL && entry->access == ACCESS_READ
            ? access_map_find(&workspace->map, entry->path)
            : NULL;

    return found && found->access == ACCESS_WRITE && str_eq(found->path, entry->path)
               ? found->origin
               : NULL;
}

/* Somebody thinks that it protects something, or opens it. They are the first ones of the profile. */
static void warn_of_entry(struct settings *settings, const struct profile_entry *entry)
{
    const char *origin = what_opens(settings->workspace, entry);

    if (!matches_something(settings->workspace, entry))
        strv_pushf(&settings->warnings, "%s matches nothing: there is no %s", entry->origin,
                   entry->path);
    else if (origin)
        strv_pushf(&settings->warnings,
                   "%s changes nothing: %s itself is writable (%s); --profile read-only has "
                   "nothing writable",
                   entry->origin, entry->path, origin);
}

static void warn_of_unmatched(struct settings *settings, const struct policy_options *options)
{
    const struct profile_entries *entries = &settings->workspace->profile.entries;

    for (size_t i = 0; i < options->paths_len && i < entries->len; i++)
        warn_of_entry(settings, &entries->items[i]);
    for (size_t i = 0; i < options->sockets.len; i++) {
        AUTO_FREE char *path = path_clean(settings->workspace->dir, options->sockets.items[i]);

        if (access(path, F_OK) && errno == ENOENT)
            strv_pushf(&settings->warnings, "--socket: nothing is at %s yet", path);
    }
}

/* By entry: that it opens something is not to be seen otherwise. */
static void tell_of_gpu(struct settings *settings)
{
    const struct workspace *workspace = settings->workspace;
    const struct profile_entries *entries = &workspace->profile.entries;

    for (size_t i = 0; workspace->access && i < entries->len; i++) {
        AUTO(buf_done) struct buf nodes = {.max = SIZE_MAX / 2};

        if (entries->items[i].path_kind != PROFILE_PATH_GPU ||
            entries->items[i].access == ACCESS_DENY)
            continue;
        for (size_t k = 0; k < workspace->map.len; k++)
            if (path_is_within(workspace->map.entries[k].path, "/dev") &&
                str_eq(workspace->map.entries[k].origin, entries->items[i].origin))
                buf_appendf(&nodes, "%s%s", nodes.len ? ", " : "", workspace->map.entries[k].path);
        strv_pushf(&settings->warnings, "gpu: %s",
                   nodes.len ? nodes.data
                             : "this machine has none (/dev/dri/renderD*, /dev/nvidia*, /dev/kfd, "
                               "/dev/dxg)");
        return;
    }
}

static void warn_of_home(struct settings *settings)
{
    const struct workspace *workspace = settings->workspace;
    const char *home = settings->file.home;

    for (size_t i = 0; home && workspace->access && i < workspace->roots.len; i++) {
        const char *root = workspace->roots.items[i];

        if (!path_is_within(home, root) || access_map_check(&workspace->map, home) != ACCESS_WRITE)
            continue;
        strv_pushf(&settings->warnings,
                   "the workspace %s %s: the command may change everything of yours, but for what "
                   "shells and logins run (--protect shell); choose a project with -C DIR",
                   root,
                   str_eq(root, home) ? "is your home directory" : "contains your home directory");
        return;
    }
}

/* $TMPDIR is the caller's own and not the command's: --env must not open a directory. */
static int make_workspace(struct settings *settings, const struct policy_options *options,
                          const char *dir, const char *root, struct err *err)
{
    static const struct workspace_words words = {
        .profile = "--profile",
        .sandbox = "--sandbox",
        .network = "--network",
        .allow_host = "--allow-host",
        .host_port = "--host-port",
        .publish = "--publish",
        .credential = "--credential",
        .allow_local_binding = "--allow-local-binding",
        .socket = "--socket",
        .with = "--with",
        .layer = "--layer",
        .layer_git = "--layer-git",
        .paths = {"--deny", "--readable", "--writable"},
    };
    AUTO(environment_policy_done) struct environment_policy env = {0};
    const struct workspace_request request = {
        .words = &words,
        .layer = settings->layer,
        .dir = dir,
        .root = root,
        .profile_name = options->profile,
        .mode = options->mode,
        .network = options->network,
        .hosts = &options->hosts,
        .watch = options->watch,
        .judge = options->judge,
        .tmp = options->tmp,
        .git = options->git,
        .topics = options->topics,
        .audit_topics = (options->is_recorded ? config_audit_trace(settings->file.config) : 0u) |
                        (options->reports_later ? (unsigned)TIMELINE_FILES : 0u),
        .entries = options->paths,
        .entries_len = options->paths_len,
        .protect = options->protect.is_made ? &options->protect : NULL,
        .unix_sockets = strv_view(&options->sockets),
        .presets = strv_view(&options->presets),
        .is_strict = true,
        .env = &env,
        .tmpdir = getenv("TMPDIR"),
    };

    if (choose_environment(settings, options, &env, err))
        return -1;
    settings->workspace = workspace_make(settings->workspaces, NULL, &request, err);
    if (!settings->workspace)
        return -1;
    warn_of_unmatched(settings, options);
    warn_of_home(settings);
    tell_of_gpu(settings);
    if (str_eq(dir, "/") && grants_roots(&settings->workspace->profile))
        strv_push(&settings->warnings,
                  "the directory is /, so nothing of it is writable by itself: "
                  "choose another with -C DIR, or say --writable PATH");
    return 0;
}

static int make(struct settings *settings, const struct policy_options *options, struct err *err)
{
    struct config_file *file = &settings->file;
    struct workspaces_options workspaces = {.dies_with_thread = true};
    const struct config_warning *warnings = NULL;
    AUTO_FREE char *dir = NULL;
    AUTO_FREE char *root = NULL;
    size_t len = 0;

    if (find_dir(options->directory, &dir, &root, err) ||
        config_file_load(options->config, dir, file, err) ||
        (options->find_layer &&
         options->find_layer(options, file->config, dir, &settings->layer, err)))
        return -1;
    if (options->guarded)
        strv_push_take(&file->own_paths, path_clean(dir, options->guarded));
    if (file->config)
        warnings = config_warnings(file->config, &len);
    for (size_t i = 0; i < len; i++)
        strv_pushf(&settings->warnings, "%s:%u: %s", warnings[i].file, warnings[i].line,
                   warnings[i].text);
    workspaces.config = file->config;
    workspaces.config_path = file->path;
    workspaces.home = file->home;
    workspaces.config_dir = file->dir;
    workspaces.own_paths = strv_view(&file->own_paths);
    settings->workspaces = workspaces_new(&workspaces);
    if (make_workspace(settings, options, dir, root, err))
        return -1;
    choose_approval(settings, options);
    return 0;
}

int settings_init(struct settings *ret, const struct policy_options *options, struct err *err)
{
    *ret = (struct settings){.layer = options->layer};
    if (make(ret, options, err) == 0)
        return 0;
    settings_done(ret);
    return -1;
}

void settings_execution(const struct settings *settings, char *const *argv,
                        struct execution_options *ret)
{
    *ret = (struct execution_options){
        .workspace = settings->workspace,
        .rules = config_file_owner(&settings->file),
        .gate = settings->approval_from ? EXECUTION_ASKS : EXECUTION_FORBIDS_ONLY,
        .policy = settings->approval,
        .argv = argv,
        .cwd = settings->workspace->dir,
        .is_last = true,
    };
}

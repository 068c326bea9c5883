/* `cordon learn`: runs a command and writes the smallest profile that it needed (docs/decisions/0034-learn.md).
 *
 * It is `cordon run` with the same options (cli/run.h), in a sandbox that is wider by the places of
 * learn_needs.h, caches and folders of tools, and whose guard tells what is done. What was done in one of them
 * becomes an entry; what the sandbox refused all the same is told, and never is one. So the command can
 * succeed while it is looked at, and can do no more harm than to its caches.
 *
 * What is on stdout is the profile, unless it goes to the config file: then what the command writes comes out
 * on stderr, so that `cordon learn -- make >profile.toml` has nothing else in it. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/learn_needs.h"
#include "cli/learn_profile.h"
#include "cli/run.h"
#include "cli/run_options.h"
#include "cli/settings.h"
#include "policy/access.h"
#include "policy/config/config.h"
#include "policy/config/config_values.h"
#include "policy/profile.h"
#include "timeline/timeline.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct learn_options {
    struct run_options run;
    const char *output; /* NULL: stdout */
    bool replaces;
    bool wants_json;
};

/* Everything that lives as long as the command. */
struct learning {
    struct learn_options options;
    struct settings base; /* what the profile that is extended means here */
    struct learn_places places;
    struct learn_needs needs;
    struct strv texts;           /* that options borrow */
    struct strv presets;         /* with those of the base, where options name some */
    struct strv specials;        /* ":gpu" and its like, that options name */
    struct strv named;           /* what profiles of the configuration open */
    struct strv meant;           /* ... and what each of them led to before the run */
    char *home;                  /* canonical; NULL: not known */
    char *file;                  /* that the profile is added to; NULL: none */
    struct network_policy asked; /* what options say of hosts */
};

static void learning_done(struct learning *learning)
{
    learn_needs_done(&learning->needs);
    learn_places_done(&learning->places);
    network_policy_done(&learning->asked);
    settings_done(&learning->base);
    run_options_done(&learning->options.run);
    strv_done(&learning->texts);
    strv_done(&learning->presets);
    strv_done(&learning->specials);
    strv_done(&learning->named);
    strv_done(&learning->meant);
    free(learning->home);
    free(learning->file);
}

/* --- before the run --- */

/* The profile without anything that options add to it; what they take away counts. */
static int find_base(struct learning *learning, struct err *err)
{
    struct policy_options options = learning->options.run.policy; /* borrowed */
    AUTO_FREE struct workspace_entry *paths = alloc_zero(options.paths_len + 1, sizeof *paths);
    size_t len = 0;

    for (size_t i = 0; i < options.paths_len; i++)
        if (options.paths[i].access != ACCESS_WRITE)
            paths[len++] = options.paths[i];
    options.paths = paths;
    options.paths_len = len;
    options.sockets = (struct strv){0};
    options.hosts = (struct network_policy){0};
    options.network = WORKSPACE_NETWORK_OF_PROFILE;
    options.watch = WORKSPACE_WATCH_OF_PROFILE;
    if (options.git == WORKSPACE_GIT_COMMIT)
        options.git = WORKSPACE_GIT_OF_PROFILE;
    if (settings_init(&learning->base, &options, err))
        return -1;
    if (learning->base.workspace->mode == SANDBOX_DISABLED)
        return err_set(err, ERR_INVALID,
                       "without a sandbox there is nothing to be learnt; choose a profile that has "
                       "one: --profile workspace-write");
    return 0;
}

/* The table of a mode is no part of what a profile can extend, so what it opens is a need like any other. */
static bool is_of_mode(const struct access_entry *entry)
{
    return entry->access == ACCESS_WRITE && strstr(entry->origin, "[sandbox_workspace_write]");
}

static bool is_root(const struct workspace *workspace, const char *path)
{
    for (size_t i = 0; i < workspace->roots.len; i++)
        if (str_eq(workspace->roots.items[i], path))
            return true;
    return str_eq(path, workspace->dir);
}

static void add_places_of_mode(struct learning *learning)
{
    struct workspace *workspace = learning->base.workspace;
    const char *tmpdir = getenv("TMPDIR");

    for (size_t i = 0; i < workspace->map.len; i++) {
        struct access_entry *entry = &workspace->map.entries[i];

        if (!is_of_mode(entry) || is_root(workspace, entry->path) || str_eq(entry->path, "/tmp") ||
            (tmpdir && str_eq(entry->path, tmpdir)))
            continue;
        learn_places_add(&learning->places, entry->path, true);
        entry->access = ACCESS_READ;
    }
}

/* What the person names is a place, and is in the profile when it was needed. */
static void add_named_places(struct learning *learning)
{
    const struct policy_options *policy = &learning->options.run.policy;
    const char *dir = learning->base.workspace->dir;
    const char *home = learning->base.file.home;

    for (size_t i = 0; i < policy->paths_len; i++) {
        const char *text = policy->paths[i].text;
        AUTO_FREE char *path =
            home && str_starts(text, "~/") ? path_clean(home, text + 2) : path_clean(dir, text);

        if (policy->paths[i].access != ACCESS_WRITE)
            continue;
        if (text[0] == ':') /* what it comes to is not one path: in the profile as it was said */
            strv_push(&learning->specials, text);
        else
            learn_places_add(&learning->places, path, true);
    }
    for (size_t i = 0; i < policy->sockets.len; i++) {
        AUTO_FREE char *path = path_clean(dir, policy->sockets.items[i]);

        learn_places_add(&learning->places, path, true);
    }
}

static void add_entry(struct learning *learning, const char *path, enum access access)
{
    struct policy_options *policy = &learning->options.run.policy;

    policy->paths =
        alloc_grow(policy->paths, policy->paths_len, &policy->paths_cap, sizeof *policy->paths);
    strv_push(&learning->texts, path);
    policy->paths[policy->paths_len++] = (struct workspace_entry){
        .access = access, .text = learning->texts.items[learning->texts.len - 1]};
}

/* The places as --writable has them, but for what the profile itself says otherwise about. */
static void open_places(struct learning *learning, const struct learn_places *places)
{
    for (size_t i = 0; i < places->len; i++) {
        const char *path = places->items[i].path;
        const struct access_entry *entry = access_map_find(&learning->base.workspace->map, path);

        if (entry && (entry->access == ACCESS_DENY || str_eq(entry->path, path)))
            continue;
        add_entry(learning, path, ACCESS_WRITE);
    }
}

/* --- what profiles already name --- */

/* What the path leads to, to be compared: through all links; what is not there as it is named, and a link that leads
 * nowhere (yet) with its text. Caller frees. */
static char *meaning_of(const char *path)
{
    char *real = realpath(path, NULL);
    AUTO_FREE char *parent = NULL;
    AUTO_FREE char *real_parent = NULL;
    char target[PATH_MAX];
    ssize_t len;

    if (real || str_eq(path, "/"))
        return real ? real : alloc_str(path);
    len = readlink(path, target, sizeof target);
    parent = path_parent(path);
    real_parent = meaning_of(parent);
    return len < 0 ? path_join(real_parent, path_name(path))
                   : alloc_strf("%s/%s -> %.*s", real_parent, path_name(path), (int)len, target);
}

static bool leads_elsewhere(const struct learning *learning, size_t i)
{
    AUTO_FREE char *now = meaning_of(learning->named.items[i]);

    return !str_eq(now, learning->meant.items[i]);
}

/* A place may be written, and with it the names in it that profiles of the configuration open. A link that the
 * command put on the way to one would open, to whom runs with that profile, what the link leads to. So each
 * folder has an entry of its own here, which makes its name, and those above it, such that do not go; and what all
 * of them lead to is compared when the command has ended. */
static void find_named(struct learning *learning)
{
    const struct config *config = learning->base.file.config;
    AUTO(strv_done) struct strv names = {0};

    config_profile_names(config, &names);
    strv_push(&names, "workspace-write"); /* with the writable_roots of its table */
    for (size_t i = 0; i < names.len; i++) {
        AUTO(config_profile_done) struct config_profile profile = {0};
        struct err ignored; /* what is wrong with it is told when it is used */

        if (config_profile(config, names.items[i], learning->base.file.home, &profile, &ignored))
            continue;
        for (size_t j = 0; j < profile.profile.entries.len; j++) {
            const struct profile_entry *entry = &profile.profile.entries.items[j];

            if (entry->path_kind == PROFILE_PATH_LITERAL && entry->access == ACCESS_WRITE &&
                !strv_has(&learning->named, entry->path)) {
                strv_push(&learning->named, entry->path);
                strv_push_take(&learning->meant, meaning_of(entry->path));
            }
        }
    }
}

static void hold_named(struct learning *learning)
{
    for (size_t i = 0; i < learning->named.len; i++) {
        const char *path = learning->meant.items[i];
        struct stat st;

        if (learn_places_have_below(&learning->places, path) && lstat(path, &st) == 0 &&
            S_ISDIR(st.st_mode))
            add_entry(learning, path, ACCESS_WRITE);
    }
}

/* A link in a place, on the way to what a profile names. */
static bool is_planted(const struct learning *learning, const char *path)
{
    AUTO_FREE char *parent = path_parent(path);
    AUTO_FREE char *real_parent = realpath(parent, NULL);
    AUTO_FREE char *real = real_parent ? path_join(real_parent, path_name(path)) : NULL;
    struct stat st;

    return real && lstat(real, &st) == 0 && S_ISLNK(st.st_mode) &&
           learn_places_have_below(&learning->places, real);
}

/* From the last name to the first, until the path leads again to where it led, or nowhere. */
static void remove_planted(const struct learning *learning)
{
    for (size_t i = 0; i < learning->named.len; i++) {
        AUTO_FREE char *path = alloc_str(learning->named.items[i]);

        while (!str_eq(path, "/")) {
            AUTO_FREE char *parent = path_parent(path);

            if (is_planted(learning, path) && leads_elsewhere(learning, i))
                console_say("%s was made a link, which a profile of your configuration would "
                            "follow: it is %s",
                            path, unlink(path) ? "there still; take it away" : "taken away");
            free(path);
            path = TAKE_PTR(parent);
        }
    }
}

/* Of the run. */
static const char *network_of(const struct learning *learning)
{
    const struct policy_options *policy = &learning->options.run.policy;

    if (policy->network != WORKSPACE_NETWORK_OF_PROFILE)
        return network_access_words[policy->network - WORKSPACE_RESTRICTED];
    return network_policy_is_given(&policy->hosts)
               ? "proxied"
               : network_access_name(learning->base.workspace->map.network);
}

static void say_what_may_be(const struct learning *learning, size_t known)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    size_t home = learning->home ? strlen(learning->home) : 0;

    for (size_t i = 0; i < known; i++) {
        const char *path = learning->places.items[i].path;
        bool is_at_home = home && path_is_within(path, learning->home);

        buf_appendf(&text, "%s%s%s", i ? ", " : "", is_at_home ? "~" : "",
                    is_at_home ? path + home : path);
    }
    console_say("learning: beyond the profile %s the command may write in caches and folders of "
                "tools (%s)%s, and nowhere else; the network is %s",
                learning->base.workspace->profile_name, known ? text.data : "none is here",
                learning->options.run.policy.git == WORKSPACE_GIT_COMMIT
                    ? " and, as git does, in the repository of the workspace"
                    : "",
                network_of(learning));
}

static void on_event(void *data, const struct timeline_event *event)
{
    learn_needs_add(&((struct learning *)data)->needs, event);
}

/* Runs it, with its output where it belongs; its exit status. */
static int run(struct learning *learning, char **command)
{
    const struct run_observer observer = {.on_event = on_event, .data = learning};
    const bool is_apart = !learning->options.output || learning->options.wants_json;
    AUTO_CLOSE int out = is_apart ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
    int status;

    if (out >= 0)
        dup2(STDERR_FILENO, STDOUT_FILENO); /* allow dup2: stdout is the profile's */
    status = run_command(&learning->options.run, command, &observer);
    remove_planted(learning);
    if (out >= 0)
        dup2(out, STDOUT_FILENO); /* allow dup2: and is again */
    return status;
}

/* --- after it --- */

static json_t *needs_to_json(const struct learn_needs *needs)
{
    json_t *list = json_array();

    for (size_t i = 0; i < needs->len; i++)
        json_array_append_new(
            list, json_pack("{s:o, s:s, s:o}", "path", json_lossy(needs->items[i].path), "access",
                            needs->items[i].is_socket ? "connect" : "write", "needed_by",
                            json_lossy_list(strv_view(&needs->items[i].who))));
    return list;
}

static json_t *refusals_to_json(const struct learn_needs *needs)
{
    json_t *list = json_array();

    for (size_t i = 0; i < needs->refusals_len; i++)
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "what",
                                              json_lossy(needs->refusals[i].what), "by",
                                              json_lossy(needs->refusals[i].who), "why",
                                              json_lossy(needs->refusals[i].why)));
    return list;
}

static int print_json(const struct learn_profile *profile, const struct buf *text, const char *file)
{
    const struct learn_needs *needs = profile->needs;
    AUTO_JSON json_t *json = json_pack(
        "{s:s, s:s, s:i, s:o, s:s?, s:b, s:o, s:o, s:o, s:I, s:o, s:o}", "profile", profile->name,
        "extends", profile->base, "exit_code", profile->status, "entries", needs_to_json(needs),
        "git", profile->git, "network", profile->is_enabled, "hosts",
        json_lossy_list(strv_view(&needs->remote)), "domains",
        json_lossy_list(strv_view(&needs->hosts)), "refused", refusals_to_json(needs), "lost",
        (json_int_t)needs->lost, "toml", json_lossy(text->data), "file", json_lossy(file));

    return console_print_json(json);
}

/* What a person has to know who looks at nothing else. */
static void say_refusals(const struct learn_needs *needs)
{
    for (size_t i = 0; i < needs->refusals_len; i++)
        console_say("not opened: %s, by %s: %s", needs->refusals[i].what, needs->refusals[i].who,
                    needs->refusals[i].why);
    if (needs->lost)
        console_say("%llu things were done faster than they could be seen", needs->lost);
}

static void say_presets(const struct learn_profile *profile)
{
    AUTO(strv_done) struct strv names = {0};

    learn_profile_presets(profile, &names);
    for (size_t i = 0; i < names.len; i++)
        console_say("the profile opens a cache that your own %s believes; commands have one of "
                    "their own with: cordon learn -o %s --replace --with %s",
                    names.items[i], profile->name, names.items[i]);
}

/* An exit status of ours; EXIT_OK: that of the command counts. */
static int tell(const struct learning *learning, const struct learn_profile *profile)
{
    const struct learn_options *options = &learning->options;
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    const char *file = profile->status ? NULL : learning->file;
    struct err err;

    learn_profile_print(profile, &text);
    if (options->output && !file)
        console_say("the command ended with %d, so nothing is added to the configuration",
                    profile->status);
    if (file && learn_profile_write(profile, file, options->replaces, &err))
        return console_fail(&err);
    if (options->wants_json)
        return print_json(profile, &text, file);
    if (!options->output)
        return console_print(&text);
    say_refusals(&learning->needs);
    if (!file)
        return EXIT_OK;
    say_presets(profile);
    console_say("the profile %s is in %s: cordon run --profile %s (what it opens: cordon explain "
                "--diff %s)",
                profile->name, file, profile->name, profile->name);
    return EXIT_OK;
}

/* --- the command --- */

static const struct option learn_own_options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "NAME",
     INTO_NOT_EMPTY(struct learn_options, output),
     .brief = "Adds the profile to your config file by this name",
     .help =
         "Adds the profile to your config file by this name, when the command has ended with 0. "
         "Without it the profile is printed, and the output of the command comes out on "
         "stderr."},
    {.name = "replace",
     INTO_TRUE(struct learn_options, replaces),
     .brief = "In the place of one that was learnt before",
     .help = "Puts it in the place of one of that name that was learnt before."},
    {.name = "json",
     .letter = 'j',
     INTO_TRUE(struct learn_options, wants_json),
     .help = "Prints one JSON value: the entries with what needed them, what was not opened and "
             "why, and the text."},
    {.name = NULL},
};

static const struct option_group learn_groups[] = {
    {"Learning", learn_own_options},
    {"Permissions", policy_permission_options, offsetof(struct learn_options, run.policy)},
    {"Environment", policy_environment_options, offsetof(struct learn_options, run.policy)},
    {"Limits", run_limit_options, offsetof(struct learn_options, run)},
    {NULL, NULL},
};

static const char *base_name(const char *name)
{
    return str_eq(name, "read-only")         ? ":read-only"
           : str_eq(name, "workspace-write") ? ":workspace"
                                             : name;
}

/* Where the profile goes: the file that counts, or the one that would. */
static int check_output(struct learning *learning, struct err *err)
{
    const struct config_file *file = &learning->base.file;

    if (!learning->options.output)
        return 0;
    if (!file->path && !file->dir)
        return err_set(err, ERR_INVALID, "there is no home directory: set CORDON_HOME");
    learning->file = file->path ? alloc_str(file->path) : path_join(file->dir, CONFIG_NAME);
    return learn_profile_check(learning->options.output, learning->file, learning->options.replaces,
                               err);
}

/* Of a repository that is there. To make one is asked for: until it is made the guard does whatever is written in
 * the workspace, which takes its time. */
static bool may_commit(const struct access_map *map)
{
    for (size_t i = 0; i < map->repositories.len; i++) {
        const struct access_entry *entry = access_map_exact(map, map->repositories.items[i]);

        if (entry && entry->kind == ACCESS_MISSING)
            return false;
    }
    return map->repositories.len > 0;
}

static int prepare(struct learning *learning, struct err *err)
{
    struct policy_options *policy = &learning->options.run.policy;
    size_t known;

    if (find_base(learning, err) || check_output(learning, err))
        return -1;
    learning->home = learning->base.file.home ? realpath(learning->base.file.home, NULL) : NULL;
    learn_places_find(learning->base.file.home, strv_view(&learning->base.file.own_paths),
                      &learning->places);
    known = learning->places.len;
    open_places(learning, &learning->places);
    for (size_t i = 0; i < learning->places.kept.len; i++)
        add_entry(learning, learning->places.kept.items[i], ACCESS_READ);
    add_places_of_mode(learning);
    add_named_places(learning);
    find_named(learning);
    hold_named(learning);
    if (policy->presets.len)
        strv_push_all(&learning->presets, strv_view(&learning->base.workspace->presets));
    policy->topics = TIMELINE_ALL;
    if (policy->watch == WORKSPACE_WATCH_OF_PROFILE &&
        learning->base.workspace->profile.watch == PROFILE_WATCH_OFF)
        policy->watch = WORKSPACE_WATCH_FACTS;
    if (policy->git == WORKSPACE_GIT_OF_PROFILE && policy->watch != WORKSPACE_WATCH_OFF &&
        learning->base.workspace->profile.watch != PROFILE_WATCH_OFF &&
        may_commit(&learning->base.workspace->map))
        policy->git = WORKSPACE_GIT_COMMIT;
    learning->needs.places = &learning->places;
    learning->needs.base = &learning->base.workspace->map;
    learning->needs.home = learning->home;
    learning->needs.is_proxied = str_eq(network_of(learning), "proxied");
    network_policy_copy(&policy->hosts, &learning->asked); /* the run takes the options along */
    say_what_may_be(learning, known);
    return 0;
}

static int learn_run(char **argv)
{
    AUTO(learning_done) struct learning learning = {.home = NULL};
    struct learn_options *options = &learning.options;
    struct learn_profile profile = {.needs = &learning.needs, .asked = &learning.asked};
    bool is_enabled;
    enum workspace_git git; /* as an option has it */
    struct err err;
    char **command;
    int status, told;

    run_options_init(&options->run);
    if (!command_parse(&command_learn, argv, options, &command, &status))
        return status;
    if (!*command)
        return console_failf(
            "there is no command to learn of: cordon learn [OPTION]... -- COMMAND");
    if (options->replaces && !options->output)
        return console_failf("--replace needs -o NAME");
    git = options->run.policy.git;
    if (prepare(&learning, &err))
        return console_fail(&err);
    is_enabled = options->run.policy.network == WORKSPACE_ENABLED;
    if (options->run.policy.tmp != WORKSPACE_TMP_OF_PROFILE)
        profile.tmp = profile_tmp_words[options->run.policy.tmp - WORKSPACE_TMP_HOST];
    status = run(&learning, command);
    if (!learning.needs.is_watched)
        return status
                   ? status
                   : console_failf("nothing was seen of what the command did, so nothing is "
                                   "learnt: it did nothing that is told, or there is no guard here "
                                   "(\"cordon doctor\" tells why)");
    learn_needs_end(&learning.needs);
    profile.name = options->output ? options->output : "learnt";
    profile.base = base_name(learning.base.workspace->profile_name);
    profile.home = learning.home;
    profile.argv = command;
    profile.presets = strv_view(&learning.presets);
    profile.specials = strv_view(&learning.specials);
    profile.status = status;
    profile.is_enabled = is_enabled && learning.base.workspace->map.network == NETWORK_RESTRICTED;
    if (git != WORKSPACE_GIT_OF_PROFILE)
        profile.git = profile_git_words[git - WORKSPACE_GIT_READ];
    else if (learning.needs.git.len)
        profile.git = profile_git_words[PROFILE_GIT_COMMIT];
    told = tell(&learning, &profile);
    return told != EXIT_OK ? told : status;
}

const struct command command_learn = {
    .name = "learn",
    .summary = "run a command and write the profile that it needed",
    .usage = "[-o NAME] [OPTION]... [--] COMMAND [ARGUMENT]...",
    .about =
        "Runs COMMAND as \"cordon run\" does, tells what it needed beyond its profile, and makes a "
        "profile of that: a [permissions.NAME] table with a comment on what needed each entry.\n"
        "\n"
        "While it runs it may write in caches (~/.cache) and in folders in which tools that are "
        "known keep what they fetched (~/.npm, ~/.cargo/registry, ~/go/pkg, ~/.m2/repository, "
        "...), in what --writable names, and what git writes in the repository of the workspace; "
        "what it did there is what the profile opens. All else stays "
        "refused, and is told: your home directory, the system, credentials, protected names and "
        "Cordon's own files are never opened. The network is as without learning: with "
        "--allow-host \"*\" every "
        "host may be reached, and the profile names those that were.\n"
        "\n"
        "The exit status is that of COMMAND; 125 when the profile cannot be made.\n",
    .examples = "  cordon learn -- make\n"
                "  cordon learn -o npm --allow-host '*' -- npm install\n"
                "  cordon run --profile npm -- npm test\n"
                "  cordon explain --diff npm\n",
    .page = "cordon-learn",
    .groups = learn_groups,
    .run = learn_run,
};

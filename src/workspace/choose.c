/* See choose.h. */
#include "workspace/choose.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "layer/layer.h"
#include "policy/config/config.h"
#include "policy/narrow.h"
#include "policy/network_hook.h"
#include "policy/profile.h"

#include <stdlib.h>
#include <sys/stat.h>

static void add_presets(struct workspace *workspace, char *const *names, const char *from)
{
    for (; names && *names; names++) {
        if (strv_has(&workspace->presets, *names))
            continue;
        strv_push(&workspace->presets, *names);
        strv_push(&workspace->presets_from, from);
    }
}

/* --- profile, mode, network --- */

/* A built-in profile has two, and is told of by one. */
static const char *name_of(const char *asked)
{
    const char *builtin = profile_builtin_name(asked);

    return builtin ? builtin : asked;
}

static int choose_profile(struct workspace *workspace, const struct workspaces_options *owner,
                          const struct workspace_request *request, struct err *err)
{
    const char *asked = request->profile_name;
    const char *configured = owner->config ? config_default_profile(owner->config) : NULL;
    AUTO(config_profile_done) struct config_profile chosen = {0};

    workspace->profile_name = alloc_str(request->profile ? "of this call"
                                        : asked          ? name_of(asked)
                                        : configured     ? name_of(configured)
                                                         : "workspace-write");
    if (request->profile) {
        workspace->profile_from = "the call";
        profile_copy(request->profile, &workspace->profile);
    } else {
        workspace->profile_from = asked        ? request->words->profile
                                  : configured ? owner->config_path
                                               : "the default";
        /* the configured one is asked for by NULL: a sandbox mode is never the name of a table */
        if (config_profile(owner->config,
                           asked        ? asked
                           : configured ? NULL
                                        : workspace->profile_name,
                           owner->home, &chosen, err))
            return asked ? err_wrap(err, "%s", request->words->profile) : -1;
        workspace->profile = chosen.profile;
        chosen.profile = (struct profile){0};
    }
    if (request->root && !str_eq(request->dir, "/"))
        strv_push(&workspace->roots, request->root);
    if (request->roots)
        strv_push_all(&workspace->roots, request->roots);
    workspace->canonical_roots = request->canonical_roots;
    workspace->within = alloc_str(request->within);
    strv_push_all(&workspace->roots, strv_view(&chosen.workspace_roots));
    add_presets(workspace, strv_view(&chosen.presets), chosen.presets_from);
    if (request->words)
        add_presets(workspace, request->presets, request->words->with);
    if (request->protect)
        protect_choice_copy(request->protect, &workspace->protect);
    else if (config_protect(owner->config))
        protect_choice_copy(config_protect(owner->config), &workspace->protect);
    workspace->network_from = alloc_strf("profile %s", workspace->profile_name);
    return 0;
}

/* What the configuration says where the call says nothing. */
static enum sandbox_mode mode_of(const struct workspaces_options *owner,
                                 const struct workspace_request *request)
{
    const char *configured = config_sandbox(owner->config);

    if (request->mode != SANDBOX_AUTO || !configured || str_eq(configured, "auto"))
        return request->mode;
    return str_eq(configured, "landlock") ? SANDBOX_LANDLOCK : SANDBOX_REQUIRE;
}

/* Without a sandbox nothing is held; what was asked to be held all the same is better refused than
 * forgotten. */
static int choose_mode(struct workspace *workspace, const struct workspaces_options *owner,
                       const struct workspace_request *request, struct err *err)
{
    const struct workspace_words *words = request->words;
    bool is_open = workspace->profile.kind == PROFILE_DISABLED;
    bool is_narrowed =
        request->network == WORKSPACE_RESTRICTED || request->network == WORKSPACE_PROXIED;

    for (size_t i = 0; i < request->entries_len; i++)
        is_narrowed |= request->entries[i].access == ACCESS_DENY;
    workspace->mode = is_open ? SANDBOX_DISABLED : mode_of(owner, request);
    if (!words)
        return 0;
    if (is_open && request->mode == SANDBOX_REQUIRE)
        return err_set(err, ERR_INVALID,
                       "%s require contradicts the profile %s (from %s), which has no sandbox",
                       words->sandbox, workspace->profile_name, workspace->profile_from);
    if (workspace->mode != SANDBOX_DISABLED || !is_narrowed)
        return 0;
    if (!is_open)
        return err_set(err, ERR_INVALID,
                       "%s, and %s restricted or proxied, cannot be kept with %s disabled",
                       words->paths[ACCESS_DENY], words->network, words->sandbox);
    return err_set(err, ERR_INVALID,
                   "%s, and %s restricted or proxied, cannot be kept with the profile %s (from "
                   "%s), which has no sandbox",
                   words->paths[ACCESS_DENY], words->network, workspace->profile_name,
                   workspace->profile_from);
}

/* The first rule that opens something, or that takes something away; NULL: there is none. */
static const struct network_rule *find_rule(const struct network_policy *policy, bool is_deny)
{
    for (size_t i = 0; i < policy->rules_len; i++)
        if ((policy->rules[i].verdict == NETWORK_DENY) == is_deny)
            return &policy->rules[i];
    return NULL;
}

static void set_network(struct workspace *workspace, enum network_access network, char *from)
{
    workspace->profile.network = network;
    free(workspace->network_from);
    workspace->network_from = from;
}

/* What cannot be published: where the command has no network of its own, and ports that lead to the host. */
static int check_publications(const struct workspace *workspace, const char *word, struct err *err)
{
    const struct network_policy *policy = &workspace->profile.network_policy;

    if (!policy->publications.len)
        return 0;
    if (workspace->mode == SANDBOX_DISABLED || network_is_hosts(workspace->profile.network))
        return err_set(
            err, ERR_INVALID,
            "%s: the command shares this machine's network (%s), so that its ports are "
            "there already",
            word, workspace->mode == SANDBOX_DISABLED ? "no sandbox" : workspace->network_from);
    for (size_t i = 0; i < policy->publications.len; i++)
        if (network_policy_takes_port(policy, policy->publications.items[i].port))
            return err_set(err, ERR_INVALID,
                           "%s: port %u inside leads out here already, and cannot be published",
                           word, policy->publications.items[i].port);
    return 0;
}

/* What is asked for here is here; what a profile says may be for others. */
static int check_credentials(const struct network_hooks *hooks, const char *word, struct err *err)
{
    for (size_t i = 0; hooks && i < hooks->credentials_len; i++)
        if (!getenv(hooks->credentials[i].name))
            return err_set(err, ERR_NOT_FOUND,
                           "%s %s: there is no such variable: set it, here and not in the command",
                           word, hooks->credentials[i].name);
    return 0;
}

/* Whoever names hosts or ports wants these and no others: so the network is proxied, and nobody has to say it twice, unless
 * they have said which it is. */
static void lead_to_proxy(struct workspace *workspace, const struct workspace_request *request)
{
    const struct network_policy *hosts = request->hosts;
    const struct network_rule *opens = find_rule(hosts, false);

    if (request->network != WORKSPACE_NETWORK_OF_PROFILE || workspace->mode == SANDBOX_DISABLED ||
        workspace->profile.network == NETWORK_PROXIED)
        return;
    if (opens)
        set_network(workspace, NETWORK_PROXIED, alloc_str(opens->origin));
    else if (hosts->host_ports_len)
        set_network(workspace, NETWORK_PROXIED,
                    alloc_strf("%s %u", request->words->host_port, hosts->host_ports[0]));
}

/* What is asked to be held is refused where nothing holds it; and what would have no effect. */
static int check_hosts(const struct workspace *workspace, const struct workspace_request *request,
                       struct err *err)
{
    const struct workspace_words *words = request->words;
    const struct network_policy *hosts = request->hosts;
    const bool is_bare = workspace->mode == SANDBOX_DISABLED;
    const enum network_access network = workspace->profile.network;
    const char *name = is_bare ? "open, without a sandbox" : network_access_name(network);
    const struct network_rule *opens = find_rule(hosts, false);
    const struct network_rule *narrows = find_rule(hosts, true);

    if (narrows && (is_bare || network_is_hosts(network)))
        return err_set(err, ERR_INVALID,
                       "%s cannot be kept: the network is %s (from %s). Say %s proxied, with %s "
                       "\"*\" for everything else",
                       narrows->origin, name, workspace->network_from, words->network,
                       words->allow_host);
    if (hosts->hooks && (is_bare || network_is_hosts(network)))
        return err_set(
            err, ERR_INVALID,
            "a credential cannot be kept from the command: the network is %s (from %s). Say "
            "%s proxied, with %s for what it is to reach",
            name, workspace->network_from, words->network, words->allow_host);
    if (opens && request->network == WORKSPACE_RESTRICTED)
        return err_set(err, ERR_INVALID, "%s contradicts %s restricted", opens->origin,
                       words->network);
    if (hosts->host_ports_len && request->network == WORKSPACE_RESTRICTED)
        return err_set(err, ERR_INVALID, "%s contradicts %s restricted", words->host_port,
                       words->network);
    if (hosts->allow_local_binding && (is_bare || network != NETWORK_PROXIED))
        return err_set(err, ERR_INVALID,
                       "%s is about the hosts of a network that is proxied, and this one is %s "
                       "(from %s): name them with %s",
                       words->allow_local_binding, name, workspace->network_from,
                       words->allow_host);
    return check_credentials(hosts->hooks, words->credential, err);
}

static int choose_hosts(struct workspace *workspace, const struct workspace_request *request,
                        struct err *err)
{
    struct network_policy *policy = &workspace->profile.network_policy;

    if (!request->hosts)
        return 0;
    lead_to_proxy(workspace, request);
    if (check_hosts(workspace, request, err))
        return -1;
    policy->allow_local_binding |= request->hosts->allow_local_binding;
    return network_policy_merge(policy, request->hosts, err);
}

/* What is said for this one in place of what the profile says. */
static int choose_overrides(struct workspace *workspace, const struct workspace_request *request,
                            struct err *err)
{
    const struct workspace_words *words = request->words;
    struct profile *profile = &workspace->profile;

    if (request->network != WORKSPACE_NETWORK_OF_PROFILE) {
        enum network_access network =
            (enum network_access)(request->network - WORKSPACE_RESTRICTED);

        set_network(workspace, network,
                    alloc_strf("%s %s", words->network, network_access_name(network)));
    }
    if (choose_hosts(workspace, request, err) ||
        check_publications(workspace, words && words->publish ? words->publish : "publish", err))
        return -1;
    if (request->watch != WORKSPACE_WATCH_OF_PROFILE)
        profile->watch = (enum profile_watch)(request->watch - WORKSPACE_WATCH_FACTS);
    if (request->judge != WORKSPACE_JUDGE_OF_PROFILE)
        profile->judge = (enum profile_judge)(request->judge - WORKSPACE_JUDGE_COMMAND);
    if (request->tmp != WORKSPACE_TMP_OF_PROFILE)
        profile->tmp = (enum profile_tmp)(request->tmp - WORKSPACE_TMP_HOST);
    if (request->git != WORKSPACE_GIT_OF_PROFILE)
        profile->git = (enum profile_git)(request->git - WORKSPACE_GIT_READ);
    else if (request->layer && layer_has_git(request->layer)) /* what else would it have them for */
        profile->git = PROFILE_GIT_COMMIT;
    workspace->topics = request->topics;
    workspace->tells_connects = request->tells_connects;
    workspace->audit_topics = profile->watch == PROFILE_WATCH_OFF ? 0u : request->audit_topics;
    if (profile->watch == PROFILE_WATCH_OFF &&
        (request->topics || profile->judge == PROFILE_JUDGE_EVERY_EXEC ||
         profile->git == PROFILE_GIT_COMMIT))
        return err_set(err, ERR_INVALID,
                       "a timeline, every-exec and git commit want watch not to be off");
    return 0;
}

/* --- entries and roots --- */

/* A writable path that is not there would be left out without a word. */
static int add_root(struct workspace *workspace, const struct workspace_request *request,
                    const struct profile_entry *entry, struct err *err)
{
    struct stat st;

    if (entry->path_kind != PROFILE_PATH_LITERAL)
        return 0;
    if (stat(entry->path, &st) && request->is_strict)
        return err_sys(err, "%s", entry->path);
    if (stat(entry->path, &st) || S_ISDIR(st.st_mode))
        strv_push(&workspace->roots, entry->path);
    return 0;
}

static int add_entry(struct workspace *workspace, const struct workspaces_options *owner,
                     const struct workspace_request *request, const struct workspace_entry *entry,
                     struct profile *asked, struct err *err)
{
    const struct workspace_words *words = request->words;
    const char *word = words->paths[entry->access];
    AUTO_FREE char *origin = words->origin ? NULL : alloc_strf("%s %s", word, entry->text);
    const struct profile_text text = {
        .text = entry->text,
        .access = entry->access,
        .unknown = PROFILE_UNKNOWN_REFUSE,
        .origin = origin ? origin : words->origin,
        .home = owner->home,
        .base = request->dir,
    };

    if (profile_add_text(asked, &text, err) ||
        (entry->access == ACCESS_WRITE &&
         add_root(workspace, request, &asked->entries.items[asked->entries.len - 1], err)))
        return err_wrap(err, "%s", word);
    return 0;
}

/* In front: of two entries that say the same, what was asked for is named as what decides. */
static int add_entries(struct workspace *workspace, const struct workspaces_options *owner,
                       const struct workspace_request *request, struct err *err)
{
    AUTO(profile_done) struct profile asked = {0};
    struct profile_entries *entries = &workspace->profile.entries;
    struct profile_entries rest;

    for (size_t i = 0; i < request->entries_len; i++)
        if (add_entry(workspace, owner, request, &request->entries[i], &asked, err))
            return -1;
    rest = *entries;
    *entries = asked.entries;
    asked.entries = rest;
    for (size_t i = 0; i < rest.len; i++)
        profile_entries_add(entries, &rest.items[i]);
    return 0;
}

static int add_sockets(struct workspace *workspace, const struct workspaces_options *owner,
                       const struct workspace_request *request, struct err *err)
{
    for (char *const *socket = request->unix_sockets; socket && *socket; socket++) {
        AUTO_FREE char *origin = alloc_strf("%s %s", request->words->socket, *socket);
        const struct profile_text text = {
            .text = *socket,
            .origin = origin,
            .home = owner->home,
            .base = request->dir,
        };

        if (profile_add_socket(&workspace->profile, &text, err))
            return err_wrap(err, "%s", request->words->socket);
    }
    return 0;
}

/* --- narrowed, behind all that widens --- */

static int narrow(struct workspace *workspace, const struct workspaces_options *owner,
                  const struct workspace_request *request, struct err *err)
{
    const enum network_access network = workspace->profile.network;
    const bool was_open = workspace->profile.kind == PROFILE_DISABLED;

    if (!request->narrow)
        return 0;
    if (request->mode == SANDBOX_DISABLED && request->narrow->kind != PROFILE_DISABLED)
        return err_set(err, ERR_INVALID, "%s cannot be kept with %s disabled",
                       request->words->narrow, request->words->sandbox);
    if (profile_narrow(&workspace->profile, request->narrow, err))
        return err_wrap(err, "%s", request->words->narrow);
    if (was_open && workspace->profile.kind != PROFILE_DISABLED)
        workspace->mode = mode_of(owner, request);
    if (workspace->profile.network != network)
        set_network(workspace, workspace->profile.network, alloc_str(request->words->narrow));
    return 0;
}

int workspace_choose(struct workspace *workspace, const struct workspaces_options *owner,
                     const struct workspace_request *request, struct err *err)
{
    return choose_profile(workspace, owner, request, err) ||
                   choose_mode(workspace, owner, request, err) ||
                   choose_overrides(workspace, request, err) ||
                   add_entries(workspace, owner, request, err) ||
                   add_sockets(workspace, owner, request, err) ||
                   narrow(workspace, owner, request, err)
               ? -1
               : 0;
}

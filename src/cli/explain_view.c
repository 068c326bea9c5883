/* See explain_view.h. A map has an entry for each name that is protected in each directory that may be
 * written, hundreds of them: here they are one line, and what is left fits on a screen. Whatever is left
 * out here is in `--all`. */
#include "cli/explain_view.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/console.h"
#include "explain/explanation.h"
#include "layer/layer.h"
#include "policy/access.h"
#include "policy/network_hook.h"
#include "policy/profile.h"
#include "sandbox/sandbox.h"
#include "workspace/workspace.h"

#include <jansson.h>
#include <string.h>

enum { PATHS_MAX = 24 }; /* of one kind; more are counted */

/* --- by default --- */

static bool is_ours(const struct access_entry *entry)
{
    return str_starts(entry->origin, "belongs to Cordon");
}

/* Entries of one kind: what they are is said in front of the first, where they come from behind those
 * that are not built in. */
static size_t print_paths(const struct access_map *map, const char *label, enum access access,
                          bool asks, struct buf *text)
{
    size_t len = 0;

    for (size_t i = 0; i < map->len; i++) {
        const struct access_entry *entry = &map->entries[i];

        if (entry->access != access || entry->asks != asks || entry->is_protected ||
            entry->source || is_ours(entry) || (access == ACCESS_READ && str_eq(entry->path, "/")))
            continue;
        if (len++ < PATHS_MAX)
            console_line(text, "%-7s  %s%s%s%s%s", len == 1 ? label : "", entry->path,
                         entry->kind == ACCESS_MISSING ? " (nothing is there)" : "",
                         str_starts(entry->origin, "built-in") ? "" : " (",
                         str_starts(entry->origin, "built-in") ? "" : entry->origin,
                         str_starts(entry->origin, "built-in") ? "" : ")");
    }
    if (len > PATHS_MAX)
        console_line(text, "         and %zu more (--all)", len - PATHS_MAX);
    return len;
}

static void print_files(const struct explained *about, struct buf *text)
{
    const struct workspace *workspace = about->workspace;
    const struct access_map *map = explained_access(about);
    const struct access_entry *root = access_map_exact(map, "/");
    AUTO(strv_done) struct strv words = {0};
    AUTO(buf_done) struct buf sets = {.max = SIZE_MAX / 2};
    size_t writable;

    if (workspace->mode == SANDBOX_DISABLED || !map->restricted) {
        console_line(text, "write    everything: %s",
                     map->restricted ? "there is no sandbox"
                                     : "the profile does not restrict files");
        return;
    }
    writable = print_paths(map, "write", ACCESS_WRITE, false, text);
    if (!writable)
        console_line(text, "write    nothing");
    protect_choice_words(&workspace->protect, &words);
    for (size_t i = 0; i < words.len; i++)
        buf_appendf(&sets, "%s%s", i ? ", " : "", words.items[i]);
    if (writable && sets.len)
        console_line(text, "         but not, in any of these, the protected names (%s)",
                     sets.data);
    print_paths(map, "read", ACCESS_READ, false, text);
    if (root && root->access >= ACCESS_READ)
        console_line(text, "read     everything else that you can read");
    else
        console_line(text, "deny     what is not named here");
    print_paths(map, "deny", ACCESS_DENY, false, text);
    print_paths(map, "ask", ACCESS_DENY, true, text);
}

/* "example.org:443", "example.org by http, https". Caller frees. */
static char *rule_text(const struct network_rule *rule)
{
    AUTO_FREE char *pattern = host_pattern_format(&rule->pattern, rule->port);
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    buf_append_str(&text, pattern);
    for (unsigned i = 0, left = rule->protocols; left; left &= ~(1u << i++))
        if (left & 1u << i)
            buf_appendf(&text, "%s%s", left == rule->protocols ? " by " : ", ",
                        network_protocol_words[i]);
    return buf_take(&text);
}

static void print_rules(const struct network_policy *policy, enum network_verdict verdict,
                        struct buf *text)
{
    for (size_t i = 0; i < policy->rules_len; i++) {
        const struct network_rule *rule = &policy->rules[i];
        AUTO_FREE char *about = rule_text(rule);

        if (rule->verdict == verdict)
            console_line(text, "         %-5s  %s (from %s)", network_verdict_words[verdict], about,
                         rule->origin);
    }
}

/* Caller frees. */
static char *joined(const struct strv *words, const char *between)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    for (size_t i = 0; i < words->len; i++)
        buf_appendf(&text, "%s%s", i ? between : "", words->items[i]);
    return alloc_str(text.data ? text.data : "");
}

/* "api.test GET,POST /repos/": what may be asked for there. Caller frees. */
static char *hook_text(const struct network_hook *hook)
{
    AUTO_FREE char *methods = joined(&hook->methods, ",");
    AUTO_FREE char *paths = joined(&hook->paths, " ");

    return alloc_strf("%s %s %s", hook->host, methods, paths);
}

/* "GH_TOKEN for api.test" */
static char *credential_text(const struct network_credential *credential)
{
    AUTO_FREE char *hosts = joined(&credential->hosts, ", ");

    return alloc_strf("%s for %s", credential->name, hosts);
}

static void print_hooks(const struct network_hooks *hooks, struct buf *text)
{
    for (size_t i = 0; i < hooks->hooks_len; i++) {
        const struct network_hook *hook = &hooks->hooks[i];
        AUTO_FREE char *about = hook_text(hook);

        console_line(text, "         hook   %s (from %s)", about, hook->origin);
        for (size_t j = 0; j < hook->strip.len; j++)
            console_line(text, "                takes %s out", hook->strip.items[j]);
        for (size_t j = 0; j < hook->inject_len; j++) {
            const struct network_injection *put = &hook->inject[j];

            console_line(text, "                puts %s in, from %s%s", put->name,
                         put->secret_file ? "" : "$",
                         put->secret_file ? put->secret_file : put->secret_env_var);
        }
    }
    for (size_t i = 0; i < hooks->credentials_len; i++) {
        AUTO_FREE char *about = credential_text(&hooks->credentials[i]);

        console_line(text, "         credential %s, used and not seen", about);
    }
}

void explain_network_print(const struct workspace *workspace, struct buf *text)
{
    static const char *const meanings[] = {
        [NETWORK_RESTRICTED] = ": a localhost of its own",
        [NETWORK_PROXIED] = ": a localhost of its own, and these hosts",
        [NETWORK_ENABLED] = "",
        [NETWORK_HOST] = "",
    };
    const struct access_map *map = &workspace->map;
    const struct network_policy *policy = &map->network_policy;
    const struct profile_entries *sockets = &workspace->profile.unix_sockets;

    console_line(text, "network  %s%s (from %s)", network_access_name(map->network),
                 meanings[map->network], workspace->network_from);
    if (map->network == NETWORK_PROXIED) {
        print_rules(policy, NETWORK_DENY, text);
        print_rules(policy, NETWORK_ASK, text);
        print_rules(policy, NETWORK_ALLOW, text);
        if (!policy->rules_len && !policy->host_ports_len && !policy->asks)
            console_line(text, "         none (--allow-host HOST)");
        for (size_t i = 0; i < policy->host_ports_len; i++)
            console_line(text, "         allow  localhost:%u of this machine",
                         policy->host_ports[i]);
        if (policy->asks)
            console_line(text, "         ask    every other host");
        if (policy->mode == NETWORK_MODE_LIMITED)
            console_line(text, "         limited: GET, HEAD and OPTIONS alone");
        if (policy->allow_local_binding)
            console_line(text, "         addresses may be local ones, too");
        if (policy->no_upstream_proxy)
            console_line(text, "         without this machine's own proxy (*_PROXY)");
        if (policy->hooks)
            print_hooks(policy->hooks, text);
    }
    for (size_t i = 0; i < policy->publications.len; i++) {
        AUTO_FREE char *publication = publication_format(&policy->publications.items[i]);

        console_line(text, "%-7s  %s", i ? "" : "publish", publication);
    }
    for (size_t i = 0; !network_is_hosts(map->network) && i < sockets->len; i++)
        console_line(text, "%-7s  %s", i ? "" : "sockets", sockets->items[i].path);
}

static void print_defences(const struct explained *about, struct buf *text)
{
    const struct sandbox *sandbox = about->sandbox;
    size_t lacking = 0;

    if (!sandbox) {
        console_line(text, "layers   refused: %s", about->refusal->msg);
        return;
    }
    if (about->workspace->mode == SANDBOX_DISABLED) {
        console_line(text, "layers   none: there is no sandbox");
        return;
    }
    for (int i = 0; i < DEFENCE_COUNT; i++) {
        const struct defence_report *layer = sandbox_defence(sandbox, (enum defence)i);

        if (layer->state == DEFENCE_ENFORCED || layer->state == DEFENCE_NOT_NEEDED)
            continue;
        console_line(text, "%-7s  %s is %s%s%s", lacking++ ? "" : "layers",
                     defence_name((enum defence)i), defence_state_name(layer->state),
                     *layer->why ? ": " : "", layer->why);
    }
    console_line(text, "%-7s  %s", lacking ? "" : "layers",
                 lacking ? "all others hold" : "all hold");
}

void explain_limits_print(const struct workspace *workspace, struct buf *ret)
{
    AUTO(buf_done) struct buf line = {.max = SIZE_MAX / 2};
    struct resource_limits limits;

    workspace_limits(workspace, &limits);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        char value[32];

        if (!limits.of[i] || limits.of[i] == LIMIT_NONE)
            continue;
        resource_limit_format((enum resource_limit)i, limits.of[i], value, sizeof value);
        buf_appendf(&line, "%s%s %s%s", line.len ? ", " : "",
                    resource_limit_name((enum resource_limit)i), value,
                    limits.defaults & 1u << i ? " (by default)" : "");
    }
    console_line(ret, "limits   %s", line.len ? line.data : "none");
}

void explain_short_print(const struct explained *about, struct buf *ret)
{
    const struct workspace *workspace = about->workspace;
    const struct profile *profile = &workspace->profile;

    console_line(ret, "profile  %s (from %s)", workspace->profile_name, workspace->profile_from);
    console_line(ret, "config   %s", about->config ? about->config : "no file");
    console_line(ret, "folder   %s", workspace->dir);
    print_files(about, ret);
    explain_layer_print(about, ret);
    explain_tmp_print(about, ret);
    if (workspace->mode != SANDBOX_DISABLED)
        explain_network_print(workspace, ret);
    print_defences(about, ret);
    explain_limits_print(workspace, ret);
    for (size_t i = 0; i < workspace->presets.len; i++)
        console_line(ret, "%-7s  %s (from %s)", i ? "" : "with", workspace->presets.items[i],
                     workspace->presets_from.items[i]);
    if (workspace->mode != SANDBOX_DISABLED && profile->watch != PROFILE_WATCH_FACTS)
        console_line(ret, "watch    %s", profile_watch_words[profile->watch]);
    if (profile->judge == PROFILE_JUDGE_EVERY_EXEC)
        console_line(ret, "judge    %s", profile_judge_words[profile->judge]);
    if (profile->git != PROFILE_GIT_READ)
        console_line(ret, "git      %s", profile_git_words[profile->git]);
    for (char *const *warning = about->warnings; *warning; warning++)
        console_line(ret, "warning  %s", *warning);
    console_line(ret, "more     --all: each entry and who wrote it, variables, the plan");
}

/* --- the layer --- */

void explain_layer_print(const struct explained *about, struct buf *text)
{
    const struct layer *layer = about->workspace->layer;
    const struct layer_root *roots;
    size_t len;

    if (!layer)
        return;
    roots = layer_roots(layer, &len);
    console_line(text, "layer    %s: what is written goes there, until it is accepted%s%s",
                 layer_own_name(layer) ? layer_name(layer) : "a new one",
                 layer_has_git(layer) ? "; commits, too" : "",
                 layer_is_in_memory(layer) ? "; in memory, gone when this machine is" : "");
    for (size_t i = 0; i < len; i++)
        console_line(text, "         %s  (%s)", roots[i].path,
                     roots[i].is_direct ? "left out: written directly"
                     : roots[i].is_near
                         ? "near: accepting moves"
                         : "on another file system than the layer: accepting copies");
}

/* --- temporary folders --- */

void explain_tmp_print(const struct explained *about, struct buf *text)
{
    const struct workspace *workspace = about->workspace;
    const struct tmp_store *tmp = &workspace->tmp;
    const char *whose = explained_whose_tmp(about);

    if (workspace->mode == SANDBOX_DISABLED)
        return;
    if (workspace->layer && str_eq(whose, "private"))
        console_line(text, "tmp      of the layer: never listed, gone with it");
    else if (str_eq(whose, "host"))
        console_line(text, "tmp      host: /tmp and /var/tmp of this machine");
    else if (str_eq(whose, "none"))
        console_line(text, "tmp      none: there are no private folders without mount namespaces; "
                           "--tmp host has those of this machine");
    else if (tmp->folder)
        console_line(text, "tmp      private: %s (unused for 10 days it goes, in /var/tmp for 30)",
                     tmp->folder);
    else
        console_line(text, "tmp      private: in memory, gone when the command ends, because %s",
                     tmp->why.msg);
}

/* --- two profiles --- */

static const char *verdict_of(const struct access_map *map, const char *path)
{
    const struct access_entry *entry = access_map_find(map, path);

    return entry && entry->asks ? "ask" : access_name(access_map_check(map, path));
}

static bool is_protected(const struct access_entry *entry, const char *path)
{
    return entry && entry->is_protected && str_eq(entry->path, path);
}

static void add_path(const struct access_map *base, const struct access_map *other,
                     const char *path, json_t *list)
{
    const struct access_entry *was = access_map_find(base, path);
    const struct access_entry *entry = access_map_find(other, path);
    const char *from = verdict_of(base, path);
    const char *to = verdict_of(other, path);

    /* of a private temporary folder and the one of this machine tells "tmp" */
    if (str_eq(from, to) || (was && was->source) || (entry && entry->source))
        return;
    json_array_append_new(
        list,
        json_pack("{s:s, s:o, s:s, s:s, s:b, s:b, s:o}", "what", "path", "path", json_lossy(path),
                  "from", from, "to", to, "wider",
                  access_map_check(other, path) > access_map_check(base, path) ||
                      (str_eq(to, "ask") && str_eq(from, "deny")),
                  "protected", is_protected(was, path) || is_protected(entry, path), "decided_by",
                  json_lossy(entry               ? entry->origin
                             : other->restricted ? "no entry of the profile allows it"
                                                 : "the profile does not restrict files")));
}

static void add_word(json_t *list, const char *what, const char *from, const char *to,
                     bool is_wider)
{
    if (!str_eq(from, to))
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b}", "what", what, "from", from,
                                              "to", to, "wider", is_wider));
}

static void add_limits(const struct workspace *base, const struct workspace *other, json_t *list)
{
    struct resource_limits was, is;

    workspace_limits(base, &was);
    workspace_limits(other, &is);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const enum resource_limit limit = (enum resource_limit)i;
        const uint64_t from = was.of[i] ? was.of[i] : LIMIT_NONE;
        const uint64_t to = is.of[i] ? is.of[i] : LIMIT_NONE;
        char texts[2][32];

        if (from == to)
            continue;
        resource_limit_format(limit, from, texts[0], sizeof texts[0]);
        resource_limit_format(limit, to, texts[1], sizeof texts[1]);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:b}", "what", "limit", "limit",
                                              resource_limit_name(limit), "from", texts[0], "to",
                                              texts[1], "wider", to > from));
    }
}

static bool has_socket(const struct profile *profile, const char *path)
{
    for (size_t i = 0; i < profile->unix_sockets.len; i++)
        if (str_eq(profile->unix_sockets.items[i].path, path))
            return true;
    return false;
}

static void add_sockets(const struct profile *having, const struct profile *lacking, bool is_wider,
                        json_t *list)
{
    for (size_t i = 0; i < having->unix_sockets.len; i++) {
        const struct profile_entry *socket = &having->unix_sockets.items[i];

        if (!has_socket(lacking, socket->path))
            json_array_append_new(
                list, json_pack("{s:s, s:o, s:s, s:s, s:b}", "what", "socket", "path",
                                json_lossy(socket->path), "from", is_wider ? "deny" : "connect",
                                "to", is_wider ? "connect" : "deny", "wider", is_wider));
    }
}

/* Rules of `having` that `lacking` has not. */
static void add_hosts(const struct network_policy *having, const struct network_policy *lacking,
                      bool is_other, json_t *list)
{
    for (size_t i = 0; i < having->rules_len; i++) {
        const struct network_rule *rule = &having->rules[i];
        const char *word = network_verdict_words[rule->verdict];
        AUTO_FREE char *about = rule_text(rule);

        if (!network_policy_has(lacking, rule))
            json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:b}", "what", "host",
                                                  "path", about, "from", is_other ? "-" : word,
                                                  "to", is_other ? word : "-", "wider",
                                                  (rule->verdict == NETWORK_DENY) != is_other));
    }
}

/* What a network has beside its rules, of one kind: each in words. */
struct network_words {
    const char *what;
    struct strv words;
};

enum { NETWORK_KINDS = 4 };

static void read_network_words(const struct access_map *map,
                               struct network_words ret[NETWORK_KINDS])
{
    static const char *const kinds[] = {"host port", "publish", "credential", "hook"};
    const struct network_policy *policy = &map->network_policy;
    const bool is_proxied = map->network == NETWORK_PROXIED;
    const struct network_hooks *hooks = is_proxied ? policy->hooks : NULL;

    for (int i = 0; i < NETWORK_KINDS; i++)
        ret[i] = (struct network_words){.what = kinds[i]};
    for (size_t i = 0; is_proxied && i < policy->host_ports_len; i++)
        strv_pushf(&ret[0].words, "localhost:%u", policy->host_ports[i]);
    publications_format(&policy->publications, &ret[1].words);
    for (size_t i = 0; hooks && i < hooks->credentials_len; i++)
        strv_push_take(&ret[2].words, credential_text(&hooks->credentials[i]));
    for (size_t i = 0; hooks && i < hooks->hooks_len; i++)
        strv_push_take(&ret[3].words, hook_text(&hooks->hooks[i]));
}

static void add_lacking(const char *what, const struct strv *having, const struct strv *lacking,
                        bool is_other, json_t *list)
{
    for (size_t i = 0; i < having->len; i++)
        if (!strv_has(lacking, having->items[i]))
            json_array_append_new(list, json_pack("{s:s, s:o, s:s, s:s, s:b}", "what", what, "path",
                                                  json_lossy(having->items[i]), "from",
                                                  is_other ? "-" : "yes", "to",
                                                  is_other ? "yes" : "-", "wider", is_other));
}

static void add_network(const struct access_map *base, const struct access_map *other, json_t *list)
{
    static const struct network_policy none;
    const struct network_policy *a =
        base->network == NETWORK_PROXIED ? &base->network_policy : &none;
    const struct network_policy *b =
        other->network == NETWORK_PROXIED ? &other->network_policy : &none;
    struct network_words was[NETWORK_KINDS], is[NETWORK_KINDS];

    add_word(list, "network", network_access_name(base->network),
             network_access_name(other->network), other->network > base->network);
    add_word(list, "network mode", network_mode_words[a->mode], network_mode_words[b->mode],
             b->mode < a->mode);
    add_word(list, "local addresses", a->allow_local_binding ? "allow" : "deny",
             b->allow_local_binding ? "allow" : "deny", b->allow_local_binding);
    add_word(list, "upstream proxy", a->no_upstream_proxy ? "unused" : "used",
             b->no_upstream_proxy ? "unused" : "used", a->no_upstream_proxy);
    add_hosts(b, a, true, list);
    add_hosts(a, b, false, list);
    read_network_words(base, was);
    read_network_words(other, is);
    for (int i = 0; i < NETWORK_KINDS; i++) {
        add_lacking(is[i].what, &is[i].words, &was[i].words, true, list);
        add_lacking(is[i].what, &was[i].words, &is[i].words, false, list);
        strv_done(&is[i].words);
        strv_done(&was[i].words);
    }
}

json_t *explain_diff(const struct settings *base, const struct settings *other)
{
    const struct workspace *a = base->workspace;
    const struct workspace *b = other->workspace;
    json_t *list = json_array();

    add_word(list, "sandbox", a->mode == SANDBOX_DISABLED ? "none" : "yes",
             b->mode == SANDBOX_DISABLED ? "none" : "yes", b->mode == SANDBOX_DISABLED);
    for (size_t i = 0; i < b->map.len; i++)
        add_path(&a->map, &b->map, b->map.entries[i].path, list);
    for (size_t i = 0; i < a->map.len; i++)
        if (!access_map_exact(&b->map, a->map.entries[i].path))
            add_path(&a->map, &b->map, a->map.entries[i].path, list);
    add_network(&a->map, &b->map, list);
    add_sockets(&b->profile, &a->profile, true, list);
    add_sockets(&a->profile, &b->profile, false, list);
    add_word(list, "watch", profile_watch_words[a->profile.watch],
             profile_watch_words[b->profile.watch], false);
    add_word(list, "judge", profile_judge_words[a->profile.judge],
             profile_judge_words[b->profile.judge], b->profile.judge < a->profile.judge);
    add_word(list, "tmp", profile_tmp_words[a->profile.tmp], profile_tmp_words[b->profile.tmp],
             b->profile.tmp < a->profile.tmp);
    add_word(list, "git", profile_git_words[a->profile.git], profile_git_words[b->profile.git],
             b->profile.git > a->profile.git);
    add_word(list, "namespaces", a->profile.allow_nested_namespaces ? "allowed" : "refused",
             b->profile.allow_nested_namespaces ? "allowed" : "refused",
             b->profile.allow_nested_namespaces);
    add_limits(a, b, list);
    return list;
}

static const char *text_of(const json_t *item, const char *key)
{
    const char *text = json_string_value(json_object_get(item, key));

    return text ? text : "";
}

/* Protected names of the same folder, of which the same is to be said, which come before `i`, or in all. */
static size_t count_alike(const json_t *differences, size_t i, size_t end)
{
    const json_t *wanted = json_array_get(differences, i);
    AUTO_FREE char *folder = path_parent(text_of(wanted, "path"));
    size_t len = 0;

    for (size_t k = 0; k < end; k++) {
        const json_t *item = json_array_get(differences, k);
        AUTO_FREE char *parent = path_parent(text_of(item, "path"));

        len += json_is_true(json_object_get(item, "protected")) && str_eq(parent, folder) &&
               str_eq(text_of(item, "from"), text_of(wanted, "from")) &&
               str_eq(text_of(item, "to"), text_of(wanted, "to"));
    }
    return len;
}

/* There are dozens of them in each folder that may be written: one line. False: it is to be printed by itself. */
static bool print_protected(const json_t *differences, size_t i, char sign, struct buf *ret)
{
    const json_t *item = json_array_get(differences, i);
    size_t len = json_array_size(differences);
    AUTO_FREE char *folder = NULL;

    if (!json_is_true(json_object_get(item, "protected")) ||
        (len = count_alike(differences, i, len)) < 2)
        return false;
    folder = path_parent(text_of(item, "path"));
    if (!count_alike(differences, i, i))
        console_line(ret, "%c %s %zu protected names in %s, not %s", sign, text_of(item, "to"), len,
                     folder, text_of(item, "from"));
    return true;
}

void explain_diff_print(const json_t *differences, const struct settings *base,
                        const struct settings *other, struct buf *ret)
{
    size_t i;
    json_t *item;

    console_line(ret, "%s, beside %s", other->workspace->profile_name,
                 base->workspace->profile_name);
    json_array_foreach(differences, i, item)
    {
        const char *what = text_of(item, "what");
        const char *path = text_of(item, str_eq(what, "limit") ? "limit" : "path");
        const char *by = text_of(item, "decided_by");
        char sign = json_is_true(json_object_get(item, "wider")) ? '+' : '-';

        if (print_protected(differences, i, sign, ret))
            continue;
        console_line(ret, "%c %s %s%s%s, not %s%s%s%s", sign,
                     str_eq(what, "path") ? text_of(item, "to") : what,
                     *path ? path : text_of(item, "to"), *path && !str_eq(what, "path") ? ": " : "",
                     *path && !str_eq(what, "path") ? text_of(item, "to") : "",
                     text_of(item, "from"), *by ? "  (" : "", by, *by ? ")" : "");
    }
    if (!json_array_size(differences))
        console_line(ret, "no difference");
}

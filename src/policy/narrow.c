/* See narrow.h.
 *
 * Paths: of two maps the entry with the longest path decides in each, so in a map that has the paths of both, each with the
 * lower of the two verdicts about it, the longest decides as the lower of the two would: exactly. The flags of an entry count
 * with its access, and go when that is lowered.
 *
 * Hosts: what two sets of patterns have in common need not be patterns again, so a rule is kept when the other side allows all
 * that it does, and left out otherwise. What either denies is denied. */
#include "policy/narrow.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/access.h"
#include "policy/network_policy.h"
#include "policy/profile.h"
#include "policy/resolve.h"

#include <stdlib.h>
#include <string.h>

/* --- hosts --- */

static bool is_same_host(const struct host_pattern *a, const struct host_pattern *b)
{
    return a->kind == b->kind && str_eq(a->host.text, b->host.text);
}

/* All that `rule` is about, `other` is about, too. An address or a name that is not of the public internet is open by its own
 * name alone. */
static bool covers(const struct network_rule *other, const struct network_rule *rule)
{
    const struct net_host *host = &rule->pattern.host;
    const bool is_exact = rule->pattern.kind == HOST_PATTERN_EXACT;
    const bool is_public =
        is_exact && host->kind == NET_HOST_IS_NAME && !net_host_name_is_local(host->text);

    if (is_public ? !host_pattern_matches(&other->pattern, host)
                  : !is_same_host(&other->pattern, &rule->pattern) &&
                        (is_exact || other->pattern.kind != HOST_PATTERN_ANY))
        return false;
    return (!other->port || other->port == rule->port) &&
           (!other->protocols || (rule->protocols && !(rule->protocols & ~other->protocols)));
}

/* Some of what `rule` is about, `other` may be about. */
static bool may_overlap(const struct network_rule *other, const struct network_rule *rule)
{
    const struct host_pattern *a = &other->pattern;
    const struct host_pattern *b = &rule->pattern;

    if ((a->kind == HOST_PATTERN_EXACT && !host_pattern_matches(b, &a->host)) ||
        (b->kind == HOST_PATTERN_EXACT && !host_pattern_matches(a, &b->host)))
        return false;
    return (!other->port || !rule->port || other->port == rule->port) &&
           (!other->protocols || !rule->protocols || other->protocols & rule->protocols);
}

static bool is_open(const struct network_policy *policy, const struct network_rule *rule)
{
    for (size_t i = 0; i < policy->rules_len; i++)
        if (policy->rules[i].verdict != NETWORK_DENY && covers(&policy->rules[i], rule))
            return true;
    return false;
}

/* Part of what a rule opens may be asked about by one of a policy, but for those that stay beside it, as what is open to
 * `kept` does; NULL: none stays. */
static bool is_asked(const struct network_policy *policy, const struct network_rule *rule,
                     const struct network_policy *kept)
{
    for (size_t i = 0; i < policy->rules_len; i++) {
        const struct network_rule *other = &policy->rules[i];

        if (other->verdict == NETWORK_ASK && may_overlap(other, rule) &&
            !(kept && is_open(kept, other)))
            return true;
    }
    return false;
}

/* Those of `from` that deny, and those that `by` opens, too. */
static int add_common(struct network_policy *ret, const struct network_policy *from,
                      const struct network_policy *by, struct err *err)
{
    for (size_t i = 0; i < from->rules_len; i++) {
        struct network_rule rule = from->rules[i];

        if (rule.verdict != NETWORK_DENY && !is_open(by, &rule))
            continue;
        if (rule.verdict == NETWORK_ALLOW &&
            (is_asked(by, &rule, NULL) || is_asked(from, &rule, by)))
            rule.verdict = NETWORK_ASK;
        if (network_policy_add(ret, &rule, err))
            return -1;
    }
    return 0;
}

static bool has_publication(const struct publications *list, const struct publication *item)
{
    for (size_t i = 0; i < list->len; i++) {
        const struct publications one = {.items = {list->items[i]}, .len = 1};
        const struct publications other = {.items = {*item}, .len = 1};

        if (publications_equal(&one, &other))
            return true;
    }
    return false;
}

static void keep_publications(struct publications *ours, const struct publications *theirs)
{
    size_t kept = 0;

    for (size_t i = 0; i < ours->len; i++)
        if (has_publication(theirs, &ours->items[i]))
            ours->items[kept++] = ours->items[i];
    ours->len = kept;
}

int network_policy_narrow(struct network_policy *ours, const struct network_policy *theirs,
                          struct err *err)
{
    AUTO(network_policy_done) struct network_policy both = {0};
    size_t kept = 0;

    if (add_common(&both, ours, theirs, err) || add_common(&both, theirs, ours, err))
        return -1;
    for (size_t i = 0; i < ours->rules_len; i++)
        free(ours->rules[i].origin);
    free(ours->rules);
    ours->rules = TAKE_PTR(both.rules);
    ours->rules_len = both.rules_len;
    ours->rules_cap = both.rules_cap;
    both.rules_len = 0;
    if (theirs->mode == NETWORK_MODE_LIMITED)
        ours->mode = NETWORK_MODE_LIMITED;
    ours->asks &= theirs->asks;
    ours->allow_local_binding &= theirs->allow_local_binding;
    ours->no_upstream_proxy |= theirs->no_upstream_proxy;
    for (size_t i = 0; i < ours->host_ports_len; i++)
        if (network_policy_takes_port(theirs, ours->host_ports[i]))
            ours->host_ports[kept++] = ours->host_ports[i];
    ours->host_ports_len = kept;
    keep_publications(&ours->publications, &theirs->publications);
    return 0;
}

/* --- a profile --- */

static int narrow_network(struct profile *ours, const struct profile *theirs, struct err *err)
{
    struct network_policy *policy = &ours->network_policy;

    if (network_is_hosts(theirs->network)) {
        if (ours->network > theirs->network)
            ours->network = theirs->network;
        return 0;
    }
    if (theirs->network == NETWORK_RESTRICTED) {
        keep_publications(&policy->publications, &theirs->network_policy.publications);
        ours->network = NETWORK_RESTRICTED;
        return 0;
    }
    if (ours->network == NETWORK_PROXIED)
        return network_policy_narrow(policy, &theirs->network_policy, err);
    if (ours->network == NETWORK_RESTRICTED)
        return 0;
    ours->network = NETWORK_PROXIED;
    network_policy_done(policy);
    network_policy_copy(&theirs->network_policy, policy);
    policy->publications.len = 0;
    return 0;
}

static void narrow_limits(struct resource_limits *ours, const struct resource_limits *theirs)
{
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (theirs->of[i] && (!ours->of[i] || theirs->of[i] < ours->of[i]))
            ours->of[i] = theirs->of[i];
}

int profile_narrow(struct profile *ours, const struct profile *theirs, struct err *err)
{
    if (theirs->kind == PROFILE_DISABLED)
        return 0;
    if (ours->kind == PROFILE_DISABLED) {
        ours->kind = PROFILE_MANAGED;
        ours->files = PROFILE_FILES_UNRESTRICTED;
        ours->network = NETWORK_HOST;
        ours->tmp = PROFILE_TMP_HOST;
        ours->allow_nested_namespaces = true;
    }
    narrow_limits(&ours->limits, &theirs->limits);
    ours->allow_nested_namespaces &= theirs->allow_nested_namespaces;
    if (theirs->git < ours->git)
        ours->git = theirs->git;
    return narrow_network(ours, theirs, err);
}

/* --- paths --- */

/* Whether Unix sockets at a path may be connected to. */
static bool allows_sockets(const struct access_map *map, const char *path)
{
    const struct access_entry *entry = access_map_find(map, path);

    return map->network == NETWORK_HOST || !map->restricted || (entry && entry->allows_sockets);
}

static bool asks_at(const struct access_map *map, const char *path)
{
    const struct access_entry *entry = access_map_find(map, path);

    return entry && entry->asks;
}

static void set_origin(struct access_entry *entry, const struct access_entry *by)
{
    free(entry->origin);
    entry->origin = alloc_str(by ? by->origin : PROFILE_OF_CLIENT ", which has no entry for it");
}

/* An entry of ours. */
static void lower_entry(struct access_entry *entry, const struct access_map *theirs)
{
    const struct access_entry *by = access_map_find(theirs, entry->path);
    const enum access access = access_map_check(theirs, entry->path);

    if (entry->source)
        return;
    entry->allows_sockets &= allows_sockets(theirs, entry->path);
    entry->asks &= access != ACCESS_DENY || (by && by->asks);
    if (access < ACCESS_WRITE)
        entry->allows_commits = entry->is_removable = entry->is_by_guard = false;
    if (access >= entry->access)
        return;
    entry->access = access;
    entry->asks = by && by->asks;
    entry->is_users = false;
    entry->is_protected = by && by->is_protected && access == ACCESS_READ;
    set_origin(entry, by);
}

/* Both say the same about a path as about the directory that it is in. */
static bool is_said_above(const struct access_map *ours, const struct access_map *theirs,
                          const struct access_entry *entry)
{
    AUTO_FREE char *above = path_parent(entry->path);
    const enum access mine = access_map_check(ours, above);
    const enum access other = access_map_check(theirs, above);
    const enum access here = access_map_check(ours, entry->path);

    return !str_eq(above, entry->path) &&
           (mine < other ? mine : other) == (here < entry->access ? here : entry->access) &&
           !asks_at(theirs, above) && !asks_at(ours, above) && !entry->asks &&
           (allows_sockets(ours, above) && allows_sockets(theirs, above)) ==
               (allows_sockets(ours, entry->path) && allows_sockets(theirs, entry->path));
}

/* What theirs has an entry for, and ours has not. */
static void add_entry(const struct access_map *ours, const struct access_map *theirs,
                      const struct access_entry *entry, struct access_map *ret)
{
    const struct access_entry *cover = access_map_find(ours, entry->path);
    const enum access access = access_map_check(ours, entry->path);
    const bool is_lower = entry->access < access;
    struct access_entry *added;

    if ((cover && cover->source) || is_said_above(ours, theirs, entry))
        return;
    added = access_map_add(ret, entry->path, is_lower ? entry->access : access, entry->kind,
                           is_lower || !cover ? entry->origin : cover->origin);
    added->allows_sockets = entry->allows_sockets && allows_sockets(ours, entry->path);
    added->is_protected = is_lower && entry->is_protected;
    added->asks = is_lower && entry->asks;
    added->is_by_guard = !is_lower && cover && cover->is_by_guard;
}

/* A restricted root has to hold the links that lead to what is in it. */
static void add_links(struct access_map *ours, const struct access_map *theirs)
{
    for (size_t i = 0; i < theirs->links_len; i++) {
        const struct access_link *link = &theirs->links[i];

        if (access_map_check(ours, link->path) != ACCESS_DENY)
            access_map_add_link(ours, link->path, link->target);
    }
}

/* As a map is resolved: a denied root is what "restricted" says anyway. */
static bool is_denied_root(const struct access_map *before, const struct access_entry *entry)
{
    return entry->access == ACCESS_DENY && !entry->asks && str_eq(entry->path, "/");
}

void access_map_narrow(struct access_map *ours, const struct access_map *theirs)
{
    AUTO(access_map_done) struct access_map added = {0};

    if (!theirs->restricted)
        return;
    for (size_t i = 0; i < theirs->len; i++)
        if (!access_map_exact(ours, theirs->entries[i].path))
            add_entry(ours, theirs, &theirs->entries[i], &added);
    add_links(ours, theirs);
    for (size_t i = 0; i < ours->len; i++)
        lower_entry(&ours->entries[i], theirs);
    access_map_add_all(ours, &added);
    ours->restricted = true;
    access_map_sort(ours);
    access_map_drop(ours, is_denied_root);
}

static int narrow_by(const struct profile *profile, const struct resolve_context *context,
                     struct access_map *map, struct err *err)
{
    AUTO(access_map_done) struct access_map other = {0};
    struct profile of_host = *profile; /* borrowed */

    of_host.tmp = PROFILE_TMP_HOST;
    if (profile_resolve(&of_host, context, &other, err))
        return -1;
    access_map_narrow(map, &other);
    return 0;
}

/* What is protected or denied in the directory is so, too, where one of its own directories is the root. */
static int narrow_within(const struct profile *ours, const struct resolve_context *context,
                         struct access_map *map, struct err *err)
{
    AUTO(strv_done) struct strv roots = {0};
    struct resolve_context whole = *context;

    strv_push(&roots, context->within);
    strv_push_all(&roots, context->workspace_roots + context->canonical_roots);
    whole.workspace_roots = strv_view(&roots);
    whole.canonical_roots = 0;
    return narrow_by(ours, &whole, map, err);
}

int profile_resolve_narrowed(const struct profile *ours, const struct profile *theirs,
                             const struct resolve_context *context, struct access_map *ret,
                             struct err *err)
{
    AUTO(access_map_done) struct access_map map = {0};

    if (profile_resolve(ours, context, &map, err) ||
        (context->within && narrow_within(ours, context, &map, err)) ||
        (theirs && narrow_by(theirs, context, &map, err)))
        return -1;
    map.is_narrowed = theirs && theirs->network == NETWORK_RESTRICTED;
    *ret = map;
    map = (struct access_map){0};
    return 0;
}

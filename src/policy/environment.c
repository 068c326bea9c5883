/* See environment.h.
 *
 * The one idea: every variable that there is or that is asked for becomes a candidate with a rank
 * (a later layer outranks an earlier one); after one sort by name and rank, the first candidate of
 * each name is the one that counts, and why it is kept or dropped is a property of it. So the cost
 * is one sort plus patterns times names, and the report comes for free.
 *
 *     layers, weakest first:  inherited   `set`   thread id   sandbox markers
 *
 * Invariants: include_only is asked of inherited and set variables, the reserved names of all but
 * the markers, which are ours. */
#include "policy/environment.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Codex has the same list for Unix. */
static const char *const core_names[] = {"PATH", "SHELL",  "TMPDIR",   "TEMP",    "TMP", "HOME",
                                         "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER"};

/* The first three are those of Codex. */
static const char *const default_excludes[] = {"*KEY*", "*SECRET*", "*TOKEN*", "*PASSWORD*",
                                               "*CREDENTIAL*"};

/* What lets a command into Cordon itself, or names its helper. */
static const char *const reserved_names[] = {"CORDON_TOKEN", "CORDON_BEARER_TOKEN",
                                             "CORDON_LINUX_SANDBOX_EXE"};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const struct environment_policy default_policy;

struct candidate {
    char *name;
    const char *value; /* borrowed */
    size_t rank;
    enum environment_reason reason;
    const char *pattern; /* borrowed */
};

struct candidates {
    struct candidate *items;
    size_t len;
    size_t cap;
};

void environment_policy_done(struct environment_policy *policy)
{
    strv_done(&policy->exclude);
    strv_done(&policy->include_only);
    strv_done(&policy->set);
    *policy = (struct environment_policy){0};
}

void environment_policy_copy(const struct environment_policy *policy,
                             struct environment_policy *ret)
{
    *ret = (struct environment_policy){.inherit = policy->inherit, .defaults = policy->defaults};
    strv_push_all(&ret->exclude, strv_view(&policy->exclude));
    strv_push_all(&ret->include_only, strv_view(&policy->include_only));
    strv_push_all(&ret->set, strv_view(&policy->set));
}

void environment_report_done(struct environment_report *report)
{
    for (size_t i = 0; i < report->len; i++) {
        free(report->notes[i].name);
        free(report->notes[i].pattern);
    }
    free(report->notes);
    *report = (struct environment_report){0};
}

bool environment_reason_is_drop(enum environment_reason reason)
{
    return reason > ENVIRONMENT_ADDED;
}

const char *environment_reason_name(enum environment_reason reason)
{
    static const char *const names[] = {
        [ENVIRONMENT_INHERITED] = "inherited", [ENVIRONMENT_SET] = "set",
        [ENVIRONMENT_PRESET] = "preset",       [ENVIRONMENT_ADDED] = "added",
        [ENVIRONMENT_NOT_CORE] = "not-core",   [ENVIRONMENT_DEFAULT_EXCLUDE] = "default-exclude",
        [ENVIRONMENT_EXCLUDE] = "exclude",     [ENVIRONMENT_NOT_INCLUDED] = "not-included",
        [ENVIRONMENT_RESERVED] = "reserved",
    };

    return names[reason];
}

bool environment_is_reserved(const char *name)
{
    for (size_t i = 0; i < LENGTH(reserved_names); i++)
        if (str_eq(reserved_names[i], name))
            return true;
    return false;
}

static void candidates_done(struct candidates *list)
{
    for (size_t i = 0; i < list->len; i++)
        free(list->items[i].name);
    free(list->items);
}

static struct candidate *candidates_add(struct candidates *list, char *name, const char *value,
                                        enum environment_reason reason)
{
    struct candidate *candidate;

    list->items = alloc_grow(list->items, list->len, &list->cap, sizeof *list->items);
    candidate = &list->items[list->len];
    *candidate =
        (struct candidate){.name = name, .value = value, .rank = list->len++, .reason = reason};
    return candidate;
}

/* Adds a "NAME=value"; NULL when it is something else. */
static struct candidate *candidates_add_pair(struct candidates *list, const char *pair,
                                             enum environment_reason reason)
{
    const char *equals = strchr(pair, '=');

    if (!equals || equals == pair)
        return NULL;
    return candidates_add(list, alloc_strn(pair, (size_t)(equals - pair)), equals + 1, reason);
}

/* The first of `len` patterns that matches, or NULL. */
static const char *find_pattern(const char *const *patterns, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++)
        if (str_match_nocase(patterns[i], name))
            return patterns[i];
    return NULL;
}

static const char *find_pattern_in(const struct strv *patterns, const char *name)
{
    return find_pattern((const char *const *)patterns->items, patterns->len, name);
}

/* What `inherit` and the excludes say about one inherited variable. */
static void judge_inherited(const struct environment_policy *policy, struct candidate *candidate)
{
    const char *name = candidate->name;

    if (policy->inherit == ENVIRONMENT_NONE ||
        (policy->inherit == ENVIRONMENT_CORE &&
         !find_pattern(core_names, LENGTH(core_names), name))) {
        candidate->reason = ENVIRONMENT_NOT_CORE;
        return;
    }
    if (policy->defaults == ENVIRONMENT_DEFAULTS_ON &&
        (candidate->pattern = find_pattern(default_excludes, LENGTH(default_excludes), name)))
        candidate->reason = ENVIRONMENT_DEFAULT_EXCLUDE;
    else if ((candidate->pattern = find_pattern_in(&policy->exclude, name)))
        candidate->reason = ENVIRONMENT_EXCLUDE;
}

/* `include_only`, and the reserved names. */
static void judge_all(const struct environment_policy *policy, struct candidates *list)
{
    for (size_t i = 0; i < list->len; i++) {
        struct candidate *candidate = &list->items[i];

        if (environment_reason_is_drop(candidate->reason))
            continue;
        if (policy->include_only.len && candidate->reason != ENVIRONMENT_ADDED &&
            candidate->reason != ENVIRONMENT_PRESET &&
            !find_pattern_in(&policy->include_only, candidate->name))
            candidate->reason = ENVIRONMENT_NOT_INCLUDED;
        if (environment_is_reserved(candidate->name))
            candidate->reason = ENVIRONMENT_RESERVED;
    }
}

static int candidate_compare(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;
    int order = strcmp(a->name, b->name);

    if (order)
        return order;
    return a->rank > b->rank ? -1 : 1;
}

/* Without a network nothing gets better by being tried again: npm would wait for a minute before it says
 * so. What runs on the command's own localhost is reached all the same, so nothing is switched off. */
static const char *const hurry[] = {
    "BUNDLE_RETRY=0",    "CARGO_NET_RETRY=0",          "PIP_RETRIES=0",
    "UV_HTTP_RETRIES=0", "npm_config_fetch_retries=0",
};

/* A host that no rule allows does not get better either, but one that is allowed may: npm tries as often as ever, and
 * waits a second each time, where it would wait for more than a minute. (It fails when the least of its waits is more
 * than the most: so that one is left alone.) */
static const char *const hurry_proxied[] = {
    "npm_config_fetch_retry_factor=1",
    "npm_config_fetch_retry_mintimeout=1000",
};

/* Of a variable that names a proxy; NO_PROXY names what wants none. */
static bool is_proxy_name(const char *name)
{
    static const char *const patterns[] = {"*_PROXY"};

    return find_pattern(patterns, LENGTH(patterns), name) && !str_match_nocase("NO_PROXY", name);
}

static bool has_name(char *const *env, const char *name)
{
    const size_t len = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return true;
    return false;
}

void environment_withheld(char *const *base, char *const *env, struct strv *ret)
{
    for (; base && *base; base++) {
        AUTO_FREE char *name = alloc_strn(*base, strcspn(*base, "="));

        if (find_pattern(default_excludes, LENGTH(default_excludes), name) &&
            !environment_is_reserved(name) && !has_name(env, name))
            strv_push(ret, name);
    }
}

void environment_proxies(char *const *env, struct strv *ret)
{
    for (; env && *env; env++) {
        const char *value = strchr(*env, '=');
        AUTO_FREE char *name = value ? alloc_strn(*env, (size_t)(value - *env)) : NULL;

        if (name && is_proxy_name(name))
            strv_push(ret, value + 1);
    }
}

/* Programs work without knowing of the proxy; those that were told of another one would insist on it, which is out of
 * reach, and whose name may hold a password. What there is of localhost is the command's own. */
static void rename_proxies(struct candidates *list)
{
    bool is_renamed = false;

    for (size_t i = 0; i < list->len; i++) {
        struct candidate *candidate = &list->items[i];

        if (candidate->reason != ENVIRONMENT_INHERITED || !strchr(candidate->value, ':') ||
            !is_proxy_name(candidate->name))
            continue;
        candidate->value = str_starts(candidate->value, "socks")     ? "socks5h://" PROXY_AT
                           : strstr(candidate->value, "://") != NULL ? "http://" PROXY_AT
                                                                     : PROXY_AT;
        candidate->reason = ENVIRONMENT_ADDED;
        is_renamed = true;
    }
    if (!is_renamed)
        return;
    candidates_add_pair(list, "NO_PROXY=" NO_PROXY_FOR, ENVIRONMENT_ADDED);
    candidates_add_pair(list, "no_proxy=" NO_PROXY_FOR, ENVIRONMENT_ADDED);
}

static void add_hurry(enum network_access network, struct candidates *list)
{
    for (size_t i = 0; network == NETWORK_RESTRICTED && i < LENGTH(hurry); i++)
        candidates_add_pair(list, hurry[i], ENVIRONMENT_ADDED);
    for (size_t i = 0; network == NETWORK_PROXIED && i < LENGTH(hurry_proxied); i++)
        candidates_add_pair(list, hurry_proxied[i], ENVIRONMENT_ADDED);
}

static void add_network(const struct environment_request *request, struct candidates *list)
{
    static const char *const bindings[2][2] = {
        {"CORDON_NETWORK_ALLOW_LOCAL_BINDING=0", "CODEX_NETWORK_ALLOW_LOCAL_BINDING=0"},
        {"CORDON_NETWORK_ALLOW_LOCAL_BINDING=1", "CODEX_NETWORK_ALLOW_LOCAL_BINDING=1"}};

    if (request->network == NETWORK_RESTRICTED) {
        candidates_add_pair(list, "CORDON_SANDBOX_NETWORK_DISABLED=1", ENVIRONMENT_ADDED);
        candidates_add_pair(list, "CODEX_SANDBOX_NETWORK_DISABLED=1", ENVIRONMENT_ADDED);
    }
    if (request->network != NETWORK_PROXIED || request->sandbox != ENVIRONMENT_SANDBOXED)
        return;
    rename_proxies(list);
    candidates_add_pair(list, "CORDON_NETWORK_PROXY_ACTIVE=1", ENVIRONMENT_ADDED);
    candidates_add_pair(list, "CODEX_NETWORK_PROXY_ACTIVE=1", ENVIRONMENT_ADDED);
    for (size_t i = 0; i < 2; i++)
        candidates_add_pair(list, bindings[request->allows_local_binding][i], ENVIRONMENT_ADDED);
}

void environment_build(const struct environment_request *request, struct strv *ret_env,
                       struct environment_report *ret_report)
{
    const struct environment_policy *policy = request->policy ? request->policy : &default_policy;
    AUTO(candidates_done) struct candidates list = {0};
    struct environment_report report = {0};
    size_t len = 0;

    if (request->sandbox == ENVIRONMENT_SANDBOXED)
        add_hurry(request->network, &list);
    /* Of two variables with the same name, getenv() sees the first: later ones get a lower rank by
     * being added earlier. */
    while (request->base && request->base[len])
        len++;
    while (len) {
        struct candidate *candidate =
            candidates_add_pair(&list, request->base[--len], ENVIRONMENT_INHERITED);

        if (candidate)
            judge_inherited(policy, candidate);
    }
    for (char *const *pair = request->presets; pair && *pair; pair++)
        candidates_add_pair(&list, *pair, ENVIRONMENT_PRESET);
    for (size_t i = 0; i < policy->set.len; i++)
        candidates_add_pair(&list, policy->set.items[i], ENVIRONMENT_SET);
    if (request->thread_id)
        candidates_add(&list, alloc_str("CODEX_THREAD_ID"), request->thread_id, ENVIRONMENT_ADDED);
    judge_all(policy, &list);
    if (request->sandbox == ENVIRONMENT_SANDBOXED)
        candidates_add_pair(&list, "CORDON_SANDBOX=linux", ENVIRONMENT_ADDED);
    add_network(request, &list);
    if (list.len)
        qsort(list.items, list.len, sizeof *list.items, candidate_compare);
    *ret_env = (struct strv){0};
    for (size_t i = 0; i < list.len; i++) {
        const struct candidate *candidate = &list.items[i];

        if (i && str_eq(candidate->name, list.items[i - 1].name))
            continue; /* the first of each name counts */
        if (!environment_reason_is_drop(candidate->reason))
            strv_pushf(ret_env, "%s=%s", candidate->name, candidate->value);
        if (!ret_report)
            continue;
        report.notes = alloc_grow(report.notes, report.len, &report.cap, sizeof *report.notes);
        report.notes[report.len++] =
            (struct environment_note){.name = alloc_str(candidate->name),
                                      .reason = candidate->reason,
                                      .pattern = alloc_str(candidate->pattern)};
    }
    if (ret_report)
        *ret_report = report;
}

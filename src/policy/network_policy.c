/* See network_policy.h.
 *
 * The one idea: a decision is a fold over the rules, each of which fits a request or does not, and the proxy,
 * `cordon explain` and the remedies all come from it. There is no index: profiles have tens of rules, and a
 * connection costs more than a walk over thousands.
 *
 * A look-up (port 0) knows neither port nor protocol. What allows fits it when it could fit any connection to the
 * host; what denies, only when it would fit all of them. */
#include "policy/network_policy.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "policy/network_hook.h"

#include <stdlib.h>
#include <string.h>

enum { HTTPS_PORT = 443 };

const char *const network_protocol_words[] = {"http", "https", "socks5_tcp", "socks5_udp", NULL};
const char *const network_verdict_words[] = {"allow", "ask", "deny", NULL};
const char *const network_mode_words[] = {"full", "limited", NULL};

static const struct {
    const char *word;
    const char *header;
} reasons[NETWORK_REASONS] = {
    [NETWORK_REASON_NONE] = {"", ""},
    [NETWORK_NOT_ALLOWED] = {"not_allowed", "blocked-by-allowlist"},
    [NETWORK_NOT_ALLOWED_LOCAL] = {"not_allowed_local", "blocked-by-allowlist"},
    [NETWORK_DENIED] = {"denied", "blocked-by-denylist"},
    [NETWORK_METHOD_NOT_ALLOWED] = {"method_not_allowed", "blocked-by-method-policy"},
    [NETWORK_MITM_HOOK_DENIED] = {"mitm_hook_denied", "blocked-by-mitm-hook"},
    [NETWORK_MITM_REQUIRED] = {"mitm_required", "blocked-by-mitm-required"},
    [NETWORK_POLICY_DENIED] = {"policy_denied", "blocked-by-policy"},
    [NETWORK_PROXY_DISABLED] = {"proxy_disabled", "blocked-by-policy"},
    [NETWORK_UNIX_SOCKET_UNSUPPORTED] = {"unix_socket_unsupported", "blocked-by-policy"},
};

const char *network_reason_word(enum network_reason reason)
{
    return reasons[reason].word;
}

const char *network_reason_header(enum network_reason reason)
{
    return reasons[reason].header;
}

enum network_reason network_reason_parse(const char *word)
{
    int i = NETWORK_NOT_ALLOWED;

    while (i < NETWORK_REASONS && !str_eq(reasons[i].word, word))
        i++;
    return (enum network_reason)i;
}

enum network_protocol network_protocol_of_port(uint16_t port)
{
    return port == 80 ? NETWORK_HTTP : port == 443 ? NETWORK_HTTPS : NETWORK_SOCKS5_TCP;
}

/* --- the rules --- */

void network_policy_done(struct network_policy *policy)
{
    for (size_t i = 0; i < policy->rules_len; i++)
        free(policy->rules[i].origin);
    free(policy->rules);
    if (policy->hooks)
        network_hooks_done(policy->hooks);
    free(policy->hooks);
    *policy = (struct network_policy){0};
}

void network_policy_copy(const struct network_policy *policy, struct network_policy *ret)
{
    *ret = *policy;
    ret->rules = NULL;
    ret->rules_cap = 0;
    if (policy->hooks) {
        ret->hooks = alloc_zero(1, sizeof *ret->hooks);
        network_hooks_copy(policy->hooks, ret->hooks);
    }
    if (!policy->rules_len)
        return;
    ret->rules_cap = policy->rules_len;
    ret->rules = alloc_zero(ret->rules_cap, sizeof *ret->rules);
    for (size_t i = 0; i < policy->rules_len; i++) {
        ret->rules[i] = policy->rules[i];
        ret->rules[i].origin = alloc_str(policy->rules[i].origin);
    }
}

bool network_policy_asks(const struct network_policy *policy)
{
    for (size_t i = 0; i < policy->rules_len; i++)
        if (policy->rules[i].verdict == NETWORK_ASK)
            return true;
    return policy->asks;
}

bool network_policy_is_given(const struct network_policy *policy)
{
    return policy->rules_len || policy->host_ports_len || policy->mode != NETWORK_MODE_FULL ||
           policy->allow_local_binding || policy->hooks;
}

bool network_policy_ends_tls(const struct network_policy *policy)
{
    return policy->hooks || policy->mode == NETWORK_MODE_LIMITED;
}

static bool hooks_equal(const struct network_hooks *a, const struct network_hooks *b)
{
    AUTO_JSON json_t *one = a ? network_hooks_to_json(a) : NULL;
    AUTO_JSON json_t *other = b ? network_hooks_to_json(b) : NULL;

    return !a == !b && (!a || json_equal(one, other));
}

static bool is_same(const struct network_rule *a, const struct network_rule *b)
{
    return a->port == b->port && a->protocols == b->protocols &&
           a->pattern.kind == b->pattern.kind && str_eq(a->pattern.host.text, b->pattern.host.text);
}

bool network_policy_has(const struct network_policy *policy, const struct network_rule *rule)
{
    for (size_t i = 0; i < policy->rules_len; i++)
        if (is_same(&policy->rules[i], rule) && policy->rules[i].verdict == rule->verdict)
            return true;
    return false;
}

bool network_policy_equal(const struct network_policy *a, const struct network_policy *b)
{
    if (a->rules_len != b->rules_len || a->mode != b->mode || a->asks != b->asks ||
        a->allow_local_binding != b->allow_local_binding ||
        a->no_upstream_proxy != b->no_upstream_proxy || a->host_ports_len != b->host_ports_len ||
        memcmp(a->host_ports, b->host_ports, a->host_ports_len * sizeof *a->host_ports) != 0 ||
        !publications_equal(&a->publications, &b->publications) || !hooks_equal(a->hooks, b->hooks))
        return false;
    for (size_t i = 0; i < a->rules_len; i++)
        if (!is_same(&a->rules[i], &b->rules[i]) || a->rules[i].verdict != b->rules[i].verdict ||
            !str_eq(a->rules[i].origin, b->rules[i].origin))
            return false;
    return true;
}

int network_policy_add(struct network_policy *policy, const struct network_rule *rule,
                       struct err *err)
{
    struct network_rule *added;

    if (rule->verdict == NETWORK_DENY && rule->pattern.kind == HOST_PATTERN_ANY && !rule->port &&
        !rule->protocols)
        return err_set(err, ERR_INVALID,
                       "\"*\" denies nothing that is not denied anyway: what no rule allows is");
    for (size_t i = 0; i < policy->rules_len; i++) {
        struct network_rule *there = &policy->rules[i];

        if (!is_same(there, rule))
            continue;
        if (there->verdict < rule->verdict) {
            free(there->origin);
            there->origin = alloc_str(rule->origin ? rule->origin : "permission profile");
            there->verdict = rule->verdict;
        }
        return 0;
    }
    if (policy->rules_len == NETWORK_RULES_MAX)
        return err_set(err, ERR_LIMIT, "more than %d rules about hosts", NETWORK_RULES_MAX);
    policy->rules =
        alloc_grow(policy->rules, policy->rules_len, &policy->rules_cap, sizeof *policy->rules);
    added = &policy->rules[policy->rules_len++];
    *added = *rule;
    added->origin = alloc_str(rule->origin ? rule->origin : "permission profile");
    return 0;
}

int network_policy_add_text(struct network_policy *policy, const char *text,
                            enum network_verdict verdict, const char *origin, struct err *err)
{
    struct network_rule rule = {.verdict = verdict, .origin = (char *)origin};

    return host_pattern_parse(text, &rule.pattern, &rule.port, err) ||
                   network_policy_add(policy, &rule, err)
               ? -1
               : 0;
}

int network_policy_add_host_port(struct network_policy *policy, uint16_t port, struct err *err)
{
    for (size_t i = 0; i < policy->host_ports_len; i++)
        if (policy->host_ports[i] == port)
            return 0;
    if (policy->host_ports_len == NETWORK_HOST_PORTS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d ports of the host", NETWORK_HOST_PORTS_MAX);
    policy->host_ports[policy->host_ports_len++] = port;
    return 0;
}

int network_policy_add_credential(struct network_policy *policy, const char *name,
                                  char *const *hosts, const char *origin, struct err *err)
{
    if (!policy->hooks)
        policy->hooks = alloc_zero(1, sizeof *policy->hooks);
    if (network_hooks_add_credential(policy->hooks, name, hosts, err))
        return -1;
    for (; *hosts; hosts++) {
        struct network_rule rule = {
            .port = HTTPS_PORT, .verdict = NETWORK_ALLOW, .origin = (char *)(uintptr_t)origin};
        uint16_t port;

        if (host_pattern_parse(*hosts, &rule.pattern, &port, err) ||
            network_policy_add(policy, &rule, err))
            return -1;
    }
    return 0;
}

int network_policy_add_credential_text(struct network_policy *policy, const char *text,
                                       const char *origin, struct err *err)
{
    const size_t len = strcspn(text, "=");
    AUTO_FREE char *name = alloc_strn(text, len);
    AUTO(strv_done) struct strv hosts = {0};

    if (!text[len])
        return err_set(err, ERR_INVALID, "\"%s\": should be NAME=HOST[,HOST]", text);
    for (const char *at = text + len + 1; *at; at += strspn(at, ",")) {
        size_t host_len = strcspn(at, ",");

        strv_push_take(&hosts, alloc_strn(at, host_len));
        at += host_len;
    }
    return network_policy_add_credential(policy, name, strv_view(&hosts), origin, err);
}

int network_policy_merge(struct network_policy *policy, const struct network_policy *from,
                         struct err *err)
{
    for (size_t i = 0; i < from->rules_len; i++)
        if (network_policy_add(policy, &from->rules[i], err))
            return -1;
    for (size_t i = 0; i < from->host_ports_len; i++)
        if (network_policy_add_host_port(policy, from->host_ports[i], err))
            return -1;
    if (from->hooks && !policy->hooks)
        policy->hooks = alloc_zero(1, sizeof *policy->hooks);
    if (from->hooks)
        network_hooks_add(policy->hooks, from->hooks);
    return publications_merge(&policy->publications, &from->publications, err);
}

bool network_policy_takes_port(const struct network_policy *policy, uint16_t port)
{
    for (size_t i = 0; i < policy->host_ports_len; i++)
        if (policy->host_ports[i] == port)
            return true;
    return false;
}

/* --- the decision --- */

static bool rule_fits(const struct network_rule *rule, const struct network_request *request)
{
    if (!host_pattern_matches(&rule->pattern, request->host))
        return false;
    if (!request->port)
        return rule->verdict != NETWORK_DENY || (!rule->port && !rule->protocols);
    return (!rule->port || rule->port == request->port) &&
           (!rule->protocols || rule->protocols & 1u << request->protocol);
}

static size_t labels_of(const char *name)
{
    size_t count = 1;

    while ((name = strchr(name, '.'))) {
        name++;
        count++;
    }
    return count;
}

/* More is more specific. */
static size_t rank_of(const struct network_rule *rule)
{
    const char *name = rule->pattern.host.text;
    size_t rank = 0;

    if (rule->pattern.kind == HOST_PATTERN_EXACT)
        rank = NET_HOST_NAME_MAX * 2;
    else if (rule->pattern.kind != HOST_PATTERN_ANY)
        rank = labels_of(name) * 2 + (rule->pattern.kind == HOST_PATTERN_BELOW);
    return rank * 4 + (rule->port ? 2 : 0) + (rule->protocols ? 1 : 0);
}

/* By the IPv4 address, too, that one of IPv6 leads to where there is NAT64 or 6to4. */
static const struct network_rule *find_deny(const struct network_policy *policy,
                                            const struct network_request *request)
{
    struct network_request leads = *request;
    struct net_address address;
    struct net_host host;

    if (request->host->kind == NET_HOST_IS_ADDRESS &&
        net_address_leads_to_v4(&request->host->address, &address)) {
        net_host_from_address(&address, &host);
        leads.host = &host;
    }
    for (size_t i = 0; i < policy->rules_len; i++)
        if (policy->rules[i].verdict == NETWORK_DENY &&
            (rule_fits(&policy->rules[i], request) || rule_fits(&policy->rules[i], &leads)))
            return &policy->rules[i];
    return NULL;
}

/* Of a look-up: another rule, which asks, is more specific for all the ports and protocols that this one allows. */
static bool is_hidden(const struct network_policy *policy, const struct network_request *request,
                      const struct network_rule *rule)
{
    const unsigned protocols = rule->protocols ? rule->protocols : ~0u;

    for (size_t i = 0; i < policy->rules_len; i++) {
        const struct network_rule *other = &policy->rules[i];

        if (other->verdict == NETWORK_ASK && rule_fits(other, request) &&
            rank_of(other) >= rank_of(rule) && (!other->port || other->port == rule->port) &&
            (!other->protocols || !(protocols & ~other->protocols)))
            return true;
    }
    return false;
}

/* That allows or asks. Of a look-up one that allows counts before all that ask, as it could be for what they are not about. */
static const struct network_rule *find_most_specific(const struct network_policy *policy,
                                                     const struct network_request *request)
{
    const struct network_rule *best = NULL;

    for (size_t i = 0; i < policy->rules_len; i++) {
        const struct network_rule *rule = &policy->rules[i];
        const bool is_lookup = !request->port;

        if (rule->verdict == NETWORK_DENY || !rule_fits(rule, request) ||
            (is_lookup && rule->verdict == NETWORK_ALLOW && is_hidden(policy, request, rule)))
            continue;
        if (best && is_lookup && rule->verdict != best->verdict)
            best = rule->verdict == NETWORK_ALLOW ? rule : best;
        else if (!best || rank_of(rule) > rank_of(best) ||
                 (rank_of(rule) == rank_of(best) && rule->verdict > best->verdict))
            best = rule;
    }
    return best;
}

static bool names_local(const struct net_host *host)
{
    return host->kind == NET_HOST_IS_NAME ? net_host_name_is_local(host->text)
                                          : net_address_special(&host->address) != NULL;
}

static bool is_host_port(const struct network_policy *policy, const struct network_request *request)
{
    return net_host_is_loopback(request->host) &&
           (request->port ? network_policy_takes_port(policy, request->port)
                          : policy->host_ports_len > 0);
}

/* A rule that is about just this literal. */
static bool is_named(const struct network_rule *rule)
{
    return rule && rule->pattern.kind == HOST_PATTERN_EXACT;
}

static enum network_reason judge_method(const struct network_policy *policy,
                                        const struct network_request *request)
{
    static const char *const methods[] = {"GET", "HEAD", "OPTIONS"};

    if (policy->mode == NETWORK_MODE_FULL || !request->port)
        return NETWORK_REASON_NONE;
    if (request->protocol == NETWORK_HTTPS && !request->is_looked_into)
        return NETWORK_MITM_REQUIRED;
    if (request->protocol != NETWORK_HTTP && request->protocol != NETWORK_HTTPS)
        return NETWORK_METHOD_NOT_ALLOWED;
    for (size_t i = 0; request->method && i < sizeof methods / sizeof *methods; i++)
        if (str_eq(request->method, methods[i]))
            return NETWORK_REASON_NONE;
    return request->method ? NETWORK_METHOD_NOT_ALLOWED : NETWORK_REASON_NONE;
}

/* Steps 1 to 3. */
static struct network_decision decide_host(const struct network_policy *policy,
                                           const struct network_request *request)
{
    const struct network_rule *rule = find_deny(policy, request);

    if (rule)
        return (struct network_decision){NETWORK_DENY, NETWORK_DENIED, rule};
    if (is_host_port(policy, request))
        return (struct network_decision){NETWORK_ALLOW, NETWORK_REASON_NONE, NULL};
    rule = find_most_specific(policy, request);
    if (!policy->allow_local_binding && names_local(request->host) && !is_named(rule))
        return (struct network_decision){NETWORK_DENY, NETWORK_NOT_ALLOWED_LOCAL, NULL};
    if (rule && rule->verdict == NETWORK_ALLOW)
        return (struct network_decision){NETWORK_ALLOW, NETWORK_REASON_NONE, rule};
    return (struct network_decision){rule || policy->asks ? NETWORK_ASK : NETWORK_DENY,
                                     NETWORK_NOT_ALLOWED, rule};
}

void network_policy_decide(const struct network_policy *policy,
                           const struct network_request *request, struct network_decision *ret)
{
    struct network_decision decision = decide_host(policy, request);
    enum network_reason method;

    /* nobody is asked for what a yes would not open */
    if (decision.verdict != NETWORK_DENY && (method = judge_method(policy, request))) {
        decision.verdict = NETWORK_DENY;
        decision.reason = method;
    }
    *ret = decision;
}

enum network_reason network_policy_judge_address(const struct network_policy *policy,
                                                 const struct network_request *request,
                                                 const struct net_address *address, bool is_own)
{
    struct net_host literal;
    struct network_request by_number = *request;
    const char *special = net_address_special(address);

    if (!special && is_own)
        special = "of this machine";
    net_host_from_address(address, &literal);
    by_number.host = &literal;
    if (find_deny(policy, &by_number))
        return NETWORK_DENIED;
    if (!special || policy->allow_local_binding)
        return NETWORK_REASON_NONE;
    if (request->host->kind == NET_HOST_IS_ADDRESS) {
        if (!net_address_equal(&request->host->address, address))
            return NETWORK_NOT_ALLOWED_LOCAL;
    } else if (!names_local(request->host) || !str_eq(special, "loopback")) {
        return NETWORK_NOT_ALLOWED_LOCAL;
    }
    return is_host_port(policy, request) || is_named(find_most_specific(policy, request))
               ? NETWORK_REASON_NONE
               : NETWORK_NOT_ALLOWED_LOCAL;
}

/* --- remedies --- */

static char *remedy_of_local(const struct network_request *request)
{
    const struct net_host *host = request->host;
    const char *special =
        host->kind == NET_HOST_IS_ADDRESS ? net_address_special(&host->address) : NULL;
    AUTO_FREE char *name = net_host_format(host->text, request->port);

    if (net_host_is_loopback(host) && request->port)
        return alloc_strf("Out here that is the host itself: allow it with --host-port %u.",
                          request->port);
    if (host->kind == NET_HOST_IS_ADDRESS)
        return alloc_strf("It is not of the public internet (%s): allow just it with "
                          "--allow-host %s.",
                          special ? special : "this machine's own", name);
    if (names_local(host))
        return alloc_strf("It is not of the public internet: allow just it with --allow-host %s.",
                          name);
    return alloc_strf("It has an address that is not of the public internet: allow those, too, "
                      "with --allow-local-binding.");
}

char *network_policy_remedy(const struct network_request *request,
                            const struct network_decision *decision)
{
    AUTO_FREE char *name = net_host_format(request->host->text, request->port);

    if (decision->verdict == NETWORK_ALLOW)
        return NULL;
    if (decision->reason == NETWORK_NOT_ALLOWED || decision->reason == NETWORK_POLICY_DENIED)
        return alloc_strf("Allow it with --allow-host %s.", name);
    if (decision->reason == NETWORK_NOT_ALLOWED_LOCAL)
        return remedy_of_local(request);
    if (decision->reason == NETWORK_DENIED && decision->rule)
        return alloc_strf("A rule denies it (%s): take that away.", decision->rule->origin);
    if (decision->reason == NETWORK_MITM_REQUIRED)
        return alloc_str("It is reached by https alone, which is looked into: hooks of the profile "
                         "are about it, or its mode is \"limited\".");
    if (decision->reason == NETWORK_MITM_HOOK_DENIED)
        return alloc_str("No hook of the profile is about this request: mitm.hooks says which "
                         "methods and paths may be asked for there.");
    if (decision->reason == NETWORK_METHOD_NOT_ALLOWED)
        return alloc_str("Limited mode lets GET, HEAD and OPTIONS through: allow the others with "
                         "mode = \"full\" in the network table of the profile.");
    return NULL;
}

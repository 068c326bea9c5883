/* See rule_layers.h. The project is the directory that the user's own configuration says is trusted;
 * without that word, what a repository brings along rules nothing. */
#include "workspace/rule_layers.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "policy/config/config.h"
#include "policy/network_policy.h"
#include "rules/rules.h"

#include <stdlib.h>
#include <string.h>

static void rules_auto(struct rules **rules)
{
    rules_free(*rules);
}

void rule_layers_find(const struct rule_owner *owner, const char *dir, struct rules_dirs *ret,
                      char **ret_project)
{
    *ret_project = config_trusted_project(owner->config, dir);
    *ret = (struct rules_dirs){
        .user = owner->dir,
        .project = *ret_project,
        .administrator = RULES_ADMINISTRATOR,
        .home = owner->home,
    };
}

struct rules *rule_layers_load(const struct rule_owner *owner, const char *dir)
{
    struct rules *rules = rules_new();
    AUTO_FREE char *project = NULL;
    struct rules_dirs places;

    rule_layers_find(owner, dir, &places, &project);
    rules_load_layers(rules, &places);
    rules_seal(rules);
    return rules;
}

static int add_host(const struct host_rule *host, struct network_policy *policy, struct err *err)
{
    static const enum network_protocol protocols[] = {
        [RULE_PROTOCOL_HTTP] = NETWORK_HTTP,
        [RULE_PROTOCOL_HTTPS] = NETWORK_HTTPS,
        [RULE_PROTOCOL_SOCKS5_TCP] = NETWORK_SOCKS5_TCP,
        [RULE_PROTOCOL_SOCKS5_UDP] = NETWORK_SOCKS5_UDP,
    };
    AUTO_FREE char *origin = alloc_strf("%s:%u network_rule", host->file, host->place.line);
    struct network_rule rule = {
        .protocols = 1u << protocols[host->protocol],
        .verdict = host->verdict == RULE_FORBIDDEN ? NETWORK_DENY
                   : host->verdict == RULE_PROMPT  ? NETWORK_ASK
                                                   : NETWORK_ALLOW,
        .origin = origin,
    };

    if (net_host_parse(host->host, strlen(host->host), &rule.pattern.host, err) ||
        network_policy_add(policy, &rule, err))
        return err_wrap(err, "%s", origin);
    return 0;
}

int rule_layers_add_hosts(const struct rule_owner *owner, const char *dir,
                          struct network_policy *policy, struct err *err)
{
    AUTO(rules_auto) struct rules *rules = rule_layers_load(owner, dir);
    const struct rules_problem *problems;
    const struct host_rule *hosts;
    size_t len;

    problems = rules_problems(rules, &len);
    if (len)
        return err_set(err, ERR_INVALID,
                       "%s (it could deny hosts, so that none is allowed until this is put right)",
                       problems[0].text);
    hosts = rules_hosts(rules, &len);
    for (size_t i = 0; i < len; i++)
        if (add_host(&hosts[i], policy, err))
            return -1;
    return 0;
}

char *rule_layers_file(const struct rule_owner *owner)
{
    return owner->dir ? alloc_strf("%s/" RULES_DIR "/" RULES_DEFAULT, owner->dir) : NULL;
}

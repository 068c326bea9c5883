/* The JSON of network_policy.h. What people write (`domains`) and what is written of it (`rules`) are read alike; only
 * who reads it for the proxy takes secrets along. */
#include "policy/network_policy.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "policy/network_hook.h"

static int read_verdict(const struct json_at *at, enum network_verdict *ret, struct err *err)
{
    size_t word;

    if (json_at_word(at, network_verdict_words, &word, err))
        return -1;
    *ret = (enum network_verdict)word;
    return 0;
}

static int read_flag(const struct json_at *object, const char *key, bool *ret, struct err *err)
{
    struct json_at at = json_at_field(object, key);

    return json_at_is_given(&at) ? json_at_bool(&at, ret, err) : 0;
}

static int read_domains(const struct json_at *at, const char *origin, struct network_policy *ret,
                        struct err *err)
{
    const char *key;
    json_t *value;

    if (!json_at_is_given(at))
        return 0;
    if (json_at_object(at, err))
        return -1;
    json_object_foreach((json_t *)at->value, key, value)
    {
        struct json_at item = json_at_field(at, key);
        struct err why;
        enum network_verdict verdict;

        if (read_verdict(&item, &verdict, err))
            return -1;
        if (network_policy_add_text(ret, key, verdict, origin, &why))
            return json_at_fail(&item, err, "%s", why.msg);
    }
    return 0;
}

static int read_protocols(const struct json_at *at, unsigned *ret, struct err *err)
{
    size_t len;

    if (!json_at_is_given(at))
        return 0;
    if (json_at_array(at, &len, err))
        return -1;
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(at, i);
        size_t word;

        if (json_at_word(&item, network_protocol_words, &word, err))
            return -1;
        *ret |= 1u << word;
    }
    if (!len)
        return json_at_fail(at, err, "should name a protocol, or be left out for all of them");
    return 0;
}

static int read_port(const struct json_at *at, uint16_t *ret, struct err *err)
{
    int64_t port;

    if (json_at_integer(at, 1, UINT16_MAX, &port, err))
        return -1;
    *ret = (uint16_t)port;
    return 0;
}

static int read_rule(const struct json_at *at, const char *origin, struct network_policy *ret,
                     struct err *err)
{
    static const char *const keys[] = {"pattern", "port", "protocols", "decision", "origin", NULL};
    struct json_at pattern = json_at_field(at, keys[0]);
    struct json_at port = json_at_field(at, keys[1]);
    struct json_at protocols = json_at_field(at, keys[2]);
    struct json_at decision = json_at_field(at, keys[3]);
    struct json_at from = json_at_field(at, keys[4]);
    struct network_rule rule = {0};
    struct err why;
    const char *text;
    uint16_t port_of_text;

    if (json_at_object(at, err) || json_at_check_keys(at, keys, NULL, err) ||
        json_at_string(&pattern, &text, err) || read_verdict(&decision, &rule.verdict, err) ||
        read_protocols(&protocols, &rule.protocols, err) ||
        (json_at_is_given(&port) && read_port(&port, &rule.port, err)) ||
        (json_at_is_given(&from) && json_at_string(&from, &origin, err)))
        return -1;
    if (host_pattern_parse(text, &rule.pattern, &port_of_text, &why))
        return json_at_fail(&pattern, err, "%s", why.msg);
    if (port_of_text && rule.port)
        return json_at_fail(&port, err, "the pattern has a port, too");
    rule.port = port_of_text ? port_of_text : rule.port;
    rule.origin = (char *)origin;
    return network_policy_add(ret, &rule, &why) ? json_at_fail(at, err, "%s", why.msg) : 0;
}

static int read_rules(const struct json_at *at, const char *origin, struct network_policy *ret,
                      struct err *err)
{
    size_t len;

    if (json_at_list(at, &len, err))
        return -1;
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(at, i);

        if (read_rule(&item, origin, ret, err))
            return -1;
    }
    return 0;
}

int network_policy_read_host_ports(const struct json_at *at, struct network_policy *ret,
                                   struct err *err)
{
    size_t len;

    if (json_at_list(at, &len, err))
        return -1;
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(at, i);
        struct err why;
        uint16_t port;

        if (read_port(&item, &port, err))
            return -1;
        if (network_policy_add_host_port(ret, port, &why))
            return json_at_fail(&item, err, "%s", why.msg);
    }
    return 0;
}

int network_policy_from_json(const json_t *value, const char *origin, struct network_policy *ret,
                             struct err *err)
{
    static const char *const keys[] = {
        "mode",       "domains", "rules", "asks", "allow_local_binding", "allow_upstream_proxy",
        "host_ports", "publish", NULL};
    AUTO(network_policy_done) struct network_policy policy = {0};
    struct json_at at = json_at_root(value);
    struct json_at mode = json_at_field(&at, "mode");
    struct json_at domains = json_at_field(&at, "domains");
    struct json_at rules = json_at_field(&at, "rules");
    struct json_at ports = json_at_field(&at, "host_ports");
    struct json_at publish = json_at_field(&at, "publish");
    bool allow_upstream_proxy = true;
    size_t mode_word = NETWORK_MODE_FULL;

    if (json_at_object(&at, err) || json_at_check_keys(&at, keys, NULL, err) ||
        (json_at_is_given(&mode) && json_at_word(&mode, network_mode_words, &mode_word, err)) ||
        read_domains(&domains, origin, &policy, err) || read_rules(&rules, origin, &policy, err) ||
        network_policy_read_host_ports(&ports, &policy, err) ||
        publications_read(&publish, &policy.publications, err) ||
        read_flag(&at, "asks", &policy.asks, err) ||
        read_flag(&at, "allow_local_binding", &policy.allow_local_binding, err) ||
        read_flag(&at, "allow_upstream_proxy", &allow_upstream_proxy, err))
        return -1;
    policy.mode = (enum network_mode)mode_word;
    policy.no_upstream_proxy = !allow_upstream_proxy;
    *ret = policy;
    policy = (struct network_policy){0};
    return 0;
}

int network_policy_parse(const char *text, size_t len, struct network_policy *ret, struct err *err)
{
    AUTO_JSON json_t *value = json_parse(text, len, err);
    AUTO_JSON json_t *mitm = value ? json_incref(json_object_get(value, "mitm")) : NULL;
    struct json_at at = json_at_root(mitm);
    AUTO(network_policy_done) struct network_policy policy = {0};

    if (mitm) {
        json_object_del(value, "mitm");
        policy.hooks = alloc_zero(1, sizeof *policy.hooks);
        if (network_hooks_from_json(&at, policy.hooks, err))
            return err_wrap(err, "mitm");
    }
    if (!value || network_policy_from_json(value, NULL, ret, err))
        return -1;
    ret->hooks = TAKE_PTR(policy.hooks);
    return 0;
}

static json_t *rule_to_json(const struct network_rule *rule)
{
    AUTO_FREE char *pattern = host_pattern_format(&rule->pattern, 0);
    json_t *value = json_pack("{s:s, s:s}", "pattern", pattern, "decision",
                              network_verdict_words[rule->verdict]);

    if (rule->port)
        json_object_set_new(value, "port", json_integer(rule->port));
    if (rule->protocols) {
        json_t *protocols = json_array();

        for (int i = 0; i < NETWORK_PROTOCOLS; i++)
            if (rule->protocols & 1u << i)
                json_array_append_new(protocols, json_string(network_protocol_words[i]));
        json_object_set_new(value, "protocols", protocols);
    }
    json_object_set_new(value, "origin", json_lossy(rule->origin));
    return value;
}

json_t *network_policy_to_json(const struct network_policy *policy)
{
    json_t *rules = json_array();
    json_t *value =
        json_pack("{s:s, s:o}", "mode", network_mode_words[policy->mode], "rules", rules);

    for (size_t i = 0; i < policy->rules_len; i++)
        json_array_append_new(rules, rule_to_json(&policy->rules[i]));
    if (policy->asks)
        json_object_set_new(value, "asks", json_true());
    if (policy->allow_local_binding)
        json_object_set_new(value, "allow_local_binding", json_true());
    if (policy->no_upstream_proxy)
        json_object_set_new(value, "allow_upstream_proxy", json_false());
    if (policy->host_ports_len) {
        json_t *ports = json_array();

        for (size_t i = 0; i < policy->host_ports_len; i++)
            json_array_append_new(ports, json_integer(policy->host_ports[i]));
        json_object_set_new(value, "host_ports", ports);
    }
    if (policy->publications.len)
        json_object_set_new(value, "publish", publications_to_json(&policy->publications));
    return value;
}

json_t *network_policy_to_proxy(const struct network_policy *policy)
{
    json_t *value = network_policy_to_json(policy);

    if (policy->hooks)
        json_object_set_new(value, "mitm", network_hooks_to_json(policy->hooks));
    return value;
}

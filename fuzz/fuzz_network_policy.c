/* Policies of hosts in JSON, and their decisions. Beside memory errors: what is written is read as the same, it decides
 * the same, and a rule that denies is never outdone. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "policy/network_policy.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_decision(const struct network_policy *policy, const struct network_policy *again,
                           const struct network_request *request)
{
    struct network_decision decision;
    struct network_decision other;
    enum network_reason judged;
    AUTO_FREE char *remedy = NULL;

    network_policy_decide(policy, request, &decision);
    network_policy_decide(again, request, &other);
    check(decision.verdict == other.verdict && decision.reason == other.reason);
    check((decision.verdict == NETWORK_ALLOW) == (decision.reason == NETWORK_REASON_NONE));
    check(decision.verdict != NETWORK_ASK || !decision.rule ||
          decision.rule->verdict == NETWORK_ASK);
    remedy = network_policy_remedy(request, &decision);
    check(decision.verdict == NETWORK_ALLOW ? !remedy : remedy != NULL);
    for (size_t i = 0; i < policy->rules_len; i++) {
        const struct network_rule *rule = &policy->rules[i];

        if (rule->verdict == NETWORK_DENY && host_pattern_matches(&rule->pattern, request->host) &&
            !rule->port && !rule->protocols)
            check(decision.reason == NETWORK_DENIED);
    }
    if (request->host->kind != NET_HOST_IS_ADDRESS || decision.verdict == NETWORK_DENY)
        return;
    judged = network_policy_judge_address(policy, request, &request->host->address, false);
    check(judged == NETWORK_REASON_NONE);
}

static void check_all(const struct network_policy *policy, const struct network_policy *again)
{
    static const char *const hosts[] = {"example.com", "a.example.com", "localhost",
                                        "10.0.0.1",    "192.0.33.8",    "::1",
                                        "2606::1",     "127.0.0.1",     "64:ff9b::a00:1"};
    static const uint16_t ports[] = {0, 80, 443, 5432};

    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        for (size_t j = 0; j < sizeof ports / sizeof *ports; j++) {
            struct net_host host;
            struct err err;

            check(net_host_parse(hosts[i], strlen(hosts[i]), &host, &err) == 0);
            check_decision(
                policy, again,
                &(struct network_request){.host = &host,
                                          .port = ports[j],
                                          .protocol = network_protocol_of_port(ports[j])});
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(network_policy_done) struct network_policy policy = {0};
    AUTO(network_policy_done) struct network_policy again = {0};
    AUTO_JSON json_t *json = NULL;
    AUTO_JSON json_t *json_again = NULL;
    struct err err;

    if (network_policy_parse((const char *)data, size, &policy, &err))
        return 0;
    json = network_policy_to_json(&policy);
    check(network_policy_from_json(json, NULL, &again, &err) == 0);
    json_again = network_policy_to_json(&again);
    check(json_equal(json, json_again));
    check_all(&policy, &again);
    return 0;
}

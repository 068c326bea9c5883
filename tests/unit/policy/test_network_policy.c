/* host and network_policy (tests/cases/network). A case has any of:
 *
 *     hosts      {"as written": "what it means"}, with its port
 *     refused    {"as written": "part of the message"}
 *     addresses  {"address": the word that keeps it from being public, or null}
 *     patterns   {"pattern": {"host": does it match}}
 *     policy     the JSON of a policy; with "out": what is written of it, with "error": what is wrong with it
 *     decide     of the policy: [{host, protocol, method, is_looked_into; verdict, reason, rule, remedy}]
 *     judge      of the policy: [{host, address, reason}] */
#include "../base/cases.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "policy/network_policy.h"

#include <string.h>

static void check_hosts(const json_t *hosts)
{
    const char *text;
    json_t *wanted;

    json_object_foreach((json_t *)hosts, text, wanted)
    {
        struct net_host host;
        struct net_host again;
        struct err err;
        uint16_t port;
        AUTO_FREE char *out = NULL;

        if (net_host_parse_port(text, &host, &port, &err))
            fail_msg("%s: %s", text, err.msg);
        out = net_host_format(host.text, port);
        assert_string_equal(out, json_string_value(wanted));
        assert_int_equal(net_host_parse(host.text, strlen(host.text), &again, &err), 0);
        assert_string_equal(again.text, host.text);
        assert_int_equal(again.kind, host.kind);
    }
}

static void check_refused(const json_t *refused)
{
    const char *text;
    json_t *wanted;

    json_object_foreach((json_t *)refused, text, wanted)
    {
        struct net_host host;
        struct host_pattern pattern;
        struct err err = {0};
        uint16_t port;

        if (net_host_parse_port(text, &host, &port, &err) == 0)
            fail_msg("%s is taken for %s", text, host.text);
        assert_int_equal(err.code, ERR_INVALID);
        assert_contains(err.msg, json_string_value(wanted));
        if (!strchr(text, '*'))
            assert_int_equal(host_pattern_parse(text, &pattern, &port, &err), -1);
    }
}

static void check_addresses(const json_t *addresses)
{
    const char *text;
    json_t *wanted;

    json_object_foreach((json_t *)addresses, text, wanted)
    {
        struct net_host host;
        struct err err;
        const char *word;

        if (net_host_parse(text, strlen(text), &host, &err))
            fail_msg("%s: %s", text, err.msg);
        assert_int_equal(host.kind, NET_HOST_IS_ADDRESS);
        word = net_address_special(&host.address);
        if (!word != json_is_null(wanted) || (word && !str_eq(word, json_string_value(wanted))))
            fail_msg("%s is %s", text, word ? word : "public");
    }
}

static void check_pattern(const char *text, const json_t *hosts)
{
    struct host_pattern pattern;
    struct err err;
    uint16_t port;
    const char *host_text;
    json_t *wanted;
    AUTO_FREE char *out = NULL;

    if (host_pattern_parse(text, &pattern, &port, &err))
        fail_msg("%s: %s", text, err.msg);
    out = host_pattern_format(&pattern, port);
    assert_string_equal(out, text);
    json_object_foreach((json_t *)hosts, host_text, wanted)
    {
        struct net_host host;

        if (net_host_parse(host_text, strlen(host_text), &host, &err))
            fail_msg("%s: %s", host_text, err.msg);
        if (host_pattern_matches(&pattern, &host) != json_is_true(wanted))
            fail_msg("%s and %s", text, host_text);
    }
}

static void read_request(const json_t *item, struct net_host *host, struct network_request *ret)
{
    const char *protocol = case_string_or(item, "protocol", NULL);
    struct err err;

    *ret = (struct network_request){.host = host,
                                    .method = case_string_or(item, "method", NULL),
                                    .is_looked_into =
                                        json_is_true(json_object_get(item, "is_looked_into"))};
    if (net_host_parse_port(case_string(item, "host"), host, &ret->port, &err))
        fail_msg("%s", err.msg);
    ret->protocol = network_protocol_of_port(ret->port);
    for (int i = 0; protocol && i < NETWORK_PROTOCOLS; i++)
        if (str_eq(protocol, network_protocol_words[i]))
            ret->protocol = (enum network_protocol)i;
}

static void check_decision(const struct network_policy *policy, json_t *item)
{
    static const char *const keys[] = {"host",           "protocol", "method",
                                       "is_looked_into", "verdict",  "reason",
                                       "rule",           "remedy",   NULL};
    struct net_host host;
    struct network_request request;
    struct network_decision decision;
    AUTO_FREE char *remedy = NULL;
    AUTO_JSON json_t *got = json_deep_copy(item);

    case_check_keys(item, keys);
    read_request(item, &host, &request);
    network_policy_decide(policy, &request, &decision);
    remedy = network_policy_remedy(&request, &decision);
    json_object_set_new(got, "verdict", json_string(network_verdict_words[decision.verdict]));
    if (decision.reason)
        json_object_set_new(got, "reason", json_string(network_reason_word(decision.reason)));
    if (json_object_get(item, "rule"))
        json_object_set_new(got, "rule", json_string(decision.rule ? decision.rule->origin : ""));
    if (json_object_get(item, "remedy"))
        json_object_set_new(got, "remedy", json_string(remedy ? remedy : ""));
    assert_json_equal(got, item);
    assert_int_equal(network_reason_parse(network_reason_word(decision.reason)),
                     decision.reason ? decision.reason : NETWORK_REASONS);
}

static void check_judged(const struct network_policy *policy, const json_t *item)
{
    struct net_host host;
    struct net_host address;
    struct network_request request;
    const char *text = case_string(item, "address");
    struct err err;
    enum network_reason reason;

    read_request(item, &host, &request);
    assert_int_equal(net_host_parse(text, strlen(text), &address, &err), 0);
    reason = network_policy_judge_address(policy, &request, &address.address,
                                          json_is_true(json_object_get(item, "own")));
    if (!str_eq(network_reason_word(reason), case_string(item, "reason")))
        fail_msg("%s at %s: \"%s\"", case_string(item, "host"), text, network_reason_word(reason));
}

static void check_policy(const json_t *json)
{
    const char *wanted_error = case_string_or(json, "error", NULL);
    AUTO(network_policy_done) struct network_policy policy = {0};
    AUTO(network_policy_done) struct network_policy copy = {0};
    AUTO(network_policy_done) struct network_policy again = {0};
    AUTO_JSON json_t *out = NULL;
    AUTO_JSON json_t *out_again = NULL;
    struct err err = {0};
    size_t i;
    json_t *item;

    if (network_policy_from_json(json_object_get(json, "policy"), "the case", &policy, &err)) {
        assert_non_null(wanted_error);
        assert_contains(err.msg, wanted_error);
        return;
    }
    assert_null(wanted_error);
    out = network_policy_to_json(&policy);
    if (json_object_get(json, "out"))
        assert_json_equal(out, json_object_get(json, "out"));
    if (network_policy_from_json(out, NULL, &again, &err))
        fail_msg("what was written is not read: %s", err.msg);
    network_policy_copy(&again, &copy);
    out_again = network_policy_to_json(&copy);
    assert_json_equal(out_again, out);
    assert_true(network_policy_equal(&policy, &copy));
    copy.asks = !copy.asks;
    assert_false(network_policy_equal(&policy, &copy));
    copy.asks = !copy.asks;
    json_array_foreach(json_object_get(json, "decide"), i, item) check_decision(&copy, item);
    json_array_foreach(json_object_get(json, "judge"), i, item) check_judged(&copy, item);
}

static void network_case(void **state)
{
    static const char *const keys[] = {"why", "hosts", "refused", "addresses", "patterns", "policy",
                                       "out", "error", "decide",  "judge",     NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const char *pattern;
    json_t *hosts;

    case_check_keys(json, keys);
    check_hosts(json_object_get(json, "hosts"));
    check_refused(json_object_get(json, "refused"));
    check_addresses(json_object_get(json, "addresses"));
    json_object_foreach(json_object_get(json, "patterns"), pattern, hosts)
        check_pattern(pattern, hosts);
    if (json_object_get(json, "policy"))
        check_policy(json);
}

/* No byte but those of names and addresses is let through, wherever it stands. */
static void bytes_of_no_host_are_refused(void **state)
{
    for (int c = 0; c < 256; c++) {
        static const char plain[] =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
        char text[] = "ex?mple.com";
        struct net_host host;
        struct err err;

        text[2] = (char)c;
        assert_int_equal(net_host_parse(text, sizeof text - 1, &host, &err),
                         c && strchr(plain, c) ? 0 : -1);
    }
}

static void a_nul_ends_nothing(void **state)
{
    static const char *const texts[] = {"example.com\0.evil.test", "127.0.0.1\0", "\0example.com"};
    static const size_t lens[] = {22, 10, 12};
    struct net_host host;
    struct err err;

    for (size_t i = 0; i < 3; i++)
        assert_int_equal(net_host_parse(texts[i], lens[i], &host, &err), -1);
}

static void too_many_rules_are_refused(void **state)
{
    AUTO(network_policy_done) struct network_policy policy = {0};
    struct err err;

    for (int i = 0; i < NETWORK_RULES_MAX; i++) {
        AUTO_FREE char *name = alloc_strf("h%d.test", i);

        assert_int_equal(network_policy_add_text(&policy, name, NETWORK_ALLOW, NULL, &err), 0);
    }
    assert_int_equal(network_policy_add_text(&policy, "h7.test", NETWORK_DENY, NULL, &err), 0);
    assert_int_equal(network_policy_add_text(&policy, "one.more", NETWORK_ALLOW, NULL, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest more[] = {
        cmocka_unit_test(bytes_of_no_host_are_refused),
        cmocka_unit_test(a_nul_ends_nothing),
        cmocka_unit_test(too_many_rules_are_refused),
    };

    return cases_run("network", network_case, more, sizeof more / sizeof *more);
}

/* See process_network.h. The proxy is asked nothing that is not in its policy; what no rule is about it asks, and the client
 * answers, if it said for how long that may take. No client, an error, and an answer that makes no sense are a no. */
#include "server/process/process_network.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "base/str.h"
#include "job/job.h"
#include "rpc/rpc.h"
#include "sandbox/sandbox.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/methods.gen.h"
#include "server/process/rpc_process.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ID_MAX = 256, PROXY_FLAGS = 6 };

#define REVIEW_MS_MAX (UINT64_C(24) * 60 * 60 * 1000)

static const char origin[] = "networkProxy";

/* In the order of enum network_protocol. */
static const char *const protocols[] = {"http", "httpsConnect", "socks5Tcp", "socks5Udp"};

void process_network_done(struct process_network *network)
{
    network_policy_done(&network->policy);
}

/* --- the call --- */

static int refuse_if_given(const struct json_at *at, const char *key, const char *why,
                           struct err *err)
{
    struct json_at field = json_at_field(at, key);
    const json_t *value = field.value;
    bool is_empty = !json_at_is_given(&field) || json_is_false(value) ||
                    (json_is_object(value) && !json_object_size(value)) ||
                    (json_is_array(value) && !json_array_size(value));

    return is_empty ? 0 : json_at_fail(&field, err, "%s", why);
}

/* {"example.com": "allow"}, as in the configuration. */
static int read_domains(const struct json_at *proxy, struct network_policy *ret, struct err *err)
{
    static const enum network_verdict verdicts[] = {NETWORK_ALLOW, NETWORK_DENY};
    static const char *const words[] = {"allow", "deny", NULL};
    struct json_at domains = json_at_field(proxy, "domains");
    const char *pattern;
    json_t *value;

    if (!json_at_is_given(&domains))
        return 0;
    if (json_at_object(&domains, err))
        return -1;
    json_object_foreach((json_t *)domains.value, pattern, value)
    {
        struct json_at at = json_at_field(&domains, pattern);
        struct err why;
        size_t word;

        if (json_at_word(&at, words, &word, err))
            return -1;
        if (network_policy_add_text(ret, pattern, verdicts[word], origin, &why))
            return json_at_fail(&at, err, "%s", why.msg);
    }
    return 0;
}

/* All seven have to be there, as in the original. Where it listens is our business; sockets of the host are not the proxy's, and
 * no command gets to one by it. */
static int read_proxy(const struct json_at *proxy, struct process_network *ret, struct err *err)
{
    static const char *const keys[] = {"enabled",
                                       "enableSocks5",
                                       "enableSocks5Udp",
                                       "allowUpstreamProxy",
                                       "dangerouslyAllowAllUnixSockets",
                                       "allowLocalBinding",
                                       "mode",
                                       "domains",
                                       "unixSockets",
                                       "proxyUrl",
                                       "socksUrl",
                                       "dangerouslyAllowNonLoopbackProxy",
                                       "mitm",
                                       NULL};
    struct json_at mode = json_at_field(proxy, "mode");
    bool flags[PROXY_FLAGS];
    size_t word;

    if (json_at_object(proxy, err) || json_at_check_keys(proxy, keys, NULL, err))
        return -1;
    for (int i = 0; i < PROXY_FLAGS; i++) {
        struct json_at flag = json_at_field(proxy, keys[i]);

        if (json_at_bool(&flag, &flags[i], err))
            return -1;
    }
    if (!flags[0])
        return json_at_fail(proxy, err, "has to be enabled");
    ret->has_socks = flags[1];
    ret->policy.no_upstream_proxy = !flags[3];
    ret->policy.allow_local_binding = flags[5];
    if (json_at_word(&mode, network_mode_words, &word, err))
        return -1;
    ret->policy.mode = (enum network_mode)word;
    return refuse_if_given(proxy, "mitm",
                           "is not to be had here: say hooks in a profile of this host", err) ||
                   read_domains(proxy, &ret->policy, err)
               ? -1
               : 0;
}

static int read_review(const struct json_at *at, const char *process_id,
                       struct process_network *ret, struct err *err)
{
    struct json_at timeout = json_at_field(at, "policyDecisionTimeoutMs");
    size_t len = strlen(process_id);
    uint64_t ms;

    if (!json_at_is_given(&timeout))
        return 0;
    if (!json_is_integer(timeout.value) || json_integer_value(timeout.value) <= 0)
        return json_at_fail(&timeout, err, "has to be a number of milliseconds from 1 on");
    if (!len || len > ID_MAX)
        return err_set(err, ERR_INVALID,
                       "processId has to have 1 to %d bytes where decisions are asked for", ID_MAX);
    ms = (uint64_t)json_integer_value(timeout.value);
    ret->review_ns = (ms < REVIEW_MS_MAX ? ms : REVIEW_MS_MAX) * CLOCK_NS_PER_MS;
    ret->policy.asks = true;
    return 0;
}

static int read_given(const struct json_at *at, const char *process_id, struct process_network *ret,
                      struct err *err)
{
    static const char *const keys[] = {
        "proxy", "auditMetadata", "executionId", "policyDecisionTimeoutMs", "credentialProviders",
        NULL};
    struct json_at proxy = json_at_field(at, "proxy");

    ret->is_given = ret->has_proxy = true;
    return json_at_object(at, err) || json_at_check_keys(at, keys, NULL, err) ||
                   refuse_if_given(
                       at, "credentialProviders",
                       "is not to be had here: say credentials in a profile of this host", err) ||
                   read_proxy(&proxy, ret, err) || read_review(at, process_id, ret, err)
               ? -1
               : 0;
}

/* A proxy of the client's own, on the host's loopback: the only way out leads there. */
static int read_ports(const struct process_start_params *params, struct process_network *ret,
                      struct err *err)
{
    struct json_at root = json_at_root(params->managed_network);
    struct json_at ports = json_at_field(&root, "loopbackPorts");

    ret->is_given = true;
    if (!json_at_is_given(&ports))
        return err_set(
            err, ERR_UNSUPPORTED,
            "a managed network is wanted (enforceManagedNetwork), and neither networkProxy nor "
            "managedNetwork.loopbackPorts says where it leads");
    return network_policy_read_host_ports(&ports, &ret->policy, err);
}

int process_network_read(const struct process_start_params *params, struct process_network *ret,
                         struct err *err)
{
    const json_t *given = params->network_proxy;
    struct json_at at = json_at_root(given);

    if (given && !json_is_null(given))
        return read_given(&at, params->process_id, ret, err) ? err_wrap(err, "networkProxy") : 0;
    return params->enforce_managed_network ? read_ports(params, ret, err) : 0;
}

/* --- the client is asked, and told --- */

struct review {
    struct job_asker asker; /* first */
    struct job_asker *inner;
    struct rpc_process *process;
    struct list calls;
};

struct review_call {
    struct list link;
    struct review *review;
    struct rpc_peer *peer;
    int64_t call;
    uint64_t id; /* the proxy's */
    char *host;
    unsigned port;
    enum network_protocol protocol;
};

/* What is decided, and by whom. */
struct review_decision {
    const char *host;
    unsigned port;
    enum network_protocol protocol;
    bool is_yes, is_by_client;
    const char *reason;
};

static void tell(const struct review *review, const struct review_decision *decision)
{
    const struct client *client = review->process->owner->client;
    AUTO_JSON json_t *params = NULL;
    struct timespec now;
    struct tm utc;
    char seconds[32] = "";
    char stamp[48];

    if (!client)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &utc))
        strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(stamp, sizeof stamp, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
    params = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:b}", "processId",
                       review->process->id, "timestamp", stamp, "scope", "domain", "decision",
                       decision->is_yes ? "allow" : "deny", "source",
                       decision->is_by_client ? "decider" : "baseline_policy", "reason",
                       decision->reason, "protocol", protocols[decision->protocol], "host",
                       decision->host, "port", (int)decision->port, "method", "none", "client",
                       "unknown", "policyOverride", decision->is_by_client && decision->is_yes);
    rpc_peer_notify(client->peer, "network/policyDecision", params);
}

static void call_free(struct review_call *call)
{
    list_remove(&call->link);
    free(call->host);
    free(call);
}

/* {"decision": {"type": "allow"}}; all else is a no. */
static bool is_yes(const struct rpc_message *message)
{
    const json_t *decision = message && message->kind == RPC_RESULT
                                 ? json_object_get(message->result, "decision")
                                 : NULL;
    const char *type = json_string_value(json_object_get(decision, "type"));

    return type && str_eq(type, "allow");
}

static void on_answer(void *data, const struct rpc_message *message)
{
    struct review_call *call = data;
    struct review *review = call->review;
    const struct review_decision decision = {
        .host = call->host,
        .port = call->port,
        .protocol = call->protocol,
        .is_yes = is_yes(message),
        .is_by_client = true,
        .reason =
            network_reason_word(is_yes(message) ? NETWORK_NOT_ALLOWED : NETWORK_POLICY_DENIED),
    };
    struct job *job = review->asker.job;

    job_answer(job, call->id, decision.is_yes ? LAUNCH_YES : LAUNCH_NO);
    tell(review, &decision);
    call_free(call);
    job_set_held(job, !list_is_empty(&review->calls));
}

static void ask(struct review *review, const struct launch_fact *fact)
{
    const struct launch_connect *connect = fact->connect;
    const struct client *client = review->process->owner->client;
    AUTO_JSON json_t *params = NULL;
    struct review_call *call;

    if (!client || !review->process->review_ns) {
        job_answer(review->asker.job, fact->id, LAUNCH_NO);
        return;
    }
    params = json_pack("{s:s, s:{s:s, s:s, s:i}}", "processId", review->process->id, "request",
                       "protocol", protocols[connect->protocol], "host", connect->host, "port",
                       (int)connect->port);
    if (!params) { /* a host that is no text */
        job_answer(review->asker.job, fact->id, LAUNCH_NO);
        return;
    }
    call = alloc_zero(1, sizeof *call);
    *call = (struct review_call){.review = review,
                                 .peer = client->peer,
                                 .id = fact->id,
                                 .host = alloc_str(connect->host),
                                 .port = connect->port,
                                 .protocol = connect->protocol};
    list_append(&review->calls, &call->link);
    call->call =
        rpc_peer_call(call->peer, &(struct rpc_call){.method = "network/policyRequest",
                                                     .params = params,
                                                     .timeout_ns = review->process->review_ns,
                                                     .on_answer = on_answer,
                                                     .data = call});
    job_set_held(review->asker.job, true);
}

static void drop_calls(struct review *review, uint64_t id)
{
    struct review_call *call, *following;

    list_for_each_safe(call, following, &review->calls, link)
        if (!id || call->id == id) {
            rpc_peer_call_cancel(call->peer, call->call);
            call_free(call);
        }
}

static void on_connect(struct review *review, const struct launch_fact *fact)
{
    const struct launch_connect *connect = fact->connect;
    /* by a rule: what the client allows is told already */
    const bool is_allowed = fact->kind == FACT_DONE && connect->port && *connect->rule;
    const struct review_decision by_rules = {
        .host = connect->host,
        .port = connect->port,
        .protocol = connect->protocol,
        .is_yes = is_allowed,
        .reason = is_allowed ? "allow" : connect->reason,
    };

    if (fact->kind == FACT_ASKED) {
        ask(review, fact);
    } else if (fact->kind == FACT_WITHDRAWN) {
        drop_calls(review, fact->id);
        job_set_held(review->asker.job, !list_is_empty(&review->calls));
    } else if (is_allowed ||
               (fact->kind == FACT_DENIED && *connect->host && !connect->has_failed &&
                !str_eq(connect->reason, network_reason_word(NETWORK_POLICY_DENIED)))) {
        tell(review, &by_rules);
    }
}

static void review_on_fact(struct job_asker *asker, const struct launch_fact *fact)
{
    struct review *review = (struct review *)asker;

    if (fact->connect) {
        on_connect(review, fact);
    } else if (review->inner) {
        review->inner->job = asker->job;
        review->inner->on_fact(review->inner, fact);
    } else if (fact->kind == FACT_ASKED) {
        job_answer(asker->job, fact->id, LAUNCH_NO);
    }
}

static void review_on_end(struct job_asker *asker)
{
    struct review *review = (struct review *)asker;

    drop_calls(review, 0);
    if (review->inner) {
        review->inner->job = asker->job;
        review->inner->on_end(review->inner);
    }
    job_set_held(asker->job, false);
}

static void review_free(struct job_asker *asker)
{
    struct review *review = (struct review *)asker;

    drop_calls(review, 0);
    if (review->inner)
        review->inner->free(review->inner);
    free(review);
}

struct job_asker *process_network_asker(struct rpc_process *process, struct job_asker *inner)
{
    struct review *review = alloc_zero(1, sizeof *review);

    review->asker =
        (struct job_asker){.on_fact = review_on_fact, .on_end = review_on_end, .free = review_free};
    review->inner = inner;
    review->process = process;
    return &review->asker;
}

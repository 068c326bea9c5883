/* Which hosts a command may reach when its network is proxied: the rules, and the decision. Pure: the proxy
 * asks it about every look-up and connection, and `cordon explain --host` by the same call.
 *
 *     struct network_policy policy = {0};            nothing is allowed
 *     network_policy_add(&policy, &rule, err), or network_policy_from_json()
 *     network_policy_decide(&policy, &request, &decision)      of a name, or a literal, before it is looked up
 *     network_policy_judge_address(&policy, &request, &address)       of each address that it has; and at dial
 *     network_policy_done(&policy)
 *
 * The order (that of Codex):
 *     1. a rule that denies wins over everything, and nobody is asked
 *     2. without allow_local_binding, names of the machine itself and addresses that are not public are refused,
 *        unless a rule allows that very literal (a wildcard does not); and a name is, of which any address is
 *        not public. Ports of the host that the command was given are no matter of this
 *     3. a rule that allows; none: it is a miss, which may be asked about
 *     4. in limited mode the method
 * Between rules that allow and those that ask the more specific decides: the pattern with more labels,
 * then the one with a port, then the one with a protocol; of equal ones the one that asks.
 *
 * A zeroed struct is a valid policy. */
#pragma once

#include "base/err.h"
#include "policy/host.h"
#include "policy/publication.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_at;
struct network_hooks;

enum network_protocol { NETWORK_HTTP, NETWORK_HTTPS, NETWORK_SOCKS5_TCP, NETWORK_SOCKS5_UDP };

enum { NETWORK_PROTOCOLS = 4, NETWORK_RULES_MAX = 4096, NETWORK_HOST_PORTS_MAX = 64 };

extern const char *const network_protocol_words[]; /* "http", "https", "socks5_tcp", "socks5_udp" */

/* That of a connection which the proxy was not told of, by its port: 80 is http, 443 https, all others
 * socks5_tcp. */
enum network_protocol network_protocol_of_port(uint16_t port);

enum network_verdict { NETWORK_ALLOW, NETWORK_ASK, NETWORK_DENY }; /* strictest last */

extern const char *const network_verdict_words[]; /* "allow", "ask", "deny" */

enum network_mode {
    NETWORK_MODE_FULL,
    NETWORK_MODE_LIMITED, /* GET, HEAD and OPTIONS alone */
};

extern const char *const network_mode_words[]; /* "full", "limited" */

struct network_rule {
    struct host_pattern pattern;
    uint16_t port;      /* 0: every port */
    unsigned protocols; /* bits 1u << enum network_protocol; 0: every protocol */
    enum network_verdict verdict;
    char *
        origin; /* who wrote it, for people: "config.toml:12", "--allow-host example.com"; never NULL in a policy */
};

struct network_policy {
    struct network_rule *rules; /* owned, with their origins */
    size_t rules_len;
    size_t rules_cap;
    enum network_mode mode;
    bool asks;                /* a miss may be asked about */
    bool allow_local_binding; /* addresses that are not public are as good as others */
    bool no_upstream_proxy;   /* what the host's own *_PROXY variables say does not count */
    uint16_t host_ports
        [NETWORK_HOST_PORTS_MAX]; /* of the host's loopback, which the command may reach */
    size_t host_ports_len;
    struct publications publications; /* ports of the command; of every network of its own */
    struct network_hooks
        *hooks; /* owned: what is done to requests (network_hook.h); NULL: nothing */
};

void network_policy_done(struct network_policy *policy);
void network_policy_copy(const struct network_policy *policy, struct network_policy *ret);

/* Origins count, too. */
bool network_policy_equal(const struct network_policy *a, const struct network_policy *b);

/* Has rules, or anything else that needs the proxy, as publications do not. */
bool network_policy_is_given(const struct network_policy *policy);

/* Somebody has to be asked about some hosts. */
bool network_policy_asks(const struct network_policy *policy);

/* Adds a copy; an origin of NULL becomes "permission profile". The same pattern, port and protocols again: the stricter
 * counts. "*" denies nothing ("*:25" does): ERR_INVALID, as too many are. */
int network_policy_add(struct network_policy *policy, const struct network_rule *rule,
                       struct err *err);

/* One that is the same, but for its origin. */
bool network_policy_has(const struct network_policy *policy, const struct network_rule *rule);

/* The rule that people write: PATTERN[:PORT]. */
int network_policy_add_text(struct network_policy *policy, const char *text,
                            enum network_verdict verdict, const char *origin, struct err *err);

/* Adds those of `from`, its host ports, publications, hooks and credentials. */
int network_policy_merge(struct network_policy *policy, const struct network_policy *from,
                         struct err *err);

/* A credential (network_hook.h), for whose hosts port 443 is opened. */
int network_policy_add_credential(struct network_policy *policy, const char *name,
                                  char *const *hosts, const char *origin, struct err *err);

/* As people write it: NAME=HOST[,HOST]. */
int network_policy_add_credential_text(struct network_policy *policy, const char *text,
                                       const char *origin, struct err *err);

int network_policy_add_host_port(struct network_policy *policy, uint16_t port, struct err *err);

/* What connects to this port of the command's localhost is not led there, but to the host. */
bool network_policy_takes_port(const struct network_policy *policy, uint16_t port);

/* --- the decision --- */

enum network_reason {
    NETWORK_REASON_NONE,        /* of what is allowed */
    NETWORK_NOT_ALLOWED,        /* no rule is about it */
    NETWORK_NOT_ALLOWED_LOCAL,  /* not of the public internet */
    NETWORK_DENIED,             /* a rule denies it */
    NETWORK_METHOD_NOT_ALLOWED, /* limited mode */
    NETWORK_MITM_HOOK_DENIED,
    NETWORK_MITM_REQUIRED,  /* limited mode: TLS that the proxy cannot look into */
    NETWORK_POLICY_DENIED,  /* who was asked said no */
    NETWORK_PROXY_DISABLED, /* there is no proxy any more */
    NETWORK_UNIX_SOCKET_UNSUPPORTED,
    NETWORK_REASONS
};

/* "not_allowed", ..., as results, audit and replies have them; "" for NETWORK_REASON_NONE. Static. */
const char *network_reason_word(enum network_reason reason);

/* NETWORK_REASONS when there is no such word. */
enum network_reason network_reason_parse(const char *word);

/* The value of the field `x-proxy-error`: "blocked-by-allowlist", ... Static. */
const char *network_reason_header(enum network_reason reason);

struct network_request {
    const struct net_host *host;
    uint16_t port; /* 0: a name is looked up; port and protocol are not known yet */
    enum network_protocol protocol;
    const char *method;  /* of HTTP; NULL: not known, or none */
    bool is_looked_into; /* https that the proxy ends, and so can judge by its method */
};

struct network_decision {
    enum network_verdict verdict;
    enum network_reason
        reason; /* NETWORK_ASK has NETWORK_NOT_ALLOWED, as what it is without a yes */
    const struct network_rule *rule; /* that decided, of the policy; NULL: none */
};

/* A look-up is allowed when any port and protocol could be. Names of the machine itself and literals too: what a
 * name resolves to is for network_policy_judge_address(). */
void network_policy_decide(const struct network_policy *policy,
                           const struct network_request *request, struct network_decision *ret);

/* Whether this address may be dialled for a request that was allowed (by rule, or by a yes): NETWORK_REASON_NONE,
 * NETWORK_NOT_ALLOWED_LOCAL, or NETWORK_DENIED by a rule about the address. One address of a name that may not
 * refuses all of them. `is_own`: this machine has it, and so listens there to itself alone, perhaps. */
enum network_reason network_policy_judge_address(const struct network_policy *policy,
                                                 const struct network_request *request,
                                                 const struct net_address *address, bool is_own);

/* What would allow it, as a sentence for people that names the flag ("Allow it with --allow-host example.com:443."); NULL for what is
 * allowed, or what nothing allows. Caller frees. */
char *network_policy_remedy(const struct network_request *request,
                            const struct network_decision *decision);

/* --- JSON, for the proxy, the wire and explain --- */

/* {"mode": "full", "domains": {"*.example.com:443": "allow"},
 *  "rules": [{"pattern": "example.com", "port": 443, "protocols": ["https"], "decision": "allow", "origin": "..."}],
 *  "asks": true, "allow_local_binding": true, "allow_upstream_proxy": false, "host_ports": [5432],
 *  "publish": ["127.0.0.1:8080:3000"]}
 * All of it may be missing. `domains` is what people write; it comes out as `rules`. Hooks and credentials are neither
 * read nor written: who sends a policy over a wire says nothing about secrets. Errors start with the JSON path. */
int network_policy_from_json(const json_t *value, const char *origin, struct network_policy *ret,
                             struct err *err);

/* An array of numbers; one that is missing has none. */
int network_policy_read_host_ports(const struct json_at *at, struct network_policy *ret,
                                   struct err *err);

/* The proxy ends TLS somewhere: of hosts with hooks or credentials, or of all in limited mode. */
bool network_policy_ends_tls(const struct network_policy *policy);

/* What the proxy is told: network_policy_to_json() with `mitm`, hooks and credentials with their secrets. */
json_t *network_policy_to_proxy(const struct network_policy *policy);

/* What network_policy_to_proxy() made, or any that has no `mitm`. */
int network_policy_parse(const char *text, size_t len, struct network_policy *ret, struct err *err);

/* New reference. network_policy_from_json() of it gives an equal policy, with its origins. */
json_t *network_policy_to_json(const struct network_policy *policy);

/* See facts.h. A look-up is a target whose port is 0. */
#include "proxy/facts.h"

#include "base/clock.h"
#include "base/str.h"
#include "proxy/command.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static bool send_fact(struct command *command, const struct proxy_fact *fact)
{
    return send(command->channel, fact, sizeof *fact, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void begin(struct proxy_fact *ret, enum proxy_fact_kind kind, const struct target *target)
{
    *ret = (struct proxy_fact){.kind = kind, .time_ns = clock_now_ns()};
    if (!target)
        return;
    ret->protocol = target->protocol;
    ret->port = target->port;
    ret->local_port = target->local_port;
    ret->is_look_up = target->port == 0;
    memcpy(ret->meant, target->meant.bytes, sizeof ret->meant);
    snprintf(ret->host, sizeof ret->host, "%s", target->host.text);
}

static void add(uint64_t *hash, const void *data, size_t len)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < len; i++)
        *hash = (*hash ^ bytes[i]) * UINT64_C(1099511628211); /* FNV-1a */
}

static uint64_t digest(const struct target *target, const char *reason)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    add(&hash, target->host.text, strlen(target->host.text));
    add(&hash, &target->port, sizeof target->port);
    add(&hash, &target->protocol, sizeof target->protocol);
    add(&hash, reason, strlen(reason));
    return hash;
}

static void send_count(struct command *command)
{
    struct facts *facts = &command->facts;
    struct proxy_fact fact;

    begin(&fact, PROXY_FACT_MORE, NULL);
    fact.count = facts->untold - facts->announced;
    if (send_fact(command, &fact))
        facts->announced = facts->untold;
}

static void count(struct command *command)
{
    struct facts *facts = &command->facts;

    if (facts->untold < UINT32_MAX)
        facts->untold++;
    if (facts->untold >= 2 * facts->announced)
        send_count(command);
}

static bool is_told(const struct facts *facts, uint64_t hash)
{
    for (unsigned i = 0; i < facts->told_len; i++)
        if (facts->told[i] == hash)
            return true;
    return false;
}

void facts_denied(struct command *command, const struct target *target, const char *reason,
                  const char *rule)
{
    struct facts *facts = &command->facts;
    uint64_t hash = digest(target, reason);
    struct proxy_fact fact;

    if (is_told(facts, hash))
        return;
    if (facts->told_len == PROXY_FACTS_MAX) {
        count(command);
        return;
    }
    begin(&fact, PROXY_FACT_DENIED, target);
    snprintf(fact.reason, sizeof fact.reason, "%s", reason);
    snprintf(fact.rule, sizeof fact.rule, "%s", rule ? rule : "");
    if (send_fact(command, &fact))
        facts->told[facts->told_len++] = hash;
    else
        count(command);
}

void facts_done(struct command *command, const struct target *target)
{
    const struct network_request request = {.host = &target->host,
                                            .port = target->port,
                                            .protocol = target->protocol,
                                            .is_looked_into = true};
    struct network_decision decision;
    struct proxy_fact fact;

    if (!command->traces)
        return;
    network_policy_decide(&command->policy, &request, &decision); /* by rules, not by an answer */
    begin(&fact, PROXY_FACT_DONE, target);
    if (decision.verdict == NETWORK_ALLOW && decision.rule)
        snprintf(fact.rule, sizeof fact.rule, "%s", decision.rule->origin);
    send_fact(command, &fact);
}

/* Half of what is told one by one is left for what is refused. */
void facts_failed(struct command *command, const struct target *target, const char *why)
{
    struct facts *facts = &command->facts;
    uint64_t hash = digest(target, why);
    struct proxy_fact fact;

    if (is_told(facts, hash) || facts->told_len >= PROXY_FACTS_MAX / 2)
        return;
    begin(&fact, PROXY_FACT_FAILED, target);
    snprintf(fact.reason, sizeof fact.reason, "%s", why);
    if (send_fact(command, &fact))
        facts->told[facts->told_len++] = hash;
}

bool facts_asked(struct command *command, const struct target *target, uint64_t id)
{
    struct proxy_fact fact;

    begin(&fact, PROXY_FACT_ASKED, target);
    fact.id = id;
    snprintf(fact.reason, sizeof fact.reason, "%s", network_reason_word(NETWORK_NOT_ALLOWED));
    return send_fact(command, &fact);
}

void facts_withdrawn(struct command *command, const struct target *target, uint64_t id)
{
    struct proxy_fact fact;

    begin(&fact, PROXY_FACT_WITHDRAWN, target);
    fact.id = id;
    send_fact(command, &fact);
}

void facts_end(struct command *command)
{
    if (command->facts.untold > command->facts.announced)
        send_count(command);
}

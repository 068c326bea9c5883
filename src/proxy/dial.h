/* A connection to what a command may reach: the name is resolved (freshly, or as it was a moment ago), each address judged once
 * more, and those that may be are tried in turn, until one takes it. */
#pragma once

#include "proxy/command.h"
#include "proxy/deadline.h"

struct dial;

enum dial_end {
    DIAL_CONNECTED,
    DIAL_NOT_ALLOWED, /* an address of it may not be reached: `reason` */
    DIAL_NO_NAME,     /* there is none such, or it has no address */
    DIAL_NO_ANSWER,   /* of the host's own resolver */
    DIAL_FAILED,      /* `error` of the last address */
    DIAL_TOO_LONG,
    DIAL_NO_UPSTREAM, /* the host's own proxy is not there */
    DIAL_UPSTREAM_REFUSES,
};

struct dial_result {
    enum dial_end end;
    int fd; /* of DIAL_CONNECTED: the callee's */
    int error;
    enum network_reason reason;
    const struct upstream *forwarder; /* the host's own proxy, which wants whole URLs; else NULL */
};

/* Why there is no server: of all ends but DIAL_CONNECTED and DIAL_NOT_ALLOWED. Static. */
const char *dial_failure(const struct dial_result *result);

/* network_policy_judge_address(), which this machine's own addresses are known to. */
enum network_reason dial_judge(const struct command *command, const struct network_request *request,
                               const struct net_address *address);

/* Never called before dial_start() has returned. */
typedef void dial_fn(void *data, const struct dial_result *result);

/* `name` is NULL for an address, and for a name of the machine itself. */
struct dial *dial_start(struct command *command, const struct target *target, struct name *name,
                        dial_fn *on_end, void *data);

/* NULL does nothing; of one that has not called back. */
void dial_cancel(struct dial *dial);

/* For the queues: connecting to any address, and to one while there is another. */
void dial_on_time(struct deadline *deadline);
void dial_on_attempt(struct deadline *deadline);

/* What a command is told to have tried: packets to the host (proxy_format.h). The host may be slow, and is never waited
 * for: what does not fit is counted, and the count told each time that it has doubled, and at the end. */
#pragma once

#include "proxy/proxy_format.h"

#include <stdbool.h>
#include <stdint.h>

struct command;
struct network_decision;
struct target;

struct facts {
    uint64_t told
        [PROXY_FACTS_MAX]; /* digests of what was refused or failed, so that a program that tries again is told once */
    unsigned told_len;
    uint32_t untold;
    uint32_t announced; /* of those */
};

/* `reason`: a word of network_reason_word(), or a sentence about a limit. `rule` may be NULL. */
void facts_denied(struct command *command, const struct target *target, const char *reason,
                  const char *rule);
void facts_done(struct command *command, const struct target *target); /* connected, or looked up */

/* What may be reached, and could not be: the program hears a reset, which does not say so. */
void facts_failed(struct command *command, const struct target *target, const char *why);

/* False: the host cannot be told, so nobody is asked. */
bool facts_asked(struct command *command, const struct target *target, uint64_t id);
void facts_withdrawn(struct command *command, const struct target *target, uint64_t id);

/* The last word. */
void facts_end(struct command *command);

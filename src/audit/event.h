/* The events that the audit log knows, and what is written of each. Environment values are never
 * part of one, output only as counts, and command lines without what looks like a secret
 * (redact.h). Every `..._body` gives a JSON object, a new reference.
 *
 *     begin        {"argv": [...], "cwd": "...", "profile": "...", "network": "...",
 *                   "sandbox": "auto"|"require"|"disabled", "face": "run"}; of a server also
 *                  "process": what its client calls it
 *     output       {"stdout_bytes": N, "stderr_bytes": N}
 *     asked        {"argv": [...], "reason": "..." or null, "covers": "..."}
 *     answered     {"decision": "approved", "by": "terminal"|"hook"|"session"|..., "rule": null}
 *     denied       {"operation": "write", "path": null, "host": null, "errno": null,
 *                   "evidence": "fact", "decided_by": null}
 *     retried      {"grant": "..."}
 *     patch-begin  {"cwd": "...", "patch_bytes": N}
 *     patch-end    {"applied": true, "reason": null}
 *     end          {"end": "exited", "exit_code": 0, "signal": 0, "wall_time_ns": N,
 *                   "reason": null}
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct json_t;

enum audit_event {
    AUDIT_BEGIN,
    AUDIT_OUTPUT,
    AUDIT_ASKED,
    AUDIT_ANSWERED,
    AUDIT_DENIED,
    AUDIT_RETRIED,
    AUDIT_PATCH_BEGIN,
    AUDIT_PATCH_END,
    AUDIT_END,
};

const char *audit_event_name(enum audit_event event); /* as above */

struct audit_begin {
    char *const *argv;
    char *const *env; /* only to know which texts are secrets; may be NULL */
    const char *cwd;
    const char *profile;
    const char *network;
    const char *sandbox;
    const char *face;
    const char *process; /* what its client calls it; NULL: nothing */
};

struct json_t *audit_begin_body(const struct audit_begin *begin);
struct json_t *audit_output_body(uint64_t stdout_bytes, uint64_t stderr_bytes);

struct audit_asked {
    char *const *argv;
    char *const *env;
    const char *reason; /* may be NULL */
    const char *covers; /* what a yes would allow, in words */
};

struct json_t *audit_asked_body(const struct audit_asked *asked);

/* `rule` is the rule that was added by it, or NULL. */
struct json_t *audit_answered_body(const char *decision, const char *by, const char *rule);

struct audit_denied {
    const char *operation;
    const char *path; /* this and the rest may be NULL */
    const char *host;
    const char *error; /* "EROFS" */
    const char *evidence;
    const char *decided_by;
};

struct json_t *audit_denied_body(const struct audit_denied *denied);
struct json_t *audit_retried_body(const char *grant);
struct json_t *audit_patch_begin_body(const char *cwd, uint64_t patch_bytes);
struct json_t *audit_patch_end_body(bool is_applied, const char *reason);

struct audit_end {
    const char *end; /* "exited", ..., or "forbidden", "rejected": it never ran */
    int exit_code;   /* -1: none */
    int signal;      /* 0: none */
    uint64_t wall_ns;
    const char *reason; /* of a refusal or failure; may be NULL */
};

struct json_t *audit_end_body(const struct audit_end *end);

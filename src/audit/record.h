/* One record of the audit log, and what chains it to the one before. Pure.
 *
 *     hash = SHA-256(hash of the record before || seq || time || event || session || body)
 *
 * with seq and time as 8 bytes, most significant first, and each text behind its length in 4 bytes
 * of the same order. The first record of all follows a hash of zeros. In a file of text a record is
 * one line, and there is exactly one way to write it:
 *
 *     HASH SEQ TIME EVENT SESSION BODY\n
 *
 * HASH in 64 lower-case digits, numbers in decimal without leading zeros, BODY a JSON object. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json_t;

enum {
    AUDIT_HASH_SIZE = 32,           /* bytes: SHA-256, FIPS 180-4 */
    AUDIT_HEX_SIZE = 64,            /* digits of one */
    AUDIT_WORD_MAX = 64,            /* bytes of an event's name or a session's id */
    AUDIT_BODY_MAX = 32 * 1024,     /* bytes of a body */
    AUDIT_LINE_MAX = 34 * 1024 + 1, /* bytes of a line, its line feed included */
};

/* A place in the chain: the record that has this number, 1 being the first, and this hash. Zeroed:
 * before the first record. */
struct audit_link {
    uint64_t seq;
    uint8_t hash[AUDIT_HASH_SIZE];
};

/* Texts are borrowed and end with their length. */
struct audit_text {
    const char *at;
    size_t len;
};

struct audit_record {
    struct audit_link link;
    uint64_t time_ns; /* wall clock, since 1970 */
    struct audit_text event;
    struct audit_text session;
    struct audit_text body; /* JSON */
};

/* A word that may stand as event or session: 1 to AUDIT_WORD_MAX of [A-Za-z0-9._:-]. */
bool audit_word_is_valid(struct audit_text word);

/* The hash that the record has to have behind `previous`. Its own is not looked at. */
void audit_record_hash(const struct audit_record *record, const uint8_t previous[AUDIT_HASH_SIZE],
                       uint8_t ret[AUDIT_HASH_SIZE]);

/* Whether it is the one that comes right behind `previous`: number and hash. */
bool audit_record_follows(const struct audit_record *record, const struct audit_link *previous);

/* Appends its line. False when the buffer's limit would be passed; nothing is appended then. */
bool audit_record_format(const struct audit_record *record, struct buf *ret);

/* Reads a line without its line feed; texts of `ret` point into it. ERR_INVALID unless formatting
 * the record gives the very same bytes. The body is not parsed, the chain not checked. */
int audit_record_parse(const char *line, size_t len, struct audit_record *ret, struct err *err);

/* 64 lower-case digits, no NUL. What is no such digit is read as 0. */
void audit_hash_format(const uint8_t hash[AUDIT_HASH_SIZE], char ret[AUDIT_HEX_SIZE]);
void audit_hash_parse(const char digits[AUDIT_HEX_SIZE], uint8_t ret[AUDIT_HASH_SIZE]);

bool audit_link_eq(const struct audit_link *a, const struct audit_link *b);

/* The text of a C string. */
struct audit_text audit_text_of(const char *text);
bool audit_text_eq(struct audit_text a, struct audit_text b);

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
 *     held         {"reason": "...", "covers": "...", "decision": "approved", "by": "terminal"|...,
 *                   "held_ms": N, "done": true}: a call that waited for an answer; decision and by
 *                   null: it went away before there was one; done: a yes led to it
 *     denied       {"operation": "write", "path": null, "host": null, "errno": null,
 *                   "evidence": "fact", "decided_by": null, "reason": null, "path2": null,
 *                   "port": null, "program": null, "pid": null, "call": null, "creates": false, "count": 1,
 *                   "below": false}: as in job/result_json.h
 *     retried      {"grant": "..."}
 *     exec, file, connect, lost     what the command did, where the configuration asks for it:
 *                  executor/execution_audit.h
 *     patch-begin  {"cwd": "...", "patch_bytes": N}
 *     patch-end    {"applied": true, "reason": null}
 *     layer        {"action": "step"|"accept"|"drop"|"undo", "layer": "ID", "name": "..." or null, "step": N or null,
 *                   "accept": N or null, "changes": {"added": N, "modified": N, "deleted": N, "renamed": N, "other": N,
 *                   "marked": N} or null, "done": N, "left": N}: of a change layer; changes: with step, what it would
 *                   change now; the rest in paths
 *     end          {"end": "exited", "exit_code": 0, "signal": 0, "wall_time_ns": N,
 *                   "reason": null}
 *     anew         {"kept": ["PATH"...], "problem": null, "last": N, "hash": "..."}: of `cordon log
 *                   --start-anew`, about the log before */
enum audit_event {
    AUDIT_BEGIN,
    AUDIT_OUTPUT,
    AUDIT_ASKED,
    AUDIT_ANSWERED,
    AUDIT_HELD,
    AUDIT_DENIED,
    AUDIT_RETRIED,
    AUDIT_EXEC,
    AUDIT_FILE,
    AUDIT_CONNECT,
    AUDIT_LOST,
    AUDIT_PATCH_BEGIN,
    AUDIT_PATCH_END,
    AUDIT_LAYER,
    AUDIT_END,
    AUDIT_ANEW,
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

struct audit_held {
    const char *reason;
    const char *covers;
    const char *decision; /* NULL: none */
    const char *by;
    uint64_t held_ns;
    bool is_done;
};

struct json_t *audit_held_body(const struct audit_held *held);

struct audit_denied {
    const char *operation;
    const char *path; /* this and the rest may be NULL */
    const char *host;
    const char *error; /* "EROFS" */
    const char *evidence;
    const char *decided_by;
    const char *reason; /* of a host: which limit was hit, too */
    const char *other_path;
    const char *program;
    const char *call;
    int pid; /* these two: 0: not known */
    unsigned port;
    unsigned count;
    unsigned flags; /* of enum audit_denied_flag */
};

enum audit_denied_flag { AUDIT_DENIED_CREATES = 1, AUDIT_DENIED_BELOW = 2 };

struct json_t *audit_denied_body(const struct audit_denied *denied);
struct json_t *audit_retried_body(const char *grant);
struct json_t *audit_patch_begin_body(const char *cwd, uint64_t patch_bytes);
struct json_t *audit_patch_end_body(bool is_applied, const char *reason);

struct audit_layer {
    const char *action;
    const char *layer; /* id */
    const char *name;  /* NULL: none */
    int step, accept;  /* 0: none */
    bool has_changes;
    size_t added, modified, deleted, renamed, other, marked;
    size_t done, left; /* paths */
};

struct json_t *audit_layer_body(const struct audit_layer *layer);

struct audit_end {
    const char *end; /* "exited", ..., or "forbidden", "rejected": it never ran */
    int exit_code;   /* -1: none */
    int signal;      /* 0: none */
    uint64_t wall_ns;
    const char *reason; /* of a refusal or failure; may be NULL */
};

struct json_t *audit_end_body(const struct audit_end *end);

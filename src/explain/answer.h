/* The answer about one path or one host. */
#pragma once

#include "base/err.h"
#include "policy/access.h"

#include <stdbool.h>

struct explained;
struct json_t;

/* The answer about one thing. */
struct explain_answer {
    bool is_allowed;
    char *asked;
    char *canonical;     /* of a path; NULL for a host */
    const char *verdict; /* "deny", "read", "write"; for a host "deny", "ask", "allow"; static */
    const char *reason;  /* of a host that is not allowed: network_reason_word(); else NULL */
    char *decided_by;    /* who */
    char *
        entry; /* the path of the entry, or the pattern of the rule, that decides; NULL when none does */
    char *note; /* one more thing to know; NULL when there is none */
};

/* `path` as a person writes it: "~/x", relative to the workspace directory, or absolute. */
int explain_path(const struct explained *about, const char *path, enum access wanted,
                 struct explain_answer *ret, struct err *err);

/* With a port, or without. */
int explain_host(const struct explained *about, const char *host, struct explain_answer *ret,
                 struct err *err);
void explain_answer_done(struct explain_answer *answer);

struct json_t *explain_answer_to_json(const struct explain_answer *answer);

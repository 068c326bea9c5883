/* What `cordon explain` answers about one path or one host. */
#pragma once

#include "cli/settings.h"
#include "policy/access.h"

#include <stdbool.h>

struct buf;
struct json_t;

struct explain_question {
    const char
        *path; /* as a person writes it: "~/x", relative to the workspace directory, or absolute */
    const char *host;             /* with a port, or without */
    enum access wanted;           /* of the path */
    const struct access_map *map; /* that holds */
};

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

int explain_path(const struct settings *settings, const struct explain_question *question,
                 struct explain_answer *ret, struct err *err);
int explain_host(const struct settings *settings, const struct explain_question *question,
                 struct explain_answer *ret, struct err *err);
void explain_answer_done(struct explain_answer *answer);

void explain_answer_print(const struct explain_answer *answer, struct buf *ret);
struct json_t *explain_answer_to_json(const struct explain_answer *answer);

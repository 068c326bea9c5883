/* The parts of `cordon explain`. */
#pragma once

#include "cli/explain_command.h"
#include "cli/settings.h"

#include <jansson.h>

struct buf;
struct sandbox;

/* What is explained. */
struct explanation {
    struct settings settings;
    struct sandbox *sandbox;          /* NULL when none can be made: `refusal` */
    struct explained_command command; /* `argv` NULL: none was asked about */
    struct err refusal;
};

/* The map that holds: with what was added for Cordon's own files when there is a sandbox. */
const struct access_map *explanation_access(const struct explanation *explanation);

/* "profile" or another word for how the entry stands: "missing", "folder", "file". */
const char *explanation_kind_name(enum access_kind kind);

enum explain_values { EXPLAIN_NAMES, EXPLAIN_VALUES };

void explain_print_text(const struct explanation *explanation, enum explain_values values,
                        struct buf *ret);
json_t *explain_to_json(const struct explanation *explanation, enum explain_values values);

/* The answer about one thing. */
struct explain_answer {
    bool is_allowed;
    char *asked;
    char *canonical;     /* of a path; NULL for a host */
    const char *verdict; /* "deny", "read", "write"; for a host "deny", "allow"; static */
    char *decided_by;    /* who */
    char *entry;         /* the path of the entry that decides; NULL when none does */
    char *note;          /* one more thing to know; NULL when there is none */
};

void explain_answer_done(struct explain_answer *answer);

/* `wanted`: what it takes for is_allowed. */
int explain_path(const struct explanation *explanation, const char *path, enum access wanted,
                 struct explain_answer *ret, struct err *err);
void explain_host(const struct explanation *explanation, const char *host,
                  struct explain_answer *ret);

void explain_answer_print(const struct explain_answer *answer, struct buf *ret);
json_t *explain_answer_to_json(const struct explain_answer *answer);

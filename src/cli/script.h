/* `cordon script`: lines of JSON in, lines of JSON out. Internal to it. */
#pragma once

#include "base/err.h"
#include "cli/script_audit.h"
#include "job/model_calls.h"

#include <stdbool.h>
#include <stddef.h>

struct json_t;
struct loop;
struct screen;
struct settings;

struct script {
    struct loop *loop;
    struct settings *settings;
    struct sandbox *sandbox;
    const struct access_map *access; /* the sandbox's; NULL without one */
    char *const *env;                /* of every session */
    struct unified *unified;
    struct script_audit audit;
    bool has_fixed_times;  /* no measured time in the output */
    bool is_answered;      /* the call that runs is over */
    struct json_t *answer; /* and this is what it came to; owned */
    const char *call;      /* name of the call that runs */
};

/* Plays one line: starts the call that it is and waits for its end. New reference; NULL when the
 * line is wrong. A call that fails is an answer. */
struct json_t *script_play(struct script *script, const char *line, size_t len, struct err *err);

/* Answers as JSON; new references. */
struct json_t *script_response_json(const struct script *script,
                                    const struct unified_response *response);
struct json_t *script_screen_json(const struct screen *screen);
struct json_t *script_failure_json(const struct script *script, int session_id, const char *command,
                                   const struct err *failure);

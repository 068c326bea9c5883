/* The events of a run in the audit log; `cordon patch` and `cordon script` tell theirs the same way. */
#pragma once

#include "base/err.h"
#include "cli/settings.h"
#include "executor/execution_audit.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

struct audit;
struct config_file;
struct execution_event;
struct execution_result;
struct json_t;
struct settings;
struct timeline;
struct timeline_event;
struct run_options;

/* Who wants to know what a command does, in place of the lines that tell it at the end. */
struct run_observer {
    void (*on_event)(void *data, const struct timeline_event *event); /* each, in their order */
    void *data;
};

/* Runs the command as `cordon run` with these options does, whose texts are taken over; the exit status of that.
 * `observer`: NULL: none. */
int run_command(struct run_options *options, char **command, const struct run_observer *observer);

/* The events of a run. That it begins is written before it does, all else in one go after the result is out,
 * and when the command runs for long, within a second. A failure is said on stderr and is no reason for
 * anything. */
struct run_audit {
    struct audit *audit; /* NULL: nothing is written */
    char session[32];
    bool is_patch; /* it began as one */
    bool has_complained;
    struct audit_trail trail; /* of the attempt that runs */
};

/* There is a directory for the log, or there may be one. */
bool run_audit_has_place(const struct config_file *file);

void run_audit_init(struct run_audit *audit, const struct settings *settings);
void run_audit_begin(struct run_audit *audit, const struct settings *settings, char *const *argv);
void run_audit_event(struct run_audit *audit, const struct settings *settings,
                     const struct execution_event *event);
/* What the command did since; NULL for `timeline`: it has ended. */
void run_audit_trace(struct run_audit *audit, const struct timeline *timeline);
void run_audit_result(struct run_audit *audit, const struct execution_result *result);
/* Of its layer; takes the reference. */
void run_audit_layer(struct run_audit *audit, struct json_t *body);
void run_audit_failure(struct run_audit *audit, const char *reason);
/* A patch, which is no command; run_audit_result() ends one, too. `reason` when it was not applied;
 * may be NULL. */
void run_audit_patch_begin(struct run_audit *audit, const char *dir, uint64_t bytes);
void run_audit_patch_end(struct run_audit *audit, bool is_applied, const char *reason);

/* There is something to be written. */
bool run_audit_has_some(const struct run_audit *audit);

/* Writes what there is by now; waits that long when others hold the log. */
void run_audit_flush(struct run_audit *audit, uint64_t wait_ns);
void run_audit_done(struct run_audit *audit); /* writes the rest */

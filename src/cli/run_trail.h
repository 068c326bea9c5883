/* What `cordon run` writes to the audit log. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct audit_trail;
struct execution_event;
struct execution_result;
struct settings;

/* The events of a run. They are written in one go after the result is out, and when the command
 * runs for long, what is known meanwhile. A failure is said on stderr and is no reason for
 * anything. */
struct run_trail {
    struct audit_trail *trail; /* NULL: nothing is written */
    char session[32];
    bool has_complained;
};

void run_trail_init(struct run_trail *trail, const struct settings *settings);
void run_trail_begin(struct run_trail *trail, const struct settings *settings, char *const *argv);
void run_trail_event(struct run_trail *trail, const struct settings *settings,
                     const struct execution_event *event);
void run_trail_result(struct run_trail *trail, const struct execution_result *result);
void run_trail_failure(struct run_trail *trail, const char *reason);
/* A patch, which is no command. `reason` when it was not applied; may be NULL. */
void run_trail_patch_begin(struct run_trail *trail, const struct settings *settings,
                           uint64_t bytes);
void run_trail_patch_end(struct run_trail *trail, bool is_applied, const char *reason);

void run_trail_flush(struct run_trail *trail); /* writes what there is by now */
void run_trail_done(struct run_trail *trail);  /* writes the rest */

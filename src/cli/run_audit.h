/* What `cordon run` writes to the audit log. */
#pragma once

#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

struct audit;
struct execution_event;
struct execution_result;
struct settings;

/* The events of a run. They are written in one go after the result is out, and when the command
 * runs for long, what is known meanwhile. A failure is said on stderr and is no reason for
 * anything. */
struct run_trail {
    struct audit *trail; /* NULL: nothing is written */
    char session[32];
    bool is_patch; /* it began as one */
    bool has_complained;
};

/* There is a folder for the log, or there may be one. */
struct config_file;
bool run_trail_has_place(const struct config_file *file);

/* How the log names it: "auto", "require", "disabled". */
const char *run_trail_mode_name(enum sandbox_mode mode);

void run_trail_init(struct run_trail *trail, const struct settings *settings);
void run_trail_begin(struct run_trail *trail, const struct settings *settings, char *const *argv);
void run_trail_event(struct run_trail *trail, const struct settings *settings,
                     const struct execution_event *event);
void run_trail_result(struct run_trail *trail, const struct execution_result *result);
void run_trail_failure(struct run_trail *trail, const char *reason);
/* A patch, which is no command; run_trail_result() ends one, too. `reason` when it was not applied;
 * may be NULL. */
void run_trail_patch_begin(struct run_trail *trail, const char *folder, uint64_t bytes);
void run_trail_patch_end(struct run_trail *trail, bool is_applied, const char *reason);

void run_trail_flush(struct run_trail *trail); /* writes what there is by now */
void run_trail_done(struct run_trail *trail);  /* writes the rest */

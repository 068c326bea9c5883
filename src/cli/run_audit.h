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
struct run_audit {
    struct audit *audit; /* NULL: nothing is written */
    char session[32];
    bool is_patch; /* it began as one */
    bool has_complained;
};

/* There is a folder for the log, or there may be one. */
struct config_file;
bool run_audit_has_place(const struct config_file *file);

/* How the log names it: "auto", "require", "disabled". */
const char *run_audit_mode_name(enum sandbox_mode mode);

void run_audit_init(struct run_audit *audit, const struct settings *settings);
void run_audit_begin(struct run_audit *audit, const struct settings *settings, char *const *argv);
void run_audit_event(struct run_audit *audit, const struct settings *settings,
                     const struct execution_event *event);
void run_audit_result(struct run_audit *audit, const struct execution_result *result);
void run_audit_failure(struct run_audit *audit, const char *reason);
/* A patch, which is no command; run_audit_result() ends one, too. `reason` when it was not applied;
 * may be NULL. */
void run_audit_patch_begin(struct run_audit *audit, const char *folder, uint64_t bytes);
void run_audit_patch_end(struct run_audit *audit, bool is_applied, const char *reason);

void run_audit_flush(struct run_audit *audit); /* writes what there is by now */
void run_audit_done(struct run_audit *audit);  /* writes the rest */

/* What exec/run and patch/apply do, in the audit log (audit/audit.h). */
#pragma once

#include <stdbool.h>

struct exec_run;
struct execution_event;
struct execution_result;
struct timeline;

void exec_audit_begin(struct exec_run *run);
void exec_audit_step(struct exec_run *run, const struct execution_event *event);

/* What it did since. */
void exec_audit_trace(struct exec_run *run, const struct timeline *timeline);

/* `result` NULL: it was given up by us. */
void exec_audit_end(struct exec_run *run, const struct execution_result *result);

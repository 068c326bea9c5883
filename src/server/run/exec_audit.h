/* What exec/run and patch/apply do, in the audit log (audit/audit.h). */
#pragma once

#include <stdbool.h>

struct exec_run;
struct execution_event;
struct execution_result;

void exec_audit_begin(struct exec_run *run);
void exec_audit_step(struct exec_run *run, const struct execution_event *event);

/* `result` NULL: it was given up by us. */
void exec_audit_end(struct exec_run *run, const struct execution_result *result);

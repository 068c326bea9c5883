/* Asks the person at the terminal: the question is written there, and a line read. */
#pragma once

#include "approval/approvals.h"

struct prompt;

/* `prompt` is borrowed, and outlives it; other approvers may have the same. `who`: what the questions
 * are asked for, in words ("session ..."); NULL: that is clear. Never NULL. */
struct approver *approver_terminal_new(struct prompt *prompt, const char *who);

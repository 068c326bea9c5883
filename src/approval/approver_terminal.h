/* The person at the controlling terminal, of whom one thing after the other is asked.
 *
 *     prompt_open()
 *     approver_terminal_new()      one for each session; their questions wait for each other
 *     prompt_free()
 *
 * The modes of the terminal stay as they are, so there is nothing to restore: a line is what is
 * typed up to Enter, and Ctrl-C is the signal that it always is. A command that has the terminal
 * while it runs has to lend it for that time: prompt_set_owner(). */
#pragma once

#include "approval/approvals.h"

struct loop;
struct prompt;

/* Opens /dev/tty. ERR_NOT_FOUND without a controlling terminal. NULL on failure. */
struct prompt *prompt_open(struct loop *loop, struct err *err);

/* Who has the terminal otherwise: told before a question is shown (`is_lent`), and when what was
 * shown is over. Then nothing is read here, so that what is typed is the owner's. */
void prompt_set_owner(struct prompt *prompt, void (*on_lend)(void *data, bool is_lent), void *data);

/* When no approver is left in it; takes NULL. */
void prompt_free(struct prompt *prompt);

/* `prompt` is borrowed, and outlives it; other approvers may have the same. `who`: what the questions
 * are asked for, in words ("session ..."); NULL: that is clear. Never NULL. */
struct approver *approver_terminal_new(struct prompt *prompt, const char *who);

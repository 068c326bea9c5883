/* Plays one sequence. */
#pragma once

#include "log.h"
#include "op.h"
#include "tree.h"

/* Once, before all: memory that the calls need, no signals, no capabilities. */
bool play_init(void);

/* From stage_enter() to stage_leave(). The first op may be OP_PLACE. Returns how many of the expected
 * errors did not come. */
int play(struct stage *stage, struct log *log, const struct op *ops, int len);

/* How often which result came, for all sequences so far. */
void play_print_results(void);

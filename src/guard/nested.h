/* Sandboxes that commands make for themselves by Cordon. The kernel gives a tree of processes one listener, so theirs has
 * no guard of its own, and tells this one what it may do: what is done on behalf, no Landlock and no filter of theirs
 * would refuse us. */
#pragma once

#include "guard/place.h"

/* A launcher's word on its command, as a call that means nothing (GUARD_NESTED_MODE). false: it is another call. */
bool nested_register(const struct request *request, struct answer *ret_answer);

/* Of which of them the thread is; 0: of none. */
uint32_t nested_find(const struct command *command, pid_t thread);

/* One of them does not let the request's caller write to that path (canonical), whose directory is open as `dir` (-1: it is
 * not known); or, if it `moves`, let it go or come with what is below it. */
bool nested_refuses_path(const struct request *request, const char *path, int dir, bool moves);
bool nested_refuses(const struct request *request, const struct place *place, bool moves);

void nested_end(struct command *command);

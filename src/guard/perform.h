/* Creation, renaming and linking on behalf of the caller. */
#pragma once

#include "guard/place.h"

/* The answer to a call that may create a name; CONTINUE for what is not for us to do. */
struct answer perform(const struct request *request);

/* --- the acts, at a place that was judged (for granted.c, too) --- */

/* A name may come to be at `place`, and the caller still waits for it. */
bool perform_may_name(const struct request *request, struct place *place, struct answer *ret);

struct answer perform_new_file(const struct request *request, struct place *place, int flags,
                               mode_t mode);

/* Opens what is pinned. What does not work here does not for the kernel, which knows best why. */
struct answer perform_existing(const struct request *request, const struct place *place, int pin,
                               const struct stat *st, int flags);

/* mkdir(2) and mknod(2) */
struct answer perform_at(const struct request *request, struct place *place, mode_t mode);

/* As linkat(2). */
int perform_link_pinned(int source, int dir, const char *name);

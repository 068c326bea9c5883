/* What was refused, told to the host. */
#pragma once

#include "guard/place.h"

struct fact {
    enum guard_operation operation;
    const struct place *place;       /* or */
    const char *path;                /* canonical, or the address of a socket */
    const struct place *other_place; /* of a rename or link; NULL */
    int entry;                       /* that decided; GUARD_NO_ENTRY */
    int error; /* that the call has, or most likely will have, from the kernel */
    bool is_socket;
};

/* Sends it, unless the sandbox wants none or has had enough: then it is counted by directory. */
void facts_tell(const struct request *request, const struct fact *fact);

/* All that was counted, and that nothing follows. */
void facts_end(struct command *command);

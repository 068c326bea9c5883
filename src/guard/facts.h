/* What was refused and, where a timeline is wanted, what was done, told to the host. */
#pragma once

#include "guard/place.h"

struct fact {
    enum guard_operation operation;
    const struct place *place; /* or */
    const char *path;          /* canonical, or the address of a socket */
    const char *other_path;    /* of a rename or link; NULL */
    int entry;                 /* that decided; GUARD_NO_ENTRY */
    int error;                 /* that the call has, or most likely will have, from the kernel */
    bool is_socket;
};

/* Sends it, unless the sandbox wants none or has had enough: then it is counted by directory. */
void facts_tell(const struct request *request, const struct fact *fact);

/* The same in two steps: the packet (its length), and to tell it as what was refused, once. */
size_t facts_write(const struct request *request, const struct fact *fact, struct guard_fact *ret);
void facts_tell_denied(struct command *command, struct guard_fact *packet, size_t len);

/* The name of the program is read last. */
void facts_name(struct guard_fact *packet);

void facts_tell_withdrawn(struct command *command, uint64_t id);

/* Tells what is done: done already, or as good as, since nothing seems to be in the way of it. Each
 * time, while the host reads; what it has no room for is counted. */
void facts_tell_done(const struct request *request, const struct fact *fact);

/* Who connects, to where or from which own port (guard_format.h). */
void facts_tell_caller(const struct request *request, const uint8_t address[16], uint16_t port);

/* A packet of this kind, now, with nothing in it but its strings as they were. */
void fact_begin(struct guard_fact *ret, enum guard_fact_kind kind);

/* Length of a packet with so many bytes of strings. */
static inline size_t packet_len(size_t strings)
{
    return offsetof(struct guard_fact, strings) + strings;
}

/* As it is; false when the host takes no more for now. */
bool facts_send(struct command *command, const struct guard_fact *packet, size_t len);

/* All that was counted, and that nothing follows. */
void facts_end(struct command *command);

/* Calls that wait for an answer of the host's. */
#pragma once

#include "guard/facts.h"
#include "guard/object.h"

enum {
    QUESTIONS_MAX = 32, /* open at once, of a command */
    HELD_MAX = 256,
    REFUSED_MAX = 32, /* remembered */
};

/* Holds the call and asks about the refused ones of its `objects` (two at most, the first of which the
 * fact is about), unless a question that is open covers them. false: it is refused as ever; nobody can
 * be asked, or not about that, or the answer has been no, or too much is held. `otherwise`: the answer to it after a no. */
bool hold_call(const struct request *request, const struct fact *fact,
               struct object *const objects[2], struct answer otherwise);

/* A yes is good for every call that it covers, held or not yet made; and so is a no for what its yes
 * would have covered. */
void hold_answer(struct command *command, uint64_t id, enum guard_verdict verdict);

/* Forgets the calls that nobody waits for any more, and takes back their questions. */
void hold_look(struct command *command);

/* The command is over. */
void hold_end(struct command *command);

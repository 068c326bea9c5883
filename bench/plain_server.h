/* A server that does next to nothing: what a client sees of it is what this machine costs, without
 * Cordon. It speaks as much of the protocol as wire.h needs. */
#pragma once

#include "wire.h"

/* Answers environment/info and process/write at once, runs /bin/true bare, sends a flood to whoever
 * asks for another program, and reads and drops everything else. */
void plain_server_start(struct wire_server *server, const struct bench *bench);

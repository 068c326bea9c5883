/* How a process ended, in the terms of the protocol. */
#pragma once

struct wire_end;
struct wire_process;

/* The exit code, and what the sandbox refused; `chunks` is left alone. Only with a session_end().
 */
void wire_end_fill(const struct wire_process *process, struct wire_end *ret);

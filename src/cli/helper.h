/* `codex-linux-sandbox`: Codex's helper program, by its flags (spec/sandboxing.md 3.2). */
#pragma once

/* `argv` without argv[0]. Returns the exit status: the command's; 1 when it could not be started in
 * the sandbox, 2 for wrong flags, 126 and 127 as a shell. A command that a signal ended ends this
 * process by the same signal. */
int helper_main(char **argv);

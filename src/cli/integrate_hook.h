/* What clients start in the place of a shell, or ask before they start one, once `cordon integrate` was there. */
#pragma once

/* As CLAUDE_CODE_SHELL_PREFIX: argv[1] is what Claude Code would have given to a shell. Returns the exit status. */
int claude_shell_main(char **argv);
#define CLAUDE_SHELL_NAME "claude-shell"

/* A hook of the client: its question comes on stdin, and the answer goes to stdout. EXIT_OK for an answer; what cannot be
 * answered is a no, by exit status 2 and the reason on stderr. */
int integrate_hook(const char *client);

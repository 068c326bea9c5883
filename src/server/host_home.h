/* The user's home folder. */
#pragma once

/* $HOME, or what the account says, or "/"; clean. Caller frees. */
char *host_home(void);

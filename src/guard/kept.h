/* Directories of a command that stay open, because paths lead there again and again. */
#pragma once

#include "guard/guard.h"

/* The one of this identity, which stays until kept_release(); NULL when there is none. */
struct kept_dir *kept_find(struct command *command, const struct identity *identity);

/* Keeps `fd` (O_PATH), which is taken over then, until kept_release(). NULL: it cannot be kept. */
struct kept_dir *kept_add(struct command *command, int fd, const struct identity *identity);

void kept_release(struct kept_dir *dir);

/* At the command's end. */
void kept_close_all(struct command *command);

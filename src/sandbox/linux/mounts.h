/* The mounts that this process sees. */
#pragma once

#include <stdbool.h>

struct mount_seen {
    const char *path;
    bool is_writable;
    const char *source; /* as it was given, with odd bytes as octal numbers; "" where it has none */
};

/* Calls `look` for each of them until it says false. False then, and when they cannot be read. */
bool mounts_each(bool (*look)(void *data, const struct mount_seen *mount), void *data);

/* See folder_name.h. */
#include "workspace/folder_name.h"

#include "base/alloc.h"
#include "base/path.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 32, HASH_SHOWN = 8 };

char *folder_name(const char *root)
{
    const char *last = root[1] ? path_name(root) : "root";
    char name[SHOWN_MAX + 1 + 2 * HASH_SHOWN + 1];
    uint8_t hash[SHA256_SIZE];
    struct sha256 sha;
    size_t len = 0;

    sha256_start(&sha);
    sha256_add(&sha, root, strlen(root));
    sha256_finish(&sha, hash);
    for (; *last && len < SHOWN_MAX; last++) {
        bool is_plain = (*last >= 'a' && *last <= 'z') || (*last >= 'A' && *last <= 'Z') ||
                        (*last >= '0' && *last <= '9') || *last == '_' || *last == '-';

        name[len++] = (char)(is_plain ? *last : '_');
    }
    name[len++] = '-';
    for (size_t i = 0; i < HASH_SHOWN; i++)
        snprintf(name + len + 2 * i, 3, "%02x", hash[i]);
    return alloc_str(name);
}

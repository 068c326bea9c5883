/* See path.h. */
#include "base/path.h"

#include "base/alloc.h"

#include <string.h>

bool path_is_clean(const char *path)
{
    if (path[0] != '/')
        return false;
    if (path[1] == '\0')
        return true;
    while (*path == '/') {
        size_t len = strcspn(++path, "/");

        if (len == 0 || (len == 1 && path[0] == '.') ||
            (len == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        path += len;
    }
    return true;
}

/* Appends the components of `path` to the clean, absolute `out` of length `len`; returns the new
 * length. `out` has room for everything; length 0 stands for the root. */
static size_t path_append_components(char *out, size_t len, const char *path)
{
    while (*path) {
        size_t part = strcspn(path, "/");

        if (part == 2 && path[0] == '.' && path[1] == '.') {
            while (len && out[--len] != '/')
                ;
        } else if (part && !(part == 1 && path[0] == '.')) {
            out[len++] = '/';
            memcpy(out + len, path, part);
            len += part;
        }
        path += part;
        path += strspn(path, "/");
    }
    return len;
}

char *path_clean(const char *base, const char *path)
{
    char *out = alloc_zero(strlen(base) + strlen(path) + 3, 1);
    size_t len = 0;

    if (path[0] != '/')
        len = path_append_components(out, len, base);
    len = path_append_components(out, len, path);
    if (len == 0)
        out[len++] = '/';
    out[len] = '\0';
    return out;
}

char *path_join(const char *dir, const char *name)
{
    size_t len = strlen(dir);
    const char *slash = len && dir[len - 1] == '/' ? "" : "/";

    return alloc_strf("%s%s%s", dir, slash, name);
}

bool path_is_within(const char *path, const char *root)
{
    size_t len = strlen(root);

    if (len == 1 && *root == '/')
        return true;
    return strncmp(path, root, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

size_t path_depth(const char *path)
{
    size_t depth = 0;

    if (path[1] == '\0')
        return 0;
    for (; *path; path++)
        depth += *path == '/';
    return depth;
}

int path_compare(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    if (*a == *b)
        return 0;
    if (!*a || !*b)
        return *a ? 1 : -1;
    if (*a == '/' || *b == '/')
        return *a == '/' ? -1 : 1;
    return (unsigned char)*a - (unsigned char)*b;
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *path_parent(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash || slash == path)
        return alloc_str("/");
    return alloc_strn(path, (size_t)(slash - path));
}

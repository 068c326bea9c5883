/* See names.h. A patch that needs ".." or another folder is meant for another place: refusing it
 * here gives a clear message; that nothing outside can be reached holds without this, by the way
 * folder.c opens things. */
#include "patch/names.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <string.h>

static bool has_component(const char *path, bool (*is_it)(const char *part, size_t len))
{
    while (*path) {
        size_t len = strcspn(path, "/");

        if (is_it(path, len))
            return true;
        path += len;
        path += strspn(path, "/");
    }
    return false;
}

static bool is_dot_dot(const char *part, size_t len)
{
    return len == 2 && part[0] == '.' && part[1] == '.';
}

static bool is_own(const char *part, size_t len)
{
    return len >= strlen(NAMES_OWN) && memcmp(part, NAMES_OWN, strlen(NAMES_OWN)) == 0;
}

static int check_names(const char *path, struct err *err)
{
    if (has_component(path, is_dot_dot))
        return err_set(err, ERR_FORBIDDEN,
                       "%s: a patch may not use \"..\"; name the file from the folder of the patch",
                       path);
    if (has_component(path, is_own))
        return err_set(err, ERR_FORBIDDEN,
                       "%s: names that begin with " NAMES_OWN " belong to Cordon itself", path);
    if (str_ends(path, "/") || str_ends(path, "/.") || str_eq(path, "."))
        return err_set(err, ERR_INVALID, "%s names a folder; a patch is about files", path);
    return 0;
}

char *names_below(const char *root, const char *path, struct err *err)
{
    AUTO_FREE char *whole = NULL;
    size_t skip = str_eq(root, "/") ? 1 : strlen(root) + 1;

    if (check_names(path, err))
        return NULL;
    whole = path_clean(root, path);
    if (!path_is_within(whole, root) || strlen(whole) <= skip) {
        err_set(err, ERR_FORBIDDEN, "%s is not below the folder of the patch, %s", path, root);
        return NULL;
    }
    return alloc_str(whole + skip);
}

bool names_are_clean(const char *path)
{
    AUTO_FREE char *whole = alloc_strf("/%s", path);

    return *path && path_is_clean(whole) && !has_component(path, is_own);
}

bool names_within(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

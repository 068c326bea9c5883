/* See remote_path.h. The server resolves ".." itself when it parses the URI, so paths are cleaned
 * here only to make one absolute. */
#include "client/remote_path.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/path.h"
#include "base/str.h"

#include <stddef.h>
#include <string.h>

char *remote_path_uri(const char *folder, const char *path, struct err *err)
{
    AUTO_FREE char *base = NULL;
    AUTO_FREE char *whole = NULL;

    if (path && *path == '/') {
        whole = path_clean("/", path);
        return file_uri_format(whole);
    }
    if (!folder) {
        err_set(err, ERR_INVALID,
                "the server does not tell its folder, so %s%s%s has to be an absolute path",
                path ? "\"" : "the folder", path ? path : "", path ? "\"" : " (--cwd)");
        return NULL;
    }
    base = file_uri_parse(folder, err);
    if (!base) {
        err_wrap(err, "the server's folder");
        return NULL;
    }
    whole = path_clean(base, path ? path : ".");
    return file_uri_format(whole);
}

const char *remote_path_of(const char *argument)
{
    static const char prefix[] = "remote:";

    return str_starts(argument, prefix) ? argument + sizeof prefix - 1 : NULL;
}

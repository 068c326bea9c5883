/* See call.h. A table of names; each handler is in the file that is named after what it does. */
#include "files/call.h"

#include "base/str.h"

#include <stddef.h>

static const struct {
    const char *name;
    files_handler *handle;
} calls[] = {
    {"fs/readFile", files_read_file},
    {"fs/open", files_open},
    {"fs/writeFile", files_write_file},
    {"fs/createDirectory", files_create_directory},
    {"fs/createSymlink", files_create_symlink},
    {"fs/setMode", files_set_mode},
    {"fs/getMetadata", files_get_metadata},
    {"fs/canonicalize", files_canonicalize},
    {"fs/readDirectory", files_read_directory},
    {"fs/walk", files_walk},
    {"fs/remove", files_remove},
    {"fs/copy", files_copy},
    {"capabilityRoots/discover", files_discover}, /* of one root */
    {"capabilities/discover", files_capabilities},
};

enum { CALLS = sizeof calls / sizeof *calls };

int files_call(const struct files_request *request, struct reply *reply, struct err *err)
{
    for (size_t i = 0; i < CALLS; i++)
        if (str_eq(calls[i].name, request->method))
            return json_at_object(&request->params, err) ? -1
                                                         : calls[i].handle(request, reply, err);
    return err_set(err, ERR_BUG, "no file call is named %s", request->method);
}

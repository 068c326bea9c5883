/* The calls of the protocol that are about files: parameters in (the JSON of the wire without its
 * `sandbox`), JSON text or a descriptor out. What they take and answer, and their limits:
 * spec/exec-server.md 8.
 *
 * They run with the rights of the process that they run in, and nothing here asks whether somebody
 * may: that process is inside of the sandbox, or is not. */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "files/reply.h"

enum { FILES_READ_MAX = 512 << 20 }; /* bytes of a file that fs/readFile takes */

/* All is borrowed for the call. */
struct files_request {
    const char *method;    /* "fs/readFile", ... */
    struct json_at params; /* an object */
    const char *data; /* fs/writeFile: what would be `dataBase64`, spared a way through JSON; NULL:
                         it is in the parameters */
    size_t data_len;
};

/* Failures say by code and errno what they are (error.h). fs/open answers with `reply->fd`. */
int files_call(const struct files_request *request, struct reply *reply, struct err *err);

/* The handlers, one per method. */
typedef int files_handler(const struct files_request *request, struct reply *reply,
                          struct err *err);

files_handler files_read_file;
files_handler files_open;
files_handler files_write_file;
files_handler files_create_directory;
files_handler files_create_symlink;
files_handler files_set_mode;
files_handler files_get_metadata;
files_handler files_canonicalize;
files_handler files_read_directory;
files_handler files_walk;
files_handler files_remove;
files_handler files_copy;
files_handler files_discover;
files_handler files_capabilities;

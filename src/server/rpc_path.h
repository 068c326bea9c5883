/* Paths on the wire: file URIs. */
#pragma once

#include "base/err.h"
#include "rpc/message.h"

/* The clean absolute path that a URI names; caller frees. NULL on failure, `*ret_code` is
 * the code for the wire then: another host or a drive letter is INVALID_REQUEST, everything else
 * INVALID_PARAMS. */
char *rpc_path_parse(const char *uri, enum rpc_code *ret_code, struct err *err);

/* As file_uri_format(); a JSON string, new reference. */
struct json_t *rpc_path_to_json(const char *path);

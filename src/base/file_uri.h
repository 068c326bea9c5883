/* file: URIs of local paths, RFC 8089 with the escapes of RFC 3986. */
#pragma once

#include "base/err.h"

/* The path of "file:///path", "file://localhost/path" or "file:/path"; absolute, not cleaned.
 * Caller frees. NULL (ERR_INVALID) for another scheme or host, a query or fragment, a bad escape,
 * or one that stands for NUL. */
char *file_uri_parse(const char *uri, struct err *err);

/* "file:///path" for an absolute path; any path survives. Escaped are the bytes that the URL
 * Standard (WHATWG, path percent-encode set) and "\\" ask for, and no others, as clients do that
 * compare URIs as text. Caller frees. */
char *file_uri_format(const char *path);

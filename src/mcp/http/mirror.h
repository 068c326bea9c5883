/* What the headers of a POST repeat of its body, in versions without sessions (2026-07-28, "Request Metadata"), so that what
 * lies between can route by it. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct http_head;
struct mcp_message;

/* NULL: they say the same. Else which header does not, in words; `ret` holds them. */
const char *mirror_mismatch(const struct http_head *head, const struct mcp_message *message,
                            char *ret, size_t size);

/* The HTTP status of an answer in JSON: by the code of its error, 200 when it is none. */
int mirror_status(const char *text, size_t len);

/* Here-documents of shell scripts. */
#pragma once

#include <stddef.h>

/* `text` begins at the line behind `<<`. Returns the bytes up to and with the line that is the
 * delimiter, or all; the body is the first `*ret_body_len` of them. Tabs in front of the delimiter
 * do not count, which is right for `<<-` and, where only danger is looked for, good enough for
 * `<<`. */
size_t here_document_read(const char *text, size_t len, const char *delimiter,
                          size_t *ret_body_len);

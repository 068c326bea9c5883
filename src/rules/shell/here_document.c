/* See here_document.h. */
#include "rules/shell/here_document.h"

#include <string.h>

size_t here_document_read(const char *text, size_t len, const char *delimiter, size_t *ret_body_len)
{
    size_t delimiter_len = strlen(delimiter);
    size_t at = 0;

    while (at < len) {
        const char *newline = memchr(text + at, '\n', len - at);
        size_t end = newline ? (size_t)(newline - text) : len;
        size_t start = at;

        while (start < end && text[start] == '\t')
            start++;
        if (end - start == delimiter_len && memcmp(text + start, delimiter, delimiter_len) == 0) {
            *ret_body_len = at;
            return newline ? end + 1 : end;
        }
        at = newline ? end + 1 : end;
    }
    *ret_body_len = len;
    return len;
}

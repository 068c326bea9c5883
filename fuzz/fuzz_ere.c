/* Regular expressions: the input is "PATTERN\nTEXT". Beside memory errors: a match lies in the
 * text, is found again in the text cut down to it, and there is none that begins earlier. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "exec/ere.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 300 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Edges of words look at what is around, so a part of the text may match where the whole does not.
 */
static bool looks_around(const char *pattern)
{
    return strstr(pattern, "\\b") || strstr(pattern, "\\B") || strpbrk(pattern, "^$");
}

static void check_match(struct ere *ere, const char *text, const struct ere_span *span)
{
    struct ere_span again;

    check(ere_find(ere, text + span->at, span->len, 0, &again));
    check(again.at == 0 && again.len == span->len);
    for (size_t end = 0; end < span->at; end++)
        check(!ere_find(ere, text, end, 0, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *pattern = alloc_strn((const char *)data, size);
    char *newline = strchr(pattern, '\n');
    const char *text = newline ? newline + 1 : "";
    size_t len = strnlen(text, TEXT_MAX);
    struct ere_span span;
    struct err err;
    struct ere *ere;

    if (newline)
        *newline = '\0';
    ere = ere_new(pattern, &err);
    if (!ere) {
        check(err.code == ERR_INVALID);
        return 0;
    }
    if (ere_find(ere, text, len, 0, &span)) {
        check(span.at <= len && span.len <= len - span.at);
        if (!looks_around(pattern))
            check_match(ere, text, &span);
    }
    ere_find(ere, text, len, ERE_NOT_BEGIN | ERE_NOT_END, &span);
    ere_free(ere);
    return 0;
}

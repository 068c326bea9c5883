/* See shell_text.h. */
#include "setup/shell_text.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"

#include <stdlib.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

void shell_quote(const char *text, struct buf *ret)
{
    if (*text && !text[strspn(text, LETTERS "/._-+,:@%")]) {
        buf_append_str(ret, text);
        return;
    }
    buf_append_str(ret, "'");
    for (const char *at = text; *at; at++) {
        if (*at == '\'')
            buf_append_str(ret, "'\\''");
        else
            buf_append(ret, at, 1);
    }
    buf_append_str(ret, "'");
}

void shell_text_words(const char *text, struct strv *ret)
{
    strv_push(ret, "-c");
    if (*text == '-' || *text == '+')
        strv_push(ret, "--");
    strv_push(ret, text);
}

char *claude_cwd_file(const char *text, const char *tmp)
{
    static const char before[] = " && pwd -P >| ";
    static const char begin[] = "/claude-", end[] = "-cwd";
    const char *at = NULL, *name;
    size_t len;

    for (const char *next = text; (next = strstr(next, before)); next++)
        at = next + strlen(before);
    if (!at || !str_starts(at, tmp) || !str_starts(at + strlen(tmp), begin))
        return NULL;
    name = at + strlen(tmp) + strlen(begin);
    len = strspn(name, "0123456789abcdef");
    return len && len <= 32 && str_eq(name + len, end) ? alloc_str(at) : NULL;
}

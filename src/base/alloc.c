/* See alloc.h. */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *alloc_check(void *block)
{
    if (!block) {
        fputs("cordon: out of memory\n", stderr);
        abort();
    }
    return block;
}

void *alloc_zero(size_t count, size_t size)
{
    return alloc_check(calloc(count ? count : 1, size ? size : 1));
}

void *alloc_resize(void *block, size_t count, size_t size)
{
    return alloc_check(reallocarray(block, count ? count : 1, size ? size : 1));
}

char *alloc_str(const char *text)
{
    return text ? alloc_check(strdup(text)) : NULL;
}

char *alloc_strn(const char *text, size_t len)
{
    return alloc_check(strndup(text, len));
}

char *alloc_strf(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    int len;

    va_start(args, fmt);
    len = vasprintf(&text, fmt, args);
    va_end(args);
    return alloc_check(len < 0 ? NULL : text);
}

void *alloc_grow(void *items, size_t len, size_t *cap, size_t size)
{
    if (len < *cap)
        return items;
    *cap = *cap ? *cap * 2 : 8;
    return alloc_resize(items, *cap, size);
}

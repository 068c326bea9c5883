/* See strv.h. */
#include "base/strv.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

void strv_done(struct strv *strv)
{
    for (size_t i = 0; i < strv->len; i++)
        free(strv->items[i]);
    free(strv->items);
    *strv = (struct strv){0};
}

void strv_push_take(struct strv *strv, char *text)
{
    strv->items = alloc_grow(strv->items, strv->len + 1, &strv->cap, sizeof *strv->items);
    strv->items[strv->len++] = text;
    strv->items[strv->len] = NULL;
}

void strv_push(struct strv *strv, const char *text)
{
    strv_push_take(strv, alloc_str(text));
}

void strv_push_all(struct strv *strv, char *const *items)
{
    for (; items && *items; items++)
        strv_push(strv, *items);
}

static int strv_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void strv_sort(struct strv *strv)
{
    if (strv->len)
        qsort(strv->items, strv->len, sizeof *strv->items, strv_compare);
}

bool strv_has(const struct strv *strv, const char *text)
{
    for (size_t i = 0; i < strv->len; i++)
        if (strcmp(strv->items[i], text) == 0)
            return true;
    return false;
}

char *const *strv_view(const struct strv *strv)
{
    static char *const empty[] = {NULL};

    return strv->items ? strv->items : empty;
}

/* See packed_refs.h. A line is "ID NAME"; git sorts them by name, but who writes the file need not: so we do. */
#include "layer/packed_refs.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

size_t commit_id_len(const char *text)
{
    size_t len = strspn(text, "0123456789abcdef");

    return len == 40 || len == COMMIT_ID_MAX ? len : 0;
}

static int compare_names(const char *one, size_t one_len, const char *other, size_t other_len)
{
    const int order = memcmp(one, other, one_len < other_len ? one_len : other_len);

    return order ? order : one_len < other_len ? -1 : one_len > other_len;
}

static int compare(const void *a, const void *b)
{
    const struct packed_ref *one = a, *other = b;
    const int order = compare_names(one->name, one->name_len, other->name, other->name_len);

    return order ? order : one->name < other->name ? -1 : one->name > other->name;
}

void packed_refs_parse(struct packed_refs *refs)
{
    for (const char *line = refs->text.data; line && *line; line = strchr(line, '\n')) {
        size_t len;

        line += *line == '\n';
        len = commit_id_len(line);
        if (!len || line[len] != ' ')
            continue;
        refs->items = alloc_grow(refs->items, refs->len, &refs->cap, sizeof *refs->items);
        refs->items[refs->len++] = (struct packed_ref){.name = line + len + 1,
                                                       .name_len = strcspn(line + len + 1, "\n"),
                                                       .commit = line,
                                                       .commit_len = len};
    }
    if (refs->len)
        qsort(refs->items, refs->len, sizeof *refs->items, compare);
}

const struct packed_ref *packed_refs_find(const struct packed_refs *refs, const char *name,
                                          size_t len)
{
    size_t low = 0, high = refs->len;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct packed_ref *ref = &refs->items[middle];

        if (compare_names(ref->name, ref->name_len, name, len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < refs->len && refs->items[low].name_len == len &&
                   memcmp(refs->items[low].name, name, len) == 0
               ? &refs->items[low]
               : NULL;
}

void packed_refs_done(struct packed_refs *refs)
{
    buf_done(&refs->text);
    free(refs->items);
    *refs = (struct packed_refs){0};
}

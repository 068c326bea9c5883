/* See write_ids.h. A ring that is searched from end to end: comparing 4,096 numbers takes less than
 * the write(2) that it may save. */
#include "job/write_ids.h"

#include "base/alloc.h"
#include "base/str.h"

#include <stdlib.h>

/* FNV-1a, 64 bits (draft-eastlake-fnv). It only saves comparing texts. */
static uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

void write_ids_done(struct write_ids *ids)
{
    for (size_t i = 0; i < ids->len; i++)
        free(ids->items[i].text);
    free(ids->items);
    *ids = (struct write_ids){0};
}

bool write_ids_has(const struct write_ids *ids, const char *id)
{
    uint64_t hash = hash_text(id);

    for (size_t i = 0; i < ids->len; i++)
        if (ids->items[i].hash == hash && str_eq(ids->items[i].text, id))
            return true;
    return false;
}

void write_ids_add(struct write_ids *ids, const char *id)
{
    struct write_id *slot;

    if (ids->len < WRITE_IDS_MAX) {
        ids->items = alloc_grow(ids->items, ids->len, &ids->cap, sizeof *ids->items);
        slot = &ids->items[ids->len++];
    } else {
        slot = &ids->items[ids->oldest];
        ids->oldest = (ids->oldest + 1) % WRITE_IDS_MAX;
        free(slot->text);
    }
    *slot = (struct write_id){.hash = hash_text(id), .text = alloc_str(id)};
}

/* A list, oldest first: a peer is asked little at a time. A call that was cancelled or timed out
 * stays without its callback until its answer comes, because an answer to nothing closes the
 * connection and the peer can not know that nobody waits any more. Each costs 40 bytes and a peer
 * that never answers makes them pile up, so the oldest of more than STALE_MAX go.
 *
 * Callbacks may add and cancel, so an entry is taken out of the list before its callback is called,
 * and the list is walked from the beginning again after. */
#include "rpc/calls.h"

#include "base/alloc.h"

#include <stdlib.h>

enum { STALE_MAX = 1024 };

struct calls_entry {
    struct calls_entry *next;
    int64_t id;
    uint64_t due_ns;
    rpc_answer_fn *on_answer; /* NULL: nobody waits any more */
    void *data;
};

int64_t calls_add(struct calls *calls, const struct rpc_call *call, uint64_t due_ns)
{
    struct calls_entry *entry = alloc_zero(1, sizeof *entry);
    struct calls_entry **slot = &calls->first;

    *entry = (struct calls_entry){
        .id = ++calls->last_id, .due_ns = due_ns, .on_answer = call->on_answer, .data = call->data};
    while (*slot)
        slot = &(*slot)->next;
    *slot = entry;
    return entry->id;
}

static void calls_drop(struct calls_entry **slot)
{
    struct calls_entry *entry = *slot;

    *slot = entry->next;
    free(entry);
}

static void calls_limit_stale(struct calls *calls)
{
    size_t stale = 0;
    struct calls_entry **slot;

    for (const struct calls_entry *entry = calls->first; entry; entry = entry->next)
        stale += !entry->on_answer;
    for (slot = &calls->first; *slot && stale > STALE_MAX;) {
        if ((*slot)->on_answer) {
            slot = &(*slot)->next;
            continue;
        }
        calls_drop(slot);
        stale--;
    }
}

static void calls_make_stale(struct calls *calls, struct calls_entry *entry)
{
    entry->on_answer = NULL;
    entry->due_ns = UINT64_MAX;
    calls_limit_stale(calls);
}

void calls_cancel(struct calls *calls, int64_t id)
{
    for (struct calls_entry *entry = calls->first; entry; entry = entry->next) {
        if (entry->id == id) {
            calls_make_stale(calls, entry);
            return;
        }
    }
}

bool calls_answer(struct calls *calls, const struct rpc_message *answer)
{
    struct calls_entry **slot = &calls->first;
    struct calls_entry found;

    if (!json_is_integer(answer->id))
        return false;
    while (*slot && (*slot)->id != json_integer_value(answer->id))
        slot = &(*slot)->next;
    if (!*slot)
        return false;
    found = **slot;
    calls_drop(slot);
    if (found.on_answer)
        found.on_answer(found.data, answer);
    return true;
}

void calls_expire(struct calls *calls, uint64_t now_ns)
{
    struct calls_entry *entry = calls->first;

    while (entry) {
        struct calls_entry found = *entry;

        if (found.due_ns > now_ns) {
            entry = entry->next;
            continue;
        }
        calls_make_stale(calls, entry);
        if (found.on_answer)
            found.on_answer(found.data, NULL);
        entry = calls->first;
    }
}

uint64_t calls_due_ns(const struct calls *calls)
{
    uint64_t due_ns = UINT64_MAX;

    for (const struct calls_entry *entry = calls->first; entry; entry = entry->next)
        if (entry->due_ns < due_ns)
            due_ns = entry->due_ns;
    return due_ns;
}

void calls_fail(struct calls *calls)
{
    while (calls->first) {
        struct calls_entry found = *calls->first;

        calls_drop(&calls->first);
        if (found.on_answer)
            found.on_answer(found.data, NULL);
    }
}

void calls_done(struct calls *calls)
{
    while (calls->first)
        calls_drop(&calls->first);
}

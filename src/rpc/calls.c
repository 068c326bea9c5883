/* A list, oldest first: a peer is asked little at a time. A call that was cancelled or timed out
 * stays without its callback until its answer comes, because an answer to nothing closes the
 * connection and the peer cannot know that the caller waits no more. Each costs 64 bytes and a peer
 * that never answers makes them pile up, so the oldest of more than STALE_MAX go.
 *
 * Callbacks may add and cancel, so an entry is taken out of the list before its callback is called,
 * and the list is walked from the beginning again after. */
#include "rpc/calls.h"

#include "base/alloc.h"

#include <stdlib.h>

enum { STALE_MAX = 1024 };

struct calls_entry {
    struct list in_calls;
    int64_t id;
    uint64_t due_ns;
    rpc_answer_fn *on_answer; /* NULL: the caller waits no more */
    void *data;
};

int64_t calls_add(struct calls *calls, const struct rpc_call *call, uint64_t due_ns)
{
    struct calls_entry *entry = alloc_zero(1, sizeof *entry);

    *entry = (struct calls_entry){
        .id = ++calls->last_id, .due_ns = due_ns, .on_answer = call->on_answer, .data = call->data};
    list_append(&calls->entries, &entry->in_calls);
    return entry->id;
}

static void calls_drop(struct calls_entry *entry)
{
    list_remove(&entry->in_calls);
    free(entry);
}

static struct calls_entry *calls_find(const struct calls *calls, int64_t id)
{
    struct calls_entry *entry;

    list_for_each(entry, &calls->entries, in_calls)
        if (entry->id == id)
            return entry;
    return NULL;
}

static void calls_limit_stale(struct calls *calls)
{
    struct calls_entry *entry;
    struct calls_entry *following;
    size_t stale = 0;

    list_for_each(entry, &calls->entries, in_calls)
        stale += !entry->on_answer;
    list_for_each_safe(entry, following, &calls->entries, in_calls) {
        if (stale <= STALE_MAX)
            return;
        if (!entry->on_answer) {
            calls_drop(entry);
            stale--;
        }
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
    struct calls_entry *entry = calls_find(calls, id);

    if (entry)
        calls_make_stale(calls, entry);
}

/* Takes the entry out, then calls back. */
static void calls_finish(struct calls_entry *entry, const struct rpc_message *answer)
{
    const struct calls_entry found = *entry;

    calls_drop(entry);
    if (found.on_answer)
        found.on_answer(found.data, answer);
}

bool calls_answer(struct calls *calls, const struct rpc_message *answer)
{
    struct calls_entry *entry =
        json_is_integer(answer->id) ? calls_find(calls, json_integer_value(answer->id)) : NULL;

    if (!entry)
        return false;
    calls_finish(entry, answer);
    return true;
}

static struct calls_entry *calls_find_due(const struct calls *calls, uint64_t now_ns)
{
    struct calls_entry *entry;

    list_for_each(entry, &calls->entries, in_calls)
        if (entry->due_ns <= now_ns)
            return entry;
    return NULL;
}

void calls_expire(struct calls *calls, uint64_t now_ns)
{
    struct calls_entry *entry;

    while ((entry = calls_find_due(calls, now_ns))) {
        const struct calls_entry found = *entry;

        calls_make_stale(calls, entry);
        if (found.on_answer)
            found.on_answer(found.data, NULL);
    }
}

uint64_t calls_due_ns(const struct calls *calls)
{
    const struct calls_entry *entry;
    uint64_t due_ns = UINT64_MAX;

    list_for_each(entry, &calls->entries, in_calls)
        if (entry->due_ns < due_ns)
            due_ns = entry->due_ns;
    return due_ns;
}

void calls_fail(struct calls *calls)
{
    struct calls_entry *entry;

    while ((entry = list_first(&calls->entries, struct calls_entry, in_calls)))
        calls_finish(entry, NULL);
}

void calls_done(struct calls *calls)
{
    struct calls_entry *entry;

    while ((entry = list_first(&calls->entries, struct calls_entry, in_calls)))
        calls_drop(entry);
}

/* What the guard says of a launch, in the words of sandbox/sandbox.h, and what it is told.
 *
 * The guard is a program of ours, but one that reads what hostile processes write: nothing is taken of
 * a packet that is not one of its own (guard/guard_format.h). */
#include "sandbox/linux/guard_link.h"
#include "sandbox/sandbox.h"

#include <string.h>

_Static_assert((int)FACT_WRITE == (int)GUARD_OP_WRITE && (int)FACT_CREATE == (int)GUARD_OP_CREATE &&
                   (int)FACT_EXECUTE == (int)GUARD_OP_EXECUTE &&
                   (int)FACT_CONNECT == (int)GUARD_OP_CONNECT &&
                   (int)FACT_BIND == (int)GUARD_OP_BIND &&
                   (int)FACT_SIGNAL == (int)GUARD_OP_SIGNAL && (int)FACT_READ == (int)GUARD_OP_READ,
               "read as they are");

_Static_assert((int)LAUNCH_NO == (int)GUARD_NO && (int)LAUNCH_YES == (int)GUARD_YES &&
                   (int)LAUNCH_OUTSIDE == (int)GUARD_OUTSIDE && (int)LAUNCH_STOP == (int)GUARD_STOP,
               "sent as they are");

static bool is_of_exec(const struct guard_fact *fact)
{
    return fact->kind == GUARD_FACT_EXEC || fact->kind == GUARD_FACT_OUTSIDE ||
           ((fact->kind == GUARD_FACT_ASKED || fact->kind == GUARD_FACT_DENIED) &&
            fact->operation == GUARD_OP_EXECUTE);
}

static void decode_fact(const struct launch *launch, const struct guard_fact *fact,
                        struct launch_fact *ret)
{
    const struct access_map *map = sandbox_access(launch->sandbox);
    const char *other = fact->strings + strlen(fact->strings) + 1;

    static const enum fact_kind kinds[] = {
        [GUARD_FACT_DENIED] = FACT_DENIED,
        [GUARD_FACT_MORE] = FACT_DENIED,
        [GUARD_FACT_ASKED] = FACT_ASKED,
        [GUARD_FACT_WITHDRAWN] = FACT_WITHDRAWN,
        [GUARD_FACT_DONE] = FACT_DONE,
        [GUARD_FACT_EXEC] = FACT_EXEC,
        [GUARD_FACT_EXIT] = FACT_EXIT,
        [GUARD_FACT_OUTSIDE] = FACT_OUTSIDE,
        [GUARD_FACT_SIGNAL] = FACT_OUTSIDE_SIGNAL,
        [GUARD_FACT_LOST] = FACT_LOST,
    };

    *ret = (struct launch_fact){
        .kind = kinds[fact->kind],
        .id = fact->id,
        .operation = (enum fact_operation)fact->operation,
        .path = fact->strings,
        .other_path = *other && !is_of_exec(fact) ? other : NULL,
        .program = fact->program,
        .pid = fact->pid,
        .error = fact->error,
        .call = (int)fact->call,
        .is_socket = fact->is_socket,
        .more = fact->kind == GUARD_FACT_MORE || fact->kind == GUARD_FACT_LOST ||
                        (fact->kind == GUARD_FACT_EXEC && !fact->id)
                    ? fact->count
                    : 0,
        .time_ns = fact->time_ns,
        .is_truncated = fact->flags & GUARD_FLAG_TRUNCATED,
        .parent = fact->parent,
        .number = fact->number,
    };
    if (fact->kind == GUARD_FACT_ASKED && !is_of_exec(fact)) {
        const char *covers = other + strlen(other) + 1;
        const char *other_covers = covers + strlen(covers) + 1;

        ret->covers = *covers ? covers : NULL;
        ret->other_covers = *other_covers ? other_covers : NULL;
    }
    if (is_of_exec(fact)) {
        ret->cwd = other;
        ret->argv = guard_channel_argv(launch->channel);
    }
    if (fact->entry >= 0 && (size_t)fact->entry < map->len)
        ret->entry = &map->entries[fact->entry];
}

bool launch_read_fact(struct launch *launch, struct launch_fact *ret)
{
    const struct guard_fact *fact = launch->channel ? guard_channel_next(launch->channel) : NULL;

    while (fact && (fact->kind < GUARD_FACT_DENIED || fact->kind > GUARD_FACT_LOST ||
                    fact->operation > GUARD_OP_READ || fact->program[GUARD_COMM - 1]))
        fact = guard_channel_next(launch->channel); /* nothing that a guard of ours says */
    if (fact) {
        decode_fact(launch, fact, ret);
        return true;
    }
    if (launch->channel && guard_channel_is_broken(launch->channel))
        launch->is_unguarded = true;
    return false;
}

void launch_answer(const struct launch *launch, uint64_t id, enum launch_verdict verdict)
{
    const struct guard_order order = {
        .magic = GUARD_MAGIC,
        .kind = GUARD_ORDER_ANSWER,
        .id = id,
        .verdict = verdict,
    };

    if (launch->channel)
        guard_channel_send(launch->channel, &order);
}

void launch_take_stdio(struct launch *launch, int ret_fds[3])
{
    ret_fds[0] = ret_fds[1] = ret_fds[2] = -1;
    if (launch->channel)
        guard_channel_take_stdio(launch->channel, ret_fds);
}

void launch_answer_exit(const struct launch *launch, uint64_t id, int wait_status)
{
    const struct guard_order order = {
        .magic = GUARD_MAGIC,
        .kind = GUARD_ORDER_EXIT,
        .id = id,
        .number = (uint32_t)wait_status,
    };

    if (launch->channel)
        guard_channel_send(launch->channel, &order);
}

/* See facts.h. A fact is in the channel before its call is answered, so that the host has all of
 * them when the command has ended. The host may be slow: what does not fit is dropped and counted,
 * never waited for. */
#include "guard/facts.h"

#include "guard/remote.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM_FOR_DONE = 128 << 10 }; /* bytes, of net.core.wmem_default's 208 KiB */

bool facts_send(struct command *command, const struct guard_fact *packet, size_t len)
{
    if (send(command->channel, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return true;
    command->facts.dropped++;
    return false;
}

void facts_name(struct guard_fact *packet)
{
    if (!*packet->program)
        remote_name(packet->pid, packet->program);
}

void fact_begin(struct guard_fact *ret, enum guard_fact_kind kind)
{
    memset(ret, 0, offsetof(struct guard_fact, strings));
    ret->kind = kind;
    ret->time_ns = now_ns();
}

static void send_count(struct command *command, struct fact_count *slot)
{
    struct guard_fact more;

    fact_begin(&more, GUARD_FACT_MORE);
    more.operation = slot->operation;
    more.entry = slot->entry;
    more.count = slot->untold;
    snprintf(more.strings, PATH_MAX, "%s", slot->path);
    facts_send(command, &more, packet_len(strlen(more.strings) + 2));
    slot->untold = 0;
}

/* Where a fact of this operation in this directory (of `len` bytes) is counted. */
static struct fact_count *find_count(struct facts *facts, const struct guard_fact *fact, size_t len)
{
    struct fact_count *slot;

    for (uint32_t i = 0; i < facts->counts_len; i++) {
        slot = &facts->counts[i];
        if (!*slot->path || (slot->operation == fact->operation && strlen(slot->path) == len &&
                             memcmp(slot->path, fact->strings, len) == 0))
            return slot;
    }
    slot = &facts->counts[facts->counts_len];
    *slot = (struct fact_count){.operation = fact->operation, .entry = fact->entry};
    slot->path = strndup(fact->strings, ++facts->counts_len < FACT_COUNTS_MAX ? len : 0);
    if (!slot->path)
        facts->counts_len--;
    return slot->path ? slot : NULL;
}

/* Counted, not told; the host hears of it each time that the number has doubled, and at the end. */
static void count(struct command *command, const struct guard_fact *fact)
{
    const char *slash = fact->is_socket ? NULL : strrchr(fact->strings, '/');
    struct fact_count *slot =
        find_count(&command->facts, fact, slash ? (size_t)(slash - fact->strings) : 0);

    if (!slot) {
        command->facts.dropped++;
        return;
    }
    slot->count++;
    slot->untold++;
    if ((slot->count & (slot->count - 1)) == 0)
        send_count(command, slot);
}

size_t facts_write(const struct request *request, const struct fact *fact, struct guard_fact *ret)
{
    char path[PATH_MAX];
    size_t len;

    fact_begin(ret, GUARD_FACT_DENIED);
    ret->operation = fact->operation;
    ret->entry = fact->entry;
    ret->error = fact->error;
    ret->call = (uint32_t)request->call->nr;
    ret->pid = request->thread;
    ret->count = 1;
    ret->is_socket = fact->is_socket;
    if (fact->place)
        place_path(fact->place, path);
    len = (size_t)snprintf(ret->strings, PATH_MAX, "%s", fact->place ? path : fact->path) + 1;
    if (len > PATH_MAX)
        len = PATH_MAX;
    snprintf(ret->strings + len, PATH_MAX, "%s", fact->other_path ? fact->other_path : "");
    return packet_len(len + strlen(ret->strings + len) + 1);
}

/* Who only asked may still do it, which is another fact. */
static uint64_t hash_of(const struct guard_fact *packet, size_t len)
{
    const struct call *call = call_find((int)packet->call); /* NULL: seen in another way */
    bool is_access = call && call->kind == CALL_ACCESS;

    return hash_bytes(HASH_START + packet->operation + (is_access ? 0x100u : 0), packet->strings,
                      len - packet_len(0));
}

void facts_tell_denied(struct command *command, struct guard_fact *packet, size_t len)
{
    struct facts *facts = &command->facts;
    uint64_t is_same = hash_of(packet, len);

    for (uint32_t i = 0; i < facts->told; i++)
        if (facts->seen[i] == is_same)
            return;
    if (facts->told == GUARD_FACTS_MAX) {
        count(command, packet);
        return;
    }
    facts->seen[facts->told++] = is_same;
    facts_name(packet);
    facts_send(command, packet, len);
}

void facts_tell(const struct request *request, const struct fact *fact)
{
    struct guard_fact packet;

    if (request->command->map.header->flags & GUARD_MAP_FACTS)
        facts_tell_denied(request->command, &packet, facts_write(request, fact, &packet));
}

void facts_tell_withdrawn(struct command *command, uint64_t id)
{
    struct guard_fact packet;

    fact_begin(&packet, GUARD_FACT_WITHDRAWN);
    packet.id = id;
    facts_send(command, &packet, packet_len(0));
}

/* What is refused, and the last word, find room in any case. */
static bool has_room(const struct command *command)
{
    int waiting;

    return ioctl(command->channel, TIOCOUTQ, &waiting) == 0 && waiting < ROOM_FOR_DONE;
}

/* That the host missed something comes where it was. false: there is still no room. */
static bool tell_lost(struct command *command)
{
    struct facts *facts = &command->facts;
    struct guard_fact lost;

    fact_begin(&lost, GUARD_FACT_LOST);
    lost.entry = GUARD_NO_ENTRY;
    lost.count = facts->lost;
    if (facts->lost && !facts_send(command, &lost, packet_len(0)))
        return false;
    facts->lost = 0;
    return true;
}

void facts_tell_done(const struct request *request, const struct fact *fact)
{
    struct command *command = request->command;
    struct guard_fact packet;
    size_t len;

    if (!has_room(command) || !tell_lost(command)) {
        command->facts.lost++;
        return;
    }
    len = facts_write(request, fact, &packet);
    packet.kind = GUARD_FACT_DONE;
    facts_name(&packet);
    if (!facts_send(command, &packet, len))
        command->facts.lost++;
}

void facts_tell_caller(const struct request *request, const uint8_t address[16], uint16_t port)
{
    struct guard_fact caller;

    if (!has_room(request->command))
        return;
    fact_begin(&caller, GUARD_FACT_CALLER);
    caller.entry = GUARD_NO_ENTRY;
    caller.call = (uint32_t)request->call->nr;
    caller.pid = request->thread;
    caller.number = port;
    memcpy(caller.address, address, sizeof caller.address);
    facts_name(&caller);
    facts_send(request->command, &caller, packet_len(0));
}

void facts_end(struct command *command)
{
    struct facts *facts = &command->facts;
    struct guard_fact end;

    tell_lost(command);
    for (uint32_t i = 0; i < facts->counts_len; i++) {
        if (facts->counts[i].untold)
            send_count(command, &facts->counts[i]);
        free(facts->counts[i].path);
    }
    facts->counts_len = 0;
    fact_begin(&end, GUARD_FACT_END);
    end.count = facts->dropped;
    facts_send(command, &end, packet_len(0));
}

/* See facts.h. A fact is in the channel before its call is answered, so that the host has all of
 * them when the command has ended. The host may be slow: what does not fit is dropped and counted,
 * never waited for. */
#include "guard/facts.h"

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void send_fact(struct command *command, const struct guard_fact *fact, size_t strings)
{
    size_t len = offsetof(struct guard_fact, strings) + strings;

    if (send(command->channel, fact, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        command->facts.dropped++;
}

static void read_program(pid_t thread, char ret[GUARD_COMM])
{
    char path[64];
    AUTO_CLOSE int fd = -1;
    ssize_t len;

    snprintf(path, sizeof path, "/proc/%d/comm", (int)thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = fd < 0 ? 0 : read(fd, ret, GUARD_COMM - 1);
    len -= len > 0 && ret[len - 1] == '\n';
    ret[len > 0 ? len : 0] = '\0';
}

/* All but the strings. */
static void fact_begin(struct guard_fact *ret, enum guard_fact_kind kind)
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
    send_fact(command, &more, strlen(more.strings) + 2);
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

void facts_tell(const struct request *request, const struct fact *fact)
{
    struct command *command = request->command;
    struct facts *facts = &command->facts;
    struct guard_fact packet;
    char path[PATH_MAX];
    size_t len;
    uint64_t is_same;

    if (!(command->map.header->flags & GUARD_MAP_FACTS))
        return;
    fact_begin(&packet, GUARD_FACT_DENIED);
    packet.operation = fact->operation;
    packet.entry = fact->entry;
    packet.error = fact->error;
    packet.call = (uint32_t)request->call->nr;
    packet.pid = request->thread;
    packet.count = 1;
    packet.is_socket = fact->is_socket;
    if (fact->place)
        place_path(fact->place, path);
    len = (size_t)snprintf(packet.strings, PATH_MAX, "%s", fact->place ? path : fact->path) + 1;
    if (len > PATH_MAX)
        len = PATH_MAX;
    packet.strings[len] = '\0';
    if (fact->other_place) {
        place_path(fact->other_place, path);
        snprintf(packet.strings + len, PATH_MAX, "%s", path);
    }
    len += strlen(packet.strings + len) + 1;
    /* who only asked may still do it, which is another fact */
    is_same =
        hash_bytes(HASH_START + fact->operation + (request->call->kind == CALL_ACCESS ? 0x100u : 0),
                   packet.strings, len);
    for (uint32_t i = 0; i < facts->told; i++)
        if (facts->seen[i] == is_same)
            return;
    if (facts->told == GUARD_FACTS_MAX) {
        count(command, &packet);
        return;
    }
    facts->seen[facts->told++] = is_same;
    read_program(request->thread, packet.program);
    send_fact(command, &packet, len);
}

void facts_end(struct command *command)
{
    struct facts *facts = &command->facts;
    struct guard_fact end;

    for (uint32_t i = 0; i < facts->counts_len; i++) {
        if (facts->counts[i].untold)
            send_count(command, &facts->counts[i]);
        free(facts->counts[i].path);
    }
    facts->counts_len = 0;
    fact_begin(&end, GUARD_FACT_END);
    end.count = facts->dropped;
    send_fact(command, &end, 0);
}

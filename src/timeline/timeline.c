/* See timeline.h. A ring, whose events have consecutive numbers: so a number is a place in it. A
 * repetition is found by a table of hashes in which a newer event may push out an older one; then the
 * repetition is an event of its own, which is no harm. */
#include "timeline/timeline.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "base/strv.h"
#include "denial/denial.h"
#include "timeline/exec_tree.h"

#include <stdlib.h>
#include <string.h>

enum { RECENT_MAX = 4096 };

struct timeline {
    struct timeline_options options;
    struct timeline_event *events; /* TIMELINE_EVENTS_MAX; NULL before the first */
    uint64_t first, last;          /* numbers of the oldest and the newest; first > last: none */
    size_t bytes;                  /* of the texts */
    uint64_t *recent;              /* RECENT_MAX numbers of events, by their hash */
    struct exec_tree *execs;       /* NULL: not of TIMELINE_EXEC */
};

/* --- topics --- */

static const struct {
    const char *word;
    unsigned topic;
    unsigned watch;
} topics[] = {
    {"files", TIMELINE_FILES, WATCH_FILES},
    {"network", TIMELINE_NETWORK, WATCH_NETWORK},
    {"exec", TIMELINE_EXEC, WATCH_EXEC},
};

unsigned timeline_watch(unsigned wanted)
{
    unsigned watch = 0;

    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        if (wanted & topics[i].topic)
            watch |= topics[i].watch | WATCH_FACTS;
    return watch;
}

int timeline_parse_topics(const char *words, unsigned *ret, struct err *err)
{
    *ret = 0;
    do {
        size_t len = strcspn(words, ",");
        size_t i = 0;

        while (i < sizeof topics / sizeof *topics &&
               !(strlen(topics[i].word) == len && memcmp(topics[i].word, words, len) == 0))
            i++;
        if (i == sizeof topics / sizeof *topics)
            return err_set(err, ERR_INVALID, "\"%.*s\" is none of files, network and exec",
                           (int)len, words);
        *ret |= topics[i].topic;
        words += len;
    } while (*words++);
    return 0;
}

static unsigned topic_of(const struct launch_fact *fact)
{
    switch (fact->operation) {
    case FACT_CONNECT:
    case FACT_BIND:
        return TIMELINE_NETWORK;
    case FACT_EXECUTE:
    case FACT_SIGNAL:
        return TIMELINE_EXEC;
    case FACT_WRITE:
    case FACT_CREATE:
    case FACT_READ:
        break;
    }
    return TIMELINE_FILES;
}

/* --- the ring --- */

static struct timeline_event *at(const struct timeline *timeline, uint64_t seq)
{
    return &timeline->events[seq % TIMELINE_EVENTS_MAX];
}

static void event_free(struct timeline_event *event)
{
    free(event->program);
    free(event->path);
    free(event->other_path);
    free(event->origin);
    free(event->cwd);
    for (char **word = event->argv; word && *word; word++)
        free(*word);
    free(event->argv);
}

static size_t text_len(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static size_t event_bytes(const struct timeline_event *event)
{
    size_t bytes = text_len(event->program) + text_len(event->path) + text_len(event->other_path) +
                   text_len(event->origin) + text_len(event->cwd);

    for (char **word = event->argv; word && *word; word++)
        bytes += text_len(*word) + sizeof *word;
    return bytes;
}

static bool is_empty(const struct timeline *timeline)
{
    return timeline->first > timeline->last;
}

static void drop_oldest(struct timeline *timeline)
{
    struct timeline_event *oldest = at(timeline, timeline->first++);

    timeline->bytes -= event_bytes(oldest);
    event_free(oldest);
}

/* Takes the texts over. */
static const struct timeline_event *push(struct timeline *timeline, struct timeline_event *event)
{
    size_t bytes = event_bytes(event);

    if (!timeline->events)
        timeline->events = alloc_zero(TIMELINE_EVENTS_MAX, sizeof *timeline->events);
    while (!is_empty(timeline) && (timeline->last - timeline->first + 1 == TIMELINE_EVENTS_MAX ||
                                   timeline->bytes + bytes > TIMELINE_BYTES_MAX))
        drop_oldest(timeline);
    event->seq = ++timeline->last;
    timeline->bytes += bytes;
    *at(timeline, event->seq) = *event;
    if (timeline->options.on_event)
        timeline->options.on_event(timeline->options.data, at(timeline, event->seq));
    return at(timeline, event->seq);
}

/* --- repetitions --- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    /* 64-bit FNV-1a (draft-eastlake-fnv) */
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static bool is_text(const char *a, const char *b)
{
    return a && b ? str_eq(a, b) : a == b;
}

static bool is_same(const struct timeline_event *a, const struct timeline_event *b)
{
    return a->kind == b->kind && a->operation == b->operation && a->call == b->call &&
           a->exec == b->exec && a->error == b->error && a->is_below == b->is_below &&
           is_text(a->program, b->program) && is_text(a->path, b->path) &&
           is_text(a->other_path, b->other_path);
}

static uint64_t *recent_slot(struct timeline *timeline, const struct timeline_event *event)
{
    uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), event->program);

    if (!timeline->recent)
        timeline->recent = alloc_zero(RECENT_MAX, sizeof *timeline->recent);
    hash = hash_text(hash_text(hash, event->path), event->other_path);
    return &timeline->recent[hash_text(hash, event->call) % RECENT_MAX];
}

/* Pushes it, or counts it where it was before. */
static void push_or_count(struct timeline *timeline, struct timeline_event *event)
{
    uint64_t *slot = recent_slot(timeline, event);

    if (!is_empty(timeline) && *slot >= timeline->first && *slot <= timeline->last &&
        is_same(at(timeline, *slot), event)) {
        at(timeline, *slot)->count += event->count;
        event_free(event);
        return;
    }
    *slot = push(timeline, event)->seq;
}

/* --- facts --- */

/* What was done, in a word: the guard tells writing from making, and the call tells the rest. */
static const char *operation_of(const struct launch_fact *fact, const char *call)
{
    static const char *const names[] = {
        [FACT_WRITE] = "write",     [FACT_CREATE] = "create", [FACT_EXECUTE] = "execute",
        [FACT_CONNECT] = "connect", [FACT_BIND] = "bind",     [FACT_SIGNAL] = "signal",
        [FACT_READ] = "read",
    };
    static const struct {
        const char *beginning, *operation;
    } calls[] = {
        {"unlink", "remove"}, {"rmdir", "remove"}, {"rename", "rename"}, {"link", "link"},
        {"open", "write"},    {"creat", "write"},  {"faccess", "write"}, {"access", "write"},
    };

    if (fact->operation > FACT_CREATE)
        return names[fact->operation];
    for (size_t i = 0; call && i < sizeof calls / sizeof *calls; i++)
        if (str_starts(call, calls[i].beginning) &&
            (fact->operation == FACT_WRITE || calls[i].operation[0] != 'w'))
            return calls[i].operation;
    return fact->operation == FACT_WRITE && call ? "change" : names[fact->operation];
}

static char *text_or_null(const char *text)
{
    return text && *text ? alloc_str(text) : NULL;
}

static uint64_t exec_of(const struct timeline *timeline, pid_t pid)
{
    return timeline->execs ? exec_tree_of_pid(timeline->execs, pid) : 0;
}

static struct timeline_event event_of(const struct timeline *timeline,
                                      const struct launch_fact *fact, enum timeline_kind kind)
{
    const uint64_t start = timeline->options.start_ns;

    return (struct timeline_event){
        .kind = kind,
        .time_ns = fact->time_ns > start ? fact->time_ns - start : 0,
        .pid = fact->pid,
        .count = fact->more ? fact->more : 1,
    };
}

/* What the command did, or tried. */
static void add_call(struct timeline *timeline, const struct launch_fact *fact,
                     enum timeline_kind kind)
{
    const struct access_entry *entry = fact->entry;
    struct timeline_event event;

    if (!(topic_of(fact) & timeline->options.topics))
        return;
    event = event_of(timeline, fact, kind);
    event.call = denial_call_name(fact->call);
    event.operation = operation_of(fact, event.call);
    event.exec = exec_of(timeline, fact->pid);
    event.is_socket = fact->is_socket;
    event.program = text_or_null(fact->program);
    event.path = text_or_null(fact->path);
    event.other_path = text_or_null(fact->other_path);
    if (kind == TIMELINE_DENIED) {
        if (!entry && timeline->options.access && fact->path && *fact->path == '/')
            entry = access_map_find(timeline->options.access, fact->path);
        event.origin = entry ? text_or_null(entry->origin) : NULL;
        event.error = fact->error;
        event.is_below = fact->more;
    }
    if (kind == TIMELINE_ASKED) {
        event.question = fact->id;
        push(timeline, &event);
    } else {
        push_or_count(timeline, &event);
    }
}

static char **argv_copy(const char *const *argv)
{
    size_t len = 0;
    char **copy;

    while (argv && argv[len])
        len++;
    copy = alloc_zero(len + 1, sizeof *copy);
    for (size_t i = 0; i < len; i++)
        copy[i] = alloc_str(argv[i]);
    return copy;
}

static void add_exec(struct timeline *timeline, const struct launch_fact *fact)
{
    struct timeline_event event = event_of(timeline, fact, TIMELINE_EXECUTED);

    event.exec = fact->id;
    event.parent = fact->parent;
    event.is_truncated = fact->is_truncated;
    event.is_outside = fact->kind == FACT_OUTSIDE;
    event.program = text_or_null(fact->program);
    event.path = text_or_null(fact->path);
    event.cwd = text_or_null(fact->cwd);
    event.argv = argv_copy(fact->argv);
    push(timeline, &event);
}

static void add_end(struct timeline *timeline, const struct launch_fact *fact)
{
    struct timeline_event event = event_of(timeline, fact, TIMELINE_ENDED);

    event.exec = fact->id;
    event.wait_status = fact->number;
    push(timeline, &event);
}

static void add_missed(struct timeline *timeline, const struct launch_fact *fact)
{
    struct timeline_event event = event_of(timeline, fact, TIMELINE_MISSED);

    push(timeline, &event);
}

void timeline_add(struct timeline *timeline, const struct launch_fact *fact)
{
    if (!timeline)
        return;
    if (timeline->execs)
        exec_tree_add(timeline->execs, fact);
    switch (fact->kind) {
    case FACT_DENIED:
        if (!fact->connect || !fact->connect->has_failed)
            add_call(timeline, fact, TIMELINE_DENIED);
        break;
    case FACT_DONE:
        if (!fact->error) /* a yes does not make it work */
            add_call(timeline, fact, TIMELINE_DONE);
        break;
    case FACT_ASKED:
        add_call(timeline, fact, TIMELINE_ASKED);
        break;
    case FACT_WITHDRAWN:
        timeline_answer(timeline, fact->id, "withdrawn");
        break;
    case FACT_EXEC:
        if (timeline->execs && fact->id)
            add_exec(timeline, fact);
        else if (timeline->execs)
            add_missed(timeline, fact);
        break;
    case FACT_EXIT:
        if (timeline->execs)
            add_end(timeline, fact);
        break;
    case FACT_LOST:
        add_missed(timeline, fact);
        break;
    case FACT_OUTSIDE:
        if (timeline->execs)
            add_exec(timeline, fact);
        break;
    case FACT_OUTSIDE_SIGNAL:
        break;
    }
}

/* The question of that number, if it is kept. */
static const struct timeline_event *find_question(const struct timeline *timeline, uint64_t id)
{
    for (uint64_t seq = timeline->last; seq && seq >= timeline->first; seq--)
        if (at(timeline, seq)->kind == TIMELINE_ASKED && at(timeline, seq)->question == id)
            return at(timeline, seq);
    return NULL;
}

void timeline_answer(struct timeline *timeline, uint64_t question, const char *answer)
{
    const struct timeline_event *asked = find_question(timeline, question);
    struct timeline_event event = {.kind = TIMELINE_ANSWERED, .question = question, .count = 1};

    if (!asked)
        return;
    event.time_ns = at(timeline, timeline->last)->time_ns; /* nobody else has a clock */
    event.answer = answer;
    event.operation = asked->operation;
    event.call = asked->call;
    event.pid = asked->pid;
    event.exec = asked->exec;
    event.program = alloc_str(asked->program);
    event.path = alloc_str(asked->path);
    event.other_path = alloc_str(asked->other_path);
    push(timeline, &event);
}

/* --- --- */

const struct timeline_event *timeline_after(const struct timeline *timeline, uint64_t seq)
{
    uint64_t next = seq + 1 < timeline->first ? timeline->first : seq + 1;

    return seq >= timeline->last ? NULL : at(timeline, next);
}

uint64_t timeline_last(const struct timeline *timeline)
{
    return timeline->last;
}

uint64_t timeline_dropped(const struct timeline *timeline)
{
    return timeline->first - 1;
}

size_t timeline_memory(const struct timeline *timeline)
{
    return timeline->bytes + (timeline->last - timeline->first + 1) * sizeof *timeline->events;
}

const struct exec_tree *timeline_execs(const struct timeline *timeline)
{
    return timeline->execs;
}

struct timeline *timeline_new(const struct timeline_options *options)
{
    struct timeline *timeline = alloc_zero(1, sizeof *timeline);

    timeline->options = *options;
    timeline->first = 1;
    if (options->topics & TIMELINE_EXEC)
        timeline->execs = exec_tree_new();
    return timeline;
}

void timeline_free(struct timeline *timeline)
{
    if (!timeline)
        return;
    while (!is_empty(timeline))
        drop_oldest(timeline);
    free(timeline->events);
    free(timeline->recent);
    exec_tree_free(timeline->execs);
    free(timeline);
}

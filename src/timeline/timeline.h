/* What a command did, what it was refused and asked about, as one stream in the order in which its
 * guard saw it. Pure but for the clock of nobody: facts go in, events come out.
 *
 *     timeline_new()
 *       timeline_add()         for each fact
 *       timeline_answer()      a question of it has its answer
 *     timeline_after()         from the oldest event that is kept, or behind a cursor
 *     timeline_free()
 *
 * It is bounded: the newest TIMELINE_EVENTS_MAX events are kept, with TIMELINE_BYTES_MAX of text; what
 * went is counted. The same thing done again by a program of the same name is the event that there is, with a
 * higher count.
 *
 * What it says of a hostile program is what the arguments of its calls said when the guard looked, so
 * it is no proof of what such a program did not do (docs/timeline.md). */
#pragma once

#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct exec_tree;
struct json_t;

enum {
    TIMELINE_EVENTS_MAX = 4096,
    TIMELINE_BYTES_MAX = 2 << 20,
};

/* Flags: what a timeline is of. What was refused belongs to the one that it would have been. */
enum timeline_topic {
    TIMELINE_FILES = 1,
    TIMELINE_NETWORK = 2,
    TIMELINE_EXEC = 4,
    TIMELINE_ALL = 7,
};

/* What of it the guard has to be asked for. */
unsigned timeline_watch(unsigned topics);

/* "files,network"; ERR_INVALID names the word that is none. */
int timeline_parse_topics(const char *words, unsigned *ret, struct err *err);

enum timeline_kind {
    TIMELINE_DONE,     /* "done": nothing was in the way of it */
    TIMELINE_DENIED,   /* "denied" */
    TIMELINE_ASKED,    /* "asked": it is held */
    TIMELINE_ANSWERED, /* "answered" */
    TIMELINE_EXECUTED, /* "exec": a program began */
    TIMELINE_ENDED,    /* "exec-end" */
    TIMELINE_MISSED, /* "lost": `count` of what was done is not known: the guard was not read in time */
};

struct timeline_event {
    uint64_t seq;     /* from 1 on, each once; numbers of events that went are missing */
    uint64_t time_ns; /* since the command was started */
    enum timeline_kind kind;
    const char
        *operation;   /* "write", "create", "change", "remove", "rename", "link", "connect", "bind",
                              "execute", "signal"; NULL where there is none */
    const char *call; /* name of the system call; NULL */
    pid_t pid;        /* as seen from here; 0 */
    uint64_t exec;    /* of the program, where execs are watched, and of EXECUTED, ENDED; 0 */
    uint64_t question; /* ASKED, ANSWERED */
    unsigned count;    /* how often by now */
    bool is_below;     /* DENIED: `count` of them below `path` */
    bool is_socket;    /* `path` is a Unix socket's, "@name" if abstract */
    int error;         /* DENIED: errno; 0 */
    int wait_status;   /* ENDED: as from waitpid(2); -1 when it cannot be told */
    const char
        *answer;     /* ANSWERED: "yes", "no", "outside", or "withdrawn": nobody waited any more */
    uint64_t parent; /* EXECUTED: exec of the process before or above; 0 */
    bool is_truncated; /* EXECUTED: there are more arguments */
    bool is_outside;   /* EXECUTED: outside of the sandbox */
    char *program;     /* name of the process, as ps shows it; NULL */
    char *path;        /* or "host:port" ("[host]:port"); NULL */
    char *other_path;  /* of a rename or link, the second name; NULL */
    char *origin;      /* DENIED: who decided; NULL */
    char *cwd;         /* EXECUTED */
    char **argv;       /* EXECUTED; NULL-terminated */
};

struct timeline_options {
    unsigned topics;                 /* of enum timeline_topic */
    uint64_t start_ns;               /* of the command, by CLOCK_MONOTONIC */
    const struct access_map *access; /* says who decided; borrowed; NULL: nobody did */
    /* A new event; may be NULL. Repetitions are not told. */
    void (*on_event)(void *data, const struct timeline_event *event);
    void *data;
};

struct timeline;

struct timeline *timeline_new(const struct timeline_options *options);
void timeline_free(struct timeline *timeline); /* NULL is fine */

void timeline_add(struct timeline *timeline, const struct launch_fact *fact); /* NULL is fine */
void timeline_answer(struct timeline *timeline, uint64_t question, const char *answer);

/* The first event behind the one of this number; NULL when there is none (yet). Good until the next
 * fact. */
const struct timeline_event *timeline_after(const struct timeline *timeline, uint64_t seq);

uint64_t timeline_last(const struct timeline *timeline);    /* number of the newest; 0: none yet */
uint64_t timeline_dropped(const struct timeline *timeline); /* how many are not kept any more */
size_t timeline_memory(const struct timeline *timeline);    /* bytes of the events */
const struct exec_tree *timeline_execs(const struct timeline *timeline);

/* --- for readers (timeline_text.c) --- */

/* {"event", "seq", "time_ns", "pid", "program", ...}: docs/timeline.md. A new reference. */
struct json_t *timeline_event_to_json(const struct timeline_event *event);

/* At most `max` events behind `after`; *ret_next: the number to go on behind. */
struct json_t *timeline_to_json(const struct timeline *timeline, uint64_t after, size_t max,
                                uint64_t *ret_next);

/* One line for people, without its end: "  0.012  touch[71]  create  /w/a". */
void timeline_event_line(const struct timeline_event *event, struct buf *ret);

/* The words of a command as a shell would read them. */
void timeline_append_argv(char *const *argv, struct buf *ret);

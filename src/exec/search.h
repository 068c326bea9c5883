/* Lines out of a retained output: by number, by content (`grep`), or both.
 *
 * A search is done in steps, so that a large spool does not stop the loop. It sees what the output
 * held when it was made, less what is lost meanwhile. Line numbers and offsets are exact on both
 * sides of a gap, since the output counts its newlines. A line ends with "\n" or "\r\n", which is
 * not part of its text.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output;
struct search;

enum search_syntax {
    SEARCH_ALL,   /* every line */
    SEARCH_PLAIN, /* lines that hold the text */
    SEARCH_REGEX, /* POSIX extended regular expression, bytewise, without back-references */
};

#define SEARCH_PATTERN_MAX 1024  /* bytes */
#define SEARCH_CONTEXT_MAX 100   /* lines, before and after each */
#define SEARCH_LINE_DEFAULT 4096 /* bytes */
#define SEARCH_LINE_MAX 65536    /* bytes */
#define SEARCH_MATCHES_DEFAULT 1000

struct search_options {
    enum search_syntax syntax;
    const char *pattern; /* PLAIN, REGEX; not empty */
    int64_t from;        /* first line, from 1; negative: from the end, -1 is the last; 0: 1 */
    int64_t to;          /* last line, likewise; 0: the last */
    unsigned before;     /* lines of context */
    unsigned after;
    uint64_t matches_max; /* 0: SEARCH_MATCHES_DEFAULT */
    size_t line_max;      /* bytes of a line that are shown, and held; 0: SEARCH_LINE_DEFAULT */
};

enum search_kind {
    SEARCH_MATCH,
    SEARCH_CONTEXT,
    SEARCH_GAP, /* `len` bytes at `offset` are gone, and `lines` newlines with them */
};

enum {
    SEARCH_TORN_START = 1, /* bytes of this line before these are gone or not shown */
    SEARCH_TORN_END = 2,   /* ... behind these */
};

struct search_line {
    enum search_kind kind;
    uint64_t line;    /* from 1 */
    uint64_t offset;  /* of text[0] */
    const char *text; /* borrowed for the call; not terminated; may hold any byte */
    size_t len;
    uint64_t gap;    /* SEARCH_GAP: bytes */
    unsigned torn;   /* SEARCH_TORN_* */
    size_t match_at; /* SEARCH_MATCH with a pattern: where in `text`, and how long */
    size_t match_len;
};

struct search_result {
    uint64_t matches;
    uint64_t lines;   /* looked at */
    uint64_t bytes;   /* looked at */
    uint64_t gap;     /* bytes that could not be looked at: gone */
    bool was_limited; /* matches_max was reached, there may be more */
};

typedef void search_on_line(void *data, const struct search_line *line);

/* ERR_INVALID with the reason when the options make no sense. Borrows the output. */
struct search *search_new(struct output *output, const struct search_options *options,
                          struct err *err);
void search_free(struct search *search);

/* Looks at about `max_bytes` more and reports lines in order. false when it is through. */
bool search_step(struct search *search, size_t max_bytes, search_on_line *on_line, void *data);

void search_result(const struct search *search, struct search_result *ret);

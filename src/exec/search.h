/* Lines of a retained output: by number, by content (`grep`), or both.
 *
 * A search is done in steps, so that a large spool does not hold up the loop. It sees what the
 * output held when it was made, less what is lost meanwhile. Line numbers and offsets are exact on
 * both sides of the gap, since the output counts its newlines. A line ends with "\n" or "\r\n",
 * which is not part of its text; the last one may have no end.
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
    SEARCH_PLAIN, /* lines that hold a text */
    SEARCH_REGEX, /* lines that match an expression (ere.h) */
};

#define SEARCH_TEXT_MAX 1024 /* bytes of a plain text */
#define SEARCH_CONTEXT_MAX 100
#define SEARCH_MATCHES_DEFAULT 1000
#define SEARCH_SHOWN_DEFAULT 2048
#define SEARCH_SHOWN_MAX 65536

/* So much of a line is looked at in one piece. A longer one is looked at in pieces that overlap by
 * half, so a match up to half as long is found wherever it is. */
#define SEARCH_LINE_MAX ((size_t)65536)

struct search_options {
    enum search_syntax syntax;
    const char *pattern;  /* SEARCH_PLAIN, SEARCH_REGEX; not empty */
    int64_t from;         /* first line, from 1; negative: from the end, -1 is the last; 0: 1 */
    int64_t to;           /* last line, likewise; 0: the last */
    unsigned before;      /* lines of context */
    unsigned after;       /* ... behind a match */
    uint64_t matches_max; /* 0: SEARCH_MATCHES_DEFAULT */
    size_t shown_max;     /* bytes of a line that are reported, 0: SEARCH_SHOWN_DEFAULT */
};

enum search_kind {
    SEARCH_MATCH,
    SEARCH_CONTEXT,
    SEARCH_GAP, /* what is between the lines before and after is gone */
};

enum {
    SEARCH_CUT_BEGIN = 1, /* the line begins before `text`: there it is gone, or not shown */
    SEARCH_CUT_END = 2,
};

struct search_line {
    enum search_kind kind;
    uint64_t line;    /* its number; of a gap: of the line in which it begins */
    uint64_t offset;  /* of text[0]; of a gap: of its first byte */
    const char *text; /* borrowed for the call; not terminated, may hold any byte */
    size_t len;
    size_t match_at; /* SEARCH_MATCH with a pattern: in `text` */
    size_t match_len;
    unsigned cut;          /* SEARCH_CUT_* */
    uint64_t gap_bytes;    /* SEARCH_GAP */
    uint64_t gap_newlines; /* SEARCH_GAP */
};

struct search_result {
    uint64_t matches;
    uint64_t lines;   /* looked at, in whole or in part */
    uint64_t gap;     /* bytes that were gone when the search came to them */
    bool was_limited; /* it stopped at matches_max, before the end */
};

typedef void search_on_line(void *data, const struct search_line *line);

/* ERR_INVALID with the reason when the options make no sense. The output is borrowed. */
struct search *search_new(struct output *output, const struct search_options *options,
                          struct err *err);
void search_free(struct search *search);

/* Looks at about `max_bytes` more, reporting lines in order. false when it is through. */
bool search_step(struct search *search, size_t max_bytes, search_on_line *on_line, void *data);

void search_result(const struct search *search, struct search_result *ret);

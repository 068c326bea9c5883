/* From pattern to program (Thompson, CACM 11, 1968), in one pass and without recursion.
 *
 * Code is only ever added at the end, but for a SPLIT that is put before the piece just written
 * once its repetition or an alternative is seen. Targets are relative and no finished jump crosses
 * into the middle of a piece, so pieces can be shifted and copied as they are:
 *
 *     e*   L: SPLIT +1, end   e   JUMP L          e+   L: e   SPLIT L, +1
 *     e?      SPLIT +1, end   e                   e{2,3}  e e SPLIT +1, end e
 *     e|f     SPLIT +1, L     e   JUMP end    L: f
 */
#include "exec/ere_program.h"

#include "base/alloc.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* RE_DUP_MAX of POSIX.1-2017 limits.h is at least this. */
enum { REPEAT_MAX = 255, UNBOUNDED = -1, NO_JUMP = -1 };

/* A group that is open; the outermost is the whole pattern. */
struct group {
    size_t start;       /* of its code */
    size_t alternative; /* start of the current one */
    int jumps;          /* the last JUMP that wants to go to its end, which names the one before in
                           `a`; or NO_JUMP */
};

struct parser {
    const char *pattern;
    const char *at;
    struct ere_program *program;
    struct group groups[ERE_DEPTH_MAX];
    size_t depth;
    size_t piece;   /* start of what a repetition applies to */
    bool has_piece; /* there is something to repeat */
    struct err *err;
};

void ere_program_done(struct ere_program *program)
{
    free(program->steps);
    free(program->sets);
}

static int fail(struct parser *parser, const char *what)
{
    return err_set(parser->err, ERR_INVALID, "pattern, byte %td: %s",
                   parser->at - parser->pattern + 1, what);
}

/* Room for `count` steps at `at`, not filled. */
static int insert(struct parser *parser, size_t at, size_t count)
{
    struct ere_program *program = parser->program;

    if (program->len + count > ERE_PROGRAM_MAX)
        return fail(parser, "the pattern is too large when its repetitions are written out");
    while (program->len + count > program->cap)
        program->steps =
            alloc_grow(program->steps, program->cap, &program->cap, sizeof *program->steps);
    memmove(program->steps + at + count, program->steps + at,
            (program->len - at) * sizeof *program->steps);
    program->len += count;
    return 0;
}

static int emit(struct parser *parser, size_t at, struct ere_step step)
{
    if (insert(parser, at, 1))
        return -1;
    parser->program->steps[at] = step;
    return 0;
}

/* One step that is a piece of its own. */
static int emit_piece(struct parser *parser, struct ere_step step)
{
    parser->piece = parser->program->len;
    parser->has_piece = true;
    return emit(parser, parser->piece, step);
}

static int emit_set(struct parser *parser, const struct ere_set *set)
{
    struct ere_program *program = parser->program;
    size_t index = program->sets_len;

    program->sets =
        alloc_grow(program->sets, program->sets_len, &program->sets_cap, sizeof *program->sets);
    program->sets[program->sets_len++] = *set;
    return emit_piece(parser, (struct ere_step){.op = ERE_SET, .a = (int)index});
}

static int emit_any(struct parser *parser)
{
    struct ere_set set;

    memset(&set, 0xff, sizeof set);
    return emit_set(parser, &set);
}

/* --- repetition --- */

static int repeat_star(struct parser *parser)
{
    int len = (int)(parser->program->len - parser->piece);

    if (emit(parser, parser->piece, (struct ere_step){.op = ERE_SPLIT, .a = 1, .b = len + 2}))
        return -1;
    return emit(parser, parser->program->len, (struct ere_step){.op = ERE_JUMP, .a = -len - 1});
}

static int repeat_plus(struct parser *parser, size_t start)
{
    int len = (int)(parser->program->len - start);

    return emit(parser, parser->program->len,
                (struct ere_step){.op = ERE_SPLIT, .a = -len, .b = 1});
}

/* Copies `len` steps of the piece to the end, preceded by a SPLIT around them if they are optional.
 */
static int repeat_copy(struct parser *parser, size_t len, bool is_optional)
{
    struct ere_program *program = parser->program;
    struct ere_step split = {.op = ERE_SPLIT, .a = 1, .b = (int)len + 1};
    size_t at = program->len;

    if (is_optional && emit(parser, at++, split))
        return -1;
    if (insert(parser, at, len))
        return -1;
    memcpy(program->steps + at, program->steps + parser->piece, len * sizeof *program->steps);
    return 0;
}

/* The piece at least `min` and at most `max` times. */
static int repeat(struct parser *parser, int min, int max)
{
    size_t len = parser->program->len - parser->piece;

    if (max == 0 || len == 0) { /* nothing, however often */
        parser->program->len = parser->piece;
        return 0;
    }
    if (min == 0 && max == UNBOUNDED)
        return repeat_star(parser);
    for (int i = 1; i < min; i++)
        if (repeat_copy(parser, len, false))
            return -1;
    if (max == UNBOUNDED)
        return repeat_plus(parser, parser->program->len - len);
    for (int i = min > 1 ? min : 1; i < max; i++)
        if (repeat_copy(parser, len, true))
            return -1;
    return min ? 0
               : emit(parser, parser->piece,
                      (struct ere_step){.op = ERE_SPLIT, .a = 1, .b = (int)len + 1});
}

/* A number of at most REPEAT_MAX; UNBOUNDED when there is none. */
static int parse_number(const char **at)
{
    int number = UNBOUNDED;

    while (isdigit((unsigned char)**at) && number <= REPEAT_MAX)
        number = (number < 0 ? 0 : number * 10) + (*(*at)++ - '0');
    return number;
}

/* "m}", "m,}" or "m,n}", `at` pointing behind the "{". */
static int parse_interval(struct parser *parser, const char *at)
{
    int min = parse_number(&at);
    int max = min;

    if (*at == ',') {
        at++;
        max = parse_number(&at);
    }
    if (min > REPEAT_MAX || max > REPEAT_MAX)
        return fail(parser, "more than 255 repetitions");
    if (min < 0 || *at != '}' || (max != UNBOUNDED && max < min))
        return fail(parser, "not a repetition: {m}, {m,} or {m,n}, with m <= n");
    parser->at = at + 1;
    return repeat(parser, min, max);
}

static int parse_repetition(struct parser *parser)
{
    if (!parser->has_piece)
        return fail(parser, "there is nothing to repeat");
    switch (*parser->at) {
    case '*':
        parser->at++;
        return repeat(parser, 0, UNBOUNDED);
    case '+':
        parser->at++;
        return repeat(parser, 1, UNBOUNDED);
    case '?':
        parser->at++;
        return repeat(parser, 0, 1);
    default:
        return parse_interval(parser, parser->at + 1);
    }
}

/* --- groups --- */

static int open_group(struct parser *parser)
{
    size_t start = parser->program->len;

    if (parser->depth == ERE_DEPTH_MAX)
        return fail(parser, "too many groups inside each other");
    parser->groups[parser->depth++] =
        (struct group){.start = start, .alternative = start, .jumps = NO_JUMP};
    parser->has_piece = false;
    return 0;
}

static int end_alternative(struct parser *parser)
{
    struct group *group = &parser->groups[parser->depth - 1];
    int len = (int)(parser->program->len - group->alternative);
    struct ere_step split = {.op = ERE_SPLIT, .a = 1, .b = len + 2};
    struct ere_step jump = {.op = ERE_JUMP, .a = group->jumps};

    if (emit(parser, group->alternative, split) || emit(parser, parser->program->len, jump))
        return -1;
    group->jumps = (int)parser->program->len - 1;
    group->alternative = parser->program->len;
    parser->has_piece = false;
    return 0;
}

static void close_group(struct parser *parser)
{
    const struct group *group = &parser->groups[--parser->depth];
    int end = (int)parser->program->len;

    for (int at = group->jumps, before; at != NO_JUMP; at = before) {
        before = parser->program->steps[at].a;
        parser->program->steps[at].a = end - at;
    }
    parser->piece = group->start;
    parser->has_piece = true;
}

/* --- pieces --- */

static int parse_escape(struct parser *parser)
{
    char c = parser->at[1];
    struct ere_set set;

    if (c == 'b' || c == 'B') {
        parser->at += 2;
        return emit_piece(parser, (struct ere_step){.op = c == 'b' ? ERE_EDGE : ERE_NOT_EDGE});
    }
    if (ere_set_of_letter(c, &set)) {
        parser->at += 2;
        return emit_set(parser, &set);
    }
    if (c >= '1' && c <= '9')
        return fail(parser, "back-references are not supported");
    if (!c || (isalnum((unsigned char)c) && c != 't'))
        return fail(parser, "no such escape; a plain text search needs none");
    parser->at += 2;
    return emit_piece(parser, (struct ere_step){.op = ERE_BYTE, .a = c == 't' ? '\t' : (uint8_t)c});
}

static int parse_bracket(struct parser *parser)
{
    const char *at = parser->at + 1;
    struct ere_set set;
    const char *wrong = ere_set_parse(&at, &set);

    if (wrong)
        return fail(parser, wrong);
    parser->at = at;
    return emit_set(parser, &set);
}

static int parse_close(struct parser *parser)
{
    if (parser->depth == 1)
        return fail(parser, "\")\" has no \"(\"");
    parser->at++;
    close_group(parser);
    return 0;
}

static int parse_plain(struct parser *parser)
{
    char c = *parser->at++;

    switch (c) {
    case '.':
        return emit_any(parser);
    case '^':
        return emit_piece(parser, (struct ere_step){.op = ERE_BEGIN});
    case '$':
        return emit_piece(parser, (struct ere_step){.op = ERE_END});
    case '|':
        return end_alternative(parser);
    case '(':
        return open_group(parser);
    default:
        return emit_piece(parser, (struct ere_step){.op = ERE_BYTE, .a = (uint8_t)c});
    }
}

static int parse_one(struct parser *parser)
{
    switch (*parser->at) {
    case '\\':
        return parse_escape(parser);
    case '[':
        return parse_bracket(parser);
    case ')':
        return parse_close(parser);
    case '*':
    case '+':
    case '?':
        return parse_repetition(parser);
    case '{':
        /* as glibc has it: without a number it is a brace */
        if (isdigit((unsigned char)parser->at[1]))
            return parse_repetition(parser);
        return parse_plain(parser);
    default:
        return parse_plain(parser);
    }
}

int ere_parse(const char *pattern, struct ere_program *program, struct err *err)
{
    struct parser parser = {.pattern = pattern, .at = pattern, .program = program, .err = err};

    if (strlen(pattern) > ERE_PATTERN_MAX)
        return err_set(err, ERR_INVALID, "the pattern is longer than %d bytes", ERE_PATTERN_MAX);
    open_group(&parser);
    while (*parser.at)
        if (parse_one(&parser))
            return -1;
    if (parser.depth > 1)
        return fail(&parser, "\"(\" has no \")\"");
    close_group(&parser);
    return emit(&parser, program->len, (struct ere_step){.op = ERE_MATCH});
}

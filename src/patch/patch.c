/* See patch.h. The grammar is by lines, and each line says by itself what it is, so the parser is a
 * walk over lines with the file and the chunk that are open.
 *
 *     *** Begin Patch
 *     *** Environment ID: NAME     may be missing; there is one environment, so any name is right
 *     *** Update File: PATH        a file; PATH is trimmed
 *     *** Move to: PATH
 *     @@ TEXT                      a chunk; the first of a file may do without
 *      kept, -removed, +added      its lines; an empty line is an empty kept one
 *     *** End of File
 *     *** Add File: PATH           added lines
 *     *** Delete File: PATH
 *     *** End Patch                may be there twice, as some models write it
 *
 * The carriage return before a line feed belongs to the ending of a line, not to it. What is kept
 * are spans of one copy of the text. Nothing is known here about any file. */
#include "patch/patch.h"

#include "base/alloc.h"
#include "base/strv.h"
#include "patch/lines.h"

#include <stdlib.h>
#include <string.h>

bool span_eq(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.text, b.text, a.len) == 0);
}

void patch_free(struct patch *patch)
{
    if (!patch)
        return;
    for (size_t i = 0; i < patch->files_len; i++) {
        free(patch->files[i].path);
        free(patch->files[i].move_to);
    }
    free(patch->files);
    free(patch->chunks);
    free(patch->lines);
    free(patch->text);
    free(patch);
}

void patch_paths(const struct patch *patch, struct strv *ret)
{
    for (size_t i = 0; i < patch->files_len; i++) {
        strv_push(ret, patch->files[i].path);
        if (patch->files[i].move_to)
            strv_push(ret, patch->files[i].move_to);
    }
}

/* --- parsing --- */

struct parser {
    struct patch *patch;
    const char *next; /* the next line */
    const char *end;
    struct span line;
    size_t number; /* of `line`, from 1 */
};

static bool span_starts(struct span span, const char *prefix)
{
    size_t len = strlen(prefix);

    return span.len >= len && memcmp(span.text, prefix, len) == 0;
}

static bool span_is(struct span span, const char *text)
{
    return span_eq(span, (struct span){text, strlen(text)});
}

static struct span span_behind(struct span span, const char *prefix)
{
    size_t len = strlen(prefix);

    return (struct span){span.text + len, span.len - len};
}

static bool parser_at_end(const struct parser *parser)
{
    return parser->next >= parser->end;
}

/* The next line without moving. */
static struct span parser_peek(const struct parser *parser)
{
    const char *feed = memchr(parser->next, '\n', (size_t)(parser->end - parser->next));
    size_t len = (size_t)((feed ? feed : parser->end) - parser->next);

    if (len && parser->next[len - 1] == '\r')
        len--;
    return (struct span){parser->next, len};
}

static void parser_step(struct parser *parser)
{
    const char *feed = memchr(parser->next, '\n', (size_t)(parser->end - parser->next));

    parser->line = parser_peek(parser);
    parser->number++;
    parser->next = feed ? feed + 1 : parser->end;
}

static int parser_fail(const struct parser *parser, struct err *err, const char *what)
{
    struct span line = span_trim(parser->line);
    int shown = line.len > 60 ? 60 : (int)line.len;

    return err_set(err, ERR_INVALID, "line %zu of the patch: %s (it is \"%.*s%s\")", parser->number,
                   what, shown, line.text ? line.text : "", line.len > 60 ? "..." : "");
}

/* --- growing the patch --- */

static struct patch_file *patch_add_file(struct parser *parser, enum patch_action action)
{
    struct patch *patch = parser->patch;

    patch->files =
        alloc_grow(patch->files, patch->files_len, &patch->files_cap, sizeof *patch->files);
    patch->files[patch->files_len] =
        (struct patch_file){.action = action, .first = patch->chunks_len, .line = parser->number};
    return &patch->files[patch->files_len++];
}

static struct patch_chunk *patch_add_chunk(struct parser *parser, struct patch_file *file)
{
    struct patch *patch = parser->patch;

    patch->chunks =
        alloc_grow(patch->chunks, patch->chunks_len, &patch->chunks_cap, sizeof *patch->chunks);
    patch->chunks[patch->chunks_len] =
        (struct patch_chunk){.first = patch->lines_len, .line = parser->number};
    file->len++;
    return &patch->chunks[patch->chunks_len++];
}

static void patch_add_line(struct patch *patch, struct patch_chunk *chunk, enum patch_mark mark,
                           struct span text)
{
    patch->lines =
        alloc_grow(patch->lines, patch->lines_len, &patch->lines_cap, sizeof *patch->lines);
    patch->lines[patch->lines_len++] = (struct patch_line){.mark = mark, .text = text};
    chunk->len++;
}

/* --- files --- */

static char *parse_path(const struct parser *parser, struct span path, struct err *err)
{
    path = span_trim(path);
    if (path.len == 0) {
        parser_fail(parser, err, "there is no path behind the colon");
        return NULL;
    }
    if (path.len > PATCH_PATH_MAX) {
        err_set(err, ERR_LIMIT, "line %zu of the patch: a path of %zu bytes; %d is the limit",
                parser->number, path.len, PATCH_PATH_MAX);
        return NULL;
    }
    if (memchr(path.text, '\0', path.len)) {
        parser_fail(parser, err, "the path holds a NUL byte");
        return NULL;
    }
    return alloc_strn(path.text, path.len);
}

static void parse_added(struct parser *parser, struct patch_file *file)
{
    struct patch_chunk *chunk = patch_add_chunk(parser, file);

    while (!parser_at_end(parser) && span_starts(parser_peek(parser), "+")) {
        parser_step(parser);
        patch_add_line(parser->patch, chunk, PATCH_ADDED, span_behind(parser->line, "+"));
    }
}

static bool is_chunk_line(struct span line)
{
    return line.len == 0 || line.text[0] == PATCH_KEPT || line.text[0] == PATCH_ADDED ||
           line.text[0] == PATCH_REMOVED;
}

/* The lines of a chunk, up to the first that cannot be one of them. */
static int parse_chunk_lines(struct parser *parser, struct patch_chunk *chunk, struct err *err)
{
    while (!parser_at_end(parser) && is_chunk_line(parser_peek(parser))) {
        parser_step(parser);
        if (parser->line.len == 0)
            patch_add_line(parser->patch, chunk, PATCH_KEPT, parser->line);
        else
            patch_add_line(parser->patch, chunk, (enum patch_mark)parser->line.text[0],
                           (struct span){parser->line.text + 1, parser->line.len - 1});
    }
    if (parser_at_end(parser))
        return chunk->len ? 0 : parser_fail(parser, err, "a chunk without lines");
    if (chunk->len && span_is(span_trim_end(parser_peek(parser)), "*** End of File")) {
        parser_step(parser);
        chunk->is_at_end = true;
    }
    if (chunk->len)
        return 0;
    parser_step(parser);
    if (span_starts(parser->line, "*"))
        return parser_fail(parser, err, "a chunk without lines ends here");
    return parser_fail(parser, err,
                       "a line of a chunk begins with a space (kept), \"+\" (added) or \"-\" "
                       "(removed)");
}

/* `is_first`: of its file, which may do without the @@. */
static int parse_chunk(struct parser *parser, struct patch_file *file, bool is_first,
                       struct err *err)
{
    struct span line = parser_peek(parser);
    bool is_bare = span_is(span_trim_end(line), "@@");
    struct patch_chunk *chunk;

    if (is_bare || span_starts(line, "@@ ")) {
        parser_step(parser);
        chunk = patch_add_chunk(parser, file);
        if (!is_bare)
            chunk->context = span_trim_end(span_behind(line, "@@ "));
    } else if (is_first) {
        chunk = patch_add_chunk(parser, file);
        chunk->line++;
    } else {
        parser_step(parser);
        return parser_fail(parser, err,
                           "every chunk but the first of a file begins with @@ or @@ TEXT");
    }
    return parse_chunk_lines(parser, chunk, err);
}

/* Skips blank lines behind the mark for the end of the file; elsewhere they are lines of a chunk. */
static bool at_chunk(struct parser *parser, const struct patch_file *file)
{
    bool is_marked = file->len && parser->patch->chunks[file->first + file->len - 1].is_at_end;

    while (is_marked && !parser_at_end(parser) && span_trim(parser_peek(parser)).len == 0)
        parser_step(parser);
    return !parser_at_end(parser) && !span_starts(parser_peek(parser), "*");
}

static int parse_update(struct parser *parser, struct patch_file *file, struct err *err)
{
    static const char move[] = "*** Move to: ";
    size_t line = parser->number;

    if (!parser_at_end(parser) && span_starts(parser_peek(parser), move)) {
        parser_step(parser);
        file->move_to = parse_path(parser, span_behind(parser->line, move), err);
        if (!file->move_to)
            return -1;
    }
    while (at_chunk(parser, file))
        if (parse_chunk(parser, file, file->len == 0, err))
            return -1;
    if (file->len)
        return 0;
    return err_set(err, ERR_INVALID,
                   "line %zu of the patch: the update of %s changes nothing; it needs at least one "
                   "chunk of lines",
                   line, file->path);
}

static const struct {
    const char *text;
    enum patch_action action;
} headers[] = {
    {"*** Add File: ", PATCH_ADD},
    {"*** Delete File: ", PATCH_DELETE},
    {"*** Update File: ", PATCH_UPDATE},
};

static int parse_file(struct parser *parser, struct err *err)
{
    struct patch_file *file;
    struct span line;

    parser_step(parser);
    line = span_trim(parser->line);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        if (!span_starts(line, headers[i].text))
            continue;
        file = patch_add_file(parser, headers[i].action);
        file->path = parse_path(parser, span_behind(line, headers[i].text), err);
        if (!file->path)
            return -1;
        if (file->action == PATCH_ADD)
            parse_added(parser, file);
        return file->action == PATCH_UPDATE ? parse_update(parser, file, err) : 0;
    }
    return parser_fail(parser, err,
                       "here should be \"*** Add File: PATH\", \"*** Delete File: PATH\" or "
                       "\"*** Update File: PATH\"");
}

/* --- the frame --- */

/* The last line of what is left. */
static struct span last_line(const struct parser *parser)
{
    const char *feed = memrchr(parser->next, '\n', (size_t)(parser->end - parser->next));
    const char *start = feed ? feed + 1 : parser->next;

    return (struct span){start, (size_t)(parser->end - start)};
}

static size_t count_lines(const char *text, const char *end)
{
    size_t count = 0;

    while (text < end && (text = memchr(text, '\n', (size_t)(end - text)))) {
        count++;
        text++;
    }
    return count;
}

/* A model may wrap the patch in the heredoc of a shell although there is no shell. */
static void unwrap_heredoc(struct parser *parser)
{
    struct span first = parser_peek(parser);
    struct span last = last_line(parser);

    if (!span_is(first, "<<EOF") && !span_is(first, "<<'EOF'") && !span_is(first, "<<\"EOF\""))
        return;
    if (last.len < 3 || memcmp(last.text + last.len - 3, "EOF", 3) != 0 ||
        count_lines(parser->next, parser->end) < 3)
        return;
    parser_step(parser);
    parser->end = last.text;
}

static bool is_end(struct span line)
{
    return span_is(span_trim(line), "*** End Patch");
}

/* Before its last line the patch may have ended once already, with nothing but blank lines behind. */
static bool at_early_end(const struct parser *parser)
{
    struct parser look = *parser;

    if (!is_end(parser_peek(&look)))
        return false;
    do
        parser_step(&look);
    while (!parser_at_end(&look) && span_trim(parser_peek(&look)).len == 0);
    return parser_at_end(&look);
}

static int parse_environment(struct parser *parser, struct err *err)
{
    static const char header[] = "*** Environment ID:";

    if (parser_at_end(parser) || !span_starts(span_trim(parser_peek(parser)), header))
        return 0;
    parser_step(parser);
    if (span_is(span_trim(parser->line), header))
        return parser_fail(parser, err, "there is no name behind the colon");
    return 0;
}

static int parse_frame(struct parser *parser, struct err *err)
{
    if (parser_at_end(parser))
        return err_set(err, ERR_INVALID, "the patch is empty; it begins with \"*** Begin Patch\"");
    unwrap_heredoc(parser);
    parser_step(parser);
    if (!span_is(span_trim(parser->line), "*** Begin Patch"))
        return parser_fail(parser, err, "the first line should be \"*** Begin Patch\"");
    if (!parser_at_end(parser) && parser->end[-1] == '\n')
        parser->end--;
    if (parser_at_end(parser) || !is_end(last_line(parser)))
        return err_set(err, ERR_INVALID, "the last line of the patch should be \"*** End Patch\"");
    parser->end = last_line(parser).text;
    return parse_environment(parser, err);
}

struct patch *patch_parse(const char *text, size_t len, struct err *err)
{
    struct patch *patch;
    struct parser parser = {.patch = NULL};
    struct span trimmed;

    if (len > PATCH_TEXT_MAX) {
        err_set(err, ERR_LIMIT, "a patch of %zu bytes; %d is the limit", len, PATCH_TEXT_MAX);
        return NULL;
    }
    patch = alloc_zero(1, sizeof *patch);
    patch->text = alloc_zero(len + 1, 1);
    if (len)
        memcpy(patch->text, text, len);
    parser.patch = patch;
    trimmed = span_trim((struct span){patch->text, len});
    parser.next = trimmed.text;
    parser.end = trimmed.text + trimmed.len;
    parser.number = count_lines(patch->text, trimmed.text);
    if (parse_frame(&parser, err)) {
        patch_free(patch);
        return NULL;
    }
    while (!parser_at_end(&parser) && !at_early_end(&parser))
        if (parse_file(&parser, err)) {
            patch_free(patch);
            return NULL;
        }
    return patch;
}

/* See shell_literal.h.
 *
 * The one idea: one pass with a stack. The lower part of each level is a literal_frame, the command
 * being read there; above it lie the quotes and ${...} that are open within it.
 *
 *     echo "a $(rm -rf "$x")"      SCRIPT echo, QUOTE, SCRIPT rm -rf, QUOTE
 *
 * Invariants: every level has a frame below it; a backtick closes the nearest level that a backtick
 * opened, whatever else is open above (as bash does). What is not understood separates commands,
 * and a text that ends in the middle of something gives what was read so far.
 *
 * Nothing is run or expanded, no name is followed (aliases, functions, variables). */
#include "rules/shell/shell_literal.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "rules/shell/ansi_quote.h"
#include "rules/shell/here_document.h"
#include "rules/shell/literal_frame.h"

#include <ctype.h>
#include <string.h>

enum { LEVELS_MAX = 48 };

enum level_kind {
    LEVEL_SCRIPT,
    LEVEL_QUOTE, /* "..." */
    LEVEL_PARAM, /* ${...} */
    LEVEL_BODY,  /* of a here-document */
};

struct scan {
    const char *text;
    size_t len;
    size_t at;
    enum level_kind levels[LEVELS_MAX];
    size_t levels_len;
    struct literal_frame frames[LEVELS_MAX];
    size_t frames_len;
    struct strv delimiters; /* of here-documents that begin at the next line */
    struct shell_literals *ret;
};

static char scan_peek(const struct scan *scan, size_t ahead)
{
    return scan->at + ahead < scan->len ? scan->text[scan->at + ahead] : '\0';
}

static struct literal_frame *scan_frame(struct scan *scan)
{
    return &scan->frames[scan->frames_len - 1]; /* there is always one */
}

static enum level_kind scan_kind(const struct scan *scan)
{
    return scan->levels[scan->levels_len - 1];
}

/* --- levels --- */

static bool scan_push(struct scan *scan, enum level_kind kind)
{
    if (scan->levels_len == LEVELS_MAX) {
        scan->ret->too_deep = true;
        scan->at = scan->len;
        return false;
    }
    scan->levels[scan->levels_len++] = kind;
    return true;
}

static void scan_push_script(struct scan *scan, char closer)
{
    if (scan->frames_len)
        scan_frame(scan)->in_word = true;
    if (scan_push(scan, LEVEL_SCRIPT))
        literal_frame_init(&scan->frames[scan->frames_len++], closer, scan->len);
}

static void scan_end_word(struct scan *scan)
{
    char *delimiter = literal_frame_end_word(scan_frame(scan), scan->ret);

    if (delimiter)
        strv_push_take(&scan->delimiters, delimiter);
}

static void scan_end_command(struct scan *scan)
{
    scan_end_word(scan);
    literal_frame_end_command(scan_frame(scan), scan->ret);
}

/* Ends the innermost script and whatever is open within it. */
static void scan_pop_script(struct scan *scan)
{
    scan_end_command(scan);
    literal_frame_done(&scan->frames[--scan->frames_len]);
    while (scan->levels[--scan->levels_len] != LEVEL_SCRIPT)
        ;
}

/* --- here-documents --- */

static void scan_body(struct scan *scan, const char *delimiter)
{
    const char *text = scan->text + scan->at;
    size_t body_len;

    scan->at += here_document_read(text, scan->len - scan->at, delimiter, &body_len);
    strv_push_take(&scan->ret->bodies, alloc_strn(text, body_len));
}

static void scan_newline(struct scan *scan)
{
    AUTO(strv_done) struct strv delimiters = {0};

    scan->at++;
    scan_end_command(scan);
    delimiters = scan->delimiters;
    scan->delimiters = (struct strv){0};
    for (size_t i = 0; i < delimiters.len; i++)
        scan_body(scan, delimiters.items[i]);
}

/* --- quotes and expansions --- */

static void scan_single(struct scan *scan)
{
    const char *start = scan->text + scan->at + 1;
    size_t left = scan->len - scan->at - 1;
    const char *end = memchr(start, '\'', left);
    size_t len = end ? (size_t)(end - start) : left;

    literal_frame_put(scan_frame(scan), start, len);
    scan->at += len + 1 + (end != NULL);
}

static void scan_ansi(struct scan *scan)
{
    scan->at += 2;
    scan_frame(scan)->in_word = true;
    scan_frame(scan)->has_text = true;
    scan->at +=
        ansi_quote_read(scan->text + scan->at, scan->len - scan->at, &scan_frame(scan)->word);
}

static bool is_name_byte(char byte)
{
    return isalnum((unsigned char)byte) || byte == '_';
}

static void scan_skip_name(struct scan *scan)
{
    size_t start = scan->at;

    while (is_name_byte(scan_peek(scan, 0)))
        scan->at++;
    if (scan->at == start && scan->at < scan->len && strchr("@*#?!$-", scan->text[scan->at]))
        scan->at++;
}

/* At `$`. The name of a variable is dropped; what `${NAME:-WORD}` may give in its place is kept. */
static void scan_dollar(struct scan *scan)
{
    char next = scan_peek(scan, 1);

    if (next == '\'' && scan_kind(scan) == LEVEL_SCRIPT) {
        scan_ansi(scan);
        return;
    }
    if (next == '(') {
        scan->at += 2;
        scan_push_script(scan, ')');
        return;
    }
    scan_frame(scan)->in_word = true;
    scan->at++;
    if (next == '{') {
        scan->at++;
        scan_skip_name(scan);
        while (scan->at < scan->len && strchr(":-=+?", scan->text[scan->at]))
            scan->at++;
        scan_push(scan, LEVEL_PARAM);
    } else if (next != '"') {
        scan_skip_name(scan);
    }
}

static void scan_backtick(struct scan *scan)
{
    size_t frame = scan->frames_len;

    scan->at++;
    while (frame > 0 && scan->frames[frame - 1].closer != '`')
        frame--;
    if (frame == 0) {
        scan_push_script(scan, '`');
        return;
    }
    while (scan->frames_len >= frame)
        scan_pop_script(scan);
}

/* At a backslash. Inside double quotes it only escapes some. */
static void scan_backslash(struct scan *scan)
{
    char next = scan_peek(scan, 1);
    bool keep = scan_kind(scan) != LEVEL_SCRIPT && next && !strchr("$`\"\\\n}", next);

    if (scan->at + 1 < scan->len && next != '\n') {
        if (keep)
            literal_frame_put(scan_frame(scan), "\\", 1);
        if (next == '`' && scan_frame(scan)->closer == '`')
            scan_end_command(scan); /* backticks inside backticks */
        else
            literal_frame_put(scan_frame(scan), scan->text + scan->at + 1, 1);
    }
    scan->at += scan->at + 1 < scan->len ? 2 : 1;
}

/* --- operators --- */

/* At `<` or `>`. */
static void scan_redirection(struct scan *scan)
{
    char byte = scan_peek(scan, 0);
    struct literal_frame *frame = scan_frame(scan);

    if (scan_peek(scan, 1) == '(') {
        scan->at += 2;
        scan_push_script(scan, ')');
        return;
    }
    literal_frame_drop_number(frame);
    scan_end_word(scan);
    frame->use = WORD_DROPPED;
    if (byte == '<' && scan_peek(scan, 1) == '<') {
        bool string = scan_peek(scan, 2) == '<';

        frame->use = string ? WORD_BODY : WORD_DELIMITER;
        scan->at += string || scan_peek(scan, 2) == '-' ? 3 : 2;
        return;
    }
    scan->at++;
    if (scan->at < scan->len && strchr("<>|&", scan->text[scan->at]))
        scan->at++;
}

static void scan_close(struct scan *scan)
{
    scan->at++;
    scan_end_command(scan);
    if (scan_frame(scan)->closer == ')' && scan_frame(scan)->cases == 0)
        scan_pop_script(scan);
}

static void scan_comment(struct scan *scan)
{
    while (scan->at < scan->len && scan->text[scan->at] != '\n' && scan->text[scan->at] != '`')
        scan->at++;
}

/* Braces group commands, or make several words of one. */
static void scan_brace(struct scan *scan)
{
    struct literal_frame *frame = scan_frame(scan);
    char byte = scan_peek(scan, 0);
    char next = scan_peek(scan, 1);

    scan->at++;
    if (byte == '{' && next == '}') {
        literal_frame_put(frame, "{}", 2);
        scan->at++;
    } else if (!frame->in_word && frame->braces == 0 && (byte == '}' || strchr(" \t\n", next))) {
        scan_end_command(scan);
    } else if (byte == '{') {
        frame->braces++;
    } else if (frame->braces) {
        frame->braces--;
    } else {
        literal_frame_put(frame, "}", 1);
    }
}

/* --- one byte in each kind of level --- */

static void scan_put(struct scan *scan)
{
    literal_frame_put(scan_frame(scan), scan->text + scan->at, 1);
    scan->at++;
}

static void scan_script_byte(struct scan *scan, char byte)
{
    struct literal_frame *frame = scan_frame(scan);

    if (byte == '\n') {
        scan_newline(scan);
    } else if (byte == ' ' || byte == '\t' || (byte == ',' && frame->braces)) {
        scan_end_word(scan);
        scan->at++;
    } else if (byte == ';' || byte == '&' || byte == '|') {
        scan_end_command(scan);
        scan->at++;
    } else if (byte == '(') {
        scan_end_command(scan);
        scan->at++;
        scan_push_script(scan, ')');
    } else if (byte == ')') {
        scan_close(scan);
    } else if (byte == '<' || byte == '>') {
        scan_redirection(scan);
    } else if (byte == '\'') {
        scan_single(scan);
    } else if (byte == '{' || byte == '}') {
        scan_brace(scan);
    } else if (byte == '#' && !frame->in_word) {
        scan_comment(scan);
    } else {
        scan_put(scan);
    }
}

static void scan_param_byte(struct scan *scan, char byte)
{
    enum level_kind below = scan->levels[scan->levels_len - 2];
    bool quoted = below == LEVEL_QUOTE || below == LEVEL_BODY;

    if (byte == '}') {
        scan->levels_len--;
        scan->at++;
    } else if (byte == '\'' && !quoted) {
        scan_single(scan);
    } else if ((byte == ' ' || byte == '\t' || byte == '\n') && !quoted) {
        scan_end_word(scan);
        scan_frame(scan)->in_word = true;
        scan->at++;
    } else {
        scan_put(scan);
    }
}

static void scan_double(struct scan *scan)
{
    scan->at++;
    if (scan_kind(scan) == LEVEL_QUOTE) {
        scan->levels_len--;
        return;
    }
    literal_frame_put(scan_frame(scan), "", 0);
    scan_push(scan, LEVEL_QUOTE);
}

static void scan_step(struct scan *scan)
{
    enum level_kind kind = scan_kind(scan);
    char byte = scan_peek(scan, 0);

    if (byte == '$')
        scan_dollar(scan);
    else if (byte == '`')
        scan_backtick(scan);
    else if (byte == '\\')
        scan_backslash(scan);
    else if (byte == '"' && kind != LEVEL_BODY)
        scan_double(scan);
    else if (kind == LEVEL_SCRIPT)
        scan_script_byte(scan, byte);
    else if (kind == LEVEL_PARAM)
        scan_param_byte(scan, byte);
    else
        scan_put(scan);
}

void shell_literals_read(const char *text, size_t len, enum shell_text kind,
                         struct shell_literals *ret)
{
    struct scan scan = {.text = text, .len = len, .ret = ret};

    *ret = (struct shell_literals){0};
    scan_push_script(&scan, '\0');
    if (kind == SHELL_TEXT_BODY) {
        scan_frame(&scan)->use = WORD_DROPPED;
        scan_push(&scan, LEVEL_BODY);
    }
    while (scan.at < scan.len)
        scan_step(&scan);
    while (scan.frames_len)
        scan_pop_script(&scan);
    strv_done(&scan.delimiters);
}

void shell_literals_done(struct shell_literals *literals)
{
    shell_commands_done(&literals->commands);
    strv_done(&literals->bodies);
}

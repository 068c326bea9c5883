/* See shell_literal.h.
 *
 * The one idea: one pass with a stack. The lower part of each level is a frame, the command that is
 * being read there; above it lie the quotes and ${...} that are open within it.
 *
 *     echo "a $(rm -rf "$x")"      SCRIPT echo, QUOTE, SCRIPT rm -rf, QUOTE
 *
 * Invariants: every level has a frame below it; a backtick closes the nearest level that a backtick
 * opened, whatever else is open above (as bash does). What is not understood separates commands,
 * and a text that ends in the middle of something gives what was read so far.
 *
 * What stands in front of a command's name (reserved words, assignments) is peeled off until a name
 * is left. Of words that name something first (for, function, coproc, repeat), every end is taken
 * for a command: too many are harmless here.
 *
 * Nothing is run or expanded, no name is followed (aliases, functions, variables). */
#include "rules/shell/shell_literal.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

enum {
    ENDS_MAX = 8, /* of a command that names something first */
    LEVELS_MAX = 48,
};

/* --- the command of one level --- */

enum word_use {
    WORD_OF_COMMAND,
    WORD_DROPPED,   /* the target of a redirection */
    WORD_DELIMITER, /* behind << */
    WORD_BODY,      /* behind <<< */
};

struct frame {
    struct strv words;
    struct buf word;
    bool in_word;      /* even if nothing of it is literal */
    bool has_text;     /* something literal, also an empty quote */
    enum word_use use; /* of the word that is next or being read */
    unsigned braces;   /* of a brace expansion */
    unsigned cases;    /* `case` without its `esac`: a `)` ends a pattern */
    char closer;       /* ')' or '`'; '\0' at the top */
};

static void frame_put(struct frame *frame, const char *text, size_t len)
{
    frame->in_word = true;
    frame->has_text = true;
    buf_append(&frame->word, text, len);
}

/* Digits right in front of a redirection are a part of it. */
static void frame_drop_number(struct frame *frame)
{
    const char *text = frame->word.data;

    if (!frame->has_text || text == NULL || text[strspn(text, "0123456789")])
        return;
    buf_clear(&frame->word);
    frame->in_word = false;
    frame->has_text = false;
}

/* The end of a word. Its text when it was a delimiter: the caller frees; else NULL. */
static char *frame_end_word(struct frame *frame, struct shell_literals *ret)
{
    enum word_use use = frame->use;
    char *delimiter = NULL;

    if (!frame->in_word)
        return NULL;
    if (use == WORD_DELIMITER)
        delimiter = buf_take(&frame->word);
    else if (use == WORD_BODY)
        strv_push_take(&ret->bodies, buf_take(&frame->word));
    else if (use == WORD_OF_COMMAND && frame->has_text)
        strv_push_take(&frame->words, buf_take(&frame->word));
    buf_clear(&frame->word);
    frame->use = WORD_OF_COMMAND;
    frame->in_word = false;
    frame->has_text = false;
    return delimiter;
}

/* --- what leads up to a command --- */

static bool is_lead(const char *word)
{
    static const char leads[] =
        "! - do elif else esac if in noglob nocorrect then time until while";

    return name_list_has(leads, word);
}

/* NAME=, NAME+= and NAME[...]= */
static bool is_assignment(const char *word)
{
    size_t name = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

    return name > 0 && (word[name] == '=' || (word[name] == '+' && word[name + 1] == '=') ||
                        (word[name] == '[' && strchr(word + name, '=')));
}

/* Index of the first word that may be a name. */
static size_t lead_len(struct frame *frame)
{
    char *const *words = strv_view(&frame->words);
    size_t at = 0;

    for (; words[at] && (is_lead(words[at]) || is_assignment(words[at])); at++) {
        if (str_eq(words[at], "esac") && frame->cases)
            frame->cases--;
        if (str_eq(words[at], "time"))
            while (words[at + 1] && words[at + 1][0] == '-')
                at++;
    }
    return at;
}

static void add_ends(struct frame *frame, size_t from, struct shell_literals *ret)
{
    size_t last = frame->words.len - from < ENDS_MAX ? frame->words.len : from + ENDS_MAX;

    for (size_t at = from + 1; at < last; at++)
        if (!is_lead(frame->words.items[at]))
            shell_commands_copy(&ret->commands, frame->words.items + at, frame->words.len - at);
}

/* The end of a command, without an open word: adds it to `ret`, behind what only leads up to it. */
static void frame_end_command(struct frame *frame, struct shell_literals *ret)
{
    static const char naming[] = "coproc for foreach function repeat select";
    size_t from = lead_len(frame);

    frame->use = WORD_OF_COMMAND;
    frame->braces = 0;
    if (from == frame->words.len) {
        strv_done(&frame->words);
        return;
    }
    if (str_eq(frame->words.items[from], "case"))
        frame->cases++;
    else if (name_list_has(naming, frame->words.items[from]))
        add_ends(frame, from, ret);
    else
        shell_commands_copy(&ret->commands, frame->words.items + from, frame->words.len - from);
    strv_done(&frame->words);
}

/* --- texts in texts: $'...' and here-documents --- */

/* Up to `max` digits of the base; their value is cut to what a character can be. */
static size_t read_digits(const char *text, size_t len, unsigned base, size_t max, unsigned *ret)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;

    *ret = 0;
    for (; at < len && at < max; at++) {
        const char *digit =
            memchr(digits, isupper((unsigned char)text[at]) ? text[at] | ' ' : text[at], base);

        if (!digit)
            break;
        *ret = (*ret * base + (unsigned)(digit - digits)) & 0xffffff;
    }
    return at;
}

/* Bytes beyond ASCII are not spelled out: what is looked for is ASCII. */
static void put_value(struct buf *ret, unsigned value)
{
    char byte = value < 0x80 ? (char)value : '?';

    if (value)
        buf_append(ret, &byte, 1);
}

/* Behind a backslash; the bytes read. */
static size_t read_escape(const char *text, size_t len, struct buf *ret)
{
    static const char letters[] = "abefnrtvE\\'\"?";
    static const char values[] = "\a\b\033\f\n\r\t\v\033\\'\"?";
    const char *letter = memchr(letters, text[0], sizeof letters - 1);
    unsigned value;
    size_t digits;

    if (letter) {
        buf_append(ret, &values[letter - letters], 1);
        return 1;
    }
    digits = read_digits(text, len, 8, 3, &value);
    if (digits) {
        put_value(ret, value);
        return digits;
    }
    if (text[0] == 'x' || text[0] == 'u' || text[0] == 'U') {
        digits = read_digits(text + 1, len - 1, 16,
                             text[0] == 'x'   ? 2
                             : text[0] == 'u' ? 4
                                              : 8,
                             &value);
        put_value(ret, value);
        return 1 + digits;
    }
    if (text[0] == 'c' && len > 1)
        return 2; /* a control character */
    buf_append(ret, "\\", 1);
    buf_append(ret, text, 1);
    return 1;
}

/* $'...' of bash(1), QUOTING: appends what the text up to the closing quote stands for; `text` begins
 * behind the opening one. Escapes of letters that have no meaning stay as they are. Returns the
 * bytes read, with the quote if there is one. */
static size_t read_ansi_quote(const char *text, size_t len, struct buf *ret)
{
    size_t at = 0;

    while (at < len && text[at] != '\'') {
        if (text[at] == '\\' && at + 1 < len)
            at += 1 + read_escape(text + at + 1, len - at - 1, ret);
        else
            buf_append(ret, &text[at++], 1);
    }
    return at + (at < len);
}

/* `text` begins at the line behind `<<`. Returns the bytes up to and with the line that is the
 * delimiter, or all; the body is the first `*ret_body_len` of them. Tabs in front of the delimiter
 * do not count, which is right for `<<-` and, where only danger is looked for, good enough for
 * `<<`. */
static size_t read_here_document(const char *text, size_t len, const char *delimiter,
                                 size_t *ret_body_len)
{
    size_t delimiter_len = strlen(delimiter);
    size_t at = 0;

    while (at < len) {
        const char *newline = memchr(text + at, '\n', len - at);
        size_t end = newline ? (size_t)(newline - text) : len;
        size_t start = at;

        while (start < end && text[start] == '\t')
            start++;
        if (end - start == delimiter_len && memcmp(text + start, delimiter, delimiter_len) == 0) {
            *ret_body_len = at;
            return newline ? end + 1 : end;
        }
        at = newline ? end + 1 : end;
    }
    *ret_body_len = len;
    return len;
}

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
    struct frame frames[LEVELS_MAX];
    size_t frames_len;
    struct strv delimiters; /* of here-documents that begin at the next line */
    struct shell_literals *ret;
};

static char scan_peek(const struct scan *scan, size_t ahead)
{
    return scan->at + ahead < scan->len ? scan->text[scan->at + ahead] : '\0';
}

static struct frame *scan_frame(struct scan *scan)
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
        scan->frames[scan->frames_len++] = (struct frame){.closer = closer, .word.max = scan->len};
}

static void scan_end_word(struct scan *scan)
{
    char *delimiter = frame_end_word(scan_frame(scan), scan->ret);

    if (delimiter)
        strv_push_take(&scan->delimiters, delimiter);
}

static void scan_end_command(struct scan *scan)
{
    scan_end_word(scan);
    frame_end_command(scan_frame(scan), scan->ret);
}

/* Ends the innermost script and whatever is open within it. */
static void scan_pop_script(struct scan *scan)
{
    scan_end_command(scan);
    strv_done(&scan_frame(scan)->words);
    buf_done(&scan_frame(scan)->word);
    scan->frames_len--;
    while (scan->levels[--scan->levels_len] != LEVEL_SCRIPT)
        ;
}

/* --- here-documents --- */

static void scan_newline(struct scan *scan)
{
    AUTO(strv_done) struct strv delimiters = {0};

    scan->at++;
    scan_end_command(scan);
    delimiters = scan->delimiters;
    scan->delimiters = (struct strv){0};
    for (size_t i = 0; i < delimiters.len; i++) {
        const char *text = scan->text + scan->at;
        size_t body_len;

        scan->at += read_here_document(text, scan->len - scan->at, delimiters.items[i], &body_len);
        strv_push_take(&scan->ret->bodies, alloc_strn(text, body_len));
    }
}

/* --- quotes and expansions --- */

static void scan_single(struct scan *scan)
{
    const char *start = scan->text + scan->at + 1;
    size_t left = scan->len - scan->at - 1;
    const char *end = memchr(start, '\'', left);
    size_t len = end ? (size_t)(end - start) : left;

    frame_put(scan_frame(scan), start, len);
    scan->at += len + 1 + (end != NULL);
}

static void scan_skip_name(struct scan *scan)
{
    size_t start = scan->at;

    while (isalnum((unsigned char)scan_peek(scan, 0)) || scan_peek(scan, 0) == '_')
        scan->at++;
    if (scan->at == start && scan->at < scan->len && strchr("@*#?!$-", scan->text[scan->at]))
        scan->at++;
}

/* At `$`. The name of a variable is dropped; what `${NAME:-WORD}` may give in its place is kept. */
static void scan_dollar(struct scan *scan)
{
    char next = scan_peek(scan, 1);

    if (next == '\'' && scan_kind(scan) == LEVEL_SCRIPT) {
        frame_put(scan_frame(scan), "", 0);
        scan->at += 2;
        scan->at +=
            read_ansi_quote(scan->text + scan->at, scan->len - scan->at, &scan_frame(scan)->word);
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
            frame_put(scan_frame(scan), "\\", 1);
        if (next == '`' && scan_frame(scan)->closer == '`')
            scan_end_command(scan); /* backticks inside backticks */
        else
            frame_put(scan_frame(scan), scan->text + scan->at + 1, 1);
    }
    scan->at += scan->at + 1 < scan->len ? 2 : 1;
}

/* --- operators --- */

/* At `<` or `>`. */
static void scan_redirection(struct scan *scan)
{
    char byte = scan_peek(scan, 0);
    struct frame *frame = scan_frame(scan);

    if (scan_peek(scan, 1) == '(') {
        scan->at += 2;
        scan_push_script(scan, ')');
        return;
    }
    frame_drop_number(frame);
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

/* Braces group commands, or make several words of one. */
static void scan_brace(struct scan *scan)
{
    struct frame *frame = scan_frame(scan);
    char byte = scan_peek(scan, 0);
    char next = scan_peek(scan, 1);

    scan->at++;
    if (byte == '{' && next == '}') {
        frame_put(frame, "{}", 2);
        scan->at++;
    } else if (!frame->in_word && frame->braces == 0 && (byte == '}' || strchr(" \t\n", next))) {
        scan_end_command(scan);
    } else if (byte == '{') {
        frame->braces++;
    } else if (frame->braces) {
        frame->braces--;
    } else {
        frame_put(frame, "}", 1);
    }
}

/* --- one byte in each kind of level --- */

static void scan_put(struct scan *scan)
{
    frame_put(scan_frame(scan), scan->text + scan->at, 1);
    scan->at++;
}

static void scan_script_byte(struct scan *scan, char byte)
{
    struct frame *frame = scan_frame(scan);

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
        scan->at++;
        scan_end_command(scan);
        if (frame->closer == ')' && frame->cases == 0)
            scan_pop_script(scan);
    } else if (byte == '<' || byte == '>') {
        scan_redirection(scan);
    } else if (byte == '\'') {
        scan_single(scan);
    } else if (byte == '{' || byte == '}') {
        scan_brace(scan);
    } else if (byte == '#' && !frame->in_word) {
        while (scan->at < scan->len && scan->text[scan->at] != '\n' && scan->text[scan->at] != '`')
            scan->at++;
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
    frame_put(scan_frame(scan), "", 0);
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

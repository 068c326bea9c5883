/* See toml.h: a reader of TOML 1.0 (https://toml.io/en/v1.0.0), complete but for what a config file
 * cannot mean: a NUL character, and whole numbers beyond 64 bits, are errors. A byte-order mark at
 * the start is passed over.
 *
 * One pass over the text, by recursive descent: every read_...() stands at the first byte of what
 * it reads and leaves the parser behind its last one. The tree is built in place. A node may move
 * when the list that holds it grows, but nothing is ever added to a list while something below one
 * of its items is being read; a table header starts again from the root.
 *
 * What may be said twice is the difficult part of TOML. Every table and array knows its origin:
 *
 *     IMPLICIT  on the way of a header: `a` in [a.b]   may get a header, or dotted keys, later
 *     HEADER    [a], [[a]]                             complete with its section; only headers lead
 *                                                      through it, to what is below
 *     DOTTED    `a` in a.b = 1                         more dotted keys of its section; headers
 *                                                      lead through it, but it cannot have its own
 *     VALUE     behind a "="                           complete
 *
 * The recursion is bounded: TOML_DEPTH_MAX brackets, with TOML_KEY_PARTS_MAX tables for each. */
#include "policy/config/toml.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A key is looked up by going through its table, so tables are not to be very long. */
enum { KEYS_MAX = 8192, AT_END = -1 };

enum origin { IMPLICIT, HEADER, DOTTED, VALUE };

struct parser {
    const char *start;
    const char *at;
    const char *end;
    unsigned line;
    unsigned depth; /* brackets of values around this place */
    struct err *err;
};

/* --- the text --- */

static int peek(const struct parser *p)
{
    return p->at < p->end ? (unsigned char)*p->at : AT_END;
}

static bool at_text(const struct parser *p, const char *text)
{
    size_t len = strlen(text);

    return (size_t)(p->end - p->at) >= len && !memcmp(p->at, text, len);
}

static bool take(struct parser *p, const char *text)
{
    if (!at_text(p, text))
        return false;
    p->at += strlen(text);
    return true;
}

static bool at_newline(const struct parser *p)
{
    return at_text(p, "\n") || at_text(p, "\r\n");
}

static bool take_newline(struct parser *p)
{
    if (!take(p, "\n") && !take(p, "\r\n"))
        return false;
    p->line++;
    return true;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_bare(int c)
{
    return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-';
}

/* -1, always. The message says "LINE:COLUMN: " of `where`; columns count characters. */
__attribute__((format(printf, 3, 4))) static int fail_at(const struct parser *p, const char *where,
                                                         const char *fmt, ...)
{
    unsigned line = 1;
    unsigned column = 1;
    char message[sizeof p->err->msg];
    va_list args;

    for (const char *at = p->start; at < where; at++) {
        column += ((unsigned char)*at & 0xc0) != 0x80;
        if (*at == '\n') {
            line++;
            column = 1;
        }
    }
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    return err_set(p->err, ERR_INVALID, "%u:%u: %s", line, column, message);
}

/* Something else was expected here. */
static int fail_expected(const struct parser *p, const char *wanted)
{
    int c = peek(p);

    if (c == AT_END)
        return fail_at(p, p->at, "expected %s, not the end of the text", wanted);
    if (at_newline(p))
        return fail_at(p, p->at, "expected %s, not the end of the line", wanted);
    if (c <= ' ' || c >= 0x7f)
        return fail_at(p, p->at, "expected %s, not this character", wanted);
    return fail_at(p, p->at, "expected %s, not '%c'", wanted, c);
}

static int fail_known(const struct parser *p, const char *where, const struct toml_node *item,
                      const char *what)
{
    AUTO_FREE char *plain = utf8_plain(item->key);

    size_t len = strlen(plain);
    size_t shown = utf8_cut(plain, len, 80);

    return fail_at(p, where, "%.*s%s is there already (line %u)%s", (int)shown, plain,
                   shown < len ? "..." : "", item->line, what);
}

static bool is_control(int c)
{
    return (c >= 0 && c < ' ' && c != '\t') || c == 0x7f;
}

static int fail_control(const struct parser *p)
{
    if (!*p->at)
        return fail_at(p, p->at, "a NUL character");
    return fail_at(p, p->at, "the control character U+%04X", (unsigned)(unsigned char)*p->at);
}

static void skip_blanks(struct parser *p)
{
    while (peek(p) == ' ' || peek(p) == '\t')
        p->at++;
}

/* Blanks, and a comment when there is one. */
static int skip_comment(struct parser *p)
{
    skip_blanks(p);
    if (peek(p) != '#')
        return 0;
    while (peek(p) != AT_END && !at_newline(p)) {
        if (is_control(peek(p)))
            return fail_control(p);
        p->at++;
    }
    return 0;
}

/* --- strings --- */

static void add_character(struct buf *text, uint32_t c)
{
    char bytes[4];
    size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = len - 1; i > 0; i--, c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(len == 1 ? c : (0xf00u >> len & 0xf0) | c);
    buf_append(text, bytes, len);
}

static int hex_value(int c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The digits of \uXXXX and \UXXXXXXXX; `escape` is where the backslash is. */
static int read_unicode(struct parser *p, const char *escape, int digits, struct buf *text)
{
    uint32_t c = 0;

    for (int i = 0; i < digits; i++, p->at++) {
        int value = hex_value(peek(p));

        if (value < 0)
            return fail_at(p, escape, "an escape with fewer than %d hexadecimal digits", digits);
        c = c << 4 | (uint32_t)value;
    }
    if (!c)
        return fail_at(p, escape, "a NUL character");
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return fail_at(p, escape, "an escape that stands for no character");
    add_character(text, c);
    return 0;
}

static int read_escape(struct parser *p, struct buf *text)
{
    static const char letters[] = "btnfr\"\\";
    static const char meant[] = "\b\t\n\f\r\"\\";
    const char *escape = p->at++;
    int c = peek(p);
    const char *letter = c > 0 ? strchr(letters, c) : NULL;

    if (letter) {
        p->at++;
        buf_append(text, &meant[letter - letters], 1);
        return 0;
    }
    if (c == 'u' || c == 'U') {
        p->at++;
        return read_unicode(p, escape, c == 'u' ? 4 : 8, text);
    }
    return fail_at(p, escape, "an unknown escape; a backslash itself is written \\\\");
}

/* A backslash at the end of a line, which joins it to the next text. */
static bool take_joint(struct parser *p)
{
    struct parser ahead = *p;

    ahead.at++;
    skip_blanks(&ahead);
    if (!take_newline(&ahead))
        return false;
    do
        skip_blanks(&ahead);
    while (take_newline(&ahead));
    *p = ahead;
    return true;
}

/* What is inside of """ """ or ''' '''. */
static int read_long_string(struct parser *p, const char *open, struct buf *text)
{
    char quote = *open;

    take_newline(p);
    for (;;) {
        int c = peek(p);

        if (at_text(p, quote == '"' ? "\"\"\"" : "'''")) {
            p->at += 3;
            for (int i = 0; i < 2 && peek(p) == quote; i++, p->at++)
                buf_append(text, &quote, 1); /* ends with one or two quotes of its own */
            return 0;
        }
        if (c == AT_END)
            return fail_at(p, open, "a string without an end");
        if (take_newline(p)) {
            buf_append(text, "\n", 1);
        } else if (c == '\\' && quote == '"') {
            if (!take_joint(p) && read_escape(p, text))
                return -1;
        } else if (is_control(c)) {
            return fail_control(p);
        } else {
            buf_append(text, p->at++, 1);
        }
    }
}

/* What is inside of " " or ' '. */
static int read_short_string(struct parser *p, const char *open, struct buf *text)
{
    while (peek(p) != *open) {
        if (peek(p) == AT_END || at_newline(p))
            return fail_at(p, open, "a string without an end on its line");
        if (*p->at == '\\' && *open == '"') {
            if (read_escape(p, text))
                return -1;
        } else if (is_control(peek(p))) {
            return fail_control(p);
        } else {
            buf_append(text, p->at++, 1);
        }
    }
    p->at++;
    return 0;
}

/* Keys are short strings, never """ """. */
static int read_string(struct parser *p, bool may_be_long, char **ret)
{
    AUTO(buf_done) struct buf text = {.max = (size_t)(p->end - p->at)};
    const char *open = p->at;
    bool is_long = may_be_long && (at_text(p, "\"\"\"") || at_text(p, "'''"));

    p->at += is_long ? 3 : 1;
    if (is_long ? read_long_string(p, open, &text) : read_short_string(p, open, &text))
        return -1;
    *ret = buf_take(&text);
    return 0;
}

/* --- numbers, dates and times: a word that is looked at from its front --- */

struct word {
    const char *at;
    const char *end;
};

static int word_peek(const struct word *word)
{
    return word->at < word->end ? (unsigned char)*word->at : AT_END;
}

static bool word_take(struct word *word, const char *one_of)
{
    int c = word_peek(word);

    if (c <= 0 || !strchr(one_of, c))
        return false;
    word->at++;
    return true;
}

static bool word_is(const struct word *word, const char *text)
{
    return (size_t)(word->end - word->at) == strlen(text) && !memcmp(word->at, text, strlen(text));
}

/* Digits with single underscores between them. */
static bool take_digits(struct word *word)
{
    bool after_digit = false;

    for (; is_digit(word_peek(word)) || (after_digit && word_peek(word) == '_'); word->at++)
        after_digit = is_digit(*word->at);
    return after_digit;
}

static bool is_float(struct word word)
{
    bool starts_with_zero;

    word_take(&word, "+-");
    if (word_is(&word, "inf") || word_is(&word, "nan"))
        return true;
    starts_with_zero = word_peek(&word) == '0' && word.end - word.at > 1 &&
                       (is_digit(word.at[1]) || word.at[1] == '_');
    if (starts_with_zero || !take_digits(&word))
        return false;
    if (word_take(&word, ".") && !take_digits(&word))
        return false;
    if (word_take(&word, "eE")) {
        word_take(&word, "+-");
        if (!take_digits(&word))
            return false;
    }
    return word.at == word.end;
}

/* `count` digits, a number from `min` to `max`. */
static bool take_number(struct word *word, int count, int min, int max, int *ret)
{
    int value = 0;

    for (int i = 0; i < count; i++, word->at++) {
        if (!is_digit(word_peek(word)))
            return false;
        value = 10 * value + (*word->at - '0');
    }
    *ret = value;
    return value >= min && value <= max;
}

static bool take_date(struct word *word)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year;
    int month;
    int day;
    bool is_leap;

    if (!take_number(word, 4, 0, 9999, &year) || !word_take(word, "-") ||
        !take_number(word, 2, 1, 12, &month) || !word_take(word, "-") ||
        !take_number(word, 2, 1, 31, &day))
        return false;
    is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= days[month - 1] + (is_leap && month == 2);
}

static bool take_hours_and_minutes(struct word *word)
{
    int unused;

    return take_number(word, 2, 0, 23, &unused) && word_take(word, ":") &&
           take_number(word, 2, 0, 59, &unused);
}

static bool take_time(struct word *word)
{
    int unused;

    if (!take_hours_and_minutes(word) || !word_take(word, ":") ||
        !take_number(word, 2, 0, 59, &unused))
        return false;
    if (!word_take(word, "."))
        return true;
    if (!is_digit(word_peek(word)))
        return false;
    while (is_digit(word_peek(word)))
        word->at++;
    return true;
}

/* A date, a time, or both, then perhaps with an offset. */
static bool is_date_or_time(struct word word)
{
    struct word time = word;

    if (take_time(&time))
        return time.at == time.end;
    if (!take_date(&word))
        return false;
    if (word.at == word.end)
        return true;
    if (!word_take(&word, "Tt ") || !take_time(&word))
        return false;
    if (word_take(&word, "+-"))
        return take_hours_and_minutes(&word) && word.at == word.end;
    word_take(&word, "Zz");
    return word.at == word.end;
}

/* 1 with a whole number, 0 when `word` is something else, -1 when it does not fit. */
static int read_integer(const struct parser *p, struct word word, int64_t *ret)
{
    const char *start = word.at;
    bool is_negative = word_peek(&word) == '-';
    bool has_sign = word_take(&word, "+-");
    bool is_prefixed = !has_sign && word.end - word.at > 2 && *word.at == '0';
    int base = !is_prefixed ? 10 : word.at[1] == 'x' ? 16 : word.at[1] == 'o' ? 8 : 2;
    bool after_digit = false;
    int64_t value = 0;

    if (is_prefixed && !strchr("xob", word.at[1]))
        return 0;
    if (!is_prefixed && word_peek(&word) == '0' && word.end - word.at > 1)
        return 0;
    for (word.at += is_prefixed ? 2 : 0; word.at < word.end; word.at++) {
        int digit = hex_value(*word.at);

        if (*word.at == '_' && after_digit) {
            after_digit = false;
            continue;
        }
        if (digit < 0 || digit >= base)
            return 0;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, is_negative ? -digit : digit, &value))
            return fail_at(p, start, "a whole number beyond 64 bits");
        after_digit = true;
    }
    *ret = value;
    return after_digit;
}

static int read_word(struct parser *p, struct toml_node *ret)
{
    static const char others[] = "+.:"; /* beside those of bare keys */
    struct word word = {p->at, p->at};
    int status;

    while (word.end < p->end && (is_bare(*word.end) || memchr(others, *word.end, strlen(others))))
        word.end++;
    if (word.at == word.end)
        return fail_expected(p, "a value");
    if (p->end - word.end > 1 && word.end[0] == ' ' && is_digit(word.end[1]) &&
        take_date(&(struct word){word.at, word.end})) /* its time is in the next word */
        for (word.end++; word.end < p->end &&
                         (is_bare(*word.end) || memchr(others, *word.end, strlen(others)));)
            word.end++;
    ret->boolean = word_is(&word, "true");
    status = read_integer(p, word, &ret->integer);
    if (status < 0)
        return -1;
    if (status)
        ret->kind = TOML_INTEGER;
    else if (ret->boolean || word_is(&word, "false"))
        ret->kind = TOML_BOOLEAN;
    else if (is_float(word) || is_date_or_time(word))
        ret->kind = TOML_OTHER;
    else
        return fail_at(p, p->at, "%.*s is no value; text is written in quotes",
                       (int)(word.end - word.at < 40 ? word.end - word.at : 40), word.at);
    p->at = word.end;
    return 0;
}

/* --- the tree --- */

static struct toml_node *find(const struct toml_node *table, const char *key)
{
    return (struct toml_node *)toml_find(table, key);
}

/* A new item of a table, or of an array (NULL for the key). The room doubles at powers of two. */
static struct toml_node *add_item(struct toml_node *node, const char *key, unsigned line)
{
    struct toml_node *item;

    if (!(node->len & (node->len - 1)))
        node->items = alloc_resize(node->items, node->len ? 2 * node->len : 1, sizeof *node->items);
    item = &node->items[node->len++];
    *item = (struct toml_node){.line = line, .key = alloc_str(key)};
    return item;
}

/* As add_item(), but a table has a limit. `where` is where its key stands. */
static struct toml_node *add_key(const struct parser *p, struct toml_node *table, const char *key,
                                 const char *where)
{
    if (table->len < KEYS_MAX)
        return add_item(table, key, p->line);
    fail_at(p, where, "a table of more than %d keys", KEYS_MAX);
    return NULL;
}

static int read_key(struct parser *p, struct strv *ret)
{
    do {
        const char *start;
        char *part = NULL;

        if (ret->len == TOML_KEY_PARTS_MAX)
            return fail_at(p, p->at, "a key of more than %d parts", TOML_KEY_PARTS_MAX);
        skip_blanks(p);
        start = p->at;
        if (peek(p) == '"' || peek(p) == '\'') {
            if (read_string(p, false, &part))
                return -1;
        } else {
            while (is_bare(peek(p)))
                p->at++;
            if (p->at == start)
                return fail_expected(p, "a key");
            part = alloc_strn(start, (size_t)(p->at - start));
        }
        strv_push_take(ret, part);
        skip_blanks(p);
    } while (take(p, "."));
    return 0;
}

/* The table that a dotted key puts its last part into; NULL with an error. */
static struct toml_node *open_dotted(const struct parser *p, struct toml_node *table,
                                     const struct strv *key, const char *where)
{
    for (size_t i = 0; i + 1 < key->len; i++) {
        struct toml_node *item = find(table, key->items[i]);

        if (!item && !(item = add_key(p, table, key->items[i], where)))
            return NULL;
        if (item->origin != IMPLICIT && item->origin != DOTTED) {
            fail_known(p, where, item, ", and cannot be added to");
            return NULL;
        }
        item->origin = DOTTED;
        table = item;
    }
    return table;
}

static int read_value(struct parser *p, struct toml_node *ret);

static int read_key_value(struct parser *p, struct toml_node *table)
{
    AUTO(strv_done) struct strv key = {0};
    const char *start = p->at;
    const char *last;
    struct toml_node *item;

    if (read_key(p, &key))
        return -1;
    if (!take(p, "="))
        return fail_expected(p, "'='");
    skip_blanks(p);
    last = key.items[key.len - 1];
    table = open_dotted(p, table, &key, start);
    if (!table)
        return -1;
    item = find(table, last);
    if (item)
        return fail_known(p, start, item, "");
    item = add_key(p, table, last, start);
    return item ? read_value(p, item) : -1;
}

static int read_inline_table(struct parser *p, struct toml_node *ret)
{
    p->at++;
    skip_blanks(p);
    if (take(p, "}"))
        return 0;
    do {
        skip_blanks(p);
        if (read_key_value(p, ret))
            return -1;
        skip_blanks(p);
    } while (take(p, ","));
    return take(p, "}") ? 0 : fail_expected(p, "',' or '}'");
}

/* Between the values of an array. */
static int skip_lines(struct parser *p)
{
    do
        if (skip_comment(p))
            return -1;
    while (take_newline(p));
    return 0;
}

static int read_array(struct parser *p, struct toml_node *ret)
{
    p->at++;
    do {
        if (skip_lines(p))
            return -1;
        if (take(p, "]"))
            return 0;
        if (read_value(p, add_item(ret, NULL, p->line)) || skip_lines(p))
            return -1;
    } while (take(p, ","));
    return take(p, "]") ? 0 : fail_expected(p, "',' or ']'");
}

static int read_value(struct parser *p, struct toml_node *ret)
{
    int c = peek(p);
    int status;

    ret->origin = VALUE;
    if (c == '"' || c == '\'') {
        ret->kind = TOML_STRING;
        return read_string(p, true, &ret->string);
    }
    if (c != '[' && c != '{')
        return read_word(p, ret);
    if (p->depth == TOML_DEPTH_MAX)
        return fail_at(p, p->at, "nested deeper than %d levels", TOML_DEPTH_MAX);
    p->depth++;
    ret->kind = c == '[' ? TOML_ARRAY : TOML_TABLE;
    status = c == '[' ? read_array(p, ret) : read_inline_table(p, ret);
    p->depth--;
    return status;
}

/* The table that the header's last part is put into; NULL with an error. */
static struct toml_node *open_header(const struct parser *p, struct toml_node *table,
                                     const struct strv *key, const char *where)
{
    for (size_t i = 0; i + 1 < key->len; i++) {
        struct toml_node *item = find(table, key->items[i]);

        if (!item && !(item = add_key(p, table, key->items[i], where)))
            return NULL;
        if (item->origin == VALUE) {
            fail_known(p, where, item, ", and cannot be added to");
            return NULL;
        }
        table = item->kind == TOML_ARRAY ? &item->items[item->len - 1] : item;
    }
    return table;
}

/* [key] or [[key]]: gives the table that the lines below belong to. */
static int read_header(struct parser *p, struct toml_node *root, struct toml_node **ret)
{
    AUTO(strv_done) struct strv key = {0};
    const char *start = p->at;
    bool is_array = take(p, "[[");
    struct toml_node *table;
    struct toml_node *item;
    const char *last;

    p->at += !is_array;
    if (read_key(p, &key))
        return -1;
    if (!take(p, is_array ? "]]" : "]"))
        return fail_expected(p, is_array ? "\"]]\"" : "']'");
    table = open_header(p, root, &key, start);
    if (!table)
        return -1;
    last = key.items[key.len - 1];
    item = find(table, last);
    if (item &&
        !(is_array ? item->kind == TOML_ARRAY && item->origin == HEADER : item->origin == IMPLICIT))
        return fail_known(p, start, item, "");
    if (!item && !(item = add_key(p, table, last, start)))
        return -1;
    item->origin = HEADER;
    if (is_array) {
        item->kind = TOML_ARRAY;
        item = add_item(item, NULL, p->line);
        item->origin = HEADER;
    }
    *ret = item;
    return 0;
}

static int read_document(struct parser *p, struct toml_node *root)
{
    struct toml_node *table = root;
    size_t valid = utf8_valid_len(p->start, (size_t)(p->end - p->start), &(size_t){0});

    if (p->start + valid < p->end)
        return fail_at(p, p->start + valid, "bytes that are not UTF-8");
    take(p, "\xef\xbb\xbf");
    while (peek(p) != AT_END) {
        int c;

        skip_blanks(p);
        c = peek(p);
        if (c == '[' && read_header(p, root, &table))
            return -1;
        if (c != '[' && c != '#' && c != AT_END && !at_newline(p) && read_key_value(p, table))
            return -1;
        if (skip_comment(p))
            return -1;
        if (peek(p) != AT_END && !take_newline(p))
            return fail_expected(p, "the end of the line");
    }
    return 0;
}

struct toml_node *toml_parse(const char *text, size_t len, struct err *err)
{
    struct parser p = {.start = text, .at = text, .end = text + len, .line = 1, .err = err};
    struct toml_node *root = alloc_zero(1, sizeof *root);

    if (!read_document(&p, root))
        return root;
    toml_free(root);
    return NULL;
}

static void toml_node_done(struct toml_node *node)
{
    for (size_t i = 0; i < node->len; i++)
        toml_node_done(&node->items[i]);
    free(node->items);
    free(node->key);
    free(node->string);
}

void toml_free(struct toml_node *root)
{
    if (root)
        toml_node_done(root);
    free(root);
}

const struct toml_node *toml_find(const struct toml_node *table, const char *key)
{
    if (!table || table->kind != TOML_TABLE)
        return NULL;
    for (size_t i = 0; i < table->len; i++)
        if (str_eq(table->items[i].key, key))
            return &table->items[i];
    return NULL;
}

const char *toml_kind_name(enum toml_kind kind)
{
    static const char *const names[] = {
        [TOML_TABLE] = "a table",         [TOML_ARRAY] = "an array",
        [TOML_STRING] = "a string",       [TOML_INTEGER] = "a whole number",
        [TOML_BOOLEAN] = "true or false", [TOML_OTHER] = "a fraction, date or time",
    };

    return names[kind];
}

/* See shell_words.h.
 *
 * The one idea: a whitelist, byte by byte. Every byte has one class in the table below; a byte that
 * is not known to mean the same, and nothing but itself, in bash, dash and zsh ends the reading
 * with a reason. There is no state but the place in the text, so there is nothing to get confused
 * about.
 *
 * Decisions that are not obvious:
 *   - no byte outside ASCII without quotes: some locales have blanks there (NBSP in ISO 8859-1);
 *     within quotes it has to be UTF-8, whose bytes no other encoding takes for a quote;
 *   - no control characters but tab and newline: bash uses some of them internally;
 *   - a backslash only inside double quotes and before what it does not escape, where it is itself;
 *   - `=` in front of a word is a path lookup in zsh, `{}` is itself everywhere, other braces are
 * not;
 *   - `;` at the end is opaque as in the grammar that this one follows.
 *
 * What a command's name then means (reserved words, builtins, programs that run programs) is
 * checked for every command that was read. */
#include "rules/shell/shell_words.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "rules/shell/command_inside.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* --- lists --- */

/* By strstr(3), which is several times faster than going from word to word. */
bool name_list_has(const char *list, const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || strchr(name, ' '))
        return false;
    for (const char *at = list; (at = strstr(at, name)); at++)
        if ((at == list || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

void shell_commands_done(struct shell_commands *commands)
{
    for (size_t i = 0; i < commands->len; i++)
        strv_done(&commands->items[i].words);
    free(commands->items);
    *commands = (struct shell_commands){0};
}

struct shell_command *shell_commands_add(struct shell_commands *commands)
{
    commands->items =
        alloc_grow(commands->items, commands->len, &commands->cap, sizeof *commands->items);
    commands->items[commands->len] = (struct shell_command){0};
    return &commands->items[commands->len++];
}

struct shell_command *shell_commands_copy(struct shell_commands *commands, char *const *words,
                                          size_t len)
{
    struct shell_command *command = shell_commands_add(commands);

    for (size_t i = 0; i < len; i++)
        strv_push(&command->words, words[i]);
    command->exact = len;
    return command;
}

/* --- names with a meaning of their own --- */

/* A name that any of the three shells gives a meaning of its own is refused, unless a row of
 * `checked` says under which conditions it is as harmless as it looks. So a builtin that is missing
 * here is one of a later shell, not one that was taken for harmless.
 *
 * bash(1) RESERVED WORDS; zshmisc(1) RESERVED WORDS and PRECOMMAND MODIFIERS. */
static const char reserved[] =
    "- case coproc do done elif else end esac fi for foreach function if in nocorrect noglob "
    "repeat select then time until while";

/* bash(1) SHELL BUILTIN COMMANDS, dash(1) Builtins, zshbuiltins(1); of zsh's modules those that it
 * loads by itself. tests/e2e/test_shell_words.py asks the shells for their lists. */
static const char refused[] =
    ". [ alias autoload bg bind bindkey break bye caller compadd comparguments compcall "
    "compctl compdescribe compfiles compgen compgroups complete compopt compquote compset "
    "comptags comptry compvalues continue declare disable disown echotc echoti emulate enable "
    "eval export fc fg float functions getln getopts hash history integer jobs let limit "
    "local log logout mapfile print private pushln r read readarray readonly rehash sched "
    "setopt shift shopt source suspend trap ttyctl typeset ulimit unalias unfunction unhash "
    "unlimit unset unsetopt vared zcompile zformat zle zmodload zparseopts zregexparse zstyle";

static const char harmless[] = ": cd echo false pwd true";

/* --- builtins that are all right with some words --- */

static bool is_number(const char *word)
{
    return *word && word[strspn(word, "0123456789")] == '\0';
}

static bool has_none_of(char *const *words, size_t len, const char *bytes)
{
    for (size_t i = 1; i < len; i++)
        if (strpbrk(words[i], bytes))
            return false;
    return true;
}

/* printf -v NAME assigns; zsh evaluates a number. */
static bool printf_is_plain(char *const *words, size_t len)
{
    return len >= 2 && words[1][0] != '-' && has_none_of(words, len, "$`");
}

/* test -v NAME[SUBSCRIPT] evaluates the subscript. */
static bool test_is_plain(char *const *words, size_t len)
{
    return has_none_of(words, len, "$`[");
}

static bool exit_is_plain(char *const *words, size_t len)
{
    return len == 1 || (len == 2 && is_number(words[1]));
}

static bool is_alone(char *const *words, size_t len)
{
    return len == 1;
}

/* `set -euxo pipefail` and its parts: they end a script early or print it. */
static bool set_is_plain(char *const *words, size_t len)
{
    static const char options[] = "errexit nounset pipefail xtrace";

    if (len == 1)
        return false;
    for (size_t i = 1; i < len; i++) {
        size_t letters = strspn(words[i] + 1, "eux");
        const char *rest = words[i] + 1 + letters;

        if ((words[i][0] != '-' && words[i][0] != '+') || words[i][1] == '\0')
            return false;
        if (*rest && (!str_eq(rest, "o") || i + 1 == len || !name_list_has(options, words[++i])))
            return false;
    }
    return true;
}

static const struct checked_builtin {
    const char *name;
    bool (*is_plain)(char *const *words, size_t len);
} checked[] = {
    {"exit", exit_is_plain},  {"printf", printf_is_plain}, {"return", exit_is_plain},
    {"set", set_is_plain},    {"test", test_is_plain},     {"times", is_alone},
    {"umask", exit_is_plain}, {"wait", is_alone},
};

/* Why a command that a shell runs cannot be taken for what its words say: its name is a reserved
 * word; or a builtin that changes what later words mean, runs its words as a script, or evaluates
 * them as names or arithmetic (where `a[$(x)]` runs x). NULL when there is nothing against it. */
static const char *builtin_objection(char *const *words, size_t len, size_t exact)
{
    if (name_list_has(reserved, words[0]))
        return "a reserved word";
    if (name_list_has(refused, words[0]))
        return "a builtin that evaluates its words or changes the meaning of later ones";
    for (size_t i = 0; i < sizeof checked / sizeof *checked; i++)
        if (str_eq(checked[i].name, words[0]) && (exact < len || !checked[i].is_plain(words, len)))
            return "a builtin with words that it may evaluate";
    return NULL;
}

bool shell_builtin_is_harmless(const char *name)
{
    return name_list_has(harmless, name);
}

/* --- programs that run programs ---
 *
 * A command is plain only if everything that it is known to run is plain as well. So "plain" never
 * hides a second command behind a first one, and rules that are asked about the words are asked
 * about all of them (command_view.h). Words behind the first inexact one may move or vanish, so no
 * program inside may begin there. */

/* An argv somewhere inside. */
struct view {
    char *const *words;
    size_t len;
    size_t exact;
    bool open;
    bool by_shell;
};

static const char *view_objection(const struct view *view, unsigned depth);
static void script_parse(const char *text, size_t len, unsigned depth, struct shell_script *ret);

static const char *script_objection(const struct view *view, const struct command_part *part,
                                    unsigned depth)
{
    struct shell_script script;
    const char *reason;

    if (part->to - part->from != 1)
        return "a script made of several words";
    script_parse(view->words[part->from], strlen(view->words[part->from]), depth, &script);
    reason = script.opaque;
    shell_script_done(&script);
    return reason;
}

static const char *part_objection(const struct view *view, const struct command_part *part,
                                  unsigned depth)
{
    struct view inner = {
        .words = view->words + part->from,
        .len = part->to - part->from,
        .open = part->open,
        .by_shell = part->kind == PART_BUILTIN && view->by_shell,
    };

    /* behind a part of find, a glob may become another -exec */
    if (part->from >= view->exact ||
        (part->kind != PART_SCRIPT && part->to < view->len && view->exact < view->len))
        return "a glob or tilde in front of the program that is run";
    inner.exact = view->exact - part->from < inner.len ? view->exact - part->from : inner.len;
    if (part->kind == PART_SCRIPT)
        return script_objection(view, part, depth);
    return view_objection(&inner, depth);
}

static const char *view_objection(const struct view *view, unsigned depth)
{
    const char *reason =
        view->by_shell ? builtin_objection(view->words, view->len, view->exact) : NULL;
    struct command_inside inside;

    if (reason)
        return reason;
    if (depth > SHELL_DEPTH_MAX)
        return "programs that run programs, nested too deep";
    command_inside_find(view->words, view->len, view->open, &inside);
    if (inside.unreadable)
        return inside.unreadable;
    if (inside.is_runner && inside.len == 0 && view->exact < view->len)
        return "a glob or tilde among the words of a program that runs others";
    for (size_t i = 0; i < inside.len && !reason; i++)
        reason = part_objection(view, &inside.parts[i], depth + 1);
    return reason;
}

/* Why a command of a shell is not plain although its words are literal, or NULL. `depth` below
 * SHELL_DEPTH_MAX bounds the recursion into scripts of scripts. */
static const char *command_objection(const struct shell_command *command, unsigned depth)
{
    const struct view view = {
        .words = command->words.items,
        .len = command->words.len,
        .exact = command->exact,
        .by_shell = true,
    };

    return view_objection(&view, depth);
}

const char *shell_argv_objection(char *const *argv, size_t len)
{
    const struct view view = {.words = argv, .len = len, .exact = len};

    return view_objection(&view, 0);
}

/* --- reading a script --- */

struct reader {
    const char *text;
    size_t len;
    size_t at;
    struct shell_script *ret;
};

enum byte_class {
    BYTE_OTHER,  /* opaque, by the reason below */
    BYTE_NAME,   /* itself, also in the name of a command */
    BYTE_WORD,   /* itself in other words */
    BYTE_LIVE,   /* a glob or a tilde: text, but the word is not exact */
    BYTE_SINGLE, /* opens a quote */
    BYTE_DOUBLE,
    BYTE_BRACE, /* only as {} */
    BYTE_BLANK,
    BYTE_END, /* ends a command */
};

static const unsigned char byte_classes[256] = {
    ['a' ... 'z'] = BYTE_NAME, ['A' ... 'Z'] = BYTE_NAME, ['0' ... '9'] = BYTE_NAME,
    ['_'] = BYTE_NAME,         ['-'] = BYTE_NAME,         ['.'] = BYTE_NAME,
    ['/'] = BYTE_NAME,         ['+'] = BYTE_NAME,         [':'] = BYTE_NAME,
    ['@'] = BYTE_WORD,         ['%'] = BYTE_WORD,         [','] = BYTE_WORD,
    ['='] = BYTE_WORD,         [']'] = BYTE_WORD,         ['*'] = BYTE_LIVE,
    ['?'] = BYTE_LIVE,         ['['] = BYTE_LIVE,         ['~'] = BYTE_LIVE,
    ['^'] = BYTE_LIVE,         ['#'] = BYTE_LIVE,         ['\''] = BYTE_SINGLE,
    ['"'] = BYTE_DOUBLE,       ['{'] = BYTE_BRACE,        [' '] = BYTE_BLANK,
    ['\t'] = BYTE_BLANK,       ['\n'] = BYTE_END,         [';'] = BYTE_END,
    ['|'] = BYTE_END,          ['&'] = BYTE_END,
};

static const char *byte_reason(unsigned char byte)
{
    switch (byte) {
    case '$':
        return "an expansion ($)";
    case '`':
        return "a command substitution (`)";
    case '<':
    case '>':
        return "a redirection";
    case '(':
    case ')':
        return "a parenthesis";
    case '{':
    case '}':
        return "a brace";
    case '\\':
        return "a backslash";
    case '!':
        return "an exclamation mark";
    case '\0':
        return "a NUL byte";
    default:
        return byte < 0x80 ? "a control character" : "a character outside ASCII without quotes";
    }
}

static enum byte_class reader_class(const struct reader *reader)
{
    if (reader->at == reader->len)
        return BYTE_END;
    return (enum byte_class)byte_classes[(unsigned char)reader->text[reader->at]];
}

static bool reader_is(const struct reader *reader, char byte)
{
    return reader->at < reader->len && reader->text[reader->at] == byte;
}

/* Every way to "opaque" ends here; the first reason stays. */
static bool reader_opaque(struct reader *reader, size_t at, const char *reason)
{
    reader->ret->opaque = reason;
    reader->ret->offset = at;
    return false;
}

/* --- words --- */

/* A byte inside quotes: printable ASCII, tab, newline, or part of something that is checked as
 * UTF-8 at the end of the quote. */
static bool is_quotable(unsigned char byte)
{
    return (byte >= ' ' && byte != 0x7f) || byte == '\t' || byte == '\n';
}

/* Inside double quotes these are live. */
static bool is_live_in_quotes(const struct reader *reader, size_t at)
{
    char byte = reader->text[at];
    char next = at + 1 < reader->len ? reader->text[at + 1] : '\0';

    return byte == '$' || byte == '`' || (byte == '\\' && strchr("$`\"\\\n", next));
}

/* At an opening quote; afterwards behind the closing one. */
static bool reader_quoted(struct reader *reader, struct buf *word)
{
    char quote = reader->text[reader->at];
    size_t start = reader->at + 1;
    size_t end = start;

    for (; end < reader->len && reader->text[end] != quote; end++) {
        if (!is_quotable((unsigned char)reader->text[end]))
            return reader_opaque(reader, end, "a control character");
        if (quote == '"' && is_live_in_quotes(reader, end))
            return reader_opaque(reader, end, byte_reason((unsigned char)reader->text[end]));
    }
    if (end == reader->len)
        return reader_opaque(reader, reader->at, "a quote that is never closed");
    if (!utf8_is_valid(reader->text + start, end - start))
        return reader_opaque(reader, start, "a quoted text that is not UTF-8");
    buf_append(word, reader->text + start, end - start);
    reader->at = end + 1;
    return true;
}

/* One byte or quote of a word; false when the script is opaque. */
static bool reader_piece(struct reader *reader, struct buf *word, bool *live)
{
    enum byte_class class = reader_class(reader);
    size_t take = 1;

    if (class == BYTE_SINGLE || class == BYTE_DOUBLE)
        return reader_quoted(reader, word);
    if (class == BYTE_BRACE) {
        take = 2;
        if (reader->at + 1 == reader->len || reader->text[reader->at + 1] != '}')
            return reader_opaque(reader, reader->at, "a brace");
    } else if (class == BYTE_OTHER) {
        unsigned char byte = (unsigned char)reader->text[reader->at];

        return reader_opaque(reader, reader->at, byte_reason(byte));
    }
    *live = *live || class == BYTE_LIVE;
    buf_append(word, reader->text + reader->at, take);
    reader->at += take;
    return true;
}

static bool is_word_end(enum byte_class class)
{
    return class == BYTE_BLANK || class == BYTE_END;
}

static bool reader_word(struct reader *reader, struct shell_command *command, bool *exact)
{
    AUTO(buf_done) struct buf word = {0};
    bool live = false;

    buf_init(&word, reader->len);
    if (reader_is(reader, '#'))
        return reader_opaque(reader, reader->at, "a comment");
    if (reader_is(reader, '='))
        return reader_opaque(reader, reader->at, "a word that begins with =");
    while (!is_word_end(reader_class(reader)))
        if (!reader_piece(reader, &word, &live))
            return false;
    *exact = *exact && !live;
    command->exact += *exact;
    strv_push_take(&command->words, buf_take(&word));
    return true;
}

/* The name is a bare word, so that neither quotes nor expansions can make another one of it. */
static bool reader_name(struct reader *reader, struct shell_command *command)
{
    size_t start = reader->at;

    while (reader_class(reader) == BYTE_NAME)
        reader->at++;
    if (reader_is(reader, '='))
        return reader_opaque(reader, start, "an assignment");
    if (reader->at == start && reader_class(reader) == BYTE_END)
        return reader_opaque(reader, start, "an operator without a command");
    if (!is_word_end(reader_class(reader))) {
        if (reader_class(reader) == BYTE_OTHER)
            return reader_opaque(reader, reader->at,
                                 byte_reason((unsigned char)reader->text[reader->at]));
        return reader_opaque(reader, start, "a command whose name is not a bare word");
    }
    strv_push_take(&command->words, alloc_strn(reader->text + start, reader->at - start));
    command->exact = 1;
    return true;
}

/* --- commands --- */

static void reader_blanks(struct reader *reader)
{
    while (reader_class(reader) == BYTE_BLANK)
        reader->at++;
}

static void reader_lines(struct reader *reader)
{
    while (reader_class(reader) == BYTE_BLANK || reader_is(reader, '\n'))
        reader->at++;
}

static bool reader_command(struct reader *reader, unsigned depth)
{
    struct shell_command *command = shell_commands_add(&reader->ret->commands);
    size_t start = reader->at;
    bool exact = true;
    const char *reason;

    if (reader->ret->commands.len > SHELL_COMMANDS_MAX)
        return reader_opaque(reader, start, "too many commands");
    if (!reader_name(reader, command))
        return false;
    for (reader_blanks(reader); reader_class(reader) != BYTE_END; reader_blanks(reader))
        if (!reader_word(reader, command, &exact))
            return false;
    reason = command_objection(command, depth);
    return reason ? reader_opaque(reader, start, reason) : true;
}

/* Behind a command: its operator. `*ret_more` tells whether a command follows. */
static bool reader_operator(struct reader *reader, bool *ret_more)
{
    size_t start = reader->at;
    char byte;

    *ret_more = true;
    if (reader->at == reader->len || reader_is(reader, '\n')) {
        reader_lines(reader);
        *ret_more = reader->at < reader->len;
        return true;
    }
    byte = reader->text[reader->at++];
    if (byte != ';' && reader_is(reader, byte))
        reader->at++;
    else if (byte == '&')
        return reader_opaque(reader, start, "a command in the background (&)");
    reader_lines(reader);
    if (reader->at == reader->len)
        return reader_opaque(reader, start, "an operator at the end");
    return true;
}

static bool reader_script(struct reader *reader, unsigned depth)
{
    bool more = true;

    if (reader->len > SHELL_SCRIPT_MAX)
        return reader_opaque(reader, 0, "a script that is too long");
    reader_lines(reader);
    if (reader->at == reader->len)
        return reader_opaque(reader, 0, "no command");
    while (more)
        if (!reader_command(reader, depth) || !reader_operator(reader, &more))
            return false;
    return true;
}

/* As shell_script_parse(), for a script that `depth` programs deep runs. */
static void script_parse(const char *text, size_t len, unsigned depth, struct shell_script *ret)
{
    struct reader reader = {.text = text, .len = len, .ret = ret};

    *ret = (struct shell_script){0};
    if (!reader_script(&reader, depth))
        shell_commands_done(&ret->commands);
}

void shell_script_parse(const char *text, size_t len, struct shell_script *ret)
{
    script_parse(text, len, 0, ret);
}

void shell_script_done(struct shell_script *script)
{
    shell_commands_done(&script->commands);
    *script = (struct shell_script){0};
}

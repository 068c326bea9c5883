/* See command_inside.h.
 *
 * The one idea: most such programs are `NAME options [operands] COMMAND`, so one reader and a table
 * of their options cover them; an option that is not in the table makes the argv unreadable,
 * because its value could be taken for the command. Shells, xargs and find have readers of their
 * own. */
#include "rules/shell/command_inside.h"

#include "base/path.h"
#include "base/str.h"
#include "rules/shell/runner.h"

#include <string.h>

struct argv {
    char *const *words;
    size_t len;
    bool open;
};

static void inside_unreadable(struct command_inside *ret, const char *reason)
{
    ret->len = 0;
    ret->unreadable = reason;
}

/* sudo takes options behind assignments, too; a name like an option is nobody's. */
static void inside_add(struct command_inside *ret, const struct argv *argv,
                       const struct command_part *part)
{
    if (ret->unreadable)
        return;
    if (part->kind != PART_SCRIPT && argv->words[part->from][0] == '-')
        inside_unreadable(ret, "a program that runs another one, with an option out of place");
    else if (ret->len == COMMAND_PARTS_MAX)
        inside_unreadable(ret, "too many commands for one program");
    else
        ret->parts[ret->len++] = *part;
}

/* --- options --- */

/* 0: not an option of the list; else the words that it takes with its value. */
static size_t long_option_words(const char *longs, const char *word)
{
    size_t len = strcspn(word, "=");

    for (const char *at = longs; (at = strstr(at, "--")); at += 2) {
        size_t listed = strcspn(at, " =");

        if (listed == len && strncmp(at, word, len) == 0)
            return word[len] == '\0' && at[listed] == '=' ? 2 : 1;
    }
    return 0;
}

static size_t short_option_words(const struct runner *runner, const char *word)
{
    if (word[1] == '\0')
        return strchr(runner->flags, '-') ? 1 : 0;
    for (const char *at = word + 1; *at; at++) {
        if (strchr(runner->values, *at))
            return at[1] ? 1 : 2;
        if (*at == '-' || !strchr(runner->flags, *at))
            return 0;
    }
    return 1;
}

/* The first word behind the options; 0 when one of them is not known. */
static size_t options_end(const struct runner *runner, const struct argv *argv)
{
    size_t at = 1;

    while (at < argv->len && argv->words[at][0] == '-') {
        const char *word = argv->words[at];
        size_t take;

        if (str_eq(word, "--"))
            return at + 1;
        take = word[1] == '-' ? long_option_words(runner->longs, word)
                              : short_option_words(runner, word);
        if (take == 0)
            return 0;
        at += take;
    }
    return at;
}

static void runner_read_prefix(const struct runner *runner, const struct argv *argv,
                               struct command_inside *ret)
{
    size_t at = options_end(runner, argv);
    bool by_shell = runner->traits & BY_SHELL;

    if (at == 0) {
        inside_unreadable(ret, "a program that runs another one, with an option that is not known");
        return;
    }
    while ((runner->traits & TAKES_ASSIGNMENTS) && at < argv->len && strchr(argv->words[at], '='))
        at++;
    at += runner->operands;
    if (at < argv->len)
        inside_add(ret, argv,
                   &(struct command_part){.from = at,
                                          .to = argv->len,
                                          .kind = by_shell ? PART_BUILTIN : PART_ARGV,
                                          .open = argv->open});
    else if (argv->open || (runner->traits & STARTS_SHELL))
        inside_unreadable(ret, "a program that runs another one, which is not among its words");
}

/* `command -v NAME` and `-V` only look a name up. */
static void runner_read_command(const struct runner *runner, const struct argv *argv,
                                struct command_inside *ret)
{
    bool lookup = argv->len > 1 && (str_eq(argv->words[1], "-v") || str_eq(argv->words[1], "-V"));

    if (!lookup)
        runner_read_prefix(runner, argv, ret);
}

/* --- xargs and find --- */

static bool has_mark(const struct argv *argv, size_t from, size_t to, const char *mark)
{
    for (size_t i = from; i < to; i++)
        if (strstr(argv->words[i], mark))
            return true;
    return false;
}

/* A program that gets words from elsewhere, in place of `mark` or (NULL) behind the last word. The
 * mark may not choose the program, not even one that the program runs. */
static void inside_add_open(const struct argv *argv, size_t from, size_t to, const char *mark,
                            struct command_inside *ret)
{
    bool is_runner;

    if (from >= to) {
        inside_unreadable(ret, "a program that runs another one, which is not among its words");
        return;
    }
    is_runner = runner_find(path_name(argv->words[from])) != NULL;
    if (mark && has_mark(argv, from, is_runner ? to : from + 1, mark))
        inside_unreadable(ret, "a program that runs another one, with words from elsewhere");
    else
        inside_add(ret, argv, &(struct command_part){.from = from, .to = to, .open = true});
}

/* The mark of -I among the options before `end`, NULL without one. Whatever is not exactly one
 * `-I MARK` or `-IMARK` gives "", which is a part of every word. */
static const char *xargs_mark(const struct argv *argv, size_t end)
{
    const char *mark = NULL;

    for (size_t i = 1; i < end; i++) {
        const char *word = argv->words[i];

        if (mark || (word[0] == '-' && word[1] != 'I' && strchr(word, 'I')))
            return "";
        if (str_starts(word, "-I"))
            mark = word[2] ? word + 2 : argv->words[++i];
    }
    return mark;
}

static void runner_read_xargs(const struct runner *runner, const struct argv *argv,
                              struct command_inside *ret)
{
    size_t at = options_end(runner, argv);

    if (at == 0)
        inside_unreadable(ret, "xargs with an option that is not known");
    else if (at < argv->len)
        inside_add_open(argv, at, argv->len, xargs_mark(argv, at), ret);
    else if (argv->open)
        inside_unreadable(ret, "xargs without a command");
}

static bool is_find_exec(const char *word)
{
    return str_eq(word, "-exec") || str_eq(word, "-execdir") || str_eq(word, "-ok") ||
           str_eq(word, "-okdir");
}

static void runner_read_find(const struct runner *runner, const struct argv *argv,
                             struct command_inside *ret)
{
    if (argv->open)
        inside_unreadable(ret, "find with words from elsewhere");
    for (size_t i = 1; i < argv->len; i++) {
        size_t from = i + 1;

        if (!is_find_exec(argv->words[i]))
            continue;
        for (i = from; i < argv->len && !str_eq(argv->words[i], ";"); i++)
            if (str_eq(argv->words[i], "+") && str_eq(argv->words[i - 1], "{}"))
                break;
        inside_add_open(argv, from, i, "{}", ret);
    }
}

/* --- shells --- */

static bool is_input(const char *file)
{
    return str_eq(file, "-") || strstr(file, "dev/stdin") || strstr(file, "dev/fd/") ||
           strstr(file, "dev/tty") || strstr(file, "proc/");
}

/* Letters of options that do not change how a script is read (bash(1), dash(1)). */
static bool shell_option_is_plain(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && word[1 + strspn(word + 1, "ceuxvl")] == '\0';
}

static void runner_read_shell(const struct runner *runner, const struct argv *argv,
                              struct command_inside *ret)
{
    bool script = false;
    size_t at = 1;

    for (; at < argv->len && strchr("-+", argv->words[at][0]) && argv->words[at][0]; at++) {
        if (!shell_option_is_plain(argv->words[at])) {
            inside_unreadable(ret, "a shell with options that are not known");
            return;
        }
        script = script || strchr(argv->words[at], 'c');
    }
    if (at == argv->len || (!script && is_input(argv->words[at])))
        inside_unreadable(ret, "a shell that reads its commands from elsewhere");
    else if (script)
        inside_add(ret, argv,
                   &(struct command_part){.from = at, .to = at + 1, .kind = PART_SCRIPT});
}

/* Shells with another syntax: a file is as good as any program's, a script cannot be read. */
static void runner_read_other_shell(const struct runner *runner, const struct argv *argv,
                                    struct command_inside *ret)
{
    if (argv->len < 2 || argv->words[1][0] == '-' || argv->words[1][0] == '/' ||
        is_input(argv->words[1]))
        inside_unreadable(ret, "a shell whose syntax is not read");
}

/* --- builtins that run text; only met when looking for danger --- */

static void runner_read_eval(const struct runner *runner, const struct argv *argv,
                             struct command_inside *ret)
{
    if (argv->len > 1)
        inside_add(ret, argv,
                   &(struct command_part){.from = 1, .to = argv->len, .kind = PART_SCRIPT});
}

static void runner_read_trap(const struct runner *runner, const struct argv *argv,
                             struct command_inside *ret)
{
    size_t at = argv->len > 1 && str_eq(argv->words[1], "--") ? 2 : 1;

    if (at + 1 < argv->len)
        inside_add(ret, argv,
                   &(struct command_part){.from = at, .to = at + 1, .kind = PART_SCRIPT});
}

static void runner_read_something(const struct runner *runner, const struct argv *argv,
                                  struct command_inside *ret)
{
    inside_unreadable(ret, "a program that runs another one in a way that is not read");
}

typedef void runner_read(const struct runner *runner, const struct argv *argv,
                         struct command_inside *ret);

static runner_read *const readers[] = {
    [RUNS_PREFIX] = runner_read_prefix,       [RUNS_COMMAND] = runner_read_command,
    [RUNS_EVAL] = runner_read_eval,           [RUNS_FIND] = runner_read_find,
    [RUNS_TRAP] = runner_read_trap,           [RUNS_XARGS] = runner_read_xargs,
    [RUNS_SHELL] = runner_read_shell,         [RUNS_OTHER_SHELL] = runner_read_other_shell,
    [RUNS_SOMETHING] = runner_read_something,
};

void command_inside_find(char *const *words, size_t len, bool open, struct command_inside *ret)
{
    const struct argv argv = {.words = words, .len = len, .open = open};
    const struct runner *runner = len ? runner_find(path_name(words[0])) : NULL;

    *ret = (struct command_inside){.is_runner = runner != NULL};
    if (runner)
        readers[runner->kind](runner, &argv, ret);
}

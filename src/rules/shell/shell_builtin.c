/* See shell_builtin.h.
 *
 * The one idea: a name that any of the three shells gives a meaning of its own is refused, unless a
 * row of `checked` says under which conditions it is as harmless as it looks. So a builtin that
 * nobody thought of is one of a later shell, not one that was taken for harmless.
 *
 * What it does not do: say what a builtin runs (rules/shell/command_inside.h knows command and exec). */
#include "rules/shell/shell_builtin.h"

#include "base/str.h"
#include "rules/shell/name_list.h"

#include <string.h>

/* bash(1) RESERVED WORDS; zshmisc(1) RESERVED WORDS and PRECOMMAND MODIFIERS. */
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

const char *shell_builtin_objection(char *const *words, size_t len, size_t exact)
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

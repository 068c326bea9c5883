/* See shell_snapshot.h.
 *
 * The one idea: the state is printed by the shell itself as a script that the same shell reads
 * (declare -f, export -p, ...), so nothing here knows how to quote what it has seen. What cannot be
 * set again is left out, because the state is checked with `set -e`.
 *
 * It is carried to a command in its environment, and not in a file: what a file holds (every
 * exported variable) would have to be readable in this sandbox, hidden from every other, and safe
 * from being written by what runs in any of them. The environment of a process has none of these
 * problems, and the shell forgets the variables before the script starts.
 *
 * The script is run by `eval` in the shell that read the state, so functions, aliases and options
 * reach it, which an exec of a fresh shell would lose. */
#include "rules/shell/shell_snapshot.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "rules/shell/shell_choice.h"

#include <ctype.h>
#include <string.h>

/* One argument of execve(2) may have 32 pages, MAX_ARG_STRLEN of <linux/binfmts.h>. */
enum { ARGUMENT_MAX = 120 * 1024, PART = 120 * 1024 };

#define CARRIER "_cordon_state_"

#define MARKER "# cordon shell snapshot 1"
#define START "command printf '%s\\n' '" MARKER "'\n"
/* in a subshell, where they can be unset */
#define EXPORTS "(unset PWD OLDPWD SHLVL; export -p)\n"

/* bash(1), SHELL BUILTIN COMMANDS; both options can only be read. */
static const char take_bash[] = START "printf '%s\\n' 'unalias -a'\n"
                                      "alias -p\n"
                                      "declare -f\n"
                                      "declare -Fx\n"
                                      "while IFS= read -r line; do\n"
                                      "  case $line in *\" login_shell\" | *\" restricted_shell\") "
                                      ";; *) printf '%s\\n' \"$line\" ;; esac\n"
                                      "done <<< \"$(shopt -p; set +o)\"\n" EXPORTS;

static const char take_zsh[] = START "print -r -- 'unalias -a'\n"
                                     "typeset -f\n"
                                     "alias -L\n"
                                     "for name in ${(k)options}; do\n"
                                     "  case $name in\n"
                                     "    interactive | login | privileged | restricted | "
                                     "shinstdin | singlecommand | zle | monitor) ;;\n"
                                     "    *) [[ $options[$name] = on ]] && print -r -- \"setopt "
                                     "$name\" || print -r -- \"unsetopt $name\" ;;\n"
                                     "  esac\n"
                                     "done\n" EXPORTS;

/* POSIX: `alias` and `set +o` print what can be read again, but alias without its own name. */
static const char take_sh[] =
    START "alias | while IFS= read -r line; do printf 'alias %s\\n' \"$line\"; done\n" EXPORTS;

static const char *take_script(enum shell_kind kind)
{
    if (kind == SHELL_BASH)
        return take_bash;
    if (kind == SHELL_ZSH)
        return take_zsh;
    return kind == SHELL_SH ? take_sh : NULL;
}

bool shell_snapshot_take(const char *shell, struct strv *ret)
{
    const char *script = take_script(shell_kind_of(shell));

    if (script)
        shell_argv_make(shell, SHELL_LOGIN, script, ret);
    return script != NULL;
}

bool shell_snapshot_take_bare(const char *shell, struct strv *ret)
{
    if (shell_kind_of(shell) != SHELL_ZSH)
        return false;
    strv_push(ret, shell);
    strv_push(ret, "-fc");
    strv_push(ret, take_zsh);
    return true;
}

const char *shell_snapshot_cut(const char *output, size_t len, size_t *ret_len)
{
    static const char line[] = MARKER "\n";
    size_t line_len = sizeof line - 1;
    const char *at = output;

    while ((at = memmem(at, len - (size_t)(at - output), line, line_len))) {
        if (at == output || at[-1] == '\n') {
            *ret_len = len - (size_t)(at - output) - line_len;
            return at + line_len;
        }
        at++;
    }
    return NULL;
}

/* --- using it --- */

static bool put_quoted(struct buf *text, const char *word)
{
    bool fits = buf_append_str(text, "'");

    for (; *word; word++)
        fits = fits && (*word == '\'' ? buf_append_str(text, "'\\''") : buf_append(text, word, 1));
    return fits && buf_append_str(text, "'");
}

size_t shell_snapshot_carry(const char *state, size_t len, struct strv *ret_env)
{
    size_t parts = 0;

    for (size_t at = 0; at < len; at += PART) {
        size_t rest = len - at;

        strv_pushf(ret_env, CARRIER "%zu=%.*s", parts++, (int)(rest < PART ? rest : PART),
                   state + at);
    }
    return parts;
}

/* "eval "$_cordon_state_0$_cordon_state_1..." */
static bool put_state(struct buf *text, size_t parts)
{
    bool fits = buf_append_str(text, "eval \"");

    for (size_t i = 0; i < parts; i++)
        fits = fits && buf_appendf(text, "${" CARRIER "%zu}", i);
    return fits && buf_append_str(text, "\"");
}

void shell_snapshot_check(const char *shell, size_t parts, struct strv *ret)
{
    AUTO(buf_done) struct buf text = {.max = ARGUMENT_MAX};

    buf_append_str(&text, "set -e\n");
    put_state(&text, parts);
    shell_argv_make(shell, SHELL_PLAIN, text.data, ret);
}

static bool is_name(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return *name == '\0';
}

/* Values are carried through the reading of the snapshot in variables of ours, with an "x" in front
 * of what was set at all. The script runs when all of ours are forgotten. All is on one line, because shells
 * count lines from there: "line 1: no-such-program: command not found". */
static bool put_script(struct buf *text, const char *script, size_t parts, char *const *keep)
{
    bool fits =
        buf_append_str(text, "_cordon=") && put_quoted(text, script) && buf_append_str(text, "; ");

    for (size_t i = 0; keep[i]; i++)
        if (is_name(keep[i]))
            fits = fits && buf_appendf(text, "_cordon_%zu=${%s+x}${%s-}; ", i, keep[i], keep[i]);
    fits = fits && put_state(text, parts) && buf_append_str(text, " > /dev/null 2>&1; ");
    for (size_t i = 0; keep[i]; i++)
        if (is_name(keep[i]))
            fits = fits && buf_appendf(text,
                                       "case $_cordon_%zu in x*) export %s=\"${_cordon_%zu#x}\" ;; "
                                       "*) unset %s ;; esac; unset _cordon_%zu; ",
                                       i, keep[i], i, keep[i], i);
    fits = fits && buf_append_str(text, "eval \"unset _cordon");
    for (size_t i = 0; i < parts; i++)
        fits = fits && buf_appendf(text, " " CARRIER "%zu", i);
    return fits && buf_append_str(text, "; $_cordon\"");
}

bool shell_snapshot_use(char *const *argv, const char *shell, size_t parts, char *const *keep,
                        struct strv *ret)
{
    AUTO(buf_done) struct buf text = {.max = ARGUMENT_MAX};

    if (!argv[0] || !argv[1] || !argv[2] || argv[3] || !str_eq(argv[0], shell) ||
        !str_eq(argv[1], "-lc") || !take_script(shell_kind_of(shell)) ||
        !put_script(&text, argv[2], parts, keep))
        return false;
    shell_argv_make(shell, SHELL_PLAIN, text.data, ret);
    return true;
}

/* See shell_snapshot.h.
 *
 * The one idea: the state is printed by the shell itself as a script that the same shell reads
 * (declare -f, export -p, ...), so nothing here knows how to quote what it has seen. What cannot be
 * set again is left out, because the file is checked with `set -e`.
 *
 * The script is run by `eval` in the shell that read the snapshot, so functions, aliases and
 * options reach it, which an exec of a fresh shell would lose. Its text is written once; variables
 * of ours are gone before it starts. */
#include "rules/shell_snapshot.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "rules/shell_choice.h"

#include <ctype.h>
#include <string.h>

/* One argument of execve(2) may have 32 pages, MAX_ARG_STRLEN of <linux/binfmts.h>. */
enum { ARGUMENT_MAX = 120 * 1024 };

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

void shell_snapshot_check(const char *shell, const char *path, struct strv *ret)
{
    AUTO(buf_done) struct buf text = {.max = ARGUMENT_MAX};

    buf_append_str(&text, "set -e\n. ");
    put_quoted(&text, path);
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
 * of what was set at all. */
static bool put_saving(struct buf *text, char *const *keep)
{
    bool fits = true;

    for (size_t i = 0; keep[i]; i++)
        if (is_name(keep[i]))
            fits = fits && buf_appendf(text, "_cordon_%zu=${%s+x}${%s-}\n", i, keep[i], keep[i]);
    return fits;
}

static bool put_restoring(struct buf *text, char *const *keep)
{
    bool fits = true;

    for (size_t i = 0; keep[i]; i++)
        if (is_name(keep[i]))
            fits = fits && buf_appendf(text,
                                       "case $_cordon_%zu in x*) export %s=\"${_cordon_%zu#x}\" ;; "
                                       "*) unset %s ;; esac\nunset _cordon_%zu\n",
                                       i, keep[i], i, keep[i], i);
    return fits;
}

static bool put_script(struct buf *text, char *const *argv, const char *path, char *const *keep)
{
    return buf_append_str(text, "_cordon=") && put_quoted(text, argv[2]) &&
           buf_append_str(text, "\n[ -r ") && put_quoted(text, path) &&
           buf_append_str(text, " ] || exec ") && put_quoted(text, argv[0]) &&
           buf_append_str(text, " -lc \"$_cordon\"\n") && put_saving(text, keep) &&
           buf_append_str(text, ". ") && put_quoted(text, path) &&
           buf_append_str(text, " > /dev/null 2>&1\n") && put_restoring(text, keep) &&
           buf_append_str(text, "eval \"unset _cordon\n$_cordon\"");
}

bool shell_snapshot_use(char *const *argv, const char *shell, const char *path, char *const *keep,
                        struct strv *ret)
{
    AUTO(buf_done) struct buf text = {.max = ARGUMENT_MAX};

    if (!argv[0] || !argv[1] || !argv[2] || argv[3] || !str_eq(argv[0], shell) ||
        !str_eq(argv[1], "-lc") || !take_script(shell_kind_of(shell)) ||
        !put_script(&text, argv, path, keep))
        return false;
    shell_argv_make(shell, SHELL_PLAIN, text.data, ret);
    return true;
}

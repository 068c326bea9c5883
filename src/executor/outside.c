/* See outside.h. A name that a command in a sandbox can write, or whose meaning it can change, must not be
 * what runs outside of it:
 *
 *     the program        found once, shown by its path, executed by that path; by a rule, or for the session,
 *                        only where no sandbox of this user can write (host_path_is_settled()), or where the
 *                        user has named the very path; and never where a command of this one can change any
 *                        name on the way (path_may_change()), so that between look and use it stays the same.
 *                        By a descriptor a script would lose its $0, and its interpreter open it by name
 *     what it starts     unasked, its $PATH has no other directories, so a rule for `git` finds no planted `ssh`
 *     the shell          unasked, it runs as `-c` and reads no start-up files: those of a login shell may
 *                        change $PATH behind the judgement
 *     variables          those of the call keep the sandbox, but for those that only change how things look,
 *                        and a question shows them
 *
 * It does not look at what the program reads by itself: a Makefile, a repository's configuration. */
#include "executor/outside.h"

#include "approval/approval.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "executor/execution.h"
#include "policy/access.h"
#include "policy/host_view.h"
#include "rules/rules.h"
#include "rules/shell/command_view.h"
#include "rules/shell/shell_choice.h"
#include "workspace/finder.h"
#include "workspace/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void outside_done(struct outside *outside)
{
    free(outside->program);
    strv_done(&outside->argv);
    strv_done(&outside->env);
    *outside = (struct outside){.program = NULL};
}

static char *const *env_of(const struct execution_options *options)
{
    return options->env ? options->env : strv_view(&options->workspace->env);
}

/* --- variables --- */

/* A pattern ends with '*', has a value, or is a whole name. */
static bool is_one_of(const char *entry, const char *const *patterns)
{
    const size_t name = strcspn(entry, "=");

    for (; *patterns; patterns++) {
        const size_t len = strlen(*patterns);

        if ((*patterns)[len - 1] == '*' ? strncmp(entry, *patterns, len - 1) == 0
            : strchr(*patterns, '=')    ? str_eq(entry, *patterns)
                                        : len == name && strncmp(entry, *patterns, len) == 0)
            return true;
    }
    return false;
}

static bool has(char *const *env, const char *entry)
{
    for (; *env; env++)
        if (str_eq(*env, entry))
            return true;
    return false;
}

/* What says how things look may name a file that says it: a catalogue of messages, a time zone. */
static bool names_a_place(const char *entry)
{
    const char *value = entry + strcspn(entry, "=");

    return strncmp(value, "=/", 2) == 0 || strstr(value, ":/") || strstr(value, "..");
}

/* A $PATH of settled directories finds nothing that a command has put there. */
static bool is_settled_path(const struct execution_options *options, const char *entry)
{
    AUTO_FREE char *settled = host_settled_path(options->env, NULL);

    return strncmp(entry, "PATH=", 5) == 0 && str_eq(entry + 5, settled);
}

void outside_variables(const struct execution_options *options, struct strv *ret)
{
    static const char *const harmless[] = {
        "LANG",      "LANGUAGE",      "LC_*",         "TZ",       "TERM",
        "COLORTERM", "NO_COLOR",      "FORCE_COLOR",  "CLICOLOR", "CLICOLOR_FORCE",
        "COLUMNS",   "LINES",         "CI",           "CODEX_CI", "CODEX_THREAD_ID",
        "PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat", NULL};

    for (char *const *entry = options->env; options->own_env && entry && *entry; entry++)
        if (!has(options->own_env, *entry) && !has(environ, *entry) &&
            (!is_one_of(*entry, harmless) || names_a_place(*entry)) &&
            !is_settled_path(options, *entry))
            strv_push(ret, *entry);
}

void outside_env(char *const *env, const char *program, struct strv *ret)
{
    static const char *const changing[] = {"LD_*",
                                           "BASH_ENV",
                                           "ENV",
                                           "BASH_FUNC_*",
                                           "SHELLOPTS",
                                           "BASHOPTS",
                                           "PS4",
                                           "CDPATH",
                                           "ZDOTDIR",
                                           "PYTHON*",
                                           "NODE_PATH",
                                           "NODE_OPTIONS",
                                           "PERL5LIB",
                                           "PERL5OPT",
                                           "PERLLIB",
                                           "RUBYLIB",
                                           "RUBYOPT",
                                           "GCONV_PATH",
                                           "CLASSPATH",
                                           "JAVA_TOOL_OPTIONS",
                                           "JDK_JAVA_OPTIONS",
                                           "_JAVA_OPTIONS",
                                           "PATH",
                                           NULL};
    AUTO_FREE char *dir = program ? path_parent(program) : NULL;
    AUTO_FREE char *path = host_settled_path(env, dir);

    for (; env && *env; env++)
        if (!is_one_of(*env, changing))
            strv_push(ret, *env);
    strv_pushf(ret, "PATH=%s", path);
}

/* --- programs --- */

static bool is_restricted(const struct execution_options *options)
{
    const struct access_map *access = options->workspace->access;

    return access && access->restricted;
}

/* NULL: it leads nowhere. Caller frees. `*ret_is_settled`: only the administrator, or a place that the user
 * has named, decides what is there. */
static char *look_up(const struct execution_options *options, const struct rules *rules,
                     const char *name, bool *ret_is_settled)
{
    const struct access_map *access = options->workspace->access;
    AUTO_FREE char *found = NULL;
    AUTO_FREE char *real = NULL;
    struct host_finder finder;
    bool is_writable;

    host_finder_init(&finder, env_of(options), options->cwd);
    if (!finder.finder.find(&finder.finder, name, &found, &real))
        return NULL;
    is_writable = access && path_may_change(&host_view_real, access, found);
    *ret_is_settled =
        !is_writable && (*name == '/' || (rules && rules_list_program(rules, found)) ||
                         (finder.finder.is_settled(&finder.finder, found) &&
                          finder.finder.is_settled(&finder.finder, real)));
    return TAKE_PTR(found);
}

char *outside_program(const struct execution_options *options)
{
    bool ignored;

    return is_restricted(options) && !options->replacement_argv
               ? look_up(options, NULL, options->argv[0], &ignored)
               : NULL;
}

/* One of the files that a login shell reads first can be written in the sandbox. */
static const char *open_start_file(const struct execution_options *options)
{
    static const char *const names[] = {".profile", ".bash_profile", ".bash_login", ".bashrc",
                                        ".zshenv",  ".zprofile",     ".zshrc",      ".zlogin"};
    const char *home = env_value(env_of(options), "HOME");

    if (!home || !strchr(options->argv[1], 'l') || !is_restricted(options))
        return NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AUTO_FREE char *file = path_join(home, names[i]);
        AUTO_FREE char *clean = path_clean("/", file);

        if (path_may_change(&host_view_real, options->workspace->access, clean))
            return names[i];
    }
    return NULL;
}

static void add_program(const struct execution_options *options, const struct rules *rules,
                        const char *name, struct buf *text, bool *is_settled)
{
    bool is_own = true;
    AUTO_FREE char *path = look_up(options, rules, name, &is_own);
    bool is_writable = path && path_may_change(&host_view_real, options->workspace->access, path);
    AUTO_FREE char *shown_name = approval_word_text(*name == '/' ? "" : name);
    AUTO_FREE char *shown_path = approval_word_text(path ? path : "");
    AUTO_FREE char *words =
        path ? alloc_strf("%s%s%s%s", *name == '/' ? "" : shown_name, *name == '/' ? "" : " = ",
                          shown_path, is_writable ? " (which commands can write)" : "")
             : NULL;

    *is_settled &= is_own;
    if (words && (!text->len || !strstr(text->data, words)))
        buf_appendf(text, "%s%s", text->len ? ", " : "", words);
}

char *outside_programs(const struct execution_options *options, const struct rules *rules,
                       bool *ret_is_settled)
{
    const char *script = shell_wrapper_script(options->argv);
    const char *start = script ? open_start_file(options) : NULL;
    AUTO(command_view_done) struct command_view view;
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    buf_append_str(&text, "");
    *ret_is_settled = !start;
    if (is_restricted(options) && !options->replacement_argv) {
        command_view_make(options->argv, &view);
        add_program(options, rules, options->argv[0], &text, ret_is_settled);
        if (start)
            buf_appendf(&text, " (which reads ~/%s, which commands can write)", start);
        for (size_t i = 0; script && i < view.commands.len; i++)
            add_program(options, rules, view.commands.items[i].words.items[0], &text,
                        ret_is_settled);
    } else {
        view = (struct command_view){.shell = NULL};
    }
    return buf_take(&text);
}

/* --- by a rule --- */

/* What presets set for the sandbox is as the caller's environment has it, or not there: it leads to what commands
 * in sandboxes have written. */
static void without_presets(const struct workspace *workspace, char *const *env, struct strv *ret)
{
    AUTO(strv_done) struct strv presets = {0};

    workspace_preset_env(workspace, &presets);
    for (; *env; env++) {
        AUTO_FREE char *name = alloc_strn(*env, strcspn(*env, "="));
        const char *own = strv_has(&presets, *env) ? getenv(name) : NULL;

        if (!strv_has(&presets, *env))
            strv_push(ret, *env);
        else if (own)
            strv_pushf(ret, "%s=%s", name, own);
    }
}

int outside_by_rule(const struct execution_options *options, const struct rules *rules,
                    struct outside *ret, struct err *err)
{
    const char *script = shell_wrapper_script(options->argv);
    bool is_settled = false;
    AUTO_FREE char *program = look_up(options, rules, options->argv[0], &is_settled);
    bool is_zsh = program && shell_kind_of(program) == SHELL_ZSH;
    AUTO(strv_done) struct strv env = {0};

    if (!program || !is_settled)
        return err_set(err, ERR_FORBIDDEN,
                       "%s is not the program any more that a rule lets run without a sandbox",
                       options->argv[0]);
    *ret = (struct outside){.program = NULL};
    strv_push_all(&ret->argv, options->argv);
    if (script) { /* -f: not ~/.zshenv either */
        free(ret->argv.items[1]);
        ret->argv.items[1] = alloc_str(is_zsh ? "-fc" : "-c");
    }
    without_presets(options->workspace, env_of(options), &env);
    outside_env(strv_view(&env), program, &ret->env);
    ret->program = TAKE_PTR(program);
    return 0;
}

/* --- the program that answers questions --- */

static char *find_hook(const char *name, const char *dir)
{
    AUTO_FREE char *path = host_settled_path(environ, NULL);
    AUTO_FREE char *variable = alloc_strf("PATH=%s", path);
    char *const env[] = {variable, NULL};
    AUTO_FREE char *found = NULL;
    AUTO_FREE char *real = NULL;
    struct host_finder finder;

    host_finder_init(&finder, env, dir);
    return finder.finder.find(&finder.finder, name, &found, &real) ? TAKE_PTR(found) : NULL;
}

int outside_hook(const char *name, const char *dir, struct outside *ret, struct err *err)
{
    AUTO_FREE char *found = find_hook(name, dir);
    AUTO_FREE char *interpreter = found ? host_interpreter(found) : NULL;

    if (!found && strchr(name, '/'))
        return err_set(err, ERR_NOT_FOUND, "%s is no program", name);
    if (!found)
        return err_set(err, ERR_NOT_FOUND,
                       "%s is in no directory of PATH that only the administrator can write; give "
                       "its path",
                       name);
    if (interpreter && !host_leads_to_settled(interpreter))
        return err_set(err, ERR_FORBIDDEN,
                       "%s is run by %s, which a command may be able to write; name an interpreter "
                       "of the system in its first line",
                       found, interpreter);
    *ret = (struct outside){.program = NULL};
    outside_env(environ, NULL, &ret->env);
    strv_push(&ret->argv, found);
    ret->program = TAKE_PTR(found);
    return 0;
}

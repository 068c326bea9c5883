/* See command_class.h.
 *
 * The one idea: danger is looked for everywhere (all commands of the view, also those inside),
 * safety has to hold for everything. So safety never holds for what is opaque, for a program that
 * runs another one, or for a name that the finder does not place in a system directory.
 *
 * The table is Codex's (is_known_safe_command), with one difference: `uniq IN OUT` writes OUT, so
 * uniq is safe with one file only. */
#include "rules/shell/command_class.h"

#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <stddef.h>
#include <string.h>

/* --- dangerous --- */

/* --force or what GNU getopt takes for it: any beginning that is not one of another option. */
static bool is_force_option(const char *word)
{
    if (word[0] != '-')
        return false;
    if (word[1] == '-')
        return strlen(word) >= strlen("--f") && str_starts("--force", word);
    return strchr(word, 'f') != NULL;
}

static bool has_forced_rm(const struct shell_commands *commands)
{
    for (size_t i = 0; i < commands->len; i++) {
        char *const *words = commands->items[i].words.items;

        if (!str_eq(path_name(words[0]), "rm"))
            continue;
        for (size_t word = 1; word < commands->items[i].words.len; word++) {
            if (str_eq(words[word], "--"))
                break;
            if (is_force_option(words[word]))
                return true;
        }
    }
    return false;
}

enum command_danger command_view_danger(const struct command_view *view)
{
    if (has_forced_rm(&view->commands) || has_forced_rm(&view->inside))
        return DANGER_FORCED_RM;
    return view->too_deep ? DANGER_OTHER : DANGER_NONE;
}

/* --- safe --- */

/* One of the options is a word of the command, perhaps with its value behind "=". */
static bool has_option(const struct shell_command *command, const char *const *options)
{
    for (; *options; options++)
        for (size_t i = 1; i < command->words.len; i++) {
            const char *word = command->words.items[i];
            size_t len = strlen(*options);

            if (strncmp(word, *options, len) == 0 && (word[len] == '\0' || word[len] == '='))
                return true;
        }
    return false;
}

static bool base64_is_safe(const struct shell_command *command)
{
    static const char *const writes[] = {"--output", NULL};

    for (size_t i = 1; i < command->words.len; i++)
        if (str_starts(command->words.items[i], "-o"))
            return false;
    return !has_option(command, writes);
}

static bool find_is_safe(const struct shell_command *command)
{
    static const char *const acts[] = {"-delete",  "-exec",    "-execdir", "-fls",   "-fprint",
                                       "-fprint0", "-fprintf", "-ok",      "-okdir", NULL};

    return !has_option(command, acts);
}

static bool rg_is_safe(const struct shell_command *command)
{
    static const char *const runs[] = {"--hostname-bin", "--pre", "--search-zip", NULL};

    for (size_t i = 1; i < command->words.len; i++)
        if (command->words.items[i][0] == '-' && command->words.items[i][1] != '-' &&
            strchr(command->words.items[i], 'z'))
            return false;
    return !has_option(command, runs);
}

/* `N[,M]p` and nothing else. */
static bool is_print_of_lines(const char *text)
{
    static const char digits[] = "0123456789";
    size_t first = strspn(text, digits);

    if (first == 0)
        return false;
    text += first;
    if (*text == ',') {
        size_t last = strspn(text + 1, digits);

        if (last == 0)
            return false;
        text += 1 + last;
    }
    return str_eq(text, "p");
}

static bool sed_is_safe(const struct shell_command *command)
{
    char *const *words = command->words.items;

    return (command->words.len == 3 || (command->words.len == 4 && words[3][0] != '-')) &&
           str_eq(words[1], "-n") && is_print_of_lines(words[2]);
}

static bool uniq_is_safe(const struct shell_command *command)
{
    bool has_options_ended = false;
    size_t files = 0;

    for (size_t i = 1; i < command->words.len; i++) {
        const char *word = command->words.items[i];

        if (!has_options_ended && str_eq(word, "--"))
            has_options_ended = true;
        else
            files += has_options_ended || word[0] != '-' || str_eq(word, "-");
    }
    return files <= 1;
}

struct safe_program {
    const char *name;
    bool (*is_safe)(const struct shell_command *command); /* NULL: with any words */
};

static const struct safe_program safe_programs[] = {
    {"base64", base64_is_safe},
    {"cat", NULL},
    {"cut", NULL},
    {"echo", NULL},
    {"expr", NULL},
    {"false", NULL},
    {"find", find_is_safe},
    {"grep", NULL},
    {"head", NULL},
    {"id", NULL},
    {"ls", NULL},
    {"nl", NULL},
    {"numfmt", NULL},
    {"paste", NULL},
    {"pwd", NULL},
    {"rev", NULL},
    {"rg", rg_is_safe},
    {"sed", sed_is_safe},
    {"seq", NULL},
    {"stat", NULL},
    {"tac", NULL},
    {"tail", NULL},
    {"tr", NULL},
    {"true", NULL},
    {"uname", NULL},
    {"uniq", uniq_is_safe},
    {"wc", NULL},
    {"which", NULL},
    {"whoami", NULL},
};

/* Safe by its words, if it is the program that its name says. */
static bool words_are_safe(const struct shell_command *command)
{
    const char *name = path_name(command->words.items[0]);

    for (size_t i = 0; i < sizeof safe_programs / sizeof *safe_programs; i++)
        if (str_eq(safe_programs[i].name, name))
            return safe_programs[i].is_safe == NULL ||
                   (command->exact == command->words.len && safe_programs[i].is_safe(command));
    return false;
}

bool program_only_reads(const char *program)
{
    for (size_t i = 0; i < sizeof safe_programs / sizeof *safe_programs; i++)
        if (str_eq(safe_programs[i].name, path_name(program)))
            return true;
    return false;
}

bool path_is_system_program(const char *path)
{
    static const char *const dirs[] = {"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/"};

    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
        if (str_starts(path, dirs[i]))
            return path[strlen(dirs[i])] && strchr(path + strlen(dirs[i]), '/') == NULL;
    return false;
}

static bool program_is_system(const char *name, const struct program_finder *finder)
{
    AUTO_FREE char *found = NULL;
    AUTO_FREE char *real = NULL;

    if (finder->may_move && finder->may_move(finder, name))
        return false;
    return finder->find(finder, name, &found, &real) && path_is_system_program(found) &&
           path_is_system_program(real);
}

bool command_view_is_safe(const struct command_view *view, const struct program_finder *finder)
{
    if (view->opaque || view->too_deep || view->commands.len == 0)
        return false;
    if (view->shell && !program_is_system(view->shell, finder))
        return false;
    for (size_t i = 0; i < view->commands.len; i++) {
        const struct shell_command *command = &view->commands.items[i];
        const char *name = command->words.items[0];

        if (!(view->shell && shell_builtin_is_harmless(name)) &&
            !(words_are_safe(command) && program_is_system(name, finder)))
            return false;
    }
    return true;
}

/* --- never to be proposed as a rule ---
 *
 * Programs that run whatever they are given, by themselves or with the option that takes a program
 * as text. Compared by the base name, so that a path to it is no way around. */

static const struct {
    const char *programs;
    const char *options; /* banned as the only other word; NULL: none */
} banned[] = {
    {"bash sh zsh dash ksh fish", "-c -lc -ic -l -i"},
    {"pwsh powershell pwsh.exe powershell.exe",
     "-Command -command -c -EncodedCommand -File -NoProfile"},
    {"cmd cmd.exe", "/c /C /k"},
    {"python python2 python3 pypy pypy3 uv", "-c -m -"},
    {"node nodejs deno bun ts-node tsx", "-e --eval -p --print eval run x"},
    {"perl ruby lua luajit julia R Rscript osascript", "-e -E -"},
    {"php", "-r -"},
    {"npm pnpm yarn npx bunx", "run exec dlx"},
    {"git env sudo doas su rm xargs eval nohup nice timeout command", NULL},
};

bool prefix_is_banned(char *const *prefix)
{
    const char *program = prefix[0] ? path_name(prefix[0]) : "";
    size_t len = 0;

    while (prefix[len])
        len++;
    for (size_t i = 0; i < sizeof banned / sizeof *banned; i++) {
        if (!name_list_has(banned[i].programs, program))
            continue;
        if (len == 1 ||
            (len == 2 && banned[i].options && name_list_has(banned[i].options, prefix[1])))
            return true;
    }
    return false;
}

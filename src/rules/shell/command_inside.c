/* See command_inside.h.
 *
 * The one idea: most such programs are `NAME options [operands] COMMAND`, so one reader and a table
 * of their options cover them; an option that is not in the table makes the argv unreadable,
 * because its value could be taken for the command. Shells, xargs and find have readers of their
 * own.
 *
 * Options that are missing in the table on purpose: those that start a shell (sudo -i, -s), split
 * text (env -S), put words into others (xargs -i, --replace), or do something else with the words
 * (sudo -e, chrt -p, ionice -p). */
#include "rules/shell/command_inside.h"

#include "base/path.h"
#include "base/str.h"
#include "rules/shell/shell_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct argv {
    char *const *words;
    size_t len;
    bool open;
};

enum runner_trait {
    TAKES_ASSIGNMENTS = 1, /* NAME=VALUE words in front of the command */
    STARTS_SHELL = 2,      /* an interactive shell when there is no command */
    BY_SHELL = 4,          /* the command may be a builtin */
};

/* A program that runs another one which is among its words. */
struct runner {
    const char *name;   /* base name */
    const char *flags;  /* short options without a value */
    const char *values; /* short options with one */
    const char *longs;  /* long options between blanks, with "=" behind it when it has a value */
    unsigned operands;  /* words in front of the command */
    unsigned traits;
    void (*read)(const struct runner *runner, const struct argv *argv, struct command_inside *ret);
};

static const struct runner *runner_find(const char *name);

static void inside_unreadable(struct command_inside *ret, const char *reason)
{
    ret->len = 0;
    ret->unreadable = reason;
}

/* sudo takes options behind assignments, too; no program has a name like an option. */
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
    if (ret->len && !ret->parts[ret->len - 1].exact)
        ret->parts[ret->len - 1].exact = part->to - part->from;
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

static void read_prefix(const struct runner *runner, const struct argv *argv,
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
static void read_command(const struct runner *runner, const struct argv *argv,
                         struct command_inside *ret)
{
    bool lookup = argv->len > 1 && (str_eq(argv->words[1], "-v") || str_eq(argv->words[1], "-V"));

    if (!lookup)
        read_prefix(runner, argv, ret);
}

/* --- xargs and find --- */

/* A program that gets words from elsewhere, in place of `mark` or (NULL) behind the last word. The
 * mark may not choose the program, not even one that the program runs. */
static void inside_add_open(const struct argv *argv, size_t from, size_t to, const char *mark,
                            struct command_inside *ret)
{
    size_t last;

    if (from >= to) {
        inside_unreadable(ret, "a program that runs another one, which is not among its words");
        return;
    }
    last = runner_find(path_name(argv->words[from])) ? to : from + 1;
    for (size_t i = from; mark && i < last; i++)
        if (strstr(argv->words[i], mark)) {
            inside_unreadable(ret, "a program that runs another one, with words from elsewhere");
            return;
        }
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

/* Without a mark all of its words. */
static size_t words_before_mark(const struct argv *argv, const struct command_part *part,
                                const char *mark)
{
    size_t at = part->from;

    while (at < part->to && !(mark && strstr(argv->words[at], mark)))
        at++;
    return at - part->from;
}

static void read_xargs(const struct runner *runner, const struct argv *argv,
                       struct command_inside *ret)
{
    size_t at = options_end(runner, argv);

    if (at == 0)
        inside_unreadable(ret, "xargs with an option that is not known");
    else if (at < argv->len)
        inside_add_open(argv, at, argv->len, xargs_mark(argv, at), ret);
    else if (argv->open)
        inside_unreadable(ret, "xargs without a command");
    for (size_t i = 0; i < ret->len; i++) {
        const char *mark = xargs_mark(argv, at);

        ret->parts[i].more = !mark;
        ret->parts[i].exact = words_before_mark(argv, &ret->parts[i], mark);
    }
}

static bool is_find_exec(const char *word)
{
    return str_eq(word, "-exec") || str_eq(word, "-execdir") || str_eq(word, "-ok") ||
           str_eq(word, "-okdir");
}

static void read_find(const struct runner *runner, const struct argv *argv,
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

static void read_shell(const struct runner *runner, const struct argv *argv,
                       struct command_inside *ret)
{
    bool script = false;
    size_t at = 1;

    for (; at < argv->len && strchr("-+", argv->words[at][0]) && argv->words[at][0]; at++) {
        const char *word = argv->words[at];

        /* letters of options that do not change how a script is read (bash(1), dash(1)) */
        if (word[0] != '-' || word[1] == '\0' || word[1 + strspn(word + 1, "ceuxvl")]) {
            inside_unreadable(ret, "a shell with options that are not known");
            return;
        }
        script = script || strchr(word, 'c');
    }
    if (at == argv->len || (!script && is_input(argv->words[at])))
        inside_unreadable(ret, "a shell that reads its commands from elsewhere");
    else if (script)
        inside_add(ret, argv,
                   &(struct command_part){.from = at, .to = at + 1, .kind = PART_SCRIPT});
}

/* Shells with another syntax: a file is as good as any program's, a script cannot be read. */
static void read_other_shell(const struct runner *runner, const struct argv *argv,
                             struct command_inside *ret)
{
    if (argv->len < 2 || argv->words[1][0] == '-' || argv->words[1][0] == '/' ||
        is_input(argv->words[1]))
        inside_unreadable(ret, "a shell whose syntax is not read");
}

/* --- builtins that run text; only met when looking for danger --- */

static void read_eval(const struct runner *runner, const struct argv *argv,
                      struct command_inside *ret)
{
    size_t at = argv->len > 1 && str_eq(argv->words[1], "--") ? 2 : 1;

    if (at < argv->len)
        inside_add(ret, argv,
                   &(struct command_part){.from = at, .to = argv->len, .kind = PART_SCRIPT});
}

static void read_trap(const struct runner *runner, const struct argv *argv,
                      struct command_inside *ret)
{
    size_t at = argv->len > 1 && str_eq(argv->words[1], "--") ? 2 : 1;

    if (at + 1 < argv->len)
        inside_add(ret, argv,
                   &(struct command_part){.from = at, .to = at + 1, .kind = PART_SCRIPT});
}

static void read_something(const struct runner *runner, const struct argv *argv,
                           struct command_inside *ret)
{
    inside_unreadable(ret, "a program that runs another one in a way that is not read");
}

/* --- the table --- */

/* Options as of coreutils 9.1, sudo 1.9.13, util-linux 2.38, findutils 4.9, time 1.9, bash 5.2. */
static const struct runner runners[] = {
    {"builtin", "", "", "", 0, BY_SHELL, read_prefix},
    {"busybox", "", "", "", 0, 0, read_prefix},
    {"chroot", "", "", "--groups= --userspec= --skip-chdir", 1, STARTS_SHELL, read_prefix},
    {"chrt", "abdfior", "DPT", "", 1, 0, read_prefix},
    {"command", "p", "", "", 0, BY_SHELL, read_command},
    {"doas", "n", "Cu", "", 0, TAKES_ASSIGNMENTS, read_prefix},
    {"env", "-0iv", "Cu", "--ignore-environment --null --unset= --chdir= --debug", 0,
     TAKES_ASSIGNMENTS, read_prefix},
    {"eval", "", "", "", 0, 0, read_eval},
    {"exec", "cl", "a", "", 0, BY_SHELL, read_prefix},
    {"find", "", "", "", 0, 0, read_find},
    {"ionice", "t", "cn", "--class= --classdata= --ignore", 0, 0, read_prefix},
    {"nice", "0123456789", "n", "--adjustment=", 0, 0, read_prefix},
    {"nohup", "", "", "", 0, 0, read_prefix},
    {"setsid", "cfw", "", "--ctty --fork --wait", 0, 0, read_prefix},
    {"stdbuf", "", "eio", "--input= --output= --error=", 0, 0, read_prefix},
    {"sudo", "ABEHPSbkn", "CDRTghprtu",
     "--askpass --background --bell --chdir= --chroot= --close-from= --group= --host= "
     "--non-interactive --preserve-env --preserve-groups --prompt= --set-home --stdin --user=",
     0, TAKES_ASSIGNMENTS, read_prefix},
    {"taskset", "ac", "", "--all-tasks --cpu-list", 1, 0, read_prefix},
    {"time", "apqvV", "fo", "--append --format= --output= --portability --quiet --verbose", 0, 0,
     read_prefix},
    {"timeout", "v", "ks", "--foreground --kill-after= --preserve-status --signal= --verbose", 1, 0,
     read_prefix},
    {"toybox", "", "", "", 0, 0, read_prefix},
    {"trap", "", "", "", 0, 0, read_trap},
    {"xargs", "0rtxopl", "EILPadns",
     "--null --arg-file= --delimiter= --max-args= --max-chars= --max-lines --max-procs= "
     "--no-run-if-empty --open-tty --verbose --exit --eof --show-limits",
     0, 0, read_xargs},
};

static const char shells[] = "ash bash dash rbash sh zsh";

static const char other_shells[] =
    "cmd csh elvish es fish ksh ksh93 mksh nu oksh osh posh powershell pwsh rc tcsh xonsh "
    "yash";

static const char unreadable[] =
    "at batch bwrap capsh catchsegv chpst crontab dbus-launch dbus-run-session distrobox "
    "eatmydata entr expect faketime fakeroot firejail flock gdb i386 ld.so linux32 linux64 "
    "ltrace newgrp nsenter parallel perf pkexec prlimit proot rlwrap run-parts runcon runuser "
    "script setarch setpriv sg softlimit start-stop-daemon strace su systemd-run tmux screen "
    "unbuffer unshare valgrind watch x86_64 xvfb-run";

/* NULL when the name is none of them. */
static const struct runner *runner_find(const char *name)
{
    static const struct runner shell = {.read = read_shell};
    static const struct runner other_shell = {.read = read_other_shell};
    static const struct runner something = {.read = read_something};

    for (size_t i = 0; i < sizeof runners / sizeof *runners; i++)
        if (str_eq(runners[i].name, name))
            return &runners[i];
    if (name_list_has(shells, name))
        return &shell;
    if (name_list_has(other_shells, name))
        return &other_shell;
    /* the dynamic loader runs the program that it is given */
    return name_list_has(unreadable, name) || str_starts(name, "ld-linux") ? &something : NULL;
}

/* Programs that do much else, and run a command that is given behind one of these words (without any:
 * somewhere). Such a command can forbid, and never make anything unclear. */
static const struct {
    const char *programs;
    const char *words;
} carriers[] = {
    {"aa-exec choom chronic cpulimit dumb-init gosu hyperfine ifne mispipe npx numactl pipx "
     "proxychains "
     "proxychains4 s6-setuidgid setuidgid ssh-agent su-exec systemd-inhibit tini torsocks torify "
     "uvx",
     NULL},
    {"bundle direnv", "exec"},
    {"cmake", "env time"},
    {"docker docker-compose nerdctl podman", "exec run"},
    {"fd fdfind", "-x -X --exec --exec-batch"},
    {"git", "foreach run"},
    {"ip", "exec"},
    {"kubectl oc", "exec run debug --"},
    {"npm pnpm yarn bun", "exec x dlx"},
    {"hatch pdm pipenv poetry rye uv", "run"},
};

static size_t carried_from(const struct argv *argv)
{
    const char *name = argv->len ? path_name(argv->words[0]) : "";

    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++) {
        if (!name_list_has(carriers[i].programs, name))
            continue;
        for (size_t at = 1; at < argv->len; at++)
            if (!carriers[i].words)
                return 1;
            else if (name_list_has(carriers[i].words, argv->words[at]))
                return at + 1 < argv->len ? at + 1 : 0;
    }
    return 0;
}

void command_inside_find(char *const *words, size_t len, bool open, struct command_inside *ret)
{
    const struct argv argv = {.words = words, .len = len, .open = open};
    const struct runner *runner = len ? runner_find(path_name(words[0])) : NULL;

    *ret = (struct command_inside){.is_runner = runner != NULL};
    if (runner)
        runner->read(runner, &argv, ret);
    else
        ret->may_be_from = carried_from(&argv);
}

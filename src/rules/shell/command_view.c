/* See command_view.h.
 *
 * The one idea: two readings of the same words. The strict one (shell_words.h) says what is run, or
 * that it cannot be said. The generous one here collects whatever looks like a command, by turns of
 * shell_literal.h for texts and command_inside.h for argvs.
 *
 * Bounded three times: SHELL_DEPTH_MAX turns, TEXT_MAX bytes of script in all, INSIDE_MAX commands.
 * What passes a bound gets `too_deep`, which counts as dangerous. */
#include "rules/shell/command_view.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "rules/shell/command_class.h"
#include "rules/shell/command_inside.h"
#include "rules/shell/shell_literal.h"

#include <string.h>

enum {
    TEXT_MAX = 4 * SHELL_SCRIPT_MAX,
    INSIDE_MAX = 4096,
    ENDS_MAX = 32, /* words of an argv that is not understood which are tried as a name */
};

struct search {
    struct command_view *view;
    size_t text_left; /* bytes of script that may still be read */
    unsigned depth;
};

static void search_script(struct search *search, const char *text, enum shell_text kind);
static void search_argv(struct search *search, const struct shell_command *command);

static bool search_enter(struct search *search, size_t text_len)
{
    if (search->depth == SHELL_DEPTH_MAX || text_len > search->text_left ||
        search->view->inside.len >= INSIDE_MAX) {
        search->view->too_deep = true;
        return false;
    }
    search->text_left -= text_len;
    search->depth++;
    return true;
}

/* --- argvs --- */

/* Adds the words of a part and looks into them. */
static void search_words(struct search *search, const struct shell_command *command,
                         const struct command_part *part)
{
    struct shell_commands *inside = &search->view->inside;
    struct shell_command *last;
    struct shell_command copy;

    if (!search_enter(search, 0))
        return;
    last = shell_commands_copy(inside, command->words.items + part->from, part->to - part->from);
    last->exact = part->exact;
    if (command->exact - part->from < part->exact)
        last->exact = command->exact - part->from;
    if (part->more)
        strv_push(&last->words, "..."); /* for which no rule can tell that it does not fit */
    copy = *last;                       /* the words stay where they are when the list moves */
    search_argv(search, &copy);
    search->depth--;
}

/* Words that could be scripts, also those that are the value of an option: -S"a b", --split-string="a b". */
static void search_texts(struct search *search, const struct shell_command *command)
{
    for (size_t i = 0; i < command->words.len; i++) {
        const char *word = command->words.items[i];
        const char *value = word;

        if (!strpbrk(word, " \t\n;|&"))
            continue;
        if (str_starts(word, "--"))
            value = strchr(word, '=') ? strchr(word, '=') + 1 : word;
        else if (word[0] == '-' && word[1])
            value = strchr(word, 'S') ? strchr(word, 'S') + 1 : word + strlen("-x");
        search_script(search, word, SHELL_TEXT_SCRIPT);
        if (value != word)
            search_script(search, value, SHELL_TEXT_SCRIPT);
    }
}

/* Of an argv that runs something in a way that is not read, every word may be the name. The ends
 * are not looked into, for their ends are among them. */
static void search_ends(struct search *search, const struct shell_command *command, size_t from)
{
    size_t last = command->words.len < ENDS_MAX ? command->words.len : ENDS_MAX;

    for (size_t i = from; i < last && search_enter(search, 0); i++, search->depth--)
        if (command->words.items[i][0] != '-')
            shell_commands_copy(&search->view->inside, command->words.items + i, last - i);
    search_texts(search, command);
}

static void search_argv(struct search *search, const struct shell_command *command)
{
    struct command_inside inside;

    command_inside_find(command->words.items, command->words.len, false, &inside);
    if (inside.unreadable)
        search_ends(search, command, 1);
    else if (inside.may_be_from)
        search_ends(search, command, inside.may_be_from);
    for (size_t i = 0; i < inside.len; i++) {
        const struct command_part *part = &inside.parts[i];
        AUTO(buf_done) struct buf text = {.max = SHELL_SCRIPT_MAX};

        if (part->kind != PART_SCRIPT) {
            search_words(search, command, part);
            continue;
        }
        for (size_t word = part->from; word < part->to; word++)
            if (!buf_appendf(&text, "%s%s", word > part->from ? " " : "",
                             command->words.items[word]))
                search->view->too_deep = true;
        search_script(search, text.data ? text.data : "", SHELL_TEXT_SCRIPT);
    }
}

/* --- scripts --- */

/* The words that `echo` and `printf` print, and which xargs reads. */
static void push_printed(struct strv *ret, const struct shell_command *prints)
{
    for (size_t i = 1; i < prints->words.len; i++) {
        const char *at = prints->words.items[i];

        if (i == 1 && name_list_has("-n -e -ne -en", at))
            continue;
        while (*at) {
            size_t len = strcspn(at, " \t\n\\");

            if (len)
                strv_push_take(ret, alloc_strn(at, len));
            at += len;
            at += str_starts(at, "\\n") || str_starts(at, "\\0") ? 2 : *at != '\0';
        }
    }
}

/* What `echo push | xargs git` comes to: of all commands of a script, those with a part that more words
 * come behind, with the words of those that print some. */
static void search_printed(struct search *search, const struct shell_commands *commands)
{
    for (size_t i = 0; i < commands->len; i++) {
        const struct shell_command *runs = &commands->items[i];
        struct command_inside inside;

        command_inside_find(runs->words.items, runs->words.len, false, &inside);
        for (size_t k = 0; inside.len && inside.parts[0].more && k < commands->len; k++) {
            const struct shell_command *prints = &commands->items[k];
            struct shell_command *fed;

            if (!name_list_has("echo printf", path_name(prints->words.items[0])) ||
                !search_enter(search, 0))
                continue;
            fed =
                shell_commands_copy(&search->view->inside, runs->words.items + inside.parts[0].from,
                                    inside.parts[0].to - inside.parts[0].from);
            push_printed(&fed->words, prints);
            fed->exact = fed->words.len;
            search->depth--;
        }
    }
}

/* It runs what it reads, or something with words that it reads. */
static bool takes_commands(const struct shell_command *command)
{
    struct command_inside inside;

    command_inside_find(command->words.items, command->words.len, false, &inside);
    return inside.unreadable || (inside.len && inside.parts[0].open) ||
           str_eq(command->words.items[0], ".") || str_eq(command->words.items[0], "source");
}

static void search_literals(struct search *search, const struct shell_literals *literals)
{
    bool taken = false;

    for (size_t i = 0; i < literals->commands.len; i++) {
        search_argv(search, &literals->commands.items[i]);
        taken = taken || takes_commands(&literals->commands.items[i]);
    }
    search_printed(search, &literals->commands);
    for (size_t i = 0; i < literals->bodies.len; i++)
        search_script(search, literals->bodies.items[i], SHELL_TEXT_BODY);
    for (size_t i = 0; taken && i < literals->bodies.len; i++)
        search_script(search, literals->bodies.items[i], SHELL_TEXT_SCRIPT);
    for (size_t i = 0; taken && i < literals->commands.len; i++)
        search_texts(search, &literals->commands.items[i]);
}

static void search_script(struct search *search, const char *text, enum shell_text kind)
{
    AUTO(shell_literals_done) struct shell_literals literals = {0};
    struct shell_commands *inside = &search->view->inside;

    if (!search_enter(search, strlen(text)))
        return;
    shell_literals_read(text, strlen(text), kind, &literals);
    search->view->too_deep = search->view->too_deep || literals.too_deep;
    for (size_t i = 0; i < literals.commands.len; i++)
        shell_commands_copy(inside, literals.commands.items[i].words.items,
                            literals.commands.items[i].words.len);
    search_literals(search, &literals);
    search->depth--;
}

/* --- the view --- */

const char *shell_wrapper_script(char *const *argv)
{
    static const char *const shells[] = {"bash", "sh", "zsh"};
    size_t len = 0;

    while (len < 4 && argv[len])
        len++;
    if (len != 3 || !(str_eq(argv[1], "-c") || str_eq(argv[1], "-lc")))
        return NULL;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (str_eq(path_name(argv[0]), shells[i]) &&
            (strchr(argv[0], '/') == NULL || path_is_system_program(argv[0])))
            return argv[2];
    return NULL;
}

/* The argv itself, and why it is opaque. */
static void view_argv(struct search *search, char *const *argv, const char *script)
{
    struct command_view *view = search->view;
    struct strv words = {0};

    strv_push_all(&words, argv);
    if (words.len == 0)
        return;
    *shell_commands_add(&view->commands) =
        (struct shell_command){.words = words, .exact = words.len};
    if (script) {
        search_script(search, script, SHELL_TEXT_SCRIPT);
    } else {
        view->opaque = shell_argv_objection(words.items, words.len);
        search_argv(search, &view->commands.items[0]);
    }
}

void command_view_make(char *const *argv, struct command_view *ret)
{
    struct search search = {.view = ret, .text_left = TEXT_MAX};
    const char *text = shell_wrapper_script(argv);
    struct shell_script script = {0};

    *ret = (struct command_view){0};
    if (text) {
        ret->shell = argv[0];
        shell_script_parse(text, strlen(text), &script);
        ret->opaque = script.opaque;
        ret->offset = script.offset;
    }
    if (text == NULL || script.opaque) {
        view_argv(&search, argv, text);
        return;
    }
    ret->commands = script.commands;
    for (size_t i = 0; i < ret->commands.len; i++)
        search_argv(&search, &ret->commands.items[i]);
    search_printed(&search, &ret->commands);
}

void command_view_done(struct command_view *view)
{
    shell_commands_done(&view->commands);
    shell_commands_done(&view->inside);
    *view = (struct command_view){0};
}

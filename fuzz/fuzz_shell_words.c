/* Shell scripts. Beside memory errors: the words of a plain script, quoted, are a plain script of
 * the same words; the generous reading (shell_literal.h), which is another parser, finds the same
 * commands in it; and it is opaque as soon as anything live is put behind it. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "rules/shell/command_class.h"
#include "rules/shell/command_view.h"
#include "rules/shell/shell_literal.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_equal(const struct shell_commands *a, const struct shell_commands *b)
{
    check(a->len == b->len);
    for (size_t i = 0; i < a->len; i++) {
        check(a->items[i].words.len == b->items[i].words.len);
        for (size_t word = 0; word < a->items[i].words.len; word++)
            check(str_eq(a->items[i].words.items[word], b->items[i].words.items[word]));
    }
}

/* a'b becomes 'a'"'"'b' */
static void put_quoted(struct buf *script, const char *word)
{
    buf_append_str(script, " '");
    for (; *word; word++)
        buf_append_str(script, *word == '\'' ? "'\"'\"'" : (char[]){*word, '\0'});
    buf_append_str(script, "'");
}

static void check_quoted(const struct shell_commands *commands)
{
    AUTO(buf_done) struct buf text = {.max = (size_t)1 << 24};
    AUTO(shell_script_done) struct shell_script again = {0};

    for (size_t i = 0; i < commands->len; i++) {
        char *const *words = commands->items[i].words.items;

        buf_appendf(&text, "%s%s", i ? "\n" : "", words[0]);
        for (size_t word = 1; words[word]; word++)
            put_quoted(&text, words[word]);
    }
    shell_script_parse(text.data, text.len, &again);
    if (again.opaque) /* quotes make it longer; and what was a glob may now be a script */
        return;
    check_equal(commands, &again.commands);
    for (size_t i = 0; i < again.commands.len; i++)
        check(again.commands.items[i].exact == again.commands.items[i].words.len);
}

static void check_live_behind(const char *text, size_t len)
{
    static const char *const live[] = {" $x", "`x`", ";(x)", ">x", "&", "\\x", "!", "\r", "{"};

    for (size_t i = 0; i < sizeof live / sizeof *live; i++) {
        AUTO_FREE char *longer = alloc_strf("%.*s%s", (int)len, text, live[i]);
        AUTO(shell_script_done) struct shell_script script = {0};

        shell_script_parse(longer, strlen(longer), &script);
        check(script.opaque != NULL);
    }
}

static void check_plain(const struct shell_script *script, const char *text, size_t len)
{
    AUTO(shell_literals_done) struct shell_literals literals = {0};

    check(script->commands.len > 0 && memchr(text, '\0', len) == NULL);
    for (size_t i = 0; i < script->commands.len; i++) {
        const struct shell_command *command = &script->commands.items[i];

        check(command->exact >= 1 && command->exact <= command->words.len);
    }
    shell_literals_read(text, len, SHELL_TEXT_SCRIPT, &literals);
    check(!literals.too_deep && literals.bodies.len == 0);
    check_equal(&script->commands, &literals.commands);
    check_quoted(&script->commands);
    check_live_behind(text, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = alloc_strn((const char *)data, size);
    char shell[] = "bash", option[] = "-lc";
    char *const argv[] = {shell, option, text, NULL};
    AUTO(shell_script_done) struct shell_script script = {0};
    AUTO(command_view_done) struct command_view view = {0};

    shell_script_parse((const char *)data, size, &script);
    if (script.opaque)
        check(script.commands.len == 0 && script.offset <= size);
    else
        check_plain(&script, (const char *)data, size);
    command_view_make(argv, &view);
    check(view.commands.len > 0);
    (void)command_view_danger(&view);
    return 0;
}

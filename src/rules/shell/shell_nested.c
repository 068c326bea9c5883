/* See shell_nested.h.
 *
 * The one idea: a command is plain only if everything that it is known to run is plain as well. So
 * "plain" never hides a second command behind a first one, and whoever asks rules about the words
 * finds all of them in command_view.h.
 *
 * Words behind the first inexact one may move or vanish, so no program inside may begin there. */
#include "rules/shell/shell_nested.h"

#include "rules/shell/command_inside.h"
#include "rules/shell/shell_builtin.h"

#include <stdbool.h>
#include <string.h>

/* An argv somewhere inside. */
struct view {
    char *const *words;
    size_t len;
    size_t exact;
    bool open;
    bool by_shell;
};

static const char *view_objection(const struct view *view, unsigned depth);

static const char *script_objection(const struct view *view, const struct command_part *part,
                                    unsigned depth)
{
    struct shell_script script;
    const char *reason;

    if (part->to - part->from != 1)
        return "a script made of several words";
    shell_script_parse_at(view->words[part->from], strlen(view->words[part->from]), depth, &script);
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
        view->by_shell ? shell_builtin_objection(view->words, view->len, view->exact) : NULL;
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

const char *shell_command_objection(const struct shell_command *command, unsigned depth)
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

/* See literal_frame.h.
 *
 * The one idea: what stands in front of a command's name is peeled off until a name is left. Of
 * words that name something first (for, function, coproc, repeat), every end is taken for a
 * command: too many are harmless here. */
#include "rules/shell/literal_frame.h"

#include "base/alloc.h"
#include "base/str.h"
#include "rules/shell/name_list.h"

#include <string.h>

enum { ENDS_MAX = 8 };

void literal_frame_init(struct literal_frame *frame, char closer, size_t max)
{
    *frame = (struct literal_frame){.closer = closer};
    buf_init(&frame->word, max);
}

void literal_frame_done(struct literal_frame *frame)
{
    strv_done(&frame->words);
    buf_done(&frame->word);
}

void literal_frame_put(struct literal_frame *frame, const char *text, size_t len)
{
    frame->in_word = true;
    frame->has_text = true;
    buf_append(&frame->word, text, len);
}

void literal_frame_drop_number(struct literal_frame *frame)
{
    const char *text = frame->word.data;

    if (!frame->has_text || text == NULL || text[strspn(text, "0123456789")])
        return;
    buf_clear(&frame->word);
    frame->in_word = false;
    frame->has_text = false;
}

char *literal_frame_end_word(struct literal_frame *frame, struct shell_literals *ret)
{
    enum literal_use use = frame->use;
    char *delimiter = NULL;

    if (!frame->in_word)
        return NULL;
    if (use == WORD_DELIMITER)
        delimiter = buf_take(&frame->word);
    else if (use == WORD_BODY)
        strv_push_take(&ret->bodies, buf_take(&frame->word));
    else if (use == WORD_OF_COMMAND && frame->has_text)
        strv_push_take(&frame->words, buf_take(&frame->word));
    buf_clear(&frame->word);
    frame->use = WORD_OF_COMMAND;
    frame->in_word = false;
    frame->has_text = false;
    return delimiter;
}

/* --- what leads up to a command --- */

static bool is_lead(const char *word)
{
    static const char leads[] =
        "! - do elif else esac if in noglob nocorrect then time until while";

    return name_list_has(leads, word);
}

/* NAME=, NAME+= and NAME[...]= */
static bool is_assignment(const char *word)
{
    size_t name = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

    return name > 0 && (word[name] == '=' || (word[name] == '+' && word[name + 1] == '=') ||
                        (word[name] == '[' && strchr(word + name, '=')));
}

/* Index of the first word that may be a name. */
static size_t lead_len(struct literal_frame *frame)
{
    char *const *words = strv_view(&frame->words);
    size_t at = 0;

    for (; words[at] && (is_lead(words[at]) || is_assignment(words[at])); at++) {
        if (str_eq(words[at], "esac") && frame->cases)
            frame->cases--;
        if (str_eq(words[at], "time"))
            while (words[at + 1] && words[at + 1][0] == '-')
                at++;
    }
    return at;
}

static void add_ends(struct literal_frame *frame, size_t from, struct shell_literals *ret)
{
    size_t last = frame->words.len - from < ENDS_MAX ? frame->words.len : from + ENDS_MAX;

    for (size_t at = from + 1; at < last; at++)
        if (!is_lead(frame->words.items[at]))
            shell_commands_copy(&ret->commands, frame->words.items + at, frame->words.len - at);
}

void literal_frame_end_command(struct literal_frame *frame, struct shell_literals *ret)
{
    static const char naming[] = "coproc for foreach function repeat select";
    size_t from = lead_len(frame);

    frame->use = WORD_OF_COMMAND;
    frame->braces = 0;
    if (from == frame->words.len) {
        strv_done(&frame->words);
        return;
    }
    if (str_eq(frame->words.items[from], "case"))
        frame->cases++;
    else if (name_list_has(naming, frame->words.items[from]))
        add_ends(frame, from, ret);
    else
        shell_commands_copy(&ret->commands, frame->words.items + from, frame->words.len - from);
    strv_done(&frame->words);
}

/* Splits the text of an example into words, as Codex does: quotes and backslashes of POSIX shells
 * (POSIX.1-2017, Shell Command Language 2.2), comments, and nothing else; "|" and "$x" are text. */
#include "rules/file/rules_file.h"

#include "base/auto.h"
#include "base/buf.h"

#include <stdint.h>
#include <string.h>

#define BLANKS " \t\n"

/* Behind the opening quote; to behind the closing one. */
static const char *read_double(const char **at, struct buf *word)
{
    for (; **at != '"'; (*at)++) {
        if (**at == '\\' && (*at)[1] == '\n') {
            (*at)++;
            continue;
        }
        if (**at == '\\' && (*at)[1] && strchr("$`\"\\", (*at)[1]))
            (*at)++;
        if (!**at)
            return "a double quote is not closed";
        buf_append(word, *at, 1);
    }
    (*at)++;
    return NULL;
}

static const char *read_single(const char **at, struct buf *word)
{
    size_t len = strcspn(*at, "'");

    buf_append(word, *at, len);
    *at += len;
    if (!**at)
        return "a single quote is not closed";
    (*at)++;
    return NULL;
}

/* One character outside of quotes, or a whole quoted part. */
static const char *read_part(const char **at, struct buf *word)
{
    char c = *(*at)++;

    if (c == '"')
        return read_double(at, word);
    if (c == '\'')
        return read_single(at, word);
    if (c == '\\') {
        c = *(*at)++;
        if (!c)
            return "it ends in a backslash";
        if (c == '\n')
            return NULL;
    }
    buf_append(word, &c, 1);
    return NULL;
}

static const char *read_word(const char **at, struct strv *ret)
{
    AUTO(buf_done) struct buf word;
    const char *problem = NULL;

    buf_init(&word, SIZE_MAX / 2);
    buf_append(&word, "", 0);
    while (!problem && **at && !strchr(BLANKS, **at))
        problem = read_part(at, &word);
    if (!problem)
        strv_push(ret, word.data);
    return problem;
}

const char *rule_words_split(const char *text, struct strv *ret)
{
    const char *problem = NULL;

    while (!problem && *(text += strspn(text, BLANKS)))
        if (*text == '#')
            text += strcspn(text, "\n");
        else
            problem = read_word(&text, ret);
    if (!problem && !ret->len)
        problem = "it holds no command";
    return problem;
}

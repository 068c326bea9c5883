/* See denial_paths.h. The likeliest place comes first: quotes anywhere, right behind the error,
 * right before it, then any word with a slash. A path may hold blanks, so what stands between a
 * colon and the error is taken whole before it is taken apart. Which of several paths it was is not
 * decided here: the profile knows more about that than the words (denial_verdict.h). */
#include "denial/denial_paths.h"

#include "base/alloc.h"
#include "base/strv.h"
#include "denial/denial_line.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PATHS_MAX 8

/* Words before an error that name what was tried, not a file. */
static const char *const not_files[] = {
    "socket",  "connect", "bind",  "open",   "mount",  "ptrace", "clone",  "fork",
    "unshare", "failed",  "error", "exec",   "execve", "setuid", "setgid", "kill",
    "listen",  "sendto",  "write", "read",   "mkdir",  "unlink", "rename", "denied",
    "stat",    "access",  "chdir", "openat", NULL};

static bool is_path(const char *text)
{
    return strchr(text, '/') && !strstr(text, "://") && text[0] != '~' && !strchr(text, '\n');
}

static void push_path(struct strv *paths, const char *text, size_t len)
{
    char *path = alloc_strn(text, len);

    if (paths->len < PATHS_MAX && len && is_path(path) && !strv_has(paths, path))
        strv_push(paths, path);
    free(path);
}

struct quotes {
    const char *open;
    const char *close;
};

static const struct quotes quotes[] = {
    {"'", "'"},
    {"\"", "\""},
    {"`", "`"},
    {"`", "'"},
    {"\xe2\x80\x98", "\xe2\x80\x99"},
    {"\xe2\x80\x9c", "\xe2\x80\x9d"},
};

/* An apostrophe inside a word ("can't") opens nothing. */
static bool opens_quote(const char *text, const char *at)
{
    return at == text || !isalnum((unsigned char)at[-1]);
}

static void push_quoted_by(const char *text, const struct quotes *by, struct strv *paths)
{
    size_t open_len = strlen(by->open);
    const char *at = text;

    while ((at = strstr(at, by->open))) {
        const char *begin = at + open_len;
        const char *end = strstr(begin, by->close);

        if (!opens_quote(text, at)) {
            at = begin;
            continue;
        }
        if (!end)
            return;
        push_path(paths, begin, (size_t)(end - begin));
        at = end + strlen(by->close);
    }
}

void denial_paths_quoted(const char *text, struct strv *paths)
{
    for (size_t i = 0; i < sizeof quotes / sizeof *quotes; i++)
        push_quoted_by(text, &quotes[i], paths);
}

/* "zsh: permission denied: /x", "Permission denied @ rb_sysopen - /x" */
static void push_behind(const char *rest, struct strv *paths)
{
    const char *dash = strstr(rest, " - ");

    if (dash)
        rest = dash + 3;
    rest += strspn(rest, ": ");
    push_path(paths, rest, strcspn(rest, " ,;)'\""));
}

/* The end of what stands before the error: without ": ", " (", ", ", "[Errno 13] " and the like. */
static size_t trim_before(const char *text, size_t len)
{
    while (len && strchr(" :(,-'\"", text[len - 1]))
        len--;
    return len;
}

/* The text between the last ": " and the error, as a whole: it may have blanks in it. */
static void push_segment(const char *text, size_t len, struct strv *paths)
{
    size_t begin = len;

    while (begin && !(begin >= 2 && text[begin - 2] == ':' && text[begin - 1] == ' '))
        begin--;
    if (begin && strchr("/.", text[begin]))
        push_path(paths, text + begin, len - begin);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '(' || c == '=' || c == '"' || c == '\'' || c == '`';
}

/* Bare words with a slash before the error, from right to left. The first word of a line that ends
 * in ':' is the program that speaks. */
static void push_words(const char *text, size_t len, struct strv *paths)
{
    size_t end = len;

    while (end) {
        size_t begin;
        size_t stop;

        while (end && is_blank(text[end - 1]))
            end--;
        for (begin = end; begin && !is_blank(text[begin - 1]);)
            begin--;
        for (stop = end; stop > begin && strchr(":,;)]", text[stop - 1]);)
            stop--;
        if (begin || stop == end || stop == len)
            push_path(paths, text + begin, stop - begin);
        end = begin;
    }
}

/* The last word before the error, when it could be the name of a file. */
static void push_name(const char *text, size_t len, struct strv *names)
{
    size_t begin = len;
    char *name;

    while (begin && !strchr(" :'\"`(", text[begin - 1]))
        begin--;
    name = alloc_strn(text + begin, len - begin);
    if (*name && begin && !strchr(name, '/') && !strchr(name, ']')) {
        bool is_file = true;

        for (const char *const *word = not_files; *word; word++)
            is_file = is_file && strcasecmp(*word, name) != 0;
        if (is_file)
            strv_push(names, name);
    }
    free(name);
}

void denial_paths_around(const char *text, size_t at, size_t len, struct denial_clue *clue)
{
    size_t before = trim_before(text, at);

    denial_paths_quoted(text, &clue->paths);
    push_behind(text + at + len, &clue->paths);
    push_segment(text, before, &clue->paths);
    push_words(text, before, &clue->paths);
    if (!clue->paths.len)
        push_name(text, before, &clue->names);
}

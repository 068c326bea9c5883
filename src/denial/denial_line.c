/* See denial_line.h. Programs report errors in a handful of shapes:
 *
 *     touch: cannot touch '/etc/x': Read-only file system        quoted, before
 *     bash: line 1: /etc/x: Permission denied                    bare, right before
 *     OSError: [Errno 30] Read-only file system: '/x'            quoted, behind
 *     zsh: permission denied: /etc/x                             bare, behind
 *     Error: EACCES: permission denied, mkdir '/usr/lib/x'       quoted, behind
 *
 * so the text of the error is looked for first, in the shape that strerror(3) text has in a
 * message (behind a colon, bracket or comma, not in the middle of a sentence), then for the words
 * that say what was tried, and for paths or a host around it.
 *
 * Of the paths the likeliest place comes first: quotes anywhere, right behind the error, right
 * before it, then any word with a slash. A path may hold blanks, so what stands between a colon and
 * the error is taken whole before it is taken apart. Which of several paths it was is not decided
 * here: the profile knows more about that than the words (denial.c). */
#include "denial/denial_line.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- paths --- */

#define PATHS_MAX 8

/* Words before an error that name what was tried, not a file. */
static const char *const not_files[] = {
    "socket",  "connect", "bind",  "open",   "mount",  "ptrace", "clone",  "fork",
    "unshare", "failed",  "error", "exec",   "execve", "setuid", "setgid", "kill",
    "listen",  "sendto",  "write", "read",   "mkdir",  "unlink", "rename", "denied",
    "stat",    "access",  "chdir", "openat", NULL};

static void push_path(struct strv *paths, const char *text, size_t len)
{
    char *path = alloc_strn(text, len);

    if (paths->len < PATHS_MAX && len && strchr(path, '/') && !strstr(path, "://") &&
        path[0] != '~' && !strchr(path, '\n') && !strv_has(paths, path))
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

static void push_quoted_by(const char *text, const struct quotes *by, struct strv *paths)
{
    size_t open_len = strlen(by->open);
    const char *at = text;

    while ((at = strstr(at, by->open))) {
        const char *begin = at + open_len;
        const char *end = strstr(begin, by->close);

        /* an apostrophe inside a word ("can't") opens nothing */
        if (at > text && isalnum((unsigned char)at[-1])) {
            at = begin;
            continue;
        }
        if (!end)
            return;
        push_path(paths, begin, (size_t)(end - begin));
        at = end + strlen(by->close);
    }
}

static void paths_quoted(const char *text, struct strv *paths)
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

/* Looks around the error, the `len` bytes at `at` of `text`, and appends to the clue's paths, or to
 * its names when there is no path. */
static void paths_around(const char *text, size_t at, size_t len, struct denial_clue *clue)
{
    size_t before = at; /* without ": ", " (", ", ", "[Errno 13] " and the like */

    while (before && strchr(" :(,-'\"", text[before - 1]))
        before--;
    paths_quoted(text, &clue->paths);
    push_behind(text + at + len, &clue->paths);
    push_segment(text, before, &clue->paths);
    push_words(text, before, &clue->paths);
    if (!clue->paths.len)
        push_name(text, before, &clue->names);
}

/* --- the line --- */

#define LINE_SIZE 4096

/* A line without colours and control characters, and the same in lower case. */
struct line {
    char text[LINE_SIZE];
    char lower[LINE_SIZE];
    size_t len;
};

struct phrase {
    const char *text; /* lower case */
    enum denial_topic topic;
    int error;
    bool needs_proof;
};

/* The file-system ones are the keywords by which Codex takes a failure for a denial. Its single
 * words (seccomp, sandbox, landlock) are not here: they say nothing unless the end of the command
 * does, and then the end is enough (denial.c). */
static const struct phrase phrases[] = {
    {"read-only file system", DENIAL_TOPIC_FILE, EROFS, false},
    {"permission denied", DENIAL_TOPIC_FILE, EACCES, false},
    {"operation not permitted", DENIAL_TOPIC_FILE, EPERM, false},
    {"failed to write file", DENIAL_TOPIC_FILE, 0, true},
    {"network is unreachable", DENIAL_TOPIC_NETWORK, ENETUNREACH, false},
    {"could not resolve host", DENIAL_TOPIC_NETWORK, 0, false},
    {"could not resolve proxy", DENIAL_TOPIC_NETWORK, 0, false},
    {"could not resolve '", DENIAL_TOPIC_NETWORK, 0, false},
    {"unable to resolve host address", DENIAL_TOPIC_NETWORK, 0, false},
    {"temporary failure in name resolution", DENIAL_TOPIC_NETWORK, 0, false},
    {"temporary failure resolving", DENIAL_TOPIC_NETWORK, 0, false},
    {"getaddrinfo eai_again", DENIAL_TOPIC_NETWORK, 0, false},
};

/* Behind which of these the text of an error begins ... */
static const char *const openers[] = {": ", "] ", ", ", "(", "'", "\"", "- ", ":"};

/* ... and before which it ends, besides the end of the line. */
static const char *const closers[] = {":",          ".",   ",",    ")",    "'",   "\"", ";",
                                      " (os error", " @ ", " at ", " in ", " - ", " [", " while "};

/* The other side of ssh says no, not this host. */
static const char *const remote[] = {"permission denied (", "permission denied, please try again"};

struct hint_word {
    const char *text; /* lower case; the line begins with it when it ends in ':' */
    enum denial_hint hint;
};

/* In this order: the first that fits decides. */
static const struct hint_word hint_words[] = {
    {"cat:", DENIAL_HINT_READ},
    {"ls:", DENIAL_HINT_READ},
    {"grep:", DENIAL_HINT_READ},
    {"head:", DENIAL_HINT_READ},
    {"tail:", DENIAL_HINT_READ},
    {"find:", DENIAL_HINT_READ},
    {"rg:", DENIAL_HINT_READ},
    {"du:", DENIAL_HINT_READ},
    {"tee:", DENIAL_HINT_WRITE},
    {"dial unix", DENIAL_HINT_CONNECT},
    {"scandir", DENIAL_HINT_READ},
    {"open directory", DENIAL_HINT_READ},
    {"for reading", DENIAL_HINT_READ},
    {"cannot access", DENIAL_HINT_READ},
    {"for writing", DENIAL_HINT_WRITE},
    {"creat", DENIAL_HINT_WRITE},
    {"writ", DENIAL_HINT_WRITE},
    {"touch", DENIAL_HINT_WRITE},
    {"mkdir", DENIAL_HINT_WRITE},
    {"mkdtemp", DENIAL_HINT_WRITE},
    {"remov", DENIAL_HINT_WRITE},
    {"unlink", DENIAL_HINT_WRITE},
    {"renam", DENIAL_HINT_WRITE},
    {"cannot move", DENIAL_HINT_WRITE},
    {"delet", DENIAL_HINT_WRITE},
    {"changing", DENIAL_HINT_WRITE},
    {"chmod", DENIAL_HINT_WRITE},
    {"lock", DENIAL_HINT_WRITE},
    {"append", DENIAL_HINT_WRITE},
    {"truncate", DENIAL_HINT_WRITE},
    {"link", DENIAL_HINT_WRITE},
    {"save", DENIAL_HINT_WRITE},
    {"rmdir", DENIAL_HINT_WRITE},
    {"output file", DENIAL_HINT_WRITE},
    {"copyfile", DENIAL_HINT_WRITE},
    {"setting times", DENIAL_HINT_WRITE},
    {"temporary file", DENIAL_HINT_WRITE},
    {"cannot stat", DENIAL_HINT_READ},
    {"read", DENIAL_HINT_READ},
    {"list", DENIAL_HINT_READ},
};

/* Where the name of a host follows. */
static const char *const host_marks[] = {
    "resolve host: ",
    "resolve proxy: ",
    "resolve hostname ",
    "resolve host address ",
    "resolve host ",
    "resolve ",
    "resolving ",
    "eai_again ",
    "host='",
    "lookup ",
    "://",
    "connect to ",
    "dial tcp ",
    "/dev/tcp/",
    "/dev/udp/",
    "ping: ",
    "host name ",
};

/* Leaves out CSI sequences (ECMA-48 5.4: ESC [ ... final byte 0x40 to 0x7e) and control bytes. */
static void line_init(struct line *line, const char *text, size_t len)
{
    size_t out = 0;

    for (size_t i = 0; i < len && out < LINE_SIZE - 1; i++) {
        if (text[i] == '\033' && i + 1 < len && text[i + 1] == '[') {
            for (i += 2; i < len && (text[i] < 0x40 || text[i] > 0x7e); i++)
                continue;
        } else if ((unsigned char)text[i] >= ' ' || text[i] == '\t') {
            line->lower[out] = (char)tolower((unsigned char)text[i]);
            line->text[out++] = text[i];
        }
    }
    while (out && line->text[out - 1] == ' ')
        out--;
    line->text[out] = line->lower[out] = '\0';
    line->len = out;
}

static bool begins_message(const struct line *line, size_t at)
{
    size_t indent = strspn(line->text, " \t");

    if (at == indent)
        return true;
    for (size_t i = 0; i < sizeof openers / sizeof *openers; i++) {
        size_t len = strlen(openers[i]);

        if (at >= len && !strncmp(line->text + at - len, openers[i], len))
            return true;
    }
    return false;
}

static bool ends_message(const char *rest)
{
    if (!*rest)
        return true;
    for (size_t i = 0; i < sizeof closers / sizeof *closers; i++)
        if (str_starts(rest, closers[i]))
            return true;
    return false;
}

/* Where `phrase` stands in the line as the text of an error; NULL when it does not. */
static const char *phrase_find(const struct line *line, const struct phrase *phrase)
{
    const char *at = strstr(line->lower, phrase->text);

    for (size_t i = 0; at && i < sizeof remote / sizeof *remote; i++)
        if (str_starts(at, remote[i]) && !str_starts(at, "permission denied (os error"))
            return NULL;
    if (!at)
        return NULL;
    if (phrase->topic == DENIAL_TOPIC_NETWORK || phrase->needs_proof)
        return at;
    if (!begins_message(line, (size_t)(at - line->lower)) ||
        !ends_message(at + strlen(phrase->text)))
        return NULL;
    return at;
}

/* `word` at the start of a word, and not in a path. */
static bool has_word(const char *text, const char *word)
{
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if (at == text || !(isalnum((unsigned char)at[-1]) || strchr("/._-", at[-1])))
            return true;
    return false;
}

static enum denial_hint hint_of(const struct line *line, int error)
{
    if (error == EROFS)
        return DENIAL_HINT_WRITE;
    for (size_t i = 0; i < sizeof hint_words / sizeof *hint_words; i++) {
        const char *text = hint_words[i].text;

        if (str_ends(text, ":") ? str_starts(line->lower, text) : has_word(line->lower, text))
            return hint_words[i].hint;
    }
    return DENIAL_HINT_NONE;
}

/* A name or IPv4 address, or an IPv6 address in brackets; caller frees. */
static char *host_at(const char *text)
{
    size_t len = 0;

    text += strspn(text, " '\"`");
    if (*text == '[') {
        len = strspn(text + 1, "0123456789abcdefABCDEF:.");
        return len && text[len + 1] == ']' ? alloc_strn(text + 1, len) : NULL;
    }
    while (isalnum((unsigned char)text[len]) || (text[len] && strchr(".-_", text[len])))
        len++;
    while (len && text[len - 1] == '.')
        len--;
    if (!len || !(memchr(text, '.', len) || strchr(":'\")/", text[len]) || !text[len]))
        return NULL;
    return alloc_strn(text, len);
}

static char *host_find(const struct line *line)
{
    for (size_t i = 0; i < sizeof host_marks / sizeof *host_marks; i++) {
        const char *at = strstr(line->lower, host_marks[i]);
        char *host = at ? host_at(line->text + (at - line->lower) + strlen(host_marks[i])) : NULL;

        if (host && !str_eq(host, "connect") && !str_eq(host, "host") && !str_eq(host, "hostname"))
            return host;
        free(host);
    }
    return NULL;
}

static void clue_fill(struct denial_clue *clue, const struct line *line, const char *at,
                      const struct phrase *phrase)
{
    *clue = (struct denial_clue){
        .topic = phrase->topic,
        .hint = hint_of(line, phrase->error),
        .error = phrase->error,
        .needs_proof = phrase->needs_proof,
        .is_rust = strstr(line->lower, "(os error ") != NULL,
    };
    /* /dev/tcp/HOST/PORT is bash's word for a connection, not a file. */
    if (phrase->topic == DENIAL_TOPIC_NETWORK || strstr(line->lower, "/dev/tcp/") ||
        strstr(line->lower, "/dev/udp/")) {
        clue->topic = DENIAL_TOPIC_NETWORK;
        clue->host = host_find(line);
        return;
    }
    paths_around(line->text, (size_t)(at - line->lower), strlen(phrase->text), clue);
}

bool denial_line_read(const char *text, size_t len, struct denial_clue *ret)
{
    struct line line;

    line_init(&line, text, len);
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        const char *at = phrase_find(&line, &phrases[i]);

        if (!at)
            continue;
        clue_fill(ret, &line, at, &phrases[i]);
        return true;
    }
    return false;
}

void denial_line_quoted(const char *text, size_t len, struct strv *paths)
{
    struct line line;

    line_init(&line, text, len);
    paths_quoted(line.text, paths);
}

void denial_clue_done(struct denial_clue *clue)
{
    strv_done(&clue->paths);
    strv_done(&clue->names);
    free(clue->host);
}

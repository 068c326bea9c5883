/* One pass over the lines, cutting the text up where it lies: a line either has exactly the form of RFC 9112 or
 * the head is refused. What other programs forgive (bare line feeds, folded lines, repeated fields) is
 * what makes two of them read one head differently. */
#include "base/http_head.h"

#include "base/str.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

size_t http_head_len(const char *text, size_t len)
{
    const char *end = memmem(text, len, "\r\n\r\n", 4);

    return end ? (size_t)(end - text) + 4 : 0;
}

bool http_head_has_bare_line_feed(const char *text, size_t len)
{
    const char *at = memchr(text, '\n', len);

    return at && (at == text || at[-1] != '\r');
}

bool http_is_token(const char *text)
{
    static const char chars[] = "!#$%&'*+-.^_`|~0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

    return *text && text[strspn(text, chars)] == '\0';
}

/* Bytes above ASCII are in what some clients send, and can be read in one way only. */
static bool is_target(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return false;
    return *text != '\0';
}

/* Of control characters but the tab: field-value of RFC 9110, 5.5, and the phrase of a reply. */
static bool is_clean(const char *text)
{
    for (; *text; text++)
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            return false;
    return true;
}

/* Cuts at the first CRLF from `*at` on; NULL when there is a NUL or a lone CR or LF before it. The
 * text is known to end in one. */
static char *head_next_line(char **at)
{
    char *line = *at;
    size_t len = strcspn(line, "\r\n");

    if (line[len] != '\r' || line[len + 1] != '\n')
        return NULL;
    line[len] = '\0';
    *at = line + len + 2;
    return line;
}

static int head_parse_request(char *line, struct http_head *head, struct err *err)
{
    char *target = strchr(line, ' ');
    char *version = target ? strchr(target + 1, ' ') : NULL;

    if (!version)
        return err_set(err, ERR_INVALID, "the first line is not \"METHOD TARGET HTTP/1.1\"");
    *target++ = '\0';
    *version++ = '\0';
    if (!http_is_token(line) || !is_target(target))
        return err_set(err, ERR_INVALID,
                       "method or target has characters that do not belong there");
    if (!str_eq(version, "HTTP/1.1") && !str_eq(version, "HTTP/1.0"))
        return err_set(err, ERR_INVALID, "the version is neither HTTP/1.1 nor HTTP/1.0");
    head->method = line;
    head->target = target;
    head->minor = version[7] - '0';
    return 0;
}

/* status-line of RFC 9112, 4; the phrase may be missing. */
static int head_parse_status(char *line, struct http_head *head, struct err *err)
{
    const char *at = line + strlen("HTTP/1.x ");

    head->phrase = "";
    if ((!str_starts(line, "HTTP/1.1 ") && !str_starts(line, "HTTP/1.0 ")) ||
        strspn(at, "0123456789") != 3 || (at[3] && at[3] != ' '))
        return err_set(err, ERR_INVALID, "the first line is not \"HTTP/1.1 STATUS ...\"");
    head->status = (at[0] - '0') * 100 + (at[1] - '0') * 10 + (at[2] - '0');
    head->minor = line[7] - '0';
    if (at[3] && !is_clean(at + 4))
        return err_set(err, ERR_INVALID, "the first line has a control character");
    if (at[3])
        head->phrase = at + 4;
    return 0;
}

static char *trim(char *text)
{
    size_t len;

    text += strspn(text, " \t");
    len = strlen(text);
    while (len && strchr(" \t", text[len - 1]))
        text[--len] = '\0';
    return text;
}

/* Fields of which a second one could contradict the first. */
static bool is_single(const char *name)
{
    static const char *const names[] = {"host",
                                        "authorization",
                                        "content-length",
                                        "transfer-encoding",
                                        "sec-websocket-key",
                                        "sec-websocket-version"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static int head_parse_field(char *line, struct http_head *head, struct err *err)
{
    char *colon = strchr(line, ':');
    if (head->field_count == HTTP_FIELDS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d fields", HTTP_FIELDS_MAX);
    if (!colon)
        return err_set(err, ERR_INVALID, "a line is not \"Name: value\"");
    *colon = '\0';
    if (!is_clean(colon + 1) || !http_is_token(line))
        return err_set(err, ERR_INVALID, "a field has characters that do not belong there");
    if (is_single(line) && http_head_field(head, line))
        return err_set(err, ERR_INVALID, "field %.32s is there twice", line);
    head->fields[head->field_count++] = (struct http_field){line, trim(colon + 1)};
    return 0;
}

typedef int head_line_fn(char *line, struct http_head *head, struct err *err);

static int head_parse(char *text, size_t len, head_line_fn *parse_first, struct http_head *ret,
                      struct err *err)
{
    struct http_head head = {.field_count = 0};
    char *at = text;

    if (memchr(text, '\0', len))
        return err_set(err, ERR_INVALID, "there is a NUL");
    text[len - 2] = '\0'; /* where the empty line was */
    for (bool is_first = true; is_first || *at; is_first = false) {
        char *line = head_next_line(&at);

        if (!line)
            return err_set(err, ERR_INVALID, "a line does not end in CR LF");
        if (is_first ? parse_first(line, &head, err) : head_parse_field(line, &head, err))
            return -1;
    }
    *ret = head;
    return 0;
}

int http_head_parse(char *text, size_t len, struct http_head *ret, struct err *err)
{
    return head_parse(text, len, head_parse_request, ret, err);
}

int http_head_parse_reply(char *text, size_t len, struct http_head *ret, struct err *err)
{
    return head_parse(text, len, head_parse_status, ret, err);
}

bool http_is_same_field(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (tolower((unsigned char)(*a == '_' ? '-' : *a)) !=
            tolower((unsigned char)(*b == '_' ? '-' : *b)))
            return false;
    return *a == *b;
}

const char *http_head_field(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->field_count; i++)
        if (strcasecmp(head->fields[i].name, name) == 0)
            return head->fields[i].value;
    return NULL;
}

bool http_head_has_word(const struct http_head *head, const char *name, const char *word)
{
    size_t len = strlen(word);

    for (size_t i = 0; i < head->field_count; i++) {
        const char *list = strcasecmp(head->fields[i].name, name) == 0 ? head->fields[i].value : "";

        for (; *list; list += strcspn(list, ",")) {
            list += strspn(list, " \t,");
            if (strncasecmp(list, word, len) == 0 && (!list[len] || strchr(" \t,", list[len])))
                return true;
        }
    }
    return false;
}

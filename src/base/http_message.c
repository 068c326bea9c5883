/* See http_message.h. A body with chunks is not changed on its way, only followed, byte by byte where it says
 * something and at once where it is data. */
#include "base/http_message.h"

#include "base/buf.h"
#include "base/str.h"

#include <string.h>
#include <strings.h>

enum {
    METHOD_MAX = 32,
    SIZE_DIGITS_MAX = 15, /* hex digits of the size of a chunk */
    EXTENSION_MAX = 256,  /* bytes behind it */
    TRAILERS_MAX = 8192,
};

static bool has_version(const char *line, size_t len)
{
    static const char name[] = "HTTP/";

    for (size_t at = 0; at + sizeof name - 1 <= len; at++)
        if (strncasecmp(line + at, name, sizeof name - 1) == 0)
            return true;
    return false;
}

/* More than what http_request_read() takes looks like it: also what a forgiving server could take for a request,
 * and "PRI * HTTP/2.0". HTTP/0.9 does not, since it has no Host. */
enum http_look http_looks_like(const char *bytes, size_t len)
{
    size_t start = 0, end, method;

    while (start < len && strchr(" \t\r\n", bytes[start]) && bytes[start])
        start++;
    for (method = start; method < len && http_is_token((char[]){bytes[method], '\0'});)
        method++;
    if (method < len &&
        (method == start || !bytes[method] || !strchr(" \t\v\f\r\n", bytes[method])))
        return HTTP_LOOK_NO;
    for (end = start; end < len && bytes[end] != '\r' && bytes[end] != '\n';)
        end++;
    if (has_version(bytes + start, end - start))
        return HTTP_LOOK_YES;
    if (end < len)
        return HTTP_LOOK_NO;
    return len < HTTP_MESSAGE_HEAD_MAX ? HTTP_LOOK_MAYBE : HTTP_LOOK_YES;
}

/* --- where a message ends --- */

/* 1*DIGIT that fits. */
static bool read_length(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    size_t len = strspn(text, "0123456789");

    if (!len || len > 18 || text[len])
        return false;
    for (; *text; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    *ret = value;
    return true;
}

/* As the fields say it; NONE where they say nothing. */
static int read_framing(const struct http_head *head, struct http_body *ret, struct err *err)
{
    const char *length = http_head_field(head, "Content-Length");
    const char *coding = http_head_field(head, "Transfer-Encoding");

    *ret = (struct http_body){.kind = HTTP_BODY_NONE};
    if (coding && (length || head->minor == 0))
        return err_set(err, ERR_INVALID, "the length of the body is said in two ways");
    if (coding && strcasecmp(coding, "chunked") != 0)
        return err_set(err, ERR_INVALID, "a Transfer-Encoding other than chunked");
    if (coding)
        ret->kind = HTTP_BODY_CHUNKED;
    if (!length)
        return 0;
    if (!read_length(length, &ret->left))
        return err_set(err, ERR_INVALID, "Content-Length is not a number");
    ret->kind = ret->left ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
    return 0;
}

static bool stays_open(const struct http_head *head)
{
    return head->minor == 1 ? !http_head_has_word(head, "Connection", "close")
                            : http_head_has_word(head, "Connection", "keep-alive");
}

/* --- requests --- */

/* Those that decide who a request is for, and where it ends. */
static const char *const deciding[] = {"Host", "Content-Length", "Transfer-Encoding", NULL};

/* The next proxy would take those away, and read another request. */
static int check_connection(const struct http_head *head, struct err *err)
{
    for (size_t i = 0; deciding[i]; i++)
        if (http_head_has_word(head, "Connection", deciding[i]))
            return err_set(err, ERR_INVALID, "Connection names %s, which is not for one hop alone",
                           deciding[i]);
    return 0;
}

/* NEL in Latin-1 or UTF-8, and the separators of lines and paragraphs: where old servers in Python begin a line. They are
 * part of other letters, too, so it is what comes behind them that counts. */
static const char *behind_line_end(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;

    if (bytes[0] == 0x85)
        return text + 1;
    return bytes[0] == 0xe2 && bytes[1] == 0x80 && (bytes[2] == 0xa8 || bytes[2] == 0xa9) ? text + 3
                                                                                          : NULL;
}

static const char *find_deciding(const char *line)
{
    for (size_t i = 0; line && deciding[i]; i++) {
        const char *name = line + strspn(line, " \t");
        const size_t len = strlen(deciding[i]);

        if (strncasecmp(name, deciding[i], len) == 0 &&
            name[len + strspn(name + len, " \t")] == ':')
            return deciding[i];
    }
    return NULL;
}

static int check_values(const struct http_head *head, struct err *err)
{
    for (size_t i = 0; i < head->field_count; i++)
        for (const char *text = head->fields[i].value; *text; text++) {
            const char *name = find_deciding(behind_line_end(text));

            if (name)
                return err_set(err, ERR_INVALID, "a field in which servers could read %s", name);
        }
    return 0;
}

static bool says_otherwise(const struct http_head *head)
{
    static const char *const names[] = {"X-HTTP-Method-Override", "X-HTTP-Method",
                                        "X-Method-Override", "X-Original-URL", "X-Rewrite-URL"};

    for (size_t i = 0; i < head->field_count; i++)
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            if (http_is_same_field(head->fields[i].name, names[j]))
                return true;
    return false;
}

static int read_absolute(char *target, struct http_request *ret, struct err *err)
{
    static const size_t scheme = sizeof "http://" - 1;
    char *authority = target + scheme;
    size_t len = strcspn(authority, "/?");

    if (strncasecmp(target, "http://", scheme) != 0)
        return err_set(err, ERR_INVALID,
                       "the target is no http:// URL; what is encrypted goes by CONNECT");
    if (!len || memchr(authority, '@', len) || strchr(authority, '#'))
        return err_set(err, ERR_INVALID, "the target names no host, a user or a fragment");
    /* one to the left, over the slash, so that there is room for a NUL in front of the path */
    memmove(authority - 1, authority, len);
    authority[len - 1] = '\0';
    ret->authority = authority - 1;
    ret->path = authority[len] ? authority + len : "/";
    return 0;
}

static int read_target(struct http_request *ret, struct err *err)
{
    char *target = (char *)(uintptr_t)ret->head.target; /* of the text that is cut up */

    ret->form = str_eq(ret->head.method, "CONNECT")                          ? HTTP_AUTHORITY
                : *target == '/'                                             ? HTTP_ORIGIN
                : str_eq(target, "*") && str_eq(ret->head.method, "OPTIONS") ? HTTP_ASTERISK
                                                                             : HTTP_ABSOLUTE;
    ret->path = target;
    if (ret->form == HTTP_AUTHORITY)
        ret->authority = target;
    return ret->form == HTTP_ABSOLUTE ? read_absolute(target, ret, err) : 0;
}

int http_request_read(char *text, size_t len, struct http_request *ret, struct err *err)
{
    *ret = (struct http_request){.form = HTTP_ORIGIN};
    if (len > HTTP_MESSAGE_HEAD_MAX)
        return err_set(err, ERR_LIMIT, "a head of more than %d bytes", HTTP_MESSAGE_HEAD_MAX);
    if (http_head_parse(text, len, &ret->head, err) || read_target(ret, err) ||
        read_framing(&ret->head, &ret->body, err) || check_connection(&ret->head, err) ||
        check_values(&ret->head, err))
        return -1;
    if (strlen(ret->head.method) > METHOD_MAX)
        return err_set(err, ERR_INVALID, "a method of more than %d bytes", METHOD_MAX);
    ret->host = http_head_field(&ret->head, "Host");
    if (!ret->host && ret->head.minor == 1)
        return err_set(err, ERR_INVALID, "there is no Host");
    if (ret->form == HTTP_AUTHORITY && ret->body.kind != HTTP_BODY_NONE)
        return err_set(err, ERR_INVALID, "CONNECT with a body");
    ret->says_otherwise = says_otherwise(&ret->head);
    ret->stays = stays_open(&ret->head);
    ret->wants_upgrade = http_head_has_word(&ret->head, "Connection", "upgrade") ||
                         http_head_field(&ret->head, "Upgrade") != NULL;
    ret->wants_continue = http_head_has_word(&ret->head, "Expect", "100-continue");
    return 0;
}

/* --- replies --- */

/* RFC 9112, 6.3 */
int http_reply_read(char *text, size_t len, const char *to, struct http_reply_head *ret,
                    struct err *err)
{
    int status;

    *ret = (struct http_reply_head){.stays = false};
    if (len > HTTP_MESSAGE_HEAD_MAX)
        return err_set(err, ERR_LIMIT, "a head of more than %d bytes", HTTP_MESSAGE_HEAD_MAX);
    if (http_head_parse_reply(text, len, &ret->head, err) ||
        read_framing(&ret->head, &ret->body, err))
        return -1;
    status = ret->head.status;
    ret->is_interim = status >= 100 && status < 200 && status != 101;
    if (status < 200 || status == 204 || status == 304 || str_eq(to, "HEAD"))
        ret->body = (struct http_body){.kind = HTTP_BODY_NONE};
    else if (ret->body.kind == HTTP_BODY_NONE && !http_head_field(&ret->head, "Content-Length"))
        ret->body.kind = HTTP_BODY_TO_END;
    ret->stays = stays_open(&ret->head) && ret->body.kind != HTTP_BODY_TO_END;
    return 0;
}

/* --- bodies --- */

enum chunk_state {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER,    /* at the start of a line */
    CHUNK_TRAILER_IN, /* within one */
    CHUNK_TRAILER_LF,
    CHUNK_LAST_LF, /* of the empty line */
    CHUNK_OVER,
};

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool is_text(char c)
{
    return ((unsigned char)c >= ' ' && c != 0x7f) || c == '\t';
}

static bool read_size(struct http_body *body, char c)
{
    int digit = hex_digit(c);

    if (digit >= 0) {
        body->left = body->left * 16 + (uint64_t)digit;
        return ++body->count <= SIZE_DIGITS_MAX;
    }
    body->state = c == '\r' ? CHUNK_SIZE_LF : CHUNK_EXTENSION;
    if (!body->count)
        return false;
    body->count = 0;
    return c == '\r' || c == ';';
}

/* The next state of those in which a byte is one of few; CHUNK_SIZE and CHUNK_DATA have their own. */
static bool read_byte(struct http_body *body, char c)
{
    switch ((enum chunk_state)body->state) {
    case CHUNK_SIZE:
        return read_size(body, c);
    case CHUNK_EXTENSION:
        if (c == '\r')
            body->state = CHUNK_SIZE_LF;
        return c == '\r' || (is_text(c) && ++body->count <= EXTENSION_MAX);
    case CHUNK_SIZE_LF:
        body->state = body->left ? CHUNK_DATA : CHUNK_TRAILER;
        body->count = 0;
        return c == '\n';
    case CHUNK_DATA_CR:
        body->state = CHUNK_DATA_LF;
        return c == '\r';
    case CHUNK_DATA_LF:
        body->state = CHUNK_SIZE;
        return c == '\n';
    case CHUNK_TRAILER:
        body->state = c == '\r' ? CHUNK_LAST_LF : CHUNK_TRAILER_IN;
        return c == '\r' || (!body->has_no_trailers && is_text(c) && ++body->count <= TRAILERS_MAX);
    case CHUNK_TRAILER_IN:
        if (c == '\r')
            body->state = CHUNK_TRAILER_LF;
        return c == '\r' || (is_text(c) && ++body->count <= TRAILERS_MAX);
    case CHUNK_TRAILER_LF:
        body->state = CHUNK_TRAILER;
        return c == '\n';
    case CHUNK_LAST_LF:
        body->state = CHUNK_OVER;
        return c == '\n';
    case CHUNK_DATA:
    case CHUNK_OVER:
        break;
    }
    return false;
}

static size_t read_data(struct http_body *body, size_t len)
{
    size_t used = body->left < len ? (size_t)body->left : len;

    body->left -= used;
    return used;
}

/* Up to the end of the bytes, or of the first data among them if `ret_data` asks for it. */
static int read_chunks(struct http_body *body, const char *bytes, size_t len, size_t *ret_used,
                       size_t *ret_data, struct err *err)
{
    size_t at = 0;
    size_t data = 0;

    while (at < len && body->state != CHUNK_OVER && !(ret_data && data)) {
        if (body->state == CHUNK_DATA) {
            data = read_data(body, len - at);
            at += data;
            if (!body->left)
                body->state = CHUNK_DATA_CR;
        } else if (!read_byte(body, bytes[at++])) {
            return err_set(err, ERR_INVALID, "a body whose chunks are not as they should be");
        }
    }
    *ret_used = at;
    if (ret_data)
        *ret_data = data;
    return 0;
}

static int read_body(struct http_body *body, const char *bytes, size_t len, size_t *ret_used,
                     size_t *ret_data, bool *ret_is_over, struct err *err)
{
    *ret_used = 0;
    *ret_is_over = false;
    switch (body->kind) {
    case HTTP_BODY_NONE:
        *ret_is_over = true;
        return 0;
    case HTTP_BODY_LENGTH:
        *ret_used = read_data(body, len);
        *ret_is_over = !body->left;
        return 0;
    case HTTP_BODY_TO_END:
        *ret_used = len;
        return 0;
    case HTTP_BODY_CHUNKED:
        break;
    }
    if (read_chunks(body, bytes, len, ret_used, ret_data, err))
        return -1;
    *ret_is_over = body->state == CHUNK_OVER;
    return 0;
}

int http_body_read(struct http_body *body, const char *bytes, size_t len, size_t *ret_used,
                   bool *ret_is_over, struct err *err)
{
    return read_body(body, bytes, len, ret_used, NULL, ret_is_over, err);
}

int http_body_take(struct http_body *body, struct http_piece *piece, bool *ret_is_over,
                   struct err *err)
{
    size_t used = 0;
    size_t data = 0;

    if (read_body(body, piece->bytes, piece->len, &used, &data, ret_is_over, err))
        return -1;
    if (body->kind != HTTP_BODY_CHUNKED)
        data = used;
    piece->data = piece->bytes + used - data;
    piece->data_len = data;
    piece->bytes += used;
    piece->len -= used;
    return 0;
}

/* --- what goes on --- */

static bool is_for_next_hop(const struct http_head *head, const char *name)
{
    static const char *const names[] = {"Connection", "Keep-Alive", "TE", "Trailer", "Upgrade"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return strncasecmp(name, "Proxy-", 6) == 0 || http_head_has_word(head, "Connection", name);
}

static bool is_framing(const char *name)
{
    return strcasecmp(name, "Transfer-Encoding") == 0 || strcasecmp(name, "Content-Length") == 0;
}

void http_drop_next_hop(struct http_head *head)
{
    const struct http_head was = *head;

    head->field_count = 0;
    for (size_t i = 0; i < was.field_count; i++)
        if (is_framing(was.fields[i].name) || !is_for_next_hop(&was, was.fields[i].name))
            head->fields[head->field_count++] = was.fields[i];
}

bool http_write_reply(const struct http_reply_head *reply, bool closes, struct buf *ret)
{
    return buf_appendf(ret, "HTTP/1.1 %d %s\r\n", reply->head.status, reply->head.phrase) &&
           http_write_fields(&reply->head, ret) &&
           buf_append_str(ret, closes ? "Connection: close\r\n\r\n" : "\r\n");
}

bool http_write_fields(const struct http_head *head, struct buf *ret)
{
    for (size_t i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];

        if (strcasecmp(field->name, "Host") == 0 ||
            (!is_framing(field->name) && is_for_next_hop(head, field->name)))
            continue;
        if (!buf_appendf(ret, "%s: %s\r\n", field->name, field->value))
            return false;
    }
    return true;
}

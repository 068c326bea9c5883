/* `cordon-http`: one HTTP request for the server, so that what parses answers of strangers (and the
 * libraries for it) is not in the process that holds the sessions of all clients. The request comes
 * as JSON on stdin: the parameters of http/request, with the values of headers complete. The answer
 * goes as JSON lines to stdout:
 *
 *     {"status": 200, "headers": [{"name": "content-type", "value": "text/plain"}, ...]}
 *     {"body": "base64"}         any number; all but the last are whole groups of three bytes
 *     {"done": true}
 *
 * A failure is the last line, {"error": "..."}; what was written before it is the beginning of an
 * answer. The program waits as long as the request takes, or as `timeoutMs` allows.
 *
 * libcurl does everything; here its options are set and its answers are written. Only http and
 * https, also behind redirects. Of several answers (redirects, 1xx) only the last counts, so the
 * headers are written when the body begins or the transfer ends. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

#include <ctype.h>
#include <curl/curl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    REQUEST_MAX = 96 << 20,
    BODY_BLOCK = 48 * 1024,
    REDIRECTS_MAX = 10,
    HEADERS_MAX = 1 << 20,
};

struct fetch {
    CURL *curl;
    struct curl_slist *headers; /* to send */
    char *body;                 /* to send */
    size_t body_len;
    json_t *answer_headers;
    size_t answer_headers_len; /* bytes */
    bool head_written;         /* status and headers were written */
    char block[BODY_BLOCK];
    size_t block_len;
    char problem[CURL_ERROR_SIZE];
};

static void fetch_done(struct fetch *fetch)
{
    curl_easy_cleanup(fetch->curl);
    curl_slist_free_all(fetch->headers);
    json_decref(fetch->answer_headers);
    free(fetch->body);
}

/* --- the answer --- */

/* Takes `line`. */
static void write_line(json_t *line)
{
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(line);
}

static void write_head(struct fetch *fetch)
{
    long status = 0;

    if (fetch->head_written)
        return;
    fetch->head_written = true;
    curl_easy_getinfo(fetch->curl, CURLINFO_RESPONSE_CODE, &status);
    write_line(json_pack("{s:i, s:O}", "status", (int)status, "headers", fetch->answer_headers));
}

static void write_block(struct fetch *fetch)
{
    AUTO_FREE char *text = alloc_zero(base64_encoded_len(fetch->block_len) + 1, 1);

    if (fetch->block_len == 0)
        return;
    base64_encode(fetch->block, fetch->block_len, text);
    fetch->block_len = 0;
    write_line(json_pack("{s:s}", "body", text));
}

/* What has arrived is passed on at once, in whole groups of three bytes. */
static size_t on_body(char *data, size_t size, size_t count, void *user)
{
    struct fetch *fetch = user;
    size_t rest = size * count;

    write_head(fetch);
    while (rest) {
        size_t room = sizeof fetch->block - fetch->block_len;
        size_t part = rest < room ? rest : room;

        memcpy(fetch->block + fetch->block_len, data, part);
        fetch->block_len += part;
        data += part;
        rest -= part;
        if (fetch->block_len == sizeof fetch->block)
            write_block(fetch);
    }
    if (fetch->block_len >= 3) {
        size_t torn = fetch->block_len % 3;
        char kept[3];

        memcpy(kept, fetch->block + fetch->block_len - torn, torn);
        fetch->block_len -= torn;
        write_block(fetch);
        memcpy(fetch->block, kept, torn);
        fetch->block_len = torn;
    }
    return ferror(stdout) ? 0 : size * count; /* the reader is gone */
}

static void add_header(struct fetch *fetch, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    AUTO_FREE char *name = colon ? alloc_strn(line, (size_t)(colon - line)) : NULL;
    AUTO_FREE char *value = NULL;
    json_t *header;

    if (!name)
        return;
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    colon++;
    while (colon < line + len && (*colon == ' ' || *colon == '\t'))
        colon++;
    while (line + len > colon && isspace((unsigned char)line[len - 1]))
        len--;
    value = alloc_strn(colon, (size_t)(line + len - colon));
    header = json_object();
    json_object_set_new(header, "name", json_lossy(name));
    json_object_set_new(header, "value", json_lossy(value));
    json_array_append_new(fetch->answer_headers, header);
}

static size_t on_header(char *data, size_t size, size_t count, void *user)
{
    struct fetch *fetch = user;
    size_t len = size * count;

    fetch->answer_headers_len += len;
    if (fetch->answer_headers_len > HEADERS_MAX)
        return 0;
    if (len > 5 && memcmp(data, "HTTP/", 5) == 0)
        json_array_clear(fetch->answer_headers);
    else if (!fetch->head_written) /* not a trailer */
        add_header(fetch, data, len);
    return len;
}

/* --- the request --- */

static void add_request_header(struct fetch *fetch, const char *name, const char *value)
{
    /* libcurl's spelling of a header without a value is a semicolon */
    AUTO_FREE char *line = *value ? alloc_strf("%s: %s", name, value) : alloc_strf("%s;", name);

    fetch->headers = curl_slist_append(fetch->headers, line);
}

static int set_headers(struct fetch *fetch, const json_t *params, struct err *err)
{
    struct json_at root = json_at_root(params);
    struct json_at list = json_at_field(&root, "headers");
    bool has_type = false;

    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct json_at item = json_at_item(&list, i);
        struct json_at name = json_at_field(&item, "name");
        struct json_at value = json_at_field(&item, "value");
        const char *texts[2] = {NULL, NULL};

        if (json_at_string(&name, &texts[0], err) || json_at_string(&value, &texts[1], err))
            return -1;
        has_type |= strcasecmp(texts[0], "content-type") == 0;
        add_request_header(fetch, texts[0], texts[1]);
    }
    if (!has_type) /* libcurl would invent one */
        fetch->headers = curl_slist_append(fetch->headers, "Content-Type:");
    fetch->headers = curl_slist_append(fetch->headers, "Expect:");
    curl_easy_setopt(fetch->curl, CURLOPT_HTTPHEADER, fetch->headers);
    return 0;
}

static int set_body(struct fetch *fetch, const char *text, struct err *err)
{
    size_t len = strlen(text);

    fetch->body_len = base64_decoded_len(text, len);
    fetch->body = alloc_zero(fetch->body_len + 1, 1);
    if (base64_decode(text, len, fetch->body, err))
        return err_wrap(err, "bodyBase64");
    curl_easy_setopt(fetch->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)fetch->body_len);
    curl_easy_setopt(fetch->curl, CURLOPT_POSTFIELDS, fetch->body);
    return 0;
}

/* By libcurl's own options where it has them, since it then knows what a redirect makes of it. */
static void set_method(struct fetch *fetch, const char *method)
{
    if (str_eq(method, "HEAD"))
        curl_easy_setopt(fetch->curl, CURLOPT_NOBODY, 1L);
    else if (str_eq(method, "POST"))
        curl_easy_setopt(fetch->curl, CURLOPT_POST, 1L);
    else if (fetch->body || !str_eq(method, "GET"))
        curl_easy_setopt(fetch->curl, CURLOPT_CUSTOMREQUEST, method);
    if (str_eq(method, "POST") && !fetch->body)
        curl_easy_setopt(fetch->curl, CURLOPT_POSTFIELDSIZE, 0L);
}

/* A literal loopback address is never meant for a proxy. */
static bool is_loopback(const char *url)
{
    CURLU *parts = curl_url();
    char *host = NULL;
    bool is = false;

    if (parts && !curl_url_set(parts, CURLUPART_URL, url, 0) &&
        !curl_url_get(parts, CURLUPART_HOST, &host, 0))
        is = str_starts(host, "127.") || str_eq(host, "[::1]");
    curl_free(host);
    curl_url_cleanup(parts);
    return is;
}

static void set_limits(struct fetch *fetch, const json_t *params)
{
    const char *redirects = json_string_value(json_object_get(params, "redirectPolicy"));
    json_int_t timeout = json_integer_value(json_object_get(params, "timeoutMs"));

    curl_easy_setopt(fetch->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(fetch->curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(fetch->curl, CURLOPT_FOLLOWLOCATION,
                     redirects && str_eq(redirects, "stop") ? 0L : 1L);
    curl_easy_setopt(fetch->curl, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
    curl_easy_setopt(fetch->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(fetch->curl, CURLOPT_TIMEOUT_MS, (long)timeout); /* 0: none */
}

static int fetch_prepare(struct fetch *fetch, const json_t *params, struct err *err)
{
    const char *url = json_string_value(json_object_get(params, "url"));
    const char *method = json_string_value(json_object_get(params, "method"));
    const char *body = json_string_value(json_object_get(params, "bodyBase64"));

    if (!url || !method)
        return err_set(err, ERR_INVALID, "url and method are needed");
    fetch->curl = curl_easy_init();
    if (!fetch->curl)
        return err_set(err, ERR_BUG, "libcurl does not start");
    curl_easy_setopt(fetch->curl, CURLOPT_ERRORBUFFER, fetch->problem);
    curl_easy_setopt(fetch->curl, CURLOPT_URL, url);
    if (is_loopback(url))
        curl_easy_setopt(fetch->curl, CURLOPT_PROXY, "");
    set_limits(fetch, params);
    if (set_headers(fetch, params, err) || (body && set_body(fetch, body, err)))
        return -1;
    set_method(fetch, method);
    curl_easy_setopt(fetch->curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(fetch->curl, CURLOPT_HEADERDATA, fetch);
    curl_easy_setopt(fetch->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(fetch->curl, CURLOPT_WRITEDATA, fetch);
    return 0;
}

static int fetch(const json_t *params, struct err *err)
{
    AUTO(fetch_done) struct fetch fetch = {.answer_headers = json_array()};
    CURLcode code;

    if (fetch_prepare(&fetch, params, err))
        return -1;
    code = curl_easy_perform(fetch.curl);
    if (code != CURLE_OK)
        return err_set(err, ERR_UNSUPPORTED, "%s",
                       *fetch.problem ? fetch.problem : curl_easy_strerror(code));
    write_head(&fetch);
    write_block(&fetch);
    write_line(json_pack("{s:b}", "done", 1));
    return 0;
}

static int run(struct err *err)
{
    AUTO(buf_done) struct buf text;
    AUTO_JSON json_t *params = NULL;

    buf_init(&text, REQUEST_MAX);
    if (buf_read_fd(&text, STDIN_FILENO, err))
        return -1;
    params = json_parse(text.data ? text.data : "", text.len, err);
    return params ? fetch(params, err) : -1;
}

int main(void)
{
    struct err err;

    signal(SIGPIPE, SIG_IGN);
    if (run(&err) == 0)
        return EXIT_SUCCESS;
    write_line(json_pack("{s:o}", "error", json_lossy(err.msg)));
    return EXIT_FAILURE;
}

/* The first byte says what the rest is: a request, a reply, or a body of chunks, in two pieces. What is taken is
 * for one host, and its length is said in one place. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/http_message.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_head(char *text, size_t len, bool is_reply)
{
    AUTO(buf_done) struct buf fields;
    struct http_request request;
    struct http_reply_head reply;
    struct err err;

    buf_init(&fields, 2 * HTTP_MESSAGE_HEAD_MAX);
    if (is_reply && http_reply_read(text, len, "GET", &reply, &err) == 0)
        check(http_write_fields(&reply.head, &fields));
    if (is_reply || http_request_read(text, len, &request, &err))
        return;
    check(http_write_fields(&request.head, &fields));
    check(request.host || request.head.minor == 0);
    check(!!request.authority == (request.form == HTTP_ABSOLUTE || request.form == HTTP_AUTHORITY));
    check(*request.path != '\0');
}

static void check_body(const char *bytes, size_t len)
{
    struct http_body body = {.kind = HTTP_BODY_CHUNKED};
    size_t first = 0, second = 0;
    bool is_over;
    struct err err;

    if (http_body_read(&body, bytes, len / 2, &first, &is_over, &err) == 0 && !is_over &&
        http_body_read(&body, bytes + first, len - first, &second, &is_over, &err) == 0)
        check(first + second <= len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len = size ? http_head_len((const char *)data + 1, size - 1) : 0;
    AUTO_FREE char *text = NULL;

    if (!size)
        return 0;
    http_looks_like((const char *)data + 1, size - 1);
    if (data[0] % 3 == 2)
        check_body((const char *)data + 1, size - 1);
    if (data[0] % 3 == 2 || !len)
        return 0;
    text = malloc(len); /* exactly, so that reading beyond shows */
    check(text != NULL);
    memcpy(text, data + 1, len);
    check_head(text, len, data[0] % 3 == 1);
    return 0;
}

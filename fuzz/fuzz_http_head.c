/* HTTP heads up to the reply. The first byte says in which situation. Beside memory errors: every
 * head gets a whole reply, an Origin is always refused, and without the token nobody gets further
 * than the pages for anybody. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "rpc/transport/auth.h"
#include "rpc/transport/http.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Lets in the token "t". */
static const struct rpc_auth *token_auth(void)
{
    static struct rpc_auth *auth;
    const struct rpc_auth_options options = {
        .mode = RPC_AUTH_CAPABILITY_TOKEN,
        .token_sha256 = "e3b98a4da31a127d4bde6e43033f66ba274cab0eb7eb1c70ec41402bf6273dd8"};
    struct err err;

    if (!auth)
        check(rpc_auth_new(&options, &auth, &err) == 0);
    return auth;
}

static void check_reply(const struct http_head *head, const struct http_situation *situation)
{
    AUTO(buf_done) struct buf body;
    AUTO(buf_done) struct buf text;
    struct http_reply reply = http_reply_to(head, situation);

    buf_init(&body, 100);
    buf_init(&text, 1 << 20);
    buf_append_str(&body, "metrics");
    if (http_head_field(head, "Origin"))
        check(reply.status == 403);
    if (situation->auth && !http_head_field(head, "Authorization"))
        check(reply.page == HTTP_PAGE_NONE);
    if (situation->is_full)
        check(reply.status != 101);
    http_reply_write(&reply, &body, &text);
    check(http_head_len(text.data, text.len) > 0);
    check(str_starts(text.data, "HTTP/1.1 ") && text.data[9] >= '1' && text.data[9] <= '5');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_situation situation = {0};
    struct http_head head;
    size_t len = size ? http_head_len((const char *)data + 1, size - 1) : 0;
    AUTO_FREE char *text = NULL;
    struct err err;

    if (!len || len > HTTP_HEAD_MAX)
        return 0;
    text = malloc(len); /* exactly, so that reading beyond shows */
    check(text != NULL);
    memcpy(text, data + 1, len);
    situation = (struct http_situation){.auth = data[0] & 1 ? token_auth() : NULL,
                                        .has_metrics = data[0] & 2,
                                        .is_full = data[0] & 4};
    if (http_head_parse(text, len, &head, &err)) {
        check(err.code == ERR_INVALID || err.code == ERR_LIMIT);
        return 0;
    }
    check(head.field_count <= HTTP_FIELDS_MAX && *head.method && *head.target);
    check_reply(&head, &situation);
    return 0;
}

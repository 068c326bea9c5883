/* See calls.h. */
#include "calls.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "files/call.h"

#include <string.h>

int calls_setup(void **state)
{
    struct calls *calls = alloc_zero(1, sizeof *calls);

    calls->dir = support_scratch_new();
    reply_init(&calls->reply, NULL, NULL);
    *state = calls;
    return 0;
}

int calls_teardown(void **state)
{
    struct calls *calls = *state;

    reply_done(&calls->reply);
    support_scratch_remove(calls->dir);
    free(calls);
    return 0;
}

const char *calls_path(const struct calls *calls, const char *name)
{
    static char path[8192];

    assert_true((size_t)snprintf(path, sizeof path, "%s/%s", calls->dir, name) < sizeof path);
    return path;
}

static char *replace_all(const char *text, const char *from, const char *to)
{
    struct buf out;
    const char *found;

    buf_init(&out, 1 << 26);
    for (; (found = strstr(text, from)); text = found + strlen(from)) {
        buf_append(&out, text, (size_t)(found - text));
        buf_append_str(&out, to);
    }
    buf_append_str(&out, text);
    return buf_take(&out);
}

const char *calls_do(struct calls *calls, const char *method, const char *params)
{
    AUTO_FREE char *uri = file_uri_format(calls->dir);
    AUTO_FREE char *text = replace_all(params, "~", uri);
    AUTO_FREE char *answer = NULL;
    AUTO_JSON json_t *value = json_parse(text, strlen(text), &calls->err);
    struct err failure = ERR_UNTOUCHED;

    if (!value)
        fail_msg("%s: %s", params, calls->err.msg);
    reply_done(&calls->reply);
    reply_init(&calls->reply, NULL, NULL);
    if (files_call(&(struct files_request){.method = method, .params = json_at_root(value)},
                   &calls->reply, &failure)) {
        calls->err = failure;
        return NULL;
    }
    assert_untouched(failure);
    answer = replace_all(calls->reply.text.data ? calls->reply.text.data : "", uri, "~");
    buf_clear(&calls->reply.text);
    assert_true(buf_append_str(&calls->reply.text, answer));
    return calls->reply.text.data;
}

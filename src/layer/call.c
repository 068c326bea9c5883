/* See call.h: the request, read. It comes from the server, whose schema has looked at the parameters; the paths in
 * them, the stamps and where a page begins are looked at here for the first time, so each complaint names its
 * place. */
#include "layer/call.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { PATHS_MAX = 65536 }; /* that are named in one request */

static const char *const kinds[] = {
    [LAYER_CALL_OPEN] = "open",       [LAYER_CALL_LIST] = "list",
    [LAYER_CALL_INFO] = "info",       [LAYER_CALL_CHANGES] = "changes",
    [LAYER_CALL_SUMMARY] = "summary", [LAYER_CALL_DIFF] = "diff",
    [LAYER_CALL_READ] = "read",       [LAYER_CALL_ACCEPT] = "accept",
    [LAYER_CALL_DROP] = "drop",       [LAYER_CALL_UNDO] = "undo",
    [LAYER_CALL_REFRESH] = "refresh", [LAYER_CALL_SETTLE] = "settle",
    [LAYER_CALL_SQUASH] = "squash",   [LAYER_CALL_REMOVE] = "remove",
    [LAYER_CALL_CLOSED] = "closed",   NULL};

void layer_call_done(struct layer_call *call)
{
    for (size_t i = 0; i < call->expected_len; i++)
        free(call->expected[i].path);
    free(call->expected);
    strv_done(&call->paths);
    free(call->layer);
    free(call->held_by);
    free(call->holder);
    free(call->after);
    free(call->text);
}

/* --- words --- */

static int read_flag(const struct json_at *object, const char *key, bool *ret, struct err *err)
{
    struct json_at field = json_at_field(object, key);

    return json_at_is_given(&field) ? json_at_bool(&field, ret, err) : 0;
}

static int read_text(const struct json_at *object, const char *key, char **ret, struct err *err)
{
    struct json_at field = json_at_field(object, key);
    const char *text;

    if (!json_at_is_given(&field))
        return 0;
    if (json_at_string(&field, &text, err))
        return -1;
    *ret = alloc_str(text);
    return 0;
}

static int read_number(const struct json_at *object, const char *key, int64_t max, int64_t *ret,
                       struct err *err)
{
    struct json_at field = json_at_field(object, key);

    return json_at_is_given(&field) ? json_at_integer(&field, 0, max, ret, err) : 0;
}

/* --- paths --- */

/* A path or a URI; clean. NULL on failure; the caller frees. */
static char *path_of(const struct json_at *at, const char *text, struct err *err)
{
    AUTO_FREE char *path = NULL;
    struct err why;

    if (text[0] == '/')
        return path_clean("/", text);
    if (!str_starts(text, "file:")) {
        json_at_fail(at, err, "should be an absolute path or a file URI");
        return NULL;
    }
    path = file_uri_parse(text, &why);
    if (!path) {
        json_at_fail(at, err, "%s", why.msg);
        return NULL;
    }
    return path_clean("/", path);
}

static int add_path(const struct json_at *at, struct strv *ret, struct err *err)
{
    const char *text;
    char *path;

    if (json_at_string(at, &text, err))
        return -1;
    path = path_of(at, text, err);
    if (!path)
        return -1;
    strv_push_take(ret, path);
    return 0;
}

/* `path`, or `paths`, or none of them. */
static int read_paths(const struct json_at *params, struct layer_call *call, struct err *err)
{
    struct json_at one = json_at_field(params, "path");
    struct json_at list = json_at_field(params, "paths");
    size_t len = 0;

    if (json_at_is_given(&one))
        return add_path(&one, &call->paths, err);
    if (!json_at_is_given(&list))
        return 0;
    if (json_at_array(&list, &len, err))
        return -1;
    if (len > PATHS_MAX)
        return json_at_fail(&list, err, "at most %d paths may be named", PATHS_MAX);
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(&list, i);

        if (add_path(&item, &call->paths, err))
            return -1;
    }
    return 0;
}

static int read_expected(const struct json_at *params, struct layer_call *call, struct err *err)
{
    struct json_at map = json_at_field(params, "expect");
    const char *key;
    json_t *ignored;

    if (!json_at_is_given(&map))
        return 0;
    if (json_at_object(&map, err))
        return -1;
    if (json_object_size(map.value) > PATHS_MAX)
        return json_at_fail(&map, err, "at most %d paths may be named", PATHS_MAX);
    call->expected = alloc_zero(json_object_size(map.value) + 1, sizeof *call->expected);
    json_object_foreach((json_t *)map.value, key, ignored)
    {
        struct json_at stamp = json_at_field(&map, key);
        struct accept_expected *expected = &call->expected[call->expected_len];
        const char *text;
        struct err why;

        if (json_at_string(&stamp, &text, err))
            return -1;
        if (*text && change_stamp_parse(text, &expected->layer, &why))
            return json_at_fail(&stamp, err, "%s", why.msg);
        expected->path = path_of(&stamp, key, err);
        if (!expected->path)
            return -1;
        call->expected_len++;
    }
    return 0;
}

/* "0:file:///a/b": the root and the path of the last change that was answered. */
static int read_after(const struct json_at *params, struct layer_call *call, struct err *err)
{
    struct json_at at = json_at_field(params, "after");
    const char *text;
    char *end;

    if (!json_at_is_given(&at))
        return 0;
    if (json_at_string(&at, &text, err))
        return -1;
    call->after_root = strtoul(text, &end, 10);
    if (end == text || *end != ':' || !str_starts(end + 1, "file:"))
        return json_at_fail(&at, err, "should be \"next\" of the answer before");
    call->after = path_of(&at, end + 1, err);
    return call->after ? 0 : -1;
}

/* --- what belongs together --- */

static bool needs_choice(const struct layer_call *call)
{
    return call->kind == LAYER_CALL_ACCEPT || call->kind == LAYER_CALL_DROP;
}

/* Nothing is accepted or dropped because somebody forgot to say what. */
static int check_choice(const struct json_at *params, const struct layer_call *call,
                        struct err *err)
{
    bool is_all = json_is_true(json_object_get(params->value, "all"));
    int chosen = (call->paths.len > 0) + is_all + (call->kind == LAYER_CALL_DROP && call->step > 0);

    if (needs_choice(call) && chosen != 1)
        return json_at_fail(params, err, "should have just one of `paths` and `all`%s",
                            call->kind == LAYER_CALL_DROP ? " and `stepId`" : "");
    if (call->text && call->paths.len != 1)
        return json_at_fail(params, err, "`text` goes with just one path");
    if ((call->kind == LAYER_CALL_DIFF || call->kind == LAYER_CALL_READ) && !call->paths.len)
        return json_at_fail(params, err, "should have a `path`");
    return 0;
}

static int read_flags(const struct json_at *params, struct layer_call *call, struct err *err)
{
    bool is_forced = false;
    bool is_marked = false;
    bool is_dry = false;

    if (read_flag(params, "force", &is_forced, err) ||
        read_flag(params, "marked", &is_marked, err) || read_flag(params, "dryRun", &is_dry, err))
        return -1;
    call->flags = (is_forced ? (unsigned)ACCEPT_FORCE : 0u) |
                  (is_marked ? (unsigned)ACCEPT_MARKED : 0u) |
                  (is_dry ? (unsigned)ACCEPT_DRY_RUN : 0u);
    return 0;
}

static int read_contents(const struct json_at *params, struct layer_call *call, struct err *err)
{
    struct json_at text = json_at_field(params, "text");

    if (!json_at_is_given(&text))
        return 0;
    if (!json_is_string(text.value))
        return json_at_fail(&text, err, "should be a string");
    call->text_len = json_string_length(text.value);
    call->text = alloc_zero(call->text_len + 1, 1);
    memcpy(call->text, json_string_value(text.value), call->text_len);
    return 0;
}

static int read_side(const struct json_at *params, struct layer_call *call, struct err *err)
{
    static const char *const sides[] = {[CHANGE_LAYER] = "layer", [CHANGE_REAL] = "real", NULL};
    struct json_at side = json_at_field(params, "side");
    size_t word = CHANGE_LAYER;

    if (json_at_is_given(&side) && json_at_word(&side, sides, &word, err))
        return -1;
    call->side = (enum change_side)word;
    return 0;
}

static int read_numbers(const struct json_at *params, struct layer_call *call, struct err *err)
{
    int64_t step = 0;
    int64_t accept = 0;
    int64_t limit = 0;
    int64_t most = 0;
    int64_t offset = 0;
    int64_t context = 0;

    if (read_number(params, "stepId", INT_MAX, &step, err) ||
        read_number(params, "acceptId", INT_MAX, &accept, err) ||
        read_number(params, "limit", INT_MAX, &limit, err) ||
        read_number(params, "maxBytes", INT_MAX, &most, err) ||
        read_number(params, "offset", INT64_MAX, &offset, err) ||
        read_number(params, "context", INT_MAX, &context, err))
        return -1;
    call->step = (int)step;
    call->accept = (int)accept;
    call->limit = (size_t)(limit ? limit : most);
    call->offset = (uint64_t)offset;
    call->context = (size_t)context;
    return 0;
}

static int read_params(const struct json_at *params, struct layer_call *call, struct err *err)
{
    if (json_at_object(params, err) || read_numbers(params, call, err) ||
        read_paths(params, call, err) || read_expected(params, call, err) ||
        read_after(params, call, err) || read_flags(params, call, err) ||
        read_contents(params, call, err) || read_side(params, call, err) ||
        read_text(params, "holder", &call->holder, err) ||
        read_flag(params, "sizes", &call->counts_bytes, err) ||
        read_flag(params, "countsAll", &call->counts_all, err))
        return -1;
    return check_choice(params, call, err);
}

int layer_call_parse(const json_t *request, struct layer_call *ret, struct err *err)
{
    AUTO(layer_call_done) struct layer_call call = {0};
    AUTO_JSON json_t *none = json_object();
    const json_t *given = json_object_get(request, "params");
    struct json_at root = json_at_root(request);
    struct json_at params = json_at_root(given ? given : none);
    struct json_at kind = json_at_field(&root, "call");
    size_t word;

    if (json_at_object(&root, err) || json_at_word(&kind, kinds, &word, err))
        return -1;
    call.kind = (enum layer_call_kind)word;
    if (read_text(&root, "layer", &call.layer, err) ||
        read_text(&root, "heldBy", &call.held_by, err) ||
        read_flag(&root, "held", &call.is_held, err) ||
        read_flag(&root, "alive", &call.is_alive, err) ||
        read_flag(&root, "space", &call.has_space, err) || read_params(&params, &call, err))
        return -1;
    if (!call.layer && call.kind != LAYER_CALL_LIST)
        return err_set(err, ERR_INVALID, "$.layer: is missing");
    *ret = call;
    call = (struct layer_call){0};
    return 0;
}

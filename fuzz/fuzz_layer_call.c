/* What a server asks cordon-layer. Beside memory errors: what is read has clean absolute paths alone, and what chooses
 * nothing is never an accept or a drop of everything. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/json.h"
#include "base/path.h"
#include "layer/call.h"

#include <stdlib.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_call(const struct layer_call *call, const json_t *request)
{
    const json_t *params = json_object_get(request, "params");
    const bool changes = call->kind == LAYER_CALL_ACCEPT || call->kind == LAYER_CALL_DROP;

    check(call->layer || call->kind == LAYER_CALL_LIST);
    for (size_t i = 0; i < call->paths.len; i++)
        check(path_is_clean(call->paths.items[i]));
    for (size_t i = 0; i < call->expected_len; i++)
        check(path_is_clean(call->expected[i].path));
    check(!call->after || path_is_clean(call->after));
    check(!call->text || call->paths.len == 1);
    check(call->step >= 0 && call->accept >= 0);
    if (changes && !call->paths.len && !call->step)
        check(json_is_true(json_object_get(params, "all")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(layer_call_done) struct layer_call call = {0};
    struct err err = {0};
    AUTO_JSON json_t *request = json_parse_nul((const char *)data, size, &err);

    if (!request)
        return 0;
    if (layer_call_parse(request, &call, &err) == 0)
        check_call(&call, request);
    else
        check(err.msg[0]);
    return 0;
}

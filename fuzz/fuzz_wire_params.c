/* Parameters of the exec server's methods: any JSON value is held against the schema of every
 * method, read as a sandbox object, and its texts as paths. Beside memory errors: a refusal says
 * why and where, a path is clean and survives being written and read again. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "server/method_table.h"
#include "server/rpc_path.h"
#include "server/sandbox_request.h"

#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_schemas(const json_t *value)
{
    for (size_t i = 0; i < methods_len; i++) {
        struct json_at root = json_at_root(value);
        AUTO_FREE char *path = NULL;
        AUTO_FREE void *params = alloc_zero(1, methods[i].params_size + 1);
        struct err err = {0};

        if (!methods[i].params)
            continue;
        if (schema_read(methods[i].params, &root, params, &path, &err) == 0)
            check(!path && !err.code);
        else
            check(path && path[0] == '$' && err.code == ERR_INVALID && *err.msg);
    }
}

static void check_sandbox(const json_t *value)
{
    struct sandbox_request request;
    enum rpc_code code = 0;
    struct err err = {0};

    if (sandbox_request_read(value, "/cwd", &request, &code, &err)) {
        check(code == RPC_INVALID_PARAMS || code == RPC_INVALID_REQUEST);
        check(*err.msg);
        return;
    }
    for (size_t i = 0; i < request.roots.len; i++)
        check(path_is_clean(request.roots.items[i]));
    sandbox_request_done(&request);
}

static void check_path(const char *text)
{
    enum rpc_code code = 0;
    struct err err = {0};
    AUTO_FREE char *path = rpc_path_parse(text, &code, &err);
    AUTO_FREE char *uri = path ? file_uri_format(path) : NULL;
    AUTO_FREE char *again = uri ? rpc_path_parse(uri, &code, &err) : NULL;

    check(path ? path_is_clean(path) && again && str_eq(path, again) : *err.msg != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err;
    AUTO_JSON json_t *value = json_parse((const char *)data, size, &err);

    if (!value)
        return 0;
    check_schemas(value);
    check_sandbox(value);
    if (json_is_string(value))
        check_path(json_string_value(value));
    return 0;
}

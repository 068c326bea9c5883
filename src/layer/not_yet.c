/* Stands in until accept.c is there: weak, so that it does not matter which is linked. Goes with its landing. */
#include "layer/accept.h"

#define NOT_YET __attribute__((weak))

static int fail(struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "accepting is not there yet");
}

NOT_YET int change_accept(struct layer *layer, const struct accept_request *request,
                          struct accept_result *ret, struct err *err)
{
    return fail(err);
}

NOT_YET int change_drop(struct layer *layer, const struct accept_request *request,
                        struct accept_result *ret, struct err *err)
{
    return fail(err);
}

NOT_YET int change_undo(struct layer *layer, int accept, const struct accept_request *request,
                        struct accept_result *ret, struct err *err)
{
    return fail(err);
}

NOT_YET int change_settle(struct layer *layer, size_t *ret_settled, struct err *err)
{
    return fail(err);
}

NOT_YET int layer_accepts(const struct layer *layer, struct accept_info **ret, size_t *ret_len,
                          struct err *err)
{
    *ret = NULL;
    *ret_len = 0;
    return 0;
}

NOT_YET json_t *accept_result_to_json(const struct accept_result *result)
{
    return json_object();
}

NOT_YET void accept_result_done(struct accept_result *result)
{
}

/* The methods layer/...: what a layer would change, and taking it. The server's one thread neither walks nor
 * accepts: each call is carried out by a program of its own (server/layer/layer_call.h). */
#include "server/call.h"
#include "server/methods.gen.h"

static void refuse(struct call *call)
{
    call_fail(call, RPC_INTERNAL, "layers are not there yet");
}

void method_layer_create(struct call *call, const struct layer_create_params *params)
{
    refuse(call);
}

void method_layer_list(struct call *call, const struct layer_list_params *params)
{
    refuse(call);
}

void method_layer_info(struct call *call, const struct layer_info_params *params)
{
    refuse(call);
}

void method_layer_changes(struct call *call, const struct layer_changes_params *params)
{
    refuse(call);
}

void method_layer_diff(struct call *call, const struct layer_diff_params *params)
{
    refuse(call);
}

void method_layer_read(struct call *call, const struct layer_read_params *params)
{
    refuse(call);
}

void method_layer_accept(struct call *call, const struct layer_accept_params *params)
{
    refuse(call);
}

void method_layer_drop(struct call *call, const struct layer_drop_params *params)
{
    refuse(call);
}

void method_layer_undo(struct call *call, const struct layer_undo_params *params)
{
    refuse(call);
}

void method_layer_refresh(struct call *call, const struct layer_refresh_params *params)
{
    refuse(call);
}

void method_layer_close(struct call *call, const struct layer_close_params *params)
{
    refuse(call);
}

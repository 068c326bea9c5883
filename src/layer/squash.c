/* Old steps become one, so that mounts stay short. */
#include "layer/inside.h"

int squash_steps(struct layer *layer, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "layer %s has %zu steps", layer_name(layer),
                   layer->records_len);
}

int squash_recover(struct layer *layer, struct err *err)
{
    return 0;
}

int layer_undo_step(struct layer *layer, int number, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "layer %s", layer_name(layer));
}

/* Layers and differences as JSON: what every face says of them, beside changes (change.h). New references. */
#pragma once

#include "layer/accept.h"
#include "layer/diff.h"
#include "layer/layer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* [{"path", "direct", "near"}] */
json_t *layer_roots_to_json(const struct layer_root *roots, size_t len);

/* {"layerId", "name", "state", "heldBy", "createdMs", "usedMs", "roots", "steps", "accepts", "bytes"} */
json_t *layer_info_to_json(const struct layer_info *info, bool has_bytes);

/* {"layerId", "name", "state", "roots", "steps", "accepts"} */
json_t *layer_to_json(const struct layer *layer, const struct accept_info *accepts,
                      size_t accepts_len);

/* {"change", "unified", "binary", "truncated", "oldSize", "newSize", "oldSha256", "newSha256"} */
json_t *change_diff_to_json(const struct layer *layer, const struct change *change,
                            const struct change_diff *diff);

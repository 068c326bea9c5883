/* See as_json.h. */
#include "layer/as_json.h"

#include "base/json.h"

json_int_t layer_time_to_json(const struct timespec *time)
{
    return (json_int_t)time->tv_sec * 1000 + time->tv_nsec / 1000000;
}

json_t *layer_roots_to_json(const struct layer_root *roots, size_t len)
{
    json_t *list = json_array();

    for (size_t i = 0; i < len; i++)
        json_array_append_new(list,
                              json_pack("{s:o, s:b, s:b}", "path", json_lossy(roots[i].path),
                                        "direct", roots[i].is_direct, "near", roots[i].is_near));
    return list;
}

json_t *layer_info_to_json(const struct layer_info *info, bool has_bytes)
{
    return json_pack("{s:s, s:o, s:s, s:o, s:I, s:I, s:o, s:I, s:I, s:o}", "layerId", info->id,
                     "name", json_lossy(info->name), "state", layer_state_words[info->state],
                     "heldBy", json_lossy(info->held_by), "createdMs",
                     layer_time_to_json(&info->created), "usedMs", layer_time_to_json(&info->used),
                     "roots", layer_roots_to_json(info->roots, info->roots_len), "steps",
                     (json_int_t)info->steps, "accepts", (json_int_t)info->accepts, "bytes",
                     has_bytes ? json_integer((json_int_t)info->bytes) : json_null());
}

static json_t *digest_to_json(const char *digest)
{
    return *digest ? json_string(digest) : json_null();
}

json_t *change_diff_to_json(const struct layer *layer, const struct change *change,
                            const struct change_diff *diff)
{
    return json_pack(
        "{s:o, s:o, s:b, s:b, s:I, s:I, s:o, s:o}", "change", change_to_json(layer, change),
        "unified",
        diff->is_binary ? json_null() : json_lossy(diff->unified.data ? diff->unified.data : ""),
        "binary", diff->is_binary, "truncated", diff->is_truncated, "oldSize",
        (json_int_t)diff->old_size, "newSize", (json_int_t)diff->new_size, "oldSha256",
        digest_to_json(diff->old_sha256), "newSha256", digest_to_json(diff->new_sha256));
}

/* See as_json.h. */
#include "layer/as_json.h"

#include "base/json.h"

#include <sys/wait.h>

static json_int_t milliseconds(const struct timespec *time)
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
                     "heldBy", json_lossy(info->held_by), "createdMs", milliseconds(&info->created),
                     "usedMs", milliseconds(&info->used), "roots",
                     layer_roots_to_json(info->roots, info->roots_len), "steps",
                     (json_int_t)info->steps, "accepts", (json_int_t)info->accepts, "bytes",
                     has_bytes ? json_integer((json_int_t)info->bytes) : json_null());
}

static json_t *number_or_null(bool is_known, json_int_t number)
{
    return is_known ? json_integer(number) : json_null();
}

static json_t *step_to_json(const struct layer_step *step)
{
    const int status = step->wait_status;
    const bool is_known = status != -1;

    return json_pack("{s:i, s:o, s:o, s:I, s:o, s:o, s:o, s:i, s:o}", "stepId", step->number,
                     "argv", json_lossy_list(strv_view(&step->argv)), "cwd", json_lossy(step->cwd),
                     "begunMs", milliseconds(&step->begun), "endedMs",
                     number_or_null(step->ended.tv_sec, milliseconds(&step->ended)), "exitCode",
                     number_or_null(is_known && WIFEXITED(status), WEXITSTATUS(status)), "signal",
                     number_or_null(is_known && WIFSIGNALED(status), WTERMSIG(status)), "commands",
                     (int)step->commands, "squashedFrom",
                     number_or_null(step->squashed_from, step->squashed_from));
}

json_t *layer_to_json(const struct layer *layer, const struct accept_info *accepts,
                      size_t accepts_len)
{
    size_t roots_len, steps_len;
    const struct layer_root *roots = layer_roots(layer, &roots_len);
    const struct layer_step *steps = layer_steps(layer, &steps_len);
    json_t *step_list = json_array();
    json_t *accept_list = json_array();

    for (size_t i = 0; i < steps_len; i++)
        json_array_append_new(step_list, step_to_json(&steps[i]));
    for (size_t i = 0; i < accepts_len; i++)
        json_array_append_new(
            accept_list, json_pack("{s:i, s:I, s:I, s:b}", "acceptId", accepts[i].number, "atMs",
                                   milliseconds(&accepts[i].when), "paths",
                                   (json_int_t)accepts[i].paths, "undone", accepts[i].is_undone));
    return json_pack(
        "{s:s, s:o, s:s, s:o, s:o, s:o}", "layerId", layer_id(layer), "name",
        json_lossy(layer_own_name(layer)), "state", layer_state_words[layer_state(layer)], "roots",
        layer_roots_to_json(roots, roots_len), "steps", step_list, "accepts", accept_list);
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

/* What came of accepting, dropping or undoing, for who asked for it. */
#include "layer/accept.h"

#include "base/json.h"

#include <stdlib.h>

const char *const left_why_words[] = {
    [LEFT_CONFLICT] = "conflict", [LEFT_MARKED] = "marked",   [LEFT_CHANGED] = "changed",
    [LEFT_SPECIAL] = "special",   [LEFT_SUSPECT] = "suspect", [LEFT_BUSY] = "busy",
    [LEFT_FAILED] = "failed",     [LEFT_LATER] = "later",     NULL,
};

void accept_result_done(struct accept_result *result)
{
    strv_done(&result->done);
    for (size_t i = 0; i < result->left_len; i++) {
        free(result->left[i].path);
        free(result->left[i].detail);
    }
    free(result->left);
    strv_done(&result->problems);
    *result = (struct accept_result){0};
}

json_t *accept_result_to_json(const struct accept_result *result)
{
    json_t *object = json_object();
    json_t *left = json_array();

    for (size_t i = 0; i < result->left_len; i++) {
        const struct left *one = &result->left[i];
        json_t *item = json_object();

        json_set_path(item, "path", "pathBase64", one->path);
        json_object_set_new(item, "reason", json_string(left_why_words[one->why]));
        if (one->detail)
            json_object_set_new(item, "detail", json_lossy(one->detail));
        json_array_append_new(left, item);
    }
    if (result->accept)
        json_object_set_new(object, "acceptId", json_integer(result->accept));
    json_set_paths(object, "done", "doneBase64", strv_view(&result->done));
    json_object_set_new(object, "left", left);
    if (result->problems.len)
        json_object_set_new(object, "problems", json_lossy_list(strv_view(&result->problems)));
    return object;
}

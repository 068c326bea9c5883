/* The change layers of cordon.h: a layer of src/layer, opened for an engine whose commands may write into it, and its calls with
 * their results as text. A policy names the layer, and so it is part of workspaces, which go with it: a layer is closed
 * when nothing uses one of those any more. Sessions are counted in here, executions are in the engine's list, and a call of a
 * model has only its number in here: it is over when its session is. */
#include "libcordon/engine.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/path.h"
#include "denial/denial.h"
#include "job/job.h"
#include "job/model_calls.h"
#include "layer/accept.h"
#include "layer/as_json.h"
#include "layer/change.h"
#include "layer/diff.h"
#include "layer/layer.h"
#include "workspace/workspace.h"

#include <stdlib.h>

_Static_assert((int)CORDON_LAYER_FORCE == (int)ACCEPT_FORCE, "the flags are the same");
_Static_assert((int)CORDON_LAYER_MARKED == (int)ACCEPT_MARKED, "the flags are the same");
_Static_assert((int)CORDON_LAYER_DRY_RUN == (int)ACCEPT_DRY_RUN, "the flags are the same");

enum { DIFF_BYTES = 1 << 20, CONTEXT_LINES = 3 };

struct cordon_layer {
    struct cordon_engine *engine;
    struct list link;
    struct layer *layer;
    size_t sessions;   /* that were not freed */
    struct list calls; /* struct call */
    char *text;        /* that was given last; NULL: none */
};

/* A call of a model in the layer. */
struct call {
    struct list link;
    int session;
};

/* --- opening --- */

static void call_free(struct call *call)
{
    list_remove(&call->link);
    free(call);
}

static void free_all(struct cordon_layer *layer)
{
    while (!list_is_empty(&layer->calls))
        call_free(list_first(&layer->calls, struct call, link));
    list_remove(&layer->link);
    layer_close(layer->layer);
    free(layer->text);
    free(layer);
}

void layers_free(struct cordon_engine *engine)
{
    while (!list_is_empty(&engine->layers))
        free_all(list_first(&engine->layers, struct cordon_layer, link));
}

static struct layer *open_one(const struct cordon_layer_options *options, struct err *err)
{
    static const char held_by[] = "a program with libcordon";
    const struct layer_options made = {
        .name = options->name,
        .direct = (char *const *)options->direct,
        .has_git = options->git,
        .max_bytes = options->max_bytes,
        .held_by = held_by,
    };
    struct layer *layer = NULL;

    if (options->name) {
        layer = layer_open(options->name, NULL, LAYER_CHANGE, held_by, err);
        if (!layer && err->code != ERR_NOT_FOUND)
            return NULL;
    }
    return layer ? layer : layer_create(&made, err);
}

int cordon_layer_open(struct cordon_engine *engine, const struct cordon_layer_options *given,
                      struct cordon_layer **ret_layer, struct cordon_error *error)
{
    struct cordon_layer_options options = {0};
    struct cordon_layer *layer;
    struct layer *opened;
    struct err err;

    if ((given && options_read(&options, sizeof options, given, &err)) ||
        !(opened = open_one(&options, &err)))
        return error_give(error, &err);
    layer = alloc_zero(1, sizeof *layer);
    layer->engine = engine;
    layer->layer = opened;
    list_append(&engine->layers, &layer->link);
    *ret_layer = layer;
    return 0;
}

/* Of a session that has ended, what was refused is looked for now: its sandbox goes. */
static bool call_goes_on(const struct cordon_layer *layer, const struct call *call)
{
    AUTO(denials_done) struct denials denials = {0};
    struct err ignored;
    struct job *job = model_calls_find(layer->engine->model_calls, call->session, &ignored);

    if (!job)
        return false;
    if (!job_end(job))
        return true;
    job_denials(job, &denials);
    return false;
}

static void forget_calls(struct cordon_layer *layer)
{
    struct call *call;
    struct call *next;

    list_for_each_safe(call, next, &layer->calls, link)
        if (!call_goes_on(layer, call))
            call_free(call);
}

int cordon_layer_close(struct cordon_layer *layer, struct cordon_error *error)
{
    struct err err;

    if (!layer)
        return 0;
    forget_calls(layer);
    if (layer->sessions || !list_is_empty(&layer->calls) || !layer_is_quiet(layer->layer) ||
        executions_use_layer(layer->engine, layer->layer)) {
        err_set(&err, ERR_BUSY, "commands in layer %s are not done", layer_name(layer->layer));
        return error_give(error, &err);
    }
    workspaces_forget_layer(layer->engine->workspaces, layer->layer);
    free_all(layer);
    return 0;
}

const char *cordon_layer_id(const struct cordon_layer *layer)
{
    return layer_id(layer->layer);
}

/* --- for policies --- */

struct layer *layers_find(const struct cordon_engine *engine, const struct cordon_layer *wanted,
                          struct err *err)
{
    const struct cordon_layer *layer;

    list_for_each(layer, &engine->layers, link)
        if (layer == wanted)
            return layer->layer;
    err_set(err, ERR_INVALID, "policy.layer is none of this engine's");
    return NULL;
}

static struct cordon_layer *layer_of(const struct cordon_engine *engine,
                                     const struct workspace *workspace)
{
    struct cordon_layer *layer;

    list_for_each(layer, &engine->layers, link)
        if (layer->layer == workspace->layer)
            return layer;
    return NULL;
}

size_t *layers_sessions(const struct cordon_engine *engine, const struct workspace *workspace)
{
    struct cordon_layer *layer = layer_of(engine, workspace);

    return layer ? &layer->sessions : NULL;
}

void layers_note_call(const struct cordon_engine *engine, const struct workspace *workspace,
                      int session)
{
    struct cordon_layer *layer = layer_of(engine, workspace);
    struct call *call;

    if (!layer)
        return;
    forget_calls(layer);
    call = alloc_zero(1, sizeof *call);
    call->session = session;
    list_append(&layer->calls, &call->link);
}

/* --- answers --- */

/* Takes `json`. */
static const char *give(char **text, json_t *json)
{
    free(*text);
    *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return *text;
}

static const char *fail(struct cordon_error *error, const struct err *err)
{
    error_give(error, err);
    return NULL;
}

/* Clean ones, appended. */
static int read_paths(const char *const *paths, struct strv *ret, struct err *err)
{
    for (; paths && *paths; paths++) {
        if (**paths != '/')
            return err_set(err, ERR_INVALID, "paths: \"%s\" should begin with \"/\"", *paths);
        strv_push_take(ret, path_clean("/", *paths));
    }
    return 0;
}

/* What cannot be read, or has changed meanwhile, says so in its place. */
static json_t *diff_one(const struct layer *layer, const struct change *change, size_t max_bytes)
{
    AUTO(change_diff_done) struct change_diff diff = {0};
    struct err err;

    if (change_diff(layer, change, CONTEXT_LINES, max_bytes ? max_bytes : DIFF_BYTES, &diff,
                    &err) == 0)
        return change_diff_to_json(layer, change, &diff);
    return json_pack("{s:o, s:o}", "change", change_to_json(layer, change), "problem",
                     json_lossy(err.msg));
}

/* Each with what it changes, or with counts of all. NULL on failure. */
static json_t *list_changes(const struct layer *layer, const struct cordon_layer_query *given,
                            bool with_diffs, struct err *err)
{
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    AUTO(strv_done) struct strv paths = {0};
    struct cordon_layer_query asked = {0};
    struct change_query query;
    json_t *list;

    if ((given && options_read(&asked, sizeof asked, given, err)) ||
        read_paths(asked.paths, &paths, err))
        return NULL;
    query =
        (struct change_query){.step = asked.step, .paths = asked.paths ? strv_view(&paths) : NULL};
    if (change_list(layer, &query, &changes, &problems, err))
        return NULL;
    list = json_array();
    for (size_t i = 0; i < changes.len; i++)
        json_array_append_new(list, with_diffs ? diff_one(layer, &changes.items[i], asked.max_bytes)
                                               : change_to_json(layer, &changes.items[i]));
    return json_pack("{s:o, s:o*, s:o}", with_diffs ? "diffs" : "changes", list, "counts",
                     with_diffs ? NULL : change_counts_to_json(&changes.counts), "problems",
                     json_lossy_list(strv_view(&problems)));
}

const char *cordon_layer_changes(struct cordon_layer *layer, const struct cordon_layer_query *given,
                                 struct cordon_error *error)
{
    struct err err;
    json_t *json = list_changes(layer->layer, given, false, &err);

    return json ? give(&layer->text, json) : fail(error, &err);
}

const char *cordon_layer_diff(struct cordon_layer *layer, const struct cordon_layer_query *given,
                              struct cordon_error *error)
{
    struct err err;
    json_t *json = list_changes(layer->layer, given, true, &err);

    return json ? give(&layer->text, json) : fail(error, &err);
}

/* --- accepting, and the like --- */

static void expected_free(struct accept_expected *expected, size_t len)
{
    for (size_t i = 0; i < len; i++)
        free(expected[i].path);
    free(expected);
}

/* `*ret` by expected_free(), in any case. */
static int read_expected(const char *text, struct accept_expected **ret, size_t *ret_len,
                         struct err *err)
{
    json_error_t why;
    AUTO_JSON json_t *json = text ? json_loads(text, 0, &why) : NULL;
    const char *path;
    json_t *stamp;
    size_t cap = 0;

    if (text && !json_is_object(json))
        return err_set(err, ERR_INVALID, "expected should be an object of JSON%s%s",
                       json ? "" : ": ", json ? "" : why.text);
    json_object_foreach(json, path, stamp)
    {
        *ret = alloc_grow(*ret, *ret_len, &cap, sizeof **ret);
        (*ret)[*ret_len] = (struct accept_expected){.path = path_clean("/", path)};
        (*ret_len)++;
        if (!json_is_string(stamp) ||
            change_stamp_parse(json_string_value(stamp), &(*ret)[*ret_len - 1].layer, err))
            return err_set(err, ERR_INVALID, "expected: that of %s is no stamp", path);
    }
    return 0;
}

static int apply(struct layer *layer, const struct cordon_layer_request *request,
                 const struct accept_request *accept, struct accept_result *ret, struct err *err)
{
    switch (request->action) {
    case CORDON_LAYER_ACCEPT:
        return change_accept(layer, accept, ret, err);
    case CORDON_LAYER_DROP:
        return change_drop(layer, accept, ret, err);
    case CORDON_LAYER_UNDO:
        return change_undo(layer, request->number, accept, ret, err);
    case CORDON_LAYER_UNDO_STEP:
        return layer_undo_step(layer, request->number, err);
    default:
        return err_set(err, ERR_INVALID, "action is %d, which is no enum cordon_layer_action",
                       request->action);
    }
}

static int check_flags(const struct cordon_layer_request *request, struct err *err)
{
    const unsigned all = CORDON_LAYER_FORCE | CORDON_LAYER_MARKED | CORDON_LAYER_DRY_RUN;

    if (request->flags & ~all)
        return err_set(err, ERR_INVALID, "flags is %u, which has more than enum cordon_layer_flag",
                       request->flags);
    if (request->action == CORDON_LAYER_UNDO_STEP && (request->flags || request->paths))
        return err_set(err, ERR_INVALID, "a step is undone as a whole: it takes no paths or flags");
    return 0;
}

const char *cordon_layer_apply(struct cordon_layer *layer, const struct cordon_layer_request *given,
                               struct cordon_error *error)
{
    AUTO(accept_result_done) struct accept_result result = {0};
    AUTO(strv_done) struct strv paths = {0};
    struct accept_expected *expected = NULL;
    struct cordon_layer_request request;
    struct accept_request accept = {.paths = NULL};
    struct err err;
    int status;

    if (options_read(&request, sizeof request, given, &err) || check_flags(&request, &err) ||
        read_paths(request.paths, &paths, &err))
        return fail(error, &err);
    status = read_expected(request.expected, &expected, &accept.expected_len, &err);
    accept.paths = request.paths ? strv_view(&paths) : NULL;
    accept.flags = request.flags;
    accept.expected = expected;
    if (status == 0)
        status = apply(layer->layer, &request, &accept, &result, &err);
    expected_free(expected, accept.expected_len);
    return status ? fail(error, &err) : give(&layer->text, accept_result_to_json(&result));
}

const char *cordon_layers(struct cordon_engine *engine, struct cordon_error *error)
{
    AUTO(layer_infos_done) struct layer_infos infos = {0};
    AUTO(strv_done) struct strv problems = {0};
    json_t *list;
    struct err err;

    if (layers_list(true, &infos, &problems, &err))
        return fail(error, &err);
    list = json_array();
    for (size_t i = 0; i < infos.len; i++)
        json_array_append_new(list, layer_info_to_json(&infos.items[i], true));
    return give(&engine->layers_text, json_pack("{s:o, s:o}", "layers", list, "problems",
                                                json_lossy_list(strv_view(&problems))));
}

/* See call.h: what is asked for, done. Looking takes no lock, and may be done while commands write. What changes something
 * works with the lock of the server, if that has the layer, else with one of its own. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "layer/as_json.h"
#include "layer/call.h"
#include "layer/diff.h"
#include "sandbox/linux/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_MAX = 1 << 20,
    PAGE_MAX = 10000,
    PATHS_TOLD = 4096, /* of a summary */
};

json_t *layer_call_failure(const struct err *err, const char *reason)
{
    json_t *error =
        json_pack("{s:s, s:o}", "code", err_code_name(err->code), "message", json_lossy(err->msg));

    if (reason)
        json_object_set_new(error, "reason", json_string(reason));
    return json_pack("{s:o}", "error", error);
}

/* --- opening --- */

/* What a call works on. */
struct work {
    const struct layer_call *call;
    struct layer_call_fds *fds;
    struct layer *layer;
    const char *reason; /* of a failure, for programs; NULL */
};

static void work_done(struct work *work)
{
    layer_close(work->layer);
}

static int work_open(struct work *work, enum layer_use use, struct err *err)
{
    const struct layer_call *call = work->call;

    if (call->is_held && use == LAYER_CHANGE)
        work->layer = layer_adopt(call->layer,
                                  &(struct layer_adoption){
                                      .lock = TAKE_FD(work->fds->lock),
                                      .users = TAKE_FD(work->fds->users),
                                      .mounts = TAKE_FD(work->fds->mounts),
                                      .is_alive = call->is_alive,
                                  },
                                  err);
    else
        work->layer = layer_open(call->layer, NULL, use, call->held_by, err);
    if (!work->layer && err->code == ERR_NOT_FOUND)
        work->reason = "no-layer";
    return work->layer ? 0 : -1;
}

/* --- lists --- */

static bool lies_over(const struct layer_info *info, const struct strv *paths)
{
    for (size_t i = 0; i < info->roots_len && paths->len; i++)
        if (path_is_within(paths->items[0], info->roots[i].path))
            return true;
    return !paths->len;
}

static json_t *info_to_json(const struct layer_info *info, const struct layer_call *call)
{
    const bool is_here = call->holder && info->held_by && str_eq(call->holder, info->held_by);
    json_t *json = layer_info_to_json(info, call->counts_bytes);

    json_object_set_new(json, "here", json_boolean(is_here));
    return json;
}

static json_t *do_list(struct work *work, struct err *err)
{
    AUTO(layer_infos_done) struct layer_infos infos = {0};
    AUTO(strv_done) struct strv problems = {0};
    json_t *list;

    if (layers_list(work->call->counts_bytes, &infos, &problems, err))
        return NULL;
    list = json_array();
    for (size_t i = 0; i < infos.len; i++)
        if (lies_over(&infos.items[i], &work->call->paths))
            json_array_append_new(list, info_to_json(&infos.items[i], work->call));
    return json_pack("{s:o, s:o}", "layers", list, "problems",
                     json_lossy_list(strv_view(&problems)));
}

static const char *state_of(const struct layer *layer)
{
    return layer_state_words[layer_state(layer)];
}

static json_t *do_info(struct work *work, struct err *err)
{
    AUTO_FREE struct accept_info *accepts = NULL;
    size_t len = 0;

    if (work_open(work, LAYER_READ, err) || layer_accepts(work->layer, &accepts, &len, err))
        return NULL;
    return layer_to_json(work->layer, accepts, len);
}

/* --- changes --- */

static char *const *paths_of(const struct layer_call *call)
{
    return call->paths.len ? strv_view(&call->paths) : NULL;
}

/* Behind the one that was answered last; it may be gone by now. */
static bool is_after(const struct layer_call *call, const struct change *change, const char *path)
{
    if (!call->after)
        return true;
    if (change->root != call->after_root)
        return change->root > call->after_root;
    return path_compare(path, call->after) > 0;
}

static json_t *next_of(const struct change *change, const char *path)
{
    AUTO_FREE char *uri = file_uri_format(path);
    AUTO_FREE char *text = alloc_strf("%zu:%s", change->root, uri);

    return json_string(text);
}

/* What was a folder and is a file is two changes of one path, which are on one page: the next one begins behind the path. */
static bool is_same_path(const struct change *one, const struct change *other)
{
    return one->root == other->root && str_eq(one->path, other->path);
}

static json_t *page_of(const struct work *work, const struct changes *changes, json_t **ret_next)
{
    const size_t asked = work->call->limit;
    const size_t limit = asked && asked < PAGE_MAX ? asked : PAGE_MAX;
    json_t *page = json_array();
    AUTO_FREE char *last = NULL;
    const struct change *before = NULL;

    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];
        AUTO_FREE char *path = change_path(work->layer, change);

        if (!is_after(work->call, change, path))
            continue;
        if (json_array_size(page) >= limit && !is_same_path(before, change)) {
            *ret_next = next_of(before, last);
            break;
        }
        json_array_append_new(page, change_to_json(work->layer, change));
        free(last);
        last = TAKE_PTR(path);
        before = change;
    }
    return page;
}

static json_t *do_changes(struct work *work, struct err *err)
{
    const struct change_query query = {.step = work->call->step, .paths = paths_of(work->call)};
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    json_t *next = NULL;
    json_t *page;

    if (work_open(work, LAYER_READ, err) ||
        change_list(work->layer, &query, &changes, &problems, err))
        return NULL;
    page = page_of(work, &changes, &next);
    return json_pack("{s:s, s:s, s:o, s:o, s:o*, s:o}", "layerId", layer_id(work->layer), "state",
                     state_of(work->layer), "changes", page, "counts",
                     change_counts_to_json(&changes.counts), "next", next, "problems",
                     json_lossy_list(strv_view(&problems)));
}

static json_t *counts_of_step(const struct work *work, struct err *err)
{
    const struct change_query query = {.step = work->call->step,
                                       .flags = CHANGES_WITHOUT_CONFLICTS};
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};

    if (!query.step)
        return json_null();
    if (change_list(work->layer, &query, &changes, &problems, err) && err->code != ERR_NOT_FOUND)
        return NULL;
    return change_counts_to_json(
        &changes.counts); /* of a step that wrote nothing, nothing is kept */
}

/* As URIs: they come back into paths whatever bytes they are of. */
static json_t *uris_of(const struct work *work, const struct changes *changes)
{
    json_t *list = json_array();

    for (size_t i = 0; i < changes->len && i < PATHS_TOLD; i++) {
        AUTO_FREE char *path = change_path(work->layer, &changes->items[i]);
        AUTO_FREE char *uri = file_uri_format(path);

        json_array_append_new(list, json_string(uri));
    }
    return list;
}

static json_t *do_summary(struct work *work, struct err *err)
{
    const struct change_query query = {0};
    uint64_t bytes;
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    AUTO_JSON json_t *step = NULL;
    AUTO_JSON json_t *all = NULL;
    AUTO_JSON json_t *paths = NULL;

    if (work_open(work, LAYER_READ, err))
        return NULL;
    step = counts_of_step(work, err);
    if (!step || layer_count_bytes(work->layer, &bytes, err))
        return NULL;
    if (work->call->counts_all) {
        if (change_list(work->layer, &query, &changes, &problems, err))
            return NULL;
        all = change_counts_to_json(&changes.counts);
        paths = uris_of(work, &changes);
    }
    return json_pack("{s:O, s:O*, s:O*, s:I}", "step", step, "all", all, "paths", paths, "bytes",
                     (json_int_t)bytes);
}

/* --- one of them --- */

/* NULL: the layer does not change it; borrowed from the list. */
static const struct change *find_change(const struct work *work, struct changes *changes,
                                        struct err *err)
{
    const char *wanted = work->call->paths.items[0];
    const struct change_query query = {.step = work->call->step,
                                       .paths = strv_view(&work->call->paths)};
    AUTO(strv_done) struct strv problems = {0};

    if (change_list(work->layer, &query, changes, &problems, err))
        return NULL;
    for (size_t i = 0; i < changes->len; i++) {
        AUTO_FREE char *path = change_path(work->layer, &changes->items[i]);

        if (str_eq(path, wanted))
            return &changes->items[i];
    }
    err_set(err, ERR_NOT_FOUND, "the layer does not change %s", wanted);
    return NULL;
}

static json_t *do_diff(struct work *work, struct err *err)
{
    AUTO(changes_done) struct changes changes = {0};
    AUTO(change_diff_done) struct change_diff diff = {0};
    const struct change *change;

    if (work_open(work, LAYER_READ, err))
        return NULL;
    change = find_change(work, &changes, err);
    if (!change ||
        change_diff(work->layer, change, work->call->context, work->call->limit, &diff, err))
        return NULL;
    return change_diff_to_json(work->layer, change, &diff);
}

/* Of a file from `offset`, of a link its text. Bytes, or -1. */
static ssize_t read_part(int fd, const struct stat *st, uint64_t offset, char *block, size_t size,
                         struct err *err)
{
    char text[PATH_MAX];
    ssize_t len;

    if (S_ISLNK(st->st_mode)) {
        len = readlinkat(fd, "", text, sizeof text);
        if (len < 0)
            return err_sys(err, "reading the link");
        if ((uint64_t)len <= offset)
            return 0;
        len -= (ssize_t)offset;
        len = (size_t)len > size ? (ssize_t)size : len;
        memcpy(block, text + offset, (size_t)len);
        return len;
    }
    if (!S_ISREG(st->st_mode))
        return err_set(err, ERR_INVALID, "it is neither a file nor a link");
    do
        len = pread(fd, block, size, (off_t)offset);
    while (len < 0 && errno == EINTR);
    return len < 0 ? err_sys(err, "reading") : len;
}

static json_t *do_read(struct work *work, struct err *err)
{
    const size_t asked = work->call->limit;
    const size_t size = asked && asked < READ_MAX ? asked : READ_MAX;
    AUTO(changes_done) struct changes changes = {0};
    AUTO_FREE char *block = alloc_zero(size, 1);
    AUTO_FREE char *chunk = NULL;
    AUTO_FREE char *text = NULL;
    AUTO_CLOSE int fd = -1;
    const struct change *change;
    struct change_stamp stamp;
    struct stat st;
    ssize_t len;

    if (work_open(work, LAYER_READ, err))
        return NULL;
    change = find_change(work, &changes, err);
    fd = change ? change_open(work->layer, change, work->call->side, err) : -1;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st)) {
        err_sys(err, "looking at %s", work->call->paths.items[0]);
        return NULL;
    }
    len = read_part(fd, &st, work->call->offset, block, size, err);
    if (len < 0) {
        err_wrap(err, "%s", work->call->paths.items[0]);
        return NULL;
    }
    chunk = alloc_zero(base64_encoded_len((size_t)len) + 1, 1);
    base64_encode(block, (size_t)len, chunk);
    change_stamp_of(&st, &stamp);
    text = change_stamp_format(&stamp);
    return json_pack("{s:s, s:b, s:I, s:s}", "chunk", chunk, "eof",
                     work->call->offset + (uint64_t)len >= (uint64_t)st.st_size, "size",
                     (json_int_t)st.st_size, "stamp", text);
}

/* --- what changes something --- */

static struct accept_request request_of(const struct layer_call *call, struct accept_text *text)
{
    *text = (struct accept_text){
        .path = call->paths.len ? call->paths.items[0] : NULL,
        .text = call->text,
        .len = call->text_len,
    };
    return (struct accept_request){
        .paths = paths_of(call),
        .flags = call->flags,
        .expected = call->expected,
        .expected_len = call->expected_len,
        .text = call->text ? text : NULL,
    };
}

static int drop_step(const struct work *work, struct err *err)
{
    if (work->call->flags & ACCEPT_DRY_RUN)
        return err_set(err, ERR_INVALID, "$.dryRun: does not go with `stepId`");
    return layer_undo_step(work->layer, work->call->step, err);
}

static json_t *do_change(struct work *work, struct err *err)
{
    AUTO(accept_result_done) struct accept_result result = {0};
    struct accept_text text;
    const struct accept_request request = request_of(work->call, &text);
    const struct layer_call *call = work->call;
    int status;

    if (work_open(work, LAYER_CHANGE, err))
        return NULL;
    if (call->kind == LAYER_CALL_ACCEPT)
        status = change_accept(work->layer, &request, &result, err);
    else if (call->kind == LAYER_CALL_UNDO)
        status = change_undo(work->layer, call->accept, &request, &result, err);
    else if (call->step)
        status = drop_step(work, err);
    else
        status = change_drop(work->layer, &request, &result, err);
    return status ? NULL : accept_result_to_json(&result);
}

static json_t *do_settle(struct work *work, struct err *err)
{
    size_t settled = 0;

    if (work_open(work, LAYER_CHANGE, err) || change_settle(work->layer, &settled, err))
        return NULL;
    return json_pack("{s:I}", "settled", (json_int_t)settled);
}

static json_t *do_squash(struct work *work, struct err *err)
{
    return work_open(work, LAYER_CHANGE, err) || layer_squash(work->layer, err) ? NULL
                                                                                : json_object();
}

static json_t *do_remove(struct work *work, struct err *err)
{
    if (work_open(work, LAYER_CHANGE, err) || layer_remove(TAKE_PTR(work->layer), err))
        return NULL;
    return json_pack("{s:b, s:b}", "closed", 1, "removed", 1);
}

/* The namespaces are those of the server's commands. */
static json_t *do_refresh(struct work *work, struct err *err)
{
    const struct overlay_namespace space = {.users = work->fds->users, .mounts = work->fds->mounts};
    AUTO_FREE const char **paths = NULL;
    const struct layer_root *roots;
    size_t len = 0;
    size_t count = 0;

    if (work_open(work, LAYER_READ, err))
        return NULL;
    if (!work->call->has_space)
        return json_pack("{s:b}", "alive", 0);
    roots = layer_roots(work->layer, &len);
    paths = alloc_zero(len + 1, sizeof *paths);
    for (size_t i = 0; i < len; i++)
        if (!roots[i].is_direct)
            paths[count++] = roots[i].path;
    if (overlay_refresh(&space, paths, false, err))
        return NULL;
    return json_pack("{s:b}", "alive", 1);
}

/* The layer stays open, and its lock held, until the server has that. */
static json_t *do_open(struct work *work, struct err *err)
{
    static const struct layer *held;
    size_t len = 0;
    uint64_t bytes;
    const struct layer_root *roots;
    json_t *json;

    if (work_open(work, LAYER_CHANGE, err) || layer_count_bytes(work->layer, &bytes, err))
        return NULL;
    work->fds->lock = fcntl(layer_lock(work->layer), F_DUPFD_CLOEXEC, 3);
    if (work->fds->lock < 0) {
        err_sys(err, "passing the lock of the layer on");
        return NULL;
    }
    roots = layer_roots(work->layer, &len);
    json = json_pack("{s:s, s:o, s:o, s:I}", "layerId", layer_id(work->layer), "name",
                     json_lossy(layer_own_name(work->layer)), "roots",
                     layer_roots_to_json(roots, len), "bytes", (json_int_t)bytes);
    held = TAKE_PTR(work->layer);
    (void)held;
    return json;
}

static json_t *do_closed(struct work *work, struct err *err)
{
    return work_open(work, LAYER_READ, err) ? NULL
                                            : json_pack("{s:b, s:b}", "closed", 1, "removed", 0);
}

json_t *layer_call_perform(const struct layer_call *call, struct layer_call_fds *fds)
{
    static json_t *(*const by_kind[])(struct work * work, struct err * err) = {
        [LAYER_CALL_OPEN] = do_open,       [LAYER_CALL_LIST] = do_list,
        [LAYER_CALL_INFO] = do_info,       [LAYER_CALL_CHANGES] = do_changes,
        [LAYER_CALL_SUMMARY] = do_summary, [LAYER_CALL_DIFF] = do_diff,
        [LAYER_CALL_READ] = do_read,       [LAYER_CALL_ACCEPT] = do_change,
        [LAYER_CALL_DROP] = do_change,     [LAYER_CALL_UNDO] = do_change,
        [LAYER_CALL_REFRESH] = do_refresh, [LAYER_CALL_SETTLE] = do_settle,
        [LAYER_CALL_SQUASH] = do_squash,   [LAYER_CALL_REMOVE] = do_remove,
        [LAYER_CALL_CLOSED] = do_closed,
    };
    AUTO(work_done) struct work work = {.call = call, .fds = fds};
    struct err err;
    json_t *result = by_kind[call->kind](&work, &err);

    return result ? json_pack("{s:o}", "result", result) : layer_call_failure(&err, work.reason);
}

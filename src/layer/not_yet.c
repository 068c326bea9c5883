/* Stands in until layer.c is there: there is no layer, and so none is ever asked. Goes with its landing. */
#include "layer/layer.h"

void layers_folders(struct strv *ret)
{
    (void)ret;
}

int layers_list(bool counts_bytes, struct layer_infos *ret, struct strv *ret_problems,
                struct err *err)
{
    (void)counts_bytes;
    (void)ret;
    (void)ret_problems;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return -1;
}

void layer_infos_done(struct layer_infos *infos)
{
    (void)infos;
}

int layers_prune(uint64_t age_s, bool with_changes, struct strv *ret_gone, struct err *err)
{
    (void)age_s;
    (void)with_changes;
    (void)ret_gone;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return -1;
}

struct layer *layer_open(const char *name, const char *cwd, enum layer_use use, const char *held_by,
                         struct err *err)
{
    (void)name;
    (void)cwd;
    (void)use;
    (void)held_by;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return NULL;
}

struct layer *layer_create(const struct layer_options *options, struct err *err)
{
    (void)options;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return NULL;
}

void layer_close(struct layer *layer)
{
    (void)layer;
}

int layer_remove(struct layer *layer, struct err *err)
{
    (void)layer;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return -1;
}

struct layer *layer_adopt(const char *id, const struct layer_adoption *adoption, struct err *err)
{
    (void)id;
    (void)adoption;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return NULL;
}

int layer_lock(const struct layer *layer)
{
    (void)layer;
    return -1;
}

int layer_reload(struct layer *layer, struct err *err)
{
    (void)layer;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return -1;
}

const char *layer_id(const struct layer *layer)
{
    (void)layer;
    return "";
}

const char *layer_name(const struct layer *layer)
{
    (void)layer;
    return "";
}

const char *layer_folder(const struct layer *layer)
{
    (void)layer;
    return "";
}

int layer_fd(const struct layer *layer)
{
    (void)layer;
    return -1;
}

bool layer_has_git(const struct layer *layer)
{
    (void)layer;
    return false;
}

enum layer_state layer_state(const struct layer *layer)
{
    (void)layer;
    return LAYER_QUIET;
}

const struct layer_root *layer_roots(const struct layer *layer, size_t *ret_len)
{
    (void)layer;
    (void)ret_len;
    return NULL;
}

const struct layer_step *layer_steps(const struct layer *layer, size_t *ret_len)
{
    (void)layer;
    (void)ret_len;
    return NULL;
}

int layer_cover(struct layer *layer, struct access_map *map, struct err *err)
{
    (void)layer;
    (void)map;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return -1;
}

void layer_cover_none(const struct layer *layer, struct access_map *map)
{
    (void)layer;
    (void)map;
}

struct sandbox_view *layer_view(struct layer *layer)
{
    (void)layer;
    return NULL;
}

bool layer_is_quiet(const struct layer *layer)
{
    (void)layer;
    return false;
}

void layer_on_quiet(struct layer *layer, void (*on_quiet)(void *data, struct layer *layer),
                    void *data)
{
    (void)layer;
    (void)on_quiet;
    (void)data;
}

int layer_refresh(struct layer *layer, struct err *err)
{
    (void)layer;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return -1;
}

int layer_undo_step(struct layer *layer, int number, struct err *err)
{
    (void)layer;
    (void)number;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return -1;
}

int layer_open_root(const struct layer *layer, size_t root, struct err *err)
{
    (void)layer;
    (void)root;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return -1;
}

int layer_open_up(const struct layer *layer, size_t root, int step, struct err *err)
{
    (void)layer;
    (void)root;
    (void)step;
    err_set(err, ERR_UNSUPPORTED, "there are no change layers yet");
    return -1;
}

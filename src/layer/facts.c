/* What is known of an open layer, and the folders that it is made of. */
#include "layer/inside.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

const char *const layer_state_words[] = {"quiet", "alive", "orphaned", "suspect", NULL};

const char *layer_id(const struct layer *layer)
{
    return layer->record.id;
}

const char *layer_name(const struct layer *layer)
{
    return layer->record.name ? layer->record.name : layer->record.id;
}

const char *layer_own_name(const struct layer *layer)
{
    return layer->record.name;
}

const char *layer_folder(const struct layer *layer)
{
    return layer->folder;
}

int layer_fd(const struct layer *layer)
{
    return layer->fd;
}

int layer_lock(const struct layer *layer)
{
    return layer->lock;
}

bool layer_is_in_memory(const struct layer *layer)
{
    return str_starts(layer->folder, "/dev/shm/");
}

bool layer_has_limit(const struct layer *layer)
{
    return layer->record.max_bytes;
}

int layer_count_bytes(const struct layer *layer, uint64_t *ret, struct err *err)
{
    if (layer_has_limit(layer))
        return store_count_bytes(layer, ret, err);
    *ret = 0;
    return 0;
}

void layer_tell_bytes(struct layer *layer, uint64_t bytes)
{
    layer->bytes = bytes;
    layer->is_told_bytes = true;
}

bool layer_has_git(const struct layer *layer)
{
    return layer->record.has_git;
}

const struct layer_root *layer_roots(const struct layer *layer, size_t *ret_len)
{
    *ret_len = layer->record.roots_len;
    return layer->record.roots;
}

const struct layer_step *layer_steps(const struct layer *layer, size_t *ret_len)
{
    *ret_len = layer->records_len;
    return layer->steps;
}

static bool is_open_ended(const struct layer *layer)
{
    const struct step_record *last =
        layer->records_len ? &layer->records[layer->records_len - 1] : NULL;

    return last && !last->step.ended.tv_sec && last->boot[0] && str_eq(last->boot, store_boot());
}

bool layer_is_quiet(const struct layer *layer)
{
    if (layer->launches || layer->is_alive_outside)
        return false;
    return layer->lock >= 0 || !is_open_ended(layer);
}

enum layer_state layer_state(const struct layer *layer)
{
    if (layer->launches || layer->is_alive_outside)
        return LAYER_ALIVE;
    if (layer->lock < 0 && is_open_ended(layer))
        return layer->is_held ? LAYER_ALIVE : LAYER_ORPHANED;
    return layer->is_suspect ? LAYER_SUSPECT : LAYER_QUIET;
}

void layer_on_quiet(struct layer *layer, void (*on_quiet)(void *data, struct layer *layer),
                    void *data)
{
    layer->on_quiet = on_quiet;
    layer->on_quiet_data = data;
}

struct sandbox_view *layer_view(struct layer *layer)
{
    return &layer->view;
}

int layer_open_root(const struct layer *layer, size_t root, struct err *err)
{
    const struct layer_root *wanted = &layer->record.roots[root];
    AUTO_CLOSE int fd = fd_open_path_strict(wanted->path, err);
    struct stat st;

    if (fd < 0)
        return err->code == ERR_SYSTEM &&
                       (err->sys == ENOENT || err->sys == ENOTDIR || err->sys == ELOOP)
                   ? err_set(err, ERR_CONFLICT,
                             "%s, which layer %s lies over, is not there any more", wanted->path,
                             layer_name(layer))
                   : -1;
    if (sys_fault() || fstat(fd, &st))
        return err_sys(err, "%s", wanted->path);
    if (!S_ISDIR(st.st_mode) || st.st_dev != wanted->dev || st.st_ino != wanted->ino)
        return err_set(err, ERR_CONFLICT,
                       "%s is another directory than the one that layer %s was made for",
                       wanted->path, layer_name(layer));
    return TAKE_FD(fd);
}

int layer_open_up(const struct layer *layer, size_t root, int step, struct err *err)
{
    char name[STORE_NAME_MAX];
    int fd;

    store_step_dir(root, step, "up", name);
    fd = sys_fault() ? -1 : openat(layer->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "step %d wrote nothing in %s", step,
                       layer->record.roots[root].path);
    return fd < 0 ? err_sys(err, "step %d of layer %s", step, layer_name(layer)) : fd;
}

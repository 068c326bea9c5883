/* See layer_trial.h. The layer is a real one, made and covered as that of a command would be, and removed again: what decides where it lies and what it lies over is in one place (layer/cover.c), and not here once more. What has
 * failed is tried in smaller parts, to know of what it is the fault. */
#include "cli/layer_trial.h"

#include "base/auto.h"
#include "base/path.h"
#include "layer/layer.h"
#include "policy/access.h"
#include "sandbox/linux/overlay.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool clones(int folder)
{
    AUTO_CLOSE int from = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    AUTO_CLOSE int to = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return from >= 0 && to >= 0 && write(from, "cordon", 6) == 6 && ioctl(to, FICLONE, from) == 0;
}

static int try_layer(const char *dir, struct layer *layer, struct layer_trial *ret)
{
    AUTO(access_map_done)
    struct access_map map = {.restricted = true, .network = NETWORK_RESTRICTED};
    const struct layer_root *roots;
    size_t len;

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "doctor");
    access_map_add(&map, dir, ACCESS_WRITE, ACCESS_DIR, "doctor");
    access_map_sort(&map);
    if (layer_cover(layer, &map, &ret->refusal) ||
        overlay_probe(dir, layer_folder(layer), &ret->refusal)) /* also what has worked before */
        return -1;
    roots = layer_roots(layer, &len);
    ret->folder = path_parent(layer_folder(layer));
    ret->is_near = len && roots[0].is_near;
    ret->is_in_memory = layer_is_in_memory(layer);
    ret->clones = ret->is_near && clones(layer_fd(layer));
    return 0;
}

/* The kernel mounts one over nothing, kept where any file system will do. */
static bool has_overlayfs(void)
{
    static const char *const places[] = {"/dev/shm", "/var/tmp", "/tmp"};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct err ignored;

        if (overlay_probe(NULL, places[i], &ignored) == 0)
            return true;
    }
    return false;
}

void layer_trial_make(const char *dir, struct layer_trial *ret)
{
    const struct layer_options options = {.held_by = "cordon doctor"};
    struct layer *layer;
    struct err ignored;

    *ret = (struct layer_trial){0};
    layer = layer_create(&options, &ret->refusal);
    if (!layer || try_layer(dir, layer, ret)) {
        if (!ret->refusal.code)
            ret->refusal.code = ERR_SYSTEM;
        ret->finding = !layer            ? "layers-folder"
                       : has_overlayfs() ? "no-layer-here"
                                         : "no-overlayfs";
    } else if (ret->is_in_memory) {
        ret->finding = "layers-in-memory";
    } else if (!ret->is_near) {
        ret->finding = "layers-far";
    }
    if (layer)
        (void)layer_remove(layer, &ignored);
}

void layer_trial_done(struct layer_trial *trial)
{
    free(trial->folder);
    *trial = (struct layer_trial){0};
}

/* See plan_model.h. The state of a path follows from what was done at it or above it, in order:
 *
 *     shown (writable or not)   by a mount of the host's files
 *     narrowed                  what is writable there becomes read-only
 *     hidden                    by something of ours, in which nothing exists but what was made
 *     watched                   the same, until all watchpoints have been taken away
 */
#include "../base/support.h"

#include "plan_model.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum effect { SHOW_WRITABLE, SHOW_READABLE, NARROW, HIDE, WATCH, MAKE, MOUNT };

struct change {
    enum effect effect;
    const char *path;
};

struct plan_model {
    const struct plan *plan;
    const struct access_map *map;
    struct change *changes;
    size_t len;
    size_t cap;
    bool is_held[PLAN_MAX_SLOTS];
    bool has_masks, has_devices, is_hardened, is_sealed, is_entered;
    bool is_uncovered;
};

struct state {
    enum access access;
    bool is_there; /* among what is hidden: made by the plan */
};

static void change(struct plan_model *model, enum effect effect, const char *path)
{
    model->changes = alloc_grow(model->changes, model->len, &model->cap, sizeof *model->changes);
    model->changes[model->len++] = (struct change){effect, path};
}

static bool is_ours(const char *path)
{
    return path_is_within(path, "/dev") || path_is_within(path, "/proc");
}

static bool host_has(const struct plan_model *model, const char *path)
{
    const struct access_map *map = model->map;

    for (size_t i = 0; i < map->len; i++) {
        bool is_above = path_is_within(map->entries[i].path, path);
        bool is_same = str_eq(map->entries[i].path, path);

        if (is_same ? map->entries[i].kind != ACCESS_MISSING : is_above)
            return true;
    }
    return is_ours(path) || str_eq(path, "/");
}

static struct state state_of(const struct plan_model *model, const char *path)
{
    struct state state = {.access = ACCESS_WRITE};

    for (size_t i = 0; i < model->len; i++) {
        const struct change *done = &model->changes[i];
        bool is_same = str_eq(done->path, path);

        if (done->effect == MAKE && is_same)
            state.is_there = true;
        if (done->effect == MAKE || done->effect == MOUNT || !path_is_within(path, done->path))
            continue;
        if (done->effect == WATCH && model->is_uncovered)
            continue;
        if (done->effect == NARROW && state.access == ACCESS_WRITE)
            state.access = ACCESS_READ;
        if (done->effect != NARROW)
            state =
                (struct state){.access = done->effect == HIDE || done->effect == WATCH ? ACCESS_DENY
                                         : done->effect == SHOW_READABLE               ? ACCESS_READ
                                                                         : ACCESS_WRITE,
                               .is_there = is_same};
    }
    return state;
}

static bool is_there(const struct plan_model *model, const char *path)
{
    struct state state = state_of(model, path);

    return state.access == ACCESS_DENY ? state.is_there : host_has(model, path);
}

static void need(bool condition, enum plan_op op, const char *path, const char *what)
{
    if (!condition)
        fail_msg("%s %s: %s", plan_op_name(op), path, what);
}

/* Whether what a cover goes over is a directory, as the host has it when the command runs. */
static bool is_dir(const struct plan_model *model, const char *path)
{
    const struct access_entry *entry = access_map_exact(model->map, path);

    return !entry || entry->kind == ACCESS_DIR;
}

static void do_make(struct plan_model *model, enum plan_op op, const char *path)
{
    AUTO_FREE char *parent = path_parent(path);

    need(state_of(model, path).access == ACCESS_DENY, op, path, "would be made on the host");
    need(is_there(model, parent), op, path, "its directory is not there");
    need(!model->is_sealed, op, path, "the cover is sealed already");
    change(model, MAKE, path);
}

static void do_hold(struct plan_model *model, const struct plan_record *record, const char *path)
{
    bool is_device = path_is_within(path, "/dev");

    need(!model->is_held[record->slot], PLAN_HOLD, path, "the slot is in use");
    need(state_of(model, path).access == ACCESS_WRITE, PLAN_HOLD, path, "no longer as on the host");
    need(host_has(model, path), PLAN_HOLD, path, "the host has no such path");
    need(is_device != model->is_hardened, PLAN_HOLD, path, "devices before, all else after");
    model->is_held[record->slot] = true;
}

static void do_show(struct plan_model *model, const struct plan_record *record, const char *path)
{
    need(is_there(model, path), record->op, path, "no mount point");
    if (record->op == PLAN_PLACE) {
        need(model->is_held[record->slot], PLAN_PLACE, path, "nothing is held");
        model->is_held[record->slot] = false;
    } else {
        need(host_has(model, path), PLAN_BIND, path, "the host has no such path");
    }
    change(model, record->flags & PLAN_FLAG_READ_ONLY ? SHOW_READABLE : SHOW_WRITABLE, path);
    change(model, MOUNT, path);
}

static void do_cover(struct plan_model *model, const struct plan_record *record, const char *path)
{
    bool wants_dir = record->op == PLAN_MASK_TREE || !(record->flags & PLAN_FLAG_FILE);

    need(is_there(model, path), record->op, path, "nothing to cover");
    need(is_dir(model, path) == wants_dir, record->op, path, "a file over a directory");
    need(record->op == PLAN_MASK_TREE || model->has_masks, record->op, path, "no masks");
    need(!model->is_sealed, record->op, path, "behind a seal");
    change(model, HIDE, path);
    change(model, MOUNT, path);
}

static void do_watch(struct plan_model *model, const struct plan_record *record, const char *path)
{
    need(model->is_held[record->slot], PLAN_WATCHPOINT, path, "nothing is held");
    need(is_there(model, path), PLAN_WATCHPOINT, path, "nothing to cover");
    need(is_dir(model, path) == !(record->flags & PLAN_FLAG_FILE), PLAN_WATCHPOINT, path,
         "a file over a directory");
    need(state_of(model, path).access == ACCESS_READ, PLAN_WATCHPOINT, path, "not read-only");
    need(str_eq(model->map->entries[record->value].path, path), PLAN_WATCHPOINT, path,
         "the entry of another path");
    model->is_held[record->slot] = false;
    change(model, WATCH, path);
    change(model, MOUNT, path);
}

static void do_dev(struct plan_model *model)
{
    static const char *const nodes[] = {"/dev/null", "/dev/zero", "/dev/full",    "/dev/random",
                                        "/dev/tty",  "/dev/pts",  "/dev/urandom", "/dev/shm"};

    need(is_there(model, "/dev"), PLAN_DEV, "/dev", "no mount point");
    need(model->has_devices, PLAN_DEV, "/dev", "no devices were taken");
    change(model, HIDE, "/dev");
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        change(model, MAKE, nodes[i]);
}

/* Operations at a path of the tree. */
static void do_at(struct plan_model *model, const struct plan_record *record, const char *path)
{
    enum plan_op op = (enum plan_op)record->op;

    need(path_is_clean(path), op, path, "not a clean path");
    if (op == PLAN_HOLD) {
        do_hold(model, record, path);
    } else if (op == PLAN_DIR || op == PLAN_FILE || op == PLAN_LINK) {
        do_make(model, op, path);
    } else if (op == PLAN_PLACE || op == PLAN_BIND) {
        do_show(model, record, path);
    } else if (op == PLAN_MASK || op == PLAN_MASK_TREE) {
        do_cover(model, record, path);
    } else if (op == PLAN_WATCHPOINT) {
        do_watch(model, record, path);
    } else if (op == PLAN_PIN || op == PLAN_READ_ONLY) {
        need(is_there(model, path), op, path, "nothing there");
        change(model, MOUNT, path);
        if (op == PLAN_READ_ONLY)
            change(model, NARROW, path);
    } else if (op == PLAN_SEAL) {
        need(state_of(model, path).access == ACCESS_DENY, op, path, "not ours");
        model->is_sealed = true;
    } else if (op != PLAN_LANDLOCK_RULE) {
        need(false, op, path, "has no path");
    }
}

static void do_record(struct plan_model *model, const struct plan_record *record)
{
    const char *path = model->plan->strings.data + record->path;

    need(!model->is_entered || record->op > PLAN_ENTER_ROOT, record->op, path, "after the entry");
    if (record->op == PLAN_TREE_READ_ONLY)
        change(model, NARROW, "/");
    else if (record->op == PLAN_EMPTY_ROOT)
        change(model, HIDE, "/");
    else if (record->op == PLAN_PROC)
        change(model, SHOW_WRITABLE, "/proc");
    else if (record->op == PLAN_DEV)
        do_dev(model);
    else if (record->op == PLAN_QUEUES)
        change(model, MAKE, "/dev/mqueue");
    else if (record->op == PLAN_MASKS)
        model->has_masks = true;
    else if (record->op == PLAN_HOLD_DEVICES)
        model->has_devices = true;
    else if (record->op == PLAN_TREE_HARDEN)
        model->is_hardened = true;
    else if (record->op == PLAN_HOLD_FUSE && !model->is_hardened)
        model->is_held[record->slot] = true;
    else if (record->op == PLAN_ENTER_ROOT)
        model->is_entered = true;
    else if (*path)
        do_at(model, record, path);
}

struct plan_model *plan_model_new(const struct plan *plan, const struct access_map *map)
{
    struct plan_model *model = alloc_zero(1, sizeof *model);

    model->plan = plan;
    model->map = map;
    for (size_t i = 0; i < plan->len; i++)
        do_record(model, &plan->records[i]);
    for (size_t i = 0; i < PLAN_MAX_SLOTS; i++)
        assert_false(model->is_held[i]); /* what is held has to be placed */
    return model;
}

void plan_model_free(struct plan_model *model)
{
    free(model->changes);
    free(model);
}

enum access plan_model_access(const struct plan_model *model, const char *path)
{
    return state_of(model, path).access;
}

bool plan_model_is_mount(const struct plan_model *model, const char *path)
{
    for (size_t i = 0; i < model->len; i++)
        if (model->changes[i].effect == MOUNT && str_eq(model->changes[i].path, path))
            return true;
    return false;
}

bool plan_model_is_watched(const struct plan_model *model, const char *path)
{
    for (size_t i = 0; i < model->len; i++)
        if (model->changes[i].effect == WATCH && str_eq(model->changes[i].path, path))
            return true;
    return false;
}

void plan_model_uncover(struct plan_model *model)
{
    model->is_uncovered = true;
}

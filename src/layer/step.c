/* Steps: what commands write between two moments in which nothing of the layer is alive.
 *
 *     enter   the first: all roots are mounted (next.c), with the steps before as lower layers, steps/N.json is written, and
 *             the folders that were mounted become roots/R/N/{up,wk}. Others join what is there
 *     leave   the last: the end is written down. The mounts go a little later, but before anything is done with what was written:
 *             they become read-only, which the kernel refuses while a file is open for writing (a command gave it to somebody
 *             outside, by a socket), and then our descriptor is closed
 *
 * An upper directory in which something was written is mounted in one step only: after that it is read, or taken from. A step in
 * which nothing was written leaves nothing but its mounts, for the next one.
 *
 * The file comes before the folders, and goes after them; "removed" in it decides that a step is gone. So a kill at any
 * moment leaves a step that is there, or one that the next holder finishes removing.
 *
 * Base times are those of the wall clock, as the ctimes of files that they are compared with. When that clock is set
 * back after a step began, what others change looks older than it is; so a step notes how far the wall clock was from
 * the one that nobody sets, and its base time is set back likewise. */
#include "layer/inside.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "layer/change.h"
#include "sandbox/linux/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS_LIMIT = 480 }; /* the kernel takes 500 lower layers */

#define CLOCK_JUMP_NS INT64_C(1000000)

/* --- clocks --- */

static int64_t clock_distance(void)
{
    struct timespec boot;

    clock_gettime(CLOCK_BOOTTIME, &boot);
    return (int64_t)clock_wall_ns() - change_ns_of(&boot);
}

void step_settle_clock(struct step_record *record)
{
    int64_t back = record->clock - clock_distance();
    int64_t begun = change_ns_of(&record->step.begun);

    if (!record->clock || back < CLOCK_JUMP_NS || !str_eq(record->boot, store_boot()))
        return;
    record->step.begun = change_time_of(begun > back ? begun - back : 0);
    record->clock -= back;
}

/* --- steps that go --- */

static void forget(struct layer *layer, int number)
{
    struct step_record *record = layer_step_find(layer, number);
    size_t index;

    if (!record)
        return;
    index = (size_t)(record - layer->records);
    step_record_done(record);
    memmove(record, record + 1, (--layer->records_len - index) * sizeof *record);
    layer_steps_changed(layer);
}

/* When its folders are gone. */
static void remove_file(const struct layer *layer, int number)
{
    char name[STORE_NAME_MAX];

    store_step_file(number, name);
    if (!sys_fault())
        unlinkat(layer->fd, name, 0);
}

/* To the trash. One that `is_clear` needs no word of that: it has not ended on the disk, and a next holder ends it and
 * finds nothing in it (step_recover()). */
static int discard(struct layer *layer, int number, bool is_clear, struct err *err)
{
    struct step_record *record = layer_step_find(layer, number);
    bool is_left = false;
    char name[STORE_NAME_MAX];
    struct err ignored;

    if (!record->is_removed && !is_clear) {
        record->is_removed = true;
        if (layer_save_step(layer, record, err)) {
            record->is_removed = false;
            return -1;
        }
    }
    /* It is decided: what fails from here on the next holder does. */
    for (size_t i = 0; i < layer->record.roots_len && !is_left; i++) {
        store_step_dir(i, number, NULL, name);
        is_left = store_discard(layer, layer->fd, name, &ignored);
    }
    if (!is_left)
        remove_file(layer, number);
    forget(layer, number);
    return 0;
}

int step_remove(struct layer *layer, int number, struct err *err)
{
    struct err ignored;

    layer_unprepare(layer);
    if (discard(layer, number, false, err))
        return -1;
    store_empty_trash(layer, &ignored);
    return 0;
}

static int is_any(void *data, const char *name)
{
    return 1;
}

/* 1: nothing was written in the step, and no root looks other than before. */
static int is_empty(const struct layer *layer, int number, struct err *err)
{
    for (size_t i = 0; i < layer->record.roots_len; i++) {
        struct err why;
        AUTO_CLOSE int up = layer_open_up(layer, i, number, &why);
        AUTO_CLOSE int below = -1;
        struct stat now, before;
        int found;

        if (up < 0 && why.code == ERR_NOT_FOUND)
            continue;
        if (up < 0) {
            *err = why;
            return -1;
        }
        found = store_list(up, ".", is_any, NULL, err);
        if (found)
            return found < 0 ? -1 : 0;
        below = next_open_below(layer, i, number, &why);
        if (below < 0 || fstat(up, &now) || fstat(below, &before))
            continue; /* the root is gone; nothing is lost */
        if (now.st_mode != before.st_mode)
            return 0;
    }
    return 1;
}

static bool has_accepts(const struct layer *layer)
{
    return faccessat(layer->fd, "accepted", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int layer_tidy(struct layer *layer, struct err *err)
{
    const bool keeps_one = has_accepts(layer);

    if (!layer_is_quiet(layer) || layer->lock < 0)
        return 0;
    for (size_t i = 0; i < layer->records_len;) {
        int number = layer->records[i].step.number;
        int empty = keeps_one && layer->records_len == 1 ? 0 : is_empty(layer, number, err);

        if (empty < 0 || (empty && step_remove(layer, number, err)))
            return -1;
        i += !empty; /* else the next one is there now */
    }
    return 0;
}

/* --- entering --- */

static int check_entry(struct layer *layer, struct err *err)
{
    uint64_t max = layer->record.max_bytes;

    if (layer->lock < 0 || layer->is_adopted)
        return err_set(err, ERR_BUG, "layer %s is not ours to enter", layer_name(layer));
    if (max && !layer->bytes && !layer->is_told_bytes && !layer->launches &&
        store_count_bytes(layer, &layer->bytes, err))
        return -1;
    if (max && layer->bytes > max)
        return err_set(
            err, ERR_LIMIT,
            "layer %s has %llu bytes on the disk, %llu are allowed: accept or drop some of it",
            layer_name(layer), (unsigned long long)layer->bytes, (unsigned long long)max);
    return 0;
}

static void describe(struct layer *layer, struct step_record *record,
                     const struct launch_options *options)
{
    strv_push_all(&record->step.argv, options->argv);
    record->step.cwd = alloc_str(options->cwd);
    record->step.begun = change_time_of((int64_t)clock_stamp_ns());
    record->clock = clock_distance();
    snprintf(record->boot, sizeof record->boot, "%s", store_boot());
    layer->first_status = -1;
}

static int begin(struct layer *layer, const struct launch_options *options, struct err *err)
{
    const bool has_stepped = layer->has_stepped;
    int number;
    struct step_record *record;

    if (layer->records_len >= STEPS_MAX && squash_steps(layer, err) &&
        layer->records_len >= STEPS_LIMIT)
        return -1;
    if (next_prepare(layer, err))
        return err_wrap(err, "layer %s", layer_name(layer));
    if (store_make(layer->fd, "steps", err))
        return -1;
    number = layer->last_number + 1;
    record = layer_step_add(layer, number);
    describe(layer, record, options);
    layer_steps_changed(layer);
    if (layer_save_step(layer, layer_step_find(layer, number), err)) {
        forget(layer, number);
        return -1;
    }
    if (next_take(layer, number, err)) {
        struct err ignored;

        if (step_remove(layer, number, &ignored))
            forget(layer, number); /* the next holder finds it, and nothing in it */
        else
            layer->has_stepped = has_stepped; /* nothing stays of a layer that never worked */
        return err_wrap(err, "layer %s", layer_name(layer));
    }
    return 0;
}

static int view_enter(struct sandbox_view *view, const struct launch_options *options,
                      struct err *err)
{
    struct layer *layer = container_of(view, struct layer, view);
    struct step_record *record;

    if (check_entry(layer, err) || (!layer->launches && begin(layer, options, err)))
        return -1;
    layer->launches++;
    record = &layer->records[layer->records_len - 1];
    if (!options->is_probe)
        record->step.commands++;
    layer_steps_changed(layer);
    return 0;
}

/* --- leaving --- */

/* To the trash. What fails here is found by the next holder: the end that is not written down, the empty step. */
static void end_empty(struct layer *layer, int number)
{
    struct err ignored;

    layer_unprepare(layer);
    next_drop_folders(layer); /* of those that were given back before one could not be */
    if (discard(layer, number, !has_accepts(layer), &ignored))
        forget(layer, number);
    /* what the kernel has made of it takes a disk that discards at once some ms */
    if (layer->discarded >= DISCARDED_MAX && store_empty_trash(layer, &ignored) == 0)
        layer->discarded = 0;
}

/* Until its mounts are gone it counts as shared. */
static void end_written(struct layer *layer, struct step_record *record)
{
    struct err ignored;

    layer->mounted_step = record->step.number;
    record->step.is_shared = true;
    step_settle_clock(record);
    record->step.ended = change_time_of((int64_t)clock_wall_ns());
    record->step.wait_status = layer->first_status;
    layer_save_step(layer, record, &ignored);
    layer_steps_changed(layer);
}

static void end(struct layer *layer)
{
    struct step_record *record = &layer->records[layer->records_len - 1];
    int number = record->step.number;
    struct err ignored;

    layer->view.mounts = -1;
    if (is_empty(layer, number, &ignored) != 1) {
        end_written(layer, record);
    } else if (next_give_back(layer, number)) {
        remove_file(layer, number);
        forget(layer, number);
    } else {
        end_empty(layer, number);
    }
    if (layer->record.max_bytes && !layer->is_told_bytes)
        store_count_bytes(layer, &layer->bytes, &ignored);
    if (layer->on_quiet)
        layer->on_quiet(layer->on_quiet_data, layer);
}

static void view_leave(struct sandbox_view *view, int wait_status)
{
    struct layer *layer = container_of(view, struct layer, view);
    const struct step_record *record = &layer->records[layer->records_len - 1];

    layer->first_status = record->step.commands == 1 ? wait_status : -1;
    if (--layer->launches == 0)
        end(layer);
}

void step_view_init(struct layer *layer)
{
    layer->view = (struct sandbox_view){
        .enter = view_enter,
        .leave = view_leave,
        .roots = (const char *const *)strv_view(&layer->view_roots),
        .users = -1,
        .mounts = -1,
    };
}

int layer_refresh(struct layer *layer, struct err *err)
{
    bool is_alive = layer->launches || (layer->is_alive_outside && layer->space.mounts >= 0);

    return is_alive ? overlay_refresh(&layer->space, layer->view.roots, false, err) : 0;
}

/* --- after a kill --- */

/* On a full disk it is known to us alone, and to the next one again: what fills it can be dropped then. */
static int save_end(const struct layer *layer, const struct step_record *record, struct err *err)
{
    return layer_save_step(layer, record, err) && !store_is_full(err) ? -1 : 0;
}

int step_recover(struct layer *layer, struct err *err)
{
    bool is_changed = false;

    for (size_t i = 0; i < layer->records_len; i++) {
        struct step_record *record = &layer->records[i];

        if (record->step.ended.tv_sec)
            continue;
        record->step.ended = change_time_of((int64_t)clock_wall_ns());
        record->step.is_shared = str_eq(record->boot, store_boot()); /* nobody has looked */
        if (save_end(layer, record, err))
            return -1;
        is_changed = true;
    }
    layer_steps_changed(layer);
    return is_changed ? layer_tidy(layer, err) : 0;
}

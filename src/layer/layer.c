/* Opening and closing a layer: whose it is, what is read, and what is put right first.
 *
 * Whoever changes a layer has its lock (flock(2) on ID/lock, which lasts as long as the description, and so ends with
 * its process however that ends); the file says who, for others' messages. Who only reads takes none: files are replaced
 * whole, and what goes meanwhile is left out.
 *
 * A step that has begun and not ended means that its holder is alive, when the lock is taken, or was killed. Then the
 * next holder waits until the last process of it is gone (orphan.c) and writes the end down. Contents are not looked
 * at: a step is what its folder holds.
 *
 * Contents are as lost by a power failure as the kernel likes (the mounts are volatile). So each step knows its boot,
 * and a layer with a step of another one is suspect. */
#include "layer/layer.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "layer/accept.h"
#include "layer/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_FILE "lock"
#define NAMES_LOCK ".names"
#define LOCK_WAIT_NS CLOCK_NS_PER_S

enum { HOLDER_MAX = 160, ID_TRIES = 8 };

/* --- the lock --- */

/* Who has it, for people; the caller frees. */
static char *read_holder(int fd)
{
    char text[HOLDER_MAX + 1] = "";
    ssize_t len = pread(fd, text, HOLDER_MAX, 0);

    for (ssize_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            text[i] = '\0';
    return alloc_str(len > 0 && text[0] ? text : "another process");
}

static void write_holder(int fd, const char *held_by)
{
    char text[HOLDER_MAX];
    int len = snprintf(text, sizeof text, "%s (%d)\n", held_by ? held_by : "cordon", (int)getpid());

    if (len >= (int)sizeof text)
        len = sizeof text - 1;
    if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)len, 0) != len)
        return; /* a full disk: nobody will know who has it */
}

static int open_lock(int dir, int flags)
{
    return sys_fault() ? -1
                       : openat(dir, LOCK_FILE, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

/* It may have been removed while we waited for the lock. */
static bool is_still_there(const struct layer *layer)
{
    struct stat now, st;

    return fstat(layer->fd, &st) == 0 && lstat(layer->folder, &now) == 0 &&
           st.st_ino == now.st_ino && st.st_dev == now.st_dev;
}

static int take_lock(struct layer *layer, struct err *err)
{
    AUTO_CLOSE int fd = open_lock(layer->fd, O_RDWR | O_CREAT);

    if (fd < 0)
        return err_sys(err, "the lock of layer %s", layer->record.id);
    if (sys_fault() || lock_take(fd, LOCK_EX, LOCK_WAIT_NS)) {
        AUTO_FREE char *holder = read_holder(fd);

        if (errno != EWOULDBLOCK)
            return err_sys(err, "the lock of layer %s", layer->record.id);
        return err_set(err, ERR_BUSY, "layer %s is in use by %s; try again when that has ended",
                       layer->record.id, holder);
    }
    if (!is_still_there(layer))
        return err_set(err, ERR_NOT_FOUND, "layer %s has just been removed", layer->record.id);
    write_holder(fd, layer->held_by);
    layer->lock = TAKE_FD(fd);
    return 0;
}

char *layer_holder(const struct layer *layer)
{
    AUTO_CLOSE int fd = open_lock(layer->fd, O_RDONLY);

    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return NULL;
    return read_holder(fd);
}

/* --- steps, as they are on the disk --- */

static int compare_records(const void *a, const void *b)
{
    const struct step_record *one = a;
    const struct step_record *other = b;

    return (one->step.number > other->step.number) - (one->step.number < other->step.number);
}

void layer_steps_changed(struct layer *layer)
{
    const char *boot = store_boot();

    if (layer->records_len)
        qsort(layer->records, layer->records_len, sizeof *layer->records, compare_records);
    layer->steps = alloc_resize(layer->steps, layer->records_len + 1, sizeof *layer->steps);
    layer->is_suspect = false;
    for (size_t i = 0; i < layer->records_len; i++) {
        layer->steps[i] = layer->records[i].step;
        if (layer->steps[i].number > layer->last_number)
            layer->last_number = layer->steps[i].number;
        if (!str_eq(layer->records[i].boot, boot))
            layer->is_suspect = true;
    }
    if (layer->records_len)
        layer->has_stepped = true;
}

struct step_record *layer_step_find(const struct layer *layer, int number)
{
    for (size_t i = 0; i < layer->records_len; i++)
        if (layer->records[i].step.number == number)
            return &layer->records[i];
    return NULL;
}

struct step_record *layer_step_add(struct layer *layer, int number)
{
    struct step_record *record;

    layer->records =
        alloc_grow(layer->records, layer->records_len, &layer->records_cap, sizeof *layer->records);
    record = &layer->records[layer->records_len++];
    *record = (struct step_record){.step = {.number = number, .wait_status = -1}};
    return record;
}

struct reading {
    struct layer *layer;
    size_t root;
    struct err *err;
};

/* What a power failure leaves of a file is perhaps its name alone: nothing is known of that step then, and everything
 * in it may conflict. */
static int read_step_file(void *data, const char *name)
{
    struct reading *reading = data;
    struct layer *layer = reading->layer;
    int number = store_step_number(name, ".json");
    char file[STORE_NAME_MAX];
    AUTO_FREE char *path = NULL;
    AUTO(buf_done) struct buf text = {0};
    AUTO(step_record_done) struct step_record record = {0};
    struct err why;

    if (!number && str_ends(name, ".json.new") && layer->lock >= 0 && !layer->is_adopted) {
        AUTO_FREE char *left = path_join("steps", name); /* a writer was killed */

        unlinkat(layer->fd, left, 0);
    }
    if (!number)
        return 0;
    store_step_file(number, file);
    path = path_join(layer->folder, file);
    if (store_read(layer->fd, file, &text, &why)) {
        if (why.code == ERR_NOT_FOUND)
            return 0;
        *reading->err = why;
        return -1;
    }
    if (!text.len) {
        layer_step_add(layer, number);
        return 0;
    }
    if (step_record_parse(text.data, text.len, path, &record, reading->err))
        return -1;
    if (record.step.number != number)
        return err_set(reading->err, ERR_INVALID, "%s: $.number: should be %d", path, number);
    *layer_step_add(layer, number) = record;
    memset(&record, 0, sizeof record);
    return 0;
}

static int read_step_dir(void *data, const char *name)
{
    struct reading *reading = data;
    int number = store_step_number(name, "");

    if (number && !layer_step_find(reading->layer, number))
        layer_step_add(reading->layer, number);
    return 0;
}

static void forget_steps(struct layer *layer)
{
    for (size_t i = 0; i < layer->records_len; i++)
        step_record_done(&layer->records[i]);
    layer->records_len = 0;
}

/* Drops those that are removed from the list; for who may change the layer they go from the disk, too. */
static int drop_removed(struct layer *layer, struct err *err)
{
    for (size_t i = layer->records_len; i-- > 0;) {
        int number = layer->records[i].step.number;

        if (!layer->records[i].is_removed)
            continue;
        if (layer->lock >= 0 && !layer->is_adopted) {
            if (step_remove(layer, number, err))
                return -1;
            continue;
        }
        step_record_done(&layer->records[i]);
        memmove(&layer->records[i], &layer->records[i + 1],
                (--layer->records_len - i) * sizeof *layer->records);
    }
    return 0;
}

static int read_steps(struct layer *layer, struct err *err)
{
    struct reading reading = {.layer = layer, .err = err};

    forget_steps(layer);
    if (store_list(layer->fd, "steps", read_step_file, &reading, err))
        return -1;
    for (size_t i = 0; i < layer->record.roots_len; i++) {
        char dir[STORE_NAME_MAX];

        snprintf(dir, sizeof dir, "roots/%zu", i);
        if (store_list(layer->fd, dir, read_step_dir, &reading, err))
            return -1;
    }
    for (size_t i = 0; i < layer->records_len; i++)
        step_settle_clock(&layer->records[i]);
    layer_steps_changed(layer);
    if (drop_removed(layer, err))
        return -1;
    layer_steps_changed(layer);
    return 0;
}

int layer_save_step(const struct layer *layer, const struct step_record *record, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};
    char name[STORE_NAME_MAX];

    store_step_file(record->step.number, name);
    step_record_format(record, &text);
    return store_write(layer->fd, name, &text, err) ? err_wrap(err, "layer %s", layer->record.id)
                                                    : 0;
}

/* --- layer.json --- */

int layer_save(const struct layer *layer, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};

    layer_record_format(&layer->record, &text);
    return store_write(layer->fd, LAYER_FILE, &text, err)
               ? err_wrap(err, "layer %s", layer->record.id)
               : 0;
}

/* Numbers of devices may be others after a boot; the directory is the same when its own number is. */
static void settle_roots(struct layer *layer)
{
    bool is_other_boot = !str_eq(layer->record.boot, store_boot());
    struct stat folder = {0};
    struct stat st;

    fstat(layer->fd, &folder);
    for (size_t i = 0; i < layer->record.roots_len; i++) {
        struct layer_root *root = &layer->record.roots[i];

        if (is_other_boot && lstat(root->path, &st) == 0 && st.st_ino == root->ino)
            root->dev = st.st_dev;
        root->is_near = root->dev == folder.st_dev;
    }
    layer->is_covered = alloc_resize(layer->is_covered, layer->record.roots_len + 1, sizeof(bool));
    memset(layer->is_covered, 0, (layer->record.roots_len + 1) * sizeof(bool));
    if (is_other_boot)
        snprintf(layer->record.boot, sizeof layer->record.boot, "%s", store_boot());
}

static int read_layer(struct layer *layer, struct err *err)
{
    AUTO_FREE char *path = path_join(layer->folder, LAYER_FILE);
    AUTO(buf_done) struct buf text = {0};
    AUTO(layer_record_done) struct layer_record record = {0};

    if (store_read(layer->fd, LAYER_FILE, &text, err))
        return err_wrap(err, "%s", path);
    if (layer_record_parse(text.data ? text.data : "", text.len, path, &record, err))
        return -1;
    if (!str_eq(record.id, path_name(layer->folder)))
        return err_set(err, ERR_INVALID, "%s: $.id: should be %s", path, path_name(layer->folder));
    layer_record_done(&layer->record);
    layer->record = record;
    memset(&record, 0, sizeof record);
    settle_roots(layer);
    return read_steps(layer, err);
}

/* What it lies over is for its holder to change, who knows which of that its maps had. */
int layer_reload(struct layer *layer, struct err *err)
{
    if (layer->launches)
        return 0;
    layer_unprepare(layer);
    return read_steps(layer, err);
}

/* --- opening --- */

static struct layer *new_layer(const char *base, const char *id, const char *held_by)
{
    struct layer *layer = alloc_zero(1, sizeof *layer);

    layer->fd = layer->lock = -1;
    layer->space = (struct overlay_namespace){-1, -1};
    layer->first_status = -1;
    layer->folder = path_join(base, id);
    layer->held_by = held_by;
    snprintf(layer->record.id, sizeof layer->record.id, "%s", id);
    step_view_init(layer);
    return layer;
}

static void free_layer(struct layer *layer)
{
    if (layer->apart.pid)
        overlay_apart_end(&layer->apart);
    buf_done(&layer->seen);
    buf_done(&layer->uppers);
    sandbox_view_settle(&layer->view);
    overlay_close(&layer->space);
    if (layer->lock >= 0)
        close(layer->lock);
    if (layer->fd >= 0)
        close(layer->fd);
    forget_steps(layer);
    free(layer->records);
    free(layer->steps);
    free(layer->is_covered);
    free(layer->folder);
    strv_done(&layer->view_roots);
    strv_done(&layer->real);
    layer_record_done(&layer->record);
    free(layer);
}

static void free_layer_slot(struct layer **slot)
{
    if (*slot)
        free_layer(*slot);
}

/* What a kill has left half done. */
static int recover(struct layer *layer, struct err *err)
{
    if (orphan_wait(layer, err))
        return -1;
    next_drop_folders(layer);
    if (step_recover(layer, err) || squash_recover(layer, err) || accept_recover(layer, err) ||
        store_empty_trash(layer, err))
        return -1;
    return 0;
}

struct layer *layer_open_at(int base, const char *base_path, const char *id, enum layer_use use,
                            const char *held_by, struct err *err) /* style: where, which and how */
{
    AUTO(free_layer_slot) struct layer *layer = new_layer(base_path, id, held_by);

    layer->fd = store_open_layer(base, id, err);
    if (layer->fd < 0 || (use == LAYER_CHANGE && take_lock(layer, err)) || read_layer(layer, err))
        return NULL;
    if (use == LAYER_CHANGE && recover(layer, err))
        return NULL;
    if (use == LAYER_READ) {
        AUTO_FREE char *holder = layer_holder(layer);

        layer->is_held = holder;
    }
    return TAKE_PTR(layer);
}

static int check_lock(const struct layer *layer, struct err *err)
{
    struct stat own, given;

    if (fstatat(layer->fd, LOCK_FILE, &own, AT_SYMLINK_NOFOLLOW) || fstat(layer->lock, &given))
        return err_sys(err, "the lock of layer %s", layer->record.id);
    if (own.st_ino != given.st_ino || own.st_dev != given.st_dev)
        return err_set(err, ERR_INVALID, "descriptor %d is not the lock of layer %s", layer->lock,
                       layer->record.id);
    return 0;
}

static struct layer *adopt_at(int base, const char *path, const char *id,
                              const struct layer_adoption *adoption, struct err *err)
{
    struct layer *layer = new_layer(path, id, adoption->held_by);

    layer->is_adopted = !adoption->held_by;
    layer->is_alive_outside = adoption->is_alive;
    layer->lock = adoption->lock;
    layer->space = (struct overlay_namespace){adoption->users, adoption->mounts};
    layer->fd = store_open_layer(base, id, err);
    if (layer->fd < 0 || check_lock(layer, err) || read_layer(layer, err)) {
        free_layer(layer);
        return NULL;
    }
    if (adoption->held_by)
        write_holder(layer->lock, adoption->held_by);
    return layer;
}

struct layer *layer_adopt(const char *id, const struct layer_adoption *adoption, struct err *err)
{
    AUTO(overlay_close)
    struct overlay_namespace space = {adoption->users, adoption->mounts};
    AUTO_CLOSE int lock = adoption->lock;

    for (int place = 0; layer_id_is_valid(id) && place < STORE_BASES; place++) {
        AUTO_FREE char *path = NULL;
        AUTO_CLOSE int base = store_open_base((enum store_base)place, false, &path, err);

        if (base < 0 || faccessat(base, id, F_OK, AT_SYMLINK_NOFOLLOW))
            continue;
        lock = space.users = space.mounts = -1;
        return adopt_at(base, path, id, adoption, err);
    }
    err_set(err, ERR_NOT_FOUND, "there is no layer %.40s", id);
    return NULL;
}

/* --- making --- */

static int make_id(char ret[RECORD_ID_LEN + 1], struct err *err)
{
    uint64_t number;

    if (sys_fault() || getrandom(&number, sizeof number, 0) != sizeof number)
        return err_sys(err, "choosing an id");
    snprintf(ret, RECORD_ID_LEN + 1, "%016llx", (unsigned long long)number);
    return 0;
}

/* Its folder, with the lock in it that is ours. */
static struct layer *make_folder(enum store_base place, const char *wanted, const char *held_by,
                                 struct err *err)
{
    AUTO_FREE char *path = NULL;
    AUTO_CLOSE int base = store_open_base(place, true, &path, err);
    char id[RECORD_ID_LEN + 1];

    for (int i = 0; base >= 0 && i < ID_TRIES; i++) {
        AUTO(free_layer_slot) struct layer *layer = NULL;

        if (wanted)
            snprintf(id, sizeof id, "%s", wanted);
        else if (make_id(id, err))
            return NULL;
        if (sys_fault() || mkdirat(base, id, 0700)) {
            if (errno == EEXIST && !wanted)
                continue;
            err_sys(err, "making %s/%s", path, id);
            return NULL;
        }
        layer = new_layer(path, id, held_by);
        layer->fd = store_open_layer(base, id, err);
        if (layer->fd >= 0 && take_lock(layer, err) == 0)
            return TAKE_PTR(layer);
        unlinkat(base, id, AT_REMOVEDIR);
        return NULL;
    }
    if (base >= 0)
        err_set(err, ERR_BUG, "no id is free in %s", path);
    return NULL;
}

/* Nothing of it stays on the disk. */
static int remove_folder(struct layer *layer, struct err *err)
{
    AUTO_FREE char *base_path = path_parent(layer->folder);
    AUTO_FREE char *gone = alloc_strf("%s/.%s.gone", base_path, layer->record.id);
    AUTO_CLOSE int fd = -1;

    if ((sys_fault() || rename(layer->folder, gone)) && errno != ENOENT)
        return err_sys(err, "removing %s", layer->folder);
    fd = open(gone, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(err, "removing %s", layer->folder);
    if (store_drain(fd, err))
        return -1;
    return (sys_fault() || rmdir(gone)) ? err_sys(err, "removing %s", layer->folder) : 0;
}

/* Two that make the same name at once: one of them is first. */
static int lock_names(struct err *err)
{
    AUTO_FREE char *path = NULL;
    AUTO_CLOSE int fd = -1;

    for (int base = 0; base < STORE_BASES; base++) {
        AUTO_CLOSE int dir = store_open_base(base, true, &path, err);

        if (dir < 0)
            continue;
        fd = openat(dir, NAMES_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        if (fd < 0)
            return err_sys(err, "%s/" NAMES_LOCK, path);
        if (lock_take(fd, LOCK_EX, LOCK_WAIT_NS))
            return err_sys(err, "%s/" NAMES_LOCK, path);
        return TAKE_FD(fd);
    }
    return -1;
}

static int check_name(const char *name, struct err *err)
{
    AUTO_FREE char *id = layers_find_name(name);

    return id ? err_set(err, ERR_CONFLICT, "there is a layer %s already (%s)", name, id) : 0;
}

/* Nothing can be kept there, through nobody's fault. What is wrong with a folder of ours is told instead. */
static bool is_no_place(const struct err *err)
{
    return err->code == ERR_NOT_FOUND ||
           (err->code == ERR_SYSTEM &&
            (err->sys == EROFS || err->sys == EACCES || err->sys == ENOENT || store_is_full(err)));
}

static struct layer *make_anywhere(const char *held_by, struct err *err)
{
    struct err first = {0};

    for (int base = 0; base < STORE_BASES; base++) {
        struct layer *layer = make_folder((enum store_base)base, NULL, held_by, err);

        if (layer)
            return layer;
        if (base == STORE_STATE)
            first = *err;
        if (!is_no_place(err))
            break;
    }
    *err = first;
    return NULL;
}

struct layer *layer_create(const struct layer_options *options, struct err *err)
{
    AUTO(free_layer_slot) struct layer *layer = NULL;
    AUTO_CLOSE int names = -1;

    if (options->name) {
        if (layer_name_check(options->name, err))
            return NULL;
        names = lock_names(err);
        if (names < 0 || check_name(options->name, err))
            return NULL;
    }
    layer = make_anywhere(options->held_by, err);
    if (!layer)
        return NULL;
    layer->record.name = alloc_str(options->name);
    layer->record.has_git = options->has_git;
    layer->record.max_bytes = options->max_bytes;
    strv_push_all(&layer->record.direct, options->direct);
    clock_gettime(CLOCK_REALTIME, &layer->record.created);
    snprintf(layer->record.boot, sizeof layer->record.boot, "%s", store_boot());
    layer_steps_changed(layer);
    if (layer_save(layer, err)) {
        struct err ignored;

        remove_folder(layer, &ignored);
        return NULL;
    }
    return TAKE_PTR(layer);
}

int layer_move(struct layer *layer, enum store_base base, struct err *err)
{
    struct layer *fresh = make_folder(base, layer->record.id, layer->held_by, err);
    char *folder;
    int fd;

    if (!fresh)
        return -1;
    /* The two change places: what is freed below is the old folder. */
    folder = layer->folder;
    layer->folder = fresh->folder;
    fresh->folder = folder;
    fd = layer->fd;
    layer->fd = fresh->fd;
    fresh->fd = fd;
    fd = layer->lock;
    layer->lock = fresh->lock;
    fresh->lock = fd;
    if (layer_save(layer, err) || remove_folder(fresh, err)) {
        free_layer(fresh);
        return -1;
    }
    free_layer(fresh);
    return 0;
}

/* --- closing --- */

void layer_close(struct layer *layer)
{
    struct err ignored;

    if (!layer)
        return;
    layer_unprepare(layer);
    if (layer->lock >= 0 && !layer->is_adopted && !layer->has_stepped && !layer->launches)
        remove_folder(layer, &ignored);
    else if (layer->discarded)
        store_empty_trash(layer, &ignored); /* else the next one who opens it does */
    free_layer(layer);
}

int layer_remove(struct layer *layer, struct err *err)
{
    int result = -1;

    if (layer->lock < 0)
        err_set(err, ERR_BUG, "layer %s is open for reading", layer->record.id);
    else if (!layer_is_quiet(layer))
        err_set(err, ERR_BUSY, "commands live in layer %s; end them first", layer_name(layer));
    else
        result = remove_folder(layer, err);
    free_layer(layer);
    return result;
}

/* See fake_layer.h. */
#include "fake_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

struct layer {
    int fd;
    char *folder;
    struct layer_root root;
    struct layer_step *steps;
    size_t len;
};

struct layer *fake_layer_new(size_t steps)
{
    struct layer *layer = alloc_zero(1, sizeof *layer);

    layer->folder = support_scratch_new();
    layer->fd = open(layer->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    layer->root.path = path_join(layer->folder, "real");
    layer->steps = alloc_zero(steps, sizeof *layer->steps);
    layer->len = steps;
    assert_int_equal(mkdir(layer->root.path, 0755), 0);
    for (size_t i = 0; i < steps; i++) {
        AUTO_FREE char *up = alloc_strf("%s/%zu", layer->folder, i + 1);

        layer->steps[i].number = (int)i + 1;
        layer->steps[i].begun.tv_sec = INT32_MAX; /* no conflicts but where a test asks for them */
        assert_int_equal(mkdir(up, 0755), 0);
    }
    return layer;
}

void fake_layer_free(struct layer *layer)
{
    close(layer->fd);
    support_scratch_remove(layer->folder);
    free(layer->root.path);
    free(layer->steps);
    free(layer);
}

const char *layer_folder(const struct layer *layer)
{
    return layer->folder;
}

/* --- what layer.c has --- */

const struct layer_root *layer_roots(const struct layer *layer, size_t *ret_len)
{
    *ret_len = 1;
    return &layer->root;
}

const struct layer_step *layer_steps(const struct layer *layer, size_t *ret_len)
{
    *ret_len = layer->len;
    return layer->steps;
}

bool layer_has_git(const struct layer *layer)
{
    (void)layer;
    return false;
}

int layer_fd(const struct layer *layer)
{
    return layer->fd;
}

const char *layer_name(const struct layer *layer)
{
    return layer ? "fake" : NULL;
}

int layer_open_root(const struct layer *layer, size_t root, struct err *err)
{
    int fd = open(layer->root.path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || root ? err_sys(err, "root") : fd;
}

int layer_open_up(const struct layer *layer, size_t root, int step, struct err *err)
{
    AUTO_FREE char *up = alloc_strf("%s/%d", layer->folder, step);
    int fd = open(up, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || root ? err_set(err, ERR_NOT_FOUND, "step %d wrote nothing", step) : fd;
}

/* --- what is in it --- */

void fake_begin(struct layer *layer, size_t step)
{
    const struct timespec grace = {.tv_nsec = 15 * 1000 * 1000};

    support_let_age();
    clock_gettime(CLOCK_REALTIME_COARSE, &layer->steps[step - 1].begun);
    nanosleep(&grace, NULL);
}

char *fake_path(const struct layer *layer, size_t step, const char *path)
{
    return step ? alloc_strf("%s/%zu/%s", layer->folder, step, path)
                : path_join(layer->root.path, path);
}

/* The path, for what is to be made there; however long it is. */
static int parent_of(const struct layer *layer, size_t step, const char *path, const char **ret)
{
    AUTO_FREE char *up = fake_path(layer, step, "");
    int dir = open(up, O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        AUTO_FREE char *name = alloc_strn(path, (size_t)(slash - path));
        int next;

        assert_true(mkdirat(dir, name, 0755) == 0 || errno == EEXIST);
        next = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(dir);
        dir = next;
    }
    *ret = path;
    return dir;
}

void fake_bytes(const struct layer *layer, size_t step, const char *path, const void *data,
                size_t len)
{
    const char *name;
    AUTO_CLOSE int dir = parent_of(layer, step, path, &name);
    AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_true(write(fd, data, len) == (ssize_t)len);
    assert_int_equal(fchmod(fd, 0644), 0);
}

void fake_file(const struct layer *layer, size_t step, const char *path, const char *text)
{
    fake_bytes(layer, step, path, text, strlen(text));
}

void fake_dir(const struct layer *layer, size_t step, const char *path)
{
    const char *name;
    AUTO_CLOSE int dir = parent_of(layer, step, path, &name);

    assert_true(mkdirat(dir, name, 0755) == 0 || errno == EEXIST);
}

void fake_attribute(const struct layer *layer, size_t step, const char *path, const char *name,
                    const char *value)
{
    AUTO_FREE char *whole = fake_path(layer, step, path);

    assert_int_equal(lsetxattr(whole, name, value, strlen(value), 0), 0);
}

void fake_opaque(const struct layer *layer, size_t step, const char *path)
{
    fake_dir(layer, step, path);
    fake_attribute(layer, step, path, "user.overlay.opaque", "y");
}

void fake_gone(const struct layer *layer, size_t step, const char *path)
{
    const char *name;
    AUTO_CLOSE int dir = parent_of(layer, step, path, &name);

    assert_int_equal(mknodat(dir, name, S_IFCHR, makedev(0, 0)), 0);
}

void fake_link(const struct layer *layer, size_t step, const char *path, const char *target)
{
    const char *name;
    AUTO_CLOSE int dir = parent_of(layer, step, path, &name);

    assert_int_equal(symlinkat(target, dir, name), 0);
}

void fake_pipe(const struct layer *layer, size_t step, const char *path)
{
    const char *name;
    AUTO_CLOSE int dir = parent_of(layer, step, path, &name);

    assert_int_equal(mknodat(dir, name, S_IFIFO | 0600, 0), 0);
}

void fake_mode(const struct layer *layer, size_t step, const char *path, mode_t mode)
{
    AUTO_FREE char *whole = fake_path(layer, step, path);

    assert_int_equal(chmod(whole, mode), 0);
}

/* --- what is listed --- */

static void add_line(const struct change *change, struct buf *text)
{
    static const char letters[] = "xlprsdc"; /* in the order of the enum */

    buf_appendf(text, "%c %s", change->kind, change->path);
    if (change->from)
        buf_appendf(text, " from=%s", change->from);
    if (change->marks)
        buf_append_str(text, " marks=");
    for (size_t i = 0; letters[i]; i++)
        if (change->marks & 1u << i)
            buf_append(text, &letters[i], 1);
    if (change->run_by)
        buf_appendf(text, " by=%s", change->run_by);
    if (change->step != 1)
        buf_appendf(text, " step=%d", change->step);
    if (change->first_step != 1)
        buf_appendf(text, " first=%d", change->first_step);
    if (change->is_binary)
        buf_append_str(text, " binary");
    if (change->is_copy)
        buf_append_str(text, " copy");
    if (change->is_edited)
        buf_append_str(text, " edited");
    if (change->is_within)
        buf_append_str(text, " within");
    buf_append_str(text, "\n");
}

void assert_changes(const struct layer *layer, const struct change_query *query, const char *wanted)
{
    const struct change_query all = {.step = 0};
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    AUTO(buf_done) struct buf text;
    unsigned fds = support_open_fds();
    struct err err;

    buf_init(&text, SIZE_MAX / 2);
    buf_append_str(&text, "");
    if (change_list(layer, query ? query : &all, &changes, &problems, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(support_open_fds(), fds);
    for (size_t i = 0; i < changes.len; i++)
        add_line(&changes.items[i], &text);
    for (size_t i = 0; i < problems.len; i++)
        buf_appendf(&text, "! %s\n", problems.items[i] + strlen(layer->root.path));
    assert_string_equal(text.data ? text.data : "", wanted);
}

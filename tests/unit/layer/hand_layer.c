/* See hand_layer.h. */
#include "hand_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "layer/inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 16 << 20 };

/* --- files --- */

static void make_parents(const char *dir, const char *path)
{
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        AUTO_FREE char *whole = alloc_strf("%s/%.*s", dir, (int)(slash - path), path);

        assert_true(mkdir(whole, 0755) == 0 || errno == EEXIST);
    }
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    AUTO_CLOSE int fd = -1;

    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
}

static void write_line(const char *dir, char *line)
{
    const char kind = line[0];
    char *path = line + 2;
    char *text = strchr(path, ' ');
    AUTO_FREE char *whole = NULL;

    if (text)
        *text++ = '\0';
    make_parents(dir, path);
    whole = path_join(dir, path);
    if (kind == 'f' || kind == 'x' || kind == 'c')
        write_file(whole, text ? text : "", kind == 'x' ? 0755 : 0644);
    if (kind == 'd' || kind == 'o')
        assert_true(mkdir(whole, 0755) == 0 || errno == EEXIST);
    if (kind == 'l')
        assert_int_equal(symlink(text, whole), 0);
    if (kind == 'p')
        assert_int_equal(mkfifo(whole, 0644), 0);
    if (kind == 'm' || kind == 'r')
        assert_int_equal(chmod(whole, kind == 'm' ? 0777 : 0555), 0);
    if (kind == 'w')
        assert_int_equal(mknod(whole, S_IFCHR, makedev(0, 0)), 0);
    if (kind == 'o')
        assert_int_equal(setxattr(whole, "user.overlay.opaque", "y", 1, 0), 0);
    if (kind == 'c')
        assert_int_equal(setxattr(whole, "user.overlay.origin", "", 0, 0), 0);
}

void hand_write(const char *dir, const char *text)
{
    AUTO_FREE char *copy = alloc_str(text);

    for (char *line = copy, *end; *line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        else
            end = line + strlen(line);
        if (*line)
            write_line(dir, line);
    }
}

static int compare(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static void show(const char *dir, const char *path, bool with_times, struct buf *ret)
{
    AUTO_FREE char *whole = path_join(dir, path);
    char text[4096] = "";
    struct stat st;

    assert_int_equal(lstat(whole, &st), 0);
    buf_appendf(ret, "%c %o",
                S_ISDIR(st.st_mode)   ? 'd'
                : S_ISLNK(st.st_mode) ? 'l'
                : S_ISREG(st.st_mode) ? 'f'
                                      : '?',
                st.st_mode & 07777);
    if (with_times)
        buf_appendf(ret, " %lld.%09ld", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    if (S_ISLNK(st.st_mode))
        assert_true(readlink(whole, text, sizeof text - 1) >= 0);
    if (S_ISREG(st.st_mode)) {
        AUTO_CLOSE int fd = open(whole, O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0 && read(fd, text, sizeof text - 1) >= 0);
        assert_true(flistxattr(fd, NULL, 0) <= 0);
    }
    assert_true(buf_appendf(ret, " %s%s%s\n", path, *text ? " " : "", text));
}

void hand_snapshot(const char *dir, bool with_times, struct buf *ret)
{
    AUTO(strv_done) struct strv all = {0};

    strv_push(&all, ".");
    for (size_t i = 0; i < all.len; i++) {
        AUTO_FREE char *whole = path_join(dir, all.items[i]);
        struct dirent *entry;
        struct stat st;
        DIR *stream;

        assert_int_equal(lstat(whole, &st), 0);
        stream = S_ISDIR(st.st_mode) ? opendir(whole) : NULL;
        while (stream && (entry = readdir(stream)))
            if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, ".."))
                strv_push_take(&all, i ? path_join(all.items[i], entry->d_name)
                                       : alloc_str(entry->d_name));
        if (stream)
            closedir(stream);
    }
    qsort(all.items, all.len, sizeof *all.items, compare);
    for (size_t i = 0; i < all.len; i++)
        show(dir, all.items[i], with_times, ret);
}

/* --- layers --- */

static void add_root(struct hand *hand, bool is_far)
{
    struct layer *layer = hand->layer;
    struct layer_root *root = layer_record_add_root(&layer->record, hand->real);
    struct stat st, folder;
    struct err err;

    assert_int_equal(stat(hand->real, &st), 0);
    root->dev = st.st_dev;
    root->ino = st.st_ino;
    assert_int_equal(fstat(layer->fd, &folder), 0);
    root->is_near = !is_far && st.st_dev == folder.st_dev;
    layer->is_covered = alloc_resize(layer->is_covered, 2, sizeof(bool));
    layer->is_covered[0] = false;
    if (layer_save(layer, &err))
        fail_msg("%s", err.msg);
}

void hand_init(struct hand *hand, const char *real, bool is_far)
{
    const struct layer_options options = {.held_by = "test"};
    AUTO_FREE char *state = NULL;
    const char *elsewhere;
    struct err err;

    *hand = (struct hand){.dir = support_scratch_new()};
    hand->real = path_join(hand->dir, "real");
    elsewhere = getenv("CORDON_TEST_STATE"); /* another file system */
    state = alloc_strf("%s/state", elsewhere ? elsewhere : hand->dir);
    assert_int_equal(mkdir(hand->real, 0755), 0);
    hand_write(hand->real, real);
    setenv("XDG_STATE_HOME", state, 1);
    hand->layer = layer_create(&options, &err);
    if (!hand->layer)
        fail_msg("%s", err.msg);
    hand->id = alloc_str(layer_id(hand->layer));
    add_root(hand, is_far);
}

void hand_done(struct hand *hand)
{
    AUTO_FREE char *script = alloc_strf("chmod -R u+rwx '%s' 2>/dev/null", hand->dir);

    struct err err;

    if (hand->layer && layer_remove(hand->layer, &err))
        print_message("# %s\n", err.msg);
    if (system(script) < 0)
        fail();
    support_scratch_remove(hand->dir);
    free(hand->real);
    free(hand->id);
}

int hand_step(struct hand *hand, const char *text)
{
    struct layer *layer = hand->layer;
    struct step_record *record;
    AUTO_FREE char *up = NULL;
    struct err err;
    int number;

    if (!hand->is_hasty)
        support_let_age();
    record = layer_step_add(layer, layer->last_number + 1);
    number = record->step.number;
    clock_gettime(CLOCK_REALTIME_COARSE, &record->step.begun);
    record->step.begun.tv_sec += hand->is_hasty ? 100 : 0;
    record->step.ended = record->step.begun;
    record->step.wait_status = 0;
    snprintf(record->boot, sizeof record->boot, "%s", store_boot());
    up = alloc_strf("%s/roots/0/%04d/up", layer->folder, number);
    if (fd_make_dirs(up, 0755, &err))
        fail_msg("%s", err.msg);
    hand_write(up, text);
    {
        AUTO_FREE char *steps = path_join(layer->folder, "steps");

        if (fd_make_dirs(steps, 0700, &err) || layer_save_step(layer, record, &err))
            fail_msg("%s", err.msg);
    }
    layer_steps_changed(layer);
    return number;
}

void hand_add(struct hand *hand, int step, const char *text)
{
    AUTO_FREE char *up = alloc_strf("%s/roots/0/%04d/up", hand->layer->folder, step);

    hand_write(up, text);
}

void hand_live(struct hand *hand, bool does)
{
    hand->layer->is_alive_outside = does;
}

void hand_close(struct hand *hand)
{
    hand->is_far = !hand->layer->record.roots[0].is_near;
    layer_close(hand->layer);
    hand->layer = NULL;
}

void hand_open(struct hand *hand)
{
    struct err err;

    hand->layer = layer_open(hand->id, NULL, LAYER_CHANGE, "test", &err);
    if (!hand->layer)
        fail_msg("%s", err.msg);
    hand->layer->record.roots[0].is_near = !hand->is_far;
}

void hand_lend(struct hand *hand, bool is_alive)
{
    AUTO_FREE char *path =
        alloc_strf("%s/cordon/layers/%s/lock", getenv("XDG_STATE_HOME"), hand->id);
    const struct layer_adoption adoption = {
        .lock = open(path, O_RDWR | O_CLOEXEC), .users = -1, .mounts = -1, .is_alive = is_alive};
    struct err err;

    hand->layer = layer_adopt(hand->id, &adoption, &err);
    if (!hand->layer)
        fail_msg("%s", err.msg);
    hand->layer->record.roots[0].is_near = !hand->is_far;
}

/* --- what is asserted --- */

void assert_real(const struct hand *hand, const char *wanted)
{
    AUTO(buf_done) struct buf text = {.max = TEXT_MAX};

    hand_snapshot(hand->real, false, &text);
    assert_string_equal(text.data, wanted);
}

void assert_listed(const struct hand *hand, const char *wanted)
{
    const struct change_query query = {.flags = CHANGES_WITHOUT_RENAMES};
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    AUTO(buf_done) struct buf text = {.max = TEXT_MAX};
    struct err err;

    if (change_list(hand->layer, &query, &changes, &problems, &err))
        fail_msg("%s", err.msg);
    buf_append_str(&text, "");
    for (size_t i = 0; i < changes.len; i++)
        buf_appendf(&text, "%c %s%s\n", changes.items[i].kind, changes.items[i].path,
                    changes.items[i].marks & MARK_CONFLICT ? " conflict" : "");
    assert_string_equal(text.data ? text.data : "", wanted);
}

size_t hand_list(const struct hand *hand)
{
    const struct change_query query = {.flags = CHANGES_WITHOUT_RENAMES};
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    struct err err;

    if (change_list(hand->layer, &query, &changes, &problems, &err))
        fail_msg("%s", err.msg);
    return changes.len;
}

/* --- what is done --- */

static void absolute(const struct hand *hand, const char *const *paths, struct strv *ret)
{
    for (; paths && *paths; paths++)
        strv_push_take(ret, path_join(hand->real, *paths));
}

static char *left_of(const struct hand *hand, const struct accept_result *result)
{
    AUTO(buf_done) struct buf text = {.max = TEXT_MAX};

    buf_append_str(&text, "");
    for (size_t i = 0; i < result->left_len; i++) {
        if (getenv("WHY"))
            fprintf(stderr, "# %s: %s\n", result->left[i].path, result->left[i].detail);
        buf_appendf(&text, "%s: %s\n", result->left[i].path + strlen(hand->real) + 1,
                    left_why_words[result->left[i].why]);
    }
    return text.data ? buf_take(&text) : alloc_str("");
}

enum what { WHAT_ACCEPT, WHAT_DROP, WHAT_UNDO };

static char *act(struct hand *hand, enum what what, int accept, unsigned flags,
                 const char *const *paths) /* style: of a test */
{
    AUTO(strv_done) struct strv all = {0};
    AUTO(accept_result_done) struct accept_result result = {0};
    struct accept_request request = {.flags = flags};
    unsigned fds = support_open_fds();
    struct err err;
    int failed;

    absolute(hand, paths, &all);
    request.paths = paths ? strv_view(&all) : NULL;
    failed = what == WHAT_ACCEPT ? change_accept(hand->layer, &request, &result, &err)
             : what == WHAT_DROP ? change_drop(hand->layer, &request, &result, &err)
                                 : change_undo(hand->layer, accept, &request, &result, &err);
    assert_int_equal(support_open_fds(), fds);
    return failed ? alloc_strf("failed: %s\n", err.msg) : left_of(hand, &result);
}

char *hand_accept(struct hand *hand, unsigned flags, const char *const *paths)
{
    return act(hand, WHAT_ACCEPT, 0, flags, paths);
}

char *hand_drop(struct hand *hand, const char *const *paths)
{
    return act(hand, WHAT_DROP, 0, 0, paths);
}

char *hand_undo(struct hand *hand, int accept, const char *const *paths)
{
    return act(hand, WHAT_UNDO, accept, 0, paths);
}

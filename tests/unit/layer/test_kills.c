/* Each system call of a step change, of a merge of steps and of an undone step fails once, and is the last one of its
 * process once. What is found afterwards is old or new, and nothing stays open, mounted or behind.
 *
 * The sources of base and layer are compiled into this program once more, with CORDON_FAULTS. */
#include "real_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "base/sys.h"
#include "layer/inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CORDON_FAULTS
#error "has to be compiled with -DCORDON_FAULTS, like the sources of base and layer that it links"
#endif

static void step(struct place *place, struct layer *layer, const char *script)
{
    AUTO_FREE char *inside = alloc_strf("cd '%s' && %s", place->root, script);

    assert_int_equal(place_run(layer, inside), 0);
}

/* What it looks like inside; the caller frees. */
static char *look(struct place *place, struct layer *layer)
{
    AUTO_FREE char *script =
        alloc_strf("cd '%1$s' && find . -printf '%%p %%y %%m\\n' | LC_ALL=C sort > '%2$s/look'; "
                   "find . -type f -exec cat {} + | sort >> '%2$s/look'",
                   place->root, place->dir);

    assert_int_equal(place_run(layer, script), 0);
    return place_text(place, "look");
}

/* --- what is done --- */

struct deed {
    void (*prepare)(struct place *place, struct layer *layer);
    int (*run)(struct place *place, struct layer *layer, struct err *err);
    bool stays; /* the two looks are one */
};

static void prepare_step(struct place *place, struct layer *layer)
{
    step(place, layer, "echo a > one");
}

static int run_step(struct place *place, struct layer *layer, struct err *err)
{
    AUTO_FREE char *script = alloc_strf("cd '%s' && echo b > sub/two && rm one", place->root);
    char *argv[] = {(char *)"sh", (char *)"-c", script, NULL};
    const struct launch_options options = {.argv = argv, .cwd = "/"};
    struct sandbox_view *view = layer_view(layer);
    struct living living;
    int status;

    /* As a launch does, but that it may fail. */
    if (view->enter(view, &options, err))
        return -1;
    if (layer->launches != 1)
        return err_set(err, ERR_BUG, "launches");
    living_join(layer, script, &living);
    close(living.pipe);
    if (waitpid(living.pid, &status, 0) != living.pid || status)
        return err_set(err, ERR_BUG, "the command");
    view->leave(view, status);
    return 0;
}

/* A step in which nothing is written: what it ends with is all that there is to be killed in. */
static int run_empty(struct place *place, struct layer *layer, struct err *err)
{
    struct launch_options options = {.argv = (char *[]){(char *)"true", NULL}, .cwd = "/"};
    struct sandbox_view *view = layer_view(layer);

    if (view->enter(view, &options, err))
        return -1;
    view->leave(view, 0);
    return 0;
}

/* After a step in which nothing was written, and between mounts that are made ahead. */
static int run_ahead(struct place *place, struct layer *layer, struct err *err)
{
    int status = run_empty(place, layer, err);

    if (status == 0) {
        place_prepare(layer);
        status = run_step(place, layer, err);
        place_prepare(layer);
    }
    return status;
}

static void prepare_squash(struct place *place, struct layer *layer)
{
    step(place, layer, "mkdir -p d/e x && echo 1 > d/e/f && echo 1 > x/y && echo 0 > d/g");
    step(place, layer,
         "echo 2 > d/e/f && rm -r x && echo 2 > x && mkdir closed && chmod 0555 closed");
    step(place, layer,
         "rm -r sub && mkdir sub && echo 3 > sub/new && rm x && mkdir x && echo 3 > x/z");
    step(place, layer, "echo 4 > d/h && chmod 0500 d && rm one");
    step(place, layer, "echo 5 > last");
    step(place, layer, "echo 6 > x/zz");
}

static int run_squash(struct place *place, struct layer *layer, struct err *err)
{
    return squash_steps(layer, err);
}

static void prepare_undo(struct place *place, struct layer *layer)
{
    step(place, layer, "echo a > one && mkdir d && echo d > d/f && rm sub/two");
    step(place, layer, "echo b > other");
}

static int run_undo(struct place *place, struct layer *layer, struct err *err)
{
    return layer_undo_step(layer, 1, err);
}

/* --- how it ends --- */

static int count_name(void *data, const char *name)
{
    ++*(unsigned *)data;
    return 0;
}

/* Folders of steps that are there, and no others; no trash. */
static void check_tidy(struct layer *layer, unsigned nth)
{
    unsigned dirs = 0, files = 0;
    size_t len;
    struct stat st;
    struct err err;

    layer_steps(layer, &len);
    assert_int_equal(store_list(layer->fd, "roots/0", count_name, &dirs, &err), 0);
    assert_int_equal(store_list(layer->fd, "steps", count_name, &files, &err), 0);
    if (dirs != len || files != len)
        fail_msg("%u folders and %u files of %zu steps after call %u", dirs, files, len, nth);
    assert_int_equal(fstatat(layer->fd, "trash", &st, 0), -1);
    assert_int_equal(fstatat(layer->fd, "lent", &st, 0), -1);
}

static struct layer *prepare(struct place *place, const struct deed *deed, char **ret_look)
{
    struct layer *layer = place_layer(place, NULL);

    deed->prepare(place, layer);
    *ret_look = look(place, layer);
    return layer;
}

static struct layer *reopen(struct place *place, struct layer *layer)
{
    AUTO_FREE char *id = alloc_str(layer_id(layer));
    struct err err;

    layer_close(layer);
    layer = layer_open(id, NULL, LAYER_CHANGE, "test", &err);
    if (!layer || layer_cover(layer, &place->map, &err))
        fail_msg("%s", err.msg);
    return layer;
}

/* 0: it was over before the n-th call. */
static int try_once(struct place *place, const struct deed *deed, unsigned nth, int error)
{
    AUTO_FREE char *before = NULL;
    AUTO_FREE char *after = NULL;
    struct layer *layer = prepare(place, deed, &before);
    unsigned fds = support_open_fds();
    struct err err = ERR_UNTOUCHED;
    int result;
    bool has_failed;

    sys_fault_at(nth, error);
    result = deed->run(place, layer, &err);
    has_failed = sys_fault_count() >= nth;
    sys_fault_at(0, 0);
    if (result == 0)
        assert_untouched(err);
    assert_true(result || !has_failed || support_open_fds() <= fds + 2);
    assert_true(support_open_fds() <= fds + 2); /* the namespaces */
    layer = reopen(place, layer);
    check_tidy(layer, nth);
    after = look(place, layer);
    if (deed->stays || result)
        assert_string_equal(after, before);
    else
        assert_string_not_equal(after, before);
    assert_int_equal(layer_remove(layer, &err), 0);
    return has_failed;
}

static int kill_once(struct place *place, const struct deed *deed, unsigned nth)
{
    AUTO_FREE char *before = NULL;
    AUTO_FREE char *wanted = NULL;
    AUTO_FREE char *after = NULL;
    AUTO_FREE char *id = NULL;
    struct layer *layer = prepare(place, deed, &before);
    int status = 0;
    struct err err;
    pid_t pid;

    id = alloc_str(layer_id(layer));
    layer_close(layer);
    pid = fork();
    if (pid == 0) {
        layer = layer_open(id, NULL, LAYER_CHANGE, "test", &err);
        if (!layer || layer_cover(layer, &place->map, &err))
            _exit(3);
        sys_fault_at(nth, SYS_FAULT_KILL);
        status = deed->run(place, layer, &err);
        _exit(sys_fault_count() < nth ? 0 : status ? 2 : 1); /* 2: a child of ours was killed */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 3);
    layer = layer_open(id, NULL, LAYER_CHANGE, "test", &err);
    if (!layer || layer_cover(layer, &place->map, &err))
        fail_msg("after call %u: %s", nth, err.msg);
    assert_int_equal(layer_state(layer), LAYER_QUIET);
    check_tidy(layer, nth);
    after = look(place, layer);
    if (deed->stays) {
        assert_string_equal(after, before);
    } else if (!str_eq(after, before)) {
        layer_remove(layer, &err);
        layer = prepare(place, deed, &wanted);
        free(wanted);
        assert_int_equal(deed->run(place, layer, &err), 0);
        wanted = look(place, layer);
        assert_string_equal(after, wanted);
    }
    assert_int_equal(layer_remove(layer, &err), 0);
    return WIFSIGNALED(status) || WEXITSTATUS(status);
}

static const struct deed deeds[] = {
    {prepare_step, run_step, false},  {prepare_step, run_empty, true},
    {prepare_step, run_ahead, false}, {prepare_squash, run_squash, true},
    {prepare_undo, run_undo, false},
};

/* Of the calls of a long deed only some: make test-layers has them all. */
static unsigned stride(void)
{
    return getenv("CORDON_ALL_CALLS") ? 1 : 41;
}

static void test_fail(void **state)
{
    struct place place;

    if (!place_init(&place))
        skip();
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        for (unsigned nth = 1; try_once(&place, &deeds[i], nth, ENOSPC); nth += stride())
            continue;
    place_done(&place);
}

static void test_kill(void **state)
{
    struct place place;

    if (!place_init(&place))
        skip();
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        for (unsigned nth = 1; kill_once(&place, &deeds[i], nth); nth += stride())
            continue;
    place_done(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_kill),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* See real_layer.h. */
#include "real_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "sandbox/linux/overlay.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

bool place_init(struct place *place)
{
    const char *other = getenv("CORDON_TEST_STATE");
    AUTO_FREE char *state = NULL;
    AUTO_FREE char *sub = NULL;
    struct err err;

    *place = (struct place){.dir = support_scratch_new()};
    place->root = path_join(place->dir, "root");
    state = other ? alloc_strf("%s/state-%d-%s", other, (int)getpid(), path_name(place->dir))
                  : path_join(place->dir, "state"); /* elsewhere: scripts/test-layers */
    sub = path_join(place->root, "sub");
    assert_int_equal(mkdir(place->root, 0755), 0);
    assert_int_equal(mkdir(sub, 0755), 0);
    support_write(place->root, "one", "1\n");
    support_write(sub, "two", "2\n");
    setenv("XDG_STATE_HOME", state, 1);
    place->map.restricted = true;
    access_map_add(&place->map, "/", ACCESS_READ, ACCESS_DIR, "test");
    access_map_add(&place->map, place->root, ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_sort(&place->map);
    if (overlay_probe(place->root, place->dir, &err) == 0)
        return true;
    print_message("# no layers here: %s\n", err.msg);
    if (getenv("CORDON_MUST_WORK"))
        fail_msg("no layers here: %s", err.msg);
    place_done(place);
    return false;
}

void place_done(struct place *place)
{
    AUTO_FREE char *script = alloc_strf("chmod -R u+rwx '%s' 2>/dev/null", place->dir);

    if (system(script) < 0)
        fail();
    support_scratch_remove(place->dir);
    free(place->root);
    access_map_done(&place->map);
}

struct layer *place_layer(struct place *place, const char *name)
{
    const struct layer_options options = {.name = name, .held_by = "test"};
    struct err err;
    struct layer *layer = layer_create(&options, &err);

    if (!layer || layer_cover(layer, &place->map, &err))
        fail_msg("%s", err.msg);
    return layer;
}

void place_prepare(struct layer *layer)
{
    struct pollfd end = {.events = POLLIN};

    while ((end.fd = layer_prepare(layer)) >= 0)
        assert_int_equal(poll(&end, 1, -1), 1);
}

static void child(const struct sandbox_view *view, int input, const char *script)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (setns(view->users, CLONE_NEWUSER) || setns(view->mounts, CLONE_NEWNS))
        _exit(99);
    dup3(input, 0, 0);
    execl("/bin/sh", "sh", "-c", script, (char *)NULL);
    _exit(98);
}

void living_join(struct layer *layer, const char *script, struct living *ret)
{
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    *ret = (struct living){.layer = layer, .pid = fork(), .pipe = ends[1]};
    if (ret->pid == 0)
        child(layer_view(layer), ends[0], script);
    assert_true(ret->pid > 0);
    close(ends[0]);
}

void living_start(struct layer *layer, const char *script, struct living *ret)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    const struct launch_options options = {.argv = argv, .cwd = "/"};
    struct sandbox_view *view = layer_view(layer);
    struct err err;

    if (view->enter(view, &options, &err))
        fail_msg("%s", err.msg);
    living_join(layer, script, ret);
}

int living_end(struct living *living)
{
    struct sandbox_view *view = layer_view(living->layer);
    int status = -1;

    close(living->pipe);
    assert_int_equal(waitpid(living->pid, &status, 0), living->pid);
    view->leave(view, status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int place_run(struct layer *layer, const char *script)
{
    struct living living;

    living_start(layer, script, &living);
    return living_end(&living);
}

char *place_text(const struct place *place, const char *path)
{
    AUTO_FREE char *whole = path_join(place->dir, path);
    AUTO(buf_done) struct buf text;
    struct err err;

    buf_init(&text, 1 << 20);
    if (fd_read_file(whole, 1 << 20, &text, &err))
        return NULL;
    return buf_take(&text);
}

void assert_text(const struct place *place, const char *path, const char *text)
{
    AUTO_FREE char *found = place_text(place, path);

    if (!found)
        fail_msg("there is no %s", path);
    assert_string_equal(found, text);
}

void assert_none(const struct place *place, const char *path)
{
    AUTO_FREE char *whole = path_join(place->dir, path);
    struct stat st;

    assert_int_equal(lstat(whole, &st), -1);
}

/* Layers on the disk when something is not as it should be: somebody else's folder, files that were changed, two at once, a
 * holder that was killed; and what they lie over. */
#include "real_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { YEAR_S = 365 * 86400 };

static void shell(const struct place *place, const char *script)
{
    AUTO_FREE char *whole = alloc_strf("cd '%s' && %s", place->dir, script);

    assert_int_equal(system(whole), 0);
}

static int inside(struct place *place, struct layer *layer, const char *script)
{
    AUTO_FREE char *whole = alloc_strf("cd '%s' && %s", place->root, script);

    return place_run(layer, whole);
}

/* Changes a file of the layer by sed(1). */
static void edit(const struct place *place, const char *id, const char *file,
                 const char *expression)
{
    AUTO_FREE char *script =
        alloc_strf("sed -i '%s' state/cordon/layers/%s/%s", expression, id, file);

    shell(place, script);
}

static void test_one_of_a_name(void **state)
{
    struct place place;
    pid_t makers[6];
    unsigned made = 0;
    struct layer *layer;
    struct err err;

    if (!place_init(&place))
        skip();
    for (size_t i = 0; i < 6; i++) {
        makers[i] = fork();
        if (makers[i] == 0) {
            layer = layer_create(&(struct layer_options){.name = "same"}, &err);
            if (!layer)
                _exit(err.code == ERR_CONFLICT ? 1 : 2);
            _exit(layer_cover(layer, &place.map, &err) || inside(&place, layer, "touch x") ? 2 : 0);
        }
    }
    for (size_t i = 0; i < 6; i++) {
        int status;

        assert_int_equal(waitpid(makers[i], &status, 0), makers[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 2);
        made += WEXITSTATUS(status) == 0;
    }
    assert_int_equal(made, 1);
    layer = layer_open("same", NULL, LAYER_CHANGE, "test", &err);
    assert_non_null(layer);
    assert_null(layer_create(&(struct layer_options){.name = "same"}, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_null(layer_create(&(struct layer_options){.name = "../x"}, &err));
    assert_int_equal(err.code, ERR_INVALID);
    layer_close(layer);
    place_done(&place);
}

static void test_folders_of_others(void **state)
{
    static const char *const spoils[] = {
        "mkdir -p state/cordon/layers && chmod 0755 state/cordon/layers",
        "rm -r state; mkdir -p state/cordon o; chmod 0700 o; ln -s ../../o state/cordon/layers",
        "rm -r state; mkdir -p state/cordon && chmod 0777 state/cordon",
        "rm -r state; mkdir state && touch state/cordon",
    };
    struct place place;
    struct err err;

    if (!place_init(&place))
        skip();
    for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++) {
        shell(&place, spoils[i]);
        assert_null(layer_create(&(struct layer_options){.name = NULL}, &err));
        assert_contains(err.msg, "/state/cordon");
    }
    place_done(&place);
}

static void test_bad_files(void **state)
{
    static const char *const spoils[][3] = {
        {"layer.json", "s/\"version\": 1/\"version\": 2/", "$.version: made by a newer Cordon"},
        {"layer.json", "s/\"dev\": [0-9]*/\"dev\": \"x\"/", "$.roots[0].dev: has the wrong type"},
        {"layer.json", "s/^{/[/", "line "},
        {"layer.json", "s|\"path\": \"|&/..|", "$.roots[0].path: should be a clean absolute path"},
        {"steps/0001.json", "s/\"number\": 1/\"number\": 9/", "$.number: should be 1"},
        {"steps/0001.json", "s/\"begun\": [0-9]*/\"begun\": null/", "$.begun"},
    };
    struct place place;

    if (!place_init(&place))
        skip();
    for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++) {
        AUTO(layer_infos_done) struct layer_infos infos = {0};
        AUTO(strv_done) struct strv problems = {0};
        struct layer *layer = place_layer(&place, NULL);
        AUTO_FREE char *id = alloc_str(layer_id(layer));
        struct err err;

        assert_int_equal(inside(&place, layer, "touch new"), 0);
        layer_close(layer);
        edit(&place, id, spoils[i][0], spoils[i][1]);
        assert_null(layer_open(id, NULL, LAYER_READ, NULL, &err));
        assert_contains(err.msg, spoils[i][0]);
        assert_contains(err.msg, spoils[i][2]);
        assert_int_equal(layers_list(false, &infos, &problems, &err), 0);
        for (size_t j = 0; j < infos.len; j++)
            assert_string_not_equal(infos.items[j].id, id);
        assert_contains(problems.items[0], id);
        shell(&place, "chmod -R u+rwx state && rm -r state");
    }
    place_done(&place);
}

static void test_another_boot(void **state)
{
    struct place place;
    struct layer *layer;
    AUTO_FREE char *id = NULL;
    size_t len;
    struct err err;
    time_t begun;

    if (!place_init(&place))
        skip();
    layer = place_layer(&place, NULL);
    id = alloc_str(layer_id(layer));
    assert_int_equal(inside(&place, layer, "touch new"), 0);
    begun = layer_steps(layer, &len)->begun.tv_sec;
    layer_close(layer);
    /* The wall clock was far ahead when the step began. */
    shell(&place, "sed -i 's/\"clock\": [0-9]*/\"clock\": 9000000000000000000/' "
                  "state/cordon/layers/*/steps/0001.json");
    layer = layer_open(id, NULL, LAYER_READ, NULL, &err);
    assert_non_null(layer);
    assert_true(layer_steps(layer, &len)->begun.tv_sec < begun);
    assert_int_equal(layer_state(layer), LAYER_QUIET);
    layer_close(layer);
    /* Of a step of another boot contents may be missing; an empty file is what a power failure leaves. */
    edit(&place, id, "steps/0001.json", "s/\"boot\": \"[^\"]*/\"boot\": \"other/");
    layer = layer_open(id, NULL, LAYER_READ, NULL, &err);
    assert_int_equal(layer_state(layer), LAYER_SUSPECT);
    layer_close(layer);
    shell(&place, ": > $(echo state/cordon/layers/*/steps/0001.json)");
    layer = layer_open(id, NULL, LAYER_CHANGE, "test", &err);
    assert_non_null(layer);
    assert_int_equal(layer_state(layer), LAYER_SUSPECT);
    assert_int_equal(layer_steps(layer, &len)->begun.tv_sec, 0);
    assert_int_equal(len, 1);
    layer_close(layer);
    place_done(&place);
}

static void test_holder_is_killed(void **state)
{
    struct place place;
    struct layer *layer;
    AUTO_FREE char *id = NULL;
    struct living living;
    struct err err;
    int ready[2];
    pid_t holder;
    char byte;

    if (!place_init(&place))
        skip();
    layer = place_layer(&place, NULL);
    id = alloc_str(layer_id(layer));
    assert_int_equal(inside(&place, layer, "echo a > before"), 0);
    layer_close(layer);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    holder = fork();
    if (holder == 0) {
        AUTO_FREE char *script = alloc_strf(
            "cd '%s'; echo b > meanwhile; (sleep 0.3; echo c > late) & echo x > '%s/up'; read line",
            place.root, place.dir);

        layer = layer_open(id, NULL, LAYER_CHANGE, "test", &err);
        if (!layer || layer_cover(layer, &place.map, &err))
            _exit(1);
        living_start(layer, script, &living);
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    layer = layer_open(id, NULL, LAYER_READ, NULL, &err);
    assert_int_equal(layer_state(layer), LAYER_ALIVE);
    layer_close(layer);
    for (AUTO_FREE char *up = NULL; !up; up = place_text(&place, "up"))
        usleep(1000); /* allow: until the command has written */
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    layer = layer_open(id, NULL, LAYER_READ, NULL, &err);
    assert_int_equal(layer_state(layer), LAYER_ORPHANED);
    layer_close(layer);
    /* Its child is not killed with the shell, and writes after a while: that is waited for. */
    layer = layer_open(id, NULL, LAYER_CHANGE, "test", &err);
    if (!layer || layer_cover(layer, &place.map, &err))
        fail_msg("%s", err.msg);
    assert_int_equal(layer_state(layer), LAYER_QUIET);
    assert_int_equal(
        inside(&place, layer, "grep -q a before && grep -q b meanwhile && grep -q c late"), 0);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(layer_remove(layer, &err), 0);
    place_done(&place);
}

/* --- what it lies over --- */

static struct access_entry *allow(struct place *place, const char *path, enum access access,
                                  enum access_kind kind)
{
    AUTO_FREE char *whole = path_join(place->dir, path);

    access_map_add(&place->map, whole, access, kind, "test");
    access_map_sort(&place->map);
    return access_map_exact(&place->map, whole);
}

static void test_more_roots(void **state)
{
    struct place place;
    struct layer *layer;
    struct living living;
    struct err err;
    size_t len;

    if (!place_init(&place))
        skip();
    shell(&place, "mkdir more outer outer/in && echo f > file");
    layer = place_layer(&place, "w");
    living_start(layer, "read line", &living);
    allow(&place, "more", ACCESS_WRITE, ACCESS_DIR);
    assert_int_equal(layer_cover(layer, &place.map, &err), -1);
    assert_int_equal(err.code, ERR_BUSY);
    living_end(&living);
    assert_int_equal(layer_cover(layer, &place.map, &err), 0);
    layer_roots(layer, &len);
    assert_int_equal(len, 2);
    assert_int_equal(inside(&place, layer, "touch x && touch ../more/y"), 0);
    assert_none(&place, "more/y");
    assert_int_equal(inside(&place, layer, "test -e ../more/y && rm ../more/y"), 0);
    access_map_add(&place.map, place.dir, ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_sort(&place.map);
    assert_int_equal(layer_cover(layer, &place.map, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    layer_close(layer);
    shell(&place, "mv root gone && mkdir root");
    layer = layer_open("w", NULL, LAYER_CHANGE, "test", &err);
    assert_int_equal(layer_cover(layer, &place.map, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_contains(err.msg, "/root");
    layer_close(layer);
    place_done(&place);
}

static void test_what_is_left_out(void **state)
{
    struct place place;
    struct layer *layer;
    struct err err;
    AUTO_FREE char *direct = NULL;
    AUTO_FREE char *tmp = NULL;
    char *directs[2] = {0};
    struct access_entry *entry;

    if (!place_init(&place))
        skip();
    shell(&place, "mkdir root/.git root/cache home home/.cache home/.cache/cordon && echo r > "
                  "root/.git/HEAD");
    direct = directs[0] = alloc_strf("%s/root/cache", place.dir);
    place.map.home = alloc_strf("%s/home", place.dir);
    allow(&place, "home/.cache/cordon", ACCESS_WRITE, ACCESS_DIR);
    allow(&place, "root/.git", ACCESS_READ, ACCESS_DIR)->is_protected = true;
    access_map_add(&place.map, "/tmp", ACCESS_WRITE, ACCESS_DIR, "test")->source = alloc_str("");
    access_map_sort(&place.map);
    layer = layer_create(&(struct layer_options){.direct = directs}, &err);
    assert_non_null(layer);
    assert_int_equal(layer_cover(layer, &place.map, &err), 0);
    assert_string_equal(layer_view(layer)->roots[0], place.root);
    assert_null(layer_view(layer)->roots[1]);
    entry = access_map_exact(&place.map, "/tmp");
    tmp = alloc_strf("%s/tmp/tmp", layer_folder(layer));
    assert_string_equal(entry->source, tmp);
    assert_int_equal(
        inside(&place, layer, "echo d > cache/kept && grep -q r .git/HEAD && echo n > new"), 0);
    assert_text(&place, "root/cache/kept", "d\n");
    assert_none(&place, "root/new");
    layer_close(layer);

    /* With --layer-git it is the layer's. */
    layer = layer_create(&(struct layer_options){.has_git = true}, &err);
    assert_int_equal(layer_cover(layer, &place.map, &err), 0);
    assert_int_equal(inside(&place, layer, "echo w > .git/HEAD"), 0);
    assert_text(&place, "root/.git/HEAD", "r\n");
    layer_close(layer);

    /* A file by itself, and everything. */
    shell(&place, "echo f > file");
    allow(&place, "file", ACCESS_WRITE, ACCESS_FILE);
    layer = layer_create(&(struct layer_options){.held_by = "test"}, &err);
    assert_int_equal(layer_cover(layer, &place.map, &err), -1);
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    assert_contains(err.msg, "/file");
    place.map.restricted = false;
    assert_int_equal(layer_cover(layer, &place.map, &err), -1);
    assert_int_equal(err.code, ERR_UNSUPPORTED);
    layer_close(layer);
    place_done(&place);
}

/* What has worked is known until the next boot; what does not work then leaves nothing. */
static void test_it_has_worked(void **state)
{
    struct place place;
    struct layer *layer;
    struct launch_options options = {.argv = (char *[]){(char *)"true", NULL}, .cwd = "/"};
    AUTO_FREE char *folder = NULL;
    struct err err;

    if (!place_init(&place))
        skip();
    for (int i = 0; i < 3; i++) {
        layer_close(place_layer(&place, NULL));
        shell(&place,
              "cd state/cordon/layers && test $(ls | wc -l) = 0 && test $(wc -l < .worked) = 2 && "
              "grep -qx $(stat -c %d:%i ../../../root) .worked && "
              "grep -qx $(cat /proc/sys/kernel/random/boot_id) .worked");
        shell(&place, i ? "printf x >> state/cordon/layers/.worked"
                        : "sed -i 's/^........-/00000000-/' state/cordon/layers/.worked");
    }
    layer = place_layer(&place, NULL);
    folder = alloc_str(layer_folder(layer));
    shell(&place, "mv root gone && mkdir root");
    assert_int_equal(layer_view(layer)->enter(layer_view(layer), &options, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    layer_close(layer);
    assert_int_equal(access(folder, F_OK), -1);
    place_done(&place);
}

static void test_limit_and_prune(void **state)
{
    struct place place;
    struct layer *layer;
    AUTO(strv_done) struct strv gone = {0};
    struct launch_options options = {.argv = (char *[]){(char *)"true", NULL}, .cwd = "/"};
    struct err err;

    if (!place_init(&place))
        skip();
    layer = layer_create(&(struct layer_options){.name = "full", .max_bytes = 100000}, &err);
    assert_int_equal(layer_cover(layer, &place.map, &err), 0);
    assert_int_equal(inside(&place, layer, "head -c 200000 /dev/urandom > big"), 0);
    assert_int_equal(layer_view(layer)->enter(layer_view(layer), &options, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    layer_close(layer);
    layer = layer_open("full", NULL, LAYER_CHANGE, "test", &err);
    assert_int_equal(layer_cover(layer, &place.map, &err), 0);
    assert_int_equal(layer_view(layer)->enter(layer_view(layer), &options, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    layer_close(layer);
    /* So old as none of the user's own. */
    shell(&place, "sed -i 's/\\(ended\\|created\\)\": [0-9]*/\\1\": 1000000000/' "
                  "state/cordon/layers/*/layer.json state/cordon/layers/*/steps/0001.json");
    assert_int_equal(layers_prune(UINT64_C(30) * YEAR_S, false, &gone, &err), 0);
    assert_int_equal(gone.len, 0);
    assert_int_equal(layers_prune(UINT64_C(90) * YEAR_S, true, &gone, &err), 0);
    assert_int_equal(gone.len, 0);
    assert_int_equal(layers_prune(UINT64_C(30) * YEAR_S, true, &gone, &err), 0);
    assert_int_equal(gone.len, 1);
    assert_string_equal(gone.items[0], "full");
    place_done(&place);
}

/* By itself once a day, not with each that is made; and who has a name is found without reading all of the others. */
static void test_daily_and_found(void **state)
{
    struct place place;
    AUTO_FREE char *id = NULL;
    struct err err;

    if (!place_init(&place))
        skip();
    for (int i = 0; i < 3; i++) {
        const char *name = i == 0 ? "first" : i == 1 ? "second" : "third";
        struct layer *layer = layer_create(&(struct layer_options){.name = name}, &err);
        AUTO_FREE char *begin = alloc_strn(layer_id(layer), 8);
        AUTO_FREE char *age =
            alloc_strf("find %s -name '*.json' -exec sed -i 's/\\(ended\\|created\\)\": "
                       "[0-9]*/\\1\": 1000000000/' {} +",
                       layer_folder(layer));
        AUTO_FREE char *touch =
            alloc_strf("touch -d @1000000000 %s/../.pruned", layer_folder(layer));
        AUTO_FREE char *by_name = layers_find_id(name);
        AUTO_FREE char *by_begin = layers_find_id(begin);

        assert_string_equal(by_name, layer_id(layer));
        assert_string_equal(by_begin, layer_id(layer));
        assert_null(layer_create(&(struct layer_options){.name = name}, &err));
        assert_int_equal(err.code, ERR_CONFLICT);
        assert_int_equal(layer_cover(layer, &place.map, &err), 0);
        assert_int_equal(inside(&place, layer, "true"), 0);
        layer_close(layer);
        shell(&place, age);
        if (i == 2)
            shell(&place, touch);
        layers_prune_daily(UINT64_C(30) * YEAR_S);
        id = layers_find_id(name);
        assert_true((i == 1) == !!id);
        free(TAKE_PTR(id));
    }
    id = layers_find_id("second");
    assert_null(id);
    place_done(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_of_a_name),    cmocka_unit_test(test_folders_of_others),
        cmocka_unit_test(test_bad_files),        cmocka_unit_test(test_another_boot),
        cmocka_unit_test(test_holder_is_killed), cmocka_unit_test(test_more_roots),
        cmocka_unit_test(test_what_is_left_out), cmocka_unit_test(test_limit_and_prune),
        cmocka_unit_test(test_daily_and_found),  cmocka_unit_test(test_it_has_worked),
    };

    unsetenv("CORDON_TEST_STATE"); /* what is looked at lies beside the root */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

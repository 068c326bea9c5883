/* Ways out of the directory. Each is first tried with a writer that knows nothing of them (the attack
 * is real), then as a patch: the file outside stays as it is.
 *
 *     base/ws         the directory of the patch
 *     base/out/file   what must not change */
#include "tree.h"

#include "../base/cases.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "patch/apply.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    char *base;
    char *ws;
    char *out; /* the file outside */
};

static int setup(void **state)
{
    struct place *place = alloc_zero(1, sizeof *place);
    AUTO_JSON json_t *tree = json_pack("{s:s, s:s}", "out/file", "secret\n", "ws/mine", "mine\n");

    place->base = tree_make(tree);
    place->ws = path_join(place->base, "ws");
    place->out = path_join(place->base, "out/file");
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;

    tree_remove(place->base);
    free(place->ws);
    free(place->out);
    free(place);
    return 0;
}

static void assert_text(const char *path, const char *wanted)
{
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    if (fd_read_file(path, 1 << 16, &text, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(text.data, wanted);
}

static void naive_write(const struct place *place, const char *path)
{
    AUTO_FREE char *whole = path[0] == '/' ? alloc_str(path) : path_join(place->ws, path);
    AUTO_CLOSE int fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    assert_true(fd >= 0 && write(fd, "evil\n", 5) == 5);
}

/* The attack by way of `path` works on a naive writer, and not by a patch that adds, updates,
 * deletes or moves to it. */
static void check_attack(const struct place *place, const char *path)
{
    static const char *const forms[] = {
        "*** Begin Patch\n*** Add File: %s\n+evil\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: %s\n@@\n-secret\n+evil\n*** End Patch\n",
        "*** Begin Patch\n*** Delete File: %s\n*** End Patch\n",
        ("*** Begin Patch\n*** Update File: mine\n*** Move to: %s\n@@\n-mine\n+evil\n"
         "*** End Patch\n"),
    };
    struct err err;

    naive_write(place, path);
    assert_text(place->out, "evil\n");
    tree_put(place->base, "out/file", "secret\n");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *cut = strstr(forms[i], "%s");
        AUTO_FREE char *text =
            alloc_strf("%.*s%s%s", (int)(cut - forms[i]), forms[i], path, cut + 2);

        assert_int_equal(tree_patch(place->ws, text, &err), -1);
        assert_int_equal(err.code, ERR_FORBIDDEN);
        assert_text(place->out, "secret\n");
    }
}

static void parent(void **state)
{
    check_attack(*state, "../out/file");
}

static void parent_from_below(void **state)
{
    struct place *place = *state;

    tree_put(place->ws, "d/e/f", "x\n");
    check_attack(place, "d/e/../../../out/file");
}

static void absolute(void **state)
{
    struct place *place = *state;

    check_attack(place, place->out);
}

static void put_link(const struct place *place, const char *target, const char *name)
{
    AUTO_FREE char *path = path_join(place->ws, name);

    assert_int_equal(symlink(target, path), 0);
}

static void linked_file(void **state)
{
    put_link(*state, "../out/file", "link");
    check_attack(*state, "link");
}

static void linked_dir(void **state)
{
    put_link(*state, "../out", "link");
    check_attack(*state, "link/file");
}

static void linked_dir_absolute(void **state)
{
    struct place *place = *state;
    AUTO_FREE char *out = path_join(place->base, "out");

    put_link(place, out, "link");
    check_attack(place, "link/file");
}

static void linked_dir_below(void **state)
{
    struct place *place = *state;

    tree_put(place->ws, "d/f", "x\n");
    put_link(place, "../../out", "d/link");
    check_attack(place, "d/link/file");
}

static void magic_link(void **state)
{
    struct place *place = *state;

    put_link(place, "/proc/self/cwd", "cwd");
    assert_int_equal(chdir(place->base), 0);
    check_attack(place, "cwd/out/file");
    assert_int_equal(chdir("/"), 0);
}

/* Nothing can be refused here: what is inside is changed, and what is outside is not. */
static void hard_link(void **state)
{
    struct place *place = *state;
    AUTO_FREE char *inside = path_join(place->ws, "hard");
    struct err err;

    assert_int_equal(link(place->out, inside), 0);
    naive_write(place, "hard");
    assert_text(place->out, "evil\n");
    tree_put(place->base, "out/file", "secret\n");
    assert_int_equal(tree_patch(place->ws,
                                "*** Begin Patch\n*** Update File: hard\n@@\n-secret\n+evil\n"
                                "*** End Patch\n",
                                &err),
                     0);
    assert_text(inside, "evil\n");
    assert_text(place->out, "secret\n");
}

/* --- races: another process acts between the reading and the writing --- */

struct half {
    struct patch *patch;
    struct patch_dir dir;
    struct recovery recovery;
    struct apply apply;
    struct changes changes;
};

static void half_done(struct half *half)
{
    apply_end(&half->apply);
    recovery_done(&half->recovery);
    patch_changes_done(&half->changes);
    patch_dir_done(&half->dir);
    patch_free(half->patch);
}

static void half_begin(const struct place *place, const char *text, struct half *half)
{
    struct source source;
    struct err err;

    half->patch = patch_parse(text, strlen(text), &err);
    assert_non_null(half->patch);
    assert_int_equal(patch_dir_open(place->ws, &half->dir, &err), 0);
    assert_int_equal(apply_begin(&half->dir, &half->recovery, &half->apply, &err), 0);
    source = patch_dir_source(&half->dir);
    if (changes_compute(half->patch, &source, half->dir.path, &half->changes, &err))
        fail_msg("%s", err.msg);
}

static void rename_in(const struct place *place, const char *from, const char *to)
{
    AUTO_FREE char *old = path_join(place->ws, from);
    AUTO_FREE char *new = path_join(place->ws, to);

    assert_int_equal(rename(old, new), 0);
}

static void dir_becomes_link(void **state)
{
    struct place *place = *state;
    AUTO(half_done) struct half half = {.dir = {.fd = -1}, .apply = {.ledger = {.fd = -1}}};
    struct err err;

    tree_put(place->ws, "d/file", "secret\n");
    half_begin(place,
               "*** Begin Patch\n*** Update File: mine\n@@\n-mine\n+new\n"
               "*** Update File: d/file\n@@\n-secret\n+evil\n*** End Patch\n",
               &half);
    rename_in(place, "d", "was-d");
    put_link(place, "../out", "d");
    naive_write(place, "d/file");
    assert_text(place->out, "evil\n");
    tree_put(place->base, "out/file", "secret\n");
    assert_int_equal(apply_commit(&half.apply, &half.changes, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    assert_text(place->out, "secret\n");
}

static void file_is_changed(void **state)
{
    struct place *place = *state;
    AUTO_FREE char *mine = path_join(place->ws, "mine");
    AUTO_FREE char *other = path_join(place->ws, "other");
    AUTO(half_done) struct half half = {.dir = {.fd = -1}, .apply = {.ledger = {.fd = -1}}};
    struct err err;

    tree_put(place->ws, "other", "1\n");
    half_begin(place,
               "*** Begin Patch\n*** Update File: other\n@@\n-1\n+2\n"
               "*** Update File: mine\n@@\n-mine\n+new\n*** End Patch\n",
               &half);
    tree_put(place->ws, "mine", "changed by hand\n");
    assert_int_equal(apply_commit(&half.apply, &half.changes, &err), -1);
    assert_string_equal(err.msg, "mine was changed by another process in the meantime; try again");
    assert_text(mine, "changed by hand\n");
    assert_text(other, "1\n");
}

/* After everything has been prepared: what the exchange brings out is not what was read. */
static void file_is_changed_at_the_last_moment(void **state)
{
    struct place *place = *state;
    AUTO_FREE char *mine = path_join(place->ws, "mine");
    AUTO(half_done) struct half half = {.dir = {.fd = -1}, .apply = {.ledger = {.fd = -1}}};
    AUTO(steps_done) struct steps steps = {.id = "0123456789abcdef"};
    enum step_state look = STEP_DONE;
    struct err err;

    half_begin(place, "*** Begin Patch\n*** Update File: mine\n@@\n-mine\n+new\n*** End Patch\n",
               &half);
    assert_int_equal(steps_plan(&half.dir, &half.changes, &steps, &err), 0);
    assert_int_equal(step_prepare(&half.dir, &half.changes, &steps.items[0], &err), 0);
    tree_put(place->ws, "mine", "changed by hand\n");
    assert_int_equal(step_do(&half.dir, &steps.items[0], &err), -1);
    assert_string_equal(err.msg, "mine was changed by another process in the meantime; try again");
    assert_text(mine, "changed by hand\n");
    assert_int_equal(step_check(&half.dir, &steps.items[0], &look, &err), 0);
    assert_int_equal(look, STEP_TODO);
    assert_int_equal(step_discard(&half.dir, &steps.items[0], &err), 0);
}

/* A link of the size and time of the file that was read is another thing nevertheless. */
static void file_becomes_link_at_the_last_moment(void **state)
{
    struct place *place = *state;
    AUTO_FREE char *mine = path_join(place->ws, "mine");
    AUTO(half_done) struct half half = {.dir = {.fd = -1}, .apply = {.ledger = {.fd = -1}}};
    AUTO(steps_done) struct steps steps = {.id = "0123456789abcdef"};
    struct stat st;
    struct err err;

    half_begin(place, "*** Begin Patch\n*** Update File: mine\n@@\n-mine\n+new\n*** End Patch\n",
               &half);
    assert_int_equal(steps_plan(&half.dir, &half.changes, &steps, &err), 0);
    assert_int_equal(step_prepare(&half.dir, &half.changes, &steps.items[0], &err), 0);
    assert_int_equal(stat(mine, &st), 0);
    assert_int_equal(unlink(mine), 0);
    put_link(place, "12345", "mine"); /* as long as "mine\n" */
    assert_int_equal(
        utimensat(AT_FDCWD, mine, (struct timespec[]){st.st_atim, st.st_mtim}, AT_SYMLINK_NOFOLLOW),
        0);
    assert_int_equal(step_do(&half.dir, &steps.items[0], &err), -1);
    assert_string_equal(err.msg, "mine was changed by another process in the meantime; try again");
    assert_int_equal(lstat(mine, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(step_discard(&half.dir, &steps.items[0], &err), 0);
}

static void file_appears(void **state)
{
    struct place *place = *state;
    AUTO_FREE char *new = path_join(place->ws, "new");
    AUTO(half_done) struct half half = {.dir = {.fd = -1}, .apply = {.ledger = {.fd = -1}}};
    struct err err;

    half_begin(place,
               "*** Begin Patch\n*** Delete File: mine\n*** Add File: new\n+x\n*** End Patch\n",
               &half);
    tree_put(place->ws, "new", "made by hand\n");
    assert_int_equal(apply_commit(&half.apply, &half.changes, &err), -1);
    assert_string_equal(err.msg, "new was made by another process in the meantime; try again");
    assert_text(new, "made by hand\n");
}

/* --- ledgers that an attacker has written --- */

static void put_ledger(const struct place *place, const char *text, size_t len)
{
    AUTO_FREE char *path = path_join(place->ws, LEDGER_NAME);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && write(fd, text, len) == (ssize_t)len);
}

#define PUT_LEDGER(place, text) put_ledger(place, text, sizeof(text) - 1)

static int recover(const struct place *place, struct err *err)
{
    return tree_patch(place->ws, "*** Begin Patch\n*** Add File: n\n+x\n*** End Patch\n", err);
}

static void planted_ledger_leads_out(void **state)
{
    struct err err;

    PUT_LEDGER(*state, "cordon-patch 1\0"
                       "0123456789abcdef\0"
                       "D\0"
                       "../out/file\0"
                       "=\0"
                       "0 7 0 0 0 0\0"
                       "+\0");
    assert_int_equal(recover(*state, &err), -1);
    assert_string_equal(err.msg,
                        ".cordon-patch is no ledger of a patch; remove it if it is not needed");
    assert_text(((struct place *)*state)->out, "secret\n");
}

static void planted_ledger_by_link(void **state)
{
    struct err err;

    put_link(*state, "../out", "link");
    PUT_LEDGER(*state, "cordon-patch 1\0"
                       "0123456789abcdef\0"
                       "D\0"
                       "link/file\0"
                       "=\0"
                       "0 7 0 0 0 0\0"
                       "+\0");
    assert_int_equal(recover(*state, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    assert_text(((struct place *)*state)->out, "secret\n");
}

/* A process that could not write in a directory could not have prepared anything there. */
static void planted_ledger_without_preparation(void **state)
{
    struct place *place = *state;
    AUTO_FREE char *mine = path_join(place->ws, "mine");
    struct err err;

    PUT_LEDGER(place, "cordon-patch 1\0"
                      "0123456789abcdef\0"
                      "D\0"
                      "mine\0"
                      "=\0"
                      "0 5 0 0 0 0\0"
                      "+\0");
    assert_int_equal(recover(place, &err), 0);
    assert_text(mine, "mine\n");
}

static void planted_ledger_is_a_link(void **state)
{
    struct err err;

    put_link(*state, "../out/file", LEDGER_NAME);
    assert_int_equal(recover(*state, &err), -1);
    assert_text(((struct place *)*state)->out, "secret\n");
}

static void ledger_of_others(void **state)
{
    struct place *place = *state;
    AUTO_FREE char *path = path_join(place->ws, LEDGER_NAME);
    struct err err;

    PUT_LEDGER(place, "");
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(recover(place, &err), -1);
    assert_string_equal(err.msg,
                        ".cordon-patch is not a ledger of yours; remove it if it is not needed");
}

#define ATTACK(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACK(parent),
        ATTACK(parent_from_below),
        ATTACK(absolute),
        ATTACK(linked_file),
        ATTACK(linked_dir),
        ATTACK(linked_dir_absolute),
        ATTACK(linked_dir_below),
        ATTACK(magic_link),
        ATTACK(hard_link),
        ATTACK(dir_becomes_link),
        ATTACK(file_is_changed),
        ATTACK(file_is_changed_at_the_last_moment),
        ATTACK(file_becomes_link_at_the_last_moment),
        ATTACK(file_appears),
        ATTACK(planted_ledger_leads_out),
        ATTACK(planted_ledger_by_link),
        ATTACK(planted_ledger_without_preparation),
        ATTACK(planted_ledger_is_a_link),
        ATTACK(ledger_of_others),
    };

    umask(022);
    return cmocka_run_group_tests_name("patch/attack", tests, NULL, NULL);
}

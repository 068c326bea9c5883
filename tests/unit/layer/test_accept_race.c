/* Two at work on one tree: commands in a layer, and a person outside.
 *
 *   - a random editor on both sides, many times over (CORDON_SEEDS; where: $TMPDIR): what the person wrote since the step
 *     began is there after accepting all, and what was left without need is counted
 *   - a person who saves files while they are accepted
 *   - somebody who swaps the folders on the way with links that lead out, for CORDON_STORM */
#include "hand_layer.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 40, FOLDERS = 5 };

static unsigned wanted(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);

    return text ? (unsigned)atoi(text) : otherwise;
}

static unsigned random_state;

static unsigned dice(unsigned sides)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 16) % sides;
}

/* --- a person, with the ways of editors --- */

enum user { USER_NOTHING, USER_WROTE, USER_REMOVED };

struct file {
    char path[32];
    bool was_there;
    enum user user; /* since the step began */
    bool in_layer;  /* changed there */
    bool is_copy;   /* by a copy of the real one, so that it is known that there was one */
    char text[64];  /* what the person wrote last */
};

static void write_in_place(const char *path, const char *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd >= 0)
        assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
}

static void replace(const char *path, const char *text)
{
    AUTO_FREE char *temporary = alloc_strf("%s~", path);

    write_in_place(temporary, text);
    assert_int_equal(rename(temporary, path), 0);
}

static void person_edits(const struct hand *hand, struct file *file, unsigned turn)
{
    AUTO_FREE char *path = path_join(hand->real, file->path);
    const unsigned way = dice(4);

    snprintf(file->text, sizeof file->text, "person %u\n", turn);
    file->user = USER_WROTE;
    if (way == 0) {
        unlink(path);
        file->user = USER_REMOVED;
    } else if (way == 1) {
        replace(path, file->text);
    } else {
        write_in_place(path, file->text);
    }
}

/* --- the commands, as overlayfs leaves what they did --- */

static void layer_edits(struct file *file, struct buf *step, unsigned turn)
{
    const unsigned way = dice(4);

    file->in_layer = true;
    file->is_copy = false;
    if (way == 0 && file->was_there) {
        buf_appendf(step, "w %s\n", file->path);
    } else if (way == 1 || !file->was_there) {
        buf_appendf(step, "f %s layer %u\n", file->path, turn);
    } else {
        buf_appendf(step, "c %s layer %u\n", file->path, turn);
        file->is_copy = true;
    }
}

static void judge(const struct hand *hand, const struct file *file, unsigned seed)
{
    AUTO_FREE char *path = path_join(hand->real, file->path);
    char text[64] = "";
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (file->user == USER_WROTE &&
        (fd < 0 || read(fd, text, sizeof text - 1) < 0 || !str_eq(text, file->text)))
        fail_msg("seed %u: %s was lost: \"%s\" instead of \"%s\"", seed, file->path, text,
                 file->text);
    if (file->user == USER_REMOVED && file->in_layer && file->is_copy && fd >= 0)
        fail_msg("seed %u: %s, which was removed, is there again", seed, file->path);
}

static void make_files(struct hand *hand, struct file *files)
{
    AUTO(buf_done) struct buf real = {.max = 1 << 20};

    for (unsigned i = 0; i < FILES; i++) {
        files[i] = (struct file){.was_there = dice(4)};
        snprintf(files[i].path, sizeof files[i].path, "d%u/f%u", i % FOLDERS, i);
        if (files[i].was_there)
            buf_appendf(&real, "f %s old\n", files[i].path);
        else
            buf_appendf(&real, "d d%u\n", i % FOLDERS);
    }
    hand_init(hand, real.data, dice(8) == 0);
}

/* How many were left that nobody else had touched. */
static unsigned one_seed(unsigned seed)
{
    AUTO(buf_done) struct buf step = {.max = 1 << 20};
    AUTO_FREE char *left = NULL;
    struct file files[FILES];
    struct hand hand;
    unsigned false_ones = 0;

    random_state = seed * 7919 + 1;
    make_files(&hand, files);
    hand_step(&hand, "");
    for (unsigned turn = 0; turn < FILES; turn++) {
        if (dice(2))
            person_edits(&hand, &files[dice(FILES)], turn);
        else
            layer_edits(&files[turn], &step, turn);
    }
    if (step.len)
        hand_add(&hand, 1, step.data);
    left = hand_accept(&hand, ACCEPT_MARKED, NULL);
    for (unsigned i = 0; i < FILES; i++) {
        AUTO_FREE char *line = alloc_strf("%s: ", files[i].path);

        judge(&hand, &files[i], seed);
        false_ones += files[i].user == USER_NOTHING && strstr(left, line);
    }
    hand_done(&hand);
    return false_ones;
}

static void nothing_is_missed(void **state)
{
    const unsigned seeds = wanted("CORDON_SEEDS", 20);
    unsigned false_ones = 0;

    for (unsigned seed = 1; seed <= seeds; seed++)
        false_ones += one_seed(seed);
    print_message("# %u seeds, %u left without need\n", seeds, false_ones);
}

/* A folder that is put in the place of another has old files, which the commands never saw. */
static void a_folder_that_was_put_there(void **state)
{
    AUTO_FREE char *left = NULL;
    AUTO_FREE char *a = NULL, *b = NULL, *c = NULL;
    struct hand hand;

    hand_init(&hand, "f a/f one\nf b/f other\n", false);
    hand_step(&hand, "c a/f layer\n");
    a = path_join(hand.real, "a");
    b = path_join(hand.real, "b");
    c = path_join(hand.real, "c");
    assert_true(rename(a, c) == 0 && rename(b, a) == 0);
    left = hand_accept(&hand, 0, NULL);
    assert_string_equal(left, "a/f: conflict\n");
    assert_real(&hand, "d 755 .\nd 755 a\nf 644 a/f other\nd 755 c\nf 644 c/f one\n");
    hand_done(&hand);
}

/* --- while it is accepted --- */

/* Saves files until it is killed; which number each has by then is in shared memory: the files say it themselves. */
static void save_for_ever(const struct hand *hand)
{
    random_state = 77;
    for (unsigned turn = 1;; turn++) {
        AUTO_FREE char *path = alloc_strf("%s/d%u/f%u", hand->real, turn % 4, turn % 40);
        AUTO_FREE char *text = alloc_strf("person %u\n", turn);

        if (dice(2))
            replace(path, text);
        else
            write_in_place(path, text);
    }
}

static pid_t start(void (*act)(const struct hand *hand), const struct hand *hand)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where the test fails before it stops this */
        act(hand);
        _exit(0);
    }
    return pid;
}

static void stop(pid_t pid)
{
    int status;

    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static uint64_t end_of_race(void)
{
    return clock_now_ns() + wanted("CORDON_STORM", 1) * CLOCK_NS_PER_S;
}

/* Which of the files are the person's now. */
static void look_at_all(const struct hand *hand, char ret[40])
{
    for (int i = 0; i < 40; i++) {
        AUTO_FREE char *path = alloc_strf("%s/d%d/f%d", hand->real, i % 4, i);
        AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        if (read(fd, &ret[i], 1) != 1)
            ret[i] = ' '; /* just being written */
    }
}

/* A file that the person has saved is a person's ever after: none is seen that is the layer's again. */
static void saved_meanwhile(void **state)
{
    const uint64_t end = end_of_race() - CLOCK_NS_PER_S / 2;

    while (clock_now_ns() < end) {
        AUTO(buf_done) struct buf real = {.max = 1 << 20};
        AUTO(buf_done) struct buf step = {.max = 1 << 20};
        struct hand hand;
        pid_t pid;

        for (int i = 0; i < 40; i++) {
            buf_appendf(&real, "f d%d/f%d old\n", i % 4, i);
            buf_appendf(&step, "c d%d/f%d layer\n", i % 4, i);
        }
        hand_init(&hand, real.data, false);
        hand_step(&hand, step.data);
        pid = start(save_for_ever, &hand);
        for (int i = 0; i < 5; i++) {
            char before[40], after[40];

            look_at_all(&hand, before);
            free(hand_accept(&hand, 0, NULL));
            look_at_all(&hand, after);
            for (int at = 0; at < 40; at++)
                assert_false(before[at] == 'p' && after[at] == 'l');
        }
        stop(pid);
        hand_done(&hand);
    }
}

/* Folders become links that lead out, and folders again. */
static void swap_for_ever(const struct hand *hand)
{
    AUTO_FREE char *folder = path_join(hand->real, "d");
    AUTO_FREE char *other = path_join(hand->dir, "link");

    for (;;)
        renameat2(AT_FDCWD, folder, AT_FDCWD, other, RENAME_EXCHANGE);
}

static void nothing_goes_through_links(void **state)
{
    const uint64_t end = end_of_race();
    unsigned rounds = 0;

    for (; clock_now_ns() < end; rounds++) {
        AUTO_FREE char *outside = NULL, *link = NULL;
        struct hand hand;
        pid_t pid;

        hand_init(&hand, "f d/sub/a old\nf d/sub/b old\nf d/gone g\n", dice(2));
        hand.is_hasty = true;
        hand_step(&hand,
                  "c d/sub/a layer\nf d/sub/new n\nf d/other/n n\nw d/gone\nw d/sub/b\nm d\n");
        outside = path_join(hand.dir, "outside");
        link = path_join(hand.dir, "link");
        assert_int_equal(mkdir(outside, 0755), 0);
        hand_write(outside, "f sub/a outside\nf sub/b outside\nf gone outside\n");
        assert_int_equal(symlink(outside, link), 0);
        pid = start(swap_for_ever, &hand);
        for (int i = 0; i < 20; i++) {
            free(hand_accept(&hand, ACCEPT_MARKED | ACCEPT_FORCE, NULL));
            free(hand_undo(&hand, 0, NULL));
        }
        stop(pid);
        {
            AUTO(buf_done) struct buf text = {.max = 1 << 20};

            hand_snapshot(outside, false, &text);
            assert_string_equal(text.data, "d 755 .\nf 644 gone outside\nd 755 sub\n"
                                           "f 644 sub/a outside\nf 644 sub/b outside\n");
        }
        hand_done(&hand);
    }
    print_message("# %u rounds\n", rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_missed),
        cmocka_unit_test(a_folder_that_was_put_there),
        cmocka_unit_test(saved_meanwhile),
        cmocka_unit_test(nothing_goes_through_links),
    };

    return cmocka_run_group_tests_name("layer/accept_race", tests, NULL, NULL);
}

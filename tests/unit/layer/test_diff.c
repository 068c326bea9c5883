/* Differences by lines: as short as can be where texts are small, right and soon done where they are large; and those of changes
 * as git writes and takes them. */
#include "fake_layer.h"
#include "layer/diff.h"

#include "../base/support.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void layer_done(struct layer **layer)
{
    fake_layer_free(*layer);
}
#define AUTO_LAYER AUTO(layer_done) struct layer *

static bool takes_some(void *data, size_t hunk)
{
    return *(const unsigned *)data >> hunk & 1;
}

static void assert_unified(const char *old, const char *text, const char *wanted)
{
    AUTO(hunks_done) struct hunks hunks;
    AUTO(buf_done) struct buf unified;

    buf_init(&unified, SIZE_MAX / 2);
    buf_append_str(&unified, "");
    diff_lines(old, strlen(old), text, strlen(text), &hunks);
    diff_unified(old, strlen(old), text, strlen(text), &hunks, 1, &unified);
    assert_string_equal(unified.data, wanted);
}

static void test_unified(void **state)
{
    assert_unified("a\nb\n", "a\nb\n", "");
    assert_unified("", "a\n", "@@ -0,0 +1 @@\n+a\n");
    assert_unified("a\n", "", "@@ -1 +0,0 @@\n-a\n");
    assert_unified("a\nb\nc\nd\ne\nf\n", "a\nB\nc\nd\ne\nF\n",
                   "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -5,2 +5,2 @@\n e\n-f\n+F\n");
    assert_unified("a\nb\nc\nd\n", "A\nb\nc\nD\n", "@@ -1,4 +1,4 @@\n-a\n+A\n b\n c\n-d\n+D\n");
    assert_unified("a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
    assert_unified("f {\n}\n", "f {\n}\ng {\n}\n", "@@ -2 +2,3 @@\n }\n+g {\n+}\n");
    assert_unified("f {\n}\ng {\n}\n", "f {\n}\n", "@@ -2,3 +2 @@\n }\n-g {\n-}\n");
}

static void test_some_hunks(void **state)
{
    const char *old = "a\nb\nc\nd\ne\n", *text = "A\nb\nc\nd\nE\nf";
    const char *const wanted[] = {old, "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\nf", text};
    AUTO(hunks_done) struct hunks hunks;

    diff_lines(old, strlen(old), text, strlen(text), &hunks);
    assert_int_equal(hunks.len, 2);
    for (unsigned taken = 0; taken < 4; taken++) {
        AUTO(buf_done) struct buf made;

        buf_init(&made, 100);
        diff_apply(old, strlen(old), text, strlen(text), &hunks, takes_some, &taken, &made);
        assert_string_equal(made.data, wanted[taken]);
    }
}

/* --- the shortest --- */

enum { SMALL = 12 };

static void random_text(char *ret, unsigned letters)
{
    size_t lines = (size_t)(rand() % (SMALL + 1));

    for (size_t i = 0; i < lines; i++) {
        *ret++ = (char)('a' + (unsigned)rand() % letters);
        *ret++ = '\n';
    }
    *ret = '\0';
}

/* Lines of the longest text that both have in them. */
static size_t common_lines(const char *old, const char *text)
{
    size_t best[SMALL + 1][SMALL + 1] = {{0}};
    size_t len = strlen(old) / 2, other = strlen(text) / 2;

    for (size_t i = 1; i <= len; i++)
        for (size_t j = 1; j <= other; j++) {
            size_t one = best[i - 1][j], two = best[i][j - 1];

            best[i][j] = one > two ? one : two;
            if (old[2 * i - 2] == text[2 * j - 2] && best[i - 1][j - 1] + 1 > best[i][j])
                best[i][j] = best[i - 1][j - 1] + 1;
        }
    return best[len][other];
}

static void test_shortest(void **state)
{
    for (unsigned seed = 1; seed <= 3000; seed++) {
        char old[2 * SMALL + 1], text[2 * SMALL + 1];
        AUTO(hunks_done) struct hunks hunks;
        size_t changed = 0;

        srand(seed);
        random_text(old, 1 + seed % 5);
        random_text(text, 1 + seed % 5);
        diff_lines(old, strlen(old), text, strlen(text), &hunks);
        for (size_t i = 0; i < hunks.len; i++)
            changed += hunks.items[i].old_len + hunks.items[i].new_len;
        if (changed != (strlen(old) + strlen(text)) / 2 - 2 * common_lines(old, text))
            fail_msg("seed %u: %zu lines changed", seed, changed);
    }
}

/* --- large ones --- */

static bool takes_all(void *data, size_t hunk)
{
    (void)data;
    (void)hunk;
    return true;
}

enum { LARGE = 1 << 18 };

/* What costs most: few different lines, in any order. */
static void test_large(void **state)
{
    AUTO_FREE char *old = alloc_zero(1, LARGE), *text = alloc_zero(1, LARGE);

    for (unsigned letters = 1; letters <= 100; letters = letters * 10) {
        AUTO(hunks_done) struct hunks hunks;
        AUTO(buf_done) struct buf made;

        for (size_t i = 0; i < LARGE; i += 2) {
            old[i] = (char)(32 + (unsigned)rand() % letters);
            text[i] = (char)(32 + (unsigned)rand() % letters);
            old[i + 1] = text[i + 1] = '\n';
        }
        diff_lines(old, LARGE, text, LARGE, &hunks);
        buf_init(&made, LARGE);
        diff_apply(old, LARGE, text, LARGE, &hunks, takes_all, NULL, &made);
        assert_int_equal(made.len, LARGE);
        assert_memory_equal(made.data, text, LARGE);
    }
}

/* --- as git has them --- */

static void add_all(const struct layer *layer, struct buf *ret)
{
    const struct change_query query = {.step = 0};
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    struct err err;

    if (change_list(layer, &query, &changes, &problems, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < changes.len; i++) {
        struct change_diff diff;

        if (change_diff(layer, &changes.items[i], 3, 0, &diff, &err))
            fail_msg("%s", err.msg);
        buf_append_str(ret, diff.unified.data);
        change_diff_done(&diff);
    }
}

/* `git apply` in the real directory. */
static void git_apply(const struct layer *layer, const struct buf *patch)
{
    AUTO_FREE char *real = fake_path(layer, 0, "");
    AUTO_FREE char *path = alloc_strf("%s/patch", layer_folder(layer));
    int status;
    pid_t child;

    support_write(layer_folder(layer), "patch", patch->data);
    child = fork();
    if (!child) {
        if (chdir(real) == 0)
            execlp("git", "git", "apply", "--whitespace=nowarn", path, (char *)NULL);
        _exit(errno == ENOENT ? 127 : 126);
    }
    assert_true(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        skip();
    if (status)
        fail_msg("git does not take\n%s", patch->data);
}

static const char *const names[] = {
    "plain",    "with blank", "\"quoted\"", "back\\slash", "new\nline", "tab\t",  "esc\033[31m",
    "\xff\xfe", "\303\244",   "a/b c/d",    "-dash",       " ",         "b -> c", "x b/x",
};

static void test_git_takes_them(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);
    AUTO(buf_done) struct buf patch;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AUTO_FREE char *changed = alloc_strf("changed/%s", names[i]);
        AUTO_FREE char *new = alloc_strf("new/%s", names[i]);
        AUTO_FREE char *gone = alloc_strf("gone/%s", names[i]);
        AUTO_FREE char *mode = alloc_strf("mode/%s", names[i]);
        AUTO_FREE char *empty = alloc_strf("empty/%s", names[i]);
        AUTO_FREE char *link = alloc_strf("link/%s", names[i]);
        AUTO_FREE char *type = alloc_strf("type/%s", names[i]);
        AUTO_FREE char *from = alloc_strf("from/%s", names[i]);
        AUTO_FREE char *to = alloc_strf("to/%s", names[i]);
        AUTO_FREE char *moved = alloc_strf("%s%zu\nmoved\n", names[i], i);

        fake_file(layer, 0, changed, "a\nb\nc\n");
        fake_file(layer, 1, changed, "a\nB\nc");
        fake_file(layer, 1, new, "new\n");
        fake_file(layer, 0, gone, "gone\n");
        fake_gone(layer, 1, gone);
        fake_file(layer, 0, mode, "#!\n");
        fake_file(layer, 1, mode, "#!\n");
        fake_mode(layer, 1, mode, 0755);
        fake_file(layer, 1, empty, "");
        fake_link(layer, 0, link, "there");
        fake_link(layer, 1, link, names[i]);
        fake_file(layer, 0, type, "file\n");
        fake_link(layer, 1, type, "link\n");
        fake_file(layer, 0, from, moved);
        fake_gone(layer, 1, from);
        fake_file(layer, 1, to, moved);
    }
    buf_init(&patch, SIZE_MAX / 2);
    add_all(layer, &patch);
    git_apply(layer, &patch);
    assert_changes(layer, NULL, /* it takes empty directories away */
                   "A from\nA from/a\nA from/a/b c\nA from/x b\n"
                   "A gone\nA gone/a\nA gone/a/b c\nA gone/x b\n");
}

static void test_form(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);
    AUTO(buf_done) struct buf patch;

    fake_file(layer, 0, "a b", "one\n");
    fake_file(layer, 1, "a b", "two\n");
    fake_mode(layer, 1, "a b", 0755);
    fake_bytes(layer, 0, "binary", "a\0", 2);
    fake_bytes(layer, 1, "binary", "b\0", 2);
    fake_bytes(layer, 0, "binary-mode", "a\0", 2);
    fake_bytes(layer, 1, "binary-mode", "a\0", 2);
    fake_mode(layer, 1, "binary-mode", 0755);
    fake_file(layer, 1, "back\\slash", "new\n");
    fake_pipe(layer, 1, "pipe");
    fake_file(layer, 0, "private", "a\n");
    fake_file(layer, 1, "private", "a\n");
    fake_mode(layer, 1, "private", 0600);
    fake_file(layer, 0, "\xc3\xa4\n", "a\n");
    fake_gone(layer, 1, "\xc3\xa4\n");
    buf_init(&patch, SIZE_MAX / 2);
    add_all(layer, &patch);
    assert_string_equal(patch.data, "diff --git a/a b b/a b\n"
                                    "old mode 100644\n"
                                    "new mode 100755\n"
                                    "--- a/a b\t\n"
                                    "+++ b/a b\t\n"
                                    "@@ -1 +1 @@\n"
                                    "-one\n"
                                    "+two\n"
                                    "diff --git \"a/back\\\\slash\" \"b/back\\\\slash\"\n"
                                    "new file mode 100644\n"
                                    "--- /dev/null\n"
                                    "+++ \"b/back\\\\slash\"\n"
                                    "@@ -0,0 +1 @@\n"
                                    "+new\n"
                                    "diff --git a/binary-mode b/binary-mode\n"
                                    "old mode 100644\n"
                                    "new mode 100755\n"
                                    "diff --git a/private b/private\n"
                                    "old mode 100644\n"
                                    "new mode 100600\n"
                                    "diff --git \"a/\\303\\244\\n\" \"b/\\303\\244\\n\"\n"
                                    "deleted file mode 100644\n"
                                    "--- \"a/\\303\\244\\n\"\n"
                                    "+++ /dev/null\n"
                                    "@@ -1 +0,0 @@\n"
                                    "-a\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unified),  cmocka_unit_test(test_some_hunks),
        cmocka_unit_test(test_shortest), cmocka_unit_test(test_large),
        cmocka_unit_test(test_form),     cmocka_unit_test(test_git_takes_them),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

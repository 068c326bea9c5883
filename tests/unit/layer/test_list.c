/* What is listed of a layer: each case of overlayfs' upper directories, over real files. */
#include "fake_layer.h"

#include "../base/support.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void layer_done(struct layer **layer)
{
    fake_layer_free(*layer);
}
#define AUTO_LAYER AUTO(layer_done) struct layer *

static const struct change_query plain = {.flags = CHANGES_WITHOUT_RENAMES};

static void test_nothing(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);

    fake_file(layer, 0, "a", "a");
    assert_changes(layer, NULL, "");
}

static void test_files(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);
    static char large[70000]; /* more than is read at once */

    large[sizeof large - 1] = 'a';
    fake_bytes(layer, 0, "at-its-end", large, sizeof large);
    large[sizeof large - 1] = 'b';
    fake_bytes(layer, 1, "at-its-end", large, sizeof large);
    fake_file(layer, 0, "changed", "one");
    fake_file(layer, 1, "changed", "two");
    fake_file(layer, 0, "longer", "one");
    fake_file(layer, 1, "longer", "one and two");
    fake_file(layer, 0, "touched", "one");
    fake_file(layer, 1, "touched", "one");
    fake_file(layer, 0, "mode", "one");
    fake_file(layer, 1, "mode", "one");
    fake_mode(layer, 1, "mode", 0600);
    fake_file(layer, 0, "gone", "one");
    fake_gone(layer, 1, "gone");
    fake_gone(layer, 1, "never");
    fake_file(layer, 1, "new", "one");
    fake_bytes(layer, 0, "binary", "a\0b", 3);
    fake_bytes(layer, 1, "binary", "a\0c", 3);
    assert_changes(layer, &plain,
                   "M at-its-end binary\n"
                   "M binary binary\n"
                   "M changed\n"
                   "D gone\n"
                   "M longer\n"
                   "m mode\n"
                   "A new\n");
}

static void test_folders(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);

    fake_file(layer, 0, "kept/below/a", "a");
    fake_file(layer, 1, "kept/below/a", "b");
    fake_file(layer, 0, "gone/below/a", "a");
    fake_file(layer, 0, "gone/b", "b");
    fake_gone(layer, 1, "gone");
    fake_dir(layer, 0, "gone-empty");
    fake_gone(layer, 1, "gone-empty");
    fake_dir(layer, 1, "new");
    fake_file(layer, 1, "new/a", "a");
    fake_dir(layer, 0, "mode");
    fake_dir(layer, 1, "mode");
    fake_mode(layer, 1, "mode", 0700);
    fake_file(layer, 0, "replaced/a", "a");
    fake_file(layer, 0, "replaced/same", "a");
    fake_file(layer, 0, "replaced/below/c", "c");
    fake_opaque(layer, 1, "replaced");
    fake_file(layer, 1, "replaced/b", "b");
    fake_file(layer, 1, "replaced/same", "a");
    assert_changes(layer, &plain,
                   "D gone\n"
                   "D gone/b\n"
                   "D gone/below\n"
                   "D gone/below/a\n"
                   "D gone-empty\n"
                   "M kept/below/a\n"
                   "m mode\n"
                   "A new\n"
                   "A new/a\n"
                   "D replaced/a\n"
                   "A replaced/b\n"
                   "D replaced/below\n"
                   "D replaced/below/c\n");
}

static void test_types(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);

    fake_file(layer, 0, "dir-to-file/a", "a");
    fake_file(layer, 1, "dir-to-file", "now a file");
    fake_file(layer, 0, "file-to-dir", "a");
    fake_file(layer, 1, "file-to-dir/a", "a");
    fake_file(layer, 0, "file-to-link", "a");
    fake_link(layer, 1, "file-to-link", "a");
    fake_link(layer, 0, "link", "a");
    fake_link(layer, 1, "link", "b");
    fake_link(layer, 0, "same-link", "a");
    fake_link(layer, 1, "same-link", "a");
    fake_link(layer, 0, "link-to-dir", "a");
    fake_opaque(layer, 1, "link-to-dir");
    fake_file(layer, 0, "pipe", "a");
    fake_pipe(layer, 1, "pipe");
    fake_pipe(layer, 0, "was-pipe");
    fake_file(layer, 1, "was-pipe", "a");
    fake_pipe(layer, 0, "same-pipe");
    fake_pipe(layer, 1, "same-pipe");
    assert_changes(layer, &plain,
                   "D dir-to-file\n"
                   "A dir-to-file\n"
                   "D dir-to-file/a\n"
                   "D file-to-dir\n"
                   "A file-to-dir\n"
                   "A file-to-dir/a\n"
                   "T file-to-link\n"
                   "M link\n"
                   "D link-to-dir\n"
                   "A link-to-dir\n"
                   "T pipe marks=d\n"
                   "T was-pipe\n");
}

static void test_steps(void **state)
{
    const struct change_query one = {.step = 1}, two = {.step = 2}, three = {.step = 3};
    AUTO_LAYER layer = fake_layer_new(3);

    fake_file(layer, 0, "a", "0");
    fake_file(layer, 1, "a", "1");
    fake_file(layer, 3, "a", "3");
    fake_file(layer, 0, "back", "0");
    fake_file(layer, 1, "back", "1");
    fake_file(layer, 2, "back", "0");
    fake_file(layer, 1, "short", "1");
    fake_gone(layer, 2, "short");
    fake_file(layer, 0, "dir/x", "0");
    fake_file(layer, 0, "dir/y", "0");
    fake_file(layer, 1, "dir/x", "1");
    fake_gone(layer, 2, "dir");
    fake_opaque(layer, 3, "dir");
    fake_file(layer, 3, "dir/y", "3");
    fake_file(layer, 2, "late", "2");
    assert_changes(layer, NULL,
                   "M a step=3\n"
                   "D dir/x step=2\n"
                   "M dir/y step=3 first=2\n"
                   "A late step=2 first=2\n");
    assert_changes(layer, &one,
                   "M a\n"
                   "M back\n"
                   "M dir/x\n"
                   "A short\n");
    assert_changes(layer, &two,
                   "M back step=2\n"
                   "D dir step=2\n"
                   "D dir/x step=2\n"
                   "D dir/y step=2 first=2\n"
                   "A late step=2 first=2\n"
                   "D short step=2\n");
    assert_changes(layer, &three,
                   "M a step=3\n"
                   "A dir step=3\n"
                   "A dir/y step=3 first=2\n");
}

/* --- renames --- */

static char *lines(const char *prefix, size_t len)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < len; i++)
        buf_appendf(&text, "%s, line %zu\n", prefix, i);
    return buf_take(&text);
}

static void test_renames(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);
    AUTO_FREE char *text = lines("one", 20), *edited = lines("one", 30), *other = lines("two", 20);
    AUTO_FREE char *large = lines("three", 5000);
    AUTO_FREE char *again = lines("one", 31), *half = lines("four", 20), *less = lines("four", 8);

    fake_file(layer, 0, "large", large);
    fake_gone(layer, 1, "large");
    fake_file(layer, 1, "large-too", large);
    fake_file(layer, 0, "old", "the same");
    fake_gone(layer, 1, "old");
    fake_file(layer, 1, "new", "the same");
    fake_file(layer, 0, "a/x", text);
    fake_gone(layer, 1, "a/x");
    fake_file(layer, 1, "b/y", edited);
    fake_file(layer, 1, "b/z", again); /* too, but a/x can be moved once */
    fake_file(layer, 0, "half", half);
    fake_gone(layer, 1, "half");
    fake_file(layer, 1, "less", less); /* than half of it */
    fake_file(layer, 1, "c/x", other);
    fake_file(layer, 0, "empty", "");
    fake_gone(layer, 1, "empty");
    fake_file(layer, 1, "empty-too", "");
    fake_file(layer, 0, "run.sh", "a program");
    fake_mode(layer, 0, "run.sh", 0755);
    fake_gone(layer, 1, "run.sh");
    fake_file(layer, 1, "Makefile", "a program");
    assert_changes(layer, NULL,
                   "R Makefile from=run.sh marks=r by=make\n"
                   "A b\n"
                   "R b/y from=a/x edited\n"
                   "A b/z\n"
                   "A c\n"
                   "A c/x\n"
                   "D empty\n"
                   "A empty-too\n"
                   "D half\n"
                   "R large-too from=large\n"
                   "A less\n"
                   "R new from=old\n");
    assert_changes(layer, &plain,
                   "A Makefile marks=r by=make\n"
                   "D a/x\n"
                   "A b\n"
                   "A b/y\n"
                   "A b/z\n"
                   "A c\n"
                   "A c/x\n"
                   "D empty\n"
                   "A empty-too\n"
                   "D half\n"
                   "D large\n"
                   "A large-too\n"
                   "A less\n"
                   "A new\n"
                   "D old\n"
                   "D run.sh\n");
}

/* Of many that are alike: those with the same time, and with the same name, belong together. */
static void test_renames_of_many(void **state)
{
    const struct timespec times[2] = {{.tv_sec = 17}, {.tv_sec = 17}};
    AUTO_LAYER layer = fake_layer_new(1);
    AUTO_FREE char *old = fake_path(layer, 0, "x/2"), *now = fake_path(layer, 1, "y/5");

    fake_file(layer, 0, "x/1", "the same");
    fake_file(layer, 0, "x/2", "the same");
    fake_file(layer, 0, "x/3", "the same");
    fake_file(layer, 0, "x/9", "the like");
    fake_file(layer, 0, "x/91", "the like");
    fake_gone(layer, 1, "x/9");
    fake_gone(layer, 1, "x/91");
    fake_file(layer, 1, "y/8", "the like");
    fake_file(layer, 1, "y/9", "the like");
    fake_gone(layer, 1, "x/1");
    fake_gone(layer, 1, "x/2");
    fake_gone(layer, 1, "x/3");
    fake_file(layer, 0, "y/0", "");
    fake_file(layer, 1, "y/3", "the same");
    fake_file(layer, 1, "y/4", "the same");
    fake_file(layer, 1, "y/5", "the same");
    fake_file(layer, 1, "y/6", "the same");
    assert_int_equal(utimensat(AT_FDCWD, old, times, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, now, times, 0), 0);
    assert_changes(layer, NULL,
                   "R y/3 from=x/3\n"
                   "R y/4 from=x/1\n"
                   "R y/5 from=x/2\n"
                   "A y/6\n"
                   "R y/8 from=x/91\n"
                   "R y/9 from=x/9\n");
}

static void test_folder_renames(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);
    AUTO_FREE char *text = lines("one", 20), *edited = lines("one", 30);

    fake_file(layer, 0, "edited/a", text);
    fake_gone(layer, 1, "edited");
    fake_file(layer, 1, "moved/a", edited);
    fake_file(layer, 0, "old/a", "a is in it");
    fake_file(layer, 0, "old/b/c", "c is in it");
    fake_gone(layer, 1, "old");
    fake_file(layer, 1, "new/a", "a is in it");
    fake_file(layer, 1, "new/b/c", "c is in it");
    fake_file(layer, 1, "new/d", "d is new");
    fake_file(layer, 0, "split/a", "of the first");
    fake_file(layer, 0, "split/b", "of the second one");
    fake_gone(layer, 1, "split");
    fake_file(layer, 1, "part1/a", "of the first");
    fake_file(layer, 1, "part2/b", "of the second one");
    assert_changes(layer, NULL,
                   "D edited\n"
                   "A moved\n"
                   "R moved/a from=edited/a edited\n"
                   "R new from=old\n"
                   "R new/a from=old/a within\n"
                   "R new/b from=old/b within\n"
                   "R new/b/c from=old/b/c within\n"
                   "A new/d\n"
                   "A part1\n"
                   "R part1/a from=split/a\n"
                   "A part2\n"
                   "R part2/b from=split/b\n"
                   "D split\n");
}

/* What it came from was gone before. */
static void test_renames_of_two_steps(void **state)
{
    AUTO_LAYER layer = fake_layer_new(2);

    fake_file(layer, 0, "old", "the same");
    fake_gone(layer, 1, "old");
    fake_file(layer, 2, "new", "the same");
    assert_changes(layer, NULL, "R new from=old step=2\n");
}

/* --- marks --- */

static void test_marks(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);

    fake_file(layer, 1, ".git/hooks/x", "");
    fake_file(layer, 1, ".vscode/tasks.json", "");
    fake_file(layer, 1, "a/package.json", "");
    fake_file(layer, 0, "chmod", "one");
    fake_file(layer, 1, "chmod", "one");
    fake_mode(layer, 1, "chmod", 0755);
    fake_file(layer, 0, "program", "one");
    fake_file(layer, 1, "program", "two");
    fake_mode(layer, 0, "program", 0755);
    fake_mode(layer, 1, "program", 0755);
    fake_file(layer, 1, "set-id", "two");
    fake_mode(layer, 1, "set-id", 04755);
    fake_link(layer, 1, "links/absolute", "/etc/passwd");
    fake_link(layer, 1, "links/beside", "a");
    fake_link(layer, 1, "links/out", "../../a");
    fake_link(layer, 1, "links/perhaps", "../a/../b");
    fake_link(layer, 1, "links/up", "../a");
    fake_link(layer, 1, "links/within", "a/../b"); /* a may be a link */
    fake_link(layer, 1, ".github", "links");
    fake_file(layer, 1, "a/.GIT/config", "");
    fake_file(layer, 0, "Makefile", "");
    fake_gone(layer, 1, "Makefile");
    assert_changes(layer, NULL,
                   "A .git marks=p\n"
                   "A .git/hooks marks=p\n"
                   "A .git/hooks/x marks=p\n"
                   "A .github marks=r by=CI\n"
                   "A .vscode marks=p\n"
                   "A .vscode/tasks.json marks=pr by=editors\n"
                   "D Makefile\n"
                   "A a\n"
                   "A a/.GIT marks=p\n"
                   "A a/.GIT/config marks=pr by=git\n"
                   "A a/package.json marks=r by=npm\n"
                   "m chmod marks=x\n"
                   "A links\n"
                   "A links/absolute marks=l\n"
                   "A links/beside\n"
                   "A links/out marks=l\n"
                   "A links/perhaps marks=l\n"
                   "A links/up\n"
                   "A links/within marks=l\n"
                   "M program marks=r\n"
                   "A set-id marks=xs\n");
}

/* --- conflicts --- */

static void test_conflicts(void **state)
{
    const struct change_query without = {.flags = CHANGES_WITHOUT_CONFLICTS};
    AUTO_LAYER layer = fake_layer_new(1);

    fake_file(layer, 0, "a/before", "old");
    fake_file(layer, 1, "a/before", "new");
    fake_file(layer, 0, "a/since", "old");
    fake_file(layer, 1, "a/since", "new");
    fake_file(layer, 0, "gone-before", "old");
    fake_gone(layer, 1, "gone-before");
    fake_file(layer, 0, "moved", "moves");
    fake_gone(layer, 1, "moved");
    fake_file(layer, 1, "a/moved", "moves");
    fake_attribute(layer, 1, "a/moved", "user.overlay.origin", "");
    fake_file(layer, 1, "b/edited-and-moved", "here");
    fake_attribute(layer, 1, "b/edited-and-moved", "user.overlay.origin", "");
    fake_file(layer, 1, "new", "new");
    fake_begin(layer, 1);
    assert_changes(layer, NULL,
                   "M a/before\n"
                   "R a/moved from=moved copy\n"
                   "M a/since\n"
                   "A b\n"
                   "A b/edited-and-moved copy\n"
                   "D gone-before\n"
                   "A new\n");
    fake_file(layer, 0, "a/since", "longer than before");
    fake_file(layer, 0, "moved", "moves");
    fake_file(layer, 0, "new", "by another");
    fake_file(layer, 1, "a/copy", "of one that is removed now");
    fake_attribute(layer, 1, "a/copy", "user.overlay.origin", "");
    fake_file(layer, 0, "a/something", "else in the folder");
    assert_changes(layer, NULL,
                   "M a/before\n"
                   "A a/copy marks=c copy\n"
                   "R a/moved from=moved marks=c copy\n"
                   "M a/since marks=c\n"
                   "A b\n"
                   "A b/edited-and-moved marks=c copy\n"
                   "D gone-before\n"
                   "M new marks=c\n");
    assert_changes(layer, &without,
                   "M a/before\n"
                   "A a/copy copy\n"
                   "R a/moved from=moved copy\n"
                   "M a/since\n"
                   "A b\n"
                   "A b/edited-and-moved copy\n"
                   "D gone-before\n"
                   "M new\n");
}

/* --- what somebody might put there --- */

/* Names that are no text, the longest that there are, and paths of 4,000 bytes. */
static void test_names(void **state)
{
    const char *const names[] = {"new\nline", "esc\033[31m", "\xff\xfe", "a:b,c", "\"", " "};
    AUTO_LAYER layer = fake_layer_new(1);
    AUTO(buf_done) struct buf deep;
    AUTO(buf_done) struct buf wanted;
    char name[256];

    buf_init(&wanted, SIZE_MAX / 2);
    buf_init(&deep, SIZE_MAX / 2);
    memset(name, 'n', 255);
    name[255] = '\0';
    buf_append_str(&deep, "d");
    for (size_t i = 0; i < 15; i++)
        buf_appendf(&deep, "/%s", name);
    for (size_t i = 0; i < 60; i++)
        buf_append_str(&deep, "/e");
    buf_append_str(&deep, "/file");
    fake_file(layer, 0, deep.data, "old");
    fake_file(layer, 1, deep.data, "new");
    fake_file(layer, 1, name, "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fake_file(layer, 1, names[i], "");
    buf_appendf(&wanted, "A  \nA \"\nA a:b,c\nM %s\nA esc\033[31m\nA new\nline\nA %s\nA \xff\xfe\n",
                deep.data, name);
    assert_changes(layer, NULL, wanted.data);
}

/* Deeper than any path may be long: told, and not walked into. */
static void test_too_deep(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);
    AUTO(buf_done) struct buf deep;
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    const struct change_query query = {.step = 0};
    AUTO_FREE char *top = fake_path(layer, 1, "d"); /* which the fixture cannot remove */
    struct err err;
    pid_t child;
    int status;

    buf_init(&deep, SIZE_MAX / 2);
    for (size_t i = 0; i < 2100; i++)
        buf_append_str(&deep, "d/");
    buf_append_str(&deep, "file");
    fake_file(layer, 1, deep.data, "new");
    assert_int_equal(change_list(layer, &query, &changes, &problems, &err), 0);
    assert_true(changes.len > 2000);
    assert_true(changes.len < 2060);
    assert_int_equal(problems.len, 1);
    assert_non_null(strstr(problems.items[0], "mv it to where its path is shorter"));
    child = fork();
    if (!child) {
        execlp("rm", "rm", "-rf", top, (char *)NULL);
        _exit(127);
    }
    assert_true(waitpid(child, &status, 0) == child && status == 0);
}

/* By inside; overlayfs puts another "overlay." in front of what is set there. */
static void test_forged_attributes(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);

    fake_file(layer, 0, "dir/a", "a");
    fake_file(layer, 1, "dir/b", "b");
    fake_attribute(layer, 1, "dir", "user.overlay.overlay.opaque", "y");
    fake_attribute(layer, 1, "dir/b", "user.overlay.overlay.origin", "");
    fake_attribute(layer, 1, "dir/b", "user.overlay.opaque", "y");
    assert_changes(layer, NULL, "A dir/b\n");
}

/* Nothing is waited for, and nothing followed. */
static void test_pipes_and_links(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);

    fake_pipe(layer, 0, "pipe");
    fake_pipe(layer, 1, "pipe");
    fake_mode(layer, 1, "pipe", 0644);
    fake_file(layer, 1, "dir/a", "a");
    fake_file(layer, 0, "elsewhere/a", "b");
    fake_link(layer, 0, "dir", "elsewhere");
    assert_changes(layer, NULL,
                   "D dir\n"
                   "A dir\n"
                   "A dir/a\n"
                   "m pipe marks=d\n");
}

static void test_opened_later(void **state)
{
    const struct change_query query = {.step = 0};
    AUTO_LAYER layer = fake_layer_new(1);
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    struct err err;
    char text[8] = "";
    int fd;

    fake_file(layer, 0, "a/file", "old");
    fake_file(layer, 1, "a/file", "new");
    fake_link(layer, 1, "link", "target");
    assert_int_equal(change_list(layer, &query, &changes, &problems, &err), 0);
    assert_int_equal(changes.len, 2);
    fd = change_open(layer, &changes.items[0], CHANGE_REAL, &err);
    assert_int_equal(read(fd, text, sizeof text), 3);
    assert_string_equal(text, "old");
    close(fd);
    fd = change_open(layer, &changes.items[1], CHANGE_LAYER, &err);
    assert_int_equal(readlinkat(fd, "", text, sizeof text), 6);
    close(fd);
    assert_int_equal(change_open(layer, &changes.items[1], CHANGE_REAL, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    for (int kind = 0; kind < 3; kind++) {
        AUTO_FREE char *file = fake_path(layer, 0, "a/file"), *dir = fake_path(layer, 0, "a");
        AUTO_FREE char *away = fake_path(layer, 0, "b");

        unlink(file);
        if (kind == 0)
            fake_link(layer, 0, "a/file", "/etc/passwd");
        else if (kind == 1)
            fake_pipe(layer, 0, "a/file");
        else
            assert_true(rename(dir, away) == 0 && symlink("/etc", dir) == 0);
        assert_int_equal(change_open(layer, &changes.items[0], CHANGE_REAL, &err), -1);
        assert_int_equal(err.code, ERR_CONFLICT);
    }
}

/* Told, and not taken for empty; root reads everything. */
static void test_unreadable(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);
    const char *wanted = "D gone\n"
                         "D gone/a\n"
                         "D gone/hidden\n"
                         "M secret\n"
                         "! /gone/hidden: Permission denied\n"
                         "! /secret: cannot be read, and is taken to differ\n"
                         "! /upper: Permission denied\n";

    fake_file(layer, 0, "gone/a", "a");
    fake_file(layer, 0, "gone/hidden/b", "b");
    fake_gone(layer, 1, "gone");
    fake_mode(layer, 0, "gone/hidden", 0);
    fake_file(layer, 0, "secret", "one");
    fake_file(layer, 1, "secret", "two");
    fake_mode(layer, 0, "secret", 0);
    fake_mode(layer, 1, "secret", 0);
    fake_file(layer, 0, "upper/a", "a");
    fake_file(layer, 1, "upper/a", "b");
    fake_mode(layer, 1, "upper", 0);
    fake_mode(layer, 0, "upper", 0);
    if (geteuid() == 0)
        wanted = "D gone\n"
                 "D gone/a\n"
                 "D gone/hidden\n"
                 "D gone/hidden/b\n"
                 "M secret\n"
                 "M upper/a\n";
    assert_changes(layer, NULL, wanted);
    fake_mode(layer, 0, "gone/hidden", 0700);
    fake_mode(layer, 0, "upper", 0700);
    fake_mode(layer, 1, "upper", 0700);
}

static void test_paths(void **state)
{
    AUTO_LAYER layer = fake_layer_new(1);
    AUTO_FREE char *dir = fake_path(layer, 0, "a/b"), *file = fake_path(layer, 0, "c"),
                   *root = fake_path(layer, 0, ""), *none = fake_path(layer, 0, "a/b-");
    char *const some[] = {file, dir, none, NULL}, *const all[] = {file, root, NULL};
    char slash[] = "/", etc[] = "/etc";
    char *const above[] = {slash, NULL}, *const elsewhere[] = {etc, NULL};

    root[strlen(root) - 1] = '\0';
    fake_file(layer, 1, "a/a", "");
    fake_file(layer, 1, "a/b/c", "");
    fake_file(layer, 1, "a/b!", "");
    fake_file(layer, 1, "c", "");
    assert_changes(layer, &(struct change_query){.paths = some}, "A a/b\nA a/b/c\nA c\n");
    assert_changes(layer, &(struct change_query){.paths = all},
                   "A a\nA a/a\nA a/b\nA a/b/c\nA a/b!\nA c\n");
    assert_changes(layer, &(struct change_query){.paths = above},
                   "A a\nA a/a\nA a/b\nA a/b/c\nA a/b!\nA c\n");
    assert_changes(layer, &(struct change_query){.paths = elsewhere}, "");
}

static void test_json(void **state)
{
    const struct change_query query = {.step = 0};
    AUTO_LAYER layer = fake_layer_new(1);
    AUTO(changes_done) struct changes changes = {0};
    AUTO(strv_done) struct strv problems = {0};
    AUTO_JSON json_t *json = NULL;
    struct change_stamp stamp;
    struct err err;

    fake_file(layer, 0, "from", "some text");
    fake_gone(layer, 1, "from");
    fake_file(layer, 1, "bad\xff/run.mk", "some text");
    assert_int_equal(change_list(layer, &query, &changes, &problems, &err), 0);
    assert_int_equal(changes.len, 2);
    json = change_to_json(layer, &changes.items[1]);
    assert_string_equal(json_string_value(json_object_get(json, "kind")), "R");
    assert_string_equal(json_string_value(json_object_get(json, "type")), "file");
    assert_string_equal(json_string_value(json_object_get(json, "runBy")), "make");
    assert_non_null(json_object_get(json, "pathBase64"));
    assert_null(json_object_get(json, "fromBase64"));
    assert_int_equal(json_integer_value(json_object_get(json, "size")), 9);
    assert_int_equal(json_integer_value(json_object_get(json, "mode")), 0644);
    assert_int_equal(
        change_stamp_parse(json_string_value(json_object_get(json, "stamp")), &stamp, &err), 0);
    assert_true(change_stamp_equal(&stamp, &changes.items[1].layer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_renames),
        cmocka_unit_test(test_renames_of_many),
        cmocka_unit_test(test_folder_renames),
        cmocka_unit_test(test_renames_of_two_steps),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_too_deep),
        cmocka_unit_test(test_forged_attributes),
        cmocka_unit_test(test_pipes_and_links),
        cmocka_unit_test(test_opened_later),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_json),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

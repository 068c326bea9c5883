/* A patch of 500 hunks on 100 files of 1,000 lines, there and back: read, placed, prepared and
 * decided; by the library, on the disk and in memory, and by `cordon patch` with its sandbox. Each
 * run makes and removes 100 files, and ext4 without a journal is slow to take up inodes that were
 * free for less than five seconds (recently_deleted() in fs/ext4/ialloc.c): on such a disk one
 * patch alone is faster than many in a row. */
#include "bench.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "patch/apply.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 100, LINES = 1000, HUNKS = 5, TEXT_MAX = 16 << 20 };

/* Lines as in a source file: many are alike. */
static void put_line(struct buf *text, int line)
{
    if (line % 4 == 3)
        buf_append_str(text, line % 8 == 3 ? "\n" : "    }\n");
    else
        buf_appendf(text, "    value_%d = compute(value_%d, %d);\n", line, line / 2, line % 7);
}

static void write_file(const char *path, const struct buf *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    struct err err;

    if (fd < 0)
        bench_fail("%s cannot be written", path);
    bench_check(fd_write_all(fd, text->data, text->len, &err), &err);
}

static void make_files(const char *folder)
{
    AUTO(buf_done) struct buf text = {.max = TEXT_MAX};

    for (int line = 0; line < LINES; line++)
        put_line(&text, line);
    if (mkdir(folder, 0755))
        bench_fail("%s cannot be made", folder);
    for (int file = 0; file < FILES; file++) {
        AUTO_FREE char *name = alloc_strf("%s/file_%d.c", folder, file);

        write_file(name, &text);
    }
}

static void remove_files(const char *folder)
{
    for (int file = 0; file < FILES; file++) {
        AUTO_FREE char *name = alloc_strf("%s/file_%d.c", folder, file);

        unlink(name);
    }
}

/* One line that goes and one that comes, between two that stay. */
static void put_hunk(struct buf *text, int line, const char *from, const char *to)
{
    buf_append_str(text, "@@\n ");
    put_line(text, line - 1);
    buf_appendf(text, "-");
    buf_append_str(text, from);
    put_line(text, line);
    buf_appendf(text, "+");
    buf_append_str(text, to);
    put_line(text, line);
    buf_append_str(text, " ");
    put_line(text, line + 1);
}

static void make_patch(struct buf *text, const char *from, const char *to)
{
    buf_append_str(text, "*** Begin Patch\n");
    for (int file = 0; file < FILES; file++) {
        buf_appendf(text, "*** Update File: file_%d.c\n", file);
        for (int hunk = 0; hunk < HUNKS; hunk++)
            put_hunk(text, 100 + hunk * LINES / HUNKS, from, to);
    }
    buf_append_str(text, "*** End Patch\n");
}

static void apply(const char *path, const struct buf *text)
{
    struct err err;
    AUTO(patch_auto) struct patch *patch = patch_parse(text->data, text->len, &err);
    AUTO(patch_changes_done) struct changes changes = {.items = NULL};
    AUTO(patch_dir_done) struct patch_dir folder = {.fd = -1};
    AUTO(recovery_done) struct recovery recovery = {0};
    AUTO(apply_end) struct apply work = {.ledger = {.fd = -1}};
    struct source source = patch_dir_source(&folder);

    bench_check(patch ? 0 : -1, &err);
    bench_check(patch_dir_open(path, &folder, &err), &err);
    bench_check(apply_begin(&folder, &recovery, &work, &err), &err);
    bench_check(changes_compute(patch, &source, folder.path, &changes, &err), &err);
    bench_check(apply_commit(&work, &changes, &err), &err);
}

static void apply_by_program(const struct bench *bench, const char *folder, const char *patch)
{
    const char *const argv[] = {bench->cordon, "patch", "-C", folder, patch, NULL};

    run_bare(bench, argv);
}

static void add_library(struct bench *bench, const char *name, struct sample *sample)
{
    report_add_sample(
        &bench->report,
        &(struct figure){.name = name, .unit = "ms", .goal = GOAL_AT_MOST, .target = 20}, sample);
    sample_done(sample);
}

static void time_patch(const char *folder, const struct buf *text, struct sample *sample)
{
    uint64_t start = clock_now_ns();

    apply(folder, text);
    sample_add_since(sample, start);
}

static void measure_again(struct bench *bench, const char *name, const char *folder,
                          const struct buf texts[2])
{
    struct sample sample = {0};

    for (unsigned i = 0; i < bench->runs / 8 * 2; i++)
        time_patch(folder, &texts[i % 2], &sample);
    add_library(bench, name, &sample);
}

/* Has ext4 put each folder in here into a block group that is little used (chattr(1), T). */
static void spread(const char *folder)
{
    AUTO_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int flags = 0;

    if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
        flags |= FS_TOPDIR_FL;
        (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
}

/* For minutes ext4 gives out no inode that was freed, and to make a file it looks at all of them,
 * in its block group, one by one (recently_deleted()): a third of a millisecond where some
 * thousands were removed, by a patch before this one or by whoever else. So each patch is measured
 * in a folder of its own, away from that. */
static void measure_on_disk(struct bench *bench, const struct buf *text)
{
    AUTO_FREE char *base = path_join(bench->ws, "patches");
    struct sample sample = {0};

    if (mkdir(base, 0755))
        bench_fail("%s cannot be made", base);
    spread(base);
    for (unsigned i = 0; i < bench->runs / 8; i++) {
        AUTO_FREE char *folder = alloc_strf("%s/%u", base, i);

        make_files(folder);
        time_patch(folder, text, &sample);
    }
    add_library(bench, "patch, 500 hunks on 100 files", &sample);
}

static void measure_program(struct bench *bench, const char *folder, const struct buf texts[2])
{
    struct sample sample = {0};
    char *paths[2];

    for (int i = 0; i < 2; i++) {
        paths[i] = alloc_strf("%s/%d.patch", bench->other_ws, i);
        write_file(paths[i], &texts[i]);
    }
    for (unsigned i = 0; i < bench->runs / 4; i++) {
        uint64_t start = clock_now_ns();

        apply_by_program(bench, folder, paths[i % 2]);
        sample_add_since(&sample, start);
    }
    report_add_sample(&bench->report,
                      &(struct figure){.name = "  by cordon patch, in its sandbox", .unit = "ms"},
                      &sample);
    sample_done(&sample);
    free(paths[0]);
    free(paths[1]);
}

/* Where no disk has a say in it. */
static void measure_in_memory(struct bench *bench, const struct buf texts[2])
{
    AUTO_FREE char *base = alloc_str("/dev/shm/cordon-bench-XXXXXX");
    AUTO_FREE char *folder = NULL;

    if (!mkdtemp(base))
        bench_fail("no scratch folder in /dev/shm");
    folder = path_join(base, "patch");
    make_files(folder);
    measure_again(bench, "  in memory", folder, texts);
    remove_files(folder);
    if (rmdir(folder) || rmdir(base))
        bench_fail("%s cannot be removed", folder);
}

void bench_patch(struct bench *bench)
{
    AUTO_FREE char *folder = path_join(bench->ws, "patch");
    struct buf texts[2] = {{.max = TEXT_MAX}, {.max = TEXT_MAX}};

    make_files(folder);
    make_patch(&texts[0], "", "changed");
    make_patch(&texts[1], "changed", "");
    measure_on_disk(bench, &texts[0]);
    measure_again(bench, "  one after the other, in one folder", folder, texts);
    measure_in_memory(bench, texts);
    measure_program(bench, folder, texts);
    buf_done(&texts[0]);
    buf_done(&texts[1]);
}

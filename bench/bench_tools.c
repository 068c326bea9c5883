/* How much slower work on files is inside: 20,000 small files, searched and looked through by git,
 * inside and outside in turns. What the launch costs is measured apart and not counted here. */
#include "bench.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDERS = 200, FOLDERS_QUICK = 10, FILES = 100, FILE_LINES = 60, TURNS_SHARE = 8 };

static void make_folder(const char *path)
{
    if (mkdir(path, 0755))
        bench_fail("%s: cannot be made", path);
}

static void make_files(const struct bench *bench)
{
    AUTO(buf_done) struct buf text = {.max = 64 << 10};
    const int folders = bench_is_quick(bench) ? FOLDERS_QUICK : FOLDERS;

    for (int i = 0; i < FILE_LINES; i++)
        buf_appendf(&text, "%d: the quick brown fox jumps over the lazy dog\n", i);
    for (int i = 0; i < folders; i++) {
        AUTO_FREE char *folder = alloc_strf("%s/folder%03d", bench->ws, i);

        make_folder(folder);
        for (int j = 0; j < FILES; j++) {
            AUTO_FREE char *path = alloc_strf("%s/file%03d.txt", folder, j);
            AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
            struct err err;

            if (fd < 0)
                bench_fail("%s: cannot be made", path);
            bench_check(fd_write_all(fd, text.data, text.len, &err), &err);
        }
    }
}

/* What grep is to find, once, so that it ends with 0. */
static void make_needle(const struct bench *bench)
{
    AUTO_FREE char *path = path_join(bench->ws, "folder005/needle");
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    struct err err;

    if (fd < 0)
        bench_fail("%s: cannot be made", path);
    bench_check(fd_write_all(fd, "a needle\n", 9, &err), &err);
}

static void make_repository(const struct bench *bench)
{
    run_bare(bench, (const char *const[]){"/usr/bin/git", "init", "-q", ".", NULL});
    run_bare(bench, (const char *const[]){"/usr/bin/git", "add", "-A", NULL});
    run_bare(bench,
             (const char *const[]){"/usr/bin/git", "-c", "user.name=b", "-c",
                                   "user.email=b@example.org", "commit", "-q", "-m", "all", NULL});
}

/* Medians of the command inside and outside, taking turns. */
static void take_turns(const struct bench *bench, struct sandbox *sandbox, const char *const *argv,
                       double *ret_inside, double *ret_outside)
{
    AUTO(sample_done) struct sample inside = {0};
    AUTO(sample_done) struct sample outside = {0};

    run_bare(bench, argv);
    for (unsigned i = 0; i < bench->runs / TURNS_SHARE; i++) {
        uint64_t start = clock_now_ns();

        run_bare(bench, argv);
        sample_add_since(&outside, start);
        start = clock_now_ns();
        run_inside(bench, sandbox, argv);
        sample_add_since(&inside, start);
    }
    *ret_inside = sample_median(&inside);
    *ret_outside = sample_median(&outside);
}

static void measure(struct bench *bench, struct sandbox *sandbox, const char *const *argv,
                    const char *const names[3])
{
    const char *const nothing[] = {"/bin/true", NULL};
    const struct figure time = {.unit = "ms", .runs = bench->runs / TURNS_SHARE};
    struct figure figure = time;
    double inside;
    double outside;
    double launch_inside;
    double launch_outside;

    take_turns(bench, sandbox, nothing, &launch_inside, &launch_outside);
    take_turns(bench, sandbox, argv, &inside, &outside);
    figure.name = names[0];
    figure.value = outside;
    report_add(&bench->report, &figure);
    figure.name = names[1];
    figure.value = inside;
    report_add(&bench->report, &figure);
    report_add(&bench->report,
               &(struct figure){.name = names[2],
                                .unit = "x",
                                .value = (inside - launch_inside) / (outside - launch_outside),
                                .runs = time.runs,
                                .goal = GOAL_AT_MOST,
                                .target = 1.04});
}

void bench_tools(struct bench *bench)
{
    struct sandbox *sandbox;

    make_files(bench);
    make_needle(bench);
    sandbox = sandbox_open(bench, true);
    measure(bench, sandbox, (const char *const[]){"/bin/grep", "-rl", "needle", ".", NULL},
            (const char *const[3]){"grep -r over 20,000 files, outside", "  inside",
                                   "  inside / outside, without the launch"});
    sandbox_free(sandbox);
    if (access("/usr/bin/git", X_OK)) {
        fputs("bench: git is not installed\n", stderr);
        return;
    }
    make_repository(bench);
    sandbox = sandbox_open(bench, true);
    measure(bench, sandbox, (const char *const[]){"/usr/bin/git", "status", "--short", NULL},
            (const char *const[3]){"git status over 20,000 files, outside", "  inside",
                                   "  inside / outside, without the launch"});
    sandbox_free(sandbox);
}

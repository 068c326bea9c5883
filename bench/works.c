/* See works.h. What a work reads (an archive, a repository, packages) lies beside the workspace in
 * "material", where a sandbox lets it be read; what several works look through lies in the workspace.
 * All of it is made here, so the figures need nothing from anywhere. */
#include "works.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PER_FOLDER = 100,
    ARCHIVED = 20000, /* files */
    CLONED = 2000,
    COPIED = 2000,
    LOOKED_THROUGH = 45000,
    SOURCES = 100,  /* C files */
    FUNCTIONS = 40, /* in each */
    PACKAGES = 60,
    PACKAGE_FILES = 20,
    SMALL = 600, /* bytes */
    QUICK_SHARE = 20,
};

/* --- files and folders --- */

static unsigned few(const struct bench *bench, unsigned count)
{
    return bench_is_quick(bench) ? count / QUICK_SHARE : count;
}

/* `name` is relative to the workspace. The caller frees. */
static char *place(const struct bench *bench, const char *name)
{
    return path_join(bench->ws, name);
}

static void make_folder(const char *path)
{
    if (mkdir(path, 0755))
        bench_fail("%s: cannot be made", path);
}

static void make_file(const char *path, const char *text, size_t len)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    struct err err;

    if (fd < 0)
        bench_fail("%s: cannot be made", path);
    bench_check(fd_write_all(fd, text, len, &err), &err);
}

static void make_tree(const char *top, unsigned files)
{
    char text[SMALL];

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i % 60 == 59 ? '\n' : 'a' + i % 26);
    make_folder(top);
    for (unsigned i = 0; i < files; i++) {
        AUTO_FREE char *folder = alloc_strf("%s/folder%03u", top, i / PER_FOLDER);
        AUTO_FREE char *path = alloc_strf("%s/file%03u.txt", folder, i % PER_FOLDER);

        if (i % PER_FOLDER == 0)
            make_folder(folder);
        make_file(path, text, sizeof text);
    }
}

void works_make_tree(const struct bench *bench, const char *name, unsigned files)
{
    AUTO_FREE char *top = place(bench, name);

    make_tree(top, few(bench, files));
}

static void make_repository(const struct bench *bench, const char *top)
{
    run_bare(bench, (const char *const[]){"/usr/bin/git", "init", "-q", top, NULL});
    run_bare(bench, (const char *const[]){"/usr/bin/git", "-C", top, "add", "-A", NULL});
    run_bare(bench,
             (const char *const[]){"/usr/bin/git", "-C", top, "-c", "user.name=b", "-c",
                                   "user.email=b@example.org", "commit", "-q", "-m", "all", NULL});
}

/* Where the material lies; made when it is asked for first. The caller frees. */
static char *material(const struct bench *bench, const char *name)
{
    AUTO_FREE char *parent = path_parent(bench->ws);
    AUTO_FREE char *folder = path_join(parent, "material");

    if (access(folder, F_OK))
        make_folder(folder);
    return path_join(folder, name);
}

/* --- each work's own --- */

static void make_archive(const struct bench *bench)
{
    AUTO_FREE char *tree = material(bench, "archived");
    AUTO_FREE char *archive = material(bench, "files.tar");
    AUTO_FREE char *target = place(bench, "unpacked");

    make_tree(tree, few(bench, ARCHIVED));
    run_bare(bench, (const char *const[]){"/bin/tar", "-cf", archive, "-C", tree, ".", NULL});
    bench_remove(tree);
    make_folder(target);
}

static void make_origin(const struct bench *bench)
{
    AUTO_FREE char *origin = material(bench, "origin");

    make_tree(origin, few(bench, CLONED));
    make_repository(bench, origin);
    run_bare(bench, (const char *const[]){"/usr/bin/git", "-C", origin, "gc", "-q", NULL});
}

static void make_package(const struct bench *bench, unsigned number)
{
    AUTO_FREE char *name = alloc_strf("pkg%02u", number);
    AUTO_FREE char *top = material(bench, name);
    AUTO_FREE char *folder = path_join(top, "package");
    AUTO_FREE char *manifest = path_join(folder, "package.json");
    AUTO_FREE char *json = alloc_strf("{\"name\":\"%s\",\"version\":\"1.0.0\"}", name);
    AUTO_FREE char *archive = alloc_strf("%s.tgz", top);

    make_tree(top, 0);
    make_tree(folder, PACKAGE_FILES);
    make_file(manifest, json, strlen(json));
    run_bare(bench, (const char *const[]){"/bin/tar", "-czf", archive, "-C", top, "package", NULL});
    bench_remove(top);
}

static void make_packages(const struct bench *bench)
{
    AUTO_FREE char *app = place(bench, "app");
    AUTO_FREE char *manifest = path_join(app, "package.json");
    AUTO_FREE char *lock = path_join(app, "package-lock.json");
    AUTO(buf_done) struct buf needs = {.max = 64 << 10};
    AUTO(buf_done) struct buf found = {.max = 64 << 10};
    AUTO_FREE char *manifest_text = NULL;
    AUTO_FREE char *lock_text = NULL;

    make_folder(app);
    for (unsigned i = 0; i < few(bench, PACKAGES); i++) {
        make_package(bench, i);
        buf_appendf(&needs, "%s\"pkg%02u\":\"file:../../material/pkg%02u.tgz\"", i ? "," : "", i,
                    i);
        buf_appendf(&found,
                    ",\"node_modules/pkg%02u\":{\"version\":\"1.0.0\","
                    "\"resolved\":\"file:../../material/pkg%02u.tgz\"}",
                    i, i);
    }
    manifest_text = alloc_strf("{\"name\":\"app\",\"version\":\"1.0.0\",\"dependencies\":{%.*s}}",
                               (int)needs.len, needs.data);
    lock_text = alloc_strf("{\"name\":\"app\",\"version\":\"1.0.0\",\"lockfileVersion\":3,"
                           "\"requires\":true,\"packages\":{\"\":{\"name\":\"app\","
                           "\"version\":\"1.0.0\",\"dependencies\":{%.*s}}%.*s}}",
                           (int)needs.len, needs.data, (int)found.len, found.data);
    make_file(manifest, manifest_text, strlen(manifest_text));
    make_file(lock, lock_text, strlen(lock_text));
}

static void make_source(const char *folder, unsigned number)
{
    AUTO_FREE char *path = alloc_strf("%s/part%02u.c", folder, number);
    AUTO(buf_done) struct buf text = {.max = 64 << 10};

    buf_appendf(&text, "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n");
#include <string.h>
    for (unsigned i = 0; i < FUNCTIONS; i++)
        buf_appendf(&text,
                    "int part%02u_%u(const char *text, int n)\n{\n    int sum = n;\n\n"
                    "    for (size_t i = 0; i < strlen(text); i++)\n"
                    "        sum = sum * 31 + text[i] %% %u;\n"
                    "    if (sum > %u)\n        printf(\"%%d\\n\", sum);\n    return sum;\n}\n\n",
                    number, i, i + 3, i * 1000);
    if (number == 0)
        buf_append_str(&text, "int main(void)\n{\n    return part00_0(\"x\", 1) < 0;\n}\n");
    make_file(path, text.data, text.len);
}

/* The objects go into a folder of their own, which is what is removed before the next turn. */
static void make_project(const struct bench *bench)
{
    static const char makefile[] =
        "objects = $(patsubst %.c,../objects/%.o,$(wildcard *.c))\n"
        "../objects/program: $(objects)\n\tgcc -o $@ $^\n"
        "../objects/%.o: %.c\n\t@mkdir -p ../objects\n\tgcc -O1 -MMD -c -o $@ $<\n";
    AUTO_FREE char *folder = place(bench, "project");
    AUTO_FREE char *path = path_join(folder, "Makefile");

    make_folder(folder);
    for (unsigned i = 0; i < few(bench, SOURCES); i++)
        make_source(folder, i);
    make_file(path, makefile, sizeof makefile - 1);
}

static void make_big(const struct bench *bench)
{
    AUTO_FREE char *big = place(bench, "big");
    AUTO_FREE char *needle = path_join(big, "folder001/needle");

    make_tree(big, few(bench, LOOKED_THROUGH));
    make_file(needle, "a needle\n", 9);
    make_repository(bench, big);
}

static void make_copied(const struct bench *bench)
{
    AUTO_FREE char *tree = material(bench, "copied");

    make_tree(tree, few(bench, COPIED));
}

static void make_nothing(const struct bench *bench)
{
    (void)bench;
}

/* --- the list --- */

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

/* How much slower one may be, beside the build before and beside nothing, is from what the guard was
 * wanted for: "atMost" of its issue. */
const struct work works[] = {
    {.name = "tar -x of 20,000 files",
     .program = "/bin/tar",
     .argv =
         ARGV("/bin/tar", "-xf", "../material/files.tar", "-C", "unpacked/", "--one-top-level=x"),
     .leaves = "unpacked/x",
     .against_before = 1.2,
     .against_outside = 1.2,
     .share = 40,
     .make = make_archive},
    {.name = "git clone of 2,000 files",
     .program = "/usr/bin/git",
     .argv = ARGV("/usr/bin/git", "clone", "-q", "--no-local", "../material/origin", "clone"),
     .leaves = "clone",
     .against_before = 1.08,
     .against_outside = 1.08,
     .share = 20,
     .make = make_origin},
    {.name = "npm ci of 60 packages",
     .program = "/usr/bin/npm",
     .argv = ARGV("/bin/sh", "-c",
                  "cd app && exec npm ci --offline --ignore-scripts --no-audit --no-fund "
                  "--no-update-notifier --logs-max=0 --cache ../npm-cache"),
     .leaves = "app/node_modules",
     .also = "npm-cache",
     .against_before = 1.05,
     .against_outside = 1.05,
     .share = 40,
     .make = make_packages},
    {.name = "make -j2 of 100 C files",
     .program = "/usr/bin/make",
     .argv = ARGV("/usr/bin/make", "-s", "-j2", "-C", "project"),
     .leaves = "objects",
     .against_before = 1.03,
     .against_outside = 1.03,
     .share = 40,
     .make = make_project},
    {.name = "git status of 45,000 files",
     .program = "/usr/bin/git",
     .argv = ARGV("/usr/bin/git", "-C", "big", "status", "--short"),
     .against_before = 1.02,
     .against_outside = 1.04,
     .share = 20,
     .make = make_big},
    {.name = "grep -r in 45,000 files",
     .program = "/usr/bin/git", /* the tree is a repository's */
     .argv = ARGV("/bin/grep", "-rl", "needle", "big/"),
     .against_before = 1.02,
     .against_outside = 1.04,
     .share = 20,
     .make = make_nothing},
    {.name = "sh, 300 programs",
     .program = "/bin/sh",
     .argv = ARGV("/bin/sh", "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done"),
     .share = 20,
     .make = make_nothing},
    {.name = "python3 -c 'import json'",
     .program = "/usr/bin/python3",
     .argv = ARGV("/usr/bin/python3", "-c", "import json"),
     .share = 4,
     .make = make_nothing},
    {.name = "cp -r of 2,000 files",
     .program = "/bin/cp",
     .argv = ARGV("/bin/cp", "-r", "../material/copied", "copy"),
     .leaves = "copy",
     .share = 20,
     .make = make_copied},
};

const size_t works_len = sizeof works / sizeof *works;

static void move_aside(const struct bench *bench, const char *name)
{
    static unsigned count;
    AUTO_FREE char *from = place(bench, name);
    AUTO_FREE char *aside = alloc_strf("aside%u", count++);
    AUTO_FREE char *to = material(bench, aside);

    if (rename(from, to))
        bench_fail("%s: cannot be moved", from);
}

void work_undo(const struct bench *bench, const struct work *work)
{
    AUTO_CLOSE int ws = open(bench->ws, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (!work->leaves)
        return;
    move_aside(bench, work->leaves);
    if (work->also)
        move_aside(bench, work->also);
    if (ws < 0 || syncfs(ws))
        bench_fail("%s: cannot be written to the disk", bench->ws);
}

void work_make(const struct bench *bench, const struct work *work)
{
    static unsigned made; /* bits, by their place in the list */
    const unsigned bit = 1u << (work - works);

    if (!(made & bit))
        work->make(bench);
    made |= bit;
}

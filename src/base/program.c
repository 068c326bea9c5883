/* See program.h. A program is looked for beside the running one, then in an installed tree, which
 * may have been moved as a whole, then in a build tree, and in the end where it was configured to
 * be installed. Never in the PATH, which may name directories that are not ours. Whoever could
 * write to one of these places could run a program of theirs outside of every sandbox, so a sandbox
 * protects all of them (sandbox/linux/sandbox.c).
 *
 * Data that comes with the programs is found by the same places, and protected like them.
 *
 * The launcher finds `cordon` by itself (sandbox/launcher/main.c), as it links nothing of base. */
#include "base/program.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <limits.h>
#include <stdbool.h>
#include <unistd.h>

static const struct {
    const char *name;
    const char *build_dir; /* below src/ of the build tree */
} programs[] = {
    {"cordon", "cli"},         {"cordon-client", "cli"},
    {"cordon-files", "files"}, {"cordon-guard", "guard"},
    {"cordon-http", "http"},   {"cordon-linux-sandbox", "sandbox/launcher"},
    {"cordon-log", "cli"},     {"cordon-scope", "process"},
    {"cordon-server", "cli"},
};

/* In the order of the search. What is relative is seen from the running program's directory. */
static const struct {
    const char *dir;
    bool is_build_tree; /* the program's `build_dir` follows */
} places[] = {
    {".", false},     {"../libexec/cordon", false}, {"../../bin", false},   {"..", true},
    {"../src", true}, {CORDON_LIBEXEC, false},      {CORDON_BINDIR, false},
};

enum { PROGRAMS = sizeof programs / sizeof *programs, PLACES = sizeof places / sizeof *places };

char *program_self(void)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self);

    return alloc_strn(self, len < 0 ? 0 : (size_t)len);
}

/* The path of one program at one place. */
static char *program_at(size_t program, size_t place, const char *here)
{
    const char *build_dir = places[place].is_build_tree ? programs[program].build_dir : "";
    AUTO_FREE char *path =
        alloc_strf("%s/%s/%s", places[place].dir, build_dir, programs[program].name);

    return path_clean(here, path);
}

char *program_find(const char *name, struct err *err)
{
    AUTO_FREE char *self = program_self();
    AUTO_FREE char *here = path_parent(self);
    size_t program = 0;

    while (program < PROGRAMS && !str_eq(programs[program].name, name))
        program++;
    for (size_t i = 0; program < PROGRAMS && i < PLACES; i++) {
        AUTO_FREE char *path = program_at(program, i, here);

        if (access(path, X_OK) == 0)
            return TAKE_PTR(path);
    }
    err_set(err, ERR_NOT_FOUND, "the program %s is neither beside %s nor in " CORDON_LIBEXEC, name,
            *self ? self : "this one");
    return NULL;
}

int program_exec(const char *name, char *const *argv, struct err *err)
{
    AUTO_FREE char *path = program_find(name, err);

    if (!path)
        return -1;
    execv(path, argv);
    return err_sys(err, "%s", path);
}

/* `here`: the running program's directory. */
static void add_data_dirs(const char *here, const char *name, struct strv *ret)
{
    static const char *const installed[] = {"../share/cordon", "../../share/cordon"};
    bool is_build_tree = str_ends(here, "/src/cli");

    for (size_t i = 0; i < sizeof installed / sizeof *installed && !is_build_tree; i++) {
        AUTO_FREE char *dir = path_clean(here, installed[i]);

        strv_push_take(ret, path_join(dir, name));
    }
    if (is_build_tree) {
        AUTO_FREE char *dir = path_clean(here, "../..");

        strv_push_take(ret, path_join(dir, name));
    }
    strv_push_take(ret, path_join(CORDON_DATADIR, name));
}

void program_add_paths(struct strv *ret)
{
    AUTO_FREE char *self = program_self();
    AUTO_FREE char *here = path_parent(self);

    for (size_t i = 0; i < PROGRAMS; i++)
        for (size_t j = 0; j < PLACES; j++)
            strv_push_take(ret, program_at(i, j, here));
    add_data_dirs(here, "presets", ret);
}

void program_data_dirs(const char *name, struct strv *ret)
{
    AUTO_FREE char *self = program_self();
    AUTO_FREE char *here = path_parent(self);

    add_data_dirs(here, name, ret);
}

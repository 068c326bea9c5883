/* See program.h. Where the running program lies tells how Cordon lies there, as a whole and wherever that was moved to:
 *
 *     X/bin/cordon, X/libexec/cordon/cordon-*, X/share/cordon/      installed, or unpacked
 *     B/src/cli/cordon, B/src/files/cordon-files, B/presets/        built
 *     F/cordon, F/cordon-files, ...                                 all in one folder
 *
 * There the others are looked for, then where it was configured to be installed, and nowhere else: never in the PATH, which may
 * name directories that are not ours. Whoever could write to one of these places could run a program of theirs outside of every
 * sandbox, so a sandbox protects all of them, also those where nothing is yet (sandbox/linux/own_paths.c); a place more is
 * a place more that a command cannot use.
 *
 * The launcher finds `cordon` by itself (sandbox/launcher/main.c), as it links nothing of base. */
#include "base/program.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HELPERS "libexec/cordon"

static const struct {
    const char *name;
    const char *build_dir; /* below the build tree */
} programs[] = {
    {"cordon", "src/cli"},
    {"cordon-client", "src/cli"},
    {"cordon-files", "src/files"},
    {"cordon-guard", "src/guard"},
    {"cordon-http", "src/http"},
    {"cordon-layer", "src/layer"},
    {"cordon-linux-sandbox", "src/sandbox/launcher"},
    {"cordon-log", "src/cli"},
    {"cordon-proxy", "src/proxy"},
    {"cordon-scope", "src/process"},
    {"cordon-server", "src/cli"},
    {"cordon-tls", "src/tls"},
};

enum { PROGRAMS = sizeof programs / sizeof *programs };

char *program_self(void)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self);

    return alloc_strn(self, len < 0 ? 0 : (size_t)len);
}

/* --- how Cordon lies here --- */

enum layout { LAYOUT_INSTALLED, LAYOUT_BUILT, LAYOUT_TOGETHER };

struct tree {
    enum layout layout;
    char *root;
    char *doubted; /* the folder whose absence made us think so; NULL: none */
};

static void tree_done(struct tree *tree)
{
    free(tree->root);
    free(tree->doubted);
}

/* The part of `here` before `tail`, which is whole components; NULL when it does not end so. */
static char *without_tail(const char *here, const char *tail)
{
    const size_t len = strlen(here);
    const size_t tail_len = strlen(tail);

    if (len <= tail_len + 1 || !str_ends(here, tail) || here[len - tail_len - 1] != '/')
        return NULL;
    return alloc_strn(here, len - tail_len - 1);
}

/* Its root, if this is the folder of a program in a build tree. */
static char *built_root(const char *here)
{
    char *root = without_tail(here, "bench");

    for (size_t i = 0; i < PROGRAMS && !root; i++)
        root = without_tail(here, programs[i].build_dir);
    return root;
}

static void tree_find(struct tree *ret)
{
    AUTO_FREE char *self = program_self();
    AUTO_FREE char *here = path_parent(self);
    AUTO_FREE char *helpers = path_clean(here, "../" HELPERS);
    struct stat st;

    *ret = (struct tree){.layout = LAYOUT_INSTALLED, .root = without_tail(here, HELPERS)};
    if (ret->root)
        return;
    ret->layout = LAYOUT_BUILT;
    ret->root = built_root(here);
    if (ret->root)
        return;
    if (stat(helpers, &st) == 0 && S_ISDIR(st.st_mode)) {
        ret->layout = LAYOUT_INSTALLED;
        ret->root = path_clean(here, "..");
        return;
    }
    ret->layout = LAYOUT_TOGETHER;
    ret->root = TAKE_PTR(here);
    ret->doubted = TAKE_PTR(helpers);
}

/* Where this program is, seen from the root. */
static char *program_at(const struct tree *tree, size_t program)
{
    const char *const dirs[] = {[LAYOUT_INSTALLED] = program ? HELPERS : "bin",
                                [LAYOUT_BUILT] = programs[program].build_dir,
                                [LAYOUT_TOGETHER] = "."};
    AUTO_FREE char *path = alloc_strf("%s/%s", dirs[tree->layout], programs[program].name);

    return path_clean(tree->root, path);
}

static char *program_configured(size_t program)
{
    return path_join(program ? CORDON_LIBEXEC : CORDON_BINDIR, programs[program].name);
}

char *program_find(const char *name, struct err *err)
{
    AUTO(tree_done) struct tree tree;
    size_t program = 0;

    tree_find(&tree);
    while (program < PROGRAMS && !str_eq(programs[program].name, name))
        program++;
    if (program < PROGRAMS) {
        AUTO_FREE char *path = program_at(&tree, program);
        AUTO_FREE char *configured = program_configured(program);

        if (access(path, X_OK) == 0)
            return TAKE_PTR(path);
        if (access(configured, X_OK) == 0)
            return TAKE_PTR(configured);
    }
    err_set(err, ERR_NOT_FOUND,
            "the program %s is neither in %s, as the running one, nor in " CORDON_LIBEXEC "%s",
            name, tree.root, access("/proc/self", F_OK) ? ": is /proc mounted?" : "");
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

/* Where data lies, which those who have all in one folder do not have. */
static void add_data_dirs(const struct tree *tree, const char *name, struct strv *ret)
{
    if (tree->layout == LAYOUT_INSTALLED) {
        AUTO_FREE char *dir = path_join(tree->root, "share/cordon");

        strv_push_take(ret, path_join(dir, name));
    } else if (tree->layout == LAYOUT_BUILT) {
        strv_push_take(ret, path_join(tree->root, name));
    }
    strv_push_take(ret, path_join(CORDON_DATADIR, name));
}

void program_add_paths(struct strv *ret)
{
    AUTO(tree_done) struct tree tree;

    tree_find(&tree);
    for (size_t i = 0; i < PROGRAMS && (tree.layout != LAYOUT_INSTALLED || i == 0); i++)
        strv_push_take(ret, program_at(&tree, i));
    if (tree.layout == LAYOUT_INSTALLED)
        strv_push_take(ret, path_join(tree.root, HELPERS));
    if (tree.doubted)
        strv_push(ret, tree.doubted);
    strv_push_take(ret, program_configured(0));
    strv_push(ret, CORDON_LIBEXEC);
    add_data_dirs(&tree, "presets", ret);
}

void program_data_dirs(const char *name, struct strv *ret)
{
    AUTO(tree_done) struct tree tree;

    tree_find(&tree);
    add_data_dirs(&tree, name, ret);
}

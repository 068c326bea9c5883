/* See protect_git.h. It does what git does: from each root upwards to the first `.git` or bare
 * repository; through `.git` files and `commondir` to the directories that hold a repository; from
 * there to its submodules by the index, which the command cannot change (not by .gitmodules, which it
 * can), and so on in each; and through its configuration and what that includes to hooks, monitors and
 * drivers that lie where the command may write.
 *
 * Of a git directory that the user opened, what git runs or is led by stays closed: `config`, `hooks`,
 * `info`, `commondir`, in it and in those of its modules and worktrees. In a root that is a git directory
 * itself `modules` and `worktrees` are closed, too. In every git directory these names, and hooks, may be
 * symlinks, and what they lead to is closed.
 *
 * What cannot be seen is never taken for missing. What it does not do: look for repositories
 * deeper in a root that no index names, or evaluate the conditions of includeIf, of which any may
 * come true. */
#include "policy/protect_git.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/git_index.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/git_commit.h"
#include "policy/git_config.h"
#include "policy/git_index.h"
#include "policy/profile.h"
#include "policy/protect.h"
#include "policy/resolve.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What git runs, or is led by to what it runs, in a git directory. The last two in one that is a
 * root. */
static const char *const git_names[] = {
    "config", "config.worktree", "commondir", "hooks", "info", "modules", "worktrees", NULL,
};

/* git itself reads a `.git` file up to this size */
enum {
    POINTER_SIZE_MAX = 1 << 20,
    MODULES_MAX = 32,
    REPOSITORIES_MAX = 4096,
};

struct protect_run {
    struct access_map *map;
    const struct host_view *view;
    const char *home;         /* or NULL */
    const char *config_home;  /* or NULL */
    struct strv repositories; /* a work tree (or "", for none) and its git directory, by turns */
    struct strv seen;         /* git directories that are done */
    struct strv submodules;   /* their .git */
};

static void protect_run_done(struct protect_run *run)
{
    strv_done(&run->submodules);
    strv_done(&run->seen);
    strv_done(&run->repositories);
}

static void guard(const struct protect_run *run, const char *path, enum access_kind kind,
                  const char *origin)
{
    if (access_map_exact(run->map, path) || access_map_check_host(run->map, path) != ACCESS_WRITE)
        return;
    access_map_add(run->map, path, ACCESS_READ, kind, origin)->is_protected = true;
    access_map_sort(run->map);
}

/* What cannot be seen may be there. */
static int has_file(const struct protect_run *run, const char *dir, const char *name, bool *ret,
                    struct err *err)
{
    AUTO_FREE char *path = path_join(dir, name);
    enum host_kind kind;

    if (run->view->kind(run->view, path, &kind, err))
        return -1;
    *ret = kind != HOST_MISSING;
    return 0;
}

/* By its names alone (git's setup.c, is_git_directory): what a HEAD says the command could change. Who
 * makes a `.git` writable has opened it; a workspace in one is not writable for being one. */
static int is_git_dir(const struct protect_run *run, const char *path, bool *ret, struct err *err)
{
    bool has_head = false, has_common = false, has_objects = false, has_refs = false;

    if (!str_eq(path_name(path), ".git") &&
        (has_file(run, path, "HEAD", &has_head, err) ||
         (has_head && (has_file(run, path, "commondir", &has_common, err) ||
                       has_file(run, path, "objects", &has_objects, err) ||
                       has_file(run, path, "refs", &has_refs, err)))))
        return -1;
    *ret = has_head && (has_common || (has_objects && has_refs));
    return 0;
}

/* --- second pass: what .git points to --- */

/* Guards `path`, named by the file `named_by`, and gives the canonical path (caller frees), NULL for
 * one that neither we nor the command can see. An entry of the user at that path still decides, by the order of the map. */
static int protect_pointer(const struct protect_run *run, const char *path, const char *named_by,
                           char **ret_path, struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};

    if (path_walk(run->view, path, &walk, err) ||
        protect_check_links(run->map, path, walk.links, walk.links_len, err))
        return err_wrap(err, "the git directory named by %s", named_by);
    if (walk.end == PATH_HIDDEN) {
        if (!access_map_is_open_within(run->map, walk.path, ACCESS_READ))
            return 0; /* and git sees no more of it than we do */
        return err_set(err, ERR_FORBIDDEN,
                       "the git directory named by %s cannot be seen: %s does not let us look",
                       named_by, walk.path);
    }
    if (access_map_check_host(run->map, walk.path) == ACCESS_WRITE) {
        AUTO_FREE char *origin = alloc_strf("git directory named by %s", named_by);

        guard(run, walk.path, walk.kind, origin);
    }
    *ret_path = TAKE_PTR(walk.path);
    return 0;
}

/* Text of the file that a path leads to, trimmed; NULL in `*ret` when there is no such regular
 * file. */
static int protect_read(const struct protect_run *run, const char *path, char **ret,
                        struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};
    AUTO(buf_done) struct buf text = {0};
    enum host_kind kind;
    size_t start;

    *ret = NULL;
    if (path_walk(run->view, path, &walk, err) ||
        protect_check_links(run->map, path, walk.links, walk.links_len, err))
        return -1;
    if (walk.end == PATH_HIDDEN)
        return err_set(err, ERR_FORBIDDEN, "%s cannot be seen: %s does not let us look", path,
                       walk.path);
    if (walk.end != PATH_FOUND || walk.kind != ACCESS_FILE)
        return 0;
    if (run->view->kind(run->view, walk.path, &kind, err))
        return -1;
    if (kind == HOST_HIDDEN)
        return err_set(err, ERR_FORBIDDEN, "%s cannot be seen any more", walk.path);
    if (kind != HOST_FILE)
        return 0;
    if (run->view->text(run->view, walk.path, POINTER_SIZE_MAX, &text, err))
        return -1;
    while (text.len && isspace((unsigned char)text.data[text.len - 1]))
        text.data[--text.len] = '\0';
    for (start = 0; start < text.len && isspace((unsigned char)text.data[start]); start++)
        ;
    *ret = alloc_strn(text.len ? text.data + start : "", text.len - start);
    return 0;
}

/* The directory that hooks and configuration of `git_dir` are in: itself, or what its `commondir` says;
 * NULL for one that nobody can see. */
static int common_dir(const struct protect_run *run, const char *git_dir, char **ret,
                      struct err *err)
{
    AUTO_FREE char *file = path_join(git_dir, "commondir");
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *path = NULL;

    *ret = NULL;
    if (protect_read(run, file, &text, err))
        return -1;
    if (!text || !*text) {
        *ret = alloc_str(git_dir);
        return 0;
    }
    path = path_clean(git_dir, text);
    return protect_pointer(run, path, file, ret, err);
}

static void push(struct protect_run *run, const char *worktree, const char *git_dir)
{
    strv_push(&run->repositories, worktree);
    strv_push(&run->repositories, git_dir);
}

/* `file` is the `.git` of `worktree`. */
static int follow_git_file(struct protect_run *run, const char *worktree, const char *file,
                           struct err *err)
{
    static const char tag[] = "gitdir:";
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *git_dir = NULL;
    const char *target;

    if (protect_read(run, file, &text, err))
        return -1;
    if (!text || !str_starts(text, tag))
        return 0;
    target = text + strlen(tag);
    target += strspn(target, " \t\r\n\v\f");
    if (!*target)
        return 0;
    path = path_clean(worktree, target);
    if (protect_pointer(run, path, file, &git_dir, err))
        return -1;
    if (git_dir)
        push(run, worktree, git_dir);
    return 0;
}

/* --- what is named: in git directories, and by configuration --- */

static int hidden(const char *origin, const char *path, const char *dir, struct err *err)
{
    return err_set(err, ERR_FORBIDDEN, "%s: %s cannot be seen: %s does not let us look", origin,
                   path, dir);
}

/* Where a path leads, if that may be written; and the symlinks that lead there are held: whoever removes
 * one cannot make it again. */
static void guard_walk(const struct protect_run *run, const struct path_walk *walk,
                       const char *origin)
{
    if (walk->end != PATH_FOUND && walk->end != PATH_MISSING)
        return;
    for (size_t i = 0; i < walk->links_len; i++)
        guard(run, walk->links[i].path, ACCESS_MISSING, origin);
    guard(run, walk->path, walk->kind, origin);
}

/* `wants_file`: a directory is not meant. */
static int guard_named(const struct protect_run *run, const char *path, const char *origin,
                       bool wants_file, struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};

    if (path_walk(run->view, path, &walk, err))
        return err_wrap(err, "%s", origin);
    if (walk.end == PATH_HIDDEN && access_map_is_open_within(run->map, walk.path, ACCESS_READ))
        return hidden(origin, path, walk.path, err);
    if (!wants_file || walk.kind != ACCESS_DIR)
        guard_walk(run, &walk, origin);
    return 0;
}

/* As guard_named(), of a name in a canonical directory, which is the end of most walks already. */
static int guard_name(const struct protect_run *run, const char *path, const char *origin,
                      struct err *err)
{
    enum host_kind kind;

    if (run->view->kind(run->view, path, &kind, err))
        return -1;
    if (kind == HOST_SYMLINK || kind == HOST_HIDDEN)
        return guard_named(run, path, origin, false, err);
    guard(run, path, protect_kind(kind), origin);
    return 0;
}

/* As far as it may be written: because the user opened it, or it is a root, or a symlink leads there. */
static int guard_inside(const struct protect_run *run, const char *dir, struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};
    bool is_inside = strstr(dir, "/.git/") || str_ends(dir, "/.git");

    if (path_walk(run->view, dir, &walk, err))
        return err_wrap(err, "git directory");
    for (size_t i = 0; git_names[i]; i++) {
        AUTO_FREE char *path = path_join(dir, git_names[i]);
        AUTO_FREE char *origin = alloc_strf("protected name %s", git_names[i]);

        if (is_inside && (str_eq(git_names[i], "modules") || str_eq(git_names[i], "worktrees")))
            continue;
        if (walk.end == PATH_FOUND && str_eq(walk.path, dir)
                ? guard_name(run, path, origin, err)
                : guard_named(run, path, origin, false, err))
            return -1;
    }
    return 0;
}

/* All git directories in `dir`, of submodules and of worktrees: also those that are not checked out, and of
 * names with slashes in them. */
static int guard_modules(const struct protect_run *run, const char *dir, unsigned depth,
                         struct err *err)
{
    AUTO(host_listing_done) struct host_listing listing = {0};
    AUTO_FREE char *modules = path_join(dir, "modules");
    enum host_kind kind;
    bool is_one = false;

    if (run->view->kind(run->view, dir, &kind, err))
        return -1;
    if (kind != HOST_DIR)
        return 0;
    if (depth == MODULES_MAX)
        return err_set(err, ERR_LIMIT, "%s: more than %d directories deep", dir, MODULES_MAX);
    if (has_file(run, dir, "HEAD", &is_one, err))
        return -1;
    if (is_one)
        return guard_inside(run, dir, err) ? -1 : guard_modules(run, modules, depth + 1, err);
    if (run->view->list(run->view, dir, &listing, err))
        return err_wrap(err, "git directories of submodules");
    for (size_t i = 0; i < listing.len; i++) {
        AUTO_FREE char *path = path_join(dir, listing.items[i].name);

        if (listing.items[i].kind == HOST_DIR && guard_modules(run, path, depth + 1, err))
            return -1;
    }
    return 0;
}

/* NULL in `*ret` for what cannot be told, which is none of the workspace's. */
static int value_path(const struct protect_run *run, const char *base, const char *value,
                      char **ret, struct err *err)
{
    const size_t name_len = strcspn(value, "/");
    AUTO_FREE char *name = alloc_strn(value, name_len);
    AUTO_FREE char *home = NULL;

    *ret = NULL;
    if (value[0] == '%')
        return 0;
    if (value[0] != '~') {
        *ret = path_clean(base, value);
        return 0;
    }
    if (name[1] && host_account_home(run->view, name + 1, &home, err))
        return -1;
    if (!name[1] && run->home)
        home = alloc_str(run->home);
    if (home && value[name_len])
        *ret = path_clean(home, value + name_len + 1);
    return 0;
}

/* One word of a command. */
static int guard_word(const struct protect_run *run, const char *worktree, const char *word,
                      const char *origin, struct err *err)
{
    AUTO_FREE char *path = NULL;
    enum host_kind kind = HOST_FILE;

    if (word[0] == '-')
        return 0;
    if (value_path(run, worktree, word, &path, err))
        return -1;
    if (!path || str_eq(path, "/"))
        return 0;
    if (!strchr(word, '/') && run->view->kind(run->view, path, &kind, err))
        return -1;
    return kind == HOST_MISSING ? 0 : guard_named(run, path, origin, true, err);
}

/* Any word of a command may name a file that the shell, or an interpreter, runs. One that is not there
 * has to look like a path. What is in quotes may be one with blanks. */
static int guard_command(const struct protect_run *run, const char *worktree, const char *command,
                         const char *origin, struct err *err)
{
    static const char separators[] = " \t\n\"';&|()<>=`$!";

    for (const char *at = command; *(at += strspn(at, separators)); at += strcspn(at, separators)) {
        AUTO_FREE char *word = alloc_strn(at, strcspn(at, separators));

        if (guard_word(run, worktree, word, origin, err))
            return -1;
    }
    for (const char *at = command; (at = strpbrk(at, "\"'"));) {
        const char quote[] = {*at, '\0'};
        AUTO_FREE char *word = alloc_strn(at + 1, strcspn(at + 1, quote));

        if (strpbrk(word, " \t") && guard_word(run, worktree, word, origin, err))
            return -1;
        at += 1 + strlen(word);
        at += *at == *quote;
    }
    return 0;
}

/* A hook may be a symlink to what the workspace holds. */
static int guard_links(const struct protect_run *run, const char *dir, const char *origin,
                       struct err *err)
{
    AUTO(host_listing_done) struct host_listing listing = {0};
    AUTO(path_walk_done) struct path_walk found = {0};

    if (path_walk(run->view, dir, &found, err))
        return err_wrap(err, "%s", origin);
    if (found.end == PATH_HIDDEN)
        return hidden(origin, dir, found.path, err);
    if (found.end != PATH_FOUND || found.kind != ACCESS_DIR)
        return 0;
    if (run->view->list(run->view, found.path, &listing, err))
        return err->code == ERR_NOT_FOUND ? 0 : err_wrap(err, "%s", origin);
    for (size_t i = 0; i < listing.len; i++) {
        AUTO(path_walk_done) struct path_walk walk = {0};
        AUTO_FREE char *path = path_join(found.path, listing.items[i].name);

        if (listing.items[i].kind != HOST_SYMLINK)
            continue;
        if (path_walk(run->view, path, &walk, err))
            return err_wrap(err, "%s", origin);
        if (walk.end == PATH_HIDDEN)
            return hidden(origin, path, walk.path, err);
        guard_walk(run, &walk, origin);
    }
    return 0;
}

/* Hooks of husky are in `.husky/_`, and run what is beside that. */
static int guard_hooks(const struct protect_run *run, const char *path, const char *origin,
                       struct err *err)
{
    AUTO_FREE char *above = path_parent(path);
    const char *dir = str_eq(path_name(path), "_") ? above : path;

    return guard_named(run, dir, origin, false, err) || guard_links(run, dir, origin, err) ||
                   (dir != path && guard_links(run, path, origin, err))
               ? -1
               : 0;
}

struct config_files {
    struct strv files;   /* to be read, each with what it includes behind it */
    const char *git_dir; /* of the repository */
    char *worktree;      /* where paths count from: the work tree, else the git directory */
};

/* One key of the file `file`. */
static int take_key(const struct protect_run *run, struct config_files *files, const char *file,
                    enum git_config_kind kind, const char *value, struct err *err)
{
    AUTO_FREE char *origin = alloc_strf("named by %s", file);
    AUTO_FREE char *dir = path_parent(file);
    const char *base = kind == GIT_CONFIG_INCLUDE    ? dir
                       : kind == GIT_CONFIG_WORKTREE ? files->git_dir
                                                     : files->worktree;
    AUTO_FREE char *path = NULL;

    if (kind == GIT_CONFIG_COMMAND)
        return guard_command(run, files->worktree, value, origin, err);
    if (value_path(run, base, value, &path, err))
        return -1;
    if (!path)
        return 0;
    switch (kind) {
    case GIT_CONFIG_INCLUDE:
        if (!strv_has(&files->files, path))
            strv_push(&files->files, path);
        return 0;
    case GIT_CONFIG_WORKTREE:
        free(files->worktree);
        files->worktree = TAKE_PTR(path);
        return 0;
    case GIT_CONFIG_HOOKS:
        return guard_hooks(run, path, origin, err);
    case GIT_CONFIG_PATH:
        return guard_named(run, path, origin, false, err);
    case GIT_CONFIG_COMMAND:
    case GIT_CONFIG_NOTHING:
        break;
    }
    return 0;
}

/* What neither we nor the command can read is none of git's, either. What the file is a symlink to is
 * guarded before it is read. */
static int read_config(const struct protect_run *run, struct config_files *files, const char *file,
                       struct err *err)
{
    AUTO(git_config_done) struct git_config_reader reader = {0};
    AUTO_FREE char *text = NULL;
    enum git_config_kind kind;

    if (guard_named(run, file, "configuration of git", true, err) ||
        protect_read(run, file, &text, err))
        return err->code == ERR_FORBIDDEN &&
                       access_map_check_host(run->map, file) != ACCESS_WRITE &&
                       !path_is_within(file, files->worktree)
                   ? 0
                   : -1;
    if (!text)
        return 0;
    git_config_begin(&reader, text, strlen(text));
    while ((kind = git_config_next(&reader)) != GIT_CONFIG_NOTHING)
        if (take_key(run, files, file, kind, reader.value, err))
            return -1;
    return 0;
}

/* All files that git reads for the repository; `*ret_worktree` is where its work tree really is. */
static int follow_config(const struct protect_run *run, const char *worktree, const char *git_dir,
                         const char *common, char **ret_worktree, struct err *err)
{
    static const char *const of_home[] = {".gitconfig", ".config/git/config"};
    struct config_files files = {.git_dir = git_dir,
                                 .worktree = alloc_str(*worktree ? worktree : git_dir)};
    int status = 0;

    /* the work tree first, which the others count from */
    strv_push_take(&files.files, path_join(common, "config"));
    strv_push_take(&files.files, path_join(git_dir, "config.worktree"));
    strv_push(&files.files, "/etc/gitconfig");
    for (size_t i = 0; run->home && i < sizeof of_home / sizeof *of_home; i++)
        strv_push_take(&files.files, path_join(run->home, of_home[i]));
    if (run->config_home && *run->config_home == '/')
        strv_push_take(&files.files, path_clean(run->config_home, "git/config"));
    for (size_t i = 0; !status && i < files.files.len && i < REPOSITORIES_MAX; i++) {
        AUTO_FREE char *file = alloc_str(files.files.items[i]);

        status = read_config(run, &files, file, err);
    }
    strv_done(&files.files);
    if (status)
        free(files.worktree);
    else
        *ret_worktree = files.worktree;
    return status;
}

/* --- submodules --- */

/* `path`, which cannot be seen, must not be made anything of: the directory that hides it is
 * read-only. */
static int guard_hidden(const struct protect_run *run, const char *path, struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};

    if (path_walk(run->view, path, &walk, err))
        return -1;
    guard(run, walk.path, ACCESS_DIR, "hides the git directory of a submodule");
    if (walk.end != PATH_HIDDEN || access_map_is_open_within(run->map, walk.path, ACCESS_READ))
        return err_set(err, ERR_FORBIDDEN, "%s, of a submodule, cannot be seen", path);
    return 0;
}

/* git enters a submodule with a plain `git status` of the repository around it, and obeys the
 * configuration that it finds by way of its `.git`. */
static int follow_submodule(struct protect_run *run, const char *worktree, const char *name,
                            struct err *err)
{
    AUTO_FREE char *path = path_join(worktree, name);
    AUTO_FREE char *file = path_join(path, ".git");
    enum host_kind kind;

    if (!path_is_clean(file))
        return 0;
    if (run->view->kind(run->view, file, &kind, err))
        return -1;
    if (kind == HOST_HIDDEN)
        return guard_hidden(run, file, err);
    if (guard_named(run, file, "git directory of a submodule", false, err))
        return -1;
    strv_push(&run->submodules, file);
    if (kind == HOST_FILE)
        return follow_git_file(run, path, file, err);
    if (kind == HOST_DIR)
        push(run, path, file);
    return 0;
}

/* The index, and the one that it is split from. */
static int follow_index(struct protect_run *run, const char *worktree, const char *git_dir,
                        struct err *err)
{
    AUTO_FREE char *name = alloc_str("index");
    AUTO(strv_done) struct strv paths = {0};

    while (name) {
        AUTO_FREE char *index = path_join(git_dir, name);
        AUTO_FREE char *shared = NULL;
        AUTO(buf_done) struct buf bytes = {0};
        bool is_there = false;

        if (has_file(run, git_dir, name, &is_there, err))
            return -1;
        if (is_there &&
            (run->view->text(run->view, index, GIT_INDEX_BYTES_MAX, &bytes, err) ||
             git_index_submodules(bytes.data ? bytes.data : "", bytes.len, &paths, &shared, err)))
            return err_wrap(err,
                            "the submodules that %s names (`git status`, outside, tells what is "
                            "wrong with it)",
                            index);
        if (shared && !str_eq(name, "index")) /* of git's own none is, and a ring has no end */
            return err_set(err, ERR_INVALID, "%s is split once more, which git does not do", index);
        free(name);
        name = TAKE_PTR(shared);
    }
    for (size_t i = 0; i < paths.len; i++)
        if (follow_submodule(run, worktree, paths.items[i], err))
            return -1;
    return 0;
}

/* --- repositories --- */

/* What git runs in a git directory, or is led by. */
static int guard_git_dir(const struct protect_run *run, const char *dir, struct err *err)
{
    AUTO_FREE char *hooks = path_join(dir, "hooks");
    AUTO_FREE char *modules = path_join(dir, "modules");
    AUTO_FREE char *worktrees = path_join(dir, "worktrees");

    if (guard_inside(run, dir, err) || guard_links(run, hooks, "hooks of git", err))
        return -1;
    if (access_map_check_host(run->map, dir) != ACCESS_WRITE)
        return 0;
    return guard_modules(run, modules, 0, err) || guard_modules(run, worktrees, 0, err) ? -1 : 0;
}

/* The linked worktrees of a repository that lie where the command may write: what is their `.git` decides
 * whose configuration git obeys there. */
static int follow_worktrees(struct protect_run *run, const char *common, struct err *err)
{
    AUTO(host_listing_done) struct host_listing listing = {0};
    AUTO_FREE char *dir = path_join(common, "worktrees");

    if (run->view->list(run->view, dir, &listing, err))
        return err->code == ERR_NOT_FOUND ? 0 : err_wrap(err, "linked worktrees");
    for (size_t i = 0; i < listing.len; i++) {
        AUTO_FREE char *git_dir = path_join(dir, listing.items[i].name);
        AUTO_FREE char *named_by = path_join(git_dir, "gitdir");
        AUTO_FREE char *text = NULL;
        AUTO_FREE char *file = NULL;
        AUTO_FREE char *worktree = NULL;

        if (listing.items[i].kind != HOST_DIR)
            continue;
        if (protect_read(run, named_by, &text, err))
            return -1;
        file = text && *text ? path_clean(git_dir, text) : NULL;
        worktree = file ? path_parent(file) : NULL;
        if (!file || access_map_check_host(run->map, worktree) != ACCESS_WRITE)
            continue;
        if (guard_named(run, file, "git file of a linked worktree", false, err))
            return -1;
        push(run, worktree, git_dir);
    }
    return 0;
}

static int follow_repository(struct protect_run *run, const char *worktree, const char *git_dir,
                             struct err *err)
{
    AUTO_FREE char *common = NULL;
    AUTO_FREE char *real = NULL;

    if (strv_has(&run->seen, git_dir))
        return 0;
    if (run->seen.len == REPOSITORIES_MAX)
        return err_set(err, ERR_LIMIT, "more than %d submodules to be protected", REPOSITORIES_MAX);
    strv_push(&run->seen, git_dir);
    if (guard_git_dir(run, git_dir, err) || common_dir(run, git_dir, &common, err))
        return -1;
    if (!common)
        return 0;
    if ((!str_eq(common, git_dir) && guard_git_dir(run, common, err)) ||
        follow_worktrees(run, common, err) ||
        follow_config(run, worktree, git_dir, common, &real, err))
        return -1;
    return *worktree ? follow_index(run, real, git_dir, err) : 0;
}

/* As is_git_dir(), of a directory called `.git`. */
static int is_repository(const struct protect_run *run, const char *git, bool *ret, struct err *err)
{
    bool has_head = false, has_objects = false, has_common = false;

    if (has_file(run, git, "HEAD", &has_head, err) ||
        has_file(run, git, "objects", &has_objects, err) ||
        has_file(run, git, "commondir", &has_common, err))
        return -1;
    *ret = has_head && (has_objects || has_common);
    return 0;
}

/* What git finds at `at`, which is `root` or above it. `*ret`: it looks no further. On the way up a
 * `.git` that is missing must not come to be. */
static int find_at(struct protect_run *run, const char *root, const char *at, bool *ret,
                   struct err *err)
{
    AUTO_FREE char *git = path_join(at, ".git");
    const struct access_entry *entry = access_map_exact(run->map, git);
    bool is_bare = false;
    enum host_kind kind;

    if (run->view->kind(run->view, git, &kind, err) || is_git_dir(run, at, &is_bare, err))
        return -1;
    if (is_bare)
        push(run, "", at);
    if (kind == HOST_HIDDEN) {
        *ret = true;
        return guard_hidden(run, git, err);
    }
    /* opened by the user: what a file or a link leads to is left alone */
    *ret = is_bare || kind == HOST_FILE || kind == HOST_SYMLINK;
    if (entry && entry->access == ACCESS_WRITE && kind != HOST_DIR)
        return 0;
    if (kind == HOST_SYMLINK)
        return str_eq(at, root) ? 0 : guard_named(run, git, "repository around a root", false, err);
    if (!entry)
        guard(run, git, protect_kind(kind), "repository around a root");
    if (kind == HOST_FILE)
        return follow_git_file(run, at, git, err);
    if (kind == HOST_DIR && is_repository(run, git, ret, err))
        return -1;
    if (kind == HOST_DIR && (*ret || str_eq(at, root)))
        push(run, at, git);
    return 0;
}

/* `*ret`: there is one. */
static int find_repository(struct protect_run *run, const char *root, bool *ret, struct err *err)
{
    AUTO_FREE char *at = alloc_str(root);

    for (;;) {
        char *above;

        if (find_at(run, root, at, ret, err))
            return -1;
        if (*ret || !at[1])
            return 0;
        above = path_parent(at);
        free(at);
        at = above;
    }
}

int protect_git(struct access_map *map, const struct resolve_context *context,
                const struct profile *profile, const struct strv *roots, struct err *err)
{
    const struct git_commit commit = {.map = map, .context = context, .git = profile->git};

    AUTO(protect_run_done)
    struct protect_run run = {.map = map,
                              .view = context->view,
                              .home = context->home,
                              .config_home = context->config_home};

    for (size_t i = 0; i < roots->len; i++) {
        bool has_one = false;

        if (find_repository(&run, roots->items[i], &has_one, err) ||
            (!has_one && git_commit_allow_new(&commit, roots->items[i], err)))
            return -1;
    }
    for (size_t i = 0; i < run.repositories.len; i += 2) {
        AUTO_FREE char *worktree = alloc_str(run.repositories.items[i]);
        AUTO_FREE char *git_dir = alloc_str(run.repositories.items[i + 1]);

        if (follow_repository(&run, worktree, git_dir, err) ||
            git_commit_open(&commit, worktree, git_dir, err))
            return -1;
    }
    return git_commit_keep(&commit, &run.submodules, err);
}

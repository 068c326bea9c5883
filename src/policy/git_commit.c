/* See git_commit.h. A command could have planted a `.git` file, in a directory that is a workspace of its
 * own later, and with it lead us to any repository of the user's. It could not have planted the way back:
 * `gitdir` in the directory of a linked worktree, core.worktree in the configuration of a submodule. So
 * both have to agree, as git itself has it. A `.git` directory is what it is.
 *
 * That the directories belong to the user is looked at by the guard, each time that it writes there.
 *
 * What it does not do: open a repository that is kept apart (git init --separate-git-dir), which
 * does not lead back, or a bare one. */
#include "policy/git_commit.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/git_config.h"
#include "policy/host_view.h"
#include "policy/resolve.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { POINTER_SIZE_MAX = 1 << 20 };

static const char open_origin[] = "git commit: hooks and configuration stay closed";

/* NULL in `*ret`: there is no such file that we can read, and so none that says anything. */
static int read_pointer(const struct host_view *view, const char *dir, const char *name, char **ret,
                        struct err *err)
{
    AUTO_FREE char *path = path_join(dir, name);
    AUTO(buf_done) struct buf text = {0};
    enum host_kind kind;

    *ret = NULL;
    if (view->kind(view, path, &kind, err))
        return -1;
    if (kind != HOST_FILE)
        return 0;
    if (view->text(view, path, POINTER_SIZE_MAX, &text, err))
        return -1;
    while (text.len && isspace((unsigned char)text.data[text.len - 1]))
        text.len--;
    *ret = alloc_strn(text.len ? text.data : "", text.len);
    return 0;
}

/* The path, relative to `dir`, leads to `wanted`, which is canonical. */
static int leads_to(const struct host_view *view, const char *dir, const char *path,
                    const char *wanted, bool *ret, struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};
    AUTO_FREE char *clean = path_clean(dir, path);

    if (path_walk(view, clean, &walk, err))
        return -1;
    *ret = walk.end == PATH_FOUND && str_eq(walk.path, wanted);
    return 0;
}

/* `git_dir` is a linked worktree's: `*ret_common` is the repository, NULL if it is none of `worktree`. */
static int find_common(const struct host_view *view, const char *worktree, const char *git_dir,
                       const char *commondir, char **ret_common, struct err *err)
{
    AUTO_FREE char *parent = path_parent(git_dir);
    AUTO_FREE char *common = path_parent(parent);
    AUTO_FREE char *file = path_join(worktree, ".git");
    AUTO_FREE char *gitdir = NULL;
    bool is_one = false;

    if (!str_eq(path_name(parent), "worktrees"))
        return 0;
    if (leads_to(view, git_dir, commondir, common, &is_one, err) ||
        read_pointer(view, git_dir, "gitdir", &gitdir, err))
        return -1;
    if (!is_one || !gitdir || !*gitdir)
        return 0;
    if (leads_to(view, git_dir, gitdir, file, &is_one, err))
        return -1;
    *ret_common = is_one ? TAKE_PTR(common) : NULL;
    return 0;
}

/* A submodule's: its configuration says where its work tree is. */
static int has_worktree(const struct host_view *view, const char *worktree, const char *git_dir,
                        bool *ret, struct err *err)
{
    AUTO(git_config_done) struct git_config_reader reader = {0};
    AUTO_FREE char *text = NULL;
    enum git_config_kind kind;

    *ret = false;
    if (read_pointer(view, git_dir, "config", &text, err))
        return -1;
    if (!text)
        return 0;
    git_config_begin(&reader, text, strlen(text));
    while ((kind = git_config_next(&reader)) != GIT_CONFIG_NOTHING)
        if (kind == GIT_CONFIG_WORKTREE &&
            leads_to(view, git_dir, reader.value, worktree, ret, err))
            return -1;
    return 0;
}

static void open_dir(const struct git_commit *commit, const char *dir)
{
    struct access_map *map = commit->map;
    struct access_entry *entry = access_map_exact(map, dir);

    if (entry && (entry->is_users || !entry->is_protected || entry->access != ACCESS_READ))
        return; /* the user's own word */
    if (!entry && access_map_check(map, dir) != ACCESS_READ)
        return;
    if (commit->git != PROFILE_GIT_COMMIT) {
        strv_push(&map->repositories, dir);
        return;
    }
    if (!entry) {
        entry = access_map_add(map, dir, ACCESS_READ, ACCESS_DIR, open_origin);
        entry->is_protected = true;
    } else {
        free(entry->origin);
        entry->origin = alloc_str(open_origin);
    }
    entry->allows_commits = true;
    access_map_sort(map);
}

/* The `.git` file of a linked worktree goes with that. What a command writes there could name any other as its
 * own, such as that of a submodule: so it has to lead to the worktree's directory. */
static int allow_removal(const struct git_commit *commit, const char *worktree, const char *git_dir,
                         struct err *err)
{
    static const char tag[] = "gitdir: ";
    AUTO_FREE char *file = path_join(worktree, ".git");
    struct access_entry *entry = access_map_exact(commit->map, file);
    AUTO_FREE char *text = NULL;

    if (!entry || !entry->is_protected || entry->kind != ACCESS_FILE ||
        access_map_exact(commit->map, worktree))
        return 0;
    if (read_pointer(commit->context->view, worktree, ".git", &text, err))
        return -1;
    return text && str_starts(text, tag)
               ? leads_to(commit->context->view, worktree, text + strlen(tag), git_dir,
                          &entry->is_removable, err)
               : 0;
}

int git_commit_keep(const struct git_commit *commit, const struct strv *files, struct err *err)
{
    bool has_removable = false;

    for (size_t i = 0; i < commit->map->len; i++)
        has_removable |= commit->map->entries[i].is_removable;
    for (size_t i = 0; has_removable && i < files->len; i++) {
        AUTO(path_walk_done) struct path_walk walk = {0};
        struct access_entry *entry;

        if (path_walk(commit->context->view, files->items[i], &walk, err))
            return -1;
        entry = access_map_exact(commit->map, walk.path);
        if (entry)
            entry->is_removable = false;
    }
    return 0;
}

static bool is_root(const struct access_map *map, const char *dir)
{
    const struct access_entry *entry = access_map_exact(map, dir);

    return entry && entry->access == ACCESS_WRITE;
}

int git_commit_open(const struct git_commit *commit, const char *worktree, const char *git_dir,
                    struct err *err)
{
    const struct resolve_context *context = commit->context;
    AUTO_FREE char *own = path_join(*worktree ? worktree : "/", ".git");
    AUTO_FREE char *commondir = NULL;
    AUTO_FREE char *common = NULL;
    bool leads_back = false;

    if (!*worktree)
        return 0;
    if (str_eq(own, git_dir)) {
        /* one that has all of the user's files is meant only where it was asked for */
        if (is_root(commit->map, worktree) || !context->home ||
            !path_is_within(context->home, worktree))
            open_dir(commit, git_dir);
        return 0;
    }
    if (read_pointer(context->view, git_dir, "commondir", &commondir, err))
        return -1;
    if (commondir) {
        if (find_common(context->view, worktree, git_dir, commondir, &common, err))
            return -1;
        if (common) {
            open_dir(commit, common);
            /* where the profile opens all around, it has an entry of its own */
            if (access_map_exact(commit->map, git_dir))
                open_dir(commit, git_dir);
        }
        return common && commit->git == PROFILE_GIT_COMMIT
                   ? allow_removal(commit, worktree, git_dir, err)
                   : 0;
    }
    if (has_worktree(context->view, worktree, git_dir, &leads_back, err))
        return -1;
    if (leads_back)
        open_dir(commit, git_dir);
    return 0;
}

int git_commit_allow_new(const struct git_commit *commit, const char *root, struct err *err)
{
    const struct resolve_context *context = commit->context;
    struct access_map *map = commit->map;
    AUTO_FREE char *git = path_join(root, ".git");
    struct access_entry *entry = access_map_exact(map, git);
    bool is_of_workspace = false;

    if (!entry || !entry->is_protected || entry->kind != ACCESS_MISSING)
        return 0;
    for (char *const *at = context->workspace_roots; at && *at && !is_of_workspace; at++) {
        is_of_workspace = str_eq(*at, root);
        if (!is_of_workspace && commit->git == PROFILE_GIT_COMMIT &&
            leads_to(context->view, "/", *at, root, &is_of_workspace, err))
            return -1;
    }
    if (!is_of_workspace)
        return 0;
    if (commit->git != PROFILE_GIT_COMMIT) {
        strv_push(&map->repositories, git);
        return 0;
    }
    entry->allows_commits = true;
    for (size_t i = 0; i < map->len; i++)
        if (map->entries[i].access == ACCESS_WRITE && map->entries[i].kind == ACCESS_DIR &&
            path_is_within(root, map->entries[i].path))
            map->entries[i].is_by_guard = true;
    return 0;
}

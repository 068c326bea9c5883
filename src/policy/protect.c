/* See protect.h.
 *
 * Two passes over the writable roots. The first makes the names themselves read-only; the second
 * follows git's pointers (`.git` file -> git directory -> common directory), and judges the
 * symlinks on that way by what is writable after the first. The result depends only on the set of
 * entries in the map, not on the order in which they were written, because the map is sorted and
 * the roots are found before anything is added.
 *
 * What it does not do: look for repositories deeper in a root (but submodules), or guard names in a
 * directory that is only writable because the whole disk is. */
#include "policy/protect.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/git_index.h"
#include "policy/host_view.h"
#include "policy/resolve.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What git runs, or is led by to what it runs, in a git directory. In a root that is one itself: a
 * bare repository, or the git directory of a worktree. */
static const char *const git_names[] = {
    "config", "config.worktree", "commondir", "hooks", "info", "modules", "worktrees", NULL,
};

/* git itself reads a `.git` file up to this size */
enum { POINTER_SIZE_MAX = 1 << 20, INDEX_SIZE_MAX = 256 << 20 };

/* --- which names --- */

enum { SET_NAMES_MAX = 40 };

static const struct {
    const char *word;
    enum protect_set set;
    const char *names[SET_NAMES_MAX];
} sets[] = {
    {"git", PROTECT_GIT, {".git"}},
    {"agents",
     PROTECT_AGENTS,
     {".agents", ".aws", ".claude", ".codex", ".cursor", ".gemini", ".kiro", ".mcp.json",
      ".opencode", ".windsurf"}},
    {"editors",
     PROTECT_EDITORS,
     {".devcontainer", ".devcontainer.json", ".idea", ".vscode", ".zed"}},
    {"hooks",
     PROTECT_HOOKS,
     {".githooks", ".husky", ".lefthook.yml", ".pre-commit-config.yaml", "lefthook.yml"}},
    {"shell",
     PROTECT_SHELL,
     {".bash_aliases",
      ".bash_completion",
      ".bash_login",
      ".bash_logout",
      ".bash_profile",
      ".bashrc",
      ".config/autostart",
      ".config/environment.d",
      ".config/fish",
      ".config/git",
      ".config/plasma-workspace",
      ".config/systemd",
      ".cshrc",
      ".envrc",
      ".gitconfig",
      ".inputrc",
      ".kshrc",
      ".local/bin",
      ".local/share/applications",
      ".local/share/systemd",
      ".login",
      ".pam_environment",
      ".profile",
      ".ssh",
      ".tcshrc",
      ".tmux.conf",
      ".vimrc",
      ".xinitrc",
      ".xprofile",
      ".xsession",
      ".xsessionrc",
      ".zlogin",
      ".zlogout",
      ".zprofile",
      ".zshenv",
      ".zshrc"}},
};

enum { SETS = sizeof sets / sizeof *sets };

void protect_choice_done(struct protect_choice *choice)
{
    strv_done(&choice->names);
    *choice = (struct protect_choice){0};
}

void protect_choice_copy(const struct protect_choice *choice, struct protect_choice *ret)
{
    *ret = (struct protect_choice){.is_made = choice->is_made, .sets = choice->sets};
    strv_push_all(&ret->names, strv_view(&choice->names));
}

int protect_choice_add(struct protect_choice *choice, const char *word, struct err *err)
{
    AUTO_FREE char *clean = NULL;

    choice->is_made = true;
    for (size_t i = 0; i < SETS; i++) {
        if (!str_eq(sets[i].word, word))
            continue;
        choice->sets |= sets[i].set;
        return 0;
    }
    clean = path_clean("/", word);
    if (!str_starts(word, "./") || !clean[1] || strstr(word, "..") || strpbrk(word, "*?["))
        return err_set(err, ERR_INVALID,
                       "\"%s\" is no set of protected names: " PROTECT_SETS_TEXT
                       " are, and ./NAME is a name of your own",
                       word);
    if (!strv_has(&choice->names, clean + 1))
        strv_push(&choice->names, clean + 1);
    return 0;
}

static unsigned choice_sets(const struct protect_choice *choice)
{
    return choice && choice->is_made ? choice->sets : PROTECT_DEFAULT;
}

void protect_choice_words(const struct protect_choice *choice, struct strv *ret)
{
    for (size_t i = 0; i < SETS; i++)
        if (choice_sets(choice) & sets[i].set)
            strv_push(ret, sets[i].word);
    for (size_t i = 0; i < choice->names.len; i++)
        strv_pushf(ret, "./%s", choice->names.items[i]);
}

static void add_set(enum protect_set set, struct strv *ret)
{
    for (size_t i = 0; i < SETS; i++)
        for (const char *const *name = sets[i].names; sets[i].set == set && *name; name++)
            strv_push(ret, *name);
}

/* Cordon's own rules are believed wherever a project is trusted. */
void protect_choice_names(const struct protect_choice *choice, struct strv *ret)
{
    strv_push(ret, ".cordon");
    for (size_t i = 0; i < SETS; i++)
        if (choice_sets(choice) & sets[i].set)
            add_set(sets[i].set, ret);
    if (choice)
        strv_push_all(ret, strv_view(&choice->names));
}

bool protect_has_name(const char *name, size_t len)
{
    AUTO_FREE char *asked = alloc_strn(name, len);

    if (str_eq(asked, ".cordon"))
        return true;
    for (size_t i = 0; i < SETS; i++)
        for (const char *const *at = sets[i].names; sets[i].set != PROTECT_SHELL && *at; at++)
            if (str_eq(asked, *at))
                return true;
    return false;
}

/* --- in a map --- */

struct protect_run {
    struct access_map *map;
    const struct host_view *view;
    const struct strv *reopened;
    struct strv names; /* protected in every root */
    bool has_git;      /* and what git is led to */
};

static void protect_run_done(struct protect_run *run)
{
    strv_done(&run->names);
}

int protect_check_links(const struct access_map *map, const char *path,
                        const struct access_link *links, size_t len, struct err *err)
{
    for (size_t i = 0; i < len; i++)
        if (access_map_check(map, links[i].path) == ACCESS_WRITE)
            return err_set(err, ERR_FORBIDDEN,
                           "%s leads through the symlink %s (to %s), which the command could "
                           "replace, because it lies in a writable directory",
                           path, links[i].path, links[i].target);
    return 0;
}

/* --- the roots --- */

static bool is_writable_dir(const struct access_entry *entry)
{
    return entry && entry->access == ACCESS_WRITE && entry->kind == ACCESS_DIR;
}

/* A protected name that the user opened again is no root with names of its own, nor is a part of a
 * git directory; but a worktree in there is, and so is a workspace that some agent keeps in its
 * directory (~/.codex/worktrees/x). */
static int is_root(const struct protect_run *run, const struct access_entry *entry, bool *ret,
                   struct err *err)
{
    AUTO_FREE char *at = alloc_str(entry->path);
    AUTO_FREE char *git = NULL;
    enum host_kind kind;

    /* the nearest directory that has a protected name and lies in a writable root */
    while (at[1]) {
        AUTO_FREE char *parent = path_parent(at);

        if (strv_has(&run->names, path_name(at)) &&
            is_writable_dir(access_map_exact(run->map, parent)))
            break;
        free(at);
        at = TAKE_PTR(parent);
    }
    *ret = true;
    if (!at[1] || (!str_eq(at, entry->path) && !str_eq(path_name(at), ".git")))
        return 0;
    git = path_join(entry->path, ".git");
    if (run->view->kind(run->view, git, &kind, err))
        return -1;
    *ret = kind != HOST_MISSING;
    return 0;
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

/* --- first pass: the names --- */

static enum access_kind protect_kind(enum host_kind kind)
{
    if (kind == HOST_MISSING)
        return ACCESS_MISSING;
    return kind == HOST_DIR ? ACCESS_DIR : ACCESS_FILE;
}

static int protect_symlink(const struct protect_run *run, const char *path, struct err *err)
{
    AUTO_FREE char *target = NULL;

    if (strv_has(run->reopened, path))
        return 0;
    target = run->view->link(run->view, path, err);
    if (!target)
        return -1;
    return err_set(err, ERR_FORBIDDEN,
                   "%s is a symlink (to %s): in a writable directory it has to be a real file or "
                   "directory",
                   path, target);
}

/* A symlink cannot be covered. It is held as if it were missing: whoever removes it cannot make it
 * again. What it leads to is covered. */
static int protect_link(const struct protect_run *run, const char *path, const char *origin,
                        struct access_map *added, struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};

    if (strv_has(run->reopened, path))
        return 0;
    if (path_walk(run->view, path, &walk, err))
        return err_wrap(err, "%s", origin);
    /* but for the name itself */
    if (protect_check_links(run->map, path, walk.links + 1, walk.links_len - 1, err))
        return err_wrap(err, "%s", origin);
    access_map_add(added, path, ACCESS_READ, ACCESS_MISSING, origin)->is_protected = true;
    if (access_map_check(run->map, walk.path) == ACCESS_WRITE)
        access_map_add(added, walk.path, ACCESS_READ, walk.kind, origin)->is_protected = true;
    return 0;
}

/* `name` may have components: those above the last are looked at, too, since a link or a file in the
 * way decides what the name is. */
static int protect_name(const struct protect_run *run, const char *root, const char *name,
                        struct access_map *added, struct err *err)
{
    AUTO_FREE char *path = path_join(root, name);
    AUTO_FREE char *origin = NULL;
    struct access_entry *entry = access_map_exact(run->map, path);
    enum host_kind kind = HOST_DIR;
    size_t len = strlen(path) - strlen(name);

    if (entry) {
        entry->is_protected = entry->access == ACCESS_READ;
        return 0;
    }
    origin = alloc_strf("protected name %s", name);
    while (kind == HOST_DIR && path[len]) {
        AUTO_FREE char *at = NULL;

        len += strcspn(path + len + 1, "/") + 1;
        at = alloc_strn(path, len);
        if (run->view->kind(run->view, at, &kind, err))
            return -1;
        if (kind == HOST_SYMLINK)
            return str_eq(name, ".git") ? protect_symlink(run, at, err)
                                        : protect_link(run, at, origin, added, err);
        if (kind == HOST_HIDDEN) /* and what its .git points to would not be guarded */
            return err_set(err, ERR_FORBIDDEN,
                           "%s is to be writable, but does not let us look for %s in it: give "
                           "yourself the right (chmod u+x), or leave it out",
                           root, name);
        if (kind == HOST_FILE || kind == HOST_OTHER)
            path[len] = '\0';
    }
    if (!access_map_exact(run->map, path))
        access_map_add(added, path, ACCESS_READ, protect_kind(kind), origin)->is_protected = true;
    return 0;
}

static int protect_each(const struct protect_run *run, const char *root, const char *const *names,
                        struct access_map *added, struct err *err)
{
    for (; *names; names++)
        if (protect_name(run, root, *names, added, err))
            return -1;
    return 0;
}

static int protect_add_names(const struct protect_run *run, const struct strv *roots,
                             struct err *err)
{
    AUTO(access_map_done) struct access_map added = {0};
    const char *const *names = (const char *const *)strv_view(&run->names);

    for (size_t i = 0; i < roots->len; i++) {
        const char *root = roots->items[i];
        bool is_git = false;

        if (protect_each(run, root, names, &added, err))
            return -1;
        if (run->has_git && (is_git_dir(run, root, &is_git, err) ||
                             (is_git && protect_each(run, root, git_names, &added, err))))
            return -1;
    }
    access_map_add_all(run->map, &added);
    access_map_sort(run->map);
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
    if (access_map_check(run->map, walk.path) == ACCESS_WRITE) {
        AUTO_FREE char *origin = alloc_strf("git directory named by %s", named_by);

        access_map_add(run->map, walk.path, ACCESS_READ, walk.kind, origin)->is_protected = true;
        access_map_sort(run->map);
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

static int protect_common_dir(const struct protect_run *run, const char *git_dir, struct err *err)
{
    AUTO_FREE char *file = path_join(git_dir, "commondir");
    AUTO_FREE char *text = NULL;
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *common = NULL;

    if (protect_read(run, file, &text, err))
        return -1;
    if (!text || !*text)
        return 0;
    path = path_clean(git_dir, text);
    return protect_pointer(run, path, file, &common, err);
}

static int protect_git_file(const struct protect_run *run, const char *root, const char *file,
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
    path = path_clean(root, target);
    if (protect_pointer(run, path, file, &git_dir, err))
        return -1;
    return git_dir ? protect_common_dir(run, git_dir, err) : 0;
}

/* `path`, which cannot be seen, must not be made anything of: the directory that hides it is
 * read-only. */
static int protect_hidden(const struct protect_run *run, const char *path, const char *origin,
                          struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};

    if (path_walk(run->view, path, &walk, err))
        return -1;
    if (walk.end != PATH_HIDDEN)
        return err_set(err, ERR_FORBIDDEN, "%s changes while it is looked at", path);
    if (access_map_check(run->map, walk.path) != ACCESS_WRITE)
        return 0;
    if (access_map_exact(run->map, walk.path))
        access_map_exact(run->map, walk.path)->access = ACCESS_READ;
    else
        access_map_add(run->map, walk.path, ACCESS_READ, ACCESS_DIR, origin)->is_protected = true;
    access_map_sort(run->map);
    return 0;
}

/* Submodules by the index, which the command cannot change. git enters a submodule with a plain
 * `git status` of the repository around it, and obeys the configuration that it finds by way of its
 * `.git`. */
static int protect_submodules(const struct protect_run *run, const char *root, const char *git,
                              struct err *err)
{
    AUTO_FREE char *index = path_join(git, "index");
    AUTO(buf_done) struct buf bytes = {0};
    AUTO(strv_done) struct strv paths = {0};
    bool has_index = false;

    if (has_file(run, git, "index", &has_index, err))
        return -1;
    if (!has_index)
        return 0;
    if (run->view->text(run->view, index, INDEX_SIZE_MAX, &bytes, err) ||
        git_index_submodules(bytes.data, bytes.len, &paths, err))
        return err_wrap(err,
                        "the submodules that %s names (`git status`, outside, tells what is wrong "
                        "with it)",
                        index);
    for (size_t i = 0; i < paths.len; i++) {
        AUTO_FREE char *path = path_join(root, paths.items[i]);
        AUTO_FREE char *file = path_join(path, ".git");
        enum host_kind kind;

        if (!path_is_clean(file) || access_map_check(run->map, file) != ACCESS_WRITE ||
            access_map_exact(run->map, file))
            continue;
        if (run->view->kind(run->view, file, &kind, err))
            return -1;
        if (kind == HOST_SYMLINK && protect_symlink(run, file, err))
            return -1;
        if (kind == HOST_HIDDEN &&
            protect_hidden(run, file, "hides the git directory of a submodule", err))
            return -1;
        if (kind == HOST_SYMLINK || kind == HOST_HIDDEN)
            continue;
        access_map_add(run->map, file, ACCESS_READ, protect_kind(kind),
                       "git directory of a submodule")
            ->is_protected = true;
        access_map_sort(run->map);
        if (kind == HOST_FILE && protect_git_file(run, path, file, err))
            return -1;
    }
    return 0;
}

int protect_add(struct access_map *map, const struct resolve_context *context,
                const struct strv *reopened, struct err *err)
{
    AUTO(protect_run_done)
    struct protect_run run = {.map = map, .view = context->view, .reopened = reopened};
    AUTO(strv_done) struct strv roots = {0};

    run.has_git = choice_sets(context->protect) & PROTECT_GIT;
    protect_choice_names(context->protect, &run.names);
    for (size_t i = 0; i < map->len; i++) {
        bool is_one = false;

        if (is_writable_dir(&map->entries[i]) && is_root(&run, &map->entries[i], &is_one, err))
            return -1;
        if (is_one)
            strv_push(&roots, map->entries[i].path);
    }
    if (protect_add_names(&run, &roots, err))
        return -1;
    for (size_t i = 0; run.has_git && i < roots.len; i++) {
        AUTO_FREE char *git = path_join(roots.items[i], ".git");
        const struct access_entry *entry = access_map_exact(map, git);
        enum access_kind kind = entry ? entry->kind : ACCESS_MISSING;
        bool is_git = false;

        if (is_git_dir(&run, roots.items[i], &is_git, err) ||
            (is_git && protect_common_dir(&run, roots.items[i], err)))
            return -1;
        if (!entry || entry->access == ACCESS_WRITE)
            continue;
        if (kind == ACCESS_DIR && (protect_submodules(&run, roots.items[i], git, err) ||
                                   protect_common_dir(&run, git, err)))
            return -1;
        if (kind == ACCESS_FILE && protect_git_file(&run, roots.items[i], git, err))
            return -1;
    }
    return 0;
}

int protect_add_home(struct access_map *map, const struct resolve_context *context, struct err *err)
{
    AUTO(protect_run_done)
    struct protect_run run = {.map = map, .view = context->view, .reopened = &run.names};
    AUTO(path_walk_done) struct path_walk home = {0};
    AUTO(access_map_done) struct access_map added = {0};
    bool is_root_of = false;

    if (!context->home || context->home[0] != '/')
        return 0;
    for (char *const *root = context->workspace_roots; root && *root; root++)
        is_root_of |= path_is_within(context->home, *root);
    if (!is_root_of)
        return 0;
    if (path_walk(run.view, context->home, &home, err))
        return -1;
    if (home.end != PATH_FOUND || access_map_check(map, home.path) != ACCESS_WRITE)
        return 0;
    add_set(PROTECT_SHELL, &run.names);
    if (protect_each(&run, home.path, (const char *const *)strv_view(&run.names), &added, err))
        return -1;
    access_map_add_all(map, &added);
    access_map_sort(map);
    return 0;
}

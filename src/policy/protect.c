/* See protect.h.
 *
 * Two passes over the writable roots. The first makes the names themselves read-only; the second
 * (protect_git.c) follows git, and judges the
 * symlinks on that way by what is writable after the first. The result depends only on the set of
 * entries in the map, not on the order in which they were written, because the map is sorted and
 * the roots are found before anything is added.
 *
 * What it does not do: guard names in directories deeper in a root, or in one that is only writable
 * because the whole disk is. */
#include "policy/protect.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/host_view.h"
#include "policy/protect_git.h"
#include "policy/resolve.h"

#include <stdlib.h>
#include <string.h>

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
     {".agents", ".aider.conf.yml", ".amazonq", ".aws", ".claude", ".codex", ".continue",
      ".crush.json", ".cursor", ".gemini", ".kilocode", ".kiro", ".mcp.json", ".opencode", ".qwen",
      ".roo", ".windsurf", "opencode.json"}},
    {"editors",
     PROTECT_EDITORS,
     {".devcontainer", ".devcontainer.json", ".dir-locals.el", ".exrc", ".helix", ".idea",
      ".nvim.lua", ".vscode", ".zed"}},
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
      ".claude.json",
      ".config/autostart",
      ".config/Code/User",
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

void protect_home_names(struct strv *ret)
{
    add_set(PROTECT_SHELL, ret);
}

void protect_all_names(struct strv *ret)
{
    strv_push(ret, ".cordon");
    for (size_t i = 0; i < SETS; i++)
        for (const char *const *at = sets[i].names; sets[i].set != PROTECT_SHELL && *at; at++)
            strv_push(ret, *at);
}

bool protect_has_name(const char *name, size_t len)
{
    AUTO_FREE char *asked = alloc_strn(name, len);
    AUTO(strv_done) struct strv names = {0};

    protect_all_names(&names);
    return strv_has(&names, asked);
}

/* --- in a map --- */

struct protect_run {
    struct access_map *map;
    const struct host_view *view;
    const struct strv *reopened;
    struct strv names; /* protected in every root */
};

static void protect_run_done(struct protect_run *run)
{
    strv_done(&run->names);
}

int protect_check_links(const struct access_map *map, const char *path,
                        const struct access_link *links, size_t len, struct err *err)
{
    for (size_t i = 0; i < len; i++)
        if (access_map_check_host(map, links[i].path) == ACCESS_WRITE)
            return err_set(err, ERR_FORBIDDEN,
                           "%s leads through the symlink %s (to %s), which the command could "
                           "replace, because it lies in a writable directory",
                           path, links[i].path, links[i].target);
    return 0;
}

/* --- the roots --- */

/* What is made in a private temporary folder is believed by nobody outside. */
static bool is_writable_dir(const struct access_entry *entry)
{
    return entry && entry->access == ACCESS_WRITE && entry->kind == ACCESS_DIR && !entry->source;
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

/* --- first pass: the names --- */

enum access_kind protect_kind(enum host_kind kind)
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
    if (access_map_check_host(run->map, walk.path) == ACCESS_WRITE)
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
        entry->is_users = true;
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

    for (size_t i = 0; i < roots->len; i++)
        if (protect_each(run, roots->items[i], names, &added, err))
            return -1;
    access_map_add_all(run->map, &added);
    access_map_sort(run->map);
    return 0;
}

int protect_add(struct access_map *map, const struct resolve_context *context,
                const struct profile *profile, const struct strv *reopened, struct err *err)
{
    AUTO(protect_run_done)
    struct protect_run run = {.map = map, .view = context->view, .reopened = reopened};
    AUTO(strv_done) struct strv roots = {0};

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
    if (!(choice_sets(context->protect) & PROTECT_GIT))
        return 0;
    return protect_git(map, context, profile, &roots, err);
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
    if (home.end != PATH_FOUND || access_map_check_host(map, home.path) != ACCESS_WRITE)
        return 0;
    add_set(PROTECT_SHELL, &run.names);
    if (protect_each(&run, home.path, (const char *const *)strv_view(&run.names), &added, err))
        return -1;
    access_map_add_all(map, &added);
    access_map_sort(map);
    return 0;
}

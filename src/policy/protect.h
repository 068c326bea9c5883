/* Protected metadata: names in a writable directory whose content is run or trusted outside of the
 * sandbox: git's hooks and settings, and the configuration of agents and editors. They become
 * read-only, whether they exist or not. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "policy/access.h"

struct host_view;
struct profile;
struct resolve_context;

/* --- which names: sets, by their words, and names of the user's own --- */

enum protect_set {
    PROTECT_GIT = 1,     /* .git, and all that git is led to by it */
    PROTECT_AGENTS = 2,  /* what configures agents: .claude, .codex, .mcp.json, ... */
    PROTECT_EDITORS = 4, /* .vscode, .idea, ... */
    PROTECT_HOOKS = 8,   /* .husky, .githooks, ... */
    PROTECT_SHELL = 16,  /* what shells and logins run: .bashrc, .ssh, .local/bin, ... */
    PROTECT_DEFAULT = PROTECT_GIT | PROTECT_AGENTS | PROTECT_EDITORS,
};

/* A zeroed one is the default. */
struct protect_choice {
    bool is_made;
    unsigned sets;     /* of enum protect_set */
    struct strv names; /* relative to every writable root */
};

#define PROTECT_SETS_TEXT "git, agents, editors, hooks and shell"

void protect_choice_done(struct protect_choice *choice);
void protect_choice_copy(const struct protect_choice *choice, struct protect_choice *ret);

/* A set by its word, or "./NAME"; ERR_INVALID for anything else. */
int protect_choice_add(struct protect_choice *choice, const char *word, struct err *err);

/* The words of it, as protect_choice_add() takes them. */
void protect_choice_words(const struct protect_choice *choice, struct strv *ret);

/* The names that it means in a writable root; NULL: the default ones. ".cordon" always is one. */
void protect_choice_names(const struct protect_choice *choice, struct strv *ret);

/* The names in a home directory: those of the set shell. */
void protect_home_names(struct strv *ret);

/* All that protect_has_name() knows. */
void protect_all_names(struct strv *ret);

/* ".cordon", and the names of the sets git, agents, editors and hooks, chosen or not. */
bool protect_has_name(const char *name, size_t len);

/* --- in a map --- */

/* Adds the protected entries for every writable root of the sorted `map`, and leaves it sorted.
 * `reopened`: symlinks that a write entry of the user names; of the profile only what it says of git counts.
 *
 * A root is every directory with an entry that allows writing; but not a protected name of another
 * root, which the user opened again, nor a part of a `.git` that was. (A checkout in such a place,
 * which has a `.git` of its own, is one.) For each root, the names of the choice, and
 * in one that is a git directory itself those that say what git runs (`config`, `hooks`, ...);
 * for a `.git` file what it points to, and what a `commondir` file of the git directory points to,
 * as far as they lie in a writable place. An entry of the user at exactly such a path stays: with
 * write it opens the name again (and what it points to is left alone), with read it becomes the
 * protected entry.
 *
 * A name that is a symlink is held: it may be removed, and never made again; and what it leads to is
 * read-only. ERR_FORBIDDEN, with both paths, when `.git` is a symlink, or a pointer leads through one in
 * a writable place. */
int protect_add(struct access_map *map, const struct resolve_context *context,
                const struct profile *profile, const struct strv *reopened, struct err *err);

/* What shells and logins run in the home directory of the context, when a workspace root contains
 * that. */
int protect_add_home(struct access_map *map, const struct resolve_context *context,
                     struct err *err);

/* ERR_FORBIDDEN when one of the `len` symlinks lies where `map` allows writing, so that the command
 * could point it elsewhere. `path` (what is to be guarded) and the symlink are both named. */
int protect_check_links(const struct access_map *map, const char *path,
                        const struct access_link *links, size_t len, struct err *err);

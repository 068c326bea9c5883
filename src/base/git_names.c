/* See git_names.h. By gitrepository-layout(5), and by what git 2.39 to 2.49 write. What is not listed is
 * closed, so a name that a later git gives a meaning to is, too. */
#include "base/git_names.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool starts(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool ends(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static bool is_among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* Where case is folded, these are what they are however they are spelled. */
static bool is_led_by(const char *name)
{
    static const char *const names[] = {"config", "commondir", "gitdir",   "hooks",
                                        "info",   "modules",   "worktrees"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncasecmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* What editors put beside a file: NAME~, .NAME.swp. `name` becomes that of the file. */
static void strip_editor(char *name)
{
    size_t len = strlen(name);

    if (len > 1 && name[len - 1] == '~')
        name[len - 1] = '\0';
    if (len > 5 && *name == '.' && strncmp(name + len - 4, ".sw", 3) == 0) {
        name[len - 4] = '\0';
        memmove(name, name + 1, len - 4);
    }
}

/* ORIG_HEAD, MERGE_MSG and their like, by whose letters git tells them from branches. */
static bool is_state(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-");

    return len > 2 && !name[len] && strcmp(name, "HEAD") != 0 && strcasecmp(name, "INDEX") != 0 &&
           !is_led_by(name);
}

/* A file directly in a git directory. */
static enum git_kind kind_of_file(const char *path)
{
    static const char *const data[] = {
        "packed-refs",         "packed-refs.new", "shallow",        "gc.pid", "gc.log",
        "addp-hunk-edit.diff", "config.lock",     "ADD_EDIT.patch", NULL,
    };
    char name[NAME_MAX + 1];
    size_t len = (size_t)snprintf(name, sizeof name, "%s", path);

    if (strcmp(name, "HEAD") == 0)
        return GIT_HEAD;
    if (strcmp(name, "index") == 0)
        return GIT_INDEX;
    if (strcmp(name, "config") == 0)
        return GIT_CONFIG;
    if (is_among(name, data) || starts(name, "index.stash.") || starts(name, "next-index-") ||
        starts(name, "shallow_") || strcmp(name, "index.lock") == 0 ||
        strcmp(name, "HEAD.lock") == 0)
        return GIT_DATA;
    if (len == 7 && *name == 't' &&
        strspn(name + 1, "abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == 6)
        return GIT_DATA; /* by which `git init` tries symlinks */
    if (ends(name, ".lock"))
        name[len - 5] = '\0';
    strip_editor(name);
    return is_state(name) || is_among(name, data) ? GIT_DATA : GIT_CLOSED;
}

/* Below objects: what would lead to those of others is closed, and what could be another spelling of that: names of
 * git's own are ASCII. */
static enum git_kind kind_of_object(const char *path)
{
    const char *last = strrchr(path, '/');

    for (const char *at = path; *at; at++)
        if (*at & 0x80)
            return GIT_CLOSED;
    last = last ? last + 1 : path;
    return strncasecmp(path, "info", 4) == 0 && last != path && strcasestr(last, "alternates")
               ? GIT_CLOSED
               : GIT_FOLDER;
}

/* In a git directory; `path` is not empty. */
static enum git_kind kind_of(const char *path)
{
    static const char *const folders[] = {
        "logs",     "rebase-merge", "rebase-apply",         "sequencer",
        "rr-cache", "lfs",          "NOTES_MERGE_WORKTREE", NULL};
    const char *slash = strchr(path, '/');
    char first[NAME_MAX + 1];

    if (strcmp(path, "info/refs") == 0 || starts(path, "info/refs_"))
        return GIT_DATA;
    if (strcmp(path, "objects") == 0 || strcmp(path, "refs") == 0)
        return GIT_HOLDER;
    if (starts(path, "objects/"))
        return kind_of_object(slash + 1);
    if (starts(path, "refs/"))
        return GIT_FOLDER;
    snprintf(first, sizeof first, "%.*s", (int)strcspn(path, "/"), path);
    if (is_among(first, folders))
        return GIT_FOLDER;
    return slash ? GIT_CLOSED : kind_of_file(path);
}

/* What `git init` takes from its templates, of a repository that is new: nothing of it is run. */
static enum git_kind kind_of_template(const char *path)
{
    static const char *const names[] = {"description", "info/exclude", NULL};
    static const char *const folders[] = {"hooks", "info", "branches", NULL};

    if (is_among(path, folders))
        return GIT_HOLDER;
    return is_among(path, names) ||
                   (starts(path, "hooks/") && ends(path, ".sample") && !strchr(path + 6, '/'))
               ? GIT_DATA
               : GIT_CLOSED;
}

struct git_name git_name_of(const char *path, bool is_new)
{
    struct git_name name = {.kind = GIT_CLOSED, .rest = path};
    const char *of = starts(path, "worktrees/") ? strchr(path + 10, '/') : NULL;

    if (strcmp(path, "worktrees") == 0 || (starts(path, "worktrees/") && !of)) {
        name.kind = GIT_HOLDER;
    } else if (of) {
        name.rest = of + 1;
        name.is_of_worktree = true;
        name.kind = strcmp(name.rest, "commondir") == 0 ? GIT_COMMONDIR
                    : strcmp(name.rest, "gitdir") == 0  ? GIT_GITDIR
                    : strcmp(name.rest, "locked") == 0  ? GIT_DATA
                                                        : kind_of(name.rest);
        if (name.kind == GIT_CONFIG || strcmp(name.rest, "config.lock") == 0)
            name.kind = GIT_CLOSED;
        if (name.kind == GIT_HEAD) /* without one the worktree is none; the repository stays */
            name.kind = GIT_DATA;
    } else {
        name.kind = kind_of(path);
    }
    if (name.kind == GIT_CLOSED && is_new)
        name.kind = kind_of_template(path);
    return name;
}

/* See marks.h. What a sandbox keeps a command from doing, a file of it may have others do later, once it is real: a
 * program that the person starts, a build file, a link that other programs write through. Nothing here forbids; it
 * has people look.
 *
 * Of links only the text is known, not what the names in it are by then. So what goes up again after it has gone
 * down into a name is taken to leave: that name may be a link itself. */
#include "layer/marks.h"

#include "policy/run_later.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { EXECUTABLE = 0111 };

/* The link at `path` (relative to its root) leads out of the root, or may. */
static bool leaves(const char *path, const char *target)
{
    size_t depth = 0; /* directories that may be left */
    bool is_below = false;

    for (const char *at = path; *at; at++)
        depth += *at == '/';
    if (*target == '/')
        return true;
    for (size_t len; *target; target += len, target += strspn(target, "/")) {
        len = strcspn(target, "/");
        if (len == 2 && memcmp(target, "..", 2) == 0) {
            if (is_below || depth-- == 0)
                return true;
        } else if (len != 1 || *target != '.') {
            is_below = true;
        }
    }
    return false;
}

static int compare_names(const void *key, const void *item)
{
    return strcmp(key, *(char *const *)item);
}

static bool is_among(const char *name, const struct strv *names)
{
    return bsearch(name, names->items, names->len, sizeof *names->items, compare_names);
}

/* As file systems may have it that take capitals for small letters. */
static void make_small(char *name)
{
    for (; *name; name++)
        *name = (char)tolower((unsigned char)*name);
}

bool marks_protected(const char *path, const struct strv *names)
{
    char name[256];

    for (size_t len; *path; path += len, path += *path == '/') {
        len = strcspn(path, "/");
        if (len >= sizeof name)
            continue;
        memcpy(name, path, len);
        name[len] = '\0';
        if (is_among(name, names))
            return true;
        make_small(name);
        if (is_among(name, names))
            return true;
    }
    return false;
}

void marks_of(struct change *change, const char *target, bool is_protected)
{
    mode_t now = change->layer.mode, before = change->real.mode;
    bool was_executable = S_ISREG(before) && (before & EXECUTABLE);

    change->marks &= MARK_CONFLICT;
    change->run_by = NULL;
    if (is_protected)
        change->marks |= MARK_PROTECTED;
    if (!now)
        return;
    if (target && leaves(change->path, target))
        change->marks |= MARK_LEAVES;
    if (!S_ISREG(now) && !S_ISLNK(now)) {
        change->marks |= S_ISDIR(now) ? 0 : MARK_SPECIAL;
        return;
    }
    if (S_ISREG(now) && (now & EXECUTABLE) && !was_executable)
        change->marks |= MARK_EXECUTABLE;
    if (S_ISREG(now) && (now & (S_ISUID | S_ISGID)))
        change->marks |= MARK_SET_ID;
    change->run_by = run_later_by(change->path);
    if (!change->run_by && S_ISLNK(now))
        change->run_by = run_later_through(change->path);
    if (change->run_by || (was_executable && change->kind != CHANGE_MODE))
        change->marks |= MARK_RUNS_LATER;
}

/* See grant.h. One denial gives one entry or the network; together they are the grant. A command
 * that was refused twice needs both, so a denial without a known widening makes all of it useless.
 */
#include "approval/grant.h"

#include "approval/approval.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "denial/denial.h"
#include "policy/access.h"
#include "policy/believed.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void grant_done(struct grant *grant)
{
    profile_overlay_done(&grant->overlay);
    free(grant->words);
    *grant = (struct grant){0};
}

/* What a yes to the path would open, since that is what has to be shown: a link of a hostile
 * repository, or /proc/PID/cwd, has one name and opens another place. Where the path itself is not
 * there it is the first directory above that is; `*ret_rest` is what follows. Caller frees; NULL for
 * the root directory, which is not given away in passing. */
static char *true_place(const char *path, const char **ret_rest)
{
    AUTO_FREE char *there = alloc_str(path);
    AUTO_FREE char *real = NULL;

    while (path_depth(there) > 0) {
        enum fd_kind kind;
        struct err ignored;
        char *parent;

        if (fd_kind_at(AT_FDCWD, there, &kind, &ignored) == 0 && kind != FD_MISSING) {
            real = realpath(there, NULL);
            break;
        }
        parent = path_parent(there);
        free(there);
        there = parent;
    }
    *ret_rest = path + strlen(there);
    return real && path_depth(real) > 0 ? TAKE_PTR(real) : NULL;
}

/* A yes to this run must not decide about the next ones: rules, configuration, the log. */
static bool is_own(char *const *own_paths, const char *path)
{
    for (char *const *own = own_paths; own && *own; own++)
        if (path_is_within(path, *own))
            return true;
    return false;
}

static bool is_below_git(const char *path)
{
    for (size_t len; *path; path += len) {
        path += strspn(path, "/");
        len = strcspn(path, "/");
        if (len == 4 && strncmp(path, ".git", len) == 0)
            return true;
    }
    return false;
}

static bool is_out_of_bounds(const struct grant_bounds *bounds, const char *path)
{
    const struct access_entry *entry = access_map_find(bounds->access, path);

    return is_own(bounds->own_paths, path) || place_is_believed(path, bounds->home) ||
           is_below_git(path) || (entry && (entry->access == ACCESS_DENY || entry->is_protected));
}

int overlay_settle(struct profile_overlay *overlay, char *const *own_paths, struct err *err)
{
    for (size_t i = 0; i < overlay->entries.len; i++) {
        struct profile_entry *entry = &overlay->entries.items[i];
        AUTO_FREE char *place = NULL;
        const char *rest;
        char *settled;

        if (entry->path_kind != PROFILE_PATH_LITERAL || entry->access == ACCESS_DENY)
            continue;
        place = true_place(entry->path, &rest);
        if (!place)
            return err_set(err, ERR_FORBIDDEN, "%s leads to the root directory, or nowhere",
                           entry->path);
        settled = alloc_strf("%s%s", place, rest);
        free(entry->path);
        entry->path = settled;
        if (is_own(own_paths, settled))
            return err_set(err, ERR_FORBIDDEN, "%s belongs to Cordon", settled);
    }
    return 0;
}

static bool is_granted(const struct profile_overlay *overlay, const char *path, enum access access)
{
    for (size_t i = 0; i < overlay->entries.len; i++)
        if (path_is_within(path, overlay->entries.items[i].path) &&
            overlay->entries.items[i].access >= access)
            return true;
    return false;
}

static bool add_path(const char *name, enum access wanted, const struct grant_bounds *bounds,
                     struct profile_overlay *overlay)
{
    const char *rest;
    AUTO_FREE char *path = true_place(name, &rest);
    static char origin[] = "an approval";
    struct profile_entry added = {
        .path_kind = PROFILE_PATH_LITERAL, .access = wanted, .path = path, .origin = origin};

    if (!path || is_out_of_bounds(bounds, name) || is_out_of_bounds(bounds, path) ||
        overlay->entries.len >= GRANT_PATHS_MAX)
        return false;
    if (wanted == ACCESS_WRITE &&
        !(place_may_be_opened(name, bounds->home) && place_may_be_opened(path, bounds->home)))
        return false;
    if (!is_granted(overlay, path, wanted))
        profile_entries_add(&overlay->entries, &added);
    return true;
}

/* One of the names of a denied write. A name that comes, moves or goes is a matter of its directory;
 * where that may be written the name has an entry of its own, which opens nothing that is missing. */
static bool add_name(const struct denial *denial, const char *name,
                     const struct grant_bounds *bounds, struct profile_overlay *overlay)
{
    bool is_name =
        denial->operation == DENIAL_BIND ||
        (denial->flags & (DENIAL_CREATES | DENIAL_RENAMES) && !(denial->flags & DENIAL_FOLDER));
    AUTO_FREE char *parent = path_parent(name);
    bool is_open = access_map_check(bounds->access, parent) >= ACCESS_WRITE;

    if (is_out_of_bounds(bounds, name) || (is_open && denial->flags & DENIAL_CREATES))
        return false;
    return add_path(is_name && !is_open ? parent : name, ACCESS_WRITE, bounds, overlay);
}

static bool add_write(const struct denial *denial, const struct grant_bounds *bounds,
                      struct profile_overlay *overlay)
{
    const struct access_map *access = bounds->access;
    const char *names[] = {denial->path, denial->other_path};
    bool is_denied = false;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!names[i] || access_map_check(access, names[i]) >= ACCESS_WRITE)
            continue;
        is_denied = true;
        if (!add_name(denial, names[i], bounds, overlay))
            return false;
    }
    return is_denied; /* else it is no permission that is missing: a directory is not to become a
                         repository, say */
}

static bool add_network(const struct grant_bounds *bounds, struct profile_overlay *overlay)
{
    overlay->network = OVERLAY_NETWORK_ENABLED;
    return bounds->access->network == NETWORK_RESTRICTED;
}

static bool add_denial(const struct denial *denial, const struct grant_bounds *bounds,
                       struct profile_overlay *overlay)
{
    bool is_by_path = denial->flags & DENIAL_SOCKET && denial->path && *denial->path == '/';

    if (denial->source != DENIAL_BY_SANDBOX)
        return false;
    switch (denial->operation) {
    case DENIAL_CONNECT: /* nothing that is granted opens a socket by its path */
        return !is_by_path && add_network(bounds, overlay);
    case DENIAL_BIND:
        return is_by_path ? add_write(denial, bounds, overlay) : add_network(bounds, overlay);
    case DENIAL_WRITE:
        return denial->path && add_write(denial, bounds, overlay);
    case DENIAL_READ:
    case DENIAL_EXECUTE:
        return denial->path && add_path(denial->path, ACCESS_READ, bounds, overlay);
    case DENIAL_SIGNAL:
    case DENIAL_OTHER:
        break;
    }
    return false;
}

char *overlay_words(const struct profile_overlay *overlay)
{
    AUTO(buf_done) struct buf text = {0};

    buf_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < overlay->entries.len; i++) {
        AUTO_FREE char *path = approval_word_text(overlay->entries.items[i].path);

        buf_appendf(&text, "%s%s %s", text.len ? " and " : "",
                    overlay->entries.items[i].access == ACCESS_WRITE ? "writing" : "reading", path);
    }
    if (overlay->network == OVERLAY_NETWORK_ENABLED)
        buf_appendf(&text, "%sthe network", text.len ? " and " : "");
    return buf_take(&text);
}

bool grant_find(const struct denials *denials, const struct grant_bounds *bounds, struct grant *ret)
{
    AUTO(profile_overlay_done) struct profile_overlay overlay = {0};

    for (size_t i = 0; i < denials->len; i++) {
        const struct denial *denial = &denials->items[i];

        if (denial->evidence == DENIAL_FACT && denial_matters(denial) &&
            !add_denial(denial, bounds, &overlay))
            return false;
    }
    if (profile_overlay_is_empty(&overlay))
        return false;
    ret->words = overlay_words(&overlay);
    ret->overlay = overlay;
    overlay = (struct profile_overlay){0};
    return true;
}

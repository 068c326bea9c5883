/* See select.h. Some changes cannot go alone: a new file needs the new folder that it is in, what was a file and is a
 * folder now has to go first, and a rename is two names. They come along, without being asked for. */
#include "layer/select.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct select {
    struct work *work;
    const struct accept_request *request;
    enum select_for use;
    struct selection *ret;
    struct strv paths;   /* of the request, sorted */
    bool *is_chosen;     /* of each change */
    struct shown *shown; /* the expectations, sorted */
};

struct shown {
    const struct accept_expected *expected;
    bool is_found;
};

void selection_done(struct selection *selection)
{
    changes_done(&selection->changes);
    free(selection->items);
    *selection = (struct selection){0};
}

static void select_end(struct select *select)
{
    strv_done(&select->paths);
    free(select->is_chosen);
    free(select->shown);
}

static int compare_paths(const void *one, const void *other)
{
    return path_compare(*(char *const *)one, *(char *const *)other);
}

static bool is_named(const struct select *select, const char *path)
{
    return select->paths.len && bsearch(&path, select->paths.items, select->paths.len,
                                        sizeof *select->paths.items, compare_paths);
}

static int compare_shown(const void *one, const void *other)
{
    return strcmp(((const struct shown *)one)->expected->path,
                  ((const struct shown *)other)->expected->path);
}

/* NULL: nobody said what it was. */
static struct shown *find_shown(const struct select *select, const char *path)
{
    const struct accept_expected wanted = {.path = (char *)path};
    const struct shown key = {.expected = &wanted};

    return select->request->expected_len
               ? bsearch(&key, select->shown, select->request->expected_len, sizeof *select->shown,
                         compare_shown)
               : NULL;
}

enum asked { ASKED_NOT, ASKED_AS_SHOWN, ASKED };

/* By its name, or that of a folder above it; as it was shown where all of those names have an expectation. */
static enum asked path_asked(const struct select *select, const char *path)
{
    AUTO_FREE char *at = NULL;
    enum asked asked = ASKED_NOT;

    if (!select->request->paths)
        return ASKED;
    at = alloc_str(path);
    for (;;) {
        char *slash = strrchr(at, '/');

        if (is_named(select, at) && !find_shown(select, at))
            return ASKED;
        if (is_named(select, at))
            asked = ASKED_AS_SHOWN;
        if (slash == at)
            return is_named(select, "/") ? ASKED : asked;
        *slash = '\0';
    }
}

static enum asked change_asked(const struct select *select, const struct change *change)
{
    AUTO_FREE char *path = work_path(select->work, change->root, change->path);
    AUTO_FREE char *from = NULL;
    enum asked asked = path_asked(select, path);
    enum asked other;

    if (asked == ASKED || !change->from)
        return asked;
    from = work_path(select->work, change->root, change->from);
    other = path_asked(select, from);
    return other > asked ? other : asked;
}

/* --- what goes along --- */

/* The changes of the path: one, or a D and an A. */
static void choose_at(struct select *select, size_t root, const char *path, size_t len)
{
    const struct changes *all = &select->ret->changes;
    AUTO_FREE char *wanted = alloc_strn(path, len);

    for (size_t i = changes_place(all, root, wanted); i < all->len; i++) {
        const struct change *change = &all->items[i];

        if (change->root != root || !str_eq(change->path, wanted))
            break;
        select->is_chosen[i] = true;
    }
}

/* Those above it, and the other half where the type has changed. Accept goes from above, drop from below: who drops a
 * folder drops what is in it, which was asked for with it. */
static void choose_along(struct select *select, const struct change *change)
{
    choose_at(select, change->root, change->path, strlen(change->path));
    if (select->use == SELECT_DROP || change->kind == CHANGE_DELETED)
        return;
    for (const char *slash = change->path; (slash = strchr(slash, '/')); slash++)
        choose_at(select, change->root, change->path, (size_t)(slash - change->path));
}

/* --- what may not be taken --- */

/* Both halves of a path whose type has changed were shown as the one that comes. */
static const struct change_stamp *stamp_of(const struct select *select, const struct change *change)
{
    const struct changes *all = &select->ret->changes;
    const struct change *next = change + 1;

    if (next < all->items + all->len && next->root == change->root &&
        str_eq(next->path, change->path))
        return &next->layer;
    return &change->layer;
}

static bool is_being_written(const struct change *change)
{
    return S_ISREG(change->layer.mode) && change->layer.ctime_ns == CHANGE_BEING_WRITTEN;
}

/* A folder is what its permissions are: what is in it was shown, or was not, by itself. */
static bool is_same(const struct change_stamp *one, const struct change_stamp *other)
{
    return S_ISDIR(one->mode) ? one->mode == other->mode : change_stamp_equal(one, other);
}

/* Whether it is what somebody was shown: itself, and of a rename that the other name goes. Below a name that was shown is
 * nothing that was not. */
static bool is_expected(const struct select *select, const struct change *change, const char *path)
{
    const bool is_accept = select->use == SELECT_ACCEPT;
    struct shown *shown = find_shown(select, path);
    AUTO_FREE char *from = NULL;
    struct shown *gone;

    if (!shown)
        return !is_accept || change_asked(select, change) != ASKED_AS_SHOWN;
    shown->is_found = true;
    if (is_accept && is_being_written(change))
        return false;
    if (!is_same(&shown->expected->layer, stamp_of(select, change)))
        return false;
    if (!change->from || !is_accept)
        return true;
    from = work_path(select->work, change->root, change->from);
    gone = find_shown(select, from);
    if (gone)
        gone->is_found = true;
    return gone && !gone->expected->layer.mode;
}

static bool why_not(const struct select *select, const struct change *change, const char *path,
                    enum left_why *ret_why, const char **ret_detail)
{
    const unsigned flags = select->request->flags;

    if (select->use == SELECT_DROP)
        return false;
    if (change->marks & MARK_SPECIAL) {
        *ret_why = LEFT_SPECIAL;
        *ret_detail = "pipes, sockets and devices stay in the layer; drop it";
    } else if ((change->marks & MARK_CONFLICT) && !(flags & ACCEPT_FORCE)) {
        *ret_why = LEFT_CONFLICT;
        *ret_detail = "the real one was changed since the command began; look at it with \"cordon "
                      "diff\", then drop it, or take it with --force";
    } else if ((change->marks & MARKS_LATER) && !(flags & ACCEPT_MARKED) &&
               !is_named(select, path)) {
        *ret_why = LEFT_MARKED;
        *ret_detail = "it may run later, or lead elsewhere; look at it, and accept it by its path";
    } else {
        return false;
    }
    return true;
}

static void add(struct select *select, const struct change *change, enum change_kind kind,
                const char *path)
{
    struct selection *ret = select->ret;

    ret->items = alloc_grow(ret->items, ret->len, &ret->cap, sizeof *ret->items);
    ret->items[ret->len++] = (struct chosen){.change = change, .kind = kind, .path = path};
}

static void take_or_leave(struct select *select, const struct change *change)
{
    struct work *work = select->work;
    AUTO_FREE char *path = work_path(work, change->root, change->path);
    const bool is_as_shown = is_expected(select, change, path);
    enum left_why why;
    const char *detail;

    if (why_not(select, change, path, &why, &detail)) {
        work_leave(work, change->root, change->path, why, detail);
    } else if (!is_as_shown) {
        work_leave(work, change->root, change->path, LEFT_CHANGED,
                   is_being_written(change)
                       ? "a command has it open for writing, and could change it after it was "
                         "shown; list it again when that has ended"
                       : "it is not what was shown; list it again");
    } else if (change->kind == CHANGE_RENAMED) {
        add(select, change, CHANGE_DELETED, change->from);
        add(select, change, CHANGE_ADDED, change->path);
    } else {
        add(select, change, change->kind, change->path);
    }
}

/* --- all of it --- */

static void sort_shown(struct select *select)
{
    const struct accept_request *request = select->request;

    select->shown = alloc_zero(request->expected_len + 1, sizeof *select->shown);
    for (size_t i = 0; i < request->expected_len; i++)
        select->shown[i].expected = &request->expected[i];
    if (request->expected_len)
        qsort(select->shown, request->expected_len, sizeof *select->shown, compare_shown);
}

static int list(struct select *select, struct err *err)
{
    /* with names, all has to be known: what goes along is not below them */
    const struct change_query query = {
        .flags = (select->request->paths ? 0u : (unsigned)CHANGES_WITHOUT_RENAMES) |
                 (select->use == SELECT_DROP ? (unsigned)CHANGES_OF_GIT : 0u)};

    return change_list(select->work->layer, &query, &select->ret->changes,
                       &select->work->result->problems, err);
}

static void leave_all(struct select *select, enum left_why why, const char *detail)
{
    const struct changes *all = &select->ret->changes;

    for (size_t i = 0; i < all->len; i++)
        if (select->is_chosen[i])
            work_leave(select->work, all->items[i].root, all->items[i].path, why, detail);
}

static void leave_missing(struct select *select)
{
    const struct accept_request *request = select->request;

    for (size_t i = 0; i < request->expected_len; i++) {
        struct accept_result *result = select->work->result;

        if (select->shown[i].is_found)
            continue;
        result->left =
            alloc_grow(result->left, result->left_len, &result->left_cap, sizeof *result->left);
        result->left[result->left_len++] =
            (struct left){.path = alloc_str(select->shown[i].expected->path),
                          .why = LEFT_CHANGED,
                          .detail = alloc_str("it is not what was shown; list it again")};
    }
}

int select_changes(struct work *work, const struct accept_request *request, enum select_for use,
                   struct selection *ret, struct err *err)
{
    AUTO(select_end)
    struct select select = {.work = work, .request = request, .use = use, .ret = ret};
    const struct changes *all = &ret->changes;

    strv_push_all(&select.paths, request->paths);
    if (select.paths.len)
        qsort(select.paths.items, select.paths.len, sizeof *select.paths.items, compare_paths);
    sort_shown(&select);
    if (list(&select, err))
        return -1;
    select.is_chosen = alloc_zero(all->len + 1, sizeof *select.is_chosen);
    for (size_t i = 0; i < all->len; i++)
        if (change_asked(&select, &all->items[i]) != ASKED_NOT) {
            select.is_chosen[i] = true;
            if (request->paths)
                choose_along(&select, &all->items[i]);
        }
    if (use == SELECT_DROP && !work->is_quiet) {
        leave_all(&select, LEFT_BUSY, "commands of the layer live; wait for them, or end them");
        return 0;
    }
    if (use == SELECT_ACCEPT && layer_state(work->layer) == LAYER_SUSPECT &&
        !(request->flags & ACCEPT_FORCE)) {
        leave_all(
            &select, LEFT_SUSPECT,
            "the machine went down since it was written, and contents may be missing; look at "
            "it, then take it with --force");
        return 0;
    }
    for (size_t i = 0; i < all->len; i++)
        if (select.is_chosen[i])
            take_or_leave(&select, &all->items[i]);
    leave_missing(&select);
    return 0;
}

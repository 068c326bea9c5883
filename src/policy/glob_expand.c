/* See glob_expand.h.
 *
 * Depth first with a stack of our own, so that a deep tree costs memory and not the C stack. Each
 * folder on the stack carries the state of the pattern there (glob.h); a folder in which no match
 * is possible any more is never opened. */
#include "policy/glob_expand.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "policy/glob.h"

#include <stdlib.h>

struct walk_folder {
    char *path;
    glob_state state;
    unsigned depth; /* below the root */
};

struct walk_stack {
    struct walk_folder *items;
    size_t len;
    size_t cap;
};

struct walk_run {
    const struct glob *glob;
    const struct glob_walk *walk;
    struct walk_stack stack;
    struct glob_hits *hits;
    size_t visits;
};

void glob_hits_done(struct glob_hits *hits)
{
    for (size_t i = 0; i < hits->len; i++)
        free(hits->items[i].path);
    free(hits->items);
    *hits = (struct glob_hits){0};
}

static void walk_run_done(struct walk_run *run)
{
    for (size_t i = 0; i < run->stack.len; i++)
        free(run->stack.items[i].path);
    free(run->stack.items);
}

static int walk_hit(struct walk_run *run, const char *path, enum host_kind kind, struct err *err)
{
    struct glob_hits *hits = run->hits;

    if (hits->len >= run->walk->matches_max)
        return err_set(err, ERR_LIMIT,
                       "more than %zu paths match; a pattern like DIR/** or a limit in "
                       "glob_scan_max_depth makes it fewer",
                       run->walk->matches_max);
    hits->items = alloc_grow(hits->items, hits->len, &hits->cap, sizeof *hits->items);
    hits->items[hits->len++] = (struct glob_hit){.path = alloc_str(path), .kind = kind};
    return 0;
}

/* One path at which the pattern stands in `state`: a match, a folder to look into, or nothing. */
static int walk_visit(struct walk_run *run, const struct walk_folder *at, enum host_kind kind,
                      struct err *err)
{
    struct walk_stack *stack = &run->stack;
    bool is_leaf = kind != HOST_DIR || (run->walk->max_depth && at->depth >= run->walk->max_depth);

    if (glob_is_match(run->glob, at->state) && (kind == HOST_DIR || !glob_wants_folder(run->glob)))
        return walk_hit(run, at->path, kind, err);
    if (is_leaf)
        return 0;
    stack->items = alloc_grow(stack->items, stack->len, &stack->cap, sizeof *stack->items);
    stack->items[stack->len] = *at;
    stack->items[stack->len++].path = alloc_str(at->path);
    return 0;
}

static int walk_list(struct walk_run *run, const struct walk_folder *folder, struct err *err)
{
    const struct host_view *view = run->walk->view;
    AUTO(host_listing_done) struct host_listing listing = {0};

    if (view->list(view, folder->path, &listing, err)) {
        if (err->code != ERR_FORBIDDEN)
            return -1;
        return walk_hit(run, folder->path, HOST_DIR, err);
    }
    run->visits += listing.len;
    if (run->visits > run->walk->visits_max)
        return err_set(err, ERR_LIMIT,
                       "more than %zu paths to look at below %s; set glob_scan_max_depth or start "
                       "the pattern deeper",
                       run->walk->visits_max, run->walk->root);
    for (size_t i = 0; i < listing.len; i++) {
        const char *name = listing.items[i].name;
        glob_state state = glob_step(run->glob, folder->state, name);
        AUTO_FREE char *path = state ? path_join(folder->path, name) : NULL;
        struct walk_folder child = {.path = path, .state = state, .depth = folder->depth + 1};

        if (state && walk_visit(run, &child, listing.items[i].kind, err))
            return -1;
    }
    return 0;
}

int glob_expand(const struct glob *glob, const struct glob_walk *walk, struct glob_hits *hits,
                struct err *err)
{
    AUTO(walk_run_done) struct walk_run run = {.glob = glob, .walk = walk, .hits = hits};
    AUTO_FREE char *root = alloc_str(walk->root);
    struct walk_folder start = {.path = root, .state = glob_start(glob)};
    enum host_kind kind;

    if (walk->view->kind(walk->view, root, &kind, err))
        return -1;
    if (kind == HOST_MISSING)
        return 0;
    if (walk_visit(&run, &start, kind, err))
        return -1;
    while (run.stack.len) {
        struct walk_folder folder = run.stack.items[--run.stack.len];
        int status = walk_list(&run, &folder, err);

        free(folder.path);
        if (status)
            return -1;
    }
    return 0;
}

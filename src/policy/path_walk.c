/* See path_walk.h.
 *
 * `done` is canonical and grows by one component at a time; `rest` is what is still to follow, in
 * front of which the text of a symlink is put. */
#include "policy/path_walk.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/host_view.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct walk_state {
    const struct host_view *view;
    const char *asked;
    char *done;
    char *rest;
    struct path_walk walk; /* links; the rest is filled at the end */
};

void path_walk_done(struct path_walk *walk)
{
    for (size_t i = 0; i < walk->links_len; i++) {
        free(walk->links[i].path);
        free(walk->links[i].target);
    }
    free(walk->links);
    free(walk->path);
    *walk = (struct path_walk){0};
}

static void walk_state_done(struct walk_state *state)
{
    path_walk_done(&state->walk);
    free(state->done);
    free(state->rest);
}

static void walk_end(struct walk_state *state, char *path, enum path_end end, enum access_kind kind)
{
    state->walk.path = path;
    state->walk.end = end;
    state->walk.kind = kind;
}

/* Takes the next component off `rest`; NULL at the end. */
static char *walk_next(struct walk_state *state)
{
    const char *at = state->rest + strspn(state->rest, "/");
    size_t len = strcspn(at, "/");
    char *name = len ? alloc_strn(at, len) : NULL;

    memmove(state->rest, at + len, strlen(at + len) + 1);
    return name;
}

static bool has_parent_component(const char *path)
{
    while (*(path += strspn(path, "/"))) {
        size_t len = strcspn(path, "/");

        if (len == 2 && path[0] == '.' && path[1] == '.')
            return true;
        path += len;
    }
    return false;
}

static int walk_missing(struct walk_state *state, const char *path, struct err *err)
{
    if (has_parent_component(state->rest))
        return err_set(err, ERR_INVALID, "%s: the symlink %s goes through %s, which is missing",
                       state->asked, state->walk.links[state->walk.links_len - 1].path, path);
    walk_end(state, path_clean(path, state->rest + strspn(state->rest, "/")), PATH_MISSING,
             ACCESS_MISSING);
    return 0;
}

static int walk_link(struct walk_state *state, const char *path, struct err *err)
{
    struct path_walk *walk = &state->walk;
    char *target = NULL;
    char *rest;

    if (walk->links_len == PATH_WALK_LINKS_MAX)
        return err_set(err, ERR_INVALID, "%s: more than %d symlinks on the way", state->asked,
                       PATH_WALK_LINKS_MAX);
    target = state->view->link(state->view, path, err);
    if (!target)
        return -1;
    if (!walk->name_link && !state->rest[strspn(state->rest, "/")])
        walk->name_link = walk->links_len + 1;
    walk->links = alloc_grow(walk->links, walk->links_len, &walk->links_cap, sizeof *walk->links);
    walk->links[walk->links_len++] =
        (struct access_link){.path = alloc_str(path), .target = target};
    rest = alloc_strf("%s/%s", target, state->rest);
    free(state->rest);
    state->rest = rest;
    if (target[0] == '/')
        state->done[1] = '\0';
    return 0;
}

/* Moves on by the component `name`. When the walk is over, walk.path is set. */
static int walk_step(struct walk_state *state, const char *name, struct err *err)
{
    AUTO_FREE char *path = NULL;
    enum host_kind kind;

    if (str_eq(name, "."))
        return 0;
    path = str_eq(name, "..") ? path_parent(state->done) : path_join(state->done, name);
    kind = HOST_DIR;
    if (!str_eq(name, "..") && state->view->kind(state->view, path, &kind, err))
        return -1;
    switch (kind) {
    case HOST_SYMLINK:
        return walk_link(state, path, err);
    case HOST_MISSING:
        return walk_missing(state, path, err);
    case HOST_HIDDEN:
        walk_end(state, TAKE_PTR(state->done), PATH_HIDDEN, ACCESS_DIR);
        return 0;
    case HOST_DIR:
        free(state->done);
        state->done = TAKE_PTR(path);
        return 0;
    case HOST_FILE:
    case HOST_OTHER:
        break;
    }
    walk_end(state, TAKE_PTR(path),
             state->rest[strspn(state->rest, "/")] ? PATH_BLOCKED : PATH_FOUND, ACCESS_FILE);
    return 0;
}

int path_walk(const struct host_view *view, const char *path, struct path_walk *ret,
              struct err *err)
{
    AUTO(walk_state_done)
    struct walk_state state = {
        .view = view, .asked = path, .done = alloc_str("/"), .rest = alloc_str(path)};

    while (!state.walk.path) {
        AUTO_FREE char *name = walk_next(&state);

        if (!name)
            walk_end(&state, TAKE_PTR(state.done), PATH_FOUND, ACCESS_DIR);
        else if (walk_step(&state, name, err))
            return -1;
    }
    *ret = state.walk;
    state.walk = (struct path_walk){0};
    return 0;
}

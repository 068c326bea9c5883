/* See glob.h.
 *
 * The one idea: a pattern is a short list of components, and a path stands at a set of places in
 * that list, kept in one machine word. Reading a component moves the set (glob_step), so a match
 * never backtracks over components, and a walk over a tree carries the set of a folder down to its
 * children instead of matching whole paths again. Inside a component, a star backtracks at most to
 * the last star, as usual.
 *
 * What it does not do: touch the disk (policy/glob_expand.h does). */
#include "policy/glob.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/glob_name.h"

#include <stdlib.h>
#include <string.h>

struct glob_part {
    char *text;
    bool any_depth; /* two stars */
};

struct glob {
    char *prefix;
    struct glob_part *parts; /* behind the prefix */
    size_t len;
    size_t cap;
};

/* --- compiling --- */

static bool is_any_depth(const char *part)
{
    return part[0] == '*' && part[1] == '*' && part[strspn(part, "*")] == '\0';
}

/* Adds a component to the fixed prefix while it has no live character, else to the parts. */
static void glob_add_part(struct glob *glob, char *part)
{
    bool any_depth = is_any_depth(part);

    if (glob->len == 0 && !glob_has_meta(part)) {
        AUTO_FREE char *name = glob_unescape(part);
        char *prefix = path_join(glob->prefix, name);

        free(glob->prefix);
        free(part);
        glob->prefix = prefix;
        return;
    }
    if (any_depth && glob->len && glob->parts[glob->len - 1].any_depth) {
        free(part);
        return;
    }
    glob->parts = alloc_grow(glob->parts, glob->len, &glob->cap, sizeof *glob->parts);
    glob->parts[glob->len++] = (struct glob_part){.text = part, .any_depth = any_depth};
}

static int glob_add_parts(struct glob *glob, const char *pattern, struct err *err)
{
    const char *at = pattern;

    while (*(at += strspn(at, "/"))) {
        size_t len = strcspn(at, "/");
        AUTO_FREE char *part = alloc_strn(at, len);

        if (glob_name_check(part, err))
            return err_wrap(err, "pattern %s", pattern);
        glob_add_part(glob, TAKE_PTR(part));
        if (glob->len > GLOB_COMPONENTS_MAX)
            return err_set(err, ERR_INVALID, "pattern %s: more than %d components", pattern,
                           GLOB_COMPONENTS_MAX);
        at += len;
    }
    return 0;
}

static void glob_free_slot(struct glob **slot)
{
    glob_free(*slot);
}

struct glob *glob_compile(const char *pattern, struct err *err)
{
    AUTO(glob_free_slot) struct glob *glob = NULL;

    if (pattern[0] != '/') {
        err_set(err, ERR_INVALID, "pattern \"%s\" is not absolute", pattern);
        return NULL;
    }
    if (strlen(pattern) > GLOB_LENGTH_MAX) {
        err_set(err, ERR_INVALID, "a pattern is longer than %d bytes", GLOB_LENGTH_MAX);
        return NULL;
    }
    glob = alloc_zero(1, sizeof *glob);
    glob->prefix = alloc_str("/");
    if (glob_add_parts(glob, pattern, err))
        return NULL;
    if (str_eq(glob->prefix, "/")) {
        err_set(err, ERR_INVALID, "pattern %s: has to start with the name of a folder", pattern);
        return NULL;
    }
    return TAKE_PTR(glob);
}

void glob_free(struct glob *glob)
{
    if (!glob)
        return;
    for (size_t i = 0; i < glob->len; i++)
        free(glob->parts[i].text);
    free(glob->parts);
    free(glob->prefix);
    free(glob);
}

const char *glob_prefix(const struct glob *glob)
{
    return glob->prefix;
}

bool glob_wants_folder(const struct glob *glob)
{
    return glob->len && glob->parts[glob->len - 1].any_depth;
}

bool glob_is_tree(const struct glob *glob)
{
    return glob->len == 1 && glob->parts[0].any_depth;
}

/* --- matching --- */

/* Two stars may stand for nothing. */
static glob_state glob_close(const struct glob *glob, glob_state state)
{
    for (size_t i = 0; i < glob->len; i++)
        if (state >> i & 1 && glob->parts[i].any_depth)
            state |= (glob_state)2 << i;
    return state;
}

glob_state glob_start(const struct glob *glob)
{
    return glob_close(glob, 1);
}

glob_state glob_step(const struct glob *glob, glob_state state, const char *name)
{
    glob_state next = 0;

    for (size_t i = 0; i < glob->len; i++) {
        if (!(state >> i & 1))
            continue;
        if (glob->parts[i].any_depth)
            next |= (glob_state)1 << i;
        else if (glob_name_match(glob->parts[i].text, name))
            next |= (glob_state)2 << i;
    }
    return glob_close(glob, next);
}

bool glob_is_match(const struct glob *glob, glob_state state)
{
    return state >> glob->len & 1;
}

bool glob_match(const struct glob *glob, const char *path)
{
    glob_state state = glob_start(glob);
    const char *at = path + strlen(glob->prefix);

    if (!path_is_within(path, glob->prefix))
        return false;
    while (state && *(at += strspn(at, "/"))) {
        size_t len = strcspn(at, "/");
        AUTO_FREE char *name = alloc_strn(at, len);

        state = glob_step(glob, state, name);
        at += len;
    }
    return glob_is_match(glob, state);
}

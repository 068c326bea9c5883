/* See glob.h.
 *
 * The one idea: a pattern is a short list of components, and a path stands at a set of places in
 * that list, kept in one machine word. Reading a component moves the set (glob_step), so a match
 * never backtracks over components, and a walk over a tree carries the set of a directory down to
 * its children instead of matching whole paths again; a directory in which no match is possible any
 * more is never opened. Inside a component a star backtracks at most to the last star.
 *
 * The walk goes depth first with a stack of its own, so that a deep tree costs memory and not the C
 * stack. */
#include "policy/glob.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- characters and classes --- */

/* One UTF-8 character; a byte that is part of none stands for itself, apart from all characters. */
static uint32_t glob_char(const char **at)
{
    const unsigned char *text = (const unsigned char *)*at;
    size_t more = text[0] >= 0xf0 ? 3 : text[0] >= 0xe0 ? 2 : text[0] >= 0xc0 ? 1 : 0;
    uint32_t code = text[0] & (0x7fu >> more);

    for (size_t i = 1; i <= more; i++) {
        if ((text[i] & 0xc0) != 0x80)
            more = 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    if (more == 0) {
        (*at)++;
        return text[0] < 0x80 ? text[0] : 0x80000000u | text[0];
    }
    *at += more + 1;
    return code;
}

/* Behind the class that starts at `at` (a "["); NULL when it is never closed. */
static const char *glob_class_end(const char *at)
{
    at++;
    if (*at == '!' || *at == '^')
        at++;
    if (*at == ']')
        at++;
    for (; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == ']')
            return at + 1;
    }
    return NULL;
}

static uint32_t glob_class_char(const char **at)
{
    if (**at == '\\')
        (*at)++;
    return glob_char(at);
}

struct glob_range {
    uint32_t low;
    uint32_t high;
};

/* Reads one member of a class that ends before `end`. A "-" at either end is a member. */
static struct glob_range glob_class_range(const char **at, const char *end)
{
    struct glob_range range;

    range.low = range.high = glob_class_char(at);
    if (**at == '-' && *at + 1 < end) {
        (*at)++;
        range.high = glob_class_char(at);
    }
    return range;
}

/* Matches one pattern item that is not a star against one character; moves both on when it fits. */
static bool glob_item_matches(const char **pattern, const char **text)
{
    const char *next_pattern = *pattern;
    const char *next_text = *text;
    const char *class_end = **pattern == '[' ? glob_class_end(*pattern) : NULL;
    uint32_t wanted = glob_char(&next_text);
    bool fits = false;

    if (class_end) {
        bool negate = *++next_pattern == '!' || *next_pattern == '^';

        next_pattern += negate;
        while (next_pattern < class_end - 1) {
            struct glob_range range = glob_class_range(&next_pattern, class_end - 1);

            fits |= wanted >= range.low && wanted <= range.high;
        }
        fits = fits != negate;
        next_pattern = class_end;
    } else if (**pattern == '?') {
        fits = true;
        next_pattern++;
    } else {
        if (*next_pattern == '\\')
            next_pattern++;
        fits = *next_pattern && glob_char(&next_pattern) == wanted;
    }
    if (fits) {
        *pattern = next_pattern;
        *text = next_text;
    }
    return fits;
}

static bool glob_name_match(const char *pattern, const char *name)
{
    const char *star = NULL;
    const char *resume = NULL;

    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = name;
        } else if (*pattern && glob_item_matches(&pattern, &name)) {
            continue;
        } else if (star) {
            glob_char(&resume);
            name = resume;
            pattern = star;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

/* ERR_INVALID when the component of a pattern is not a good one. */
static int glob_name_check(const char *part, struct err *err)
{
    AUTO_FREE char *plain = glob_unescape(part);

    if (str_eq(plain, ".") || str_eq(plain, ".."))
        return err_set(err, ERR_INVALID, "has a \"%s\" component", plain);
    for (const char *at = part; *at; at++) {
        const char *end = *at == '[' ? glob_class_end(at) : NULL;

        if (end) {
            const char *member = at + 1 + (at[1] == '!' || at[1] == '^');

            while (member < end - 1) {
                struct glob_range range = glob_class_range(&member, end - 1);

                if (range.low > range.high)
                    return err_set(err, ERR_INVALID, "a range in %.*s runs backwards",
                                   (int)(end - at), at);
            }
            at = end - 1;
        } else if (*at == '{') {
            return err_set(err, ERR_INVALID,
                           "\"{\" is not supported, write one pattern for each alternative, or "
                           "\\{ for the character");
        } else if (*at == '\\' && !*++at) {
            return err_set(err, ERR_INVALID, "ends in a single backslash");
        }
    }
    return 0;
}

/* --- text --- */

bool glob_has_meta(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '*' || *at == '?')
            return true;
        else if (*at == '[') {
            const char *end = glob_class_end(at);

            /* a class does not reach over a slash */
            if (end && !memchr(at, '/', (size_t)(end - at)))
                return true;
        }
    }
    return false;
}

static bool is_special(char c)
{
    return c && strchr("*?[]{}\\", c);
}

bool glob_has_escape(const char *text)
{
    while ((text = strchr(text, '\\'))) {
        if (is_special(text[1]))
            return true;
        text++;
    }
    return false;
}

char *glob_escape(const char *text)
{
    char *out = alloc_zero(2 * strlen(text) + 1, 1);
    size_t len = 0;

    for (; *text; text++) {
        if (is_special(*text))
            out[len++] = '\\';
        out[len++] = *text;
    }
    return out;
}

char *glob_unescape(const char *text)
{
    char *out = alloc_zero(strlen(text) + 1, 1);
    size_t len = 0;

    for (; *text; text++) {
        if (*text == '\\' && text[1])
            text++;
        out[len++] = *text;
    }
    return out;
}

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

/* Adds a component to the fixed prefix while it has no live character, else to the parts. */
static void glob_add_part(struct glob *glob, char *part)
{
    bool any_depth = part[0] == '*' && part[1] == '*' && part[strspn(part, "*")] == '\0';

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
    for (const char *at = pattern; *(at += strspn(at, "/")); at += strcspn(at, "/")) {
        AUTO_FREE char *part = alloc_strn(at, strcspn(at, "/"));

        if (glob_name_check(part, err)) {
            err_wrap(err, "pattern %s", pattern);
            return NULL;
        }
        glob_add_part(glob, TAKE_PTR(part));
        if (glob->len > GLOB_COMPONENTS_MAX) {
            err_set(err, ERR_INVALID, "pattern %s: more than %d components", pattern,
                    GLOB_COMPONENTS_MAX);
            return NULL;
        }
    }
    if (str_eq(glob->prefix, "/")) {
        err_set(err, ERR_INVALID, "pattern %s: has to start with the name of a directory", pattern);
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

bool glob_wants_dir(const struct glob *glob)
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

/* --- walking a tree --- */

struct walk_dir {
    char *path;
    glob_state state;
    unsigned depth; /* below the root */
};

struct walk_run {
    const struct glob *glob;
    const struct glob_walk *walk;
    struct walk_dir *stack;
    size_t stack_len;
    size_t stack_cap;
    struct glob_hits *hits;
    size_t visits;
    bool has_changed; /* a directory that was listed is not there any more */
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
    for (size_t i = 0; i < run->stack_len; i++)
        free(run->stack[i].path);
    free(run->stack);
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

/* One path at which the pattern stands in `state`: a match, a directory to look into, or nothing.
 */
static int walk_visit(struct walk_run *run, const struct walk_dir *at, enum host_kind kind,
                      struct err *err)
{
    bool is_leaf = kind != HOST_DIR || (run->walk->max_depth && at->depth >= run->walk->max_depth);

    if (glob_is_match(run->glob, at->state) && (kind == HOST_DIR || !glob_wants_dir(run->glob)))
        return walk_hit(run, at->path, kind, err);
    if (is_leaf)
        return 0;
    run->stack = alloc_grow(run->stack, run->stack_len, &run->stack_cap, sizeof *run->stack);
    run->stack[run->stack_len] = *at;
    run->stack[run->stack_len++].path = alloc_str(at->path);
    return 0;
}

static int walk_list(struct walk_run *run, const struct walk_dir *dir, struct err *err)
{
    const struct host_view *view = run->walk->view;
    AUTO(host_listing_done) struct host_listing listing = {0};

    if (view->list(view, dir->path, &listing, err)) {
        if (err->code == ERR_FORBIDDEN)
            return walk_hit(run, dir->path, HOST_HIDDEN, err);
        run->has_changed = err->code == ERR_NOT_FOUND;
        return -1;
    }
    run->visits += listing.len;
    if (run->visits > run->walk->visits_max)
        return err_set(err, ERR_LIMIT,
                       "more than %zu paths to look at below %s; set glob_scan_max_depth or start "
                       "the pattern deeper",
                       run->walk->visits_max, run->walk->root);
    for (size_t i = 0; i < listing.len; i++) {
        const char *name = listing.items[i].name;
        glob_state state = glob_step(run->glob, dir->state, name);
        AUTO_FREE char *path = state ? path_join(dir->path, name) : NULL;
        struct walk_dir child = {.path = path, .state = state, .depth = dir->depth + 1};

        if (state && walk_visit(run, &child, listing.items[i].kind, err))
            return -1;
    }
    return 0;
}

static int walk_tree(struct walk_run *run, struct err *err)
{
    const struct glob_walk *walk = run->walk;
    AUTO_FREE char *root = alloc_str(walk->root);
    struct walk_dir start = {.path = root, .state = glob_start(run->glob)};
    enum host_kind kind;

    if (walk->view->kind(walk->view, root, &kind, err))
        return -1;
    if (kind == HOST_MISSING)
        return 0;
    if (kind == HOST_HIDDEN)
        return err_set(err, ERR_FORBIDDEN, "%s cannot be looked at any more", root);
    if (walk_visit(run, &start, kind, err))
        return -1;
    while (run->stack_len) {
        struct walk_dir dir = run->stack[--run->stack_len];
        int status = walk_list(run, &dir, err);

        free(dir.path);
        if (status)
            return -1;
    }
    return 0;
}

/* What was moved during the walk could have been missed where it went, so the walk begins anew. */
int glob_expand(const struct glob *glob, const struct glob_walk *walk, struct glob_hits *hits,
                struct err *err)
{
    enum { TRIES = 20 };
    const size_t first = hits->len;

    for (int i = 0;; i++) {
        AUTO(walk_run_done) struct walk_run run = {.glob = glob, .walk = walk, .hits = hits};

        if (walk_tree(&run, err) == 0)
            return 0;
        if (!run.has_changed || i == TRIES)
            return -1;
        while (hits->len > first)
            free(hits->items[--hits->len].path);
    }
}

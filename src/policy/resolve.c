/* See resolve.h.
 *
 *     entries -> targets: literal paths, followed through symlinks            resolve_entries
 *             -> what each grants or narrows, sorted                          the access map
 *             -> private temporary folders                                        tmp_folders.h
 *             -> platform directories for "minimal"                               resolve_minimal
 *             -> protected names                                              policy/protect.h
 *             -> are the symlinks on the way out of the command's reach?      resolve_check_targets
 *             -> what patterns match, denied                                  resolve_patterns
 *             -> Unix sockets that may be connected to                           resolve_sockets
 *             -> symlinks that a restricted root needs                        profile_resolve
 *
 * The order of the steps is fixed and each works on the sorted result of the one before, so the
 * order of the entries in the profile does not matter.
 *
 * Invariants: a grant is only made for a path that exists, and only an entry of the user makes one;
 * everything else narrows. When a path that is to be guarded cannot be looked at, what is guarded
 * moves up to the last directory that can.
 *
 * All patterns are expanded first, then the map is sorted once, and then the matched symlinks are
 * judged, so that neither the order of the patterns nor that of the matches decides anything. What
 * is created after the run has started is not denied; only a pattern "DIR/" and two stars, which
 * becomes a deny of the directory, covers that.
 *
 * What it does not do: judge whether the host can enforce the result (src/sandbox). */
#include "policy/resolve.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/glob.h"
#include "policy/host_view.h"
#include "policy/protect.h"
#include "policy/tmp_folders.h"

#include <stdlib.h>
#include <string.h>

struct target {
    char *asked; /* clean */
    struct path_walk walk;
    enum access access;
    enum profile_missing missing;
    bool asks;
    char *origin;
};

/* An absolute pattern that denies what it matches. */
struct deny_pattern {
    struct glob *glob;
    char *text;
    char *origin;
};

struct resolution {
    const struct profile *profile;
    const struct resolve_context *context;
    struct access_map map;
    struct target *targets;
    size_t targets_len;
    size_t targets_cap;
    struct deny_pattern *patterns;
    size_t patterns_len;
    size_t patterns_cap;
    struct strv reopened; /* symlinks that write entries name */
};

static void target_done(struct target *target)
{
    free(target->asked);
    free(target->origin);
    path_walk_done(&target->walk);
}

static void resolution_done(struct resolution *run)
{
    for (size_t i = 0; i < run->targets_len; i++)
        target_done(&run->targets[i]);
    free(run->targets);
    for (size_t i = 0; i < run->patterns_len; i++) {
        glob_free(run->patterns[i].glob);
        free(run->patterns[i].text);
        free(run->patterns[i].origin);
    }
    free(run->patterns);
    access_map_done(&run->map);
    strv_done(&run->reopened);
}

/* --- entries to targets --- */

static int resolve_add_target(struct resolution *run, const struct profile_entry *entry,
                              const char *path, struct err *err)
{
    struct target target = {
        .access = entry->access, .missing = entry->missing, .asks = entry->asks};

    if (path[0] != '/')
        return err_set(err, ERR_INVALID, "%s: \"%s\" is not an absolute path", entry->origin, path);
    target.asked = path_clean("/", path);
    if (path_walk(run->context->view, target.asked, &target.walk, err)) {
        free(target.asked);
        return err_wrap(err, "%s", entry->origin);
    }
    target.origin = alloc_str(entry->origin);
    run->targets =
        alloc_grow(run->targets, run->targets_len, &run->targets_cap, sizeof *run->targets);
    run->targets[run->targets_len++] = target;
    return 0;
}

/* A workspace root inside of a git directory is not writable just for being the workspace, because
 * hooks and configuration would be. A worktree that was put there is. */
static int resolve_guard_git_interior(const struct host_view *view, struct target *target,
                                      struct err *err)
{
    AUTO_FREE char *slashed = alloc_strf("%s/", target->walk.path);
    AUTO_FREE char *git = path_join(target->walk.path, ".git");
    enum host_kind kind;

    if (target->access != ACCESS_WRITE || !strstr(slashed, "/.git/"))
        return 0;
    if (view->kind(view, git, &kind, err))
        return -1;
    if (kind == HOST_MISSING || kind == HOST_HIDDEN) {
        char *origin = alloc_strf("%s, read-only inside of a git directory", target->origin);

        free(target->origin);
        target->origin = origin;
        target->access = ACCESS_READ;
    }
    return 0;
}

/* A pattern for a directory and everything below it becomes a plain deny of the directory, which
 * also holds for what comes into being later. */
static int resolve_pattern(struct resolution *run, const struct profile_entry *entry,
                           const char *pattern, struct err *err)
{
    struct glob *glob = glob_compile(pattern, err);

    if (!glob)
        return err_wrap(err, "%s", entry->origin);
    if (glob_is_tree(glob)) {
        int status = resolve_add_target(run, entry, glob_prefix(glob), err);

        glob_free(glob);
        return status;
    }
    run->patterns =
        alloc_grow(run->patterns, run->patterns_len, &run->patterns_cap, sizeof *run->patterns);
    run->patterns[run->patterns_len++] = (struct deny_pattern){
        .glob = glob, .text = alloc_str(pattern), .origin = alloc_str(entry->origin)};
    return 0;
}

static int resolve_glob(struct resolution *run, const struct profile_entry *entry, struct err *err)
{
    char *const *roots = run->context->workspace_roots;

    if (entry->access != ACCESS_DENY)
        return err_set(err, ERR_INVALID, "%s: the pattern %s can only deny", entry->origin,
                       entry->path);
    if (entry->path[0] == '/')
        return resolve_pattern(run, entry, entry->path, err);
    for (size_t i = 0; roots && roots[i]; i++) {
        AUTO_FREE char *clean = path_clean("/", roots[i]);
        AUTO_FREE char *root = glob_escape(clean);
        AUTO_FREE char *pattern = path_join(root, entry->path);

        if (resolve_pattern(run, entry, pattern, err))
            return -1;
    }
    return 0;
}

/* What computes; the nodes that set a screen (/dev/dri/card*) are not among it. In `dir`, what begins
 * with `name`, and is neither a directory nor a link. */
static int resolve_gpu(struct resolution *run, const struct profile_entry *entry, struct err *err)
{
    static const struct {
        const char *dir;
        const char *name;
    } nodes[] = {
        {"/dev/dri", "renderD"}, {"/dev", "nvidia"}, {"/dev/nvidia-caps", "nvidia-cap"},
        {"/dev", "kfd"},         {"/dev", "dxg"},
    };

    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        AUTO(host_listing_done) struct host_listing listing = {0};
        struct err failure;

        if (run->context->view->list(run->context->view, nodes[i].dir, &listing, &failure)) {
            if (failure.code == ERR_NOT_FOUND || failure.code == ERR_FORBIDDEN)
                continue;
            *err = failure;
            return err_wrap(err, "%s", entry->origin);
        }
        for (size_t k = 0; k < listing.len; k++) {
            AUTO_FREE char *path = path_join(nodes[i].dir, listing.items[k].name);

            if (listing.items[k].kind == HOST_OTHER &&
                str_starts(listing.items[k].name, nodes[i].name) &&
                resolve_add_target(run, entry, path, err))
                return -1;
        }
    }
    return 0;
}

static int resolve_entry(struct resolution *run, const struct profile_entry *entry, struct err *err)
{
    char *const *roots = run->context->workspace_roots;
    const char *tmpdir = run->context->tmpdir;

    if (entry->is_of_host_tmp && run->profile->tmp == PROFILE_TMP_PRIVATE)
        return 0;
    switch (entry->path_kind) {
    case PROFILE_PATH_LITERAL:
        return resolve_add_target(run, entry, entry->path, err);
    case PROFILE_PATH_GLOB:
        return resolve_glob(run, entry, err);
    case PROFILE_PATH_ROOT:
        return resolve_add_target(run, entry, "/", err);
    case PROFILE_PATH_PROJECT_ROOTS:
        for (size_t i = 0; roots && roots[i]; i++) {
            AUTO_FREE char *path =
                entry->subpath ? path_join(roots[i], entry->subpath) : alloc_str(roots[i]);

            if (resolve_add_target(run, entry, path, err))
                return -1;
            if (i < run->context->canonical_roots && !entry->subpath &&
                run->targets[run->targets_len - 1].walk.links_len)
                return err_set(err, ERR_FORBIDDEN,
                               "the workspace root %s leads through a symlink to %s: name that, if "
                               "it is meant",
                               roots[i], run->targets[run->targets_len - 1].walk.path);
            if (!entry->subpath &&
                resolve_guard_git_interior(run->context->view, &run->targets[run->targets_len - 1],
                                           err))
                return -1;
        }
        break;
    case PROFILE_PATH_TMPDIR:
        /* It is taken from an environment, not from the policy: a value that is not usable, or that
         * would open the whole disk, is no entry. */
        if (!tmpdir || tmpdir[0] != '/')
            break;
        if (resolve_add_target(run, entry, tmpdir, err))
            return -1;
        if (str_eq(run->targets[run->targets_len - 1].walk.path, "/"))
            target_done(&run->targets[--run->targets_len]);
        break;
    case PROFILE_PATH_SLASH_TMP:
        if (resolve_add_target(run, entry, "/tmp", err))
            return -1;
        if (run->targets[run->targets_len - 1].walk.kind != ACCESS_DIR)
            target_done(&run->targets[--run->targets_len]);
        break;
    case PROFILE_PATH_GPU:
        return resolve_gpu(run, entry, err);
    case PROFILE_PATH_MINIMAL: /* resolve_minimal() */
    case PROFILE_PATH_UNKNOWN:
        break;
    }
    return 0;
}

/* --- targets to the map --- */

/* What a target that is there (or is missing for good) says by itself. */
static void resolve_map_target(struct resolution *run, const struct target *target)
{
    const struct path_walk *walk = &target->walk;
    bool is_found = walk->end == PATH_FOUND;
    bool is_kept = walk->end == PATH_MISSING && target->access != ACCESS_WRITE &&
                   target->missing == PROFILE_MISSING_DEFAULT;

    if (is_found || is_kept)
        access_map_add(&run->map, walk->path, target->access, walk->kind, target->origin)->asks =
            target->asks;
    if (is_found && target->access == ACCESS_WRITE && walk->name_link)
        strv_push(&run->reopened, walk->links[walk->name_link - 1].path);
    if (is_found && target->access != ACCESS_DENY)
        for (size_t i = 0; i < walk->links_len; i++)
            access_map_add_link(&run->map, walk->links[i].path, walk->links[i].target);
}

/* The directory that hides a guarded path is narrowed, but what has an entry of its own below it is
 * not. So that can only be seen by turns: somebody changes the modes meanwhile. And a root that is
 * writable by way of another one has names of its own to be protected. */
static int resolve_check_hidden(const struct access_map *map, const struct target *target,
                                struct err *err)
{
    const char *path = target->walk.path;
    const enum access least = target->access == ACCESS_DENY ? ACCESS_DENY : ACCESS_READ;

    if (target->walk.end != PATH_HIDDEN || !access_map_is_open_within(map, path, least))
        return 0;
    return err_set(err, ERR_FORBIDDEN,
                   "%s: %s cannot be seen, because %s does not let us look; but that, or something "
                   "in it, is open to the command",
                   target->origin, target->asked, path);
}

static int resolve_entries(struct resolution *run, struct err *err)
{
    const struct profile_entries *entries = &run->profile->entries;
    struct access_map *map = &run->map;
    AUTO(access_map_done) struct access_map narrowed = {0};

    for (size_t i = 0; i < entries->len; i++)
        if (resolve_entry(run, &entries->items[i], err))
            return -1;
    for (size_t i = 0; i < run->targets_len; i++)
        resolve_map_target(run, &run->targets[i]);
    access_map_sort(map);
    /* A guarded path that ends early narrows the place where it ends, and never grants anything
     * there: a directory that hides it gets its access; a file in its way becomes read-only, so
     * that it cannot be replaced by a directory. */
    for (size_t i = 0; i < run->targets_len; i++) {
        const struct target *target = &run->targets[i];
        const struct path_walk *walk = &target->walk;
        enum access access = walk->end == PATH_HIDDEN ? target->access : ACCESS_READ;

        if ((walk->end == PATH_HIDDEN || walk->end == PATH_BLOCKED) &&
            target->access != ACCESS_WRITE && access_map_check(map, walk->path) > access)
            access_map_add(&narrowed, walk->path, access, walk->kind, target->origin);
    }
    access_map_add_all(map, &narrowed);
    access_map_sort(map);
    for (size_t i = 0; i < run->targets_len; i++)
        if (resolve_check_hidden(map, &run->targets[i], err))
            return -1;
    /* a denied root is what "restricted" says anyway */
    if (map->len && str_eq(map->entries[0].path, "/") && map->entries[0].access == ACCESS_DENY) {
        free(map->entries[0].path);
        free(map->entries[0].origin);
        memmove(map->entries, map->entries + 1, --map->len * sizeof *map->entries);
    }
    return 0;
}

/* --- minimal --- */

/* What programs need to be started at all. The directories come before symlinks that lead into
 * them. */
static const char *const platform_roots[] = {
    "/usr",   "/etc",   "/bin",    "/sbin",      "/lib",
    "/lib64", "/lib32", "/libx32", "/nix/store", "/run/current-system/sw",
};

/* Only fills gaps, so that what the user wrote about such a directory, or one above it, stays. */
static int resolve_minimal(struct resolution *run, struct err *err)
{
    const struct profile_entries *entries = &run->profile->entries;
    const struct profile_entry *minimal = NULL;

    for (size_t i = 0; !minimal && i < entries->len; i++)
        if (entries->items[i].path_kind == PROFILE_PATH_MINIMAL &&
            entries->items[i].access != ACCESS_DENY)
            minimal = &entries->items[i];
    if (!minimal || access_map_full_read(&run->map))
        return 0;
    for (size_t i = 0; i < sizeof platform_roots / sizeof *platform_roots; i++) {
        const char *path = platform_roots[i];
        AUTO(path_walk_done) struct path_walk walk = {0};

        if (path_walk(run->context->view, path, &walk, err))
            return -1;
        if (walk.end != PATH_FOUND)
            continue;
        for (size_t j = 0; j < walk.links_len; j++)
            access_map_add_link(&run->map, walk.links[j].path, walk.links[j].target);
        if (access_map_find(&run->map, walk.path))
            continue;
        if (protect_check_links(&run->map, path, walk.links, walk.links_len, err))
            return err_wrap(err, "%s", minimal->origin);
        access_map_add(&run->map, walk.path, ACCESS_READ, walk.kind, minimal->origin);
        access_map_sort(&run->map);
    }
    return 0;
}

/* --- guards --- */

/* A symlink that the command can replace may lead elsewhere in the next run: then a guard would
 * stand in the wrong place, and a grant would open what the user never named. */
static int resolve_check_targets(const struct resolution *run, struct err *err)
{
    for (size_t i = 0; i < run->targets_len; i++) {
        const struct target *target = &run->targets[i];
        const struct path_walk *walk = &target->walk;
        AUTO_FREE char *above = path_parent(walk->path);

        /* what is writable right above the target is the command's anyway, wherever a symlink leads
         * to it */
        if (target->access == ACCESS_WRITE && walk->path[1] &&
            access_map_check_host(&run->map, above) == ACCESS_WRITE)
            continue;
        if (protect_check_links(&run->map, target->asked, walk->links, walk->links_len, err))
            return err_wrap(err, "%s", target->origin);
    }
    return 0;
}

/* --- denied patterns --- */

enum {
    PATTERN_MATCHES_MAX = 8192,   /* of all patterns together */
    PATTERN_VISITS_MAX = 2000000, /* directory entries looked at, for each pattern */
};

struct pattern_matches {
    struct glob_hits hits;
    struct access_map denied; /* what they deny */
    struct strv hidden;       /* directories that do not let us look for more, denied as well */
};

static void pattern_matches_done(struct pattern_matches *matches)
{
    glob_hits_done(&matches->hits);
    access_map_done(&matches->denied);
    strv_done(&matches->hidden);
}

/* ERR_FORBIDDEN when the fixed part of the pattern leads through a symlink that the command could
 * replace. */
static int pattern_expand(const struct resolution *run, const struct deny_pattern *pattern,
                          struct pattern_matches *matches, struct err *err)
{
    struct access_map *denied = &matches->denied;
    struct strv *hidden = &matches->hidden;
    struct glob_hits *hits = &matches->hits;
    AUTO_FREE char *origin = alloc_strf("%s, pattern %s", pattern->origin, pattern->text);
    AUTO(path_walk_done) struct path_walk root = {0};
    const char *prefix = glob_prefix(pattern->glob);
    struct glob_walk walk = {.view = run->context->view,
                             .max_depth = run->profile->glob_scan_max_depth,
                             .matches_max = PATTERN_MATCHES_MAX,
                             .visits_max = PATTERN_VISITS_MAX};
    size_t first = hits->len;

    if (path_walk(walk.view, prefix, &root, err) ||
        protect_check_links(&run->map, prefix, root.links, root.links_len, err))
        return err_wrap(err, "%s", origin);
    if (root.end == PATH_HIDDEN) {
        access_map_add(denied, root.path, ACCESS_DENY, root.kind, pattern->origin);
        strv_push(hidden, root.path);
    }
    walk.root = root.path;
    if (root.end == PATH_FOUND && glob_expand(pattern->glob, &walk, hits, err))
        return err_wrap(err, "%s", origin);
    for (size_t i = first; i < hits->len; i++) {
        const struct glob_hit *hit = &hits->items[i];
        bool is_dir = hit->kind == HOST_DIR || hit->kind == HOST_HIDDEN;

        if (hit->kind == HOST_HIDDEN)
            strv_push(hidden, hit->path);
        if (hit->kind != HOST_SYMLINK)
            access_map_add(denied, hit->path, ACCESS_DENY, is_dir ? ACCESS_DIR : ACCESS_FILE,
                           origin);
    }
    return 0;
}

/* What a matched symlink leads to. When the command could replace the symlink, and its target is
 * not denied by itself, the next run would not find it any more: ERR_FORBIDDEN. */
static int pattern_deny_target(const struct resolution *run, const char *path,
                               struct pattern_matches *matches, struct access_map *denied,
                               struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};
    AUTO_FREE char *origin = NULL;

    if (path_walk(run->context->view, path, &walk, err))
        return -1;
    if ((walk.end != PATH_FOUND && walk.end != PATH_HIDDEN) ||
        access_map_check(&run->map, walk.path) == ACCESS_DENY)
        return 0;
    if (protect_check_links(&run->map, path, walk.links, walk.links_len, err))
        return -1;
    if (walk.end == PATH_HIDDEN &&
        (!walk.links_len || access_map_check_host(&run->map, walk.path) == ACCESS_WRITE))
        return err_set(err, ERR_FORBIDDEN, "%s cannot be followed: %s does not let us look", path,
                       walk.path);
    origin = alloc_strf("target of %s, which a pattern matches", path);
    access_map_add(denied, walk.path, ACCESS_DENY, walk.kind, origin);
    if (walk.end == PATH_HIDDEN)
        strv_push(&matches->hidden, walk.path);
    return 0;
}

static int resolve_patterns(struct resolution *run, struct err *err)
{
    AUTO(pattern_matches_done) struct pattern_matches matches = {0};
    AUTO(access_map_done) struct access_map targets = {0};
    const struct glob_hits *hits = &matches.hits;

    for (size_t i = 0; i < run->patterns_len; i++)
        if (pattern_expand(run, &run->patterns[i], &matches, err))
            return -1;
    access_map_add_all(&run->map, &matches.denied);
    access_map_sort(&run->map);
    for (size_t i = 0; i < hits->len; i++)
        if (hits->items[i].kind == HOST_SYMLINK &&
            pattern_deny_target(run, hits->items[i].path, &matches, &targets, err))
            return err_wrap(err, "matched by a pattern");
    access_map_add_all(&run->map, &targets);
    access_map_sort(&run->map);
    for (size_t i = 0; i < matches.hidden.len; i++)
        if (access_map_is_open_within(&run->map, matches.hidden.items[i], ACCESS_DENY))
            return err_set(err, ERR_FORBIDDEN,
                           "a pattern may match something in %s, which does not let us look; but "
                           "something in it is open to the command",
                           matches.hidden.items[i]);
    return 0;
}

/* --- Unix sockets --- */

/* The socket at the canonical end of the walk, by an entry of its own; what denies just that path
 * stays. */
static void resolve_add_socket(struct resolution *run, const struct path_walk *walk,
                               const char *origin)
{
    struct access_map *map = &run->map;
    struct access_entry *entry = access_map_exact(map, walk->path);
    enum access around = access_map_check_host(map, walk->path);

    if (entry && entry->access == ACCESS_DENY)
        return;
    for (size_t i = 0; i < walk->links_len; i++)
        access_map_add_link(map, walk->links[i].path, walk->links[i].target);
    if (!entry)
        entry = access_map_add(map, walk->path, around == ACCESS_DENY ? ACCESS_READ : around,
                               walk->kind, origin);
    entry->allows_sockets = true;
    access_map_sort(map);
}

/* Those that were named. One that is not there is none: it could lead anywhere later. */
static int resolve_named_sockets(struct resolution *run, struct err *err)
{
    const struct profile_entries *sockets = &run->profile->unix_sockets;

    for (size_t i = 0; i < sockets->len; i++) {
        const struct profile_entry *socket = &sockets->items[i];
        AUTO_FREE char *path = path_clean("/", socket->path);
        AUTO(path_walk_done) struct path_walk walk = {0};

        if (path_walk(run->context->view, path, &walk, err))
            return err_wrap(err, "%s", socket->origin);
        if (walk.end != PATH_FOUND)
            continue;
        if (walk.kind == ACCESS_DIR)
            return err_set(err, ERR_INVALID, "%s: %s is a directory; each socket has to be named",
                           socket->origin, path);
        if (protect_check_links(&run->map, path, walk.links, walk.links_len, err))
            return err_wrap(err, "%s", socket->origin);
        resolve_add_socket(run, &walk, socket->origin);
    }
    return 0;
}

/* Where programs of the host, which the command has nothing to do with, keep their sockets: those
 * of ssh-agent, tmux, X11. */
static const char *const shared_dirs[] = {"/tmp", "/var/tmp", "/run", "/dev/shm"};

/* Sockets in what is writable are the command's, unless the place is shared: neither in a shared
 * directory, nor in one that a shared one lies in without an entry of its own. */
static void resolve_allow_sockets(struct access_map *map, const char *shared, bool is_first)
{
    bool has_entry = access_map_exact(map, shared);

    for (size_t i = 0; i < map->len; i++) {
        struct access_entry *entry = &map->entries[i];

        if (is_first)
            entry->allows_sockets |= entry->access == ACCESS_WRITE;
        if (entry->source)
            continue; /* nobody else's */
        if (path_is_within(entry->path, shared) ||
            (!has_entry && path_is_within(shared, entry->path)))
            entry->allows_sockets = false;
    }
}

static int resolve_sockets(struct resolution *run, struct err *err)
{
    const char *tmpdir = run->context->tmpdir;

    for (size_t i = 0; i < sizeof shared_dirs / sizeof *shared_dirs; i++)
        resolve_allow_sockets(&run->map, shared_dirs[i], i == 0);
    if (tmpdir && tmpdir[0] == '/') {
        AUTO_FREE char *clean = path_clean("/", tmpdir);
        AUTO(path_walk_done) struct path_walk walk = {0};

        if (path_walk(run->context->view, clean, &walk, err))
            return -1;
        resolve_allow_sockets(&run->map, walk.path, false);
    }
    return resolve_named_sockets(run, err);
}

static char *find_home(const struct resolve_context *context)
{
    AUTO(path_walk_done) struct path_walk walk = {0};
    struct err ignored; /* it is only for texts */

    if (!context->home || context->home[0] != '/')
        return NULL;
    if (path_walk(context->view, context->home, &walk, &ignored) || walk.end != PATH_FOUND)
        return alloc_str(context->home);
    return TAKE_PTR(walk.path);
}

/* Who is asked about files is asked about hosts, too. */
static void copy_network_policy(const struct profile *profile, struct access_map *map)
{
    if (map->network != NETWORK_PROXIED) {
        map->network_policy.publications = profile->network_policy.publications;
        return;
    }
    network_policy_copy(&profile->network_policy, &map->network_policy);
    map->network_policy.asks |= profile->watch == PROFILE_WATCH_ASK;
}

int profile_resolve(const struct profile *profile, const struct resolve_context *context,
                    struct access_map *ret, struct err *err)
{
    AUTO(resolution_done) struct resolution run = {.profile = profile, .context = context};
    struct access_map *map = &run.map;
    size_t kept = 0;

    if (profile->kind != PROFILE_MANAGED || profile->files == PROFILE_FILES_UNRESTRICTED) {
        bool is_disabled = profile->kind == PROFILE_DISABLED;

        *ret = (struct access_map){.network = is_disabled ? NETWORK_ENABLED : profile->network};
        copy_network_policy(profile, ret);
        return 0;
    }
    map->restricted = true;
    map->network = profile->network;
    copy_network_policy(profile, map);
    if (resolve_entries(&run, err) || tmp_folders_add(profile, context, map, err) ||
        resolve_minimal(&run, err))
        return -1;
    /* any glob narrows, also one that matches nothing today */
    if ((run.patterns_len || !access_map_full_write(map)) &&
        protect_add(map, context, profile, &run.reopened, err))
        return -1;
    if (protect_add_home(map, context, err))
        return -1;
    if (resolve_check_targets(&run, err) || resolve_patterns(&run, err) ||
        resolve_sockets(&run, err))
        return -1;
    access_map_drop(map, tmp_folders_hide);
    /* symlinks that an entry covers are shown, or hidden, by it, but for those that a private folder
     * does not have */
    for (size_t i = 0; i < map->links_len; i++) {
        const struct access_entry *entry = access_map_find(map, map->links[i].path);

        if (!entry || entry->source) {
            map->links[kept++] = map->links[i];
            continue;
        }
        free(map->links[i].path);
        free(map->links[i].target);
    }
    map->links_len = kept;
    access_map_sort(map);
    map->home = find_home(context);
    *ret = *map;
    *map = (struct access_map){0};
    return 0;
}

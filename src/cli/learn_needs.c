/* See learn_needs.h. What a learning run may write beyond its profile is a list of what is known to be a cache,
 * and never "everything but": a folder that nobody thought of stays closed, and is told. So no such run
 * reaches a file that something else obeys, and no profile that comes of it does.
 *
 * A name that a command made is written into a profile, which later ones run by: only a real folder
 * or file is, at a path that leads through no link. */
#include "cli/learn_needs.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "policy/access.h"
#include "policy/believed.h"
#include "timeline/timeline.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- places --- */

/* Below the home directory. */
static const struct {
    const char *path;
    bool is_whole;
    const char *tool; /* whose folder is made when it is missing; NULL: it is not */
} homes[] = {
    {".cache", false, "sh"},
    {".local/state", false, NULL},
    {".npm", false, "npm"},
    {".cargo/registry", true, "cargo"},
    {".cargo/git", true, "cargo"},
    {"go/pkg", false, "go"},
    {".m2/repository", true, "mvn"},
    {".gradle/caches", true, "gradle"},
    {".gradle/native", true, "gradle"},
    {".gradle/daemon", true, "gradle"},
    {".gradle/wrapper/dists", true, NULL},
    {".ivy2/cache", true, NULL},
    {".ivy2/local", true, NULL},
    {".nuget/packages", true, NULL},
    {".ccache", true, NULL},
    {".local/share/pnpm/store", true, NULL},
    {".pnpm-store", true, NULL},
    {".yarn/berry", true, NULL},
    {".bun/install/cache", true, NULL},
    {".composer/cache", true, NULL},
    {".bundle/cache", true, NULL},
    {".cabal/packages", true, NULL},
    {".conan2/p", true, NULL},
    {".pub-cache/hosted", true, NULL},
    {".node-gyp", true, NULL},
    {".matplotlib", true, NULL},
};

/* Where tools are told to keep them. */
static const struct {
    const char *name;
    bool is_whole;
} variables[] = {
    {"XDG_CACHE_HOME", false},   {"XDG_STATE_HOME", false},
    {"npm_config_cache", false}, {"PIP_CACHE_DIR", true},
    {"UV_CACHE_DIR", true},      {"GOCACHE", true},
    {"GOMODCACHE", true},        {"CCACHE_DIR", true},
    {"SCCACHE_DIR", true},       {"BUN_INSTALL_CACHE_DIR", true},
    {"YARN_CACHE_FOLDER", true}, {"DENO_DIR", true},
};

static bool is_in_path(const char *tool)
{
    const char *at = getenv("PATH");

    while (at && *at) {
        size_t len = strcspn(at, ":");
        AUTO_FREE char *dir = alloc_strn(at, len);
        AUTO_FREE char *path = path_join(len ? dir : "/", tool);

        if (*dir == '/' && access(path, X_OK) == 0)
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

void learn_places_add(struct learn_places *places, const char *path, bool is_whole)
{
    AUTO_FREE char *real = realpath(path, NULL);

    if (!real)
        return;
    for (size_t i = 0; i < places->len; i++)
        if (str_eq(places->items[i].path, real))
            return;
    places->items = alloc_grow(places->items, places->len, &places->cap, sizeof *places->items);
    places->items[places->len++] =
        (struct learn_place){.path = TAKE_PTR(real), .is_whole = is_whole};
}

/* What no place may reach. */
struct bounds {
    const char *home; /* canonical; NULL: not known */
    char *const *own_paths;
};

/* Of the list: a folder of the user's own that nothing obeys, nor anything above or in it. */
static void add_known(struct learn_places *places, const struct bounds *bounds, const char *path,
                      bool is_whole)
{
    AUTO_FREE char *real = realpath(path, NULL);
    const char *home = bounds->home;
    struct stat st;

    for (char *const *own = bounds->own_paths; real && own && *own; own++) {
        AUTO_FREE char *real_own = realpath(*own, NULL);
        const char *path_own = real_own ? real_own : *own;

        if (path_is_within(real, path_own) || path_is_within(path_own, real))
            return;
    }

    if (!real || stat(real, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (home && path_is_within(home, real)) || !place_may_be_opened(real, home))
        return;
    learn_places_add(places, real, is_whole);
}

/* As mkdir -p, below the home directory alone. */
static void make(struct learn_places *places, const char *home, const char *path)
{
    for (size_t at = strlen(home) + 1; at <= strlen(path); at++) {
        AUTO_FREE char *part = alloc_strn(path, at);

        if (path[at] != '/' && path[at])
            continue;
        if (mkdir(part, 0755) == 0)
            strv_push(&places->made, part);
        else if (errno != EEXIST)
            return;
    }
}

/* Of a cache directory the part that is Cordon's: what presets keep there belongs to all workspaces. It is
 * there for the run, so that nothing can come to be called so. */
static void find_kept(struct learn_places *places)
{
    for (size_t i = 0; i < places->len; i++) {
        AUTO_FREE char *path = NULL;

        if (places->items[i].is_whole)
            continue;
        path = path_join(places->items[i].path, "cordon");
        if (mkdir(path, 0700) == 0)
            strv_push(&places->made, path);
        strv_push(&places->kept, path);
    }
}

void learn_places_find(const char *home, char *const *own_paths, struct learn_places *ret)
{
    AUTO_FREE char *real = home ? realpath(home, NULL) : NULL;
    const struct bounds bounds = {.home = real, .own_paths = own_paths};

    for (size_t i = 0; home && real && i < sizeof homes / sizeof *homes; i++) {
        AUTO_FREE char *path = path_join(home, homes[i].path);

        if (homes[i].tool && is_in_path(homes[i].tool))
            make(ret, home, path);
        add_known(ret, &bounds, path, homes[i].is_whole);
    }
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *path = getenv(variables[i].name);

        if (path && path[0] == '/')
            add_known(ret, &bounds, path, variables[i].is_whole);
    }
    find_kept(ret);
}

void learn_places_done(struct learn_places *places)
{
    for (size_t i = places->made.len; i > 0; i--)
        rmdir(places->made.items[i - 1]); /* one that is in use stays */
    for (size_t i = 0; i < places->len; i++)
        free(places->items[i].path);
    free(places->items);
    strv_done(&places->made);
    strv_done(&places->kept);
    *places = (struct learn_places){.len = 0};
}

/* The longest that the path lies in; NULL without one. */
static const struct learn_place *place_of(const struct learn_places *places, const char *path)
{
    const struct learn_place *found = NULL;

    for (size_t i = 0; i < places->len; i++)
        if (path_is_within(path, places->items[i].path) &&
            (!found || strlen(places->items[i].path) > strlen(found->path)))
            found = &places->items[i];
    return found;
}

bool learn_places_have_below(const struct learn_places *places, const char *path)
{
    const struct learn_place *place = place_of(places, path);

    return place && !str_eq(place->path, path);
}

/* What a profile would have to have for the path: the place, or the name in it. NULL: the place is no
 * more than looked at. Caller frees. */
static char *unit_of(const struct learn_place *place, const char *path)
{
    size_t len = strlen(place->path);

    if (place->is_whole)
        return alloc_str(place->path);
    if (!path[len])
        return NULL;
    return alloc_strn(path, len + 1 + strcspn(path + len + 1, "/"));
}

/* --- needs --- */

enum { WHO_MAX = 4, REFUSALS_MAX = 40, REMOTE_MAX = 12, HOSTS_MAX = 200, NEEDS_MAX = 200 };

static void add_who(struct strv *who, const char *program, const char *operation, size_t max)
{
    AUTO_FREE char *plain = utf8_plain(program ? program : "?");
    AUTO_FREE char *text = alloc_strf("%s: %s", plain, operation);

    if (who->len < max && !strv_has(who, text))
        strv_push(who, text);
}

static void add_refusal(struct learn_needs *needs, const char *operation, const char *path,
                        const char *program, const char *why)
{
    AUTO_FREE char *plain = utf8_plain(path ? path : "?");
    AUTO_FREE char *what = alloc_strf("%s %s", operation ? operation : "?", plain);

    for (size_t i = 0; i < needs->refusals_len; i++)
        if (str_eq(needs->refusals[i].what, what))
            return;
    if (needs->refusals_len == REFUSALS_MAX) {
        needs->refusals_more++;
        return;
    }
    needs->refusals = alloc_grow(needs->refusals, needs->refusals_len, &needs->refusals_cap,
                                 sizeof *needs->refusals);
    needs->refusals[needs->refusals_len++] = (struct learn_refusal){
        .what = TAKE_PTR(what), .who = utf8_plain(program ? program : "?"), .why = utf8_plain(why)};
}

static struct learn_need *need_at(struct learn_needs *needs, const char *path, bool is_socket)
{
    for (size_t i = 0; i < needs->len; i++)
        if (str_eq(needs->items[i].path, path) && needs->items[i].is_socket == is_socket)
            return &needs->items[i];
    if (needs->len == NEEDS_MAX)
        return NULL;
    needs->items = alloc_grow(needs->items, needs->len, &needs->cap, sizeof *needs->items);
    needs->items[needs->len] = (struct learn_need){.path = alloc_str(path), .is_socket = is_socket};
    return &needs->items[needs->len++];
}

/* git refreshes the index also where it only looks: a profile need not have that. */
static bool is_of_git(const struct learn_needs *needs, const char *path)
{
    for (size_t i = 0; i < needs->base->repositories.len; i++) {
        const char *dir = needs->base->repositories.items[i];

        if (path_is_within(path, dir))
            return !str_starts(path_name(path), "index");
    }
    return false;
}

static void add_written(struct learn_needs *needs, const struct timeline_event *event,
                        const char *path)
{
    const struct learn_place *place;
    AUTO_FREE char *unit = NULL;
    struct learn_need *need;

    if (!path || path[0] != '/' || access_map_check(needs->base, path) == ACCESS_WRITE)
        return;
    if (is_of_git(needs, path))
        add_who(&needs->git, event->program, event->operation, WHO_MAX);
    place = place_of(needs->places, path);
    if (!place)
        return; /* a repository; /dev and /proc, which are the sandbox's own */
    unit = unit_of(place, path);
    if (!unit)
        return;
    need = need_at(needs, unit, false);
    if (need)
        add_who(&need->who, event->program, event->operation, WHO_MAX);
    else
        add_refusal(needs, event->operation, path, event->program,
                    "too many folders for one profile");
}

/* Once for each host and port, as a rule has it. What the base allows anyway is no need; nor is localhost, which is the
 * command's own. */
static void add_host(struct learn_needs *needs, const struct timeline_event *event)
{
    struct net_host host;
    struct network_request request = {.host = &host};
    struct network_decision decision = {.verdict = NETWORK_DENY};
    struct err ignored;
    AUTO_FREE char *text = NULL;

    if (!event->path || net_host_parse_port(event->path, &host, &request.port, &ignored) ||
        !request.port || needs->hosts.len >= HOSTS_MAX)
        return;
    request.protocol = network_protocol_of_port(request.port);
    if (needs->base->network == NETWORK_PROXIED)
        network_policy_decide(&needs->base->network_policy, &request, &decision);
    text = net_host_format(host.text, request.port);
    if (decision.verdict == NETWORK_ALLOW || net_host_is_loopback(&host) ||
        strv_has(&needs->hosts, text))
        return;
    strv_push(&needs->hosts, text);
    strv_push_take(&needs->hosts_who,
                   utf8_plain(event->program && *event->program ? event->program : "?"));
}

static void add_done(struct learn_needs *needs, const struct timeline_event *event)
{
    const char *operation = event->operation ? event->operation : "";
    struct learn_need *need;

    if (str_eq(operation, "connect") || str_eq(operation, "bind")) {
        if (event->is_socket && event->path && event->path[0] == '/') {
            if (str_eq(operation, "bind"))
                add_written(needs, event, event->path);
            else if (place_of(needs->places, event->path) &&
                     (need = need_at(needs, event->path, true)))
                add_who(&need->who, event->program, operation, WHO_MAX);
        } else if (!event->is_socket && str_eq(operation, "connect")) {
            add_host(needs, event);
        }
        return;
    }
    if (str_eq(operation, "read") || str_eq(operation, "execute") || str_eq(operation, "signal"))
        return;
    add_written(needs, event, event->path);
    add_written(needs, event, event->other_path);
}

/* A remedy only for what may be one: neither the home directory itself nor what others obey. Caller frees. */
static char *why_refused(const struct learn_needs *needs, const struct timeline_event *event)
{
    const char *path = event->path && event->path[0] == '/' ? event->path : "/";
    AUTO_FREE char *parent = path_parent(path);

    if (event->origin && !str_starts(event->origin, "built-in"))
        return alloc_strf("refused by %s", event->origin);
    if (needs->home && (str_eq(parent, needs->home) || path_is_within(needs->home, path)))
        return alloc_str("it is your home directory, or right in it");
    if (!place_may_be_opened(path, needs->home) || !place_may_be_opened(parent, needs->home))
        return alloc_str("it is the system's, or other programs run or obey what is there");
    return alloc_strf("no cache, and no folder of a tool that is known; if it is one: cordon learn "
                      "--writable %s",
                      event->operation && str_eq(event->operation, "create") ? parent : path);
}

/* A server that this machine, or another command, has at its localhost; NULL: it is none, or a resolver. */
static const char *port_outside(const char *address)
{
    const char *port = str_starts(address, "127.0.0.1:")   ? address + strlen("127.0.0.1:")
                       : str_starts(address, "localhost:") ? address + strlen("localhost:")
                                                           : NULL;

    return port && !str_eq(port, "53") ? port : NULL;
}

static char *why_not_connected(const struct learn_needs *needs, const char *address)
{
    const char *port = port_outside(address);

    if (port)
        return alloc_strf("a port of this machine's own localhost: cordon learn --host-port %s",
                          port);
    return needs->is_proxied ? alloc_strf("cordon learn --allow-host %s", address)
                             : alloc_str("to learn which hosts it needs: cordon learn "
                                         "--allow-host \"*\"");
}

static void add_denied(struct learn_needs *needs, const struct timeline_event *event)
{
    const char *operation = event->operation ? event->operation : "";
    AUTO_FREE char *why = NULL;

    if (str_eq(operation, "connect") && !event->is_socket && event->path) {
        AUTO_FREE char *plain = utf8_plain(event->path);
        AUTO_FREE char *text = alloc_strf("connect %s", plain);

        add_who(&needs->remote, event->program, text, REMOTE_MAX);
        why = why_not_connected(needs, plain);
        add_refusal(needs, event->operation, event->path, event->program, why);
        return;
    }
    if (event->is_socket)
        why = alloc_strf("a socket of this machine: cordon learn --socket %s",
                         event->path ? event->path : "PATH");
    else
        why = why_refused(needs, event);
    add_refusal(needs, event->operation, event->path, event->program, why);
}

void learn_needs_add(struct learn_needs *needs, const struct timeline_event *event)
{
    needs->is_watched = true;
    if (event->kind == TIMELINE_DONE)
        add_done(needs, event);
    else if (event->kind == TIMELINE_DENIED)
        add_denied(needs, event);
    else if (event->kind == TIMELINE_MISSED)
        needs->lost += event->count;
}

/* Why no profile can have it; NULL: it can. */
static const char *flaw_of(const struct learn_need *need)
{
    AUTO_FREE char *real = realpath(need->path, NULL);
    struct stat st;

    if (need->is_socket)
        return NULL;
    if (lstat(need->path, &st))
        return "it is gone at the end, so there is nothing to be opened";
    if (!real || !str_eq(real, need->path))
        return "a link is in its path: see what made it before anything else is run";
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return "it is neither a folder nor a file";
    if (!utf8_is_valid(need->path, strlen(need->path)) ||
        need->path[strcspn(need->path, "*?[\\\n")])
        return "its name cannot stand in a profile";
    return NULL;
}

static int compare(const void *a, const void *b)
{
    return path_compare(((const struct learn_need *)a)->path, ((const struct learn_need *)b)->path);
}

static void need_done(struct learn_need *need)
{
    free(need->path);
    strv_done(&need->who);
}

void learn_needs_end(struct learn_needs *needs)
{
    size_t len = 0;

    for (size_t i = 0; i < needs->len; i++) {
        struct learn_need *need = &needs->items[i];
        const char *flaw = flaw_of(need);
        AUTO_FREE char *program = NULL; /* the first that it was done by */

        if (!flaw) {
            needs->items[len++] = *need;
            continue;
        }
        program = alloc_strn(need->who.items[0], strcspn(need->who.items[0], ":"));
        add_refusal(needs, "write", need->path, program, flaw);
        need_done(need);
    }
    needs->len = len;
    strv_sort(&needs->git);
    if (len)
        qsort(needs->items, len, sizeof *needs->items, compare);
    for (size_t i = 0; i < len; i++)
        strv_sort(&needs->items[i].who);
}

void learn_needs_done(struct learn_needs *needs)
{
    for (size_t i = 0; i < needs->len; i++)
        need_done(&needs->items[i]);
    for (size_t i = 0; i < needs->refusals_len; i++) {
        free(needs->refusals[i].what);
        free(needs->refusals[i].who);
        free(needs->refusals[i].why);
    }
    free(needs->items);
    free(needs->refusals);
    strv_done(&needs->remote);
    strv_done(&needs->hosts);
    strv_done(&needs->hosts_who);
    strv_done(&needs->git);
    *needs = (struct learn_needs){.len = 0};
}

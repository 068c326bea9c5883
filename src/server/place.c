/* See place.h. A place is remembered by the text of all that it depends on. What the text means can
 * change under it (somebody runs `git init`: a name that was to be kept missing is there), so it is
 * resolved again before it is used, each time, and made anew when the result differs. That costs
 * some tens of microseconds; with a pattern over a large tree as long as it takes to look through
 * it, because what came to match since the last command must not be seen by the next one.
 *
 * Places that nobody holds stay, the least recently used go when there are too many. */
#include "server/place.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/host_view.h"
#include "policy/profile.h"
#include "policy/protect.h"
#include "policy/resolve.h"
#include "sandbox/map_change.h"
#include "sandbox/sandbox.h"
#include "server/places.h"
#include "server/sandbox_request.h"
#include "server/secret_files.h"
#include "workspace/idle_reaper.h"

#include <stdlib.h>

enum { PLACES_MAX = 64 };

struct kept_place {
    struct place place; /* first */
    struct places *places;
    char *key;
    char *tmpdir;                   /* or NULL */
    struct sandbox_request request; /* of a place with an object */
    struct access_map map;          /* as resolved, before the sandbox added to it */
    size_t secrets_len;             /* hidden in it: those that were there */
    bool has_request;
    bool is_stale; /* not to be found any more: goes when nobody holds it */
    unsigned holds;
    struct kept_place *next;
};

struct places {
    struct kept_place *first; /* the most recently used one */
    struct strv own_paths;
    struct strv secrets;
    char *files_program; /* carries out file calls, also where nothing else can be read; or NULL */
    char *patch_program; /* the same for patches: `cordon`, which is static */
    struct idle_reaper *idle_reaper;
    uint64_t last_number;
};

struct places *places_new(struct loop *loop, char *const *own_paths, char *const *secrets)
{
    struct places *places = alloc_zero(1, sizeof *places);
    struct err ignored; /* the first file call says it */

    places->idle_reaper = idle_reaper_new(loop);
    strv_push_all(&places->own_paths, own_paths);
    strv_push_all(&places->secrets, secrets);
    places->files_program = program_find("cordon-files", &ignored);
    places->patch_program = program_find("cordon", &ignored);
    return places;
}

static void kept_free(struct kept_place *kept)
{
    if (!kept)
        return;
    idle_reaper_forget(kept->places->idle_reaper, kept->place.sandbox);
    sandbox_free(kept->place.sandbox);
    if (kept->has_request)
        sandbox_request_done(&kept->request);
    access_map_done(&kept->map);
    free(kept->tmpdir);
    free(kept->key);
    free(kept);
}

static void kept_auto(struct kept_place **slot)
{
    kept_free(*slot);
}

void places_free(struct places *places)
{
    if (!places)
        return;
    while (places->first) {
        struct kept_place *next = places->first->next;

        kept_free(places->first);
        places->first = next;
    }
    strv_done(&places->own_paths);
    strv_done(&places->secrets);
    idle_reaper_free(places->idle_reaper);
    free(places->files_program);
    free(places->patch_program);
    free(places);
}

/* Drops what nobody holds: all that is stale, and of the others what comes behind PLACES_MAX. */
static void places_trim(struct places *places)
{
    struct kept_place **at = &places->first;
    size_t seen = 0;

    while (*at) {
        struct kept_place *kept = *at;

        seen++;
        if (kept->holds || (!kept->is_stale && seen <= PLACES_MAX)) {
            at = &kept->next;
            continue;
        }
        *at = kept->next;
        kept_free(kept);
    }
}

char *const *places_own_paths(const struct places *places)
{
    return strv_view(&places->own_paths);
}

const char *places_patch_program(const struct places *places)
{
    return places->patch_program;
}

void places_hide(struct places *places, char *const *secrets)
{
    for (; *secrets; secrets++)
        if (!strv_has(&places->secrets, *secrets))
            strv_push(&places->secrets, *secrets);
}

void places_forget(struct places *places)
{
    for (struct kept_place *kept = places->first; kept; kept = kept->next)
        kept->is_stale = true;
    places_trim(places);
}

bool place_has_root(const struct place *place, const char *path)
{
    const struct kept_place *kept = (const struct kept_place *)place;

    for (size_t i = 0; kept->has_request && i < kept->request.roots.len; i++)
        if (path_is_within(path, kept->request.roots.items[i]))
            return true;
    return false;
}

void place_hold(struct place *place)
{
    struct kept_place *kept = (struct kept_place *)place;

    kept->holds++;
}

void place_release(struct place *place)
{
    struct kept_place *kept = (struct kept_place *)place;

    kept->holds--;
}

/* --- what it means now --- */

static int kept_resolve(struct kept_place *kept, struct access_map *ret, struct err *err)
{
    const struct resolve_context context = {
        .view = &host_view_real,
        .workspace_roots = strv_view(&kept->request.roots),
        .tmpdir = kept->tmpdir,
    };

    return profile_resolve(&kept->request.profile, &context, ret, err);
}

/* Also false when it cannot be resolved any more: making it anew then says why. */
static bool kept_is_good(struct kept_place *kept)
{
    AUTO(access_map_done) struct access_map now = {0};
    struct err ignored;

    if (!kept->has_request || kept->request.mode == SANDBOX_DISABLED)
        return true;
    if (kept->secrets_len != secret_files_count(&kept->places->secrets))
        return false;
    return kept_resolve(kept, &now, &ignored) == 0 && map_is_same(&kept->map, &now);
}

/* --- making --- */

static void show_program(struct access_map *map, const char *program, const char *why)
{
    if (!program || access_map_check(map, program) != ACCESS_DENY)
        return;
    access_map_add(map, program, ACCESS_READ, ACCESS_FILE, why);
    access_map_sort(map);
}

/* What rules the next run must not be writable by way of a link either. */
static int guard_own(const struct places *places, const struct access_map *map, struct strv *ret,
                     struct err *err)
{
    for (size_t i = 0; i < places->own_paths.len; i++) {
        AUTO(path_walk_done) struct path_walk walk = {0};

        if (path_walk(&host_view_real, places->own_paths.items[i], &walk, err) ||
            protect_check_links(map, places->own_paths.items[i], walk.links, walk.links_len, err))
            return err_wrap(err, "Cordon's configuration");
        strv_push(ret, walk.path);
    }
    return 0;
}

static int kept_open(struct kept_place *kept, const struct places *places, struct err *err)
{
    AUTO(strv_done) struct strv own_paths = {0};
    AUTO(access_map_done) struct access_map shown = {0};
    struct sandbox_options options = {
        .mode = kept->has_request ? kept->request.mode : SANDBOX_DISABLED,
        .access = &shown,
        .keep_warm = true,
        .on_idle = idle_reaper_on_idle,
        .data = places->idle_reaper,
        .dies_with_thread = true,
    };

    if (options.mode == SANDBOX_DISABLED)
        kept->map = (struct access_map){.network = NETWORK_ENABLED};
    else if (kept_resolve(kept, &kept->map, err) || guard_own(places, &kept->map, &own_paths, err))
        return -1;
    options.own_paths = (const char *const *)strv_view(&own_paths);
    access_map_copy(&shown, &kept->map);
    show_program(&shown, places->files_program, "Cordon's helper for files");
    show_program(&shown, places->patch_program, "Cordon's helper for patches");
    secret_files_hide(&places->secrets, &shown);
    kept->secrets_len = secret_files_count(&places->secrets);
    options.allow_nested_namespaces =
        kept->has_request && kept->request.profile.allow_nested_namespaces;
    kept->place.sandbox = sandbox_new(&options, err);
    if (!kept->place.sandbox)
        return -1;
    kept->place.type = kept->has_request ? kept->request.type : "none";
    kept->place.profile = kept->has_request ? &kept->request.profile : NULL;
    if (options.mode != SANDBOX_DISABLED)
        kept->place.access = sandbox_access(kept->place.sandbox);
    return 0;
}

static int check_network(const struct kept_place *kept, struct err *err)
{
    if (kept->request.profile.kind != PROFILE_DISABLED &&
        kept->request.profile.network == NETWORK_PROXIED)
        return err_set(err, ERR_UNSUPPORTED,
                       "the profile wants the managed network proxy, which this server has not");
    return 0;
}

static struct kept_place *kept_new(struct places *places, const struct place_request *asked,
                                   enum rpc_code *ret_code, struct err *err)
{
    AUTO(kept_auto) struct kept_place *kept = alloc_zero(1, sizeof *kept);

    kept->places = places;
    kept->place.number = ++places->last_number;
    kept->tmpdir = alloc_str(asked->tmpdir);
    kept->is_stale = asked->widened; /* for nobody else */
    if (asked->sandbox && !json_is_null(asked->sandbox)) {
        if (sandbox_request_read(asked->sandbox, asked->cwd, &kept->request, ret_code, err))
            return NULL;
        kept->has_request = true;
        if (asked->widened)
            profile_overlay_apply(&kept->request.profile, asked->widened);
    }
    *ret_code = RPC_INTERNAL;
    if (check_network(kept, err) || kept_open(kept, places, err))
        return NULL;
    if (sandbox_is_degraded(kept->place.sandbox))
        log_event(LOG_LEVEL_WARN, "sandbox-degraded",
                  log_text("why", sandbox_degradation(kept->place.sandbox)));
    return TAKE_PTR(kept);
}

/* --- finding --- */

static char *place_key(const struct place_request *request)
{
    bool has_object = request->sandbox && !json_is_null(request->sandbox);
    AUTO_FREE char *object =
        has_object ? json_dumps(request->sandbox, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    if (!has_object)
        return alloc_str("");
    return alloc_strf("%s\n%s\n%s", request->cwd ? request->cwd : "",
                      request->tmpdir ? request->tmpdir : "", object);
}

static void places_push(struct places *places, struct kept_place *kept)
{
    kept->next = places->first;
    places->first = kept;
}

/* Takes it out of the list; NULL when there is none of this key. */
static struct kept_place *places_take(struct places *places, const char *key)
{
    for (struct kept_place **at = &places->first; *at; at = &(*at)->next) {
        struct kept_place *kept = *at;

        if (kept->is_stale || !str_eq(kept->key, key))
            continue;
        *at = kept->next;
        return kept;
    }
    return NULL;
}

struct place *place_find(struct places *places, const struct place_request *request,
                         enum rpc_code *ret_code, struct err *err)
{
    AUTO_FREE char *key = place_key(request);
    struct kept_place *kept = request->widened ? NULL : places_take(places, key);

    if (kept) {
        places_push(places, kept);
        kept->is_stale = !kept_is_good(kept);
        if (!kept->is_stale)
            return &kept->place;
    }
    kept = kept_new(places, request, ret_code, err);
    if (!kept)
        return NULL;
    kept->key = TAKE_PTR(key);
    places_push(places, kept);
    kept->holds++;
    places_trim(places);
    kept->holds--;
    return &kept->place;
}

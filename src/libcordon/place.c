/* See place.h. The same steps as `cordon run` takes: profile, network, entries in front of it, the
 * access map, what belongs to Cordon, the sandbox, the environment. */
#include "libcordon/place.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "job/job_environment.h"
#include "libcordon/engine.h"
#include "libcordon/place_part.h"
#include "policy/config/config.h"
#include "policy/environment.h"
#include "policy/host_view.h"
#include "policy/path_walk.h"
#include "policy/profile_overlay.h"
#include "policy/profile_text.h"
#include "policy/protect.h"
#include "policy/resolve.h"
#include "sandbox/map_change.h"
#include "sandbox/sandbox.h"
#include "workspace/idle_reaper.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void place_free(struct place *place)
{
    if (!place)
        return;
    sandbox_free(place->sandbox);
    strv_done(&place->env);
    strv_done(&place->session_env);
    strv_done(&place->set_names);
    strv_done(&place->own_paths);
    profile_done(&place->profile);
    strv_done(&place->roots);
    access_map_done(&place->map);
    policy_copy_done(&place->policy);
    free(place->workspace);
    free(place->key);
    free(place);
}

void places_free(struct place *places, struct idle_reaper *idle_reaper)
{
    while (places) {
        struct place *next = places->next;

        idle_reaper_forget(idle_reaper, places->sandbox);
        place_free(places);
        places = next;
    }
}

static void place_auto(struct place **slot)
{
    place_free(*slot);
}

/* --- profile --- */

/* Everything between the policy and the sandbox. */
struct making {
    const struct cordon_engine *engine;
    const struct cordon_policy *policy;
    const char *workspace;
    enum sandbox_mode mode;
    struct config_profile chosen;
    struct strv roots;
    struct access_map access;
    struct strv own_paths;                 /* canonical */
    const struct profile_overlay *overlay; /* NULL: none */
    bool is_bare;                          /* whatever the policy says */
};

static void making_done(struct making *making)
{
    config_profile_done(&making->chosen);
    strv_done(&making->roots);
    access_map_done(&making->access);
    strv_done(&making->own_paths);
}

static int choose_profile(struct making *making, struct err *err)
{
    const struct config *config = making->engine->config;
    const char *asked = making->policy->profile;
    bool is_configured = !asked && config && config_default_profile(config);

    return config_profile(config,
                          is_configured ? NULL
                          : asked       ? asked
                                        : "workspace-write",
                          making->engine->home, &making->chosen, err);
}

static int choose_mode(struct making *making, struct err *err)
{
    static const enum sandbox_mode modes[] = {
        [CORDON_SANDBOX_AUTO] = SANDBOX_AUTO,
        [CORDON_SANDBOX_REQUIRE] = SANDBOX_REQUIRE,
        [CORDON_SANDBOX_DISABLED] = SANDBOX_DISABLED,
    };
    const struct cordon_policy *policy = making->policy;
    bool is_open = making->chosen.profile.kind == PROFILE_DISABLED;
    bool narrows = (policy->deny && *policy->deny) || policy->network == CORDON_NETWORK_RESTRICTED;

    if (policy->sandbox < 0 || policy->sandbox > CORDON_SANDBOX_DISABLED)
        return err_set(err, ERR_INVALID, "policy.sandbox is %d, which is no enum cordon_sandbox",
                       policy->sandbox);
    making->mode = is_open ? SANDBOX_DISABLED : modes[policy->sandbox];
    if (is_open && modes[policy->sandbox] == SANDBOX_REQUIRE)
        return err_set(err, ERR_INVALID,
                       "policy.sandbox requires what the profile %s does not have: a sandbox",
                       making->chosen.profile.id ? making->chosen.profile.id : "");
    if (making->mode == SANDBOX_DISABLED && narrows)
        return err_set(err, ERR_INVALID,
                       "policy.deny and a restricted network cannot be kept without a sandbox");
    return 0;
}

static int choose_network(struct making *making, struct err *err)
{
    struct profile *profile = &making->chosen.profile;

    switch (making->policy->network) {
    case CORDON_NETWORK_OF_PROFILE:
        break;
    case CORDON_NETWORK_RESTRICTED:
        profile->network = NETWORK_RESTRICTED;
        break;
    case CORDON_NETWORK_ENABLED:
        profile->network = NETWORK_ENABLED;
        break;
    default:
        return err_set(err, ERR_INVALID, "policy.network is %d, which is no enum cordon_network",
                       making->policy->network);
    }
    if (profile->network == NETWORK_PROXIED)
        return err_set(err, ERR_UNSUPPORTED,
                       "the profile has rules for the managed proxy, which this version of Cordon "
                       "does not have: set policy.network");
    return 0;
}

static int add_paths(struct making *making, struct profile *profile, const char *const *paths,
                     enum access access, struct err *err)
{
    for (; paths && *paths; paths++) {
        const struct profile_text text = {
            .text = *paths,
            .access = access,
            .origin = "the host's policy",
            .home = making->engine->home,
            .base = making->workspace,
        };
        const struct profile_entry *entry;

        if (profile_add_text(profile, &text, err))
            return -1;
        entry = &profile->entries.items[profile->entries.len - 1];
        if (access == ACCESS_WRITE && entry->path_kind == PROFILE_PATH_LITERAL)
            strv_push(&making->roots, entry->path);
    }
    return 0;
}

/* What the host says comes in front: of two entries that say the same, it is named. */
static int add_entries(struct making *making, struct err *err)
{
    AUTO(profile_done) struct profile asked = {0};
    struct profile_entries *entries = &making->chosen.profile.entries;
    struct profile_entries rest = *entries;

    if (add_paths(making, &asked, making->policy->writable, ACCESS_WRITE, err) ||
        add_paths(making, &asked, making->policy->readable, ACCESS_READ, err) ||
        add_paths(making, &asked, making->policy->deny, ACCESS_DENY, err))
        return -1;
    *entries = asked.entries;
    asked.entries = rest;
    for (size_t i = 0; i < rest.len; i++)
        profile_entries_add(entries, &rest.items[i]);
    return 0;
}

/* The root folder is never a root of the workspace just because the host happens to be there. */
static void add_roots(struct making *making)
{
    if (!str_eq(making->workspace, "/"))
        strv_push(&making->roots, making->workspace);
    strv_push_all(&making->roots, strv_view(&making->chosen.workspace_roots));
}

static int guard_own(struct making *making, struct err *err)
{
    const struct strv *own = &making->engine->own_paths;

    for (size_t i = 0; i < own->len; i++) {
        AUTO(path_walk_done) struct path_walk walk = {0};

        if (path_walk(&host_view_real, own->items[i], &walk, err) ||
            protect_check_links(&making->access, own->items[i], walk.links, walk.links_len, err))
            return err_wrap(err, "Cordon's configuration");
        strv_push(&making->own_paths, walk.path);
    }
    return 0;
}

static int resolve_profile(const struct profile *profile, const struct strv *roots,
                           struct access_map *ret, struct err *err)
{
    const struct resolve_context context = {
        .view = &host_view_real,
        .workspace_roots = strv_view(roots),
        .tmpdir = getenv("TMPDIR"),
    };

    return profile_resolve(profile, &context, ret, err);
}

static int resolve(struct making *making, struct err *err)
{
    if (making->mode == SANDBOX_DISABLED) {
        making->access = (struct access_map){.network = NETWORK_ENABLED};
        return 0;
    }
    if (resolve_profile(&making->chosen.profile, &making->roots, &making->access, err))
        return -1;
    return guard_own(making, err);
}

/* --- sandbox and environment --- */

static struct sandbox *make_sandbox(const struct making *making, struct err *err)
{
    const struct sandbox_options options = {
        .mode = making->mode,
        .access = &making->access,
        .allow_nested_namespaces = making->chosen.profile.allow_nested_namespaces,
        .keep_warm = true,
        .on_idle = idle_reaper_on_idle,
        .data = making->engine->idle_reaper,
        .launcher = making->engine->launcher,
        .own_paths = (const char *const *)strv_view(&making->own_paths),
    };

    return sandbox_new(&options, err);
}

static void make_env(const struct making *making, struct place *place)
{
    const struct config *config = making->engine->config;
    const struct environment_request request = {
        .policy = config ? config_environment(config) : NULL,
        .base = environ,
        .sandbox = making->mode == SANDBOX_DISABLED ? ENVIRONMENT_BARE : ENVIRONMENT_SANDBOXED,
        .network = making->access.network,
    };
    AUTO(environment_report_done) struct environment_report report = {0};
    struct job_env_request session = {0};

    environment_build(&request, &place->env, &report);
    for (size_t i = 0; i < report.len; i++)
        if (report.notes[i].reason == ENVIRONMENT_SET)
            strv_push(&place->set_names, report.notes[i].name);
    session.thread_id = making->engine->thread_id;
    session.base = strv_view(&place->env);
    session.chosen = (const char *const *)strv_view(&place->set_names);
    job_env_build(&session, &place->session_env);
}

static struct place *place_make(struct making *making, struct err *err)
{
    AUTO(place_auto) struct place *place = NULL;

    if (choose_profile(making, err) || choose_mode(making, err) || choose_network(making, err))
        return NULL;
    if (making->is_bare)
        making->mode = SANDBOX_DISABLED;
    add_roots(making);
    if (add_entries(making, err))
        return NULL;
    if (making->overlay)
        profile_overlay_apply(&making->chosen.profile, making->overlay);
    if (resolve(making, err))
        return NULL;
    place = alloc_zero(1, sizeof *place);
    place->workspace = alloc_str(making->workspace);
    policy_copy_init(&place->policy, making->policy, making->workspace);
    place->sandbox = make_sandbox(making, err);
    if (!place->sandbox)
        return NULL;
    if (making->mode != SANDBOX_DISABLED)
        place->access = sandbox_access(place->sandbox);
    make_env(making, place);
    place->profile = making->chosen.profile;
    making->chosen.profile = (struct profile){0};
    place->map = making->access;
    making->access = (struct access_map){0};
    place->roots = making->roots;
    making->roots = (struct strv){0};
    place->profile_name = place->profile.id ? place->profile.id : "of the host";
    place->own_paths = making->own_paths;
    making->own_paths = (struct strv){0};
    return TAKE_PTR(place);
}

bool place_is_current(const struct place *place)
{
    AUTO(access_map_done) struct access_map now = {0};
    struct err ignored;

    return !place->access ||
           (resolve_profile(&place->profile, &place->roots, &now, &ignored) == 0 &&
            map_is_same(&place->map, &now));
}

struct place *place_make_of(struct cordon_engine *engine, const struct cordon_policy *policy,
                            const char *workspace, struct err *err)
{
    AUTO(making_done)
    struct making making = {.engine = engine, .policy = policy, .workspace = workspace};

    return place_make(&making, err);
}

struct place *place_open(struct cordon_engine *engine, const struct place *like,
                         const struct profile_overlay *overlay, struct err *err)
{
    AUTO(making_done)
    struct making making = {.engine = engine,
                            .policy = &like->policy.policy,
                            .workspace = like->workspace,
                            .overlay = overlay,
                            .is_bare = !overlay};

    return place_make(&making, err);
}

void place_close(struct cordon_engine *engine, struct place *place)
{
    if (place)
        idle_reaper_forget(engine->idle_reaper, place->sandbox);
    place_free(place);
}

char *place_folder(const struct place *place, const char *cwd)
{
    return path_clean(place->workspace, cwd ? cwd : "");
}

/* See place.h. The same steps as `cordon run` takes: profile, network, entries in front of it, the
 * access map, what belongs to Cordon, the sandbox, the environment. A policy is remembered by the
 * text of all that it says, so that hosts need not keep anything to get the same sandbox again. */
#include "engine/place.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "engine/engine.h"
#include "exec/session_env.h"
#include "policy/config.h"
#include "policy/environment.h"
#include "policy/host_view.h"
#include "policy/path_walk.h"
#include "policy/profile_text.h"
#include "policy/protect.h"
#include "policy/resolve.h"
#include "sandbox/sandbox.h"

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
    free(place->workspace);
    free(place->key);
    free(place);
}

void places_free(struct place *places)
{
    while (places) {
        struct place *next = places->next;

        place_free(places);
        places = next;
    }
}

static void place_auto(struct place **slot)
{
    place_free(*slot);
}

/* --- what was asked for, as text --- */

static void key_add(struct buf *key, const char *name, const char *value)
{
    buf_appendf(key, "%s=%zu:%s\n", name, value ? strlen(value) : 0, value ? value : "");
}

static void key_add_all(struct buf *key, const char *name, const char *const *values)
{
    for (; values && *values; values++)
        key_add(key, name, *values);
}

static char *policy_key(const struct cordon_policy *policy, const char *workspace)
{
    struct buf key;

    buf_init(&key, SIZE_MAX / 2);
    key_add(&key, "profile", policy->profile);
    key_add(&key, "workspace", workspace);
    key_add_all(&key, "writable", policy->writable);
    key_add_all(&key, "readable", policy->readable);
    key_add_all(&key, "deny", policy->deny);
    buf_appendf(&key, "network=%d\nsandbox=%d\n", policy->network, policy->sandbox);
    return buf_take(&key);
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
    struct strv own_paths; /* canonical */
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

static int resolve(struct making *making, struct err *err)
{
    const struct resolve_context context = {
        .view = &host_view_real,
        .workspace_roots = strv_view(&making->roots),
        .tmpdir = getenv("TMPDIR"),
    };

    if (making->mode == SANDBOX_DISABLED) {
        making->access = (struct access_map){.network = NETWORK_ENABLED};
        return 0;
    }
    if (profile_resolve(&making->chosen.profile, &context, &making->access, err))
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
    AUTO(strv_done) struct strv chosen = {0};
    struct session_env_request session = {0};

    environment_build(&request, &place->env, &report);
    for (size_t i = 0; i < report.len; i++)
        if (report.notes[i].reason == ENVIRONMENT_SET)
            strv_push(&chosen, report.notes[i].name);
    session.thread_id = making->engine->thread_id;
    session.base = strv_view(&place->env);
    session.chosen = (const char *const *)strv_view(&chosen);
    session_env_build(&session, &place->session_env);
}

static struct place *place_make(struct making *making, struct err *err)
{
    AUTO(place_auto) struct place *place = NULL;

    if (choose_profile(making, err) || choose_mode(making, err) || choose_network(making, err))
        return NULL;
    add_roots(making);
    if (add_entries(making, err) || resolve(making, err))
        return NULL;
    place = alloc_zero(1, sizeof *place);
    place->workspace = alloc_str(making->workspace);
    place->sandbox = make_sandbox(making, err);
    if (!place->sandbox)
        return NULL;
    if (making->mode != SANDBOX_DISABLED)
        place->access = sandbox_access(place->sandbox);
    make_env(making, place);
    return TAKE_PTR(place);
}

/* Canonical, since it becomes a root. Caller frees. */
static char *find_workspace(const char *asked, struct err *err)
{
    char *folder = realpath(asked ? asked : ".", NULL);

    if (!folder)
        err_sys(err, "the workspace %s", asked ? asked : "(the current folder)");
    return folder;
}

const struct place *place_find(struct cordon_engine *engine, const struct cordon_policy *given,
                               struct err *err)
{
    struct cordon_policy policy = {0};
    AUTO(making_done) struct making making = {.engine = engine, .policy = &policy};
    AUTO_FREE char *workspace = NULL;
    AUTO_FREE char *key = NULL;
    struct place *place;

    if (!given && engine->place)
        return engine->place;
    if (given && options_read(&policy, sizeof policy, given, err)) {
        err_wrap(err, "policy");
        return NULL;
    }
    making.workspace = workspace = find_workspace(policy.workspace, err);
    if (!workspace)
        return NULL;
    key = policy_key(&policy, workspace);
    for (place = engine->places; place; place = place->next)
        if (str_eq(place->key, key))
            return place;
    place = place_make(&making, err);
    if (!place)
        return NULL;
    place->key = TAKE_PTR(key);
    place->next = engine->places;
    engine->places = place;
    return place;
}

char *place_folder(const struct place *place, const char *cwd)
{
    return path_clean(place->workspace, cwd ? cwd : "");
}

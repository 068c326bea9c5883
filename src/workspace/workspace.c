/* See workspace.h. Each step takes what the steps before it made; none is repeated, and none is
 * anywhere else.
 *
 * A workspace is remembered by its key, the text of all that it was asked for with. What that means
 * can change under it (`git init` runs: a name that was to be kept missing is there), so it is
 * resolved again each time before it is used, and made anew when the result differs. That costs
 * some tens of microseconds; with a pattern over a large tree as long as it takes to look through
 * it, because what came to match since the last command must not be seen by the next one.
 *
 * Those that are not held stay, the least recently used go when there are too many, and all of them
 * when the process has few descriptors left, of which each keeps some. A sandbox tells when its last
 * command is gone; one that is still idle a second later gives back the spare launcher that it keeps,
 * and another second later nothing of it is a zombie.
 *
 * A workspace keeps its private temporary folders open as long as it is there itself. */
#include "workspace/workspace.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/path.h"
#include "base/str.h"
#include "job/job_environment.h"
#include "layer/layer.h"
#include "loop/loop.h"
#include "policy/config/config.h"
#include "policy/host_view.h"
#include "policy/narrow.h"
#include "policy/profile.h"
#include "policy/protect.h"
#include "policy/resolve.h"
#include "sandbox/sandbox.h"
#include "timeline/timeline.h"
#include "workspace/choose.h"
#include "workspace/credentials.h"
#include "workspace/finder.h"
#include "workspace/layered.h"
#include "workspace/own_files.h"
#include "workspace/presets.h"
#include "workspace/private_tmp.h"
#include "workspace/rule_layers.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WORKSPACES_MAX = 64,
    EMPTYING_STEPS = 2000, /* some milliseconds behind a command */
};

#define IDLE_NS CLOCK_NS_PER_S /* after that, what a sandbox caches is given back */

struct workspaces {
    struct workspaces_options options; /* its lists are not used: see below */
    struct list all;                   /* the most recently used one first */
    struct strv own_paths;
    struct strv secrets;
    char *programs[WORKSPACE_PROGRAMS]; /* or NULL */
    struct loop_timer *idle; /* for the sandbox that is idle for the longest; NULL: none caches */
    bool has_idle;           /* it has been started */
    uint64_t last_number;
    char *tmp_base; /* of the private temporary folders; NULL: none has been used */
};

struct workspace_inside {
    struct workspace workspace;
    struct list link;
    struct workspaces *owner;
    char *key; /* NULL: for one command */
    char *tmpdir;
    struct environment_policy env_policy;
    struct presets presets; /* laid over the profile */
    struct profile *narrow; /* what its profile is narrowed to, too; owned; NULL: nothing */
    bool has_no_env;
    bool is_single;     /* of one attempt: its layer stays as it is */
    bool is_stale;      /* not to be found any more: goes when it is not held */
    uint64_t idle_ns;   /* since when its sandbox is idle; 0: it is not, or has nothing cached */
    size_t secrets_len; /* hidden in its sandbox: those that were there */
    unsigned holds;
};

/* --- which sandboxes have nothing to do --- */

/* Once a day. Those of workspaces that are not held, too, which are made again when they are wanted. */
static void empty_tmp(struct workspaces *workspaces)
{
    const time_t now = time(NULL);

    if (!tmp_store_is_due(workspaces->tmp_base, now))
        return;
    if (!workspaces->options.is_lasting)
        workspaces_forget(workspaces);
    tmp_store_empty(workspaces->tmp_base, now, EMPTYING_STEPS);
}

/* One that is in use again is left out: it will tell anew. */
static void on_idle_time(void *data)
{
    struct workspaces *workspaces = data;
    struct workspace_inside *inside;
    uint64_t now = clock_now_ns();
    uint64_t first_ns = UINT64_MAX;

    list_for_each(inside, &workspaces->all, link) {
        if (!inside->idle_ns)
            continue;
        if (now - inside->idle_ns < IDLE_NS) {
            first_ns = inside->idle_ns < first_ns ? inside->idle_ns : first_ns;
            continue;
        }
        inside->idle_ns = 0;
        if (!sandbox_is_idle(inside->workspace.sandbox) ||
            sandbox_release_idle(inside->workspace.sandbox))
            continue;
        inside->idle_ns = first_ns = now; /* once more, for what has been told to end */
    }
    workspaces->has_idle = first_ns != UINT64_MAX;
    if (workspaces->has_idle)
        loop_timer_start(workspaces->idle, first_ns + IDLE_NS - now);
    else
        empty_tmp(workspaces);
}

static void on_idle(void *data, struct sandbox *sandbox)
{
    struct workspace_inside *inside = data;

    (void)sandbox;
    inside->idle_ns = clock_now_ns();
    if (!inside->owner->has_idle)
        loop_timer_start(inside->owner->idle, IDLE_NS);
    inside->owner->has_idle = true;
}

/* --- all of one owner --- */

struct workspaces *workspaces_new(const struct workspaces_options *options)
{
    struct workspaces *workspaces = alloc_zero(1, sizeof *workspaces);

    workspaces->options = *options;
    if (options->own_paths)
        strv_push_all(&workspaces->own_paths, options->own_paths);
    if (options->secrets)
        strv_push_all(&workspaces->secrets, options->secrets);
    if (options->loop)
        workspaces->idle = loop_timer_new(options->loop, on_idle_time, workspaces);
    for (int i = 0; i < WORKSPACE_PROGRAMS; i++)
        workspaces->programs[i] = alloc_str(options->programs[i].path);
    return workspaces;
}

/* One without a sandbox narrows nothing. */
static void set_narrow(struct workspace_inside *inside, const struct profile *narrow)
{
    if (inside->narrow)
        profile_done(inside->narrow);
    free(TAKE_PTR(inside->narrow));
    if (!narrow || narrow->kind == PROFILE_DISABLED)
        return;
    inside->narrow = alloc_zero(1, sizeof *inside->narrow);
    profile_copy(narrow, inside->narrow);
}

static void inside_free(struct workspace_inside *inside)
{
    struct workspace *workspace = &inside->workspace;

    list_remove(&inside->link);
    sandbox_free(workspace->sandbox);
    free(workspace->dir);
    free(workspace->within);
    profile_done(&workspace->profile);
    free(workspace->profile_name);
    free(workspace->network_from);
    strv_done(&workspace->roots);
    protect_choice_done(&workspace->protect);
    access_map_done(&workspace->map);
    tmp_store_close(&workspace->tmp);
    strv_done(&workspace->own_paths);
    strv_done(&workspace->env);
    environment_report_done(&workspace->env_report);
    strv_done(&workspace->set_names);
    environment_policy_done(&inside->env_policy);
    presets_done(&inside->presets);
    set_narrow(inside, NULL);
    strv_done(&workspace->presets);
    strv_done(&workspace->presets_from);
    free(inside->tmpdir);
    free(inside->key);
    free(inside);
}

void workspaces_free(struct workspaces *workspaces)
{
    if (!workspaces)
        return;
    while (!list_is_empty(&workspaces->all))
        inside_free(list_first(&workspaces->all, struct workspace_inside, link));
    empty_tmp(workspaces);
    free(workspaces->tmp_base);
    loop_timer_free(workspaces->idle);
    strv_done(&workspaces->own_paths);
    strv_done(&workspaces->secrets);
    for (int i = 0; i < WORKSPACE_PROGRAMS; i++)
        free(workspaces->programs[i]);
    free(workspaces);
}

/* Drops what is not held: all that is stale, and of the others what comes behind the limit. The one used last
 * stays, which its caller may be about to hold. */
static void trim(struct workspaces *workspaces)
{
    const bool has_few = fd_are_few();
    struct workspace_inside *inside;
    struct workspace_inside *next;
    size_t seen = 0;

    if (workspaces->options.is_lasting)
        return;
    list_for_each_safe(inside, next, &workspaces->all, link) {
        seen++;
        if (!inside->holds && (inside->is_stale || seen > (has_few ? 1 : WORKSPACES_MAX)))
            inside_free(inside);
    }
}

void workspaces_hide(struct workspaces *workspaces, char *const *secrets)
{
    for (; *secrets; secrets++)
        if (!strv_has(&workspaces->secrets, *secrets))
            strv_push(&workspaces->secrets, *secrets);
}

void workspaces_configure(struct workspaces *workspaces, const struct config *config,
                          const char *home, const char *config_dir)
{
    workspaces->options.config = config;
    workspaces->options.home = home;
    workspaces->options.config_dir = config_dir;
}

void workspaces_forget(struct workspaces *workspaces)
{
    struct workspace_inside *inside;

    list_for_each(inside, &workspaces->all, link)
        inside->is_stale = true;
    trim(workspaces);
}

bool workspaces_hold_layer(const struct workspaces *workspaces, const struct layer *layer)
{
    const struct workspace_inside *inside;

    list_for_each(inside, &workspaces->all, link)
        if (inside->workspace.layer == layer && inside->holds)
            return true;
    return false;
}

void workspaces_forget_layer(struct workspaces *workspaces, const struct layer *layer)
{
    struct workspace_inside *inside;
    struct workspace_inside *next;

    list_for_each_safe(inside, next, &workspaces->all, link)
        if (inside->workspace.layer == layer)
            inside_free(inside);
}

const char *workspaces_program(const struct workspaces *workspaces, int which)
{
    return workspaces->programs[which];
}

char *const *workspaces_own_paths(const struct workspaces *workspaces)
{
    return strv_view(&workspaces->own_paths);
}

void workspace_hold(struct workspace *workspace)
{
    workspace->inside->holds++;
}

void workspace_release(struct workspace *workspace)
{
    if (workspace && --workspace->inside->holds == 0 && !workspace->inside->key)
        inside_free(workspace->inside);
}

bool workspace_has_root(const struct workspace *workspace, const char *path)
{
    for (size_t i = 0; i < workspace->roots.len; i++)
        if (path_is_within(path, workspace->roots.items[i]))
            return true;
    return false;
}

char *workspace_known_by(const struct workspace *workspace)
{
    const char *root = workspace->roots.len ? workspace->roots.items[0] : workspace->dir;
    AUTO(path_walk_done) struct path_walk walk = {0};
    struct err ignored; /* the profile is not resolved either then */

    return root && path_walk(&host_view_real, root, &walk, &ignored) == 0 ? TAKE_PTR(walk.path)
                                                                          : NULL;
}

char *workspace_dir(const struct workspace *workspace, const char *cwd)
{
    return path_clean(workspace->dir, cwd ? cwd : "");
}

void workspace_job_env(const struct workspace *workspace, const char *thread_id, struct strv *ret)
{
    const struct job_env_request request = {
        .base = strv_view(&workspace->env),
        .chosen = (const char *const *)strv_view(&workspace->set_names),
        .thread_id = thread_id,
    };

    job_env_build(&request, ret);
}

/* --- what it means now --- */

static int resolve_with(const struct workspace *workspace, const struct tmp_store *tmp,
                        struct access_map *ret, struct err *err)
{
    AUTO(host_memory_done) struct host_memory memory;
    const struct resolve_context context = {
        .view = &memory.view,
        .workspace_roots = strv_view(&workspace->roots),
        .canonical_roots = workspace->canonical_roots,
        .within = workspace->within,
        .tmpdir = workspace->inside->tmpdir,
        .home = workspace->inside->owner->options.home,
        .config_home = env_value(environ, "XDG_CONFIG_HOME"),
        .protect = &workspace->protect,
        .tmp_store = tmp->folder,
    };

    host_memory_begin(&memory, &host_view_real);
    if (profile_resolve_narrowed(&workspace->profile, workspace->inside->narrow, &context, ret,
                                 err) ||
        own_files_hide(&workspace->inside->owner->own_paths, context.view, ret, err) ||
        layered_hide(context.view, ret, err))
        return -1;
    private_tmp_hide(tmp, ret);
    return 0;
}

/* Those of a directory that nobody vouches for do not count, as for commands. */
static int add_rules_of_hosts(const struct workspace *workspace, struct access_map *map,
                              struct err *err)
{
    const struct workspaces_options *owner = &workspace->inside->owner->options;
    const struct rule_owner rules = {owner->config, owner->config_dir, owner->home};
    const struct profile *narrow = workspace->inside->narrow;

    if (map->network != NETWORK_PROXIED)
        return 0;
    if (rule_layers_add_hosts(&rules, workspace->dir ? workspace->dir : "/", &map->network_policy,
                              err))
        return -1;
    return narrow && narrow->network == NETWORK_PROXIED
               ? network_policy_narrow(&map->network_policy, &narrow->network_policy, err)
               : 0;
}

/* `tmp` are the folders that it has now, as far as it has any; `grows` as in layered_cover(). */
static int resolve(const struct workspace *workspace, bool grows, struct tmp_store *tmp,
                   struct access_map *ret, struct err *err)
{
    private_tmp_open(workspace, false, tmp);
    if (tmp->walk.links_len) {
        AUTO(access_map_done) struct access_map without = {0};
        AUTO(path_walk_done) struct path_walk walk = tmp->walk;

        tmp->walk = (struct path_walk){0};
        if (resolve_with(workspace, tmp, &without, err) ||
            protect_check_links(&without, "the folder of caches", walk.links, walk.links_len, err))
            return -1;
        tmp_store_close(tmp);
        private_tmp_open(workspace, true, tmp);
    }
    return resolve_with(workspace, tmp, ret, err) || add_rules_of_hosts(workspace, ret, err) ||
                   layered_cover(workspace->layer, ret, grows, err)
               ? -1
               : 0;
}

void workspace_preset_env(const struct workspace *workspace, struct strv *ret)
{
    if (workspace->mode != SANDBOX_DISABLED)
        presets_env(&workspace->inside->presets, workspace->map.network == NETWORK_RESTRICTED, ret);
}

static void make_environment(struct workspace *workspace)
{
    AUTO(strv_done) struct strv presets = {0};
    struct environment_request request = {
        .policy = &workspace->inside->env_policy,
        .base = environ,
        .sandbox = workspace->mode == SANDBOX_DISABLED ? ENVIRONMENT_BARE : ENVIRONMENT_SANDBOXED,
        .network = workspace->map.network,
        .allows_local_binding = workspace->map.network_policy.allow_local_binding,
    };
    const struct environment_report *report = &workspace->env_report;

    workspace_preset_env(workspace, &presets);
    request.presets = strv_view(&presets);
    environment_build(&request, &workspace->env, &workspace->env_report);
    private_tmp_settle_variable(workspace);
    for (size_t i = 0; i < report->len; i++)
        if (report->notes[i].reason == ENVIRONMENT_SET ||
            report->notes[i].reason == ENVIRONMENT_PRESET)
            strv_push(&workspace->set_names, report->notes[i].name);
}

/* Once for a workspace: what is derived of it has them in its profile. Without a sandbox they are only looked
 * at: nothing outside of one is to use what commands in one have left. */
static int add_presets(struct workspace *workspace, struct err *err)
{
    const struct workspaces *owner = workspace->inside->owner;
    AUTO(access_map_done) struct access_map map = {0};
    AUTO(strv_done) struct strv env = {0};
    AUTO_FREE char *known_by = workspace->presets.len ? workspace_known_by(workspace) : NULL;
    struct presets_context context = {
        .config_dir = owner->options.config_dir,
        .home = owner->options.home,
        .workspace = known_by,
        .own_paths = strv_view(&owner->own_paths),
        .map = workspace->mode == SANDBOX_DISABLED ? NULL : &map,
    };
    const struct environment_request without = {
        .policy = &workspace->inside->env_policy,
        .base = environ,
        .network = workspace->profile.network,
    };

    if (!workspace->presets.len)
        return 0;
    if (context.map && resolve_with(workspace, &(struct tmp_store){.lock = -1}, &map, err))
        return -1;
    environment_build(&without, &env, NULL); /* a preset brings back nothing that is left out */
    context.env = strv_view(&env);
    for (size_t i = 0; i < workspace->presets.len; i++)
        if (presets_add(&context, workspace->presets.items[i], &workspace->inside->presets,
                        &workspace->profile, err))
            return err_wrap(err, "%s", workspace->presets_from.items[i]);
    return 0;
}

/* Everything that depends on the host, but for the sandbox. */
static int settle(struct workspace *workspace, struct err *err)
{
    const struct workspace_inside *inside = workspace->inside;
    struct workspaces *owner = workspace->inside->owner;

    if (workspace->mode == SANDBOX_DISABLED) {
        workspace->map = (struct access_map){.network = NETWORK_ENABLED};
        strv_push_all(&workspace->own_paths, strv_view(&inside->owner->own_paths));
    } else {
        if (presets_make(&inside->presets, inside->owner->options.home, err) ||
            resolve(workspace, !inside->is_single, &workspace->tmp, &workspace->map, err) ||
            (!inside->narrow && presets_check(&inside->presets, &workspace->map, err)) ||
            own_files_guard(&owner->own_paths, &workspace->map, &workspace->own_paths, err) ||
            layered_guard(&workspace->map, &workspace->own_paths, err))
            return -1;
        if (workspace->tmp.base && !owner->tmp_base)
            owner->tmp_base = alloc_str(workspace->tmp.base);
        workspace->access = &workspace->map;
    }
    if (!workspace->inside->has_no_env)
        make_environment(workspace);
    return 0;
}

/* Also false when that cannot be told any more: making it anew then says why. */
static bool is_current(const struct workspace *workspace)
{
    const struct workspace_inside *inside = workspace->inside;
    AUTO(access_map_done) struct access_map now = {0};
    AUTO(tmp_store_close) struct tmp_store tmp = {.lock = -1};
    struct err ignored;

    if (workspace->mode == SANDBOX_DISABLED)
        return true;
    if (workspace->sandbox &&
        inside->secrets_len != own_files_hide_secrets(&inside->owner->secrets, NULL))
        return false;
    return resolve(workspace, false, &tmp, &now, &ignored) == 0 &&
           map_is_same(&workspace->map, &now);
}

/* --- the sandbox --- */

/* Of enum sandbox_watch. */
static unsigned watch_of(const struct workspace *workspace)
{
    const enum profile_watch watch = workspace->profile.watch;
    const unsigned traced = timeline_watch(workspace->topics | workspace->audit_topics);

    return traced | (watch == PROFILE_WATCH_OFF ? 0u : WATCH_FACTS) |
           (workspace->tells_connects ? WATCH_NETWORK : 0u) |
           (watch == PROFILE_WATCH_ASK ? WATCH_HOLDS | WATCH_DESCRIPTORS : 0u) |
           (watch == PROFILE_WATCH_LEARN && traced & WATCH_FILES ? WATCH_READS | WATCH_DESCRIPTORS
                                                                 : 0u) |
           (workspace_judges_execs(workspace) ? WATCH_JUDGE : 0u);
}

void workspace_limits(const struct workspace *workspace, struct resource_limits *ret)
{
    const struct config *config = workspace->inside->owner->options.config;

    *ret = (struct resource_limits){0};
    if (workspace->mode != SANDBOX_DISABLED)
        *ret = resource_limits_default;
    if (config)
        resource_limits_overlay(ret, config_limits(config));
    resource_limits_overlay(ret, &workspace->profile.limits);
}

int workspace_open(struct workspace *workspace, struct err *err)
{
    struct workspace_inside *inside = workspace->inside;
    const struct workspaces *owner = inside->owner;
    AUTO(access_map_done) struct access_map shown = {0};
    AUTO(strv_done) struct strv env = {0};
    struct sandbox_options options = {
        .mode = workspace->mode,
        .access = &shown,
        .view = workspace->layer ? layer_view(workspace->layer) : NULL,
        .allow_nested_namespaces = workspace->profile.allow_nested_namespaces,
        .watch = watch_of(workspace),
        .cache_idle = owner->idle,
        .on_idle = owner->idle ? on_idle : NULL,
        .data = inside,
        .dies_with_thread = owner->options.dies_with_thread,
        .launcher = owner->options.launcher,
        .own_paths = workspace->mode == SANDBOX_DISABLED
                         ? NULL
                         : (const char *const *)strv_view(&workspace->own_paths),
    };

    if (workspace->sandbox)
        return 0;
    if (inside->has_no_env) /* else they are in that */
        workspace_preset_env(workspace, &env);
    access_map_copy(&shown, &workspace->map);
    if (shown.network == NETWORK_PROXIED && credentials_open(&shown, &env, err))
        return -1;
    options.env = strv_view(&env);
    workspace_limits(workspace, &options.limits);
    for (int i = 0; i < WORKSPACE_PROGRAMS; i++)
        if (owner->programs[i])
            own_files_show(owner->programs[i], owner->options.programs[i].why, &shown);
    inside->secrets_len = own_files_hide_secrets(&owner->secrets, &shown);
    workspace->sandbox = sandbox_new(&options, err);
    workspace->is_refused = !workspace->sandbox;
    inside->is_stale |= workspace->is_refused;
    if (workspace->is_refused)
        return -1;
    if (workspace->mode != SANDBOX_DISABLED)
        workspace->access = sandbox_access(workspace->sandbox);
    return 0;
}

int workspace_probe(struct workspace *workspace, struct err *err)
{
    if (workspace_open(workspace, err))
        return -1;
    workspace->is_refused = sandbox_probe(workspace->sandbox, err) != 0;
    return workspace->is_refused ? -1 : 0;
}

/* --- making and finding --- */

static struct workspace_inside *inside_new(struct workspaces *owner, const char *key)
{
    struct workspace_inside *inside = alloc_zero(1, sizeof *inside);

    inside->workspace.inside = inside;
    inside->workspace.number = ++owner->last_number;
    inside->workspace.tmp.lock = -1;
    inside->owner = owner;
    inside->key = alloc_str(key);
    inside->is_stale = !key;
    inside->holds = 1; /* until it is whole */
    list_add(&owner->all, &inside->link);
    return inside;
}

/* Ends the making: with a key it is the owner's from here on. NULL when it failed. */
static struct workspace *made(struct workspace_inside *inside, int status)
{
    if (status) {
        inside_free(inside);
        return NULL;
    }
    if (inside->key) {
        trim(inside->owner);
        inside->holds--;
    }
    return &inside->workspace;
}

static int make(struct workspace *workspace, const struct workspace_request *request,
                struct err *err)
{
    const struct config *config = workspace->inside->owner->options.config;
    const struct environment_policy *env = request->env ? request->env
                                           : config     ? config_environment(config)
                                                        : NULL;

    workspace->dir = alloc_str(request->dir);
    workspace->type = request->type;
    workspace->layer = request->layer;
    workspace->inside->tmpdir = alloc_str(request->tmpdir);
    workspace->inside->has_no_env = request->has_no_env;
    if (env)
        environment_policy_copy(env, &workspace->inside->env_policy);
    if (workspace_choose(workspace, &workspace->inside->owner->options, request, err) ||
        layered_check(workspace, request, err))
        return -1;
    set_narrow(workspace->inside, request->narrow);
    return add_presets(workspace, err) || settle(workspace, err) ? -1 : 0;
}

struct workspace *workspace_make(struct workspaces *workspaces, const char *key,
                                 const struct workspace_request *request, struct err *err)
{
    struct workspace_inside *inside = inside_new(workspaces, key);

    return made(inside, make(&inside->workspace, request, err));
}

/* `mode` in place of its own. */
static int copy(const struct workspace *like, struct workspace *to, enum sandbox_mode mode,
                const struct profile_overlay *overlay, struct err *err)
{
    struct workspace_inside *inside = to->inside;

    to->dir = alloc_str(like->dir);
    to->profile_name = alloc_str(like->profile_name);
    to->profile_from = like->profile_from;
    to->network_from = alloc_str(like->network_from);
    to->type = like->type;
    to->layer = like->layer;
    to->canonical_roots = like->canonical_roots;
    to->within = alloc_str(like->within);
    to->mode = mode;
    strv_push_all(&to->roots, strv_view(&like->roots));
    protect_choice_copy(&like->protect, &to->protect);
    profile_copy(&like->profile, &to->profile);
    to->topics = like->topics;
    to->audit_topics = like->audit_topics;
    to->tells_connects = like->tells_connects;
    presets_copy(&like->inside->presets, &inside->presets);
    strv_push_all(&to->presets, strv_view(&like->presets));
    strv_push_all(&to->presets_from, strv_view(&like->presets_from));
    inside->tmpdir = alloc_str(like->inside->tmpdir);
    inside->has_no_env = like->inside->has_no_env;
    environment_policy_copy(&like->inside->env_policy, &inside->env_policy);
    set_narrow(inside, like->inside->narrow);
    if (inside->narrow && mode == SANDBOX_DISABLED)
        return err_set(err, ERR_FORBIDDEN,
                       "the sandbox is narrowed by the client's own, so nothing runs without one");
    if (to->layer && mode == SANDBOX_DISABLED)
        return layered_refuse_outside(err);
    if (overlay)
        profile_overlay_apply(&to->profile, overlay);
    if (overlay && inside->narrow)
        profile_overlay_apply(inside->narrow, overlay);
    if (to->profile.network != like->profile.network) {
        free(to->network_from);
        to->network_from = alloc_str("an approval");
    }
    return settle(to, err);
}

struct workspace *workspace_derive(struct workspace *like, const struct profile_overlay *overlay,
                                   struct err *err)
{
    struct workspace_inside *inside = inside_new(like->inside->owner, NULL);
    struct workspace *to = &inside->workspace;
    enum sandbox_mode mode = overlay ? like->mode : SANDBOX_DISABLED;

    inside->is_single = true;
    return made(inside, copy(like, to, mode, overlay, err) ? -1 : workspace_open(to, err));
}

/* NULL when there is none of this key. */
static struct workspace_inside *find(struct workspaces *workspaces, const char *key)
{
    struct workspace_inside *inside;

    list_for_each(inside, &workspaces->all, link)
        if (!inside->is_stale && str_eq(inside->key, key))
            return inside;
    return NULL;
}

int workspace_find(struct workspaces *workspaces, const char *key, struct workspace **ret,
                   struct err *err)
{
    struct workspace_inside *inside = find(workspaces, key);
    struct workspace_inside *renewed;
    const struct workspace *old;
    int status;

    *ret = NULL;
    if (!inside)
        return 0;
    list_remove(&inside->link);
    list_add(&workspaces->all, &inside->link);
    trim(workspaces);
    old = *ret = &inside->workspace;
    if (is_current(old))
        return 0;
    renewed = inside_new(workspaces, key);
    status = copy(old, &renewed->workspace, old->mode, NULL, err);
    if (status == 0 && old->sandbox)
        status = workspace_open(&renewed->workspace, err);
    inside->is_stale = status == 0; /* else the next one who asks for it is told the same */
    *ret = made(renewed, status);
    return status;
}

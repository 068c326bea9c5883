/* A sandbox on Linux: an access map, what the host can do, and the plan that follows from both; and
 * one command in it: the launcher's file, the launcher, and what the launcher says. What the guard says
 * is in launch_fact.c.
 *
 * The first launch in a process finds out whether the plan can be carried out here: it waits for
 * the sandbox to stand. When it does not because the host lacks a layer, nothing of the command has
 * run; mode auto compiles the next weaker plan and starts over, mode require fails. What was found
 * is kept for every later sandbox of the process.
 */
#include "sandbox/sandbox.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/path.h"
#include "base/str.h"
#include "base/sys.h"
#include "policy/network_hook.h"
#include "sandbox/linux/guard_map.h"
#include "sandbox/linux/host.h"
#include "sandbox/linux/launch_fact.h"
#include "sandbox/linux/launch_limits.h"
#include "sandbox/linux/launch_publish.h"
#include "sandbox/linux/launch_report.h"
#include "sandbox/linux/launcher_pool.h"
#include "sandbox/linux/own_paths.h"
#include "sandbox/linux/plan.h"
#include "sandbox/linux/tls_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct sandbox {
    struct sandbox_options options; /* without what they borrow */
    struct access_map access;
    struct host host;
    struct plan *plan;
    struct defence_report layers[DEFENCE_COUNT];
    char *launcher;
    char *guard;    /* program of the guard; NULL: there is none */
    int guard_map;  /* what the guard is told of the sandbox; -1 when it is not asked */
    char *proxy;    /* program of the proxy; NULL: the network does not lead to it */
    int policy;     /* what the proxy is told; -1 */
    char *ports;    /* of the host's loopback that the network lets in */
    bool publishes; /* a command of it has published a port, though the network leads nowhere */
    bool ends_tls;  /* the proxy does, by cordon-tls */
    struct launcher_pool launchers;
    struct strv env;   /* of presets, for every command */
    unsigned launches; /* that are open */
};

/* What the launches of this process have found out: of those with namespaces, and of those that want none. */
static struct host known_hosts[2];
static bool is_host_known[2];

static bool is_managed(const struct sandbox *sandbox)
{
    return sandbox->options.mode != SANDBOX_DISABLED;
}

/* What Cordon runs or believes later, outside: its programs, and what the caller names. */
static int protect_own(struct sandbox *sandbox, const char *const *more, struct err *err)
{
    AUTO(strv_done) struct strv paths = {0};

    strv_push(&paths, sandbox->launcher);
    if (sandbox->guard)
        strv_push(&paths, sandbox->guard);
    if (sandbox->proxy)
        strv_push(&paths, sandbox->proxy);
    for (; more && *more; more++)
        strv_push(&paths, *more);
    return own_paths_protect(&sandbox->access, &paths, err);
}

/* What the guard gets for every command, if it is asked; -1 when not, or on failure. */
static int guard_map_new(const struct sandbox *sandbox, const struct plan *plan, int *ret_status,
                         struct err *err)
{
    AUTO(buf_done) struct buf map = {0};
    int fd = -1;

    *ret_status = 0;
    if (!plan->asks_guard && !plan->tells_around)
        return -1;
    if (guard_map_encode(&sandbox->access, &sandbox->access.own, plan->guard_flags, &map, err) == 0)
        fd = fd_sealed_memory("cordon-map", map.data, map.len, err);
    *ret_status = fd < 0 ? -1 : 0;
    return fd;
}

/* Without mounts there are no private temporary folders. */
static bool is_private_folder(const struct access_map *before, const struct access_entry *entry)
{
    return entry->source;
}

/* Nor can those of others be denied, but for Landlock with the guard. */
static bool is_about_private_folders(const struct access_map *before,
                                     const struct access_entry *entry)
{
    return entry->source || entry->is_others_tmp;
}

/* What is shown instead of the real files is mounts: without namespaces of its own a command would write to those. */
static int check_view(const struct sandbox *sandbox, struct err *err)
{
    const uint32_t both = CLONE_NEWUSER | CLONE_NEWNS;

    if ((sandbox->host.facts.namespaces & both) == both)
        return 0;
    return err_set(
        err, ERR_UNSUPPORTED,
        "a layer needs user and mount namespaces, and %s: `cordon doctor` tells what to do",
        sandbox->host.why ? sandbox->host.why : "there is no sandbox");
}

/* The plan and the layers that follow from what is known of the host. */
static int sandbox_compile(struct sandbox *sandbox, struct err *err)
{
    const unsigned wishes =
        (sandbox->options.allow_nested_namespaces ? PLAN_NESTED_NAMESPACES : 0u) |
        (sandbox->options.watch & WATCH_FACTS ? PLAN_FACTS : 0u) |
        (sandbox->options.watch & WATCH_READS ? PLAN_READS : 0u) |
        (sandbox->options.watch & WATCH_DESCRIPTORS ? PLAN_DESCRIPTORS : 0u) |
        (sandbox->options.watch & WATCH_EXEC ? PLAN_EXEC : 0u) |
        (sandbox->options.watch & WATCH_JUDGE ? PLAN_JUDGE : 0u) |
        (sandbox->options.mode == SANDBOX_LANDLOCK ? PLAN_ALONE : 0u);
    struct plan *plan;
    int status, map;

    if (sandbox->options.mode == SANDBOX_REQUIRE && *host_degradation(&sandbox->host))
        return err_set(err, ERR_UNSUPPORTED,
                       "%s, and --sandbox require accepts nothing less: "
                       "`cordon doctor` tells what to do",
                       host_degradation(&sandbox->host));
    if (!(sandbox->host.facts.namespaces & CLONE_NEWNS))
        access_map_drop(&sandbox->access,
                        wishes & PLAN_ALONE ? is_private_folder : is_about_private_folders);
    if (sandbox->options.view && check_view(sandbox, err))
        return -1;
    plan = plan_compile(&sandbox->access, &sandbox->host.facts, wishes, err);
    if (!plan && (wishes & PLAN_ALONE) && *sandbox->host.no_listener)
        err_wrap(err, "%s", sandbox->host.no_listener);
    if (!plan)
        return -1;
    map = guard_map_new(sandbox, plan, &status, err);
    if (status) {
        plan_free(plan);
        return -1;
    }
    auto_close(&sandbox->guard_map);
    sandbox->guard_map = map;
    plan_free(sandbox->plan);
    sandbox->plan = plan;
    if (sandbox->ports) {
        launcher_rest(&sandbox->launchers); /* a spare has a network as it was to be before */
        sandbox->launchers.ports = plan->redirects ? sandbox->ports : PLAN_NO_REDIRECT;
    }
    host_report(&sandbox->host, plan, &sandbox->access, wishes, sandbox->layers);
    return 0;
}

static struct host *host_known(const struct sandbox *sandbox)
{
    return &known_hosts[sandbox->options.mode == SANDBOX_LANDLOCK];
}

/* For later sandboxes; what a view lies over is not known of the host. */
static void host_learn(const struct sandbox *sandbox)
{
    struct host *known = host_known(sandbox);

    *known = sandbox->host;
    known->facts.layers = NULL;
}

/* Takes over what is known of the host, and looks for the guard. */
static void sandbox_find_host(struct sandbox *sandbox)
{
    const bool is_alone = sandbox->options.mode == SANDBOX_LANDLOCK;

    if (!is_host_known[is_alone])
        host_init(&known_hosts[is_alone]);
    if (!is_host_known[is_alone] && is_alone)
        host_forgo_namespaces(&known_hosts[is_alone]);
    is_host_known[is_alone] = true;
    sandbox->host = known_hosts[is_alone];
    sandbox->host.facts.layers = sandbox->options.view ? sandbox->options.view->roots : NULL;
    sandbox->guard = guard_link_program(sandbox->launcher);
    if (!sandbox->guard && sandbox->host.facts.has_listener)
        host_lose_listener(&sandbox->host, "the program cordon-guard is missing");
}

/* Where the network is proxied: the proxy's program, what it is told, and the ports that are let in. */
static int sandbox_find_proxy(struct sandbox *sandbox, struct err *err)
{
    const struct network_policy *policy = &sandbox->access.network_policy;

    if (sandbox->access.network != NETWORK_PROXIED)
        return 0;
    proxy_link_join();
    sandbox->ports = proxy_link_ports(policy);
    sandbox->proxy = proxy_link_program(sandbox->launcher);
    if (!sandbox->proxy)
        return err_set(err, ERR_UNSUPPORTED,
                       "a proxied network needs the program " PROXY_PROGRAM ", which is missing: "
                       "install it beside cordon-linux-sandbox, or choose --network restricted");
    sandbox->ends_tls = network_policy_ends_tls(policy) &&
                        tls_link_open(sandbox->launcher, sandbox->options.dies_with_thread,
                                      &sandbox->access, &sandbox->env, err) == 0;
    if (network_policy_ends_tls(policy) && !sandbox->ends_tls)
        return -1;
    sandbox->policy = proxy_link_policy(policy, err);
    return sandbox->policy < 0 ? -1 : 0;
}

struct sandbox *sandbox_new(const struct sandbox_options *options, struct err *err)
{
    struct sandbox *sandbox = alloc_zero(1, sizeof *sandbox);
    int status = 0;

    sandbox->guard_map = sandbox->policy = -1;
    guard_link_join();

    sandbox->options = *options;
    sandbox->options.access = NULL;
    sandbox->options.own_paths = NULL;
    sandbox->options.launcher = NULL;
    sandbox->options.env = NULL;
    strv_push_all(&sandbox->env, options->env);
    sandbox->launcher = options->launcher ? alloc_str(options->launcher) : launcher_path(err);
    access_map_copy(&sandbox->access, options->access);
    sandbox->launchers =
        (struct launcher_pool){.launcher = sandbox->launcher, .cache_idle = options->cache_idle};
    if (!sandbox->launcher) {
        status = -1;
    } else if (is_managed(sandbox)) {
        sandbox_find_host(sandbox);
        status = sandbox_find_proxy(sandbox, err) ||
                 protect_own(sandbox, options->own_paths, err) || sandbox_compile(sandbox, err);
    } else if (options->view) {
        status = check_view(sandbox, err);
    } else { /* bare: a launcher that waits, passes signals on and cleans up; restricts nothing */
        sandbox->host =
            (struct host){.facts = {.arch = seccomp_native()}, .why = "", .is_proven = true};
        sandbox->plan = plan_new();
        for (int i = 0; i < DEFENCE_COUNT; i++)
            sandbox->layers[i] =
                (struct defence_report){.state = DEFENCE_ABSENT, .why = "the sandbox is disabled"};
    }
    if (status) {
        sandbox_free(sandbox);
        return NULL;
    }
    return sandbox;
}

void sandbox_free(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    guard_link_leave();
    if (sandbox->ports || sandbox->publishes)
        proxy_link_leave();
    launcher_pool_done(&sandbox->launchers);
    if (sandbox->ends_tls)
        tls_link_leave();
    guard_link_reap();
    if (sandbox->ports || sandbox->publishes)
        proxy_link_reap();
    auto_close(&sandbox->guard_map);
    auto_close(&sandbox->policy);
    access_map_done(&sandbox->access);
    strv_done(&sandbox->env);
    plan_free(sandbox->plan);
    free(sandbox->launcher);
    free(sandbox->guard);
    free(sandbox->proxy);
    free(sandbox->ports);
    free(sandbox);
}

const struct defence_report *sandbox_defence(const struct sandbox *sandbox, enum defence layer)
{
    return &sandbox->layers[layer];
}

bool sandbox_is_degraded(const struct sandbox *sandbox)
{
    return *sandbox_degradation(sandbox) != '\0';
}

const char *sandbox_degradation(const struct sandbox *sandbox)
{
    return is_managed(sandbox) ? host_degradation(&sandbox->host) : "";
}

const char *sandbox_no_watchpoint(const struct sandbox *sandbox)
{
    return host_no_watchpoint(&sandbox->host, sandbox->plan);
}

const struct plan *sandbox_plan(const struct sandbox *sandbox)
{
    return sandbox->plan;
}

const struct resource_limits *sandbox_limits(const struct sandbox *sandbox)
{
    return &sandbox->options.limits;
}

unsigned sandbox_watch(const struct sandbox *sandbox)
{
    return sandbox->options.watch;
}

bool sandbox_has_view(const struct sandbox *sandbox)
{
    return sandbox->options.view;
}

const struct access_map *sandbox_access(const struct sandbox *sandbox)
{
    return &sandbox->access;
}

bool map_is_same(const struct access_map *old, const struct access_map *new)
{
    if (old->len != new->len || old->links_len != new->links_len ||
        old->restricted != new->restricted || old->network != new->network ||
        !network_policy_equal(&old->network_policy, &new->network_policy))
        return false;
    for (size_t i = 0; i < old->len; i++) {
        const struct access_entry *entry = &old->entries[i], *now = &new->entries[i];

        if (entry->access != now->access || entry->kind != now->kind || entry->asks != now->asks ||
            entry->is_protected != now->is_protected ||
            entry->allows_commits != now->allows_commits ||
            entry->is_removable != now->is_removable || entry->is_by_guard != now->is_by_guard ||
            !str_eq(entry->path, now->path) || !entry->source != !now->source ||
            (entry->source && !str_eq(entry->source, now->source)))
            return false;
    }
    for (size_t i = 0; i < old->links_len; i++)
        if (!str_eq(old->links[i].path, new->links[i].path) ||
            !str_eq(old->links[i].target, new->links[i].target))
            return false;
    return true;
}

/* A set-up failed at `op`. true when that shows that this host lacks a layer: then a weaker plan is
 * ready, or `ret_status` is -1 with `err` because mode or profile allow none. */
static bool sandbox_step_down(struct sandbox *sandbox, enum plan_op op, const struct err *failure,
                              int *ret_status, struct err *err)
{
    if (!is_managed(sandbox) || !host_step_down(&sandbox->host, op, failure))
        return false;
    host_learn(sandbox);
    *ret_status = sandbox_compile(sandbox, err);
    return true;
}

/* In a view a spare would keep mounts that nothing else is in. */
void sandbox_prepare(struct sandbox *sandbox)
{
    if (!sandbox->launchers.view && sandbox->options.view)
        return;
    launcher_prepare(&sandbox->launchers, sandbox->plan->namespaces);
}

bool sandbox_is_idle(const struct sandbox *sandbox)
{
    return sandbox->launches == 0;
}

bool sandbox_release_idle(struct sandbox *sandbox)
{
    return launcher_rest(&sandbox->launchers);
}

enum process_counter sandbox_process_counter(const struct sandbox *sandbox)
{
    return launch_counter(sandbox->plan->namespaces, &sandbox->host.facts);
}

/* What differs from our own was chosen for the command, and stays, but for secrets in it. */
void sandbox_env(const struct sandbox *sandbox, char *const *env, struct strv *ret)
{
    strv_push_all(ret, env);
    for (size_t i = 0; i < sandbox->env.len; i++) {
        const char *pair = sandbox->env.items[i];
        AUTO_FREE char *name = alloc_strn(pair, strcspn(pair, "="));
        const char *own = getenv(name);
        const size_t len = strlen(name) + 1;
        size_t at = 0;

        while (at < ret->len && strncmp(ret->items[at], pair, len) != 0)
            at++;
        if (at == ret->len) {
            strv_push(ret, pair);
        } else if (own && str_eq(ret->items[at] + len, own)) {
            free(ret->items[at]);
            ret->items[at] = alloc_str(pair);
        }
    }
    network_hooks_withhold(sandbox->access.network_policy.hooks, ret);
}

/* The launcher's file for one command; a descriptor. */
static int launch_plan(const struct sandbox *sandbox, const struct launch_options *options,
                       const struct launch_limits *given, struct err *err)
{
    AUTO(buf_done) struct buf file = {0};
    AUTO(strv_done) struct strv env = {0};
    struct plan_record limits[LAUNCH_LIMITS_MAX];
    struct plan_command command = {
        .argv = options->argv,
        .env = options->env,
        .program = options->program,
        .cwd = options->cwd,
        .limits = limits,
        .limits_len = launch_limit_records(given, sandbox_process_counter(sandbox), limits),
    };

    if (sandbox->options.dies_with_thread)
        command.flags |= PLAN_COMMAND_DIE_WITH_PARENT;
    if (options->is_probe)
        command.flags |= PLAN_COMMAND_PROBE;
    if (options->lingers)
        command.flags |= PLAN_COMMAND_LINGER;
    if (options->controlling_tty)
        command.flags |= PLAN_COMMAND_TTY;
    if (options->controlling_tty && options->tells_stops)
        command.flags |= PLAN_COMMAND_STOPS;
    if (options->controlling_tty && (sandbox->plan->namespaces & CLONE_NEWNS))
        command.flags |= PLAN_COMMAND_CONSOLE;
    if (sandbox->plan->namespaces & CLONE_NEWPID)
        command.flags |= PLAN_COMMAND_PID_NAMESPACE;
    if (sandbox->env.len && options->env && *options->env) { /* with secrets there are some */
        sandbox_env(sandbox, options->env, &env);
        command.env = strv_view(&env);
    }
    if (plan_encode(sandbox->plan, &command, &file, err))
        return -1;
    return fd_sealed_memory("cordon-plan", file.data, file.len, err);
}

/* The first packet: see sandbox/launcher/plan_format.h. */
static int launch_send(const struct launch *launch, const struct launch_options *options, int plan,
                       struct err *err)
{
    const struct proxy_channel *proxy = launch_facts_proxy(launch);
    const int fds[PLAN_FDS] = {
        [PLAN_FD_STDIN] = options->stdio[0],
        [PLAN_FD_STDOUT] = options->stdio[1],
        [PLAN_FD_STDERR] = options->stdio[2],
        [PLAN_FD_FILE] = plan,
        [PLAN_FD_CHANNEL] = launch->sandbox->plan->tells_around ? launch->sandbox->guard_map
                            : launch->channel                   ? guard_channel_fd(launch->channel)
                                                                : -1,
        [PLAN_FD_PROXY] = proxy ? proxy_channel_end(proxy) : -1,
    };
    struct plan_inbox inbox = {.magic = PLAN_MAGIC};
    int given[PLAN_FDS];
    size_t count = 0;

    for (int i = 0; i < PLAN_FDS; i++) {
        if (i >= PLAN_FD_CHANNEL && fds[i] < 0)
            continue;
        inbox.has |= 1u << i;
        given[count++] = fds[i];
    }
    /* One that has failed already says why; launch_read() gets it. */
    if (sys_fault() || (pass_send(launch->status, &inbox, sizeof inbox, given, count) &&
                        errno != EPIPE && errno != ECONNRESET))
        return err_sys(err, "sending the plan to the launcher");
    return 0;
}

static struct proxy_channel *launch_proxy_channel(const struct launch *launch, struct err *err)
{
    const struct sandbox *sandbox = launch->sandbox;
    const struct proxy_start start = {
        .start = {.program = sandbox->proxy, .dies_with_thread = sandbox->options.dies_with_thread},
        .policy = sandbox->policy,
        .ends_tls = sandbox->ends_tls,
        .flags = (launch->asks ? PROXY_HELLO_ASKS : 0u) |
                 (sandbox->plan->redirects ? 0u : PROXY_HELLO_LED) |
                 (sandbox->options.watch & WATCH_NETWORK ? PROXY_HELLO_TRACES : 0u),
    };

    return proxy_channel_new(&start, err);
}

static int launch_open_channels(struct launch *launch, const struct launch_options *options,
                                struct err *err)
{
    const struct sandbox *sandbox = launch->sandbox;
    struct guard_channel *guard = sandbox->plan->asks_guard ? guard_channel_new(err) : NULL;
    struct proxy_channel *proxy = NULL;

    launch->has_facts = sandbox->plan->guard_flags & GUARD_MAP_FACTS;
    launch->asks = (launch->has_facts || sandbox->proxy) && options->asks;
    if (sandbox->proxy)
        proxy = launch_proxy_channel(launch, err);
    if ((sandbox->plan->asks_guard && !guard) || (sandbox->proxy && !proxy)) {
        guard_channel_free(guard);
        proxy_channel_free(proxy);
        return -1;
    }
    return launch_facts_open(launch, guard, proxy, err);
}

/* Last of all: the launcher is at work meanwhile, and the guard has a channel before it gets there,
 * or a moment later. */
static int launch_attach_guard(const struct launch *launch, struct err *err)
{
    const struct sandbox *sandbox = launch->sandbox;
    const struct guard_start start = {
        .start = {.program = sandbox->guard, .dies_with_thread = sandbox->options.dies_with_thread},
        .map = sandbox->guard_map,
        .outside = launch->launcher->outside,
        .flags = (launch->asks && sandbox->options.watch & WATCH_HOLDS ? GUARD_HELLO_ASKS : 0u) |
                 (sandbox->options.watch & WATCH_FILES ? GUARD_HELLO_TRACES_FILES : 0u) |
                 (sandbox->options.watch & WATCH_NETWORK ? GUARD_HELLO_TRACES_NETWORK : 0u),
    };

    return launch->channel ? guard_channel_attach(launch->channel, &start, err) : 0;
}

/* A launch is over with all its processes, or there was never one. What is left of its launcher does nothing but end. */
static void leave_view(struct sandbox *sandbox, int wait_status)
{
    struct launcher_pool *launchers = &sandbox->launchers;

    if (sandbox->launches == 0) {
        if (launchers->spare)
            launcher_leave(launchers, TAKE_PTR(launchers->spare));
        launchers->view = NULL;
    }
    sandbox->options.view->leave(sandbox->options.view, wait_status);
}

/* `ret_has_no_launcher`: it failed for want of a launcher in its namespaces, and for nothing
 * else. */
static int launch_entered(struct sandbox *sandbox, const struct launch_options *options,
                          struct launch *ret, bool *ret_has_no_launcher, struct err *err)
{
    /* The launcher comes first: it makes its namespaces while we make the rest. */
    uint32_t namespaces = sandbox->plan->namespaces;
    struct launcher *launcher = launcher_take(&sandbox->launchers, namespaces);
    struct launch launch = {.facts = -1,
                            .sandbox = sandbox,
                            .lingers = options->lingers,
                            .is_in_view = sandbox->launchers.view,
                            .wait_status = -1};
    struct launch_limits limits = {0};
    AUTO_CLOSE int plan = -1;

    if (!launcher)
        launcher = launcher_new(&sandbox->launchers, namespaces, err);
    *ret_has_no_launcher = !launcher;
    if (!launcher)
        return -1;
    launch.launcher = launcher;
    launch.status = launcher->status;
    launch.pidfd = launcher->pidfd;
    launch.init = launcher->pid;
    sandbox->launches++;
    if (options->limiter)
        options->limiter(options->limiter_data, launcher->pid, sandbox_process_counter(sandbox),
                         &limits);
    launch.counts_pids =
        limits.processes && sandbox_process_counter(sandbox) == COUNTER_PID_NAMESPACE;
    plan = launch_plan(sandbox, options, &limits, err);
    if (plan < 0 || launch_open_channels(&launch, options, err) ||
        launch_send(&launch, options, plan, err) || launch_attach_guard(&launch, err)) {
        launch_done(&launch);
        return -1;
    }
    *ret = launch;
    return 0;
}

/* A probe executes nothing, and stays out of the view. */
static int launch_once(struct sandbox *sandbox, const struct launch_options *options,
                       struct launch *ret, bool *ret_has_no_launcher, struct err *err)
{
    struct sandbox_view *view = options->is_probe ? NULL : sandbox->options.view;

    *ret_has_no_launcher = false;
    if (view && view->enter(view, options, err))
        return -1;
    sandbox->launchers.view = view;
    if (launch_entered(sandbox, options, ret, ret_has_no_launcher, err) == 0)
        return 0;
    if (view && *ret_has_no_launcher)
        leave_view(sandbox, -1);
    return -1;
}

/* Waits for the launcher's first message and looks at it without taking it. */
static bool launch_peek(const struct launch *launch, struct plan_message *ret)
{
    struct pollfd fd = {.fd = launch->status, .events = POLLIN};

    while (poll(&fd, 1, -1) < 0 && errno == EINTR)
        ;
    return launch_receive(launch, ret, MSG_PEEK) == (ssize_t)sizeof *ret;
}

/* Looks how the first launch went. true when it has to be started over with a weaker plan (or, with
 * `ret_status` -1, when there is none). */
static bool launch_must_retry(struct sandbox *sandbox, struct launch *launch, int *ret_status,
                              struct err *err)
{
    struct plan_message first;

    *ret_status = 0;
    if (host_is_proven(&sandbox->host, sandbox->plan, launch->counts_pids) ||
        !launch_peek(launch, &first))
        return false;
    if (first.kind == PLAN_MESSAGE_FAILED && first.stage == PLAN_STAGE_SETUP &&
        sandbox_step_down(sandbox, (enum plan_op)first.op, &first.failure, ret_status, err)) {
        launch_done(launch);
        return true;
    }
    if (first.kind != PLAN_MESSAGE_FAILED || first.stage != PLAN_STAGE_SETUP) { /* it stood */
        host_stood(&sandbox->host, sandbox->plan, launch->counts_pids);
        host_learn(sandbox);
    }
    return false;
}

int sandbox_launch(struct sandbox *sandbox, const struct launch_options *options,
                   struct launch *ret, struct err *err)
{
    for (;;) {
        struct launch launch;
        struct err failure = {0};
        bool has_no_launcher;
        int status = 0;

        if (launch_once(sandbox, options, &launch, &has_no_launcher, &failure)) {
            if (!has_no_launcher ||
                !sandbox_step_down(sandbox, PLAN_OP_COUNT, &failure, &status, err)) {
                *err = failure;
                return -1;
            }
        } else if (!launch_must_retry(sandbox, &launch, &status, err)) {
            *ret = launch;
            return 0;
        }
        if (status)
            return -1;
    }
}

/* Children are listed in the order in which they came to their parent (proc_pid_children(5)): the
 * command is the first, whatever of it the init adopts later. */
pid_t launch_pid(const struct launch *launch)
{
    AUTO_CLOSE int fd = -1;
    char path[64];
    char text[16] = "";

    if (!launch->sandbox || launch->has_exited || launch->is_over)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)launch->init, (int)launch->init);
    fd = open(path, O_RDONLY | O_CLOEXEC); /* allow blocking open: procfs */
    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

int launch_signal(struct launch *launch, int signal, bool everything, struct err *err)
{
    struct plan_signal request = {.signal = signal, .everything = everything};

    if (send(launch->status, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
        errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
        return 0;
    return err_sys(err, "sending signal %d to the command", signal);
}

void launch_done(struct launch *launch)
{
    struct sandbox *sandbox = launch->sandbox;
    const bool is_in_view = launch->is_in_view;
    const int wait_status = launch->wait_status;

    if (!sandbox)
        return;
    if (launch->launcher && launch->is_over)
        launcher_leave(&sandbox->launchers, launch->launcher);
    else if (launch->launcher)
        launcher_kill(&sandbox->launchers, launch->launcher,
                      sandbox->plan->namespaces & CLONE_NEWPID);
    launch_unpublish(launch);
    launch_facts_close(launch);
    *launch = (struct launch){.status = -1, .pidfd = -1, .facts = -1};
    sandbox->launches--;
    if (is_in_view)
        leave_view(sandbox, wait_status);
    if (sandbox->launches == 0 && sandbox->options.on_idle)
        sandbox->options.on_idle(sandbox->options.data, sandbox);
}

int launch_publish(struct launch *launch, uint16_t port, int listener, struct err *err)
{
    struct sandbox *sandbox = launch->sandbox;
    const struct way_in_start how = {
        .launcher = sandbox->launcher,
        .has_network = sandbox->plan->namespaces & CLONE_NEWNET,
        .dies_with_thread = sandbox->options.dies_with_thread,
    };

    if (!sandbox->ports && !sandbox->publishes)
        proxy_link_join();
    sandbox->publishes = true;
    return way_in_publish(launch, &how, port, listener, err);
}

static void probe_limits(void *data, pid_t launcher, enum process_counter counter,
                         struct launch_limits *ret)
{
    if (counter == COUNTER_PID_NAMESPACE)
        ret->processes = 100;
}

int sandbox_probe(struct sandbox *sandbox, struct err *err)
{
    char *const argv[] = {(char *)"probe", NULL};
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct launch_options options = {
        .argv = argv,
        .stdio = {null, null, null},
        .cwd = "/",
        .limiter = probe_limits,
        .is_probe = true,
    };
    struct launch_report report;
    struct launch launch;
    struct plan_message first;
    int status = -1;

    if (null < 0)
        return err_sys(err, "opening /dev/null");
    if (sandbox_launch(sandbox, &options, &launch, err))
        return -1;
    if (!launch_peek(&launch, &first) || launch_read(&launch, &report, err))
        err_set(err, ERR_SYSTEM, "the launcher ended without a word");
    else if (report.event == LAUNCH_FAILED)
        *err = report.failure;
    else
        status = 0;
    launch_done(&launch);
    return status;
}

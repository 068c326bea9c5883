/* `cordon doctor`: what this machine can enforce, found out by doing: a sandbox is made, with
 * nothing in it, and what it turned out to hold is reported, with the remedy for what is missing.
 *
 *     0   every layer is enforced
 *     1   something is missing (the sandbox is made without it)
 *     2   no sandbox can be made at all
 *
 * Cgroups are told about, but do not count: limits have a substitute, and most sessions have none.
 */
#include "cli/command.h"
#include "cli/console.h"
#include "cli/layer_trial.h"
#include "cli/remedies.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "policy/access.h"
#include "process/cgroup.h"
#include "sandbox/sandbox.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct diagnosis {
    struct host_facts facts;
    int status; /* enum exit_status */
    bool has_defences;
    struct defence_report layers[DEFENCE_COUNT];
    struct err failure;   /* EXIT_CANNOT: why */
    bool keeps_protected; /* profiles that protect names in writable directories can be used */
    struct err refusal;   /* ... why not */
    char *no_watchpoint;  /* why what asks is masked; "": it is not; NULL: not tried */
    char *no_tls; /* why hooks and credentials are refused; "": they are not; NULL: not tried */
    struct layer_trial layers_trial;
    bool has_layers_trial;
    char *no_alone;                   /* why --sandbox landlock is refused; NULL: it can be used */
    char *cgroup[CGROUP_CONTROLLERS]; /* where limits of it would be kept; NULL: nowhere */
    bool is_systemds;                 /* ... in scopes of systemd's */
    struct err no_cgroup;
    enum process_counter counter; /* without a cgroup */
    struct remedies remedies;
};

static void diagnosis_done(struct diagnosis *diagnosis)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        free(diagnosis->cgroup[i]);
    free(diagnosis->no_watchpoint);
    free(diagnosis->no_tls);
    free(diagnosis->no_alone);
    layer_trial_done(&diagnosis->layers_trial);
    remedies_done(&diagnosis->remedies);
}

static void sandbox_auto(struct sandbox **slot)
{
    sandbox_free(*slot);
}

/* What is tried: everything readable, no network, and ... */
enum trial {
    TRIAL_READ,    /* nothing else */
    TRIAL_WRITE,   /* /tmp writable */
    TRIAL_PROTECT, /* a name in it that is not */
    TRIAL_ASK,     /* and a directory that asks */
    TRIAL_ALONE,   /* as PROTECT, by Landlock alone */
    TRIAL_PROXY,   /* as READ, with a network that is proxied */
    TRIAL_TLS,     /* and TLS that is ended, as for a credential */
};

static struct sandbox *make_sandbox(enum trial trial, struct err *err)
{
    AUTO(access_map_done)
    struct access_map map = {.restricted = true, .network = NETWORK_RESTRICTED};
    const struct sandbox_options options = {.mode = trial == TRIAL_ALONE ? SANDBOX_LANDLOCK
                                                                         : SANDBOX_AUTO,
                                            .access = &map,
                                            .watch = WATCH_FACTS};

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "doctor");
    if (trial >= TRIAL_PROXY)
        map.network = NETWORK_PROXIED;
    else if (trial >= TRIAL_WRITE)
        access_map_add(&map, "/tmp", ACCESS_WRITE, ACCESS_DIR, "doctor");
    if (trial == TRIAL_TLS)
        map.network_policy.mode = NETWORK_MODE_LIMITED;
    if (trial >= TRIAL_PROTECT && trial < TRIAL_PROXY)
        access_map_add(&map, "/tmp/.cordon", ACCESS_READ, ACCESS_MISSING, "doctor");
    if (trial == TRIAL_ASK)
        access_map_add(&map, "/var", ACCESS_DENY, ACCESS_DIR, "doctor")->asks = true;
    access_map_sort(&map);
    return sandbox_new(&options, err);
}

static bool try_sandbox(struct diagnosis *diagnosis, enum trial trial)
{
    AUTO(sandbox_auto) struct sandbox *sandbox = make_sandbox(trial, &diagnosis->failure);
    bool is_whole = true;

    if (!sandbox || sandbox_probe(sandbox, &diagnosis->failure))
        return false;
    for (int i = 0; i < DEFENCE_COUNT; i++) {
        diagnosis->layers[i] = *sandbox_defence(sandbox, (enum defence)i);
        is_whole &= diagnosis->layers[i].state == DEFENCE_ENFORCED ||
                    diagnosis->layers[i].state == DEFENCE_NOT_NEEDED;
    }
    diagnosis->has_defences = true;
    diagnosis->counter = sandbox_process_counter(sandbox);
    diagnosis->status = is_whole ? EXIT_OK : EXIT_NO;
    return true;
}

static void try_watchpoint(struct diagnosis *diagnosis)
{
    struct err err = {0};
    AUTO(sandbox_auto) struct sandbox *sandbox = make_sandbox(TRIAL_ASK, &err);

    if (!diagnosis->keeps_protected)
        diagnosis->no_watchpoint = alloc_str("a mount namespace is needed for them");
    else if (!sandbox || sandbox_probe(sandbox, &err))
        diagnosis->no_watchpoint = alloc_str(err.msg);
    else
        diagnosis->no_watchpoint = alloc_str(sandbox_no_watchpoint(sandbox));
}

static void try_alone(struct diagnosis *diagnosis)
{
    struct err err = {0};
    AUTO(sandbox_auto) struct sandbox *sandbox = make_sandbox(TRIAL_ALONE, &err);

    if (!sandbox || sandbox_probe(sandbox, &err))
        diagnosis->no_alone = alloc_str(err.msg);
}

/* Routes, redirections and listeners: all but the proxy itself, which is started when somebody connects. */
static void try_proxy(struct diagnosis *diagnosis)
{
    struct defence_report *layer = &diagnosis->layers[DEFENCE_PROXY];
    struct err err = {0};
    AUTO(sandbox_auto) struct sandbox *sandbox = make_sandbox(TRIAL_PROXY, &err);

    if (sandbox && sandbox_probe(sandbox, &err) == 0) {
        *layer = *sandbox_defence(sandbox, DEFENCE_PROXY);
        return;
    }
    layer->state = DEFENCE_ABSENT;
    diagnosis->status = EXIT_NO;
    snprintf(layer->why, sizeof layer->why, "%.*s", (int)sizeof layer->why - 1, err.msg);
}

static void try_tls(struct diagnosis *diagnosis)
{
    struct err err = {0};
    AUTO(sandbox_auto) struct sandbox *sandbox = make_sandbox(TRIAL_TLS, &err);

    diagnosis->no_tls = alloc_str(sandbox && sandbox_probe(sandbox, &err) == 0 ? "" : err.msg);
}

/* Over the folder here, or $HOME. */
static void try_layers(struct diagnosis *diagnosis)
{
    const char *home = getenv("HOME");
    AUTO_FREE char *here = realpath(".", NULL);
    AUTO_FREE char *other = home ? realpath(home, NULL) : NULL;
    const char *dir = here && here[1] ? here : other;

    if (diagnosis->layers[DEFENCE_MOUNT_NAMESPACE].state != DEFENCE_ENFORCED || !dir)
        return;
    diagnosis->has_layers_trial = true;
    layer_trial_make(dir, &diagnosis->layers_trial);
    remedies_add_layers(&diagnosis->layers_trial, dir, &diagnosis->remedies);
}

/* As a command with limits does it (process/resource_limits.c). */
static void try_cgroups(struct diagnosis *ret)
{
    const struct cgroup_limits limits = {
        .of = {[CGROUP_MEMORY] = UINT64_C(1) << 30, [CGROUP_PIDS] = 100}};
    AUTO(cgroup_base_done) struct cgroup_base base = {0};
    struct cgroup *cgroup = NULL;

    if (cgroup_base_find(NULL, &base, &ret->no_cgroup) == 0)
        cgroup = cgroup_open(&base, &limits, &ret->no_cgroup);
    if (cgroup)
        (void)cgroup_limit(cgroup, &limits, &ret->no_cgroup);
    if (!cgroup || !cgroup_keeps(cgroup, CGROUP_MEMORY)) {
        struct cgroup *scope = cgroup_open_scope(0, &limits, &ret->no_cgroup);

        ret->is_systemds = scope;
        if (scope) {
            cgroup_close(cgroup);
            cgroup = scope;
        }
    }
    for (int i = 0; cgroup && i < CGROUP_CONTROLLERS; i++)
        if (cgroup_keeps(cgroup, (enum cgroup_controller)i))
            ret->cgroup[i] = path_parent(cgroup_path(cgroup, (enum cgroup_controller)i));
    cgroup_close(cgroup);
}

static void diagnose(struct diagnosis *ret)
{
    AUTO(sandbox_auto) struct sandbox *protected = NULL;

    *ret = (struct diagnosis){.status = EXIT_CANNOT};
    host_facts_read("", &ret->facts);
    /* Without namespaces /tmp cannot be writable when files of Cordon's own are in it. */
    if (!try_sandbox(ret, TRIAL_WRITE))
        try_sandbox(ret, TRIAL_READ);
    /* only compiled: what the host can do is known by now */
    protected = make_sandbox(TRIAL_PROTECT, &ret->refusal);
    ret->keeps_protected = protected;
    if (ret->has_defences) {
        try_watchpoint(ret);
        try_proxy(ret);
        try_tls(ret);
    }
    try_alone(ret);
    try_cgroups(ret);
    if (!ret->has_defences)
        for (int i = 0; i < DEFENCE_COUNT; i++)
            ret->layers[i].state = DEFENCE_ABSENT;
    if (ret->has_defences || ret->failure.code != ERR_NOT_FOUND) /* the launcher is missing */
        remedies_find(&ret->facts, ret->layers, &ret->remedies);
    if (ret->has_defences)
        try_layers(ret);
    if (!ret->cgroup[CGROUP_MEMORY])
        remedies_add_cgroup(&ret->facts, ret->no_cgroup.msg, &ret->remedies);
}

/* --- for people --- */

static void print_row(const char *name, const char *state, const char *why, struct buf *text)
{
    buf_appendf(text, "  %-18s %s%s%s\n", name, state, *why ? ": " : "", why);
}

/* By what processes are counted, by the names in reports. */
static const char *counter_of(const struct diagnosis *diagnosis)
{
    if (diagnosis->cgroup[CGROUP_PIDS])
        return "cgroup";
    if (diagnosis->counter == COUNTER_PID_NAMESPACE)
        return "pid-namespace";
    return diagnosis->facts.is_root ? "none" : "rlimit";
}

static void print_limits(const struct diagnosis *diagnosis, struct buf *text)
{
    const char *by = diagnosis->is_systemds ? "by cgroup, of systemd" : "by cgroup";

    buf_append_str(text, "\nLimits:\n");
    if (diagnosis->cgroup[CGROUP_MEMORY])
        print_row("memory", by, diagnosis->cgroup[CGROUP_MEMORY], text);
    else
        print_row("memory", "by rlimit, each process by itself", diagnosis->no_cgroup.msg, text);
    if (diagnosis->cgroup[CGROUP_PIDS])
        print_row("pids", by, diagnosis->cgroup[CGROUP_PIDS], text);
    else if (diagnosis->counter == COUNTER_PID_NAMESPACE)
        print_row("pids", "by pid-namespace", "those of each command", text);
    else if (diagnosis->facts.is_root)
        print_row(
            "pids", "not kept",
            "root's processes are only counted in a cgroup, or, from Linux 6.14 on and with a "
            "/proc/sys that can be written to, in a pid namespace",
            text);
    else
        print_row("pids", "by rlimit",
                  diagnosis->counter == COUNTER_USER_NAMESPACE
                      ? "those of each command"
                      : "with all others of the user, and only when asked for",
                  text);
}

static void print_layers(const struct diagnosis *diagnosis, struct buf *text)
{
    const struct layer_trial *trial = &diagnosis->layers_trial;
    AUTO_FREE char *where = NULL;

    if (!diagnosis->has_layers_trial) {
        print_row("change layers", "refused", "a mount namespace is needed for them", text);
        return;
    }
    if (trial->refusal.code) {
        print_row("change layers", "refused", trial->refusal.msg, text);
        return;
    }
    where = alloc_strf("in %s%s%s", trial->folder,
                       trial->is_in_memory ? ", which is memory"
                       : trial->is_near    ? ", so that accepting moves"
                                           : ", so that accepting copies",
                       trial->clones ? "; large files are cloned, not copied" : "");
    print_row("change layers", "can be used", where, text);
}

static void print_defences(const struct diagnosis *diagnosis, struct buf *text)
{
    buf_append_str(text, "Layers:\n");
    for (int i = 0; i < DEFENCE_COUNT; i++) {
        const struct defence_report *layer = &diagnosis->layers[i];

        print_row(defence_name((enum defence)i), defence_state_name(layer->state), layer->why,
                  text);
    }
    buf_append_str(text, "\nProfiles:\n");
    print_row("read-only", "can be used", "", text);
    print_row("workspace-write", diagnosis->keeps_protected ? "can be used" : "refused",
              diagnosis->keeps_protected ? "" : diagnosis->refusal.msg, text);
    if (!diagnosis->keeps_protected)
        print_row("  --sandbox landlock", diagnosis->no_alone ? "refused" : "can be used, weaker",
                  diagnosis->no_alone ? diagnosis->no_alone : "", text);
    print_row("reads that ask", *diagnosis->no_watchpoint ? "masked" : "are held and asked about",
              diagnosis->no_watchpoint, text);
    print_row("credentials", *diagnosis->no_tls ? "refused" : "are used and not seen",
              diagnosis->no_tls, text);
    print_layers(diagnosis, text);
    print_limits(diagnosis, text);
}

static int print_diagnosis(const struct diagnosis *diagnosis)
{
    static const char *const verdicts[] = {
        [EXIT_OK] = "Every layer of the sandbox is enforced.",
        [EXIT_NO] = "Commands are sandboxed, but not by every layer.",
        [EXIT_CANNOT] = "No sandbox can be made here",
    };
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    int printed;

    buf_appendf(&text, "%s%s%s\n\n", verdicts[diagnosis->status],
                diagnosis->has_defences ? "" : ": ",
                diagnosis->has_defences ? "" : diagnosis->failure.msg);
    if (diagnosis->has_defences)
        print_defences(diagnosis, &text);
    for (size_t i = 0; i < diagnosis->remedies.len; i++) {
        const struct remedy *remedy = &diagnosis->remedies.items[i];

        buf_appendf(&text, "\n%s (%s):\n", remedy->about, remedy->finding);
        options_print_text(remedy->cause, 2, &text);
        console_lines(&text, "    ", remedy->how);
    }
    if (diagnosis->remedies.len)
        buf_append_str(&text, "\nMore about each: docs/troubleshooting.md (share/doc/cordon)\n");
    printed = console_print(&text);
    return printed == EXIT_OK ? diagnosis->status : printed;
}

/* --- for programs --- */

static json_t *defences_to_json(const struct diagnosis *diagnosis)
{
    json_t *json = json_object();

    for (int i = 0; i < DEFENCE_COUNT && diagnosis->has_defences; i++) {
        const struct defence_report *layer = &diagnosis->layers[i];

        json_object_set_new(json, defence_name((enum defence)i),
                            json_pack("{s:s, s:o}", "state", defence_state_name(layer->state),
                                      "why", *layer->why ? json_lossy(layer->why) : json_null()));
    }
    return json;
}

static json_t *remedies_to_json(const struct remedies *remedies)
{
    json_t *json = json_array();

    for (size_t i = 0; i < remedies->len; i++)
        json_array_append_new(
            json, json_pack("{s:s, s:s, s:o, s:o}", "finding", remedies->items[i].finding, "about",
                            remedies->items[i].about, "cause", json_lossy(remedies->items[i].cause),
                            "how", json_lossy(remedies->items[i].how)));
    return json;
}

static json_t *switch_to_json(int64_t value)
{
    return value == HOST_FACT_MISSING ? json_null() : json_integer(value);
}

static json_t *facts_to_json(const struct host_facts *facts)
{
    return json_pack(
        "{s:b, s:b, s:b, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "root", facts->is_root, "wsl1",
        facts->is_wsl1, "systemd", facts->has_systemd, "apparmor_restrict_unprivileged_userns",
        switch_to_json(facts->apparmor_restricts_userns), "unprivileged_userns_clone",
        switch_to_json(facts->userns_clone), "max_user_namespaces",
        switch_to_json(facts->max_user_namespaces), "landlock_abi", facts->landlock_abi,
        "container", *facts->container ? json_lossy(facts->container) : json_null(), "lsm",
        json_lossy(facts->lsm), "kernel", json_lossy(facts->release));
}

/* `why` not; "": it is, NULL: not tried. */
static json_t *available_to_json(const char *why)
{
    if (!why)
        return json_null();
    return json_pack("{s:b, s:o}", "available", !*why, "why", *why ? json_lossy(why) : json_null());
}

static json_t *trial_to_json(const struct diagnosis *diagnosis)
{
    const struct layer_trial *trial = &diagnosis->layers_trial;
    const bool is_refused = trial->refusal.code;

    if (!diagnosis->has_layers_trial)
        return json_null();
    return json_pack("{s:b, s:o, s:o, s:b, s:b, s:b}", "available", !is_refused, "why",
                     is_refused ? json_lossy(trial->refusal.msg) : json_null(), "folder",
                     json_lossy(trial->folder), "near", trial->is_near, "in_memory",
                     trial->is_in_memory, "clones", trial->clones);
}

static json_t *limits_to_json(const struct diagnosis *diagnosis)
{
    const bool has_memory = diagnosis->cgroup[CGROUP_MEMORY];

    return json_pack("{s:{s:s, s:b}, s:{s:s, s:b}}", "memory", "by",
                     has_memory ? "cgroup" : "rlimit", "command", has_memory, "pids", "by",
                     counter_of(diagnosis), "command",
                     diagnosis->cgroup[CGROUP_PIDS] || diagnosis->counter != COUNTER_USER);
}

static int print_diagnosis_json(const struct diagnosis *diagnosis)
{
    static const char *const verdicts[] = {
        [EXIT_OK] = "enforced", [EXIT_NO] = "degraded", [EXIT_CANNOT] = "none"};
    AUTO_JSON json_t *json = json_pack(
        "{s:s, s:o, s:o, s:{s:b, s:b, s:b}, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "verdict",
        verdicts[diagnosis->status], "failure",
        diagnosis->has_defences ? json_null() : json_lossy(diagnosis->failure.msg), "layers",
        defences_to_json(diagnosis), "profiles", "read-only", diagnosis->has_defences,
        "workspace-write", diagnosis->keeps_protected, "by-landlock", !diagnosis->no_alone,
        "watchpoints", available_to_json(diagnosis->no_watchpoint), "credentials",
        available_to_json(diagnosis->no_tls), "change_layers", trial_to_json(diagnosis), "cgroup",
        json_lossy(diagnosis->cgroup[CGROUP_MEMORY]), "limits", limits_to_json(diagnosis),
        "remedies", remedies_to_json(&diagnosis->remedies), "host",
        facts_to_json(&diagnosis->facts));
    int printed = console_print_json(json);

    return printed == EXIT_OK ? diagnosis->status : printed;
}

/* --- the command --- */

static int doctor_run(char **argv)
{
    bool wants_json = false;
    AUTO(diagnosis_done) struct diagnosis diagnosis = {0};
    char **rest;
    int status;

    if (!command_parse(&command_doctor, argv, &wants_json, &rest, &status) ||
        !command_has_no_arguments(&command_doctor, rest, &status))
        return status;
    diagnose(&diagnosis);
    return wants_json ? print_diagnosis_json(&diagnosis) : print_diagnosis(&diagnosis);
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "tell which layers this machine can enforce, and what to do about the others",
    .usage = "[--json]",
    .about =
        "Makes a sandbox with nothing in it and tells which layers of defence stand (enforced, "
        "partial, absent), which profiles can be used, and what has to be done for what is "
        "missing. docs/troubleshooting.md has more about each.\n"
        "\n"
        "The exit status is 0 when every layer is enforced, 1 when something is missing, 2 "
        "when no sandbox can be made at all, 125 when Cordon was called wrongly.\n",
    .examples = "  cordon doctor\n"
                "  cordon doctor --json | jq .verdict\n",
    .page = "cordon-doctor",
    .groups = command_json_groups,
    .run = doctor_run,
};

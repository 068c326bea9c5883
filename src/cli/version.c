/* `cordon version`: which Cordon this is, and whether the launcher that it finds belongs to it.
 * That is found out by doing: the launcher is given an empty plan, which it takes only in its own
 * format. */
#include "cli/command.h"
#include "cli/console.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "policy/access.h"
#include "sandbox/linux/host.h"
#include "sandbox/linux/launcher_pool.h"
#include "sandbox/sandbox.h"

#include <stdint.h>
#include <sys/utsname.h>

struct version {
    char *launcher; /* owned; NULL: not found */
    bool is_matching;
    struct err problem; /* with the launcher; when it is not matching */
    int landlock;
    struct utsname system;
};

static int version_try(const char *launcher, struct err *err)
{
    const struct access_map everything = {.network = NETWORK_ENABLED};
    const struct sandbox_options options = {
        .mode = SANDBOX_DISABLED, .access = &everything, .launcher = launcher};
    struct sandbox *sandbox = sandbox_new(&options, err);
    int status;

    if (!sandbox)
        return -1;
    status = sandbox_probe(sandbox, err);
    sandbox_free(sandbox);
    return status;
}

static void version_done(struct version *version)
{
    free(version->launcher);
}

static int version_print(const struct version *version)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    buf_appendf(&text, "cordon %s\n", CORDON_VERSION);
    buf_appendf(&text, "launcher  %s%s%s\n", version->launcher ? version->launcher : "none",
                version->is_matching ? "" : ": ", version->is_matching ? "" : version->problem.msg);
    buf_appendf(&text, "landlock  ABI %d\n", version->landlock);
    buf_appendf(&text, "kernel    %s %s\n", version->system.sysname, version->system.release);
    buf_appendf(&text, "machine   %s\n", version->system.machine);
    buf_appendf(&text, "build     %s\n", CORDON_BUILD_INFO);
    return console_print(&text);
}

static int version_print_json(const struct version *version)
{
    AUTO_JSON json_t *json = json_pack(
        "{s:s, s:{s:o, s:b, s:o}, s:{s:i}, s:{s:s, s:s}, s:s, s:s}", "version", CORDON_VERSION,
        "launcher", "path", json_lossy(version->launcher), "matches", version->is_matching,
        "problem", version->is_matching ? json_null() : json_lossy(version->problem.msg),
        "landlock", "abi", version->landlock, "kernel", "name", version->system.sysname, "release",
        version->system.release, "machine", version->system.machine, "build", CORDON_BUILD_INFO);

    return console_print_json(json);
}

static int version_run(char **argv)
{
    AUTO(version_done) struct version version = {.launcher = NULL};
    bool wants_json = false;
    struct host host;
    char **rest;
    int status;

    if (!command_parse(&command_version, argv, &wants_json, &rest, &status) ||
        !command_has_no_arguments(&command_version, rest, &status))
        return status;
    version.launcher = launcher_path(&version.problem);
    version.is_matching = version.launcher && version_try(version.launcher, &version.problem) == 0;
    host_init(&host);
    version.landlock = host.facts.landlock;
    uname(&version.system);
    return wants_json ? version_print_json(&version) : version_print(&version);
}

const struct command command_version = {
    .name = "version",
    .summary = "tell the version, the launcher and the kernel",
    .usage = "[--json]",
    .about = "Tells the version of Cordon, which launcher it uses and whether that one belongs to "
             "it, the kernel and its Landlock.\n",
    .examples = "  cordon version --json | jq -r .launcher.path\n",
    .groups = command_json_groups,
    .run = version_run,
};

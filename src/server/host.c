/* See host.h. */
#include "server/host.h"

#include "base/account.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/program.h"
#include "server/rpc_path.h"

#include <jansson.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *host_home(void)
{
    const char *home = getenv("HOME");
    AUTO(account_done) struct account user = {0};

    if (home && *home == '/')
        return path_clean("/", home);
    account_find(&user);
    return user.home ? TAKE_PTR(user.home) : alloc_str("/");
}

/* NULL: not set. */
static const char *named_home(void)
{
    const char *named = getenv("CODEX_HOME");

    return named && *named ? named : NULL;
}

char *host_codex_home(void)
{
    AUTO_FREE char *home = host_home();
    const char *named = named_home();

    return named && *named == '/' ? path_clean("/", named) : path_join(home, ".codex");
}

char *host_codex_find(struct err *err)
{
    const char *named = named_home();
    AUTO_FREE char *found = named ? realpath(named, NULL) : NULL;
    struct stat st;

    if (!named)
        return host_codex_home();
    if (!found || stat(found, &st) || !S_ISDIR(st.st_mode)) {
        err_set(err, ERR_NOT_FOUND, "CODEX_HOME points to \"%s\", but that path %s", named,
                found ? "is not a directory" : "does not exist");
        return NULL;
    }
    return TAKE_PTR(found);
}

/* --- environment/info --- */

/* Of the release whose protocol this is; clients may ask for a least one. */
#define PROTOCOL_VERSION "0.169.0"

static const struct {
    const char *name;
    bool is_there;
    bool wants_http; /* with cordon-http alone, which a tarball does not have */
} capabilities[] = {
    {"networkProxyLaunch", true},
    {"networkProxyReviewDomains", true},
    {"credentialMasking", false},
    {"credentialMaskingCustomProviders", false},
    {"capabilityDiscoverySandbox", true},
    {"fsWatchMissing", true},
    {"capabilityDiscoveryV2", true},
    {"environmentConfigRead", true},
    {"httpHeaderEnvVars", true, true},
    {"sandboxedFileStreaming", true},
    {"fileWriteStreaming", true},
    {"shellSnapshotV2", false},
    {"windowsMxc", false},
    {"linuxRootWritePreservesDevices", true},
    {"linuxApprovedRootWritePreservesRestrictions", true},
    {"sandboxProfiles", true}, /* ours: a profile of the server's user may be named as a sandbox */
    {"http", true, true},      /* ours: http/request */
    {"layers", true},          /* ours: layer/..., and `layer` of what writes */
};

static json_t *capabilities_to_json(void)
{
    json_t *object = json_object();
    struct err ignored;
    AUTO_FREE char *http = program_find("cordon-http", &ignored);

    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
        json_object_set_new(
            object, capabilities[i].name,
            json_boolean(capabilities[i].is_there && (http || !capabilities[i].wants_http)));
    return object;
}

/* $SHELL, the account's, or the one that is always there. */
static json_t *shell_to_json(void)
{
    const char *named = getenv("SHELL");
    AUTO(account_done) struct account user = {0};
    const char *path = named && *named ? named : "";

    if (!*path) {
        account_find(&user);
        path = user.shell ? user.shell : "";
    }
    if (*path != '/' || access(path, X_OK))
        path = "/bin/sh";
    return json_pack("{s:s, s:s}", "name", path_name(path), "path", path);
}

static json_t *home_to_json(void)
{
    AUTO_FREE char *home = host_home();

    return rpc_path_to_json(home);
}

static json_t *cwd_to_json(void)
{
    AUTO_FREE char *cwd = getcwd(NULL, 0);

    return cwd ? rpc_path_to_json(cwd) : json_null();
}

/* The same for every server of one user on one host, and nothing can be read out of it. */
static json_t *provider_to_json(void)
{
    char host[HOST_NAME_MAX + 1] = "";
    AUTO_FREE char *text = NULL;
    struct sha256_ctx sha;
    uint8_t digest[SHA256_DIGEST_SIZE];
    char hex[sizeof "sha256:" + 2 * SHA256_DIGEST_SIZE] = "sha256:";

    gethostname(host, sizeof host - 1);
    text = alloc_strf("cordon %s %d", host, (int)geteuid());
    sha256_init(&sha);
    sha256_update(&sha, strlen(text), (const uint8_t *)text);
    sha256_digest(&sha, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + strlen("sha256:") + 2 * i, 3, "%02x", digest[i]);
    return json_string(hex);
}

json_t *host_info(void)
{
    const char *tmpdir = getenv("TMPDIR");
    bool has_tmpdir = tmpdir && *tmpdir == '/';
    json_t *dirs = json_array();

    if (has_tmpdir)
        json_array_append_new(dirs, rpc_path_to_json(tmpdir));
    return json_pack("{s:o, s:s, s:o, s:o, s:o, s:s, s:[], s:o, s:o, s:o}", "shell",
                     shell_to_json(), "executorVersion", PROTOCOL_VERSION, "providerId",
                     provider_to_json(), "cwd", cwd_to_json(), "userHomeDir", home_to_json(),
                     "platformOs", "linux", "prependPathDirs", "temporaryDirectories", dirs,
                     "tempDir", rpc_path_to_json(has_tmpdir ? tmpdir : "/tmp"), "capabilities",
                     capabilities_to_json());
}

/* struct cordon_policy of cordon.h: the workspace that it means. A policy is remembered by the text of
 * all that it says, so that hosts need not keep anything to get the same sandbox again. */
#include "libcordon/engine.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "workspace/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Every value stands with its length, so that no two policies have one text. */
static void key_add(struct buf *key, const char *name, const char *value)
{
    buf_appendf(key, "%s=%zu:%s\n", name, value ? strlen(value) : 0, value ? value : "");
}

/* Caller frees. */
static char *policy_key(const struct cordon_policy *policy, const char *dir)
{
    const char *const *const paths[] = {policy->deny, policy->readable, policy->writable};
    static const char *const names[] = {"deny", "readable", "writable"};
    struct buf key;

    buf_init(&key, SIZE_MAX / 2);
    key_add(&key, "profile", policy->profile);
    key_add(&key, "workspace", dir);
    for (int i = 0; i < 3; i++)
        for (const char *const *path = paths[i]; path && *path; path++)
            key_add(&key, names[i], *path);
    buf_appendf(&key, "network=%d\nsandbox=%d\n", policy->network, policy->sandbox);
    return buf_take(&key);
}

static int read_words(const struct cordon_policy *policy, struct workspace_request *ret,
                      struct err *err)
{
    static const enum sandbox_mode modes[] = {
        [CORDON_SANDBOX_AUTO] = SANDBOX_AUTO,
        [CORDON_SANDBOX_REQUIRE] = SANDBOX_REQUIRE,
        [CORDON_SANDBOX_DISABLED] = SANDBOX_DISABLED,
    };
    static const enum workspace_network networks[] = {
        [CORDON_NETWORK_OF_PROFILE] = WORKSPACE_NETWORK_OF_PROFILE,
        [CORDON_NETWORK_RESTRICTED] = WORKSPACE_RESTRICTED,
        [CORDON_NETWORK_ENABLED] = WORKSPACE_ENABLED,
    };

    if (policy->sandbox < 0 || policy->sandbox > CORDON_SANDBOX_DISABLED)
        return err_set(err, ERR_INVALID, "policy.sandbox is %d, which is no enum cordon_sandbox",
                       policy->sandbox);
    if (policy->network < 0 || policy->network > CORDON_NETWORK_ENABLED)
        return err_set(err, ERR_INVALID, "policy.network is %d, which is no enum cordon_network",
                       policy->network);
    ret->mode = modes[policy->sandbox];
    ret->network = networks[policy->network];
    return 0;
}

static size_t count(const char *const *paths)
{
    size_t len = 0;

    while (paths && paths[len])
        len++;
    return len;
}

/* Caller frees. */
static struct workspace_entry *make_entries(const struct cordon_policy *policy, size_t *ret_len)
{
    const struct {
        const char *const *paths;
        enum access access;
    } lists[] = {{policy->writable, ACCESS_WRITE},
                 {policy->readable, ACCESS_READ},
                 {policy->deny, ACCESS_DENY}};
    struct workspace_entry *entries =
        alloc_zero(count(policy->writable) + count(policy->readable) + count(policy->deny) + 1,
                   sizeof *entries);
    size_t len = 0;

    for (int i = 0; i < 3; i++)
        for (const char *const *path = lists[i].paths; path && *path; path++)
            entries[len++] = (struct workspace_entry){lists[i].access, *path};
    *ret_len = len;
    return entries;
}

static struct workspace *make(struct cordon_engine *engine, const struct cordon_policy *policy,
                              const char *dir, const char *key, struct err *err)
{
    static const struct workspace_words words = {
        .profile = "policy.profile",
        .sandbox = "policy.sandbox",
        .network = "policy.network",
        .paths = {"policy.deny", "policy.readable", "policy.writable"},
        .origin = "the host's policy",
    };
    struct workspace_request request = {
        .words = &words,
        .dir = dir,
        .root = dir,
        .profile_name = policy->profile,
        .tmpdir = getenv("TMPDIR"),
    };
    AUTO_FREE struct workspace_entry *entries = make_entries(policy, &request.entries_len);
    struct workspace *workspace;

    request.entries = entries;
    if (read_words(policy, &request, err))
        return NULL;
    workspace = workspace_make(engine->workspaces, key, &request, err);
    return workspace && workspace_open(workspace, err) == 0 ? workspace : NULL;
}

struct workspace *policy_workspace(struct cordon_engine *engine, const struct cordon_policy *given,
                                   struct err *err)
{
    struct cordon_policy policy = {0};
    AUTO_FREE char *dir = NULL;
    AUTO_FREE char *key = NULL;
    struct workspace *workspace;

    if (given && options_read(&policy, sizeof policy, given, err)) {
        err_wrap(err, "policy");
        return NULL;
    }
    if (given || !engine->default_key) {
        dir = realpath(policy.workspace ? policy.workspace : ".", NULL); /* it becomes a root */
        if (!dir) {
            err_sys(err, "the workspace %s",
                    policy.workspace ? policy.workspace : "(the current folder)");
            return NULL;
        }
        key = policy_key(&policy, dir);
    }
    if (workspace_find(engine->workspaces, key ? key : engine->default_key, &workspace, err))
        return NULL;
    if (!workspace)
        workspace = make(engine, &policy, dir, key, err);
    if (workspace && !engine->default_key)
        engine->default_key = TAKE_PTR(key);
    return workspace;
}

/* The workspace of a struct cordon_policy. One is remembered by the text of all that its policy says, so that hosts need
 * not keep anything to get the same sandbox again. What it says means what the same words of `cordon run` do. */
#include "libcordon/engine.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "policy/network_policy.h"
#include "policy/protect.h"
#include "timeline/timeline.h"
#include "workspace/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)CORDON_WATCH_LEARN == (int)WORKSPACE_WATCH_LEARN, "the words are the same");

/* Every value stands with its length, so that no two policies have one text. */
static void key_add(struct buf *key, const char *name, const char *value)
{
    buf_appendf(key, "%s=%zu:%s\n", name, value ? strlen(value) : 0, value ? value : "");
}

/* Caller frees. */
static char *policy_key(const struct cordon_policy *policy, const char *dir)
{
    const char *const *const paths[] = {
        policy->deny,        policy->readable,   policy->writable, policy->protect,
        policy->sockets,     policy->with,       policy->publish,  policy->credentials,
        policy->allow_hosts, policy->deny_hosts,
    };
    static const char *const names[] = {"deny",        "readable",  "writable", "protect",
                                        "sockets",     "with",      "publish",  "credentials",
                                        "allow_hosts", "deny_hosts"};
    struct buf key;

    buf_init(&key, SIZE_MAX / 2);
    key_add(&key, "profile", policy->profile);
    key_add(&key, "workspace", dir);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        for (const char *const *path = paths[i]; path && *path; path++)
            key_add(&key, names[i], *path);
    key_add(&key, "layer", policy->layer ? cordon_layer_id(policy->layer) : NULL);
    for (const unsigned *port = policy->host_ports; port && *port; port++)
        buf_appendf(&key, "host_ports=%u\n", *port);
    buf_appendf(&key,
                "network=%d\nsandbox=%d\nwatch=%d\ntrace=%u\njudge=%d\ngit=%d\nprotect=%d\n"
                "allow_local_binding=%d\n",
                policy->network, policy->sandbox, policy->watch, policy->trace, policy->judge,
                policy->git, policy->protect != NULL, policy->allow_local_binding != 0);
    return buf_take(&key);
}

static int read_words(const struct cordon_policy *policy, struct workspace_request *ret,
                      struct err *err)
{
    static const enum sandbox_mode modes[] = {
        [CORDON_SANDBOX_AUTO] = SANDBOX_AUTO,
        [CORDON_SANDBOX_REQUIRE] = SANDBOX_REQUIRE,
        [CORDON_SANDBOX_DISABLED] = SANDBOX_DISABLED,
        [CORDON_SANDBOX_LANDLOCK] = SANDBOX_LANDLOCK,
    };
    static const enum workspace_network networks[] = {
        [CORDON_NETWORK_OF_PROFILE] = WORKSPACE_NETWORK_OF_PROFILE,
        [CORDON_NETWORK_RESTRICTED] = WORKSPACE_RESTRICTED,
        [CORDON_NETWORK_ENABLED] = WORKSPACE_ENABLED,
        [CORDON_NETWORK_PROXIED] = WORKSPACE_PROXIED,
        [CORDON_NETWORK_HOST] = WORKSPACE_HOST,
    };

    if (policy->sandbox < 0 || policy->sandbox > CORDON_SANDBOX_LANDLOCK)
        return err_set(err, ERR_INVALID, "policy.sandbox is %d, which is no enum cordon_sandbox",
                       policy->sandbox);
    if (policy->network < 0 || policy->network > CORDON_NETWORK_HOST)
        return err_set(err, ERR_INVALID, "policy.network is %d, which is no enum cordon_network",
                       policy->network);
    if (policy->watch < 0 || policy->watch > CORDON_WATCH_LEARN)
        return err_set(err, ERR_INVALID, "policy.watch is %d, which is no enum cordon_watch",
                       policy->watch);
    if (policy->judge < 0 || policy->judge > CORDON_JUDGE_EVERY_EXEC)
        return err_set(err, ERR_INVALID, "policy.judge is %d, which is no enum cordon_judge",
                       policy->judge);
    if (policy->git < 0 || policy->git > CORDON_GIT_COMMIT)
        return err_set(err, ERR_INVALID, "policy.git is %d, which is no enum cordon_git",
                       policy->git);
    if (policy->trace > TIMELINE_ALL)
        return err_set(err, ERR_INVALID,
                       "policy.trace is %u, which has more than enum cordon_trace", policy->trace);
    ret->watch = (enum workspace_watch)policy->watch;
    ret->judge = (enum workspace_judge)policy->judge;
    ret->git = (enum workspace_git)policy->git;
    ret->topics = policy->trace;
    ret->mode = modes[policy->sandbox];
    ret->network = networks[policy->network];
    return 0;
}

/* Caller frees; `*ret_len` is 0 before. */
static struct workspace_entry *make_entries(const struct cordon_policy *policy, size_t *ret_len)
{
    const struct {
        const char *const *paths;
        enum access access;
    } lists[] = {{policy->writable, ACCESS_WRITE},
                 {policy->readable, ACCESS_READ},
                 {policy->deny, ACCESS_DENY}};
    struct workspace_entry *entries = NULL;
    size_t cap = 0;

    for (int i = 0; i < 3; i++)
        for (const char *const *path = lists[i].paths; path && *path; path++) {
            entries = alloc_grow(entries, *ret_len, &cap, sizeof *entries);
            entries[(*ret_len)++] = (struct workspace_entry){lists[i].access, *path};
        }
    return entries;
}

static int read_protect(const struct cordon_policy *policy, struct protect_choice *ret,
                        struct err *err)
{
    ret->is_made = policy->protect;
    for (const char *const *word = policy->protect; word && *word; word++)
        if (protect_choice_add(ret, *word, err))
            return err_wrap(err, "policy.protect");
    return 0;
}

static int read_hosts(const char *const *hosts, enum network_verdict verdict, const char *word,
                      struct network_policy *ret, struct err *err)
{
    for (; hosts && *hosts; hosts++) {
        AUTO_FREE char *origin = alloc_strf("%s %s", word, *hosts);

        if (network_policy_add_text(ret, *hosts, verdict, origin, err))
            return err_wrap(err, "%s", origin);
    }
    return 0;
}

static int read_ports(const struct cordon_policy *policy, struct network_policy *ret,
                      struct err *err)
{
    for (const unsigned *port = policy->host_ports; port && *port; port++)
        if (*port > UINT16_MAX)
            return err_set(err, ERR_INVALID, "policy.host_ports: %u is no port: 1 to 65535", *port);
        else if (network_policy_add_host_port(ret, (uint16_t)*port, err))
            return err_wrap(err, "policy.host_ports");
    for (const char *const *text = policy->publish; text && *text; text++) {
        struct publication publication;

        if (publication_parse(*text, &publication, err) ||
            publications_add(&ret->publications, &publication, err))
            return err_wrap(err, "policy.publish");
    }
    return 0;
}

/* All that it says of the network, beside what kind it is. */
static int read_network(const struct cordon_policy *policy, struct network_policy *ret,
                        struct err *err)
{
    for (const char *const *text = policy->credentials; text && *text; text++) {
        AUTO_FREE char *origin = alloc_strf("policy.credentials %s", *text);

        if (network_policy_add_credential_text(ret, *text, origin, err))
            return err_wrap(err, "policy.credentials");
    }
    ret->allow_local_binding = policy->allow_local_binding;
    return read_hosts(policy->allow_hosts, NETWORK_ALLOW, "policy.allow_hosts", ret, err) ||
                   read_hosts(policy->deny_hosts, NETWORK_DENY, "policy.deny_hosts", ret, err) ||
                   read_ports(policy, ret, err)
               ? -1
               : 0;
}

static struct workspace *make(struct cordon_engine *engine, const struct cordon_policy *policy,
                              const char *dir, const char *key, struct err *err)
{
    static const struct workspace_words words = {
        .profile = "policy.profile",
        .sandbox = "policy.sandbox",
        .network = "policy.network",
        .allow_host = "policy.allow_hosts",
        .host_port = "policy.host_ports",
        .publish = "policy.publish",
        .credential = "policy.credentials",
        .allow_local_binding = "policy.allow_local_binding",
        .socket = "policy.sockets",
        .with = "policy.with",
        .layer = "policy.layer",
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
    AUTO(protect_choice_done) struct protect_choice protect = {0};
    AUTO(network_policy_done) struct network_policy hosts = {0};
    struct workspace *workspace;

    request.entries = entries;
    if (read_words(policy, &request, err) || read_protect(policy, &protect, err) ||
        read_network(policy, &hosts, err))
        return NULL;
    request.layer = policy->layer ? layers_find(engine, policy->layer, err) : NULL;
    request.hosts = &hosts;
    request.protect = protect.is_made ? &protect : NULL;
    request.unix_sockets = (char *const *)policy->sockets;
    request.presets = (char *const *)policy->with;
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
    if (policy.layer && !layers_find(engine, policy.layer, err))
        return NULL;
    if (given || !engine->default_key) {
        dir = realpath(policy.workspace ? policy.workspace : ".", NULL); /* it becomes a root */
        if (!dir) {
            err_sys(err, "the workspace %s",
                    policy.workspace ? policy.workspace : "(the current directory)");
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

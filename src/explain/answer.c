/* See answer.h. The profile answers, and then what it has no say in: the /dev of a sandbox, which is made
 * for it, and the permissions of the file itself. */
#include "explain/answer.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "explain/explanation.h"
#include "policy/host_view.h"
#include "policy/network_hook.h"
#include "workspace/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void explain_answer_done(struct explain_answer *answer)
{
    free(answer->asked);
    free(answer->canonical);
    free(answer->decided_by);
    free(answer->entry);
    free(answer->note);
}

static char *note_for(const struct access_map *map, const char *path, enum access_kind kind,
                      bool is_bare)
{
    const struct access_entry *entry = access_map_find(map, path);

    if (is_bare)
        return alloc_str("there is no sandbox; the permissions of the file decide");
    if (path_is_within(path, "/dev"))
        return alloc_str("inside, /dev is Cordon's own: null, zero, full, random, urandom, tty, "
                         "ptmx, pts and a private shm");
    if (path_is_within(path, "/proc"))
        return alloc_str("inside, /proc shows the command's own processes");
    if (entry && entry->source && *entry->source)
        return alloc_strf("inside, it is %s%s; what this machine has there is not seen",
                          entry->source, path + strlen(entry->path));
    if (entry && entry->source)
        return alloc_str("inside, it is in memory; what this machine has there is not seen");
    if (kind == ACCESS_MISSING)
        return alloc_str("nothing is there");
    return NULL;
}

/* What is below /dev inside is made for the command, and what lies there on the host is not, but for what an entry
 * names. Whether that decides. */
static bool has_own_device(const char *path, const struct access_entry *entry, enum access *ret)
{
    static const char *const names[] = {"null",    "zero",  "full",   "random", "urandom",
                                        "tty",     "ptmx",  "pts",    "shm",    "mqueue",
                                        "console", "stdin", "stdout", "stderr", "fd"};
    const char *name = path + strlen("/dev/");
    size_t len = strlen(path) > strlen("/dev/") ? strcspn(name, "/") : 0;

    if (!path_is_within(path, "/dev") || !len || (entry && path_is_within(entry->path, "/dev")))
        return false;
    *ret = ACCESS_DENY;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
            *ret = ACCESS_WRITE;
    return true;
}

/* No sandbox gives what the file itself refuses its user. */
static bool is_refused_by_file(const char *path, enum access wanted)
{
    return faccessat(AT_FDCWD, path, wanted == ACCESS_WRITE ? W_OK : R_OK, AT_EACCESS) < 0 &&
           errno == EACCES;
}

int explain_path(const struct explained *about, const char *path, enum access wanted,
                 struct explain_answer *ret, struct err *err)
{
    const struct access_map *map = explained_access(about);
    const char *home = about->home;
    bool is_at_home = home && path[0] == '~' && (path[1] == '/' || !path[1]);
    AUTO_FREE char *clean =
        is_at_home ? path_clean(home, path + 1 + (path[1] == '/')) : path_clean(about->dir, path);
    AUTO(path_walk_done) struct path_walk walk = {0};
    bool is_bare = about->workspace->mode == SANDBOX_DISABLED;
    const struct access_entry *entry;
    enum access verdict;
    bool is_device, is_refused;

    if (path_walk(&host_view_real, clean, &walk, err))
        return -1;
    entry = access_map_find(map, walk.path);
    verdict = access_map_check(map, walk.path);
    is_device = !is_bare && has_own_device(clean, entry, &verdict);
    is_refused = !is_device && verdict >= wanted && is_refused_by_file(walk.path, wanted);
    *ret = (struct explain_answer){
        .is_allowed = verdict >= wanted && !is_refused,
        .asked = alloc_str(path),
        .canonical = alloc_str(walk.path),
        .verdict = access_name(verdict),
        .decided_by = alloc_str(is_refused  ? "the permissions of the file"
                                : is_device ? "the /dev of the sandbox"
                                : entry     ? entry->origin
                                : is_bare   ? "no sandbox"
                                            : "no entry of the profile allows it"),
        .entry = entry && !is_device ? alloc_str(entry->path) : NULL,
        .note = note_for(map, walk.path, walk.kind, is_bare),
    };
    return 0;
}

/* By the proxy. */
static void decide_host(const struct access_map *map, const struct network_request *request,
                        struct explain_answer *ret)
{
    const struct network_hooks *hooks = map->network_policy.hooks;
    const bool is_hooked = hooks && network_hooks_has_hooks(hooks, request->host->text);
    struct network_decision decision;
    const struct network_rule *rule;

    network_policy_decide(&map->network_policy, request, &decision);
    if (decision.verdict != NETWORK_DENY && is_hooked && request->port &&
        request->protocol == NETWORK_HTTP) {
        decision.verdict = NETWORK_DENY;
        decision.reason = NETWORK_MITM_REQUIRED;
    }
    rule = decision.rule;
    ret->is_allowed = decision.verdict == NETWORK_ALLOW;
    ret->verdict = network_verdict_words[decision.verdict];
    ret->reason = ret->is_allowed ? NULL : network_reason_word(decision.reason);
    ret->entry = rule ? host_pattern_format(&rule->pattern, rule->port) : NULL;
    if (rule) {
        free(ret->decided_by);
        ret->decided_by = alloc_str(rule->origin);
    }
    if (decision.verdict == NETWORK_ASK)
        ret->note = alloc_str("whoever is asked decides, where somebody is (--ask-for-approval)");
    else if (!ret->is_allowed)
        ret->note = network_policy_remedy(request, &decision);
    else if (is_hooked)
        ret->note = alloc_str("by https alone, and just the requests that a hook is about");
    else if (request->host->kind == NET_HOST_IS_NAME && !map->network_policy.allow_local_binding)
        ret->note = alloc_str("as long as all of its addresses are of the public internet");
}

/* What the kernel connects to the command's own localhost: also no address at all. */
static bool is_own_localhost(const struct net_host *host)
{
    return net_host_is_loopback(host) || str_eq(host->text, "0.0.0.0") || str_eq(host->text, "::");
}

int explain_host(const struct explained *about, const char *asked, struct explain_answer *ret,
                 struct err *err)
{
    const struct workspace *workspace = about->workspace;
    const enum network_access network = workspace->map.network;
    struct net_host host;
    struct network_request request = {
        .host = &host, .is_looked_into = true}; /* TLS is ended where the mode needs it */

    if (net_host_parse_port(asked, &host, &request.port, err))
        return err_wrap(err, "the host");
    request.protocol = network_protocol_of_port(request.port);
    *ret = (struct explain_answer){
        .is_allowed = true,
        .asked = net_host_format(host.text, request.port),
        .verdict = "allow",
        .decided_by =
            alloc_str(workspace->mode == SANDBOX_DISABLED ? "no sandbox" : workspace->network_from),
    };
    if (network_is_hosts(network))
        return 0;
    if (is_own_localhost(&host) &&
        network_policy_takes_port(&workspace->map.network_policy, request.port)) {
        ret->note = alloc_str("a server of the command's own, or else that of this machine");
        return 0;
    }
    if (is_own_localhost(&host)) {
        ret->note = alloc_str("the command's own localhost: servers that it starts are reached, "
                              "those of this machine are not");
        return 0;
    }
    if (network == NETWORK_PROXIED) {
        decide_host(&workspace->map, &request, ret);
        return 0;
    }
    ret->is_allowed = false;
    ret->verdict = "deny";
    ret->reason = network_reason_word(NETWORK_NOT_ALLOWED);
    ret->note = alloc_strf("the network is restricted; --allow-host %s opens it, --network enabled "
                           "every host",
                           ret->asked);
    return 0;
}

json_t *explain_answer_to_json(const struct explain_answer *answer)
{
    return json_pack("{s:s, s:o, s:o, s:s, s:b, s:o, s:o, s:o, s:s?}", "kind",
                     answer->canonical ? "path" : "host", "asked", json_lossy(answer->asked),
                     "canonical", json_lossy(answer->canonical), "verdict", answer->verdict,
                     "allowed", answer->is_allowed, "decided_by", json_lossy(answer->decided_by),
                     "entry", json_lossy(answer->entry), "note", json_lossy(answer->note), "reason",
                     answer->reason);
}

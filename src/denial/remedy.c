/* See remedy.h. A remedy is the one thing to type that helps: it opens the directory where a name is to
 * come, change or go, and the file alone where the file is written to; and it says so where there is
 * none. What an option of its own answers better than a path is in the table of hints: a line there is
 * all that such an option needs. */
#include "denial/remedy.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/git_names.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/believed.h"
#include "policy/narrow.h"
#include "policy/tool_cache.h"

#include <errno.h>
#include <string.h>

enum access denial_needed(enum denial_operation operation)
{
    return operation == DENIAL_WRITE ? ACCESS_WRITE : ACCESS_READ;
}

/* --- what an option of its own answers --- */

static const char of_packages[] = "Packages of the system are for you to change, outside of the "
                                  "sandbox.";

/* Of writing. To have one more place answered, add a line. */
static const struct hint {
    const char *place; /* that path and what is below */
    const char *remedy;
} hints[] = {
    {"/proc", "No option opens the kernel's own files to a command."},
    {"/sys", "No option opens the kernel's own files to a command."},
    {"/var/lib/apt", of_packages},
    {"/var/lib/dpkg", of_packages},
    {"/var/cache/apt", of_packages},
};

/* What the user has denied an option for something else does not open. NULL when none fits. */
static char *remedy_by_hint(const struct denial *denial, const struct access_map *access,
                            const char *path, const struct access_entry *entry)
{
    const char *preset = tool_cache_preset(path, access->home);

    if (denial->operation != DENIAL_WRITE || (entry && entry->access == ACCESS_DENY))
        return NULL;
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (path_is_within(path, hints[i].place))
            return alloc_str(hints[i].remedy);
    return preset ? alloc_strf("Give it a cache of its own: --with %s.", preset) : NULL;
}

/* --- files --- */

static char *allow(const char *flag, const char *path)
{
    return alloc_strf("Allow it with --%s %s.", flag, path);
}

/* In brackets: a full stop behind "--deny ." would make another folder of it. */
static char *take_back(const struct access_entry *entry)
{
    return alloc_strf("Take back what denies it (%s).", entry->origin);
}

/* What the user denies can be taken back; what Cordon denies by itself, nobody can. */
static bool is_closed(const struct access_entry *entry)
{
    return entry && entry->is_protected && entry->access == ACCESS_DENY;
}

static char *remedy_for_closed(const struct access_entry *entry)
{
    return alloc_strf("%s is for Cordon alone: no profile opens it to a command.", entry->path);
}

static char *remedy_for_read(const char *path, const struct access_entry *entry)
{
    if (is_closed(entry))
        return remedy_for_closed(entry);
    if (entry && str_eq(entry->path, path))
        return take_back(entry);
    return allow("readable", path);
}

/* A flag opens what is there, and this is not. */
static char *remedy_for_held_name(const struct access_entry *entry)
{
    bool is_repository = str_ends(entry->path, "/.git");

    return alloc_strf("%s is a protected name, which only you can make, outside of the sandbox%s. "
                      "If the command may change it then: --writable %s.",
                      entry->path, is_repository ? " (git init)" : "", entry->path);
}

static char *remedy_for_protected(const struct access_entry *entry)
{
    return alloc_strf("If the command may change it: --writable %s.", entry->path);
}

/* The profile allows writing there, and still it was refused: git takes a directory with a HEAD in it
 * for a repository, whose hooks it then runs for whoever works there. */
static char *remedy_for_repository(const struct access_entry *entry)
{
    return alloc_strf(
        "%s does not become a git repository by a command in the sandbox. Make it one "
        "outside (git init), or let the command make its repository in a directory "
        "below it (git init NAME).",
        entry->path);
}

/* What has to be writable: without a fact that says more, the directory of the path, because a new
 * name is the likeliest. */
static char *place_to_open(const struct denial *denial, const char *path)
{
    AUTO_FREE char *parent = path_parent(path);
    bool is_name =
        denial->operation == DENIAL_BIND || denial->flags & (DENIAL_CREATES | DENIAL_RENAMES);

    if (denial->flags & DENIAL_FOLDER)
        return alloc_str(path);
    if (denial->evidence == DENIAL_FACT)
        return is_name ? TAKE_PTR(parent) : alloc_str(path);
    return str_eq(parent, "/") ? alloc_str(path) : TAKE_PTR(parent);
}

/* Who has these has everything of the user's or of the system's: for one name nobody opens them. */
static bool is_too_much(const struct access_map *access, const char *place)
{
    static const char *const shared[] = {"/usr/share", "/usr/local", "/var/lib",  "/var/cache",
                                         "/var/log",   "/var/run",   "/var/spool"};
    static const char *const of_user[] = {".cache", ".config", ".local", ".local/share",
                                          ".local/state"};

    if (path_depth(place) < 2 || (access->home && path_is_within(access->home, place)))
        return true;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (str_eq(place, shared[i]))
            return true;
    for (size_t i = 0; access->home && i < sizeof of_user / sizeof *of_user; i++) {
        AUTO_FREE char *folder = path_join(access->home, of_user[i]);

        if (str_eq(place, folder))
            return true;
    }
    return false;
}

/* A program's own folder among the caches is opened whole: each of its files would be asked for
 * in a round of its own. "" when it is none. Caller frees. */
static char *cache_of(const struct access_map *access, const char *place)
{
    AUTO_FREE char *caches = access->home ? path_join(access->home, ".cache") : NULL;
    size_t len = caches ? strlen(caches) : 0;

    if (!caches || !path_is_within(place, caches) || str_eq(place, caches))
        return alloc_str("");
    return alloc_strn(place, len + 1 + strcspn(place + len + 1, "/"));
}

/* A directory that a person has made can be opened alone. Of a file that helps some programs, and not
 * those that write a new one and rename it. */
static char *remedy_without_place(const struct denial *denial, const char *path)
{
    if (denial->flags & DENIAL_FOLDER ||
        (denial->call && !str_eq(denial->call, "mkdir") && !str_eq(denial->call, "mkdirat")))
        return alloc_str("Let the command work somewhere else; or do this yourself, outside of the "
                         "sandbox.");
    return alloc_strf("Let the command write somewhere else; or make %s yourself, outside of the "
                      "sandbox, and allow it with --writable %s.",
                      path, path);
}

static char *remedy_for_believed(void)
{
    return alloc_str(
        "Other programs run or believe what is there: do this yourself, outside of the "
        "sandbox.");
}

/* "": it does not belong to Cordon. */
static const char *own_place(const struct access_map *access, const char *path)
{
    for (size_t i = 0; i < access->own.len; i++)
        if (path_is_within(path, access->own.items[i]))
            return access->own.items[i];
    return "";
}

/* --- git --- */

/* git "commit" opens it. Of the configuration too little to be said to help. */
static bool helps_to_commit(const struct denial *denial, const struct access_map *access,
                            const char *path)
{
    for (size_t i = 0; i < access->repositories.len; i++) {
        const char *dir = access->repositories.items[i];
        struct git_name name;

        if (!path_is_within(path, dir))
            continue;
        if (str_eq(path, dir))
            return denial->flags & DENIAL_CREATES;
        name = git_name_of(path + strlen(dir) + 1, false);
        return name.kind != GIT_CLOSED && name.kind != GIT_CONFIG &&
               !str_eq(name.rest, "config.lock");
    }
    return false;
}

static char *remedy_by_commit(void)
{
    return alloc_str(
        "Allow it with --git commit, or in config.toml under [permissions.NAME]: git = "
        "\"commit\".");
}

/* What stays closed. */
static char *remedy_for_git(void)
{
    return alloc_str(
        "git runs what is written there, or is led by it, also outside of the sandbox: "
        "do this yourself, outside.");
}

static char *remedy_for_write(const struct denial *denial, const struct access_map *access,
                              const char *path, const struct access_entry *entry)
{
    AUTO_FREE char *place = place_to_open(denial, path);
    AUTO_FREE char *cache = cache_of(access, place);

    if (is_closed(entry))
        return remedy_for_closed(entry);
    if (helps_to_commit(denial, access, path))
        return remedy_by_commit();
    if (entry && entry->allows_commits)
        return remedy_for_git();
    if (entry && entry->is_protected && entry->access != ACCESS_WRITE)
        return entry->kind == ACCESS_MISSING && denial->evidence == DENIAL_FACT
                   ? remedy_for_held_name(entry)
                   : remedy_for_protected(entry);
    if (entry && entry->access == ACCESS_DENY && path_is_within(entry->path, place))
        return take_back(entry);
    if (entry && entry->access == ACCESS_WRITE && denial->flags & DENIAL_FOLDER)
        return alloc_strf("`cordon explain` shows what the profile allows below %s.", path);
    if (entry && entry->access == ACCESS_WRITE && denial->evidence == DENIAL_FACT)
        return remedy_for_repository(entry);
    /* A root above the deciding entry would change nothing: the longer path decides. */
    if (entry && path_is_within(entry->path, place) && !is_too_much(access, entry->path))
        return allow("writable", entry->path);
    if (!place_may_be_opened(path, access->home))
        return remedy_for_believed();
    if (is_too_much(access, place))
        return remedy_without_place(denial, path);
    if (!place_may_be_opened(place, access->home))
        return remedy_for_believed();
    return allow("writable", *cache ? cache : place);
}

static char *remedy_for_client(void)
{
    return alloc_str(
        "The client has a sandbox of its own, which does not allow it: allow it there, "
        "or set client_sandbox = \"ignore\" under [mcp] in config.toml.");
}

/* Of a rename or link the name that is refused may be the other one. */
static const char *decisive_path(const struct denial *denial, const struct access_map *access,
                                 const struct access_entry *entry)
{
    if (!denial->other_path)
        return denial->path;
    if (entry && path_is_within(denial->path, entry->path) !=
                     path_is_within(denial->other_path, entry->path))
        return path_is_within(denial->path, entry->path) ? denial->path : denial->other_path;
    return access_map_check(access, denial->path) < ACCESS_WRITE ? denial->path
                                                                 : denial->other_path;
}

static void decide_file(struct denial *denial, const struct access_map *access,
                        const struct access_entry *entry)
{
    const char *path = decisive_path(denial, access, entry);
    bool is_allowed = path && access_map_check(access, path) >= denial_needed(denial->operation);

    if (!path) {
        denial->remedy = alloc_str("`cordon explain` shows what the profile allows.");
        return;
    }
    if (is_allowed && denial->evidence != DENIAL_FACT) {
        denial->source = DENIAL_BY_HOST;
        denial->remedy = alloc_strf("The sandbox does not deny this for %s: look at the "
                                    "permissions, owner or mount of the file itself.",
                                    path);
        return;
    }
    if (!entry)
        entry = access_map_find(access, path);
    denial->source = DENIAL_BY_SANDBOX;
    denial->origin = alloc_str(entry ? entry->origin : "no entry of the profile allows it");
    if (denial->operation == DENIAL_WRITE && *own_place(access, path))
        denial->remedy =
            alloc_strf("%s belongs to Cordon, which believes what is there outside of every "
                       "sandbox: change it yourself.",
                       own_place(access, path));
    else if (entry && str_starts(entry->origin, PROFILE_OF_CLIENT))
        denial->remedy = remedy_for_client();
    else
        denial->remedy = remedy_by_hint(denial, access, path, entry);
    if (!denial->remedy)
        denial->remedy = denial->operation == DENIAL_WRITE
                             ? remedy_for_write(denial, access, path, entry)
                             : remedy_for_read(path, entry);
}

/* --- the network --- */

enum { HTTPS_PORT = 443 };

/* The guard tells of one that is refused only where the host has a server at that port, or another command, whose is told by
 * the name. */
static char *remedy_of_own_port(const struct denial *denial)
{
    if (denial->evidence != DENIAL_FACT || denial->error != ECONNREFUSED || !denial->host)
        return NULL;
    if (str_eq(denial->host, "localhost"))
        return alloc_strf("Another command has a server at that port, on a localhost of its own: "
                          "publish it there (--publish %u:%u, or `cordon publish`), and let this "
                          "one reach it with --host-port %u.",
                          denial->port, denial->port, denial->port);
    if (!str_eq(denial->host, "127.0.0.1"))
        return NULL;
    return alloc_strf("The command has no server at that port, and this machine has: let it reach "
                      "that with --host-port %u.",
                      denial->port);
}

/* Where it is no rule. */
static const char *decided_by(enum network_reason reason)
{
    static const char *const words[NETWORK_REASONS] = {
        [NETWORK_NOT_ALLOWED_LOCAL] = "no rule names its address",
        [NETWORK_METHOD_NOT_ALLOWED] = "the mode of the network is limited",
        [NETWORK_MITM_REQUIRED] = "the network's hooks, or its mode",
        [NETWORK_MITM_HOOK_DENIED] = "the network's hooks",
    };

    return words[reason] ? words[reason] : "no rule allows it";
}

/* What the proxy has said counts. Where only the words of the command are known, it is what it would say. */
static void decide_by_proxy(struct denial *denial, const struct access_map *access)
{
    struct net_host host;
    struct network_request request = {.host = &host, .port = (uint16_t)denial->port};
    struct network_decision decision;
    enum network_reason told =
        denial->reason ? network_reason_parse(denial->reason) : NETWORK_REASON_NONE;
    struct err ignored;

    if (denial->flags & DENIAL_FAILED) {
        denial->source = DENIAL_BY_HOST;
        denial->remedy = alloc_strf("The sandbox lets it through: %s.", denial->reason);
        return;
    }
    denial->source = DENIAL_BY_SANDBOX;
    denial->origin = alloc_str("network proxied");
    denial->remedy = remedy_of_own_port(denial);
    if (denial->remedy)
        return;
    if (told == NETWORK_REASONS)
        denial->remedy = alloc_strf("No option changes that: %s.", denial->reason);
    else if (denial->evidence == DENIAL_FACT && denial->host && !told)
        denial->remedy = alloc_str(
            denial->port == HTTPS_PORT
                ? "HTTP/3 is over UDP, which does not go through the proxy: what goes on with TCP "
                  "needs nothing, what insists the whole network (--network enabled)."
                : "Only TCP and looking names up go through the proxy: allow the whole network "
                  "with --network enabled.");
    else if (!denial->host || net_host_parse(denial->host, strlen(denial->host), &host, &ignored))
        denial->remedy = alloc_str("Allow the host that it needs with --allow-host HOST.");
    if (denial->remedy)
        return;
    request.protocol = network_protocol_of_port(request.port);
    network_policy_decide(&access->network_policy, &request, &decision);
    if (told && told != decision.reason)
        decision = (struct network_decision){.verdict = NETWORK_DENY, .reason = told};
    denial->remedy = network_policy_remedy(&request, &decision);
    if (denial->remedy) {
        free(denial->origin);
        denial->origin =
            alloc_str(decision.rule ? decision.rule->origin : decided_by(decision.reason));
    } else if (decision.verdict == NETWORK_ALLOW) {
        denial->source = DENIAL_BY_HOST;
        denial->remedy = alloc_str("The sandbox lets it through: look at the network of the host.");
    } else {
        denial->remedy = alloc_str("No option opens it.");
    }
}

/* A name server that was not reached says nothing of the name. */
static char *remedy_for_restricted(const struct denial *denial)
{
    AUTO_FREE char *name = NULL;
    struct net_host host;
    struct err ignored;

    if (!denial->host || net_host_parse(denial->host, strlen(denial->host), &host, &ignored))
        return alloc_str("Allow it with --network enabled.");
    if (denial->port == DNS_PORT)
        return alloc_str("A name was looked up: allow its host with --allow-host HOST, or every "
                         "host with --network enabled.");
    if (net_host_is_loopback(&host))
        return alloc_str("Allow it with --network enabled.");
    name = net_host_format(host.text, (uint16_t)denial->port);
    return alloc_strf("Allow it with --allow-host %s, or every host with --network enabled.", name);
}

static void decide_network(struct denial *denial, const struct access_map *access)
{
    bool is_socket = denial->flags & DENIAL_SOCKET && denial->path;
    bool is_by_path = is_socket && *denial->path == '/';
    bool is_abstract = is_socket && *denial->path == '@';

    if (network_is_hosts(access->network) && !is_by_path && !is_abstract) {
        denial->source = DENIAL_BY_HOST;
        denial->remedy =
            alloc_str("The sandbox does not deny the network: look at the network of the host.");
        return;
    }
    if (access->network == NETWORK_PROXIED && !is_socket) {
        decide_by_proxy(denial, access);
        return;
    }
    denial->source = DENIAL_BY_SANDBOX;
    denial->origin = alloc_strf("network %s", network_access_name(access->network));
    denial->remedy = is_socket ? NULL : remedy_of_own_port(denial);
    if (denial->remedy)
        return;
    denial->remedy = is_by_path ? alloc_strf("Allow it with --socket %s.", denial->path)
                     : is_abstract && network_is_hosts(access->network)
                         ? alloc_str("Allow it with --network host.")
                     : access->is_narrowed ? remedy_for_client()
                                           : remedy_for_restricted(denial);
}

/* The name of a socket is a file. */
static void decide_bind(struct denial *denial, const struct access_map *access,
                        const struct access_entry *entry)
{
    if (!(denial->flags & DENIAL_SOCKET) || !denial->path || *denial->path != '/') {
        decide_network(denial, access);
        return;
    }
    if (!entry)
        entry = access_map_find(access, denial->path);
    denial->source = DENIAL_BY_SANDBOX;
    denial->origin = alloc_str(entry ? entry->origin : "no entry of the profile allows it");
    denial->remedy = remedy_for_write(denial, access, denial->path, entry);
}

void denial_decide(struct denial *denial, const struct access_map *access,
                   const struct access_entry *entry)
{
    switch (denial->operation) {
    case DENIAL_READ:
    case DENIAL_WRITE:
    case DENIAL_EXECUTE:
        decide_file(denial, access, entry);
        break;
    case DENIAL_CONNECT:
        decide_network(denial, access);
        break;
    case DENIAL_BIND:
        decide_bind(denial, access, entry);
        break;
    case DENIAL_SIGNAL:
        denial->source = DENIAL_BY_SANDBOX;
        denial->origin = alloc_str("the sandbox");
        denial->remedy = alloc_str("A command reaches only processes that it started itself.");
        break;
    case DENIAL_OTHER:
        break;
    }
}

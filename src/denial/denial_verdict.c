/* See denial_verdict.h. A line names paths, seldom the operation. Where the words leave it open the
 * profile fills in: what may be read but not written was probably written to, what may not even be
 * read was denied for whatever was tried. The first path that the profile denies is taken; when it
 * denies none of them the host does, and saying so is worth as much: nobody should loosen a sandbox
 * that is not in the way. */
#include "denial/denial_verdict.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINKS_MAX 16 /* symlinks followed in one path */

void denial_done(struct denial *denial)
{
    free(denial->path);
    free(denial->host);
    free(denial->origin);
    free(denial->remedy);
}

static const struct access_link *link_in(const struct access_map *access, const char *path)
{
    for (size_t i = 0; i < access->links_len; i++)
        if (path_is_within(path, access->links[i].path))
            return &access->links[i];
    return NULL;
}

/* `path` as the map knows it: absolute, clean, through the symlinks that it knows. */
static char *resolve(const struct access_map *access, const char *cwd, const char *path)
{
    char *clean = path_clean(cwd ? cwd : "/", path);

    for (int i = 0; i < LINKS_MAX; i++) {
        const struct access_link *link = link_in(access, clean);
        AUTO_FREE char *parent = NULL;
        AUTO_FREE char *joined = NULL;

        if (!link)
            break;
        parent = path_parent(link->path);
        joined = alloc_strf("%s/%s", link->target, clean + strlen(link->path));
        free(clean);
        clean = path_clean(parent, joined);
    }
    return clean;
}

static enum access needed(enum denial_operation operation)
{
    return operation == DENIAL_WRITE ? ACCESS_WRITE : ACCESS_READ;
}

static enum denial_operation operation_of(enum denial_hint hint, enum access access)
{
    switch (hint) {
    case DENIAL_HINT_READ:
        return DENIAL_READ;
    case DENIAL_HINT_WRITE:
        return DENIAL_WRITE;
    case DENIAL_HINT_EXECUTE:
        return DENIAL_EXECUTE;
    case DENIAL_HINT_CONNECT:
        return DENIAL_CONNECT;
    case DENIAL_HINT_NONE:
        break;
    }
    return access == ACCESS_DENY ? DENIAL_READ : DENIAL_WRITE;
}

static char *remedy_for_read(const char *path, const struct access_entry *entry)
{
    if (entry && str_eq(entry->path, path))
        return alloc_strf("Take back what denies it: %s.", entry->origin);
    return alloc_strf("Allow it with --readable %s, or in config.toml under "
                      "[permissions.NAME.filesystem]: \"%s\" = \"read\".",
                      path, path);
}

static char *remedy_for_write(const char *path, const struct access_entry *entry)
{
    AUTO_FREE char *parent = path_parent(path);
    const char *root = str_eq(parent, "/") ? path : parent;

    if (entry && entry->is_protected)
        return alloc_strf("%s is a protected name. If the command may change it: "
                          "--writable %s, or in config.toml under "
                          "[permissions.NAME.filesystem]: \"%s\" = \"write\".",
                          entry->path, entry->path, entry->path);
    if (entry && entry->access == ACCESS_DENY && path_is_within(entry->path, root))
        return alloc_strf("Take back what denies it: %s.", entry->origin);
    /* A root above the deciding entry would change nothing: the longer path decides. */
    if (entry && path_is_within(entry->path, root))
        root = entry->path;
    return alloc_strf("Allow it with --writable %s, or in config.toml under "
                      "[permissions.NAME.filesystem]: \"%s\" = \"write\".",
                      root, root);
}

static char *remedy_for_host(const char *path)
{
    return alloc_strf("The sandbox does not deny this for %s: look at the permissions, owner or "
                      "mount of the file itself.",
                      path);
}

static char *remedy_for_network(enum network_access network)
{
    switch (network) {
    case NETWORK_RESTRICTED:
        return alloc_str("Allow it with --network enabled, or in config.toml under "
                         "[permissions.NAME.network]: enabled = true.");
    case NETWORK_PROXIED:
        return alloc_str("Only the managed proxy leads out: use it (HTTPS_PROXY is set), or allow "
                         "the whole network with --network enabled.");
    case NETWORK_ENABLED:
        break;
    }
    return alloc_str("The sandbox does not deny the network: look at the network of the host.");
}

/* A host, or a socket of the host by its path: the network decides about both. */
static void denial_decide_network(struct denial *denial, const struct access_map *access)
{
    denial->source = DENIAL_BY_HOST;
    denial->remedy = remedy_for_network(access->network);
    if (access->network == NETWORK_ENABLED)
        return;
    denial->source = DENIAL_BY_SANDBOX;
    denial->origin = alloc_strf("network %s", network_access_name(access->network));
}

static void denial_decide(struct denial *denial, const struct access_map *access)
{
    const struct access_entry *entry;

    if (denial->operation == DENIAL_CONNECT) {
        denial_decide_network(denial, access);
        return;
    }
    entry = access_map_find(access, denial->path);
    if (access_map_check(access, denial->path) >= needed(denial->operation)) {
        denial->source = DENIAL_BY_HOST;
        denial->remedy = remedy_for_host(denial->path);
        return;
    }
    denial->source = DENIAL_BY_SANDBOX;
    denial->origin = alloc_str(entry ? entry->origin : "no entry of the profile allows it");
    denial->remedy = denial->operation == DENIAL_WRITE ? remedy_for_write(denial->path, entry)
                                                       : remedy_for_read(denial->path, entry);
}

bool denial_verdict_path(enum denial_operation operation, const char *path, int error,
                         const struct access_map *access, const char *cwd, struct denial *ret)
{
    AUTO_FREE char *resolved = resolve(access, cwd, path);

    if (access_map_check(access, resolved) >= needed(operation))
        return false;
    *ret = (struct denial){
        .operation = operation,
        .evidence = DENIAL_FACT,
        .path = TAKE_PTR(resolved),
        .error = error,
    };
    denial_decide(ret, access);
    return true;
}

/* The first path of the list that the profile denies; NULL when it denies none. Caller frees. */
static char *first_denied(const struct strv *paths, const struct denial_clue *clue,
                          const struct access_map *access, const char *cwd)
{
    for (size_t i = 0; i < paths->len; i++) {
        AUTO_FREE char *path = resolve(access, cwd, paths->items[i]);
        enum access verdict = access_map_check(access, path);

        if (verdict < needed(operation_of(clue->hint, verdict)))
            return TAKE_PTR(path);
    }
    return NULL;
}

/* The path that the line is about; caller frees. NULL when it names none. A single word is a file
 * name only if the profile bears it out: it may as well be the name of a system call. */
static char *path_of(const struct denial_clue *clue, const struct access_map *access,
                     const char *cwd)
{
    char *path = first_denied(&clue->paths, clue, access, cwd);

    if (!path && clue->error != EPERM)
        path = first_denied(&clue->names, clue, access, cwd);
    if (!path && clue->paths.len)
        path = resolve(access, cwd, clue->paths.items[0]);
    return path;
}

static bool verdict_file(const struct denial_clue *clue, const struct access_map *access,
                         const char *cwd, struct denial *ret)
{
    AUTO_FREE char *path = path_of(clue, access, cwd);
    struct denial denial = {.evidence = DENIAL_HEURISTIC, .error = clue->error};

    if (!path) {
        if (clue->needs_proof)
            return false;
        denial.operation = clue->hint == DENIAL_HINT_WRITE ? DENIAL_WRITE : DENIAL_OTHER;
        denial.source = DENIAL_BY_UNKNOWN;
        denial.remedy = alloc_str("The output does not say what was refused; `cordon explain` "
                                  "shows what the profile allows.");
        *ret = denial;
        return true;
    }
    denial.operation = operation_of(clue->hint, access_map_check(access, path));
    denial.path = TAKE_PTR(path);
    denial_decide(&denial, access);
    if (clue->needs_proof && denial.source != DENIAL_BY_SANDBOX) {
        denial_done(&denial);
        return false;
    }
    *ret = denial;
    return true;
}

static bool verdict_network(const struct denial_clue *clue, const struct access_map *access,
                            struct denial *ret)
{
    *ret = (struct denial){
        .operation = DENIAL_CONNECT,
        .evidence = DENIAL_HEURISTIC,
        .host = alloc_str(clue->host),
        .error = clue->error,
    };
    denial_decide(ret, access);
    return true;
}

bool denial_verdict(const struct denial_clue *clue, const struct access_map *access,
                    const char *cwd, struct denial *ret)
{
    if (clue->topic == DENIAL_TOPIC_NETWORK)
        return verdict_network(clue, access, ret);
    return verdict_file(clue, access, cwd, ret);
}

/* See denial.h. Facts come from the end of the command: the launcher's reason for not executing it,
 * a death by SIGSYS. Everything else is read from the output of a command that failed, line by
 * line (denial_line.h), and labelled as the guess that it is.
 *
 * What a line names is put to the access map. A line names paths, seldom the operation; where the
 * words leave it open the profile fills in: what may be read but not written was probably written
 * to, what may not even be read was denied for whatever was tried. The first path that the profile
 * denies is taken; when it denies none of them the host does, and saying so is worth as much: a
 * sandbox that is not in the way should not be loosened. */
#include "denial/denial.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "denial/denial_line.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LINKS_MAX 16 /* symlinks followed in one path */

/* Rust programs print the reason some lines below the path:
 *
 *     error: failed to create directory `/x/target`
 *
 *     Caused by:
 *       Read-only file system (os error 30)
 */
#define LOOK_BACK 4 /* lines */

/* --- what the profile has to do with it --- */

static void denial_done(struct denial *denial)
{
    free(denial->path);
    free(denial->host);
    free(denial->origin);
    free(denial->remedy);
}

/* `path` as the map knows it: absolute, clean, through the symlinks that it knows. */
static char *resolve(const struct access_map *access, const char *cwd, const char *path)
{
    char *clean = path_clean(cwd ? cwd : "/", path);

    for (int i = 0; i < LINKS_MAX; i++) {
        const struct access_link *link = NULL;
        AUTO_FREE char *parent = NULL;
        AUTO_FREE char *joined = NULL;

        for (size_t at = 0; !link && at < access->links_len; at++)
            if (path_is_within(clean, access->links[at].path))
                link = &access->links[at];
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
    static const enum denial_operation operations[] = {
        [DENIAL_HINT_READ] = DENIAL_READ,
        [DENIAL_HINT_WRITE] = DENIAL_WRITE,
        [DENIAL_HINT_EXECUTE] = DENIAL_EXECUTE,
        [DENIAL_HINT_CONNECT] = DENIAL_CONNECT,
    };

    if (hint == DENIAL_HINT_NONE)
        return access == ACCESS_DENY ? DENIAL_READ : DENIAL_WRITE;
    return operations[hint];
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

/* A host, or a socket of the host by its path: the network decides about both. */
static void denial_decide_network(struct denial *denial, const struct access_map *access)
{
    static const char *const remedies[] = {
        [NETWORK_RESTRICTED] = "Allow it with --network enabled, or in config.toml under "
                               "[permissions.NAME.network]: enabled = true.",
        [NETWORK_PROXIED] = "Only the managed proxy leads out: use it (HTTPS_PROXY is set), or "
                            "allow the whole network with --network enabled.",
        [NETWORK_ENABLED] =
            "The sandbox does not deny the network: look at the network of the host.",
    };

    denial->source = DENIAL_BY_HOST;
    denial->remedy = alloc_str(remedies[access->network]);
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
        denial->remedy = alloc_strf("The sandbox does not deny this for %s: look at the "
                                    "permissions, owner or mount of the file itself.",
                                    denial->path);
        return;
    }
    denial->source = DENIAL_BY_SANDBOX;
    denial->origin = alloc_str(entry ? entry->origin : "no entry of the profile allows it");
    denial->remedy = denial->operation == DENIAL_WRITE ? remedy_for_write(denial->path, entry)
                                                       : remedy_for_read(denial->path, entry);
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

/* What a line speaks of; false when it is not worth telling (weak words that the profile does not
 * bear out). `ret` is owned by the caller then: denial_done(). */
static bool denial_verdict(const struct denial_clue *clue, const struct access_map *access,
                           const char *cwd, struct denial *ret)
{
    if (clue->topic != DENIAL_TOPIC_NETWORK)
        return verdict_file(clue, access, cwd, ret);
    *ret = (struct denial){
        .operation = DENIAL_CONNECT,
        .evidence = DENIAL_HEURISTIC,
        .host = alloc_str(clue->host),
        .error = clue->error,
    };
    denial_decide(ret, access);
    return true;
}

/* --- facts and lines --- */

const char *denial_operation_name(enum denial_operation operation)
{
    static const char *const names[] = {
        [DENIAL_READ] = "read",       [DENIAL_WRITE] = "write", [DENIAL_EXECUTE] = "execute",
        [DENIAL_CONNECT] = "connect", [DENIAL_OTHER] = "other",
    };

    return names[operation];
}

const char *denial_evidence_name(enum denial_evidence evidence)
{
    return evidence == DENIAL_FACT ? "fact" : "heuristic";
}

const char *denial_source_name(enum denial_source source)
{
    static const char *const names[] = {
        [DENIAL_BY_SANDBOX] = "sandbox",
        [DENIAL_BY_HOST] = "host",
        [DENIAL_BY_UNKNOWN] = "unknown",
    };

    return names[source];
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && str_eq(a, b));
}

/* Takes `denial` over. The same thing refused twice is one denial. */
static void denials_push(struct denials *denials, struct denial *denial)
{
    bool known = denials->len >= DENIALS_MAX;

    for (size_t i = 0; i < denials->len; i++) {
        const struct denial *other = &denials->items[i];

        known |= other->operation == denial->operation && is_same(other->path, denial->path) &&
                 is_same(other->host, denial->host);
    }
    if (known) {
        denial_done(denial);
        return;
    }
    denials->items = alloc_grow(denials->items, denials->len, &denials->cap, sizeof *denial);
    denials->items[denials->len++] = *denial;
}

void denials_done(struct denials *denials)
{
    for (size_t i = 0; i < denials->len; i++)
        denial_done(&denials->items[i]);
    free(denials->items);
    *denials = (struct denials){0};
}

bool denials_by_sandbox(const struct denials *denials)
{
    for (size_t i = 0; i < denials->len; i++)
        if (denials->items[i].source != DENIAL_BY_HOST)
            return true;
    return false;
}

/* A program or directory that the profile hides looks missing inside: ENOENT counts as well. */
static void find_in_failure(const struct denial_input *input, struct denials *ret)
{
    const struct process_end *end = input->end;
    bool is_cwd = end->stage == LAUNCH_STAGE_CWD;
    const char *path = is_cwd ? input->cwd : input->program;
    struct denial denial = {
        .operation = is_cwd ? DENIAL_READ : DENIAL_EXECUTE,
        .evidence = DENIAL_FACT,
        .error = end->failure.sys,
    };

    if (!input->access || !path || end->stage == LAUNCH_STAGE_SANDBOX || !strchr(path, '/'))
        return;
    denial.path = resolve(input->access, input->cwd, path);
    if (access_map_check(input->access, denial.path) >= needed(denial.operation)) {
        free(denial.path);
        return;
    }
    denial_decide(&denial, input->access);
    denials_push(ret, &denial);
}

/* seccomp ends a process that calls by a foreign system call table with SIGSYS. A shell makes
 * 128 + SIGSYS of it. */
static void find_in_signal(const struct process_end *end, struct denials *ret)
{
    bool by_signal = end->how == PROCESS_SIGNALED && end->signal == SIGSYS;
    bool by_code = end->how == PROCESS_EXITED && end->code == 128 + SIGSYS;
    struct denial denial = {
        .operation = DENIAL_OTHER,
        .evidence = by_signal ? DENIAL_FACT : DENIAL_HEURISTIC,
        .source = DENIAL_BY_SANDBOX,
    };

    if (!by_signal && !by_code)
        return;
    denial.origin = alloc_str("the seccomp filter");
    denial.remedy = alloc_str("The command used a system call that no profile allows.");
    denials_push(ret, &denial);
}

/* Paths of the lines above, the nearest first. */
static void look_back(const char *text, const char *line, struct strv *paths)
{
    for (int i = 0; i < LOOK_BACK && !paths->len && line > text; i++) {
        for (line--; line > text && line[-1] != '\n'; line--)
            continue;
        denial_line_quoted(line, strcspn(line, "\n"), paths);
    }
}

static void find_in_line(const struct denial_input *input, const char *text, const char *line,
                         size_t len, struct denials *ret)
{
    struct denial_clue clue;
    struct denial denial;

    if (!denial_line_read(line, len, &clue))
        return;
    if (clue.is_rust && !clue.paths.len)
        look_back(text, line, &clue.paths);
    /* What a shell cannot execute it reports with this code (POSIX XCU 2.8.2). */
    if (input->end->how == PROCESS_EXITED && input->end->code == 126 && clue.error == EACCES &&
        clue.hint == DENIAL_HINT_NONE)
        clue.hint = DENIAL_HINT_EXECUTE;
    if (denial_verdict(&clue, input->access, input->cwd, &denial))
        denials_push(ret, &denial);
    denial_clue_done(&clue);
}

static void find_in_text(const struct denial_input *input, const char *text, struct denials *ret)
{
    for (const char *line = text; *line && ret->len < DENIALS_MAX;) {
        size_t len = strcspn(line, "\n");

        find_in_line(input, text, line, len, ret);
        line += len + (line[len] == '\n');
    }
}

void denials_find(const struct denial_input *input, struct denials *ret)
{
    const struct access_map *access = input->access;

    if (input->end->how == PROCESS_EXITED && input->end->code == 0)
        return;
    if (input->end->how == PROCESS_FAILED_TO_START) {
        find_in_failure(input, ret);
        return;
    }
    /* Nothing is denied to whom everything is allowed. */
    if (!access || (access_map_full_write(access) && access->network == NETWORK_ENABLED))
        return;
    find_in_signal(input->end, ret);
    /* stderr first: that is where reasons stand */
    if (input->texts[STREAM_STDERR])
        find_in_text(input, input->texts[STREAM_STDERR], ret);
    if (input->texts[STREAM_STDOUT])
        find_in_text(input, input->texts[STREAM_STDOUT], ret);
}

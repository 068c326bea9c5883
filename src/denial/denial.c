/* See denial.h. Facts come from the guard, and from the launcher's reason for not executing a command.
 * Everything else (a death by SIGSYS, the output of a command that failed, line by line, see
 * denial_line.h) is labelled as the guess that it is.
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
#include "denial/denial_list.h"
#include "denial/remedy.h"
#include "policy/network_hook.h"

#include <ctype.h>
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

/* The first path of the list that the profile denies; NULL when it denies none. Caller frees. */
static char *first_denied(const struct strv *paths, const struct denial_clue *clue,
                          const struct access_map *access, const char *cwd)
{
    for (size_t i = 0; i < paths->len; i++) {
        AUTO_FREE char *path = resolve(access, cwd, paths->items[i]);
        enum access verdict = access_map_check(access, path);

        if (verdict < denial_needed(operation_of(clue->hint, verdict)))
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
    denial_decide(&denial, access, NULL);
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
    denial_decide(ret, access, NULL);
    return true;
}

/* --- facts and lines --- */

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
    if (access_map_check(input->access, denial.path) >= denial_needed(denial.operation)) {
        free(denial.path);
        return;
    }
    denial_decide(&denial, input->access, NULL);
    denials_push(ret, &denial);
}

/* seccomp ends a process that calls by a foreign system call table with SIGSYS. So may a filter of its
 * own, and kill(2): who did it is not to be seen. (That a shell ends with 128 + SIGSYS says even less.) */
static void find_in_signal(const struct process_end *end, struct denials *ret)
{
    struct denial denial = {
        .operation = DENIAL_OTHER,
        .evidence = DENIAL_HEURISTIC,
        .source = DENIAL_BY_SANDBOX,
    };

    if (end->how != PROCESS_SIGNALED || end->signal != SIGSYS)
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

/* The fact is of the same path; or of the way to it, beyond which nobody sees. */
static bool is_told(const struct denial *fact, const struct denial *denial)
{
    if (!fact->path)
        return false;
    return fact->operation == DENIAL_READ ? path_is_within(denial->path, fact->path)
                                          : str_eq(fact->path, denial->path);
}

/* What the guard knows nothing of: a path that the profile denies is covered inside. */
static bool is_beside_facts(const struct denial *denial, const struct denial_input *input)
{
    if (denial->operation == DENIAL_CONNECT || !denial->path ||
        access_map_check(input->access, denial->path) != ACCESS_DENY)
        return false;
    for (size_t i = 0; i < input->facts->len; i++)
        if (is_told(&input->facts->items[i], denial))
            return false;
    return true;
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
    if (denial_verdict(&clue, input->access, input->cwd, &denial)) {
        if (!input->facts || is_beside_facts(&denial, input))
            denials_push(ret, &denial);
        else
            denial_done(&denial);
    }
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

/* --- what the words add to facts --- */

/* The first host that could not be resolved, as the words have it; NULL. Caller frees. */
static char *unresolved_host(const char *text)
{
    for (const char *line = text; line && *line;) {
        size_t len = strcspn(line, "\n");
        struct denial_clue clue;
        char *host = NULL;

        if (denial_line_read(line, len, &clue)) {
            if (clue.topic == DENIAL_TOPIC_NETWORK)
                host = TAKE_PTR(clue.host);
            denial_clue_done(&clue);
        }
        if (host)
            return host;
        line += len + (line[len] == '\n');
    }
    return NULL;
}

/* The guard saw that a name server was not reached, and not which name was looked for. */
static void name_hosts(const struct denial_input *input, struct denials *ret)
{
    AUTO_FREE char *host = NULL;

    for (int i = STREAM_COUNT; i-- && !host;) /* stderr first */
        host = unresolved_host(input->texts[i]);
    if (!host)
        return;
    for (size_t i = 0; i < ret->len; i++) {
        struct denial *denial = &ret->items[i];

        if (denial->operation == DENIAL_CONNECT && denial->host && denial->port == DNS_PORT) {
            free(denial->host);
            denial->host = alloc_str(host);
            denial->port = 0;
            free(denial->origin);
            free(denial->remedy);
            denial_decide(denial, input->access, NULL);
        }
    }
    denials_merge(ret); /* several servers were asked for it */
}

/* The value of a variable: [SCHEME://][USER[:PASSWORD]@]HOST[:PORT][/...] */
static bool names(const char *proxy, const struct denial *denial)
{
    const char *scheme = strstr(proxy, "://");
    const char *start = scheme ? scheme + strlen("://") : proxy;
    AUTO_FREE char *text = alloc_strn(start, strcspn(start, "/"));
    const char *user = strrchr(text, '@');
    struct net_host host, other;
    struct err ignored;
    uint16_t port;

    if (net_host_parse_port(user ? user + 1 : text, &host, &port, &ignored) ||
        net_host_parse(denial->host, strlen(denial->host), &other, &ignored))
        return false;
    return (!denial->port || denial->port == port) &&
           (str_eq(host.text, other.text) ||
            (net_host_is_loopback(&host) && net_host_is_loopback(&other)));
}

/* The host's own proxy leads everywhere, so it is not to be opened: with --allow-host it is gone through by ours. */
static void keep_proxies_closed(const struct denial_input *input, struct denials *ret)
{
    for (size_t i = 0; i < ret->len; i++) {
        struct denial *denial = &ret->items[i];

        if (denial->operation != DENIAL_CONNECT || !denial->host ||
            input->access->network != NETWORK_RESTRICTED)
            continue;
        for (size_t k = 0; k < input->proxies->len; k++) {
            if (!names(input->proxies->items[k], denial))
                continue;
            free(denial->remedy);
            denial->remedy = alloc_str("It is the proxy that a variable names, and leads "
                                       "everywhere: allow the host itself with --allow-host HOST, "
                                       "which is reached by way of it.");
            break;
        }
    }
}

/* --- what was tried in passing --- */

static bool is_silent(const struct denial_input *input)
{
    for (int k = 0; k < STREAM_COUNT; k++)
        if (input->texts[k] && *input->texts[k])
            return false;
    return true;
}

static bool is_git(const char *program)
{
    return program && str_eq(path_name(program), "git");
}

/* Programs that try it whenever they run, and go on without it. */
static bool is_habit(const struct denial *denial, const struct denial_input *input)
{
    static const char *const parts[] = {"/__pycache__", "/.npm/_logs/", NULL};

    if (denial->flags & DENIAL_SOCKET)
        return *denial->path != '/' && *denial->path != '@'; /* a datagram, to the system's log */
    for (const char *const *part = parts; *part; part++)
        if (strstr(denial->path, *part))
            return true;
    /* git refreshes its index in passing. When it needs it, it ends with 128; git-stash with 1, and
     * without a word. */
    return str_ends(denial->path, "/.git/index.lock") && input->end->code != 128 &&
           !(is_git(input->program) && is_silent(input));
}

/* The text has the path, and not only one that is longer. */
static bool has_path(const char *text, const char *path)
{
    while ((text = strstr(text, path))) {
        text += strlen(path);
        if (*text != '/' && *text != '_' && *text != '-' && !isalnum((unsigned char)*text))
            return true;
    }
    return false;
}

/* Such things, and questions whether something may be written, are the reason of a failure only if
 * the command says so. */
static void set_aside(const struct denial_input *input, struct denials *ret)
{
    for (size_t i = 0; i < ret->len; i++) {
        struct denial *denial = &ret->items[i];
        bool is_named = false;

        if (!denial->path || !(denial->flags & DENIAL_PROBE || is_habit(denial, input)))
            continue;
        for (int k = 0; k < STREAM_COUNT; k++)
            is_named |= input->texts[k] && has_path(input->texts[k], denial->path);
        if (!is_named)
            denial->flags |= DENIAL_ASIDE;
    }
}

/* The text has the name, and not only a longer one. */
static bool has_name(const char *text, const char *name)
{
    const char *at = text;

    for (; at && (at = strstr(at, name)); at += strlen(name)) {
        const char before = at == text ? ' ' : at[-1], behind = at[strlen(name)];

        if (before != '_' && !isalnum((unsigned char)before) && behind != '_' &&
            !isalnum((unsigned char)behind))
            return true;
    }
    return false;
}

static bool is_credential(const struct network_hooks *hooks, const char *name)
{
    for (size_t i = 0; hooks && i < hooks->credentials_len; i++)
        if (str_eq(hooks->credentials[i].name, name))
            return true;
    return false;
}

/* A program that wants a secret, and has none, mostly says the name of its variable. */
static void find_variables(const struct denial_input *input, struct denials *ret)
{
    for (size_t i = 0; i < input->withheld->len && ret->len < DENIALS_MAX; i++) {
        const char *name = input->withheld->items[i];
        struct denial denial = {.operation = DENIAL_READ,
                                .evidence = DENIAL_HEURISTIC,
                                .source = DENIAL_BY_HOST,
                                .flags = DENIAL_VARIABLE};
        bool is_said = false;

        for (int k = 0; k < STREAM_COUNT; k++)
            is_said |= has_name(input->texts[k], name);
        if (!is_said || is_credential(input->access->network_policy.hooks, name))
            continue;
        denial.reason =
            alloc_strf("%s is withheld from the command, since its name is that of a secret", name);
        denial.remedy = alloc_strf("With --credential %s=HOST it can be used there, and not seen; "
                                   "with --env %s=VALUE it is seen.",
                                   name, name);
        denials_push(ret, &denial);
    }
}

/* EXDEV, and not of a hard link. The words say it in every case: strerror(3) of C, libuv, Go and Rust. */
static bool says_rename(const char *text)
{
    static const char *const links[] = {"hard link", "create link", ", link '", "link(", NULL};

    for (const char *line = text; line && *line;
         line += strcspn(line, "\n"), line += *line == '\n') {
        AUTO_FREE char *words = alloc_strn(line, strcspn(line, "\n"));
        bool is_link = false;

        if (!strcasestr(words, "cross-device link"))
            continue;
        for (const char *const *link = links; *link; link++)
            is_link |= strcasestr(words, *link) != NULL;
        if (!is_link)
            return true;
    }
    return false;
}

/* The kernel's overlays rename folders that lie below them only for root. */
static void find_rename(const struct denial_input *input, struct denials *ret)
{
    struct denial denial = {.operation = DENIAL_WRITE,
                            .evidence = DENIAL_HEURISTIC,
                            .source = DENIAL_BY_HOST,
                            .flags = DENIAL_LAYER,
                            .error = EXDEV};
    bool is_said = false;

    for (int k = 0; k < STREAM_COUNT; k++)
        is_said |= says_rename(input->texts[k]);
    if (!is_said || ret->len >= DENIALS_MAX)
        return;
    denial.reason = alloc_str("a folder could not be renamed in the change layer (EXDEV)");
    denial.remedy = alloc_str("Folders that were there before the command are moved with mv, which "
                              "copies them; instead of git mv: mv, and then git add.");
    denials_push(ret, &denial);
}

static void find_in_end(const struct denial_input *input, struct denials *ret)
{
    const struct access_map *access = input->access;

    if (input->end->how == PROCESS_FAILED_TO_START) {
        find_in_failure(input, ret);
        return;
    }
    /* Nothing is denied to whom everything is allowed. */
    if (!access || (access_map_full_write(access) && network_is_hosts(access->network)))
        return;
    find_in_signal(input->end, ret);
    /* stderr first: that is where reasons stand */
    if (input->texts[STREAM_STDERR])
        find_in_text(input, input->texts[STREAM_STDERR], ret);
    if (input->texts[STREAM_STDOUT])
        find_in_text(input, input->texts[STREAM_STDOUT], ret);
}

void denials_find(const struct denial_input *input, struct denials *ret)
{
    bool is_well = input->end->how == PROCESS_EXITED && input->end->code == 0;

    if (input->facts)
        denials_push_all(ret, input->facts);
    if (is_well)
        return;
    if (ret->len)
        name_hosts(input, ret);
    set_aside(input, ret);
    find_in_end(input, ret);
    if (input->access && input->proxies)
        keep_proxies_closed(input, ret);
    if (input->access && input->withheld)
        find_variables(input, ret);
    if (input->is_in_layer)
        find_rename(input, ret);
}

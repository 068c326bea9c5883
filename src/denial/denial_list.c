/* See denial_list.h, and denial.h for facts. A command can be refused something a million times: the
 * first DENIALS_MAX are told one by one, the others are counted by directory in FOLDERS_MAX entries;
 * when those are used up, one of them becomes the directory above both. */
#include "denial/denial_list.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "base/str.h"
#include "denial/remedy.h"
#include "sandbox/sandbox.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { FOLDERS_MAX = 8 };

/* --- names --- */

const char *denial_operation_name(enum denial_operation operation)
{
    static const char *const names[] = {
        [DENIAL_READ] = "read",       [DENIAL_WRITE] = "write", [DENIAL_EXECUTE] = "execute",
        [DENIAL_CONNECT] = "connect", [DENIAL_BIND] = "bind",   [DENIAL_SIGNAL] = "signal",
        [DENIAL_OTHER] = "other",
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

static const char *doing(const struct denial *denial)
{
    static const char *const words[] = {
        [DENIAL_READ] = "reading",      [DENIAL_WRITE] = "writing",
        [DENIAL_EXECUTE] = "executing", [DENIAL_CONNECT] = "connecting to",
        [DENIAL_BIND] = "binding to",   [DENIAL_SIGNAL] = "signalling",
        [DENIAL_OTHER] = "something",
    };

    if (denial->flags & DENIAL_FOLDER)
        return denial->operation == DENIAL_WRITE ? "writing below" : words[denial->operation];
    return denial->flags & DENIAL_CREATES ? "creating" : words[denial->operation];
}

char *denial_words(const struct denial *denial)
{
    bool is_network = denial->operation == DENIAL_CONNECT || denial->operation == DENIAL_BIND;
    bool is_datagram =
        denial->flags & DENIAL_SOCKET && denial->path && !strchr("/@", *denial->path);
    const char *object = is_datagram    ? "a Unix socket by datagrams"
                         : denial->path ? denial->path
                         : denial->host ? denial->host
                         : is_network   ? "the network"
                                        : "";
    char port[32] = "";
    char times[48] = "";

    if (denial->host && denial->port)
        snprintf(port, sizeof port, " port %u", denial->port);
    if (denial->flags & DENIAL_FOLDER)
        snprintf(times, sizeof times, " (%u times)", denial->count);
    return alloc_strf("%s%s%s%s%s%s%s", doing(denial), *object ? " " : "", object, port,
                      denial->other_path ? " as " : "",
                      denial->other_path ? denial->other_path : "", times);
}

/* --- lists --- */

void denial_done(struct denial *denial)
{
    free(denial->path);
    free(denial->host);
    free(denial->reason);
    free(denial->origin);
    free(denial->remedy);
    free(denial->other_path);
    free(denial->program);
}

void denials_done(struct denials *denials)
{
    for (size_t i = 0; i < denials->len; i++)
        denial_done(&denials->items[i]);
    free(denials->items);
    *denials = (struct denials){0};
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && str_eq(a, b));
}

static struct denial *find_same(const struct denials *denials, const struct denial *denial)
{
    for (size_t i = 0; i < denials->len; i++) {
        struct denial *other = &denials->items[i];

        if (other->operation == denial->operation &&
            !((other->flags ^ denial->flags) & DENIAL_FOLDER) && other->port == denial->port &&
            is_same_text(other->path, denial->path) && is_same_text(other->host, denial->host) &&
            is_same_text(other->other_path, denial->other_path))
            return other;
    }
    return NULL;
}

static void count(struct denial *denial, unsigned more)
{
    denial->count = more > UINT32_MAX - denial->count ? UINT32_MAX : denial->count + more;
}

static void append(struct denials *denials, struct denial *denial)
{
    denials->items = alloc_grow(denials->items, denials->len, &denials->cap, sizeof *denial);
    denials->items[denials->len++] = *denial;
}

void denials_push(struct denials *denials, struct denial *denial)
{
    struct denial *known = find_same(denials, denial);

    if (!denial->count)
        denial->count = 1;
    if (!known && denials->len < DENIALS_MAX) {
        append(denials, denial);
        return;
    }
    if (known)
        count(known, denial->count);
    denial_done(denial);
}

void denials_push_all(struct denials *denials, const struct denials *more)
{
    for (size_t i = 0; i < more->len; i++) {
        struct denial denial = more->items[i];

        denial.path = alloc_str(denial.path);
        denial.host = alloc_str(denial.host);
        denial.reason = alloc_str(denial.reason);
        denial.origin = alloc_str(denial.origin);
        denial.remedy = alloc_str(denial.remedy);
        denial.other_path = alloc_str(denial.other_path);
        denial.program = alloc_str(denial.program);
        append(denials, &denial);
    }
}

void denials_merge(struct denials *denials)
{
    struct denials before = *denials;

    denials->len = 0; /* what is kept only moves to the front */
    for (size_t i = 0; i < before.len; i++) {
        struct denial denial = before.items[i];
        struct denial *known = find_same(denials, &denial);

        if (known) {
            count(known, denial.count);
            denial_done(&denial);
        } else {
            denials->items[denials->len++] = denial;
        }
    }
}

bool denial_matters(const struct denial *denial)
{
    return denial->source != DENIAL_BY_HOST && !(denial->flags & DENIAL_ASIDE);
}

bool denials_by_sandbox(const struct denials *denials)
{
    for (size_t i = 0; i < denials->len; i++)
        if (denial_matters(&denials->items[i]))
            return true;
    return false;
}

/* --- facts --- */

/* Of the calls that the guard is asked about (guard/calls.c). */
static const struct {
    int number;
    const char *name;
} calls[] = {
    {SYS_openat, "openat"},
    {SYS_mkdirat, "mkdirat"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_renameat2, "renameat2"},
    {SYS_linkat, "linkat"},
    {SYS_symlinkat, "symlinkat"},
    {SYS_mknodat, "mknodat"},
    {SYS_fchmodat, "fchmodat"},
    {SYS_fchmod, "fchmod"},
    {SYS_fchownat, "fchownat"},
    {SYS_fchown, "fchown"},
    {SYS_utimensat, "utimensat"},
    {SYS_truncate, "truncate"},
    {SYS_setxattr, "setxattr"},
    {SYS_lsetxattr, "lsetxattr"},
    {SYS_removexattr, "removexattr"},
    {SYS_lremovexattr, "lremovexattr"},
    {SYS_fsetxattr, "fsetxattr"},
    {SYS_fremovexattr, "fremovexattr"},
    {SYS_faccessat, "faccessat"},
    {SYS_connect, "connect"},
    {SYS_bind, "bind"},
    {SYS_socket, "socket"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_sendmmsg, "sendmmsg"},
    {SYS_newfstatat, "newfstatat"},
    {SYS_statx, "statx"},
    {SYS_readlinkat, "readlinkat"},
    {SYS_chdir, "chdir"},
    {SYS_fchdir, "fchdir"},
    {SYS_execve, "execve"},
    {SYS_execveat, "execveat"},
    {SYS_kill, "kill"},
    {SYS_tkill, "tkill"},
    {SYS_tgkill, "tgkill"},
    {SYS_rt_sigqueueinfo, "rt_sigqueueinfo"},
    {SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo"},
    {424, "pidfd_send_signal"}, /* newer ones have the same number everywhere */
    {439, "faccessat2"},
    {452, "fchmodat2"},
    {463, "setxattrat"},
    {466, "removexattrat"},
#ifdef SYS_open /* what newer architectures lack */
    {SYS_open, "open"},
    {SYS_stat, "stat"},
    {SYS_lstat, "lstat"},
    {SYS_readlink, "readlink"},
    {SYS_creat, "creat"},
    {SYS_mkdir, "mkdir"},
    {SYS_rmdir, "rmdir"},
    {SYS_unlink, "unlink"},
    {SYS_rename, "rename"},
    {SYS_link, "link"},
    {SYS_symlink, "symlink"},
    {SYS_mknod, "mknod"},
    {SYS_chmod, "chmod"},
    {SYS_chown, "chown"},
    {SYS_lchown, "lchown"},
    {SYS_utime, "utime"},
    {SYS_utimes, "utimes"},
    {SYS_futimesat, "futimesat"},
    {SYS_access, "access"},
#endif
#ifdef SYS_renameat
    {SYS_renameat, "renameat"},
#endif
};

const char *denial_call_name(int call)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == call)
            return calls[i].name;
    return NULL;
}

static unsigned call_flags(const char *call)
{
    static const struct {
        const char *beginning;
        enum denial_flag flag;
    } flags[] = {
        {"unlink", DENIAL_RENAMES}, {"rmdir", DENIAL_RENAMES},   {"rename", DENIAL_RENAMES},
        {"link", DENIAL_RENAMES},   {"faccessat", DENIAL_PROBE}, {"access", DENIAL_PROBE},
    };

    for (size_t i = 0; call && i < sizeof flags / sizeof *flags; i++)
        if (str_starts(call, flags[i].beginning))
            return flags[i].flag;
    return 0;
}

/* "host:port", "[host]:port" */
static void set_host(struct denial *denial, const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);

    if (colon)
        denial->port = (unsigned)strtoul(colon + 1, NULL, 10);
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']')
        denial->host = alloc_strn(text + 1, len - 2);
    else
        denial->host = alloc_strn(text, len);
}

static void fill(struct denial *denial, const struct launch_fact *fact)
{
    static const enum denial_operation operations[] = {
        [FACT_WRITE] = DENIAL_WRITE,     [FACT_CREATE] = DENIAL_WRITE,
        [FACT_EXECUTE] = DENIAL_EXECUTE, [FACT_CONNECT] = DENIAL_CONNECT,
        [FACT_BIND] = DENIAL_BIND,       [FACT_SIGNAL] = DENIAL_SIGNAL,
        [FACT_READ] = DENIAL_READ,
    };
    bool is_network = fact->operation == FACT_CONNECT || fact->operation == FACT_BIND;

    *denial = (struct denial){
        .operation = operations[fact->operation],
        .evidence = DENIAL_FACT,
        .source = DENIAL_BY_SANDBOX,
        .flags = (fact->operation == FACT_CREATE ? DENIAL_CREATES : 0) |
                 (fact->is_socket ? DENIAL_SOCKET : 0) | (fact->more ? DENIAL_FOLDER : 0),
        .count = fact->more ? fact->more : 1,
        .error = fact->error,
        .other_path = alloc_str(fact->other_path && *fact->other_path ? fact->other_path : NULL),
        .program = alloc_str(fact->program && *fact->program ? fact->program : NULL),
        .call = denial_call_name(fact->call),
        .pid = fact->pid,
    };
    denial->flags |= call_flags(denial->call);
    if (fact->connect && *fact->connect->reason)
        denial->reason = alloc_str(fact->connect->reason);
    if (fact->connect && fact->connect->has_failed)
        denial->flags |= DENIAL_FAILED;
    if (!fact->path || !*fact->path)
        return; /* a count of what has no place, or has too many */
    if (is_network && !fact->is_socket)
        set_host(denial, fact->path);
    else
        denial->path = alloc_str(fact->path);
}

/* Makes of a denial its directory's, where it has one. */
static void widen(struct denial *denial)
{
    bool has_folder = denial->path && *denial->path == '/';
    char *parent = has_folder ? path_parent(denial->path) : NULL;

    denial->flags = (denial->flags & ~(unsigned)(DENIAL_RENAMES | DENIAL_PROBE)) | DENIAL_FOLDER;
    free(denial->path);
    free(denial->host);
    free(denial->reason);
    free(denial->other_path);
    denial->path = parent;
    denial->host = denial->reason = denial->other_path = NULL;
    denial->port = 0;
}

/* Makes it the directory above both. */
static void widen_to(struct denial *folder, const char *path, const struct access_map *access)
{
    if (!path || path_is_within(path, folder->path))
        return;
    while (!path_is_within(path, folder->path)) {
        char *parent = path_parent(folder->path);

        free(folder->path);
        folder->path = parent;
    }
    free(folder->origin);
    free(folder->remedy);
    folder->origin = folder->remedy = NULL;
    denial_decide(folder, access, NULL);
}

/* One that is full is widened: of one operation at least one is always kept. */
static struct denial *folder_for(struct denials *denials, const struct denial *denial,
                                 const struct access_map *access)
{
    struct denial *same = find_same(denials, denial);
    struct denial *last = NULL;
    size_t folders = 0;

    for (size_t i = 0; !same && i < denials->len; i++) {
        struct denial *other = &denials->items[i];
        bool is_folder = other->flags & DENIAL_FOLDER;

        folders += is_folder;
        if (is_folder && other->operation == denial->operation && !other->path == !denial->path)
            last = other;
    }
    if (same || folders < FOLDERS_MAX || !last)
        return same;
    widen_to(last, denial->path, access);
    return last;
}

void denials_add_fact(struct denials *denials, const struct access_map *access,
                      const struct launch_fact *fact)
{
    struct denial denial;
    struct denial *known;

    fill(&denial, fact);
    known = find_same(denials, &denial);
    if (!known && denials->len >= DENIALS_MAX) {
        if (!(denial.flags & DENIAL_FOLDER))
            widen(&denial);
        known = folder_for(denials, &denial, access);
    }
    if (known && !(known->flags & ~denial.flags & DENIAL_PROBE)) {
        count(known, denial.count);
        denial_done(&denial);
        return;
    }
    denial_decide(&denial, access, fact->entry);
    if (!known) {
        append(denials, &denial);
        return;
    }
    count(&denial, known->count); /* it was asked about before it was done */
    denial_done(known);
    *known = denial;
}

void denials_add_exec(struct denials *denials, const struct launch_fact *fact)
{
    struct denial denial;
    struct denial *known;

    fill(&denial, fact);
    known = find_same(denials, &denial);
    if (known || denials->len >= DENIALS_MAX) {
        if (known)
            count(known, 1);
        denial_done(&denial);
        return;
    }
    denial.origin = alloc_str(fact->entry->origin);
    denial.remedy = alloc_str("Each program that the command executes is judged (judge = "
                              "\"every-exec\"): a rule may allow it (cordon-rules(5)).");
    append(denials, &denial);
}

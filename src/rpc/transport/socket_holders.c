/* One search of /proc. Processes come in the order of their numbers, and what each has open in the
 * order of descriptors; the two positions are all that a step leaves to the next one. Steps are
 * counted in system calls, because the number of a process's descriptors is not known beforehand.
 *
 * Between two steps everything may change: processes begin and end, numbers are used again,
 * descriptors are handed on. Therefore what counts is what is so at the end:
 *
 * - Permission to connect rests on one thing alone: a process that is not sandboxed has the socket
 *   open. The first such process is remembered, and when all of /proc was seen it is checked again,
 *   in one step: its directory is opened, its ancestors are followed, and then the descriptor is
 *   read once more by that directory, which shows nothing when the process has ended, even if
 *   another one has its number by now. So it is one process that is not sandboxed and has the
 *   socket open.
 * - That no sandboxed process was seen to have it open, too, is a second condition, which no search
 *   of /proc can make certain, however fast: a command that wants to can keep its descriptor in the
 *   queue of a socket pair, where it is in no process's table. To hand it to a process that was
 *   seen already, or to fork one, is no better a way to hide. What is gained so is nothing: the
 *   socket is not found then (HOLDERS_NOT_FOUND) unless it is open in a process that is not
 *   sandboxed. Forking alone does not hide anything, because new processes get higher numbers; to
 *   come to lower ones takes as many forks as there are numbers.
 *
 * No process is left out because of its user or its name: any process that has the socket open
 * counts. Two kinds are empty by themselves: threads of the kernel, and those that may not be
 * inspected. When something else is in the way (no more descriptors), no peer is let in. A command
 * may have very many descriptors open, and a search takes long then; it holds up only the peers
 * that wait for it.
 *
 * Whether a process is sandboxed shows in its parents, which are read from /proc one after the
 * other. What a command leaves behind is adopted by its init, which is a child of the process that
 * started the command, so a chain cannot be cut from below. The first process, or one outside of
 * our pid namespace (0), has no parent here. A launcher is known by its argv[0], which no command
 * can change: it neither traces its init nor may it be another process's parent. Commands of
 * another Cordon count, too, because to be served here would let them out of their sandbox just the
 * same. */
#include "rpc/transport/socket_holders.h"

#include "base/alloc.h"
#include "base/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STEP_CALLS = 12, /* of the system in one step, at about two microseconds */
    STEP_JUDGED = 8, /* sockets of one process */
    DIR_BYTES = 512, /* read at once: 20 names, each of which is made on the fly */
};

enum finding {
    UNSEEN,
    SEEN, /* in the process `pid`, no command */
    CONFIRMED,
    IN_SANDBOX,
};

struct wanted {
    uint32_t inode;
    enum finding finding;
    pid_t pid;
    int fd; /* in that process */
};

struct dir {
    int fd; /* -1: closed */
    size_t at;
    size_t len;
    _Alignas(struct dirent64) char bytes[DIR_BYTES];
};

enum kind { UNKNOWN, SANDBOXED, OTHER };

struct socket_holders {
    struct wanted *wanted; /* by inode */
    size_t len;
    size_t judged;        /* so many, when all processes were seen */
    int calls;            /* left in this step */
    struct dir processes; /* /proc; closed when all were seen */
    struct dir files;     /* what `pid` has open; closed between two processes */
    pid_t pid;
    enum kind kind; /* of `pid` */
    bool is_blind;  /* not everything that may be seen could be */
};

/* --- one process --- */

enum { DEPTH_MAX = 4096, OWN_PARENTS_MAX = 64 };

static const char launcher_name[] =
    "cordon-init"; /* PLAN_LAUNCHER_NAME of sandbox/launcher/plan_format.h */

/* The processes above this one; those that are further away than any login shell do not matter. */
struct parents {
    pid_t pids[OWN_PARENTS_MAX];
    size_t len;
};

static void parents_read(struct parents *parents)
{
    parents->len = 0;
    for (pid_t pid = getppid(); pid > 0 && parents->len < OWN_PARENTS_MAX; pid = proc_parent(pid))
        parents->pids[parents->len++] = pid;
}

static bool parents_have(const struct parents *parents, pid_t pid)
{
    for (size_t i = 0; i < parents->len; i++)
        if (parents->pids[i] == pid)
            return true;
    return false;
}

bool is_sandboxed_pid(pid_t pid)
{
    pid_t self = getpid();
    struct parents above_us;

    parents_read(&above_us);
    for (int i = 0; i < DEPTH_MAX && pid != self; i++) {
        if (pid == 0 || parents_have(&above_us, pid))
            return false;
        if (proc_is_named(pid, launcher_name))
            return true;
        pid = proc_parent(pid);
        if (pid < 0)
            return true;
    }
    return true;
}

/* --- the sockets --- */

static int wanted_compare(const void *left, const void *right)
{
    uint32_t a = ((const struct wanted *)left)->inode;
    uint32_t b = ((const struct wanted *)right)->inode;

    return (a > b) - (a < b);
}

static struct wanted *wanted_find(const struct socket_holders *holders, uint32_t inode)
{
    const struct wanted key = {.inode = inode};

    return bsearch(&key, holders->wanted, holders->len, sizeof key, wanted_compare);
}

/* --- directories --- */

static void dir_open(struct dir *dir, int at, const char *path)
{
    dir->fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir->at = dir->len = 0;
}

static void dir_close(struct dir *dir)
{
    if (dir->fd >= 0)
        close(dir->fd);
    dir->fd = -1;
}

/* The next name that is a number; "" when there is none among those that one call gave; NULL at the
 * end. */
static const char *dir_next(struct dir *dir, int *calls)
{
    if (dir->at == dir->len) {
        ssize_t n = getdents64(dir->fd, dir->bytes, sizeof dir->bytes);

        --*calls;
        if (n <= 0)
            return NULL;
        dir->at = 0;
        dir->len = (size_t)n;
    }
    while (dir->at < dir->len) {
        const struct dirent64 *entry = (const void *)(dir->bytes + dir->at);

        dir->at += entry->d_reclen;
        if (isdigit((unsigned char)*entry->d_name))
            return entry->d_name;
    }
    return "";
}

/* The socket that a descriptor in /proc/PID/fd is; 0 for anything else. */
static uint32_t socket_inode(int dir, const char *name)
{
    static const char start[] = "socket:[";
    char target[32] = "";

    if (readlinkat(dir, name, target, sizeof target - 1) <= 0 ||
        strncmp(target, start, strlen(start)) != 0)
        return 0;
    return (uint32_t)strtoul(target + strlen(start), NULL, 10);
}

/* --- the search --- */

struct socket_holders *socket_holders_new(const uint32_t *inodes, size_t len)
{
    struct socket_holders *holders = alloc_zero(1, sizeof *holders);

    holders->wanted = alloc_zero(len, sizeof *holders->wanted);
    holders->len = len;
    for (size_t i = 0; i < len; i++)
        holders->wanted[i].inode = inodes[i];
    qsort(holders->wanted, len, sizeof *holders->wanted, wanted_compare);
    holders->files.fd = -1;
    dir_open(&holders->processes, AT_FDCWD, "/proc");
    holders->is_blind = holders->processes.fd < 0;
    return holders;
}

void socket_holders_free(struct socket_holders *holders)
{
    if (!holders)
        return;
    dir_close(&holders->processes);
    dir_close(&holders->files);
    free(holders->wanted);
    free(holders);
}

/* It has ended, or may not be inspected. */
static bool is_hidden_from_us(int error)
{
    return error == ENOENT || error == ESRCH || error == EACCES || error == EPERM;
}

static void holders_next_process(struct socket_holders *holders)
{
    const char *name = dir_next(&holders->processes, &holders->calls);
    char path[32];

    if (!name)
        dir_close(&holders->processes);
    if (!name || !*name)
        return;
    snprintf(path, sizeof path, "%.20s/fd", name);
    dir_open(&holders->files, holders->processes.fd, path);
    holders->calls--;
    holders->pid = (pid_t)strtol(name, NULL, 10);
    holders->kind = UNKNOWN;
    if (holders->files.fd < 0 && !is_hidden_from_us(errno))
        holders->is_blind = true;
}

/* The process has it open as the descriptor `name`. It may have ended since, and what is known of
 * its kind be of another one with its number: then it has nothing open any more. */
static void holders_note(struct socket_holders *holders, struct wanted *wanted, const char *name)
{
    if (holders->kind == UNKNOWN) {
        holders->kind = is_sandboxed_pid(holders->pid) ? SANDBOXED : OTHER;
        holders->calls = 0;
        if (socket_inode(holders->files.fd, name) != wanted->inode)
            return;
    }
    if (holders->kind == SANDBOXED) {
        wanted->finding = IN_SANDBOX;
    } else if (wanted->finding == UNSEEN) {
        wanted->finding = SEEN;
        wanted->pid = holders->pid;
        wanted->fd = (int)strtol(name, NULL, 10);
    }
}

static void holders_next_file(struct socket_holders *holders)
{
    const char *name = dir_next(&holders->files, &holders->calls);
    struct wanted *wanted;
    uint32_t inode;

    holders->calls--;
    if (!name)
        dir_close(&holders->files);
    if (!name || !*name)
        return;
    inode = socket_inode(holders->files.fd, name);
    wanted = inode ? wanted_find(holders, inode) : NULL;
    if (wanted)
        holders_note(holders, wanted, name);
}

/* Asks a process again for those sockets that it was seen to have open. */
static void holders_check_again(const struct socket_holders *holders, size_t first)
{
    pid_t pid = holders->wanted[first].pid;
    int left = STEP_JUDGED;
    bool is_sandboxed;
    struct dir files;
    char text[32];

    snprintf(text, sizeof text, "/proc/%d/fd", (int)pid);
    dir_open(&files, AT_FDCWD, text);
    is_sandboxed = is_sandboxed_pid(pid);
    for (size_t i = first; i < holders->len && left; i++) {
        struct wanted *wanted = &holders->wanted[i];

        if (wanted->finding != SEEN || wanted->pid != pid)
            continue;
        snprintf(text, sizeof text, "%d", wanted->fd);
        if (files.fd < 0 || socket_inode(files.fd, text) != wanted->inode)
            wanted->finding = UNSEEN;
        else
            wanted->finding = is_sandboxed ? IN_SANDBOX : CONFIRMED;
        left--;
    }
    dir_close(&files);
}

/* true: all are judged. */
static bool holders_judge(struct socket_holders *holders)
{
    while (holders->judged < holders->len && holders->wanted[holders->judged].finding != SEEN)
        holders->judged++;
    if (holders->judged < holders->len)
        holders_check_again(holders, holders->judged);
    return holders->judged == holders->len;
}

bool socket_holders_step(struct socket_holders *holders)
{
    holders->calls = STEP_CALLS;
    while (holders->calls > 0) {
        if (holders->files.fd >= 0)
            holders_next_file(holders);
        else if (holders->processes.fd >= 0)
            holders_next_process(holders);
        else
            return holders_judge(holders);
    }
    return false;
}

enum holders_verdict socket_holders_verdict(const struct socket_holders *holders, uint32_t inode)
{
    const struct wanted *wanted = wanted_find(holders, inode);

    if (wanted && wanted->finding == IN_SANDBOX)
        return HOLDERS_SANDBOXED;
    return wanted && wanted->finding == CONFIRMED && !holders->is_blind ? HOLDERS_ALLOWED
                                                                        : HOLDERS_NOT_FOUND;
}

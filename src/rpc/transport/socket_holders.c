/* Processes come in the order of their numbers, and what each has open in the order of descriptors;
 * the two positions are all that a step leaves to the next one. Steps are counted in system calls,
 * because nobody can tell how many descriptors a process has.
 *
 * Between two steps everything may change: processes begin and end, numbers are used again,
 * descriptors are handed on. Therefore what counts is what is so at the end:
 *
 * - Leave to come in rests on one thing alone: a process that is no command has the socket open.
 *   The first such process is remembered, and when all of /proc was seen it is asked again, in one
 *   step: its folder is opened, its ancestors are followed, and then the descriptor is read once
 *   more by that folder, which shows nothing when the process has ended, even if another one has
 *   its number by now. So it is one process that is no command and has the socket open.
 * - That no command was seen to have it open, too, is a second condition, which no look at /proc
 *   can make certain, however fast: a command that wants to can keep its descriptor in the queue of
 *   a socket pair, where it is in nobody's table. To hand it to a process that was seen already, or
 *   to fork one, is no better a way to hide. What is gained so is nothing: the socket is not
 *   found then (LOOKOUT_NOBODY) unless it is open in a process that is no command. Forking alone
 *   does not hide anything, because new processes get higher numbers; to come to lower ones takes
 *   as many forks as there are numbers.
 *
 * No process is left out because of its user or its name: whatever has the socket open counts. Two
 * kinds are empty by themselves: threads of the kernel, and those that may not be looked at. When
 * something else is in the way (no more descriptors), nobody is let in.
 *
 * A command may have very many descriptors open, and a look takes long then; it holds up those who
 * are about to come in, and nobody else. */
#include "rpc/transport/socket_holders.h"

#include "base/alloc.h"
#include "rpc/transport/ancestry.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STEP_CALLS = 12,    /* of the system in one step, at about two microseconds */
    STEP_JUDGED = 8,    /* sockets of one process */
    FOLDER_BYTES = 512, /* read at once: 20 names, each of which is made for the occasion */
};

enum finding {
    UNSEEN,
    SEEN, /* in the process `pid`, no command */
    CONFIRMED,
    IN_COMMAND,
};

struct wanted {
    uint32_t inode;
    enum finding finding;
    pid_t pid;
    int fd; /* in that process */
};

struct folder {
    int fd; /* -1: closed */
    size_t at;
    size_t len;
    _Alignas(struct dirent64) char bytes[FOLDER_BYTES];
};

enum kind { UNKNOWN, COMMAND, OTHER };

struct lookout {
    struct wanted *wanted; /* by inode */
    size_t len;
    size_t judged;           /* so many, when all processes were seen */
    int calls;               /* left in this step */
    struct folder processes; /* /proc; closed when all were seen */
    struct folder files;     /* what `pid` has open; closed between two processes */
    pid_t pid;
    enum kind kind; /* of `pid` */
    bool is_blind;  /* not everything that may be seen could be */
};

static int wanted_compare(const void *left, const void *right)
{
    uint32_t a = ((const struct wanted *)left)->inode;
    uint32_t b = ((const struct wanted *)right)->inode;

    return (a > b) - (a < b);
}

static struct wanted *wanted_find(const struct lookout *lookout, uint32_t inode)
{
    const struct wanted key = {.inode = inode};

    return bsearch(&key, lookout->wanted, lookout->len, sizeof key, wanted_compare);
}

/* --- folders --- */

static void folder_open(struct folder *folder, int at, const char *path)
{
    folder->fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    folder->at = folder->len = 0;
}

static void folder_close(struct folder *folder)
{
    if (folder->fd >= 0)
        close(folder->fd);
    folder->fd = -1;
}

/* The next name that is a number; "" when there is none among those that one call gave; NULL at the
 * end. */
static const char *folder_next(struct folder *folder, int *calls)
{
    if (folder->at == folder->len) {
        ssize_t n = getdents64(folder->fd, folder->bytes, sizeof folder->bytes);

        --*calls;
        if (n <= 0)
            return NULL;
        folder->at = 0;
        folder->len = (size_t)n;
    }
    while (folder->at < folder->len) {
        const struct dirent64 *entry = (const void *)(folder->bytes + folder->at);

        folder->at += entry->d_reclen;
        if (isdigit((unsigned char)*entry->d_name))
            return entry->d_name;
    }
    return "";
}

/* The socket that a descriptor in /proc/PID/fd is; 0 for anything else. */
static uint32_t socket_inode(int folder, const char *name)
{
    static const char start[] = "socket:[";
    char target[32] = "";

    if (readlinkat(folder, name, target, sizeof target - 1) <= 0 ||
        strncmp(target, start, strlen(start)) != 0)
        return 0;
    return (uint32_t)strtoul(target + strlen(start), NULL, 10);
}

/* --- the look --- */

struct lookout *lookout_new(const uint32_t *inodes, size_t len)
{
    struct lookout *lookout = alloc_zero(1, sizeof *lookout);

    lookout->wanted = alloc_zero(len, sizeof *lookout->wanted);
    lookout->len = len;
    for (size_t i = 0; i < len; i++)
        lookout->wanted[i].inode = inodes[i];
    qsort(lookout->wanted, len, sizeof *lookout->wanted, wanted_compare);
    lookout->files.fd = -1;
    folder_open(&lookout->processes, AT_FDCWD, "/proc");
    lookout->is_blind = lookout->processes.fd < 0;
    return lookout;
}

void lookout_free(struct lookout *lookout)
{
    if (!lookout)
        return;
    folder_close(&lookout->processes);
    folder_close(&lookout->files);
    free(lookout->wanted);
    free(lookout);
}

/* It has ended, or is none that may be looked at. */
static bool is_closed_to_us(int error)
{
    return error == ENOENT || error == ESRCH || error == EACCES || error == EPERM;
}

static void lookout_next_process(struct lookout *lookout)
{
    const char *name = folder_next(&lookout->processes, &lookout->calls);
    char path[32];

    if (!name)
        folder_close(&lookout->processes);
    if (!name || !*name)
        return;
    snprintf(path, sizeof path, "%.20s/fd", name);
    folder_open(&lookout->files, lookout->processes.fd, path);
    lookout->calls--;
    lookout->pid = (pid_t)strtol(name, NULL, 10);
    lookout->kind = UNKNOWN;
    if (lookout->files.fd < 0 && !is_closed_to_us(errno))
        lookout->is_blind = true;
}

/* The process has it open as the descriptor `name`. It may have ended since, and what is known of
 * its kind be of another one with its number: then it has nothing open any more. */
static void lookout_note(struct lookout *lookout, struct wanted *wanted, const char *name)
{
    if (lookout->kind == UNKNOWN) {
        lookout->kind = ancestry_is_command(lookout->pid) ? COMMAND : OTHER;
        lookout->calls = 0;
        if (socket_inode(lookout->files.fd, name) != wanted->inode)
            return;
    }
    if (lookout->kind == COMMAND) {
        wanted->finding = IN_COMMAND;
    } else if (wanted->finding == UNSEEN) {
        wanted->finding = SEEN;
        wanted->pid = lookout->pid;
        wanted->fd = (int)strtol(name, NULL, 10);
    }
}

static void lookout_next_file(struct lookout *lookout)
{
    const char *name = folder_next(&lookout->files, &lookout->calls);
    struct wanted *wanted;
    uint32_t inode;

    lookout->calls--;
    if (!name)
        folder_close(&lookout->files);
    if (!name || !*name)
        return;
    inode = socket_inode(lookout->files.fd, name);
    wanted = inode ? wanted_find(lookout, inode) : NULL;
    if (wanted)
        lookout_note(lookout, wanted, name);
}

/* Asks a process again for those sockets that it was seen to have open. */
static void lookout_ask(const struct lookout *lookout, size_t first)
{
    pid_t pid = lookout->wanted[first].pid;
    int left = STEP_JUDGED;
    bool is_command;
    struct folder files;
    char text[32];

    snprintf(text, sizeof text, "/proc/%d/fd", (int)pid);
    folder_open(&files, AT_FDCWD, text);
    is_command = ancestry_is_command(pid);
    for (size_t i = first; i < lookout->len && left; i++) {
        struct wanted *wanted = &lookout->wanted[i];

        if (wanted->finding != SEEN || wanted->pid != pid)
            continue;
        snprintf(text, sizeof text, "%d", wanted->fd);
        if (files.fd < 0 || socket_inode(files.fd, text) != wanted->inode)
            wanted->finding = UNSEEN;
        else
            wanted->finding = is_command ? IN_COMMAND : CONFIRMED;
        left--;
    }
    folder_close(&files);
}

/* true: all are judged. */
static bool lookout_judge(struct lookout *lookout)
{
    while (lookout->judged < lookout->len && lookout->wanted[lookout->judged].finding != SEEN)
        lookout->judged++;
    if (lookout->judged < lookout->len)
        lookout_ask(lookout, lookout->judged);
    return lookout->judged == lookout->len;
}

bool lookout_step(struct lookout *lookout)
{
    lookout->calls = STEP_CALLS;
    while (lookout->calls > 0) {
        if (lookout->files.fd >= 0)
            lookout_next_file(lookout);
        else if (lookout->processes.fd >= 0)
            lookout_next_process(lookout);
        else
            return lookout_judge(lookout);
    }
    return false;
}

enum lookout_verdict lookout_verdict(const struct lookout *lookout, uint32_t inode)
{
    const struct wanted *wanted = wanted_find(lookout, inode);

    if (wanted && wanted->finding == IN_COMMAND)
        return LOOKOUT_COMMAND;
    return wanted && wanted->finding == CONFIRMED && !lookout->is_blind ? LOOKOUT_WELCOME
                                                                        : LOOKOUT_NOBODY;
}

/* See points.h.
 *
 *     an access -> nobody can be asked, or the answer was no     EACCES, and a fact
 *               -> a question; more accesses wait with it
 *     yes       -> the mount is taken away, and all that waits is answered ESTALE
 *     no        -> all that waits is answered EACCES
 *
 * ESTALE makes the kernel walk the path anew, and it comes to the real place, read-only. Nothing is
 * read, copied or opened here for anybody, and a yes allows what the mounts below allow.
 *
 * The guard itself, and every process outside of the command's user namespace, is refused by the kernel
 * (the launcher mounts with allow_other): so a path of the command's that leads into a watchpoint,
 * and is looked at here for another call, never makes the guard wait for itself.
 *
 * The kernel tells when a caller that waits got a signal; it is answered EINTR then, since one that is
 * to be killed cannot end before. When the guard dies the kernel answers ENOTCONN. */
#include "guard/points.h"

#include "base/auto.h"
#include "guard/child.h"
#include "guard/facts.h"
#include "guard/fuse.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAITING_MAX = 256 }; /* accesses of a command; what comes then is refused */

enum point_state { POINT_CLOSED, POINT_ASKED, POINT_REFUSED, POINT_OPEN };

struct waiting {
    struct waiting *next;
    uint64_t unique;
    uint32_t thread; /* in the command's namespace */
    size_t packet_len;
    struct guard_fact packet; /* as far as `packet_len` */
};

struct point {
    int fuse;
    int entry;
    struct fuse_root root;
    enum point_state state;
    uint64_t question;
    struct waiting *waiting; /* ASKED */
};

struct points {
    int events;
    int namespaces[GUARD_WATCHPOINT_FDS]; /* the first is none */
    struct point items[GUARD_WATCHPOINTS_MAX];
    uint32_t len;
    uint32_t waiting_len;
};

static struct points *points_new(const int fds[GUARD_WATCHPOINT_FDS])
{
    struct points *points = calloc(1, sizeof *points);

    if (!points)
        return NULL;
    points->events = epoll_create1(EPOLL_CLOEXEC);
    points->namespaces[GUARD_WATCHPOINT_FUSE] = -1;
    for (int i = GUARD_WATCHPOINT_USERS; i < GUARD_WATCHPOINT_FDS; i++)
        points->namespaces[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
    return points;
}

static bool add(struct command *command, const struct guard_order *order,
                const int fds[GUARD_WATCHPOINT_FDS])
{
    struct epoll_event event = {.events = EPOLLIN};
    struct points *points;
    struct point *point;

    if (!command->points)
        command->points = points_new(fds);
    points = command->points;
    if (!points || points->len == GUARD_WATCHPOINTS_MAX ||
        order->number >= command->map.header->entries)
        return false;
    point = &points->items[points->len];
    *point = (struct point){
        .fuse = fcntl(fds[GUARD_WATCHPOINT_FUSE], F_DUPFD_CLOEXEC, 0),
        .entry = (int)order->number,
        .root = {.mode = (mode_t)order->mode, .uid = geteuid(), .gid = getegid()},
    };
    event.data.ptr = point;
    if (point->fuse < 0)
        return false;
    points->len++;
    return epoll_ctl(points->events, EPOLL_CTL_ADD, point->fuse, &event) == 0;
}

bool points_add(struct command *command, const struct guard_order *order,
                const int fds[GUARD_WATCHPOINT_FDS])
{
    bool is_added = add(command, order, fds);

    for (int i = 0; i < GUARD_WATCHPOINT_FDS; i++)
        close(fds[i]);
    return is_added;
}

int points_events(const struct command *command)
{
    return command->points ? command->points->events : -1;
}

/* Who waited may be gone: then there is nobody left to answer. */
static void send_reply(const struct point *point, const unsigned char *reply, size_t len)
{
    ssize_t written = write(point->fuse, reply, len);

    (void)written;
}

static void respond(const struct point *point, uint64_t unique, int error)
{
    unsigned char reply[FUSE_REPLY_MAX];

    send_reply(point, reply, fuse_refuse(unique, error, reply));
}

/* --- who it is --- */

/* As we see it; 0 where the kernel cannot say. */
static pid_t find_thread(const struct points *points, uint32_t thread)
{
    int found = ioctl(points->namespaces[GUARD_WATCHPOINT_PROCESSES], (int)K_NS_GET_PID_FROM_PIDNS,
                      (unsigned long)thread);

    return found > 0 ? found : 0;
}

/* Whoever has its number by now is of the same command, which ends as a whole. */
static void terminate(const struct points *points, uint32_t number)
{
    const pid_t thread = find_thread(points, number);
    AUTO_CLOSE int pidfd = thread ? remote_pidfd(thread) : -1;

    if (pidfd >= 0 && find_thread(points, number) == thread)
        remote_terminate(pidfd);
}

/* The system call that it waits in; -1. */
static int find_call(pid_t thread)
{
    char path[64], text[32] = "";
    AUTO_CLOSE int fd = -1;

    snprintf(path, sizeof path, "/proc/%d/syscall", (int)thread);
    fd = thread ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 || text[0] < '0' || text[0] > '9')
        return -1;
    return (int)strtol(text, NULL, 10);
}

/* Told of as if it were a call that the guard was asked about. */
static size_t write_packet(struct command *command, const struct point *point,
                           const struct fuse_request *access, struct guard_fact *ret)
{
    char path[PATH_MAX + NAME_MAX + 2];
    pid_t thread = find_thread(command->points, access->thread);
    const struct call call = {.nr = find_call(thread), .kind = CALL_OPEN};
    const struct request request = {.command = command, .call = &call, .thread = thread};
    const struct fact fact = {
        .operation = GUARD_OP_READ, .path = path, .entry = point->entry, .error = EACCES};

    snprintf(path, sizeof path, "%s%s%s", map_path(&command->map, point->entry),
             *access->name ? "/" : "", access->name);
    return facts_write(&request, &fact, ret);
}

/* --- accesses --- */

static struct waiting *waiting_new(const struct guard_fact *packet, size_t len,
                                   const struct fuse_request *access)
{
    struct waiting *waiting = malloc(offsetof(struct waiting, packet) + len);

    if (!waiting)
        return NULL;
    waiting->next = NULL;
    waiting->unique = access->unique;
    waiting->thread = access->thread;
    waiting->packet_len = len;
    memcpy(&waiting->packet, packet, len);
    return waiting;
}

/* A question says which place a yes covers, and what of it is looked at. */
static bool ask(struct command *command, struct point *point, const struct guard_fact *packet,
                size_t len)
{
    const char *place = map_path(&command->map, point->entry);
    struct guard_fact asked;

    if (point->state == POINT_ASKED)
        return true;
    if (point->state != POINT_CLOSED || command->ends < 0)
        return false;
    memcpy(&asked, packet, len);
    asked.kind = GUARD_FACT_ASKED;
    asked.id = command->last_id + 1;
    facts_name(&asked);
    if (strcmp(asked.strings, place) == 0)
        place = "";
    memcpy((char *)&asked + len, place, strlen(place) + 1);
    len += strlen(place) + 1;
    ((char *)&asked)[len++] = '\0';
    if (!facts_send(command, &asked, len))
        return false;
    point->question = ++command->last_id;
    point->state = POINT_ASKED;
    return true;
}

/* Waits for the answer. */
static bool hold(struct command *command, struct point *point, const struct guard_fact *packet,
                 size_t len, const struct fuse_request *access)
{
    struct waiting *waiting;

    if (command->points->waiting_len == WAITING_MAX)
        return false;
    waiting = waiting_new(packet, len, access);
    if (!waiting || !ask(command, point, packet, len)) {
        free(waiting);
        return false;
    }
    waiting->next = point->waiting;
    point->waiting = waiting;
    command->points->waiting_len++;
    return true;
}

static void serve_access(struct command *command, struct point *point,
                         const struct fuse_request *access)
{
    struct guard_fact packet;
    size_t len;

    /* By a descriptor from before, or in a namespace of its own. */
    if (point->state == POINT_OPEN) {
        respond(point, access->unique, ESTALE);
        return;
    }
    len = write_packet(command, point, access, &packet);
    if (hold(command, point, &packet, len, access))
        return;
    facts_tell_denied(command, &packet, len);
    respond(point, access->unique, EACCES);
}

/* Takes one off the list, which is the next of `at`. */
static void release(struct points *points, const struct point *point, struct waiting **at,
                    int error)
{
    struct waiting *waiting = *at;

    *at = waiting->next;
    points->waiting_len--;
    respond(point, waiting->unique, error);
    free(waiting);
}

/* A question that nobody waits for is none. */
static void withdraw(struct command *command, struct point *point)
{
    if (point->state != POINT_ASKED || point->waiting)
        return;
    point->state = POINT_CLOSED;
    facts_tell_withdrawn(command, point->question);
}

static void serve_interrupt(struct command *command, struct point *point, uint64_t unique)
{
    for (struct waiting **at = &point->waiting; *at; at = &(*at)->next) {
        if ((*at)->unique != unique)
            continue;
        release(command->points, point, at, EINTR);
        break;
    }
    withdraw(command, point);
}

void points_serve(struct command *command)
{
    static unsigned char bytes[FUSE_REQUEST_MAX];
    struct fuse_request request;
    struct epoll_event event;
    struct point *point;
    ssize_t len;

    if (epoll_wait(command->points->events, &event, 1, 0) <= 0)
        return;
    point = event.data.ptr;
    len = read(point->fuse, bytes, sizeof bytes);
    if (len < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOENT))
        return;
    if (len <= 0) { /* it is mounted nowhere any more */
        epoll_ctl(command->points->events, EPOLL_CTL_DEL, point->fuse, NULL);
        return;
    }
    fuse_read(bytes, (size_t)len, &point->root, &request);
    switch (request.kind) {
    case FUSE_REPLY:
        send_reply(point, request.reply, request.reply_len);
        break;
    case FUSE_ACCESS:
        serve_access(command, point, &request);
        break;
    case FUSE_INTERRUPT:
        serve_interrupt(command, point, request.unique);
        break;
    case FUSE_NOTHING:
        break;
    case FUSE_BROKEN:
        respond(point, request.unique, EIO);
        break;
    }
}

/* --- the answer --- */

/* In a child, which enters the namespaces of the command. */
static bool uncover(struct command *command, const struct point *point)
{
    const int *namespaces = command->points->namespaces;
    const int fds[] = {namespaces[GUARD_WATCHPOINT_USERS], namespaces[GUARD_WATCHPOINT_MOUNTS]};
    pid_t child = child_fork(fds, sizeof fds / sizeof *fds);
    int status = 0;

    if (child == 0) {
        if (setns(fds[0], CLONE_NEWUSER) || setns(fds[1], CLONE_NEWNS) ||
            umount2(map_path(&command->map, point->entry), MNT_DETACH | UMOUNT_NOFOLLOW))
            _exit(1);
        _exit(0);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static struct point *find_question(const struct points *points, uint64_t id)
{
    for (uint32_t i = 0; points && i < points->len; i++)
        if (points->items[i].state == POINT_ASKED && points->items[i].question == id)
            return (struct point *)&points->items[i];
    return NULL;
}

bool points_answer(struct command *command, uint64_t id, enum guard_verdict verdict)
{
    struct point *point = find_question(command->points, id);
    bool is_yes;

    if (!point)
        return false;
    is_yes = verdict == GUARD_YES && uncover(command, point);
    point->state = is_yes ? POINT_OPEN : POINT_REFUSED;
    while (point->waiting) {
        struct waiting *waiting = point->waiting;

        waiting->packet.id = id;
        if (is_yes) {
            waiting->packet.kind = GUARD_FACT_DONE;
            waiting->packet.error = 0;
            facts_name(&waiting->packet);
            facts_send(command, &waiting->packet, waiting->packet_len);
        } else {
            if (verdict == GUARD_STOP)
                terminate(command->points, waiting->thread);
            facts_tell_denied(command, &waiting->packet, waiting->packet_len);
        }
        release(command->points, point, &point->waiting, is_yes ? ESTALE : EACCES);
    }
    return true;
}

/* By its text: "." and ".." are taken out. */
static void clean(const char *path, char ret[PATH_MAX])
{
    size_t len = 0;

    while (*path) {
        size_t part = strcspn(path, "/");

        if (part == 2 && path[0] == '.' && path[1] == '.')
            while (len && ret[--len] != '/')
                continue;
        else if (part && !(part == 1 && *path == '.') && len + part + 2 < PATH_MAX) {
            ret[len++] = '/';
            memcpy(ret + len, path, part);
            len += part;
        }
        path += part + (path[part] == '/');
    }
    if (!len)
        ret[len++] = '/';
    ret[len] = '\0';
}

/* What is in the way of a look is in the way of a canonical path, too: the text has to do. */
bool points_has(const struct command *command, const char *path)
{
    const struct points *points = command->points;
    char cleaned[PATH_MAX];
    int entry;

    if (!points)
        return false;
    clean(path, cleaned);
    entry = map_find(&command->map, cleaned);
    for (uint32_t i = 0; i < points->len; i++)
        if (points->items[i].entry == entry)
            return true;
    return false;
}

void points_end(struct command *command)
{
    struct points *points = command->points;

    if (!points)
        return;
    for (uint32_t i = 0; i < points->len; i++) {
        while (points->items[i].waiting)
            release(points, &points->items[i], &points->items[i].waiting, EACCES);
        withdraw(command, &points->items[i]);
        close(points->items[i].fuse);
    }
    for (int i = GUARD_WATCHPOINT_USERS; i < GUARD_WATCHPOINT_FDS; i++)
        close(points->namespaces[i]);
    close(points->events);
    free(points);
    command->points = NULL;
}

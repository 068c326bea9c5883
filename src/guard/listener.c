/* See listener.h. A call may be gone at each step: its thread was killed, or its number is valid no
 * more. That is no error; there is nobody left to answer. */
#include "guard/listener.h"

#include "base/auto.h"
#include "base/pass.h"
#include "guard/alone.h"
#include "guard/bind.h"
#include "guard/caller.h"
#include "guard/child.h"
#include "guard/exec.h"
#include "guard/facts.h"
#include "guard/folder.h"
#include "guard/git.h"
#include "guard/grant.h"
#include "guard/hold.h"
#include "guard/judge.h"
#include "guard/kept.h"
#include "guard/kill.h"
#include "guard/mode.h"
#include "guard/nested.h"
#include "guard/perform.h"
#include "guard/points.h"
#include "guard/socket.h"
#include "guard/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool request_is_valid(const struct request *request)
{
    return ioctl(request->command->listener, (int)K_SECCOMP_IOCTL_NOTIF_ID_VALID,
                 &request->notif->id) == 0;
}

struct command *command_new(const int fds[GUARD_FDS], uint32_t flags)
{
    struct command *command = calloc(1, sizeof *command);
    AUTO_CLOSE int file = fds[GUARD_FD_MAP];
    const int outside = flags & GUARD_HELLO_OUTSIDE ? fds[GUARD_FD_OUTSIDE] : AT_FDCWD;
    struct stat st;
    void *bytes;

    if (command)
        *command = (struct command){
            .channel = fds[GUARD_FD_CHANNEL],
            .listener = -1,
            .root = -1,
            .outside = outside,
            .ends = -1,
            .execs = {.poller = -1},
            .traces_files = flags & GUARD_HELLO_TRACES_FILES,
            .traces_network = flags & GUARD_HELLO_TRACES_NETWORK,
        };
    if (!command || fstat(file, &st) || st.st_size <= 0 || st.st_size > GUARD_MAX_BYTES) {
        close(fds[GUARD_FD_CHANNEL]);
        if (outside >= 0)
            close(outside);
        free(command);
        return NULL;
    }
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) {
        command_free(command);
        return NULL;
    }
    command->map_size = (size_t)st.st_size;
    if (!map_init(&command->map, bytes, command->map_size)) {
        munmap(bytes, command->map_size);
        command->map_size = 0;
        command_free(command);
        return NULL;
    }
    for (uint32_t i = 0; i < command->map.header->entries; i++)
        command->has_git |= (command->map.entries[i].flags & GUARD_ENTRY_GIT) != 0;
    if ((flags & GUARD_HELLO_ASKS) && command->map.header->flags & GUARD_MAP_FACTS)
        command->ends = epoll_create1(EPOLL_CLOEXEC);
    if (!exec_begin(command)) {
        command_free(command);
        return NULL;
    }
    return command;
}

void command_free(struct command *command)
{
    children_end(command);
    hold_end(command);
    grants_done(&command->grants);
    points_end(command);
    exec_end(command);
    bind_forget(command);
    nested_end(command);
    folders_close(command);
    kept_close_all(command);
    git_end(command);
    if (command->listener >= 0)
        close(command->listener);
    if (command->map_size) {
        facts_end(command);
        munmap((void *)command->map.header, command->map_size); /* mapped for reading */
    }
    if (command->root >= 0)
        close(command->root);
    if (command->outside >= 0)
        close(command->outside);
    if (command->ends >= 0)
        close(command->ends);
    close(command->channel);
    free(command);
}

int command_ends(const struct command *command)
{
    return command->ends;
}

void command_look(struct command *command)
{
    hold_look(command);
}

bool command_read_channel(struct command *command)
{
    struct guard_order order = {0};
    int fds[PASS_MAX];
    size_t count;
    ssize_t len = pass_receive(command->channel, &order, sizeof order, MSG_DONTWAIT, fds, &count);

    if (len < 0)
        return errno == EAGAIN || errno == EINTR;
    if (len == (ssize_t)sizeof order && order.magic == GUARD_MAGIC) {
        if (order.kind == GUARD_ORDER_LISTENER && count == 1 && command->listener < 0) {
            command->listener = fds[0];
            return true;
        }
        if (order.kind == GUARD_ORDER_ANSWER && count == 0) {
            const enum guard_verdict verdict = (enum guard_verdict)order.verdict;

            if (!exec_answer(command, order.id, verdict) &&
                !points_answer(command, order.id, verdict))
                hold_answer(command, order.id, verdict);
            return true;
        }
        if (order.kind == GUARD_ORDER_EXIT && count == 0) {
            exec_exit(command, order.id, (int)order.number);
            return true;
        }
        if (order.kind == GUARD_ORDER_WATCHPOINT && count == GUARD_WATCHPOINT_FDS)
            return points_add(command, &order, fds);
    }
    pass_close(fds, count);
    return false;
}

/* The file system of the command stands before its first call, and stays its root: it may not change
 * it, unless it may make namespaces.
 *
 * The launcher, which executes the command, lets nobody look (it is not dumpable) but who owns its user
 * namespace; as root there may be none. So what it executes is let go on unseen. */
static void open_root(struct command *command, pid_t thread)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/root", (int)thread);
    command->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (command->root >= 0)
        folders_open(command);
}

static void respond(const struct request *request, int error, int64_t value, uint32_t flags)
{
    const struct k_seccomp_notif_resp response = {
        .id = request->notif->id, .val = value, .error = -error, .flags = flags};

    ioctl(request->command->listener, (int)K_SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void request_respond(const struct request *request, struct answer answer)
{
    switch (answer.kind) {
    case ANSWER_ERROR:
        respond(request, answer.number, 0, 0);
        break;
    case ANSWER_VALUE:
        respond(request, 0, answer.number, 0);
        break;
    case ANSWER_CONTINUE:
        respond(request, 0, 0, K_SECCOMP_USER_NOTIF_FLAG_CONTINUE);
        break;
    case ANSWER_LATER:
    case ANSWER_HELD:
        break;
    }
}

static int add_fd(const struct request *request, int fd, bool is_cloexec, uint32_t flags)
{
    const struct k_seccomp_notif_addfd add = {
        .id = request->notif->id,
        .flags = flags,
        .srcfd = (uint32_t)fd,
        .newfd_flags = is_cloexec ? O_CLOEXEC : 0,
    };
    int number = wake_to_take(request, &add);

    return number < 0 ? -errno : number;
}

int request_give(const struct request *request, int fd, bool is_cloexec)
{
    const bool is_answer = !wake_keeps(request);
    int number = add_fd(request, fd, is_cloexec, is_answer ? K_SECCOMP_ADDFD_FLAG_SEND : 0);

    if (number >= 0 && !is_answer)
        respond(request, 0, number, 0);
    return number < 0 ? -number : 0;
}

int request_lend(const struct request *request, int fd, bool is_cloexec)
{
    return add_fd(request, fd, is_cloexec, 0);
}

/* What we tried on behalf and the mounts refused is as much a fact as what the kernel refuses. To
 * rename() each of them is another device, or one that holds its name. */
static bool is_refusal(const struct answer *answer)
{
    return answer->kind == ANSWER_ERROR && (answer->number == EROFS || answer->number == EACCES ||
                                            answer->number == EXDEV || answer->number == EBUSY);
}

struct answer request_handle(const struct request *request)
{
    struct answer answer = answer_continue();

    if (nested_register(request, &answer))
        return answer;
    switch (request->call->kind) {
    case CALL_UMASK:
        caller_changes_mask(request);
        break;
    case CALL_CHDIR:
        caller_changes_cwd(request);
        break;
    case CALL_AFFINITY:
        wake_leave(request->command);
        break;
    case CALL_SOCKET:
    case CALL_CONNECT:
    case CALL_BIND:
    case CALL_SEND:
        return socket_call(request);
    case CALL_SIGNAL:
        return kill_call(request);
    case CALL_EXEC:
        return exec_call(request);
    case CALL_CHANGE:
        answer = alone_is(request) ? answer_continue() : mode_change(request);
        break;
    case CALL_ACCESS:
        break;
    case CALL_OPEN:
    case CALL_MKDIR:
    case CALL_MKNOD:
    case CALL_SYMLINK:
    case CALL_LINK:
    case CALL_RENAME:
        answer = perform(request);
        break;
    }
    if (answer.kind == ANSWER_CONTINUE && alone_is(request))
        answer = alone_do(request);
    return answer.kind == ANSWER_CONTINUE || is_refusal(&answer) ? judge(request, answer) : answer;
}

bool command_serve(struct command *command)
{
    struct k_seccomp_notif notif = {0};
    struct request request = {.command = command, .notif = &notif};
    struct answer answer;

    if (ioctl(command->listener, (int)K_SECCOMP_IOCTL_NOTIF_RECV, &notif) < 0)
        return errno == ENOENT || errno == EINTR;
    wake_count(command);
    request.thread = (pid_t)notif.pid;
    request.call = call_find(notif.data.nr);
    request.nested = nested_find(command, request.thread);
    if (command->root < 0)
        open_root(command, request.thread);
    if (request.call && command->root >= 0) {
        answer = request_handle(&request);
    } else if (request.call && request.call->kind == CALL_EXEC && !command->has_begun) {
        answer = answer_continue();
        command->execs.has_begun = true; /* the next one is not the launcher's */
    } else {
        answer = answer_error(ENOSYS); /* what we were not told of cannot be asked */
    }
    command->has_begun |= request.call && request.call->kind != CALL_EXEC;
    request_respond(&request, answer);
    return true;
}

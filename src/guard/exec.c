/* See exec.h. A search along PATH is many calls that fail: what counts is what is there and executable.
 *
 *                      .-> told -> its process ends -> told
 *     call -> [asked] -+-> refused
 *                      '-> moved -> a stub -> the host runs it outside -> the stub ends like that
 *
 * The first one is the launcher's, about which the host has decided before: it waits for nobody.
 *
 * What is told, asked and run outside is what was read here, once. To go on means that the kernel reads
 * again: another thread can have it execute something else, in the same sandbox (docs/threat-model.md).
 * The guard waits for nobody: what the channel does not take is told when it does. */
#include "guard/exec.h"

#include "base/auto.h"
#include "base/pass.h"
#include "guard/facts.h"
#include "guard/nested.h"
#include "guard/outside.h"
#include "guard/points.h"
#include "guard/program.h"
#include "guard/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum exec_state {
    EXEC_RUNS,   /* a process has executed it */
    EXEC_ASKED,  /* the call waits for the answer */
    EXEC_MOVING, /* a child of ours has the caller repeat its call for the stub */
    EXEC_MOVED,  /* the stub starts */
    EXEC_READY,  /* the stub waits for its socket */
    EXEC_OUTSIDE /* the stub waits for the end of what runs outside */
};

/* What is watched of it, one descriptor at a time: the process; the child that moves it; the socket of
 * the stub. */
struct exec {
    struct exec *next;
    enum exec_state state;
    uint64_t id;
    pid_t process;
    pid_t thread;
    int watched;
    pid_t child;    /* MOVING */
    int program;    /* MOVING, MOVED: number of the stub's program there */
    bool is_untold; /* ASKED, READY, and the end of a stub: the channel was full */
    struct k_seccomp_notif notif;
    size_t packet_len;
    struct guard_fact *packet; /* all but RUNS */
};

static bool wants(const struct command *command, uint32_t flags)
{
    return command->map.header->flags & flags;
}

bool exec_begin(struct command *command)
{
    if (!wants(command, GUARD_MAP_EXEC | GUARD_MAP_JUDGE))
        return true;
    command->execs.poller = epoll_create1(EPOLL_CLOEXEC);
    return command->execs.poller >= 0 && fcntl(command->channel, F_SETFL, O_NONBLOCK) == 0;
}

/* --- the table --- */

static int process_open(pid_t process)
{
    return (int)syscall(K_SYS_PIDFD_OPEN, process, 0);
}

/* Closing it is not enough: a child of ours that was made a moment ago has a copy, and as long as it has, the
 * poller would tell of it. */
static void unwatch(const struct command *command, struct exec *exec)
{
    if (exec->watched < 0)
        return;
    epoll_ctl(command->execs.poller, EPOLL_CTL_DEL, exec->watched, NULL);
    close(exec->watched);
    exec->watched = -1;
}

static bool watch(const struct command *command, struct exec *exec, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.ptr = exec}};

    unwatch(command, exec);
    exec->watched = fd;
    return fd >= 0 && epoll_ctl(command->execs.poller, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void forget(struct command *command, struct exec *exec)
{
    struct exec **at = &command->execs.first;

    while (*at != exec)
        at = &(*at)->next;
    *at = exec->next;
    if (exec->state == EXEC_RUNS)
        command->execs.running--;
    else
        command->execs.held--;
    if (exec->child) {
        kill(exec->child, SIGKILL);
        while (waitpid(exec->child, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    unwatch(command, exec);
    free(exec->packet);
    free(exec);
}

static struct exec *exec_new(struct command *command, enum exec_state state)
{
    struct exec *exec = calloc(1, sizeof *exec);

    if (!exec)
        return NULL;
    exec->state = state;
    exec->watched = -1;
    exec->next = command->execs.first;
    command->execs.first = exec;
    if (state == EXEC_RUNS)
        command->execs.running++;
    else
        command->execs.held++;
    return exec;
}

static struct exec *find_held(const struct command *command, uint64_t id)
{
    struct exec *exec = command->execs.first;

    while (exec && (exec->id != id || exec->state == EXEC_RUNS))
        exec = exec->next;
    return exec;
}

static void tell_end(struct command *command, struct exec *exec)
{
    struct k_pidfd_info info = {.mask = K_PIDFD_INFO_EXIT};
    struct guard_fact fact;
    bool is_known =
        ioctl(exec->watched, (int)K_PIDFD_GET_INFO, &info) == 0 && (info.mask & K_PIDFD_INFO_EXIT);

    fact_begin(&fact, GUARD_FACT_EXIT);
    fact.id = exec->id;
    fact.pid = exec->process;
    fact.number = is_known ? info.exit_code : GUARD_NO_STATUS;
    facts_send(command, &fact, packet_len(0));
    forget(command, exec);
}

/* The last exec of the process, unless it has ended and its number is another's by now. */
static struct exec *find_process(struct command *command, pid_t process)
{
    struct exec *exec = command->execs.first;
    struct pollfd ended;

    while (exec && (exec->state != EXEC_RUNS || exec->process != process))
        exec = exec->next;
    if (!exec)
        return NULL;
    ended = (struct pollfd){.fd = exec->watched, .events = 0};
    if (poll(&ended, 1, 0) == 0)
        return exec;
    tell_end(command, exec);
    return NULL;
}

enum { ABOVE_MAX = 16 };

/* The exec of the process itself, or of the nearest one above that has one; 0. */
static uint64_t find_parent(struct command *command, pid_t process, pid_t parent)
{
    const struct exec *exec = find_process(command, process);

    for (int i = 0; !exec && i < ABOVE_MAX && parent > 1; i++) {
        pid_t above = parent;

        exec = find_process(command, above);
        if (!exec && !remote_process(above, &above, &parent))
            break;
    }
    return exec ? exec->id : 0;
}

/* --- told --- */

/* Told when it is a power of two, and at the end. */
static void tell_count(struct command *command, bool is_end)
{
    struct execs *execs = &command->execs;
    struct guard_fact fact;

    if (!execs->untold || (!is_end && (execs->untold & (execs->untold - 1))))
        return;
    fact_begin(&fact, GUARD_FACT_EXEC);
    fact.operation = GUARD_OP_EXECUTE;
    fact.entry = GUARD_NO_ENTRY;
    fact.count = execs->untold - execs->told_of_untold;
    if (fact.count && facts_send(command, &fact, packet_len(0)))
        execs->told_of_untold = execs->untold;
}

/* From now on the process is what this exec made of it. */
static void tell_exec(struct command *command, struct guard_fact *packet, size_t len)
{
    struct exec *exec = find_process(command, packet->pid);

    packet->kind = GUARD_FACT_EXEC;
    packet->count = 1;
    if (command->execs.told == EXECS_TOLD_MAX || !facts_send(command, packet, len)) {
        command->execs.untold++;
        tell_count(command, false);
        return;
    }
    command->execs.told++;
    if (!exec && command->execs.running < EXECS_RUN_MAX) {
        exec = exec_new(command, EXEC_RUNS);
        /* only that it has been reaped is told: before, nobody can say how it ended */
        if (exec && !watch(command, exec, process_open(packet->pid), 0)) {
            forget(command, exec);
            exec = NULL;
        }
    }
    if (exec) {
        exec->process = packet->pid;
        exec->id = packet->id;
    }
}

/* --- asked --- */

static struct request request_of(struct command *command, const struct exec *exec)
{
    return (struct request){
        .command = command,
        .call = call_find(exec->notif.data.nr),
        .notif = &exec->notif,
        .thread = exec->thread,
    };
}

/* It is refused: what the host wants cannot be done, and why not. */
static void tell_refused(struct command *command, struct guard_fact *packet, size_t len, int why)
{
    packet->kind = GUARD_FACT_DENIED;
    packet->error = EACCES;
    packet->number = why;
    packet->count = 1;
    facts_send(command, packet, len);
}

/* The channel is full: exec_look() hears when it is no more. */
static void tell_later(const struct command *command, struct exec *exec)
{
    struct epoll_event room = {.events = EPOLLOUT};

    exec->is_untold = true;
    epoll_ctl(command->execs.poller, EPOLL_CTL_ADD, command->channel, &room);
}

static void tell_asked(struct command *command, struct exec *exec)
{
    if (!facts_send(command, exec->packet, exec->packet_len))
        tell_later(command, exec);
}

/* 0 or why it cannot be asked about. */
static int ask(const struct request *request, const struct guard_fact *packet, size_t len)
{
    struct command *command = request->command;
    struct exec *exec;

    if (command->execs.held >= EXECS_HELD_MAX)
        return EAGAIN;
    exec = exec_new(command, EXEC_ASKED);
    if (!exec)
        return ENOMEM;
    exec->id = packet->id;
    exec->process = packet->pid;
    exec->thread = request->thread;
    exec->notif = *request->notif;
    exec->packet_len = len;
    exec->packet = malloc(len);
    if (!exec->packet || !watch(command, exec, remote_pidfd(request->thread), EPOLLIN) ||
        !request_is_valid(request)) {
        forget(command, exec);
        return ESRCH;
    }
    memcpy(exec->packet, packet, len);
    exec->packet->kind = GUARD_FACT_ASKED;
    tell_asked(command, exec);
    return 0;
}

static void let_go(struct command *command, struct exec *exec, struct answer answer)
{
    const struct request request = request_of(command, exec);

    request_respond(&request, answer);
}

/* What the host wants cannot be done: the call is refused, unless it has its answer already. */
static void refuse(struct command *command, struct exec *exec, int why, bool has_answer)
{
    if (!has_answer)
        let_go(command, exec, answer_error(EACCES));
    tell_refused(command, exec->packet, exec->packet_len, why);
    forget(command, exec);
}

/* Its child tells by its end how it went (moved()). */
static void move(struct command *command, struct exec *exec)
{
    const struct request request = request_of(command, exec);
    int program = exec->packet->flags & GUARD_FLAG_TRUNCATED ? -E2BIG : outside_program();

    if (program == -1)
        program = -errno;
    if (program >= 0)
        program = request_lend(&request, program, true);
    if (program < 0) {
        refuse(command, exec, -program, false);
        return;
    }
    exec->program = program;
    exec->child = outside_move(&request, program);
    if (exec->child < 0) {
        exec->child = 0;
        refuse(command, exec, errno, false);
        return;
    }
    exec->state = EXEC_MOVING;
    /* if it cannot be watched, the repeated call tells as well */
    watch(command, exec, process_open(exec->child), EPOLLIN);
}

/* It repeats its call now, or has done so already. */
static void expect_stub(struct command *command, struct exec *exec)
{
    exec->state = EXEC_MOVED;
    if (!watch(command, exec, process_open(exec->process), EPOLLIN)) {
        facts_tell_withdrawn(command, exec->id);
        forget(command, exec);
    }
}

static void moved(struct command *command, struct exec *exec)
{
    int status = 0;

    while (waitpid(exec->child, &status, 0) < 0 && errno == EINTR)
        continue;
    exec->child = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        expect_stub(command, exec);
    } else if (WIFEXITED(status) && WEXITSTATUS(status) != ESRCH) {
        refuse(command, exec, WEXITSTATUS(status), true);
    } else { /* the caller is gone, or asks again */
        facts_tell_withdrawn(command, exec->id);
        forget(command, exec);
    }
}

bool exec_answer(struct command *command, uint64_t id, enum guard_verdict verdict)
{
    struct exec *exec = find_held(command, id);

    if (!exec || exec->state != EXEC_ASKED)
        return exec;
    if (verdict == GUARD_OUTSIDE && nested_find(command, exec->thread))
        verdict = GUARD_YES; /* a sandbox within has no rule that lets it out */
    if (verdict == GUARD_OUTSIDE) {
        move(command, exec);
        return true;
    }
    if (verdict == GUARD_YES && wants(command, GUARD_MAP_EXEC))
        tell_exec(command, exec->packet, exec->packet_len);
    if (verdict == GUARD_STOP)
        remote_terminate(exec->watched);
    let_go(command, exec, verdict == GUARD_YES ? answer_continue() : answer_error(EACCES));
    forget(command, exec);
    return true;
}

/* --- outside --- */

static bool tell_signal(struct command *command, const struct exec *exec, int number)
{
    struct guard_fact fact;

    fact_begin(&fact, GUARD_FACT_SIGNAL);
    fact.operation = GUARD_OP_EXECUTE;
    fact.entry = GUARD_NO_ENTRY;
    fact.id = exec->id;
    fact.number = number;
    return facts_send(command, &fact, packet_len(0));
}

/* The stub was killed: so is what runs outside. */
static void tell_stub_end(struct command *command, struct exec *exec)
{
    if (exec->watched >= 0)
        epoll_ctl(command->execs.poller, EPOLL_CTL_DEL, exec->watched, NULL);
    if (tell_signal(command, exec, SIGKILL))
        forget(command, exec);
    else
        tell_later(command, exec);
}

static void read_stub(struct command *command, struct exec *exec)
{
    int number = 0;
    ssize_t len = recv(exec->watched, &number, sizeof number, MSG_DONTWAIT);

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0)
        tell_stub_end(command, exec);
    else if (len == (ssize_t)sizeof number && number > 0 && number < OUTSIDE_SIGNALS_MAX)
        tell_signal(command, exec, number);
}

void exec_exit(struct command *command, uint64_t id, int wait_status)
{
    struct exec *exec = find_held(command, id);

    if (!exec || exec->state != EXEC_OUTSIDE)
        return;
    send(exec->watched, &wait_status, sizeof wait_status, MSG_DONTWAIT | MSG_NOSIGNAL);
    forget(command, exec);
}

/* The stub's descriptors 0, 1 and 2 go to the host, and its end of a socket to the stub. */
static void tell_outside(struct command *command, struct exec *exec)
{
    const struct request request = request_of(command, exec);
    struct guard_fact *packet = exec->packet;
    int pair[2] = {-1, -1};
    int fds[3];
    size_t count = 0;
    bool is_told, is_given;

    packet->kind = GUARD_FACT_OUTSIDE;
    packet->flags &= GUARD_FLAG_TRUNCATED;
    for (int i = 0; i < 3; i++) {
        int fd = remote_fd(request.thread, i);

        if (fd < 0)
            continue;
        packet->flags |= (unsigned)GUARD_FLAG_STDIO << i;
        fds[count++] = fd;
    }
    is_told = count ? pass_send(command->channel, packet, exec->packet_len, fds, count) == 0
                    : facts_send(command, packet, exec->packet_len);
    pass_close(fds, count);
    if (!is_told) {
        tell_later(command, exec);
        return;
    }
    exec->state = EXEC_OUTSIDE;
    is_given = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 &&
               request_give(&request, pair[1], true) == 0;
    if (pair[1] >= 0)
        close(pair[1]);
    /* what cannot be watched or was not taken (its limit may be another by now) ends: so the stub does,
     * and what runs outside */
    if (!watch(command, exec, pair[0], EPOLLIN) || !is_given)
        let_go(command, exec, answer_error(EAGAIN));
    if (exec->watched < 0)
        tell_stub_end(command, exec);
}

/* The channel has room again. */
static void tell_again(struct command *command)
{
    struct exec *next;

    epoll_ctl(command->execs.poller, EPOLL_CTL_DEL, command->channel, NULL);
    for (struct exec *exec = command->execs.first; exec; exec = next) {
        next = exec->next;
        if (!exec->is_untold)
            continue;
        exec->is_untold = false;
        if (exec->state == EXEC_ASKED)
            tell_asked(command, exec);
        else if (exec->state == EXEC_READY)
            tell_outside(command, exec);
        else
            tell_stub_end(command, exec);
    }
}

/* --- what happens --- */

void exec_look(struct command *command)
{
    struct epoll_event event;
    struct exec *exec;

    if (epoll_wait(command->execs.poller, &event, 1, 0) <= 0)
        return;
    exec = event.data.ptr;
    if (!exec) {
        tell_again(command);
        return;
    }
    switch (exec->state) {
    case EXEC_RUNS:
        tell_end(command, exec);
        break;
    case EXEC_MOVING:
        moved(command, exec);
        break;
    case EXEC_OUTSIDE:
        read_stub(command, exec);
        break;
    case EXEC_ASKED:
    case EXEC_MOVED:
    case EXEC_READY: /* its process has ended */
        facts_tell_withdrawn(command, exec->id);
        forget(command, exec);
        break;
    }
}

bool exec_is_over(const struct command *command)
{
    return command->execs.running == 0;
}

void exec_end(struct command *command)
{
    tell_count(command, true);
    while (command->execs.first)
        forget(command, command->execs.first);
    if (command->execs.poller >= 0)
        close(command->execs.poller);
    command->execs.poller = -1;
}

/* --- the call --- */

static struct exec *find_moving(const struct command *command, pid_t thread)
{
    struct exec *exec = command->execs.first;

    while (exec &&
           !((exec->state == EXEC_MOVING && exec->thread == thread) ||
             (exec->state == EXEC_MOVED && (exec->thread == thread || exec->process == thread))))
        exec = exec->next;
    return exec;
}

/* Whether the call is part of a move; *ret_answer is the answer to it then. */
static bool go_on_moving(const struct request *request, struct answer *ret_answer)
{
    struct command *command = request->command;
    struct exec *exec = find_moving(command, request->thread);
    const uint64_t id = exec ? exec->id : 0;

    *ret_answer = answer_continue();
    if (exec && exec->thread == request->thread && exec->program >= 0 &&
        outside_is_move(request, exec->program)) {
        exec->program = -1;
        if (exec->state == EXEC_MOVING)
            moved(command, exec); /* it has let go of the caller, so it is about to end */
        return find_held(command, id);
    }
    if (exec && exec->state == EXEC_MOVED && outside_is_stub(request)) {
        exec->state = EXEC_READY;
        exec->thread = request->thread;
        exec->notif = *request->notif;
        ret_answer->kind = ANSWER_LATER;
        tell_outside(command, exec);
        return true;
    }
    if (exec && exec->state == EXEC_MOVED) { /* it goes on as something else */
        facts_tell_withdrawn(command, exec->id);
        forget(command, exec);
    }
    return false;
}

/* A program that a denied entry hides, or that may not be executed because of it. */
static void tell_denied(const struct request *request, const char *path, bool is_found)
{
    const struct map *map = &request->command->map;
    const int entry = map_find(map, path);

    if (*path == '/' && map_access(map, entry) == GUARD_DENY && !map_is_within(path, "/proc") &&
        !map_is_within(path, "/dev") && !strstr(path, "/../") && !strstr(path, "//") &&
        program_is_executable(request->command->outside, path + 1) && request_is_valid(request))
        facts_tell(request, &(struct fact){.operation = GUARD_OP_EXECUTE,
                                           .path = path,
                                           .entry = entry,
                                           .error = is_found ? EACCES : ENOENT});
}

struct answer exec_call(const struct request *request)
{
    static struct guard_fact packet;
    struct command *command = request->command;
    const bool is_first = !command->execs.has_begun;
    struct answer answer;
    pid_t process, parent;
    bool is_found;
    size_t len;
    int why;

    if (go_on_moving(request, &answer))
        return answer;
    fact_begin(&packet, GUARD_FACT_EXEC);
    errno = 0;
    is_found = program_find(request, packet.strings);
    /* Behind a watchpoint: the kernel's look is a question of its own, which may end in a yes. */
    is_found |= command->points && errno == EACCES;
    if (!points_has(command, packet.strings))
        tell_denied(request, packet.strings, is_found);
    if (!is_found || !wants(command, GUARD_MAP_EXEC | GUARD_MAP_JUDGE) ||
        !remote_process(request->thread, &process, &parent))
        return answer_continue();
    command->execs.has_begun = true;
    len = program_describe(request, process, &packet);
    packet.id = ++command->last_id;
    packet.parent = find_parent(command, process, parent);
    if (!request_is_valid(request))
        return answer_continue();
    if (is_first || !wants(command, GUARD_MAP_JUDGE)) {
        if (wants(command, GUARD_MAP_EXEC))
            tell_exec(command, &packet, len);
        return answer_continue();
    }
    why = ask(request, &packet, len);
    if (why)
        tell_refused(command, &packet, len, why);
    return why ? answer_error(EACCES) : (struct answer){.kind = ANSWER_LATER};
}

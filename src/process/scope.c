/* See scope.h. What the helper is told comes by its arguments: the launcher, then the limits. It
 * answers with one line, "ok" or why not, and ends when its stdin does: also when we are killed. */
#include "process/scope.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/program.h"
#include "base/str.h"
#include "process/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_WAIT_NS UINT64_C(2000000000) /* 2 s: more than systemd takes on a busy machine */

static int spawn(const char *program, char *const *argv, int input, int output, pid_t *ret,
                 struct err *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int error;

    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    error = posix_spawn(ret, program, &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    errno = error;
    return error ? err_sys(err, "starting %s", program) : 0;
}

/* One line; "" when none came in time. */
static void read_answer(int fd, char *ret, size_t size)
{
    const uint64_t until_ns = clock_after(clock_now_ns(), ANSWER_WAIT_NS);
    size_t len = 0;

    while (len + 1 < size && !memchr(ret, '\n', len)) {
        const uint64_t now_ns = clock_now_ns();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        ssize_t got = 0;

        if (now_ns >= until_ns)
            break;
        if (poll(&wait, 1, (int)((until_ns - now_ns) / 1000000) + 1) < 0 && errno == EINTR)
            continue;
        got = wait.revents ? read(fd, ret + len, size - 1 - len) : 0;
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    ret[len] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
}

int scope_start(struct scope *scope, pid_t launcher, const struct cgroup_limits *limits,
                struct err *err)
{
    AUTO_FREE char *program = program_find("cordon-scope", err);
    AUTO_CLOSE int input = -1;
    AUTO_CLOSE int output = -1;
    AUTO_CLOSE int answers = -1;
    char name[] = "cordon-scope";
    char pid[16], memory[24], pids[24];
    char *const argv[] = {name, pid, memory, pids, NULL};
    char answer[200];
    int ends[2];

    *scope = (struct scope){.held = -1};
    if (!program)
        return -1;
    snprintf(pid, sizeof pid, "%d", (int)launcher);
    snprintf(memory, sizeof memory, "%" PRIu64, limits->of[CGROUP_MEMORY]);
    snprintf(pids, sizeof pids, "%" PRIu64, limits->of[CGROUP_PIDS]);
    if (pipe2(ends, O_CLOEXEC))
        return err_sys(err, "making a pipe");
    input = ends[0];
    scope->held = ends[1];
    if (pipe2(ends, O_CLOEXEC))
        return err_sys(err, "making a pipe");
    answers = ends[0];
    output = ends[1];
    if (spawn(program, argv, input, output, &scope->pid, err))
        return -1;
    auto_close(&output);
    output = -1;
    read_answer(answers, answer, sizeof answer);
    if (str_eq(answer, "ok"))
        return 0;
    return err_set(err, ERR_UNSUPPORTED, "systemd gives no scope: %s",
                   *answer ? answer : "no answer in time");
}

void scope_end(struct scope *scope)
{
    if (scope->pid > 0) {
        kill(scope->pid, SIGKILL);
        while (waitpid(scope->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    auto_close(&scope->held);
    *scope = (struct scope){.held = -1};
}

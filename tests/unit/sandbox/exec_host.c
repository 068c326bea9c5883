/* See exec_host.h. */
#include "exec_host.h"

#include "base/auto.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEADLINE_MS = 60000, FIXED = 3 };

static void run_outside(struct exec_host *host, const struct launch_fact *fact)
{
    int fds[3];
    int slot = 0;
    pid_t self = getpid();
    pid_t pid;

    launch_take_stdio(&host->command.launch, fds);
    while (slot < OUTSIDE_MAX && host->running[slot].pid)
        slot++;
    assert_in_range(slot, 0, OUTSIDE_MAX - 1);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != self)
            _exit(98);
        for (int i = 0; i < 3; i++) {
            close(i);
            if (fds[i] >= 0 && dup2(fds[i], i) != i) /* allow dup2: those of the child */
                _exit(99);
        }
        setenv("WHERE", "outside", 1);
        if (chdir(fact->cwd) == 0)
            execv(fact->path, (char *const *)fact->argv);
        _exit(127);
    }
    for (int i = 0; i < 3; i++)
        auto_close(&fds[i]);
    host->running[slot].id = fact->id;
    host->running[slot].pid = pid;
    host->running[slot].pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    assert_true(host->running[slot].pidfd >= 0);
}

static void pass_signal(const struct exec_host *host, const struct launch_fact *fact)
{
    for (int i = 0; i < OUTSIDE_MAX; i++)
        if (host->running[i].pid && host->running[i].id == fact->id)
            kill(host->running[i].pid, fact->number);
}

static void note(struct exec_host *host, const char *what, const struct launch_fact *fact)
{
    buf_appendf(&host->log, "%s %s", what, path_name(fact->path));
    for (const char *const *word = fact->argv; word && *word && word - fact->argv < 8; word++)
        buf_appendf(&host->log, " %.60s", *word);
    buf_appendf(&host->log, "\n");
}

static void take(struct exec_host *host, const struct launch_fact *fact)
{
    enum launch_verdict verdict = LAUNCH_YES;

    switch (fact->kind) {
    case FACT_EXEC:
        host->execs += fact->more ? fact->more : 1;
        note(host, "exec", fact);
        break;
    case FACT_EXIT:
        host->exits++;
        buf_appendf(&host->log, "exit %#x\n", (unsigned)fact->number);
        break;
    case FACT_ASKED:
        host->asked++;
        note(host, "asked", fact);
        if (host->judge)
            verdict = host->judge(host, fact);
        if ((int)verdict == LAUNCH_HOLD)
            host->held++;
        else
            launch_answer(&host->command.launch, fact->id, verdict);
        break;
    case FACT_OUTSIDE:
        host->outside++;
        note(host, "outside", fact);
        run_outside(host, fact);
        break;
    case FACT_OUTSIDE_SIGNAL:
        buf_appendf(&host->log, "signal %d\n", fact->number);
        pass_signal(host, fact);
        break;
    case FACT_WITHDRAWN:
        host->withdrawn++;
        buf_appendf(&host->log, "withdrawn\n");
        break;
    case FACT_DENIED:
        host->refused++;
        note(host, "denied", fact);
        break;
    case FACT_DONE:
    case FACT_LOST:
        break;
    }
    if (host->on_fact)
        host->on_fact(host, fact);
}

static void take_all(struct exec_host *host)
{
    struct launch_fact fact;

    while (launch_read_fact(&host->command.launch, &fact))
        take(host, &fact);
}

/* However late it comes: the guard closes its end behind it. */
static void take_rest(struct exec_host *host)
{
    struct pollfd end = {.fd = host->command.launch.facts, .events = 0};

    if (poll(&end, 1, DEADLINE_MS) == 0)
        fail_msg("the guard has not let go of a command that is over");
    take_all(host);
}

static void reap(struct exec_host *host, int slot)
{
    int status;

    if (waitpid(host->running[slot].pid, &status, WNOHANG) <= 0)
        return;
    launch_answer_exit(&host->command.launch, host->running[slot].id, status);
    close(host->running[slot].pidfd);
    host->running[slot].pid = 0;
}

/* What runs for a command that is over, or that has failed its test. */
static void end_outside(struct exec_host *host)
{
    for (int i = 0; i < OUTSIDE_MAX; i++)
        if (host->running[i].pid) {
            kill(host->running[i].pid, SIGKILL);
            waitpid(host->running[i].pid, NULL, 0);
            close(host->running[i].pidfd);
            host->running[i].pid = 0;
        }
}

struct ended exec_host_run(struct exec_host *host, struct sandbox *sandbox, const char *cwd,
                           char *const *argv)
{
    struct ended ended = {0};
    struct err err;

    host->log = (struct buf){.max = 16 << 20};
    command_start(&host->command, sandbox, launch_in(cwd, argv));
    while (ended.report.event == LAUNCH_NOTHING || ended.report.event == LAUNCH_STARTED) {
        struct pollfd fds[FIXED + OUTSIDE_MAX] = {
            {.fd = host->command.launch.status, .events = POLLIN},
            {.fd = host->command.launch.is_unguarded ? -1 : host->command.launch.facts,
             .events = POLLIN},
            {.fd = host->command.is_silent ? -1 : host->command.out, .events = POLLIN},
        };

        for (int i = 0; i < OUTSIDE_MAX; i++)
            fds[FIXED + i] = (struct pollfd){
                .fd = host->running[i].pid ? host->running[i].pidfd : -1, .events = POLLIN};
        if (poll(fds, FIXED + OUTSIDE_MAX, DEADLINE_MS) == 0)
            fail_msg("nothing happens; so far:\n%.*s\n%.*s", (int)host->log.len, host->log.data,
                     (int)host->command.text.len, host->command.text.data);
        if (fds[1].revents)
            take_all(host);
        if (fds[2].revents)
            command_read(&host->command);
        for (int i = 0; i < OUTSIDE_MAX; i++)
            if (fds[FIXED + i].revents)
                reap(host, i);
        if (!fds[0].revents)
            continue;
        ended.has_started |= ended.report.event == LAUNCH_STARTED;
        if (launch_read(&host->command.launch, &ended.report, &err))
            fail_msg("%s", err.msg);
        ended.has_started |= ended.report.event == LAUNCH_STARTED;
    }
    take_rest(host);
    assert_false(host->command.launch.is_unguarded);
    end_outside(host);
    launch_done(&host->command.launch);
    if (!host->command.is_silent)
        command_expect_silence(&host->command);
    close(host->command.out);
    ended.text = buf_take(&host->command.text);
    return ended;
}

void exec_host_done(struct exec_host *host)
{
    end_outside(host);
    buf_done(&host->log);
}

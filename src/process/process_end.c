/* See process_end.h. */
#include "process/process_end.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

void process_end_set_exited(struct process_end *end, const struct launch_report *report)
{
    end->ended_ns = clock_now_ns();
    end->usage_known = true;
    end->usage = report->usage;
    end->bytes_written = report->bytes_written;
    if (WIFSIGNALED(report->wait_status)) {
        end->how = PROCESS_SIGNALED;
        end->signal = WTERMSIG(report->wait_status);
    } else {
        end->how = PROCESS_EXITED;
        end->code = WEXITSTATUS(report->wait_status);
    }
}

void process_end_set_failed(struct process_end *end, enum launch_stage stage,
                            const struct err *failure)
{
    end->how = PROCESS_FAILED_TO_START;
    end->stage = stage;
    end->failure = *failure;
}

void process_end_set_gone(struct process_end *end, bool has_started)
{
    struct err err;

    if (has_started) {
        end->how = PROCESS_SIGNALED;
        end->signal = SIGKILL;
        return;
    }
    err_set(&err, ERR_SYSTEM, "the launcher died before it could start the command");
    process_end_set_failed(end, LAUNCH_STAGE_SANDBOX, &err);
}

int process_end_exit_code(const struct process_end *end)
{
    switch (end->how) {
    case PROCESS_EXITED:
        return end->code;
    case PROCESS_SIGNALED:
        return 128 + end->signal;
    case PROCESS_FAILED_TO_START:
        break;
    }
    return end->stage == LAUNCH_STAGE_EXEC && end->failure.sys == ENOENT ? 127 : 126;
}

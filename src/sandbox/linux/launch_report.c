/* What the launcher says of a launch, in the words of sandbox/sandbox.h. What guard and proxy say is in launch_fact.c. */
#include "sandbox/linux/launch_report.h"

#include "sandbox/linux/launch_fact.h"
#include "sandbox/linux/plan.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* A launcher that ends with something of ours unread resets the socket, which is told before what
 * the launcher had to say (unix(7): the error is taken by the first call). */
ssize_t launch_receive(const struct launch *launch, struct plan_message *ret, int flags)
{
    ssize_t len = recv(launch->status, ret, sizeof *ret, flags | MSG_DONTWAIT | MSG_TRUNC);

    if (len < 0 && errno == ECONNRESET)
        len = recv(launch->status, ret, sizeof *ret, flags | MSG_DONTWAIT | MSG_TRUNC);
    return len;
}

static void report_failure(const struct plan_message *message, struct launch_report *ret)
{
    static const enum launch_stage stages[] = {
        [PLAN_STAGE_SETUP] = LAUNCH_STAGE_SANDBOX,
        [PLAN_STAGE_CWD] = LAUNCH_STAGE_CWD,
        [PLAN_STAGE_EXEC] = LAUNCH_STAGE_EXEC,
    };

    ret->event = LAUNCH_FAILED;
    ret->stage = message->stage <= PLAN_STAGE_EXEC ? stages[message->stage] : LAUNCH_STAGE_SANDBOX;
    ret->failure = message->failure;
    ret->failure.msg[sizeof ret->failure.msg - 1] = '\0';
    if (message->stage == PLAN_STAGE_SETUP && message->op < PLAN_OP_COUNT)
        err_wrap(&ret->failure, "setting the sandbox up (%s)",
                 plan_op_name((enum plan_op)message->op));
}

/* ENOSYS is what the kernel answers when nobody is there to be asked. */
static void explain_failure(const struct launch *launch, struct err *failure)
{
    if (failure->sys != ENOSYS || !launch->channel)
        return;
    guard_channel_finish(launch->channel, true);
    if (guard_channel_is_broken(launch->channel))
        err_wrap(failure, "the guard of the sandbox was gone before the command began");
}

static struct timeval time_of(uint64_t microseconds)
{
    return (struct timeval){.tv_sec = (time_t)(microseconds / 1000000),
                            .tv_usec = (suseconds_t)(microseconds % 1000000)};
}

static void report_exit(const struct plan_message *message, struct launch_report *ret)
{
    const struct plan_usage *usage = &message->usage;

    ret->event = LAUNCH_EXITED;
    ret->wait_status = message->wait_status;
    ret->usage.ru_utime = time_of(usage->user_us);
    ret->usage.ru_stime = time_of(usage->system_us);
    ret->usage.ru_maxrss = (long)usage->memory_peak_kb;
    ret->usage.ru_nvcsw = (long)usage->voluntary_switches;
    ret->usage.ru_nivcsw = (long)usage->involuntary_switches;
    ret->usage.ru_oublock = (long)usage->blocks_written;
    ret->bytes_written = usage->blocks_written * 512; /* getrusage(2) */
}

int launch_read(struct launch *launch, struct launch_report *ret, struct err *err)
{
    struct plan_message message;
    ssize_t len = launch_receive(launch, &message, 0);

    *ret = (struct launch_report){.event = LAUNCH_NOTHING};
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (len < 0 && errno != ECONNRESET)
        return err_sys(err, "reading what the launcher says");
    if (len != (ssize_t)sizeof message) {
        ret->event = LAUNCH_GONE;
    } else if (message.kind == PLAN_MESSAGE_STARTED) {
        ret->event = LAUNCH_STARTED;
    } else if (message.kind == PLAN_MESSAGE_STOPPED) {
        ret->event = LAUNCH_STOPPED;
    } else if (message.kind == PLAN_MESSAGE_EXITED) {
        launch->has_exited = true;
        launch->wait_status = message.wait_status;
        launch->is_over = !launch->lingers;
        launch_facts_finish(launch);
        report_exit(&message, ret);
    } else {
        launch->is_over = true;
        report_failure(&message, ret);
        explain_failure(launch, &ret->failure);
    }
    return 0;
}

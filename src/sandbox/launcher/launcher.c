/* The launcher does what the plan says, in its order, and decides nothing.
 *
 *     namespaces -> wait for the plan and the command's stdio -> check the plan -> file system
 *       -> keyring, capabilities -> start the command (limits, Landlock, seccomp in its process)
 *       -> wait, pass on, report
 *
 * It is its own small program, so that nothing of the caller's memory or environment is ever in
 * the sandbox. It is not dumpable: the command can neither trace it nor read its /proc files.
 * The first failure ends it; nothing of the command has run then.
 */
#include "sandbox/launcher/launcher.h"

#include "sandbox/launcher/command.h"
#include "sandbox/launcher/devices.h"
#include "sandbox/launcher/inbox.h"
#include "sandbox/launcher/mounts.h"
#include "sandbox/launcher/pid1.h"
#include "sandbox/launcher/restrict.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct mounts mounts; /* too large for the stack of a small program */

static int launcher_fail(const struct err *err, enum plan_stage stage, uint32_t op)
{
    struct plan_message message = {
        .kind = PLAN_MESSAGE_FAILED, .stage = stage, .op = op, .failure = *err};

    init_report(&message);
    return 1;
}

/* Maps the plan; the mapping stays as long as the program. */
static int launcher_read(int file, struct plan_view *ret, struct err *err)
{
    struct stat st;
    void *memory;

    if (fstat(file, &st))
        return err_sys(err, "looking at the plan");
    if (st.st_size <= 0 || st.st_size > PLAN_MAX_BYTES)
        return err_set(err, ERR_INVALID, "a plan of %lld bytes", (long long)st.st_size);
    memory = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED)
        return err_sys(err, "reading the plan");
    return plan_view_init(ret, memory, (size_t)st.st_size, err);
}

static int launcher_apply(const struct plan_view *plan, const struct plan_record *record,
                          struct err *err)
{
    const char *other = record->op == PLAN_LINK ? plan_string(plan, record->other) : "";

    switch (record->op) {
    case PLAN_NAMESPACES:
    case PLAN_IDENTITY:
    case PLAN_LOOPBACK:
    case PLAN_LIMIT:
    case PLAN_LANDLOCK:
    case PLAN_LANDLOCK_RULE:
    case PLAN_SECCOMP:
        return 0; /* done already, or put on in the command's process */
    case PLAN_SESSION_KEYRING:
        return restrict_keyring(err);
    case PLAN_DROP:
        return restrict_drop(err);
    case PLAN_HOLD_DEVICES:
        if (plan->header->flags & PLAN_COMMAND_CONSOLE)
            devices_hold_console(&mounts);
        break;
    default:
        break;
    }
    return mounts_apply(&mounts, record, plan_string(plan, record->path), other, err);
}

/* Every record in order; on failure `ret_op` names the operation. */
static int launcher_setup(const struct plan_view *plan, uint32_t *ret_op, struct err *err)
{
    bool has_console = plan->header->flags & PLAN_COMMAND_CONSOLE;

    if (mounts_init(&mounts, err))
        return -1;
    for (uint32_t i = 0; i < plan->header->records; i++) {
        *ret_op = plan->records[i].op;
        if (*ret_op == PLAN_DROP && has_console && devices_show_console(&mounts, err))
            return -1;
        if (launcher_apply(plan, &plan->records[i], err))
            return -1;
    }
    *ret_op = PLAN_OP_COUNT;
    return 0;
}

/* What takes no plan, and mostly is done while the caller writes it. */
static int launcher_begin(const char *hex, uint32_t *ret_op, struct err *err)
{
    unsigned long namespaces = strtoul(hex, NULL, 16);

    command_signals();
    *ret_op = PLAN_NAMESPACES;
    if (namespaces && unshare((int)namespaces))
        return err_sys(err, "making namespaces");
    *ret_op = PLAN_LOOPBACK;
    if ((namespaces & CLONE_NEWNET) && restrict_loopback(err))
        return -1;
    *ret_op = PLAN_OP_COUNT;
    return 0;
}

int launcher_main(const char *namespaces)
{
    struct plan_message started = {.kind = PLAN_MESSAGE_STARTED};
    struct command_failure failure = {0};
    struct plan_view plan;
    struct err err = {0};
    bool has_namespace;
    uint32_t op = PLAN_OP_COUNT;
    int file;
    mode_t mask = umask(0); /* modes in the plan are meant as they stand */
    pid_t command;

    inbox_clear();
    if (launcher_begin(namespaces, &op, &err))
        return launcher_fail(&err, PLAN_STAGE_SETUP, op);
    if (!inbox_receive(&file))
        return 0; /* not needed any more */
    if (launcher_read(file, &plan, &err) || inbox_close(&err) || init_signals(&err) ||
        launcher_setup(&plan, &op, &err))
        return launcher_fail(&err, PLAN_STAGE_SETUP, op);
    has_namespace = plan.header->flags & PLAN_COMMAND_PID_NAMESPACE;
    /* Without a pid namespace nothing would kill the others: there the init has to see the end
     * itself. After the capabilities are gone, because a change of those takes the parent-death
     * signal away. */
    if (has_namespace && (plan.header->flags & PLAN_COMMAND_DIE_WITH_PARENT) &&
        !init_follow_parent())
        return 0;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
        (!has_namespace && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))) {
        err_sys(&err, "guarding the init");
        return launcher_fail(&err, PLAN_STAGE_SETUP, op);
    }
    umask(mask);
    init_close_rest();
    command = command_start(&plan, &failure);
    if (command < 0)
        return launcher_fail(&failure.err, failure.stage, PLAN_OP_COUNT);
    init_report(&started);
    for (int fd = 0; fd < 3; fd++)
        close(fd); /* the pipes have to end when the command ends */
    init_run(command, plan.header->flags);
    return 0;
}

/* The command's process: born by vfork(2), so that the init learns from shared memory whether and
 * why the program could not be executed, without another descriptor or message.
 */
#include "sandbox/launcher/command.h"

#include "base/auto.h"
#include "sandbox/launcher/kernel.h"
#include "sandbox/launcher/restrict.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_LIMIT = 4096 };

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

struct command {
    const struct plan_view *plan;
    char **argv;
    char **envp;
    pid_t init;
};

static void command_list(const struct plan_view *plan, uint32_t offset, uint32_t count, char **out)
{
    const char *text = plan_string(plan, offset);

    for (uint32_t i = 0; i < count; i++) {
        out[i] = (char *)text;
        text = plan_string_next(text);
    }
    out[count] = NULL;
}

static const char *command_path(char *const *envp)
{
    for (; *envp; envp++)
        if (strncmp(*envp, "PATH=", 5) == 0)
            return *envp + 5;
    return default_path;
}

/* Like execvpe(3), but it looks at the PATH of the command's environment. The errno of the most
 * telling failure is kept: EACCES beats ENOENT. */
static int command_execute(const char *name, const struct command *command)
{
    const char *path = command_path(command->envp);
    char file[PATH_LIMIT];
    int failure = ENOENT;

    if (strchr(name, '/') || !*name) {
        execve(name, command->argv, command->envp);
        return errno;
    }
    for (;;) {
        size_t len = strcspn(path, ":");

        if (len + strlen(name) + 3 < sizeof file) {
            memcpy(file, path, len);
            if (len == 0)
                file[len++] = '.';
            file[len] = '/';
            memcpy(file + len + 1, name, strlen(name) + 1);
            execve(file, command->argv, command->envp);
            if (errno != ENOENT && errno != ENOTDIR)
                failure = errno;
            if (failure != ENOENT && failure != EACCES)
                return failure;
            len = strcspn(path, ":");
        }
        if (path[len] == '\0')
            return failure;
        path += len + 1;
    }
}

/* By the system call: the C library keeps signals 32 to 34 to itself, and refuses to reset them
 * when somebody above us ignores them (GNU make does). A zeroed struct is SIG_DFL on every
 * architecture. */
void command_signals(void)
{
    const unsigned long by_default[8] = {0};

    for (int signal = 1; signal <= K_SIGNALS; signal++)
        syscall(SYS_rt_sigaction, signal, by_default, NULL, K_SIGSET_BYTES);
}

static int command_fail(struct command_failure *failure, enum plan_stage stage)
{
    failure->stage = stage;
    return -1;
}

/* Runs in the child; only returns on failure. */
static int command_child(const struct command *command, struct command_failure *failure)
{
    const struct plan_view *plan = command->plan;
    const char *cwd = plan_string(plan, plan->header->cwd);
    const char *program = plan_string(plan, plan->header->program);
    sigset_t none;
    int error;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || setsid() < 0) {
        err_sys(&failure->err, "leaving the init's session");
        return command_fail(failure, PLAN_STAGE_SETUP);
    }
    if (getppid() != command->init) /* the init died before it could take us along */
        _exit(127);
    if ((plan->header->flags & PLAN_COMMAND_TTY) && ioctl(0, TIOCSCTTY, 0)) {
        err_sys(&failure->err, "making the terminal the controlling one");
        return command_fail(failure, PLAN_STAGE_SETUP);
    }
    if (*cwd && chdir(cwd)) {
        err_sys(&failure->err, "entering %s", cwd);
        return command_fail(failure, PLAN_STAGE_CWD);
    }
    if (restrict_command(plan, &failure->err))
        return command_fail(failure, PLAN_STAGE_SETUP);
    if (plan->header->flags & PLAN_COMMAND_PROBE)
        _exit(0);
    error = command_execute(*program ? program : command->argv[0], command);
    errno = error;
    err_sys(&failure->err, "executing %s", *program ? program : command->argv[0]);
    return command_fail(failure, PLAN_STAGE_EXEC);
}

pid_t command_start(const struct plan_view *plan, struct command_failure *ret_failure)
{
    size_t pointers = (size_t)plan->header->argc + plan->header->envc + 2;
    AUTO_FREE char **lists = calloc(pointers, sizeof *lists);
    struct command command = {.plan = plan, .argv = lists, .init = getpid()};
    volatile bool has_failed = false;
    pid_t pid;

    if (!lists) {
        err_set(&ret_failure->err, ERR_LIMIT, "no memory for %zu arguments", pointers);
        return command_fail(ret_failure, PLAN_STAGE_SETUP);
    }
    command.envp = lists + plan->header->argc + 1;
    command_list(plan, plan->header->argv, plan->header->argc, command.argv);
    command_list(plan, plan->header->envp, plan->header->envc, command.envp);
    pid = vfork();
    if (pid == 0) {
        command_child(&command, ret_failure);
        has_failed = true;
        _exit(127);
    }
    if (pid < 0) {
        err_sys(&ret_failure->err, "starting a process");
        return command_fail(ret_failure, PLAN_STAGE_SETUP);
    }
    if (has_failed) {
        waitpid(pid, NULL, 0);
        return -1;
    }
    return pid;
}

/* Parents are read from /proc, one after the other. What a command leaves behind is adopted by its
 * init, which is a child of whoever started the command, so a chain cannot be cut from below. The
 * first process, or one outside of our pid namespace (0), is nobody's child here.
 *
 * A launcher is known by its argv[0], which no command can change: it neither traces its init nor
 * may it be another process's parent. Commands of another Cordon count, too, because to be served
 * here would let them out of their sandbox just the same.
 */
#include "rpc/transport/ancestry.h"

#include "base/proc.h"

#include <unistd.h>

enum { DEPTH_MAX = 4096, LINE_MAX_OWN = 64 };

static const char launcher_name[] =
    "cordon-init"; /* PLAN_LAUNCHER_NAME of sandbox/launcher/plan_format.h */

/* Whoever is above this process; those that are further away than any login shell do not matter. */
struct line {
    pid_t pids[LINE_MAX_OWN];
    size_t len;
};

static void line_read(struct line *line)
{
    line->len = 0;
    for (pid_t pid = getppid(); pid > 0 && line->len < LINE_MAX_OWN; pid = proc_parent(pid))
        line->pids[line->len++] = pid;
}

static bool line_has(const struct line *line, pid_t pid)
{
    for (size_t i = 0; i < line->len; i++)
        if (line->pids[i] == pid)
            return true;
    return false;
}

bool ancestry_is_command(pid_t pid)
{
    pid_t self = getpid();
    struct line above_us;

    line_read(&above_us);
    for (int i = 0; i < DEPTH_MAX && pid != self; i++) {
        if (pid == 0 || line_has(&above_us, pid))
            return false;
        if (proc_is_named(pid, launcher_name))
            return true;
        pid = proc_parent(pid);
        if (pid < 0)
            return true;
    }
    return true;
}

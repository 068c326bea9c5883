/* Parents are read from /proc, one after the other. What a command leaves behind is adopted by its
 * init, which is a child of whoever started the command, so a chain cannot be cut from below. The
 * first process, or one outside of our pid namespace (0), is nobody's child here.
 *
 * A launcher is known by its argv[0], which no command can change: it neither traces its init nor
 * may it be another process's parent. Commands of another Cordon count, too, because to be served
 * here would let them out of their sandbox just the same.
 */
#include "rpc/ancestry.h"

#include "base/proc.h"

#include <unistd.h>

enum { DEPTH_MAX = 4096 };

static const char launcher_name[] = "cordon-init"; /* PLAN_LAUNCHER_NAME of launch/plan_format.h */

static bool is_above_us(pid_t pid)
{
    pid_t above = getppid();

    for (int i = 0; i < DEPTH_MAX && above > 0 && above != pid; i++)
        above = proc_parent(above);
    return above == pid;
}

bool ancestry_is_command(pid_t pid)
{
    pid_t self = getpid();

    for (int i = 0; i < DEPTH_MAX && pid != self; i++) {
        if (pid == 0 || is_above_us(pid))
            return false;
        if (proc_is_named(pid, launcher_name))
            return true;
        pid = proc_parent(pid);
        if (pid < 0)
            return true;
    }
    return true;
}

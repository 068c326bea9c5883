/* See caller.h. umask(2), chdir(2) and fchdir(2) are asked about for this alone. The change belongs to all
 * that share it: most threads of a process, and whoever was made with CLONE_FS. Who they are is not to
 * be seen, so all is forgotten. It comes after our answer; until then others would be seen as they were
 * before, so for a while nothing is remembered of them. The caller itself calls again only after it.
 *
 * What is not up to date makes a file with the wrong mode, or in the directory where the caller just
 * was. It makes nothing that is not judged as what it is. */
#include "guard/caller.h"

#include "base/auto.h"
#include "guard/folder.h"
#include "guard/kept.h"
#include "guard/place.h"
#include "guard/remote.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define AGE_NS 1000000000u   /* pid numbers come round after more than this */
#define CHANGE_NS 100000000u /* a change is done after that at the latest */

static void forget_cwd(struct caller *caller)
{
    if (caller->cwd)
        kept_release(caller->cwd);
    caller->cwd = NULL;
}

/* That of the thread, or else the place of the one that was not seen for longest. */
static struct caller *caller_find(const struct request *request)
{
    struct command *command = request->command;
    struct caller *oldest = &command->callers[command->last_caller];

    if (oldest->thread == request->thread)
        return oldest;
    for (struct caller *caller = command->callers; caller < command->callers + CALLERS_MAX;
         caller++) {
        if (caller->thread == request->thread) {
            oldest = caller;
            break;
        }
        if (caller->seen_ns < oldest->seen_ns)
            oldest = caller;
    }
    if (oldest->thread != request->thread) {
        forget_cwd(oldest);
        *oldest = (struct caller){.thread = request->thread};
    }
    command->last_caller = (uint32_t)(oldest - command->callers);
    return oldest;
}

static void change(const struct request *request, struct change *change)
{
    uint64_t now = now_ns();

    /* of two that change it at a time each may be the last */
    if (change->thread != request->thread && now - change->time_ns < CHANGE_NS)
        change->thread = 0;
    else
        change->thread = request->thread;
    change->time_ns = now;
}

static bool is_settled(const struct request *request, const struct change *change, uint64_t now)
{
    return change->thread == request->thread || now - change->time_ns >= CHANGE_NS;
}

int caller_mask(const struct request *request)
{
    struct caller *caller = caller_find(request);
    uint64_t now = caller->seen_ns = now_ns();
    long mask;

    /* without names to hold, nobody tells of umask(2) */
    if (request->command->folders_len && caller->mask_ns && now - caller->mask_ns < AGE_NS)
        return (int)caller->mask;
    mask = remote_status(request->thread, "\nUmask:\t", 8);
    caller->mask = (mode_t)mask;
    caller->mask_ns =
        mask >= 0 && is_settled(request, &request->command->mask_change, now) ? now : 0;
    return (int)mask;
}

void caller_changes_mask(const struct request *request)
{
    struct command *command = request->command;
    struct caller *caller = caller_find(request);

    for (int i = 0; i < CALLERS_MAX; i++)
        command->callers[i].mask_ns = 0;
    change(request, &command->mask_change);
    caller->mask = (mode_t)request_argument(request, request->call->mode) & 0777;
    caller->mask_ns = caller->seen_ns = command->mask_change.time_ns;
}

/* Opened, until kept_release(). */
static struct kept_dir *open_cwd(const struct request *request)
{
    struct command *command = request->command;
    AUTO_CLOSE int fd = -1;
    struct identity identity;
    struct kept_dir *dir;
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/cwd", (int)request->thread);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || !identify(fd, &identity) || !folder_is_mount_of_root(command, identity.mount))
        return NULL;
    dir = kept_find(command, &identity);
    if (dir)
        return dir;
    dir = kept_add(command, fd, &identity);
    if (dir)
        fd = -1;
    return dir;
}

struct kept_dir *caller_cwd(const struct request *request)
{
    struct command *command = request->command;
    struct caller *caller = caller_find(request);
    uint64_t now = caller->seen_ns = now_ns();
    struct kept_dir *dir = caller->cwd;

    if (!command->mounts_len) /* nobody tells of chdir(2) */
        return NULL;
    if (!dir || now - caller->cwd_ns >= AGE_NS) {
        dir = open_cwd(request);
        forget_cwd(caller);
        if (!dir || !is_settled(request, &command->cwd_change, now))
            return dir;
        caller->cwd = dir;
        caller->cwd_ns = now;
    }
    dir->users++;
    return dir;
}

void caller_changes_cwd(const struct request *request)
{
    struct command *command = request->command;

    for (int i = 0; i < CALLERS_MAX; i++)
        forget_cwd(&command->callers[i]);
    change(request, &command->cwd_change);
}

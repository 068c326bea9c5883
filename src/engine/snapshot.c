/* See snapshot.h.
 *
 *     TAKING --> CHECKING --> READY
 *       |  ^         |
 *       +--+         +------> FAILED     zsh is taken once more, without start-up files, when these
 *                                        did not end in time
 *
 * Each arrow is one command of the session's own sandbox, so start-up files can do what the
 * commands can, and no more. The file is readable by its owner only: it holds environment
 * variables. */
#include "engine/snapshot.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "exec/capture.h"
#include "rules/shell_snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "snapshot-"

enum snapshot_state { TAKING, TAKING_BARE, CHECKING, READY, FAILED };

struct snapshot {
    struct snapshot_options options;
    enum snapshot_state state;
    struct oneshot *oneshot; /* in the first three states */
    struct oneshot_options job;
    struct strv argv;
    char *path; /* NULL until there is a file */
    struct err failure;
};

static void snapshot_on_over(void *data);

/* --- steps --- */

static int snapshot_run(struct snapshot *snapshot, enum snapshot_state state, struct err *err)
{
    snapshot->state = state;
    snapshot->job.argv = snapshot->argv.items;
    snapshot->oneshot = oneshot_start(&snapshot->job, err);
    return snapshot->oneshot ? 0 : -1;
}

static int snapshot_take(struct snapshot *snapshot, struct err *err)
{
    const char *shell = snapshot->options.shell;

    if (!shell_snapshot_take(shell, &snapshot->argv))
        return err_set(err, ERR_UNSUPPORTED, "%s: no snapshots of this shell", shell);
    return snapshot_run(snapshot, TAKING, err);
}

/* `*ret_again`: a second attempt has begun. */
static int snapshot_retake(struct snapshot *snapshot, bool *ret_again, struct err *err)
{
    strv_done(&snapshot->argv);
    *ret_again = snapshot->state == TAKING &&
                 shell_snapshot_take_bare(snapshot->options.shell, &snapshot->argv);
    return *ret_again ? snapshot_run(snapshot, TAKING_BARE, err) : 0;
}

static int snapshot_check(struct snapshot *snapshot, struct err *err)
{
    strv_done(&snapshot->argv);
    shell_snapshot_check(snapshot->options.shell, snapshot->path, &snapshot->argv);
    return snapshot_run(snapshot, CHECKING, err);
}

static int snapshot_write(struct snapshot *snapshot, const char *text, size_t len, struct err *err)
{
    AUTO_FREE char *path = path_join(snapshot->options.folder, PREFIX "XXXXXX");
    AUTO_CLOSE int fd = -1;

    if (fd_make_folders(snapshot->options.folder, 0700, err))
        return -1;
    fd = mkostemp(path, O_CLOEXEC); /* with mode 0600 */
    if (fd < 0)
        return err_sys(err, "making a file in %s", snapshot->options.folder);
    snapshot->path = TAKE_PTR(path);
    return fd_write_all(fd, text, len, err);
}

static int snapshot_save(struct snapshot *snapshot, struct oneshot_result *result, struct err *err)
{
    struct capture_view view;
    const char *text;
    size_t len;

    capture_view(result->capture, STREAM_STDOUT, &view);
    if (view.omitted)
        return err_set(err, ERR_LIMIT, "the state of %s is larger than %d bytes",
                       snapshot->options.shell, SHELL_SNAPSHOT_MAX);
    AUTO_FREE char *all = alloc_zero(view.head_len + view.tail_len + 1, 1);

    if (view.head_len)
        memcpy(all, view.head, view.head_len);
    if (view.tail_len)
        memcpy(all + view.head_len, view.tail, view.tail_len);
    text = shell_snapshot_cut(all, view.head_len + view.tail_len, &len);
    if (!text)
        return err_set(err, ERR_INVALID, "%s did not print its state", snapshot->options.shell);
    return snapshot_write(snapshot, text, len, err);
}

/* --- ends of steps --- */

static bool has_succeeded(const struct oneshot_result *result)
{
    return result->end == ONESHOT_EXITED && result->exit_code == 0;
}

static int snapshot_taken(struct snapshot *snapshot, struct oneshot_result *result, struct err *err)
{
    bool again = false;

    if (result->end == ONESHOT_TIMED_OUT && snapshot_retake(snapshot, &again, err))
        return -1;
    if (again)
        return 0;
    if (!has_succeeded(result))
        return err_set(err, ERR_INVALID, "the start-up files of %s %s", snapshot->options.shell,
                       result->end == ONESHOT_TIMED_OUT ? "take too long" : "fail");
    if (snapshot_save(snapshot, result, err))
        return -1;
    return snapshot_check(snapshot, err);
}

static int snapshot_checked(struct snapshot *snapshot, const struct oneshot_result *result,
                            struct err *err)
{
    if (!has_succeeded(result))
        return err_set(err, ERR_INVALID, "%s cannot read its own state", snapshot->options.shell);
    snapshot->state = READY;
    return 0;
}

static void snapshot_remove(struct snapshot *snapshot)
{
    if (snapshot->path)
        unlink(snapshot->path);
    free(TAKE_PTR(snapshot->path));
}

static void snapshot_on_over(void *data)
{
    struct snapshot *snapshot = data;
    struct oneshot_result result;
    int failed;

    oneshot_take(snapshot->oneshot, &result);
    oneshot_free(TAKE_PTR(snapshot->oneshot));
    if (snapshot->state == CHECKING)
        failed = snapshot_checked(snapshot, &result, &snapshot->failure);
    else
        failed = snapshot_taken(snapshot, &result, &snapshot->failure);
    oneshot_result_done(&result);
    if (failed) {
        snapshot_remove(snapshot);
        snapshot->state = FAILED;
    }
    if ((snapshot->state == READY || snapshot->state == FAILED) && snapshot->options.on_over)
        snapshot->options.on_over(snapshot->options.data);
}

/* --- life --- */

struct snapshot *snapshot_start(const struct snapshot_options *options, struct err *err)
{
    struct snapshot *snapshot = alloc_zero(1, sizeof *snapshot);

    snapshot->options = *options;
    oneshot_defaults(&snapshot->job);
    snapshot->job.loop = options->job.loop;
    snapshot->job.sandbox = options->job.sandbox;
    snapshot->job.access = options->job.access;
    snapshot->job.cgroup_base = options->job.cgroup_base;
    snapshot->job.env = options->job.env;
    snapshot->job.cwd = options->job.cwd;
    snapshot->job.timeout_ns = options->job.timeout_ns ? options->job.timeout_ns
                                                       : SHELL_SNAPSHOT_TIMEOUT_S * CLOCK_NS_PER_S;
    snapshot->job.max_output = SHELL_SNAPSHOT_MAX;
    snapshot->job.on_over = snapshot_on_over;
    snapshot->job.data = snapshot;
    if (snapshot_take(snapshot, err) == 0)
        return snapshot;
    snapshot_free(snapshot);
    return NULL;
}

void snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return;
    oneshot_free(snapshot->oneshot);
    snapshot_remove(snapshot);
    strv_done(&snapshot->argv);
    free(snapshot);
}

const char *snapshot_path(const struct snapshot *snapshot)
{
    return snapshot->state == READY ? snapshot->path : NULL;
}

const struct err *snapshot_failure(const struct snapshot *snapshot)
{
    return snapshot->state == FAILED ? &snapshot->failure : NULL;
}

bool snapshot_use(const struct snapshot *snapshot, char *const *argv, const char *cwd,
                  char *const *keep, struct strv *ret)
{
    return snapshot->state == READY && str_eq(cwd, snapshot->options.job.cwd) &&
           shell_snapshot_use(argv, snapshot->options.shell, snapshot->path, keep, ret);
}

/* --- what others left --- */

static void sweep_one(int folder, const char *name, time_t now)
{
    struct stat st;

    if (str_starts(name, PREFIX) && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode) && now - st.st_mtime > SHELL_SNAPSHOT_AGE_MAX_S)
        unlinkat(folder, name, 0); /* another session may have been quicker */
}

int snapshot_sweep(const char *folder, time_t now, struct err *err)
{
    DIR *dir = opendir(folder);

    if (!dir && errno == ENOENT)
        return 0;
    if (!dir)
        return err_sys(err, "opening %s", folder);
    for (const struct dirent *entry; (entry = readdir(dir));)
        sweep_one(dirfd(dir), entry->d_name, now);
    closedir(dir);
    return 0;
}

/* See run_patch.h. What is asked about and written down is the command as it was given; only what
 * is executed is another program. */
#include "cli/run_patch.h"

#include "base/path.h"
#include "cli/console.h"
#include "cli/patch.h"
#include "executor/execution.h"
#include "job/oneshot.h"
#include "patch/patch.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int find_folder(struct run_patch *patch, const char *folder, struct err *err)
{
    struct stat st;

    patch->cwd = path_clean(folder, patch->call.directory ? patch->call.directory : ".");
    if (stat(patch->cwd, &st))
        return err_sys(err, "the folder of the patch, %s", patch->cwd);
    return 0;
}

int run_patch_init(struct run_patch *patch, char *const *argv, const char *folder, struct err *err)
{
    ssize_t len;

    patch_call_read(argv, &patch->call);
    if (patch->call.kind == PATCH_CALL_BARE)
        return err_set(err, ERR_INVALID, "%s", patch_call_advice);
    if (patch->call.kind == PATCH_CALL_NONE)
        return 0;
    len = readlink("/proc/self/exe", patch->program, sizeof patch->program - 1);
    if (len < 0)
        return err_sys(err, "finding this program");
    patch->program[len] = '\0';
    patch->helper[0] = (char *)PATCH_HELPER_NAME;
    patch->helper[1] = (char *)patch_task_words[PATCH_APPLY];
    patch->helper[2] = (char *)patch_form_words[PATCH_TEXT];
    return find_folder(patch, folder, err);
}

void run_patch_done(struct run_patch *patch)
{
    patch_call_done(&patch->call);
    free(patch->cwd);
    *patch = (struct run_patch){.cwd = NULL};
}

void run_patch_fill(struct run_patch *patch, struct execution_options *execution,
                    struct oneshot_options *job)
{
    if (!run_patch_is_one(patch))
        return;
    execution->stand_in = patch->helper;
    execution->cwd = patch->cwd;
    job->program = patch->program;
    job->stdio = ONESHOT_PIPES;
    job->terminal_fd = -1;
    job->input = ONESHOT_INPUT_DATA;
    job->input_data = patch->call.text;
    job->input_len = patch->call.text_len;
}

void run_patch_report(const struct run_patch *patch, const struct oneshot_result *result)
{
    bool is_whole = result->end == ONESHOT_EXITED || result->end == ONESHOT_DENIED ||
                    result->end == ONESHOT_FAILED_TO_START;

    if (run_patch_is_one(patch) && !is_whole)
        console_say("the patch was interrupted: \"cordon patch --recover\" in %s, or the next "
                    "patch there, completes it or takes it back",
                    patch->cwd);
}

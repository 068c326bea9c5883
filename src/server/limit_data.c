/* See limit_data.h. Pure. */
#include "server/limit_data.h"

#include "job/job.h"

#include <errno.h>
#include <string.h>

json_t *limit_data(const char *reason, size_t limit)
{
    return json_pack("{s:s, s:I}", "reason", reason, "limit", (json_int_t)limit);
}

json_t *limit_data_of_input(const struct job *job)
{
    struct job_info info;

    job_info(job, &info);
    return json_pack("{s:s, s:I, s:I}", "reason", "input-full", "limit", (json_int_t)JOB_INPUT_MAX,
                     "pendingBytes", (json_int_t)info.input_len);
}

json_t *limit_data_of_errno(int error)
{
    static const struct {
        int error;
        const char *reason;
    } reasons[] = {
        {EMFILE, "descriptors"},      {ENFILE, "descriptors"},   {ENOSPC, "disk-full"},
        {EDQUOT, "disk-full"},        {EFBIG, "file-too-large"}, {ENOMEM, "memory"},
        {EAGAIN, "system-processes"}, /* fork(2): RLIMIT_NPROC, pids.max */
    };

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].error == error)
            return json_pack("{s:s, s:s}", "reason", reasons[i].reason, "errno",
                             strerrorname_np(error));
    return NULL;
}

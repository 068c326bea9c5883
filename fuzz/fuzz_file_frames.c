/* The answers of cordon-files: whatever comes, in whatever pieces, is an answer or an error, and
 * the same in one piece. The first byte says how long the pieces are. */
#include "fuzz.h"

#include "base/str.h"
#include "server/files/file_frames.h"

#include <stdlib.h>
#include <string.h>

static int take(struct file_frames *frames, const char *bytes, size_t len, size_t piece)
{
    struct err err;
    int status = 0;

    for (size_t at = 0; at < len && status == 0; at += piece)
        status = file_frames_take(frames, bytes + at, len - at < piece ? len - at : piece, &err);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data + 1;
    struct file_frames whole;
    struct file_frames torn;
    int status;

    if (size < 2)
        return 0;
    file_frames_init(&whole);
    file_frames_init(&torn);
    status = take(&whole, bytes, size - 1, size - 1);
    /* pieces do not look behind the end of an answer, so only what is well-formed has to agree */
    if (status >= 0 && take(&torn, bytes, size - 1, 1 + data[0] % 16) != status)
        abort();
    if (status > 0 &&
        (whole.text.len != torn.text.len ||
         (whole.text.len && memcmp(whole.text.data, torn.text.data, whole.text.len)) ||
         !file_frames_failure(&whole) != !file_frames_failure(&torn)))
        abort();
    if (status > 0 && file_frames_failure(&whole) &&
        !str_eq(file_frames_failure(&whole)->msg, file_frames_failure(&torn)->msg))
        abort();
    file_frames_done(&whole);
    file_frames_done(&torn);
    return 0;
}

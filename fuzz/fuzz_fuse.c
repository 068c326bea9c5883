/* Requests that the guard reads from /dev/fuse: whatever comes, an answer is a whole one, to what was
 * asked, and a name is one name. */
#include "fuzz.h"

#include "guard/fuse.h"
#include "guard/kernel.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fuse_root root = {.mode = S_IFDIR | 0755};
    struct k_fuse_out_header header;
    struct fuse_request request;
    uint64_t unique = 0;

    fuse_read(data, size, &root, &request);
    if (size >= sizeof(struct k_fuse_in_header))
        memcpy(&unique, data + 8, sizeof unique);
    if (memchr(request.name, '\0', sizeof request.name) == NULL || strchr(request.name, '/'))
        abort();
    if (request.kind != FUSE_INTERRUPT && request.kind != FUSE_BROKEN && request.unique != unique)
        abort();
    if (request.kind != FUSE_REPLY)
        return 0;
    memcpy(&header, request.reply, sizeof header);
    if (request.reply_len > FUSE_REPLY_MAX || header.len != request.reply_len ||
        header.unique != unique || header.error > 0)
        abort();
    return 0;
}

/* fs/readFile, fs/open, fs/writeFile: what is in files.
 *
 * A file is read in blocks, and each leaves as base64 before the next is read. How long it says it
 * is does not count: files of /proc say 0, and others grow meanwhile. */
#include "files/call.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/fd.h"
#include "base/sys.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BLOCK = 192 * 1024 }; /* a multiple of 3, so that blocks of base64 join */

static int refuse_size(struct err *err)
{
    return err_set(err, ERR_LIMIT, "file is too large to read: limit is %d bytes", FILES_READ_MAX);
}

/* A file that says so itself is not even begun. */
static int check_size(int fd, struct err *err)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_size > FILES_READ_MAX ? refuse_size(err) : 0;
}

static int send_content(int fd, const char *path, struct reply *reply, struct err *err)
{
    AUTO_FREE char *block = alloc_zero(READ_BLOCK, 1);
    AUTO_FREE char *text = alloc_zero(base64_encoded_len(READ_BLOCK) + 1, 1);
    size_t total = 0;
    ssize_t len = 0;

    do {
        len = fd_read_block(fd, block, READ_BLOCK);
        if (len < 0)
            return err_sys(err, "reading %s", path);
        total += (size_t)len;
        if (total > FILES_READ_MAX)
            return refuse_size(err);
        base64_encode(block, (size_t)len, text);
        if (reply_str(reply, text, err))
            return -1;
    } while (len == READ_BLOCK);
    return 0;
}

int files_read_file(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    AUTO_CLOSE int fd = -1;

    if (target_read(&request->params, "path", &target, err))
        return -1;
    fd = target_open_file(&target, O_RDONLY, err);
    if (fd < 0 || check_size(fd, err))
        return -1;
    if (reply_str(reply, "{\"dataBase64\":\"", err) || send_content(fd, target.path, reply, err))
        return -1;
    return reply_str(reply, "\"}", err);
}

/* Writing truncates at once. */
static int open_for_writing(const struct target *target, struct err *err)
{
    return target_open_file(target, O_WRONLY | O_CREAT | O_TRUNC, err);
}

int files_open(const struct files_request *request, struct reply *reply, struct err *err)
{
    static const char *const modes[] = {"read", "replace", NULL};
    AUTO(target_done) struct target target = {0};
    struct json_at at = json_at_field(&request->params, "mode");
    size_t mode = 0;

    if (target_read(&request->params, "path", &target, err) ||
        (json_at_is_given(&at) && json_at_word(&at, modes, &mode, err)))
        return -1;
    reply->fd =
        mode == 0 ? target_open_file(&target, O_RDONLY, err) : open_for_writing(&target, err);
    return reply->fd < 0 ? -1 : 0;
}

/* What is to be written, as base64: beside the parameters or in them. */
static int find_data(const struct files_request *request, const char **ret, size_t *ret_len,
                     struct err *err)
{
    struct json_at at = json_at_field(&request->params, "dataBase64");

    *ret = request->data;
    *ret_len = request->data_len;
    if (request->data)
        return 0;
    if (json_at_string(&at, ret, err))
        return -1;
    *ret_len = json_string_length(at.value);
    return 0;
}

/* The bytes; caller frees. */
static char *decode(const struct files_request *request, size_t *ret_len, struct err *err)
{
    AUTO_FREE char *data = NULL;
    const char *text = NULL;
    struct err wrong;
    size_t len = 0;

    if (find_data(request, &text, &len, err))
        return NULL;
    *ret_len = base64_decoded_len(text, len);
    data = alloc_zero(*ret_len + 1, 1);
    if (base64_decode(text, len, data, &wrong)) {
        err_set(err, ERR_INVALID, "fs/writeFile requires valid base64 dataBase64: %s", wrong.msg);
        return NULL;
    }
    return TAKE_PTR(data);
}

int files_write_file(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    AUTO_FREE char *data = NULL;
    AUTO_CLOSE int fd = -1;
    size_t len = 0;

    if (target_read(&request->params, "path", &target, err))
        return -1;
    data = decode(request, &len, err);
    if (!data)
        return -1;
    fd = open_for_writing(&target, err);
    if (fd < 0)
        return -1;
    if (fd_write_all(fd, data, len, err))
        return err_wrap(err, "%s", target.path);
    return reply_str(reply, "{}", err);
}

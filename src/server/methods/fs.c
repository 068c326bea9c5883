/* The methods fs/...: of each, what is checked before its turn, where it is carried out, and what
 * is made of the answer. What they do is in src/files; it happens in a helper process, in the
 * sandbox that the call names or in none, so that no disk, however slow, holds this process up.
 * Blocks of open files are read and written right here: the kernel decided when the file was
 * opened. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "files/call.h"
#include "sandbox/linux/placeholder.h"
#include "server/call.h"
#include "server/files/file_handles.h"
#include "server/files/file_queue.h"
#include "server/limit_data.h"
#include "server/rpc_path.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_MAX = 1 << 20 }; /* bytes of fs/readBlock and fs/writeBlock */

static void fail(struct call *call, const struct err *err)
{
    char text[ERROR_TEXT_SIZE];

    error_text(err, text);
    call_fail_data(call, (enum rpc_code)error_code(err), text, limit_data_of_errno(err->sys));
}

/* --- calls that a helper carries out and answers --- */

static void on_done(struct call *call, struct file_handles *handles, const json_t *params,
                    const struct file_answer *answer)
{
    size_t len = answer->text->len;

    if (answer->failure)
        fail(call, answer->failure);
    else
        call_reply_text(call, buf_take(answer->text), len);
}

static void add_simple(struct call *call, const json_t *params, const char *method)
{
    const struct file_task task = {.method = method, .begin = file_task_send, .done = on_done};

    file_queue_add(call, params, &task);
}

void method_fs_read_file(struct call *call, const json_t *params)
{
    add_simple(call, params, "fs/readFile");
}

void method_fs_write_file(struct call *call, const json_t *params)
{
    add_simple(call, params, "fs/writeFile");
}

void method_fs_create_directory(struct call *call, const json_t *params)
{
    add_simple(call, params, "fs/createDirectory");
}

void method_fs_create_symlink(struct call *call, const json_t *params)
{
    add_simple(call, params, "fs/createSymlink");
}

void method_fs_set_mode(struct call *call, const json_t *params)
{
    add_simple(call, params, "fs/setMode");
}

/* To a client without a sandbox the placeholders of others are not there: it would take an empty .git
 * for a repository. */
static bool is_placeholder(const json_t *params)
{
    const char *uri = json_string_value(json_object_get(params, "path"));
    enum rpc_code code;
    struct err err;
    AUTO_FREE char *path = NULL;

    if (json_is_object(json_object_get(params, "sandbox")) || strlen(uri) > 3 * PATH_MAX)
        return false;
    path = rpc_path_parse(uri, &code, &err);
    return path && placeholder_file_is(path);
}

static void metadata_begin(struct file_task *task)
{
    if (is_placeholder(task->params))
        call_fail_errno(file_task_end(task), ENOENT);
    else
        file_task_send(task);
}

void method_fs_get_metadata(struct call *call, const json_t *params)
{
    const struct file_task task = {
        .method = "fs/getMetadata", .begin = metadata_begin, .done = on_done};

    file_queue_add(call, params, &task);
}

void method_fs_canonicalize(struct call *call, const json_t *params)
{
    add_simple(call, params, "fs/canonicalize");
}

void method_fs_read_directory(struct call *call, const json_t *params)
{
    add_simple(call, params, "fs/readDirectory");
}

void method_fs_walk(struct call *call, const json_t *params)
{
    add_simple(call, params, "fs/walk");
}

void method_fs_remove(struct call *call, const json_t *params)
{
    add_simple(call, params, "fs/remove");
}

void method_fs_copy(struct call *call, const json_t *params)
{
    add_simple(call, params, "fs/copy");
}

/* --- open files --- */

static const char *text_of(const json_t *params, const char *key)
{
    return json_string_value(json_object_get(params, key));
}

static void fail_full(struct call *call)
{
    char text[80];

    snprintf(text, sizeof text, "at most %d file handles may be open per connection",
             FILE_HANDLES_MAX);
    call_fail_data(call, RPC_INVALID_REQUEST, text, limit_data("max-open-files", FILE_HANDLES_MAX));
}

static void open_begin(struct file_task *task)
{
    const struct file_handles *handles = file_task_handles(task);
    const char *id = text_of(task->params, "handleId");

    if (strlen(id) > FILE_HANDLE_ID_MAX)
        call_fail(file_task_end(task), RPC_INVALID_REQUEST,
                  "file handle ID must not exceed %d bytes", FILE_HANDLE_ID_MAX);
    else if (file_handles_find(handles, id) >= 0)
        call_fail(file_task_end(task), RPC_INVALID_REQUEST, "file handle `%s` already exists", id);
    else if (file_handles_count(handles) == FILE_HANDLES_MAX)
        fail_full(file_task_end(task));
    else
        file_task_send(task);
}

/* A helper has looked at what it opened; that it is a file is worth a look of our own, since we
 * would wait for anything else. */
static void open_done(struct call *call, struct file_handles *handles, const json_t *params,
                      const struct file_answer *answer)
{
    const char *id = text_of(params, "handleId");
    AUTO_CLOSE int fd = TAKE_FD(*answer->fd);
    struct stat st;

    if (answer->failure) {
        fail(call, answer->failure);
    } else if (fd < 0) { /* the kernel drops what does not fit into our table */
        call_fail_errno(call, EMFILE);
    } else if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        call_fail(call, RPC_INTERNAL, "the helper for files opened what is no file");
    } else {
        json_t *result = json_pack("{s:s}", "handleId", id);

        file_handles_add(handles, id, TAKE_FD(fd));
        call_reply(call, result);
    }
}

void method_fs_open(struct call *call, const json_t *params)
{
    const struct file_task task = {.method = "fs/open", .begin = open_begin, .done = open_done};

    file_queue_add(call, params, &task);
}

/* The part of an open file that a call is about. */
struct block {
    const char *id;
    int fd;
    off_t offset;
    size_t len;
};

/* Limits first, then the file, as the original has it. */
static bool block_find(struct file_task *task, const char *verb, uint64_t len, struct block *ret)
{
    json_int_t offset = json_integer_value(json_object_get(task->params, "offset"));
    const char *id = text_of(task->params, "handleId");
    int fd = file_handles_find(file_task_handles(task), id);

    if (len < 1 || len > BLOCK_MAX) {
        call_fail(file_task_end(task), RPC_INVALID_REQUEST,
                  "file %s block length must be between 1 and %d", verb, BLOCK_MAX);
    } else if (offset > INT64_MAX - (json_int_t)len) {
        call_fail(file_task_end(task), RPC_INVALID_REQUEST,
                  "file %s range exceeds the signed 64-bit file offset limit", verb);
    } else if (fd < 0) {
        call_fail(file_task_end(task), RPC_NOT_FOUND, "unknown file handle `%s`", id);
    } else {
        *ret = (struct block){.id = id, .fd = fd, .offset = offset, .len = (size_t)len};
        return true;
    }
    return false;
}

/* A failure closes the file. */
static void block_fail(struct file_task *task, const struct block *block, int error)
{
    file_handles_close(file_task_handles(task), block->id);
    call_fail_errno(file_task_end(task), error);
}

static ssize_t read_all(int fd, char *data, size_t len, off_t offset)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = pread(fd, data + done, len - done, offset + (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* Nothing is behind it; not told by the size, which files of /proc do not have. */
static bool is_at_end(int fd, off_t offset)
{
    char byte;

    return pread(fd, &byte, 1, offset) <= 0;
}

static void read_begin(struct file_task *task)
{
    json_int_t wanted = json_integer_value(json_object_get(task->params, "len"));
    AUTO_FREE char *data = NULL;
    AUTO_FREE char *chunk = NULL;
    struct block block;
    char *text;
    ssize_t len;

    if (!block_find(task, "read", (uint64_t)wanted, &block))
        return;
    data = alloc_zero(block.len, 1);
    len = read_all(block.fd, data, block.len, block.offset);
    if (len < 0) {
        block_fail(task, &block, errno);
        return;
    }
    chunk = alloc_zero(base64_encoded_len((size_t)len) + 1, 1);
    base64_encode(data, (size_t)len, chunk);
    text =
        alloc_strf("{\"chunk\":\"%s\",\"eof\":%s}", chunk,
                   reply_bool((size_t)len < block.len || is_at_end(block.fd, block.offset + len)));
    call_reply_text(file_task_end(task), text, strlen(text));
}

void method_fs_read_block(struct call *call, const json_t *params)
{
    file_queue_add(call, params, &(struct file_task){.begin = read_begin});
}

static int write_all(const struct block *block, const char *data)
{
    size_t done = 0;

    while (done < block->len) {
        ssize_t n = pwrite(block->fd, data + done, block->len - done, block->offset + (off_t)done);

        if (n < 0 && errno != EINTR)
            return -1;
        done += n < 0 ? 0 : (size_t)n;
    }
    return 0;
}

static void write_begin(struct file_task *task)
{
    const char *chunk = text_of(task->params, "chunk");
    size_t text_len = strlen(chunk);
    size_t len = base64_decoded_len(chunk, text_len);
    AUTO_FREE char *data = NULL;
    struct block block;
    struct err err;

    if (!block_find(task, "write", len, &block))
        return;
    data = alloc_zero(len + 1, 1);
    if (base64_decode(chunk, text_len, data, &err)) {
        call_fail(file_task_end(task), RPC_INVALID_PARAMS, "chunk: %s", err.msg);
        return;
    }
    if (write_all(&block, data))
        block_fail(task, &block, errno);
    else
        call_reply(file_task_end(task), json_object());
}

void method_fs_write_block(struct call *call, const json_t *params)
{
    file_queue_add(call, params, &(struct file_task){.begin = write_begin});
}

static void close_begin(struct file_task *task)
{
    file_handles_close(file_task_handles(task), text_of(task->params, "handleId"));
    call_reply(file_task_end(task), json_object());
}

void method_fs_close(struct call *call, const json_t *params)
{
    file_queue_add(call, params, &(struct file_task){.begin = close_begin});
}

/* The methods fs/...: of each, what is checked before its turn, where it is carried out, and what
 * is made of the answer. What they do is in src/files; it happens in a helper process, in the
 * sandbox that the call names or in none, so that no disk, however slow, holds this process up.
 * Blocks of open files are read and written right here: the kernel decided when the file was
 * opened.
 *
 * fs/watchMissing: one watch per connection; the newest ends the older, even when it comes to
 * nothing. A client that is told `false` looks by itself from time to time, so everything that is
 * not simple is `false`: also a watch for a sandboxed client, which must not learn of names below a
 * denied directory. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/str.h"
#include "base/strv.h"
#include "files/call.h"
#include "rpc/rpc.h"
#include "server/call.h"
#include "server/client.h"
#include "server/files/file_queue.h"
#include "server/files/missing_watch.h"
#include "server/methods.gen.h"
#include "server/rpc_path.h"
#include "server/server.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

static void on_done(struct call *call, struct file_handles *handles,
                    const struct file_answer *answer)
{
    size_t len = answer->text->len;

    if (answer->failure)
        fail(call, answer->failure);
    else
        call_reply_text(call, buf_take(answer->text), len);
}

static const struct file_task by_helper = {.begin = file_task_send, .done = on_done};

void method_fs_read_file(struct call *call, const struct fs_read_file_params *params)
{
    file_queue_add(call, &by_helper);
}

void method_fs_write_file(struct call *call, const struct fs_write_file_params *params)
{
    file_queue_add(call, &by_helper);
}

void method_fs_create_directory(struct call *call, const struct fs_create_directory_params *params)
{
    file_queue_add(call, &by_helper);
}

void method_fs_create_symlink(struct call *call, const struct fs_create_symlink_params *params)
{
    file_queue_add(call, &by_helper);
}

void method_fs_set_mode(struct call *call, const struct fs_set_mode_params *params)
{
    file_queue_add(call, &by_helper);
}

void method_fs_get_metadata(struct call *call, const struct fs_get_metadata_params *params)
{
    file_queue_add(call, &by_helper);
}

void method_fs_canonicalize(struct call *call, const struct fs_canonicalize_params *params)
{
    file_queue_add(call, &by_helper);
}

void method_fs_read_directory(struct call *call, const struct fs_read_directory_params *params)
{
    file_queue_add(call, &by_helper);
}

void method_fs_walk(struct call *call, const struct fs_walk_params *params)
{
    file_queue_add(call, &by_helper);
}

void method_fs_remove(struct call *call, const struct fs_remove_params *params)
{
    file_queue_add(call, &by_helper);
}

void method_fs_copy(struct call *call, const struct fs_copy_params *params)
{
    file_queue_add(call, &by_helper);
}

/* --- open files --- */

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
    const struct fs_open_params *params = task->call->params;
    const char *id = params->handle_id;

    if (strlen(id) > FILE_HANDLE_ID_MAX)
        call_fail(file_task_end(task), RPC_INVALID_REQUEST,
                  "file handle ID must not exceed %d bytes", FILE_HANDLE_ID_MAX);
    else if (file_handles_find(handles, id) >= 0)
        call_fail(file_task_end(task), RPC_INVALID_REQUEST, "file handle `%s` already exists", id);
    else if (file_handles_count(handles) == FILE_HANDLES_MAX)
        fail_full(file_task_end(task));
    else if (json_is_object(params->layer) && str_eq(params->mode ? params->mode : "", "replace"))
        call_fail(file_task_end(task), RPC_INVALID_REQUEST,
                  "a file of a layer that stays open for writing could be written to after it was "
                  "accepted: use fs/writeFile");
    else
        file_task_send(task);
}

/* A helper has looked at what it opened; that it is a file is worth a look of our own, since we
 * would wait for anything else. */
static void open_done(struct call *call, struct file_handles *handles,
                      const struct file_answer *answer)
{
    const struct fs_open_params *params = call->params;
    const char *id = params->handle_id;
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

void method_fs_open(struct call *call, const struct fs_open_params *params)
{
    const struct file_task task = {.begin = open_begin, .done = open_done};

    file_queue_add(call, &task);
}

/* The part of an open file that a call is about. */
struct block {
    const char *id;
    int fd;
    off_t offset;
    size_t len;
};

/* Limits first, then the file, as the original has it. Fills in `fd`; false: answered. */
static bool block_find(struct file_task *task, const char *verb, struct block *block)
{
    block->fd = file_handles_find(file_task_handles(task), block->id);
    if (block->len < 1 || block->len > BLOCK_MAX)
        call_fail(file_task_end(task), RPC_INVALID_REQUEST,
                  "file %s block length must be between 1 and %d", verb, BLOCK_MAX);
    else if (block->offset > INT64_MAX - (off_t)block->len)
        call_fail(file_task_end(task), RPC_INVALID_REQUEST,
                  "file %s range exceeds the signed 64-bit file offset limit", verb);
    else if (block->fd < 0)
        call_fail(file_task_end(task), RPC_NOT_FOUND, "unknown file handle `%s`", block->id);
    else
        return true;
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
    const struct fs_read_block_params *params = task->call->params;
    struct block block = {
        .id = params->handle_id, .offset = (off_t)params->offset, .len = params->len};
    AUTO_FREE char *data = NULL;
    AUTO_FREE char *chunk = NULL;
    char *text;
    ssize_t len;

    if (!block_find(task, "read", &block))
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

void method_fs_read_block(struct call *call, const struct fs_read_block_params *params)
{
    file_queue_add(call, &(struct file_task){.begin = read_begin});
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
    const struct fs_write_block_params *params = task->call->params;
    const char *chunk = params->chunk;
    size_t text_len = strlen(chunk);
    struct block block = {.id = params->handle_id,
                          .offset = (off_t)params->offset,
                          .len = base64_decoded_len(chunk, text_len)};
    AUTO_FREE char *data = NULL;
    struct err err;

    if (!block_find(task, "write", &block))
        return;
    data = alloc_zero(block.len + 1, 1);
    if (base64_decode(chunk, text_len, data, &err)) {
        call_fail(file_task_end(task), RPC_INVALID_PARAMS, "chunk: %s", err.msg);
        return;
    }
    if (write_all(&block, data))
        block_fail(task, &block, errno);
    else
        call_reply(file_task_end(task), json_object());
}

void method_fs_write_block(struct call *call, const struct fs_write_block_params *params)
{
    file_queue_add(call, &(struct file_task){.begin = write_begin});
}

static void close_begin(struct file_task *task)
{
    const struct fs_close_params *params = task->call->params;

    file_handles_close(file_task_handles(task), params->handle_id);
    call_reply(file_task_end(task), json_object());
}

void method_fs_close(struct call *call, const struct fs_close_params *params)
{
    file_queue_add(call, &(struct file_task){.begin = close_begin});
}

struct watcher {
    struct rpc_peer *peer;
    json_int_t last_id; /* ids grow */
    struct missing_watch *watch;
};

static void watcher_done(void *part)
{
    struct watcher *watcher = part;

    missing_watch_free(watcher->watch);
    free(watcher);
}

static struct watcher *watcher_of(struct client *client)
{
    static const struct client_part_type type = {.done = watcher_done};
    struct watcher *watcher = client_part(client, CLIENT_PART_WATCHES);

    if (watcher)
        return watcher;
    watcher = alloc_zero(1, sizeof *watcher);
    watcher->peer = client->peer;
    client_set_part(client, CLIENT_PART_WATCHES, watcher, &type);
    return watcher;
}

static void on_change(void *data)
{
    struct watcher *watcher = data;
    AUTO_JSON json_t *params = json_pack("{s:I}", "watchId", watcher->last_id);

    missing_watch_free(TAKE_PTR(watcher->watch));
    rpc_peer_notify(watcher->peer, "fs/missingChanged", params);
}

static int read_paths(const json_t *list, struct strv *ret, enum rpc_code *ret_code,
                      struct err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        char *path = rpc_path_parse(json_string_value(json_array_get(list, i)), ret_code, err);

        if (!path)
            return -1;
        strv_push_take(ret, path);
    }
    return 0;
}

void method_fs_watch_missing(struct call *call, const struct fs_watch_missing_params *params)
{
    struct watcher *watcher = watcher_of(call->client);
    json_int_t id = (json_int_t)params->watch_id;
    const char *uri = params->present;
    bool is_sandboxed = json_is_object(params->sandbox);
    AUTO(strv_done) struct strv missing = {0};
    AUTO_FREE char *present = NULL;
    enum rpc_code code = RPC_INTERNAL;
    struct err err;

    if (read_paths(params->missing, &missing, &code, &err) ||
        (uri && !(present = rpc_path_parse(uri, &code, &err)))) {
        call_fail(call, code, "%s", err.msg);
        return;
    }
    missing_watch_free(TAKE_PTR(watcher->watch));
    if (id > watcher->last_id && !is_sandboxed) {
        watcher->last_id = id;
        watcher->watch = missing_watch_new(call->client->server->loop, &missing, present, on_change,
                                           watcher, &err);
    }
    call_reply(call, json_pack("{s:b}", "watching", watcher->watch != NULL));
}

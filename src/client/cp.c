/* `cp`: one file to the server or from it, in blocks, so that neither side ever holds more than one
 * of them. What is written here appears under its name when it is whole; what is written there is
 * written in place, since the protocol has no rename. Only contents are copied: the protocol has
 * neither modes nor owners. */
#include "client/client.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/fd.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "client/local_file.h"
#include "client/remote_path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 512 * 1024 }; /* bytes; the protocol's limit is 1 MiB */

#define HANDLE "cp"

struct copy {
    struct connection *connection;
    const char *remote; /* path, as given */
    char *uri;
};

static void copy_done(struct copy *copy)
{
    connection_free(copy->connection);
    free(copy->uri);
}

static int fail_folder(const char *path, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "%s is a folder, and cp copies single files; a whole tree goes by tar: cordon "
                   "--connect URL run -- tar -C FOLDER -c . | tar -x",
                   path);
}

/* --- at the server --- */

/* A file operation; `params` gets the path where it takes one. */
static json_t *call_path(struct copy *copy, const char *method, json_t *params, struct err *err)
{
    json_t *result;

    json_object_set_new(params, "path", json_string(copy->uri));
    result = connection_call(copy->connection, method, params, err);
    if (!result)
        err_wrap(err, "remote:%s", copy->remote);
    return result;
}

static int remote_is_folder(struct copy *copy, bool *ret, struct err *err)
{
    struct err why;
    AUTO_JSON json_t *info = call_path(copy, "fs/getMetadata", json_object(), &why);

    if (!info && why.code != ERR_NOT_FOUND) {
        *err = why;
        return -1;
    }
    *ret = json_is_true(json_object_get(info, "isDirectory"));
    return 0;
}

static int remote_open(struct copy *copy, const char *mode, struct err *err)
{
    AUTO_JSON json_t *result =
        call_path(copy, "fs/open", json_pack("{s:s, s:s}", "handleId", HANDLE, "mode", mode), err);

    return result ? 0 : -1;
}

static int remote_close(struct copy *copy, struct err *err)
{
    AUTO_JSON json_t *result =
        connection_call(copy->connection, "fs/close", json_pack("{s:s}", "handleId", HANDLE), err);

    return result ? 0 : err_wrap(err, "remote:%s", copy->remote);
}

static int remote_write(struct copy *copy, uint64_t offset, const char *bytes, size_t len,
                        struct err *err)
{
    AUTO_FREE char *chunk = alloc_zero(base64_encoded_len(len) + 1, 1);
    AUTO_JSON json_t *result = NULL;

    base64_encode(bytes, len, chunk);
    result = connection_call(copy->connection, "fs/writeBlock",
                             json_pack("{s:s, s:I, s:s}", "handleId", HANDLE, "offset",
                                       (json_int_t)offset, "chunk", chunk),
                             err);
    return result ? 0
                  : err_wrap(err, "remote:%s is not whole, %" PRIu64 " bytes were written",
                             copy->remote, offset);
}

/* One block into `ret`, of BLOCK bytes. */
static int remote_read(struct copy *copy, uint64_t offset, char *ret, size_t *ret_len,
                       bool *ret_is_end, struct err *err)
{
    AUTO_JSON json_t *result =
        connection_call(copy->connection, "fs/readBlock",
                        json_pack("{s:s, s:I, s:i}", "handleId", HANDLE, "offset",
                                  (json_int_t)offset, "len", BLOCK),
                        err);
    const json_t *chunk = json_object_get(result, "chunk");
    size_t text_len = json_string_length(chunk);
    size_t len;

    if (!result)
        return err_wrap(err, "remote:%s", copy->remote);
    if (!json_is_string(chunk))
        return err_set(err, ERR_INVALID, "fs/readBlock: the server gives no chunk");
    len = base64_decoded_len(json_string_value(chunk), text_len);
    if (len > BLOCK)
        return err_set(err, ERR_INVALID, "fs/readBlock: the server gives more than was asked for");
    if (base64_decode(json_string_value(chunk), text_len, ret, err))
        return err_wrap(err, "fs/readBlock");
    *ret_len = len;
    *ret_is_end = json_is_true(json_object_get(result, "eof")) || !len;
    return 0;
}

/* --- there --- */

static int send_blocks(struct copy *copy, int fd, const char *name, struct err *err)
{
    AUTO_FREE char *block = alloc_zero(BLOCK, 1);
    uint64_t offset = 0;

    for (;;) {
        ssize_t n = fd_read_block(fd, block, BLOCK);

        if (n < 0)
            return err_sys(err, "reading %s", name);
        if (n == 0)
            return remote_close(copy, err);
        if (remote_write(copy, offset, block, (size_t)n, err))
            return -1;
        offset += (uint64_t)n;
    }
}

static int open_source(const char *path, struct err *err)
{
    struct stat info;
    AUTO_CLOSE int fd = str_eq(path, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                          : open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, "%s", path);
    if (fstat(fd, &info))
        return err_sys(err, "%s", path);
    if (S_ISDIR(info.st_mode))
        return fail_folder(path, err);
    return TAKE_FD(fd);
}

/* The file's own name below a folder. */
static int enter_folder(struct copy *copy, const char *name, struct err *err)
{
    AUTO_FREE char *folder = NULL;
    AUTO_FREE char *inside = NULL;

    if (str_eq(name, "-"))
        return err_set(err, ERR_INVALID,
                       "remote:%s is a folder; what comes from stdin needs a name", copy->remote);
    folder = file_uri_parse(copy->uri, err);
    if (!folder)
        return -1;
    inside = path_join(folder, path_name(name));
    free(copy->uri);
    copy->uri = file_uri_format(inside);
    return 0;
}

static int copy_there(struct copy *copy, const char *from, struct err *err)
{
    AUTO_CLOSE int fd = open_source(from, err);
    bool is_folder;

    if (fd < 0 || remote_is_folder(copy, &is_folder, err))
        return -1;
    if (is_folder && enter_folder(copy, from, err))
        return -1;
    if (remote_open(copy, "replace", err))
        return -1;
    return send_blocks(copy, fd, from, err);
}

/* --- here --- */

static int receive_blocks(struct copy *copy, struct local_file *file, struct err *err)
{
    AUTO_FREE char *block = alloc_zero(BLOCK, 1);
    uint64_t offset = 0;
    bool is_end = false;

    while (!is_end) {
        size_t len = 0;

        if (remote_read(copy, offset, block, &len, &is_end, err) ||
            local_file_write(file, block, len, err))
            return -1;
        offset += len;
    }
    return local_file_commit(file, err);
}

static int copy_here(struct copy *copy, const char *to, struct err *err)
{
    AUTO(local_file_done) struct local_file file = {.fd = -1};
    bool is_folder;

    if (remote_is_folder(copy, &is_folder, err))
        return -1;
    if (is_folder)
        return fail_folder(copy->remote, err);
    if (remote_open(copy, "read", err) ||
        local_file_open(&file, to, path_name(copy->remote), err) ||
        receive_blocks(copy, &file, err))
        return -1;
    return remote_close(copy, err);
}

/* --- the command --- */

static int copy_connect(const struct client *client, struct copy *copy, struct err *err)
{
    struct connection_options server = client->server;

    if (!*copy->remote || str_ends(copy->remote, "/."))
        return err_set(err, ERR_INVALID, "\"remote:%s\" names no file", copy->remote);
    server.lifetime_ms = CONNECTION_ENDS_SESSION;
    copy->connection = connection_open(&server, err);
    if (!copy->connection)
        return -1;
    copy->uri = remote_path_uri(connection_folder(copy->connection), copy->remote, err);
    return copy->uri ? 0 : -1;
}

int client_cp(const struct client *client, const char *from, const char *to, int *ret_status,
              struct err *err)
{
    const char *remote_from = remote_path_of(from);
    const char *remote_to = remote_path_of(to);
    AUTO(copy_done) struct copy copy = {.remote = remote_from ? remote_from : remote_to};

    if (!remote_from == !remote_to)
        return err_set(err, ERR_INVALID,
                       "one of the two files is to be at the server, written remote:PATH: cp %s "
                       "remote:%s, or cp remote:%s %s",
                       from, to, from, to);
    if (copy_connect(client, &copy, err))
        return -1;
    *ret_status = 0;
    return remote_to ? copy_there(&copy, from, err) : copy_here(&copy, to, err);
}

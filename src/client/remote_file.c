/* One call of the protocol for each operation. The server resolves ".." itself when it parses a
 * URI, so paths are cleaned here only to make one absolute. */
#include "client/remote_file.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "client/connection.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define HANDLE "cp"

/* --- paths --- */

char *remote_path_uri(const char *dir, const char *path, struct err *err)
{
    AUTO_FREE char *base = NULL;
    AUTO_FREE char *whole = NULL;

    if (path && *path == '/') {
        whole = path_clean("/", path);
        return file_uri_format(whole);
    }
    if (!dir) {
        err_set(err, ERR_INVALID,
                "the server does not tell its directory, so %s%s%s has to be an absolute path",
                path ? "\"" : "the directory", path ? path : "", path ? "\"" : " (--cwd)");
        return NULL;
    }
    base = file_uri_parse(dir, err);
    if (!base) {
        err_wrap(err, "the server's directory");
        return NULL;
    }
    whole = path_clean(base, path ? path : ".");
    return file_uri_format(whole);
}

const char *remote_path_of(const char *argument)
{
    static const char prefix[] = "remote:";

    return str_starts(argument, prefix) ? argument + sizeof prefix - 1 : NULL;
}

/* --- calls --- */

/* A file operation about the path; takes the reference `params`. */
static json_t *call_path(const struct remote_file *file, const char *method, json_t *params,
                         struct err *err)
{
    AUTO_FREE char *uri = file_uri_format(file->path);
    json_t *result;

    json_object_set_new(params, "path", json_string(uri));
    result = connection_call(file->connection, method, params, err);
    if (!result)
        err_wrap(err, "remote:%s", file->shown);
    return result;
}

/* One without a result. */
static int do_path(const struct remote_file *file, const char *method, json_t *params,
                   struct err *err)
{
    AUTO_JSON json_t *result = call_path(file, method, params, err);

    return result ? 0 : -1;
}

int remote_stat(const struct remote_file *file, struct remote_info *ret, struct err *err)
{
    struct err why;
    AUTO_JSON json_t *info =
        call_path(file, "fs/getMetadata", json_pack("{s:b}", "details", 1), &why);
    const json_t *mode = json_object_get(info, "mode");

    if (!info && why.code != ERR_NOT_FOUND) {
        *err = why;
        return -1;
    }
    *ret = (struct remote_info){.kind = REMOTE_MISSING, .mode = -1};
    if (info)
        ret->kind = json_is_true(json_object_get(info, "isDirectory")) ? REMOTE_DIR : REMOTE_OTHER;
    if (json_is_integer(mode))
        ret->mode = (int)(json_integer_value(mode) & 0777);
    return 0;
}

/* --- contents --- */

int remote_open(const struct remote_file *file, enum remote_mode mode, struct err *err)
{
    return do_path(file, "fs/open",
                   json_pack("{s:s, s:s}", "handleId", HANDLE, "mode",
                             mode == REMOTE_READ ? "read" : "replace"),
                   err);
}

int remote_close(const struct remote_file *file, int status, struct err *err)
{
    struct err why;
    AUTO_JSON json_t *result =
        connection_call(file->connection, "fs/close", json_pack("{s:s}", "handleId", HANDLE), &why);

    if (status || result)
        return status;
    *err = why;
    return err_wrap(err, "remote:%s", file->shown);
}

int remote_write(const struct remote_file *file, uint64_t offset, const char *bytes, size_t len,
                 struct err *err)
{
    AUTO_FREE char *chunk = alloc_zero(base64_encoded_len(len) + 1, 1);
    AUTO_JSON json_t *result = NULL;

    base64_encode(bytes, len, chunk);
    result = connection_call(file->connection, "fs/writeBlock",
                             json_pack("{s:s, s:I, s:s}", "handleId", HANDLE, "offset",
                                       (json_int_t)offset, "chunk", chunk),
                             err);
    return result ? 0
                  : err_wrap(err, "remote:%s is not whole, %" PRIu64 " bytes were written",
                             file->shown, offset);
}

int remote_read(const struct remote_file *file, uint64_t offset, char *ret, size_t *ret_len,
                bool *ret_is_end, struct err *err)
{
    AUTO_JSON json_t *result =
        connection_call(file->connection, "fs/readBlock",
                        json_pack("{s:s, s:I, s:i}", "handleId", HANDLE, "offset",
                                  (json_int_t)offset, "len", REMOTE_BLOCK),
                        err);
    const json_t *chunk = json_object_get(result, "chunk");
    size_t text_len = json_string_length(chunk);
    size_t len;

    if (!result)
        return err_wrap(err, "remote:%s", file->shown);
    if (!json_is_string(chunk))
        return err_set(err, ERR_INVALID, "fs/readBlock: the server gives no chunk");
    len = base64_decoded_len(json_string_value(chunk), text_len);
    if (len > REMOTE_BLOCK)
        return err_set(err, ERR_INVALID, "fs/readBlock: the server gives more than was asked for");
    if (base64_decode(json_string_value(chunk), text_len, ret, err))
        return err_wrap(err, "fs/readBlock");
    *ret_len = len;
    *ret_is_end = json_is_true(json_object_get(result, "eof")) || !len;
    return 0;
}

/* --- the rest --- */

json_t *remote_list(const struct remote_file *file, struct err *err)
{
    AUTO_JSON json_t *result =
        call_path(file, "fs/readDirectory", json_pack("{s:b}", "details", 1), err);
    json_t *entries = json_object_get(result, "entries");

    if (!result)
        return NULL;
    if (json_is_array(entries))
        return json_incref(entries);
    err_set(err, ERR_INVALID, "fs/readDirectory: the server gives no list");
    return NULL;
}

int remote_make_dir(const struct remote_file *file, struct err *err)
{
    return do_path(file, "fs/createDirectory", json_pack("{s:b}", "recursive", 1), err);
}

int remote_make_link(const struct remote_file *file, const char *target, struct err *err)
{
    struct err why;

    if (do_path(file, "fs/createSymlink", json_pack("{s:s}", "target", target), &why) == 0)
        return 0;
    if (!strstr(why.msg, "(os error 17)") || /* EEXIST, as the protocol spells it */
        do_path(file, "fs/remove", json_pack("{s:b, s:b}", "recursive", 0, "force", 0), err)) {
        *err = why;
        return -1;
    }
    return do_path(file, "fs/createSymlink", json_pack("{s:s}", "target", target), err);
}

int remote_set_mode(const struct remote_file *file, mode_t mode, struct err *err)
{
    return do_path(file, "fs/setMode",
                   json_pack("{s:i, s:b}", "mode", (int)mode & 0777, "followSymlinks", 0), err);
}

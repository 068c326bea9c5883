/* `cp`: a file, or a folder with everything in it (cp_tree.h), to the server or from it, in blocks,
 * so that neither side ever holds more than one of them. What is written here appears under its
 * name when it is whole; what is written there is written in place, since the protocol has no
 * rename. Of a single file only the contents are copied, as by `cat`. */
#include "client/client.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/file_uri.h"
#include "base/path.h"
#include "base/str.h"
#include "client/cp_tree.h"
#include "client/face.h"
#include "client/local_file.h"
#include "client/remote_file.h"
#include "client/remote_path.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void cp_done(struct cp *cp)
{
    progress_clear(&cp->progress);
    connection_free(cp->connection);
    free(cp->block);
}

void cp_complain(struct cp *cp, const struct err *err)
{
    cp->failed++;
    progress_clear(&cp->progress);
    cp->face->say("%s", err->msg);
}

/* --- contents --- */

static int send_blocks(struct cp *cp, int fd, const char *name, const struct remote_file *file,
                       struct err *err)
{
    uint64_t offset = 0;

    for (;;) {
        ssize_t n = fd_read_block(fd, cp->block, REMOTE_BLOCK);

        if (n < 0)
            return err_sys(err, "reading %s", name);
        if (n == 0)
            return 0;
        if (remote_write(file, offset, cp->block, (size_t)n, err))
            return -1;
        offset += (uint64_t)n;
        progress_add_bytes(&cp->progress, (size_t)n);
    }
}

/* Whatever happened, the handle is to be free for the next file. */
static int close_after(const struct remote_file *file, int status, struct err *err)
{
    struct err ignored;

    return remote_close(file, status ? &ignored : err) || status ? -1 : 0;
}

int cp_send(struct cp *cp, int fd, const char *name, const struct remote_file *file,
            struct err *err)
{
    if (remote_open(file, REMOTE_REPLACE, err) ||
        close_after(file, send_blocks(cp, fd, name, file, err), err))
        return -1;
    progress_add_file(&cp->progress);
    return 0;
}

static int receive_blocks(struct cp *cp, const struct remote_file *file, int fd, const char *name,
                          struct err *err)
{
    uint64_t offset = 0;
    bool is_end = false;

    while (!is_end) {
        size_t len = 0;

        if (remote_read(file, offset, cp->block, &len, &is_end, err))
            return -1;
        if (fd_write_all(fd, cp->block, len, err))
            return err_wrap(err, "writing %s", name);
        offset += len;
        progress_add_bytes(&cp->progress, len);
    }
    return 0;
}

int cp_receive(struct cp *cp, const struct remote_file *file, int fd, const char *name,
               struct err *err)
{
    if (remote_open(file, REMOTE_READ, err) ||
        close_after(file, receive_blocks(cp, file, fd, name, err), err))
        return -1;
    progress_add_file(&cp->progress);
    return 0;
}

/* --- there --- */

/* The own name of what is copied; "" for what has none, as "." and "/". Caller frees. */
static char *own_name(const char *path)
{
    AUTO_FREE char *folder = getcwd(NULL, 0);
    AUTO_FREE char *clean = path_clean(folder ? folder : "/", path);
    bool is_inside =
        str_eq(path, ".") || str_eq(path, "..") || str_ends(path, "/.") || str_ends(path, "/..");

    return alloc_str(is_inside ? "" : path_name(clean));
}

/* Where it goes: `path`, or under its own name in the folder `path`. Caller frees. */
static char *place_there(const struct remote_file *file, const char *from, struct err *err)
{
    AUTO_FREE char *name = own_name(from);
    struct remote_info info;

    if (remote_look(file, &info, err))
        return NULL;
    if (info.kind != REMOTE_FOLDER)
        return alloc_str(file->path);
    if (str_eq(from, "-")) {
        err_set(err, ERR_INVALID, "remote:%s is a folder; what comes from stdin needs a name",
                file->shown);
        return NULL;
    }
    return *name ? path_join(file->path, name) : alloc_str(file->path);
}

static int open_source(const char *path, bool *ret_is_folder, struct err *err)
{
    struct stat info;
    AUTO_CLOSE int fd = str_eq(path, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                          : open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &info))
        return err_sys(err, "%s", path);
    *ret_is_folder = S_ISDIR(info.st_mode);
    return TAKE_FD(fd);
}

static int copy_there(struct cp *cp, const char *from, const struct remote_file *to,
                      struct err *err)
{
    bool is_folder = false;
    AUTO_CLOSE int fd = open_source(from, &is_folder, err);
    AUTO_FREE char *path = fd < 0 ? NULL : place_there(to, from, err);
    struct remote_file file = {.connection = cp->connection, .path = path, .shown = to->shown};

    if (!path)
        return -1;
    return is_folder ? cp_tree_there(cp, from, &file, err) : cp_send(cp, fd, from, &file, err);
}

/* --- here --- */

static int file_here(struct cp *cp, const struct remote_file *from, const char *to, struct err *err)
{
    AUTO(local_file_done) struct local_file file = {.fd = -1};

    if (local_file_open(&file, to, path_name(from->path), err) ||
        cp_receive(cp, from, file.fd, file.path ? file.path : "the copy", err))
        return -1;
    return local_file_commit(&file, err);
}

/* Into a folder that is there it goes under its own name. */
static int folder_here(struct cp *cp, const struct remote_file *from, int mode, const char *to,
                       struct err *err)
{
    AUTO_FREE char *name = own_name(from->shown);
    AUTO_FREE char *inside = NULL;
    struct stat info;

    if (str_eq(to, "-"))
        return err_set(err, ERR_INVALID, "remote:%s is a folder, which stdout cannot take",
                       from->shown);
    if (stat(to, &info) == 0 && *name)
        inside = path_join(to, name);
    return cp_tree_here(cp, from, mode, inside ? inside : to, err);
}

static int copy_here(struct cp *cp, const struct remote_file *from, const char *to, struct err *err)
{
    struct remote_info info;

    if (remote_look(from, &info, err))
        return -1;
    return info.kind == REMOTE_FOLDER ? folder_here(cp, from, info.mode, to, err)
                                      : file_here(cp, from, to, err);
}

/* --- the command --- */

/* The path at the server; caller frees. */
static char *cp_connect(struct cp *cp, const struct client *client, const char *shown,
                        struct err *err)
{
    struct connection_options server = client->server;
    AUTO_FREE char *uri = NULL;

    if (!*shown) {
        err_set(err, ERR_INVALID, "\"remote:%s\" names no file", shown);
        return NULL;
    }
    server.lifetime_ms = CONNECTION_ENDS_SESSION;
    cp->connection = connection_open(&server, err);
    if (!cp->connection)
        return NULL;
    uri = remote_path_uri(connection_folder(cp->connection), shown, err);
    return uri ? file_uri_parse(uri, err) : NULL;
}

static void cp_init(struct cp *cp, const struct client *client)
{
    *cp = (struct cp){.face = client->face, .block = alloc_zero(REMOTE_BLOCK, 1)};
    progress_init(&cp->progress, STDERR_FILENO);
}

int client_cp(const struct client *client, const char *from, const char *to, int *ret_status,
              struct err *err)
{
    const char *remote_from = remote_path_of(from);
    const char *remote_to = remote_path_of(to);
    struct remote_file file = {.shown = remote_from ? remote_from : remote_to};
    AUTO(cp_done) struct cp cp;
    AUTO_FREE char *path = NULL;

    cp_init(&cp, client);
    if (!remote_from == !remote_to)
        return err_set(err, ERR_INVALID,
                       "one of the two files is to be at the server, written remote:PATH: cp %s "
                       "remote:%s, or cp remote:%s %s",
                       from, to, from, to);
    path = cp_connect(&cp, client, file.shown, err);
    if (!path)
        return -1;
    file.connection = cp.connection;
    file.path = path;
    if (remote_to ? copy_there(&cp, from, &file, err) : copy_here(&cp, &file, to, err))
        return -1;
    progress_clear(&cp.progress);
    if (cp.failed)
        client->face->say("%zu %s not copied", cp.failed,
                          cp.failed == 1 ? "entry is" : "entries are");
    *ret_status = cp.failed ? CLIENT_NO : 0;
    return 0;
}

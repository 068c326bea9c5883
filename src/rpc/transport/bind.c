/* A socket file outlives a server that was killed, and bind(2) then fails for ever. It is replaced
 * when it is ours and nobody listens behind it. That is a look and then a deed, so all of it, up to
 * listen(2), happens under a lock on the folder: otherwise a second server could take the first
 * one's file for a dead one in the moment between bind and listen. The mode is set on the socket
 * before it has a name (Linux gives it to the file), so there is no moment in which others could
 * connect. */
#include "rpc/transport/bind.h"

#include "base/auto.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 512 };

static int bind_ip(const struct rpc_address *address, struct err *err)
{
    const int on = 1;
    int family = address->ip.any.sa_family;
    socklen_t len = family == AF_INET6 ? sizeof address->ip.v6 : sizeof address->ip.v4;
    AUTO_CLOSE int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_sys(err, "making a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, &address->ip.any, len) || listen(fd, BACKLOG))
        return err_sys(err, "listening");
    return TAKE_FD(fd);
}

/* The folder of the socket, locked until it is closed. */
static int lock_folder(const char *path, struct err *err)
{
    char copy[RPC_ADDRESS_TEXT_SIZE];
    AUTO_CLOSE int fd = -1;

    snprintf(copy, sizeof copy, "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "opening the folder of %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB))
        return err_sys(err, "locking the folder of %s (is another server just starting?)", path);
    return TAKE_FD(fd);
}

/* Fails unless the file is a socket of ours behind which nobody listens. */
static int check_stale(const struct sockaddr_un *name, struct err *err)
{
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat info;

    if (fd < 0)
        return err_sys(err, "making a socket");
    if (lstat(name->sun_path, &info))
        return err_sys(err, "looking at %s", name->sun_path);
    if (!S_ISSOCK(info.st_mode))
        return err_set(err, ERR_INVALID, "%s is there and is no socket", name->sun_path);
    if (info.st_uid != geteuid())
        return err_set(err, ERR_FORBIDDEN, "%s is a socket of somebody else", name->sun_path);
    if (connect(fd, (const struct sockaddr *)name, sizeof *name) == 0 || errno != ECONNREFUSED)
        return err_set(err, ERR_INVALID, "%s: another server listens there", name->sun_path);
    return 0;
}

static int bind_name(int fd, const struct sockaddr_un *name, struct err *err)
{
    const struct sockaddr *any = (const struct sockaddr *)name;

    if (bind(fd, any, sizeof *name) == 0)
        return 0;
    if (errno != EADDRINUSE)
        return err_sys(err, "listening");
    if (check_stale(name, err))
        return -1;
    if (unlink(name->sun_path) || bind(fd, any, sizeof *name))
        return err_sys(err, "replacing the left-over socket %s", name->sun_path);
    return 0;
}

static int bind_unix(const char *path, struct socket_file *ret_file, struct err *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct socket_file file = {.path = ""};
    struct stat info;
    AUTO_CLOSE int folder = lock_folder(path, err);
    AUTO_CLOSE int fd = -1;

    if (folder < 0)
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || fchmod(fd, 0600))
        return err_sys(err, "making a socket");
    memcpy(name.sun_path, path, strnlen(path, sizeof name.sun_path - 1));
    if (bind_name(fd, &name, err))
        return -1;
    if (lstat(path, &info) || listen(fd, BACKLOG))
        return err_sys(err, "listening");
    snprintf(file.path, sizeof file.path, "%s", path);
    file.dev = info.st_dev;
    file.ino = info.st_ino;
    *ret_file = file;
    return TAKE_FD(fd);
}

int bind_open(const struct rpc_address *address, struct socket_file *ret_file, struct err *err)
{
    char text[RPC_ADDRESS_TEXT_SIZE];
    int fd = address->transport == RPC_UNIX ? bind_unix(address->path, ret_file, err)
                                            : bind_ip(address, err);

    rpc_address_format(address, text);
    return fd < 0 ? err_wrap(err, "%s", text) : fd;
}

static int socket_option(int fd, int option)
{
    int value = -1;
    socklen_t len = sizeof value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) ? -1 : value;
}

int bind_identify(int fd, struct rpc_address *ret, struct err *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNSPEC};
    struct rpc_address address = {.transport = RPC_WS};
    socklen_t len = sizeof name;
    int domain = socket_option(fd, SO_DOMAIN);

    if (socket_option(fd, SO_ACCEPTCONN) != 1 || socket_option(fd, SO_TYPE) != SOCK_STREAM)
        return err_set(err, ERR_INVALID, "descriptor %d is no listening stream socket", fd);
    if (getsockname(fd, (struct sockaddr *)&name, &len))
        return err_sys(err, "asking for the name of socket %d", fd);
    if (domain == AF_UNIX) {
        address.transport = RPC_UNIX;
        snprintf(address.path, sizeof address.path, "%.*s", (int)sizeof name.sun_path,
                 name.sun_path);
    } else if (domain == AF_INET || domain == AF_INET6) {
        memcpy(&address.ip, &name, sizeof address.ip);
    } else {
        return err_set(err, ERR_INVALID, "descriptor %d is neither a TCP nor a Unix socket", fd);
    }
    *ret = address;
    return 0;
}

void socket_file_remove(const struct socket_file *file)
{
    struct stat info;

    if (*file->path && lstat(file->path, &info) == 0 && info.st_dev == file->dev &&
        info.st_ino == file->ino)
        unlink(file->path);
}

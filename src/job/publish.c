/* See publish.h. Who has a port is found as ss(8) does it: by the inode of the socket in /proc/net, and the descriptors of
 * those processes that we may look into. */
#include "job/publish.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "base/sys.h"
#include "process/process.h"
#include "sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Listens for commands of any engine. */
#define PROXY_NAME "cordon-proxy"

enum { BACKLOG = 4096, STATE_LISTEN = 0x0a };

/* --- who has it --- */

/* The inode of a socket that listens there; 0: none is found. */
static unsigned long find_inode(const char *table, uint16_t port)
{
    FILE *file = fopen(table, "re"); /* allow blocking fopen: procfs */
    unsigned long found = 0, inode;
    unsigned local, state;
    char line[512];

    while (file && !found && fgets(line, sizeof line, file))
        if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*u %lu",
                   &local, &state, &inode) == 3 &&
            local == port && state == STATE_LISTEN)
            found = inode;
    if (file)
        fclose(file);
    return found;
}

static bool has_socket(const char *pid, unsigned long inode)
{
    AUTO_FREE char *path = alloc_strf("/proc/%s/fd", pid);
    AUTO_FREE char *wanted = alloc_strf("socket:[%lu]", inode);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    char target[64];
    bool found = false;

    while (dir && !found && (entry = readdir(dir))) {
        const ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof target);

        found = len == (ssize_t)strlen(wanted) && memcmp(target, wanted, (size_t)len) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

/* "nginx (pid 12)"; NULL: not known. Caller frees. */
static char *find_owner(uint16_t port)
{
    unsigned long inode = find_inode("/proc/net/tcp", port);
    const struct dirent *entry;
    char *found = NULL;
    DIR *dir;

    inode = inode ? inode : find_inode("/proc/net/tcp6", port);
    dir = inode ? opendir("/proc") : NULL;
    while (dir && !found && (entry = readdir(dir))) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            has_socket(entry->d_name, inode)) {
            AUTO_FREE char *path = alloc_strf("/proc/%s/comm", entry->d_name);
            AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC); /* allow blocking open: procfs */
            char name[32];
            const ssize_t len = fd < 0 ? 0 : read(fd, name, sizeof name);

            found = alloc_strf("%.*s (pid %s)", len > 1 ? (int)len - 1 : 1, len > 1 ? name : "?",
                               entry->d_name);
        }
    }
    if (dir)
        closedir(dir);
    return found;
}

/* --- listening --- */

static int fail(const struct publication *publication, struct err *err)
{
    const int error = errno;
    AUTO_FREE char *owner = error == EADDRINUSE ? find_owner(publication->host_port) : NULL;
    struct net_host host;
    AUTO_FREE char *name = NULL;

    net_host_from_address(&publication->address, &host);
    name = net_host_format(host.text, publication->host_port);
    if (owner && str_starts(owner, PROXY_NAME " "))
        return err_set(
            err, ERR_FORBIDDEN,
            "%s is in use, by a command in another sandbox: publish another port, or 0 for any",
            name);
    if (owner)
        return err_set(err, ERR_FORBIDDEN,
                       "%s is in use, by %s: publish another port, or 0 for any", name, owner);
    if (error == EADDRINUSE)
        return err_set(err, ERR_FORBIDDEN, "%s is in use: publish another port, or 0 for any",
                       name);
    errno = error;
    return err_sys(err, "publishing a port at %s", name);
}

/* The descriptor, and in `publication` the port that it has got. */
static int listen_at(struct publication *publication, struct err *err)
{
    const bool is_ip4 = net_address_is_v4(&publication->address);
    struct sockaddr_in ip4 = {.sin_family = AF_INET, .sin_port = htons(publication->host_port)};
    struct sockaddr_in6 ip6 = {.sin6_family = AF_INET6, .sin6_port = htons(publication->host_port)};
    struct sockaddr *address = is_ip4 ? (struct sockaddr *)&ip4 : (struct sockaddr *)&ip6;
    socklen_t len = is_ip4 ? sizeof ip4 : sizeof ip6;
    AUTO_CLOSE int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memcpy(&ip4.sin_addr, publication->address.bytes + 12, sizeof ip4.sin_addr);
    memcpy(&ip6.sin6_addr, publication->address.bytes, sizeof ip6.sin6_addr);
    /* [::] is not 0.0.0.0, too; and a port that has just been given back can be had */
    if (sys_fault() || fd < 0 ||
        (!is_ip4 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){1}, sizeof(int))) ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
        bind(fd, address, len) || listen(fd, BACKLOG) || getsockname(fd, address, &len))
        return fail(publication, err);
    publication->host_port = ntohs(is_ip4 ? ip4.sin_port : ip6.sin6_port);
    return TAKE_FD(fd);
}

int publish_port(struct process *process, const struct publication *publication,
                 struct publications *list, struct publication *ret, struct err *err)
{
    AUTO_CLOSE int fd = -1;

    *ret = *publication;
    if (list->len == PUBLICATIONS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d published ports", PUBLICATIONS_MAX);
    fd = listen_at(ret, err);
    if (fd < 0 || process_publish(process, ret->port, fd, err))
        return -1;
    return publications_add(list, ret, err);
}

struct process *publish_start(const struct process_options *options, struct publications *ret,
                              struct err *err)
{
    const struct publications *wanted =
        &sandbox_access(options->sandbox)->network_policy.publications;
    struct process *process = NULL;
    int fds[PUBLICATIONS_MAX];
    int status = 0;
    size_t len = 0;

    for (; len < wanted->len && status == 0; len++) {
        ret->items[len] = wanted->items[len];
        fds[len] = listen_at(&ret->items[len], err);
        status = fds[len] < 0 ? -1 : 0;
    }
    if (status == 0)
        process = process_start(options, err);
    for (size_t i = 0; process && i < len; i++)
        if (process_publish(process, ret->items[i].port, fds[i], err)) {
            process_free(process);
            process = NULL;
        }
    for (size_t i = 0; i < len; i++)
        auto_close(&fds[i]);
    ret->len = process ? len : 0;
    return process;
}

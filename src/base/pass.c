/* See pass.h. */
#include "base/pass.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(PASS_MAX * sizeof(int))];
};

int pass_send(int socket, const void *data, size_t len, const int *fds, size_t count)
{
    struct iovec vector = {.iov_base = (void *)data, .iov_len = len}; /* it is only read */
    union control control = {.bytes = {0}};
    struct msghdr message = {
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = CMSG_SPACE(count * sizeof *fds),
    };

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(count * sizeof *fds);
    memcpy(CMSG_DATA(&control.header), fds, count * sizeof *fds);
    return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

ssize_t pass_receive(int socket, void *data, size_t size, int flags, int ret_fds[PASS_MAX],
                     size_t *ret_count)
{
    struct iovec vector = {.iov_base = data, .iov_len = size};
    union control control;
    struct msghdr message = {
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes,
    };
    const struct cmsghdr *rights;
    ssize_t len = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);

    *ret_count = 0;
    rights = len < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (!rights || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS)
        return len;
    *ret_count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof *ret_fds;
    memcpy(ret_fds, CMSG_DATA(rights), *ret_count * sizeof *ret_fds);
    return len;
}

void pass_close(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

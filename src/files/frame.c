/* See frame.h. The descriptor rides on the first byte of its frame. */
#include "files/frame.h"

#include "base/fd.h"
#include "base/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int frame_send(int socket, const struct frame_head *head, const void *payload, int fd,
               struct err *err)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {.iov_base = (void *)head, .iov_len = sizeof *head};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct cmsghdr *rights;
    ssize_t sent;

    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    do
        sent = sys_fault() ? -1 : sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return err_sys(err, "sending a frame");
    /* what of the head a full buffer of the socket did not take, and the rest */
    if (fd_write_all(socket, (const char *)head + sent, sizeof *head - (size_t)sent, err))
        return -1;
    return fd_write_all(socket, payload, head->len, err);
}

/* 1 when everything came, 0 at the end of the stream before the first byte. */
static int receive_all(int socket, void *data, size_t len, struct err *err)
{
    char *next = data;
    size_t rest = len;

    while (rest) {
        ssize_t n = sys_fault() ? -1 : read(socket, next, rest);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "receiving a frame");
        if (n == 0)
            return rest == len ? 0 : err_set(err, ERR_INVALID, "a frame ends too early");
        next += n;
        rest -= (size_t)n;
    }
    return 1;
}

int frame_receive(int socket, enum frame_kind *ret_kind, struct buf *ret, struct err *err)
{
    struct frame_head head;
    char block[16384];
    int status = receive_all(socket, &head, sizeof head, err);

    if (status <= 0)
        return status;
    if (head.kind > FRAME_FAILURE || head.len > FRAME_MAX)
        return err_set(err, ERR_INVALID, "no frame of ours: kind %u, %u bytes", head.kind,
                       head.len);
    buf_clear(ret);
    for (size_t left = head.len, want; left; left -= want) {
        want = left < sizeof block ? left : sizeof block;
        status = receive_all(socket, block, want, err);
        if (status < 0)
            return -1;
        if (status == 0) /* a sender that stops halfway is an error, not an end */
            return err_set(err, ERR_INVALID, "a frame ends too early");
        if (!buf_append(ret, block, want))
            return err_set(err, ERR_LIMIT, "a frame is larger than %zu bytes", ret->max);
    }
    *ret_kind = (enum frame_kind)head.kind;
    return 1;
}

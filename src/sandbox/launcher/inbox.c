/* A launcher may be started long before there is a command for it, with nothing but its end of the
 * status socket; so it holds nothing of its caller open meanwhile. Whatever else comes first on
 * that socket than a plan with its descriptors ends it.
 */
#include "sandbox/launcher/inbox.h"

#include "base/sys.h"
#include "sandbox/launcher/plan_format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_SPARE_FD = 16 };

static bool inbox_read(int ret_fds[PLAN_FDS])
{
    uint32_t magic = 0;
    struct iovec data = {.iov_base = &magic, .iov_len = sizeof magic};
    union {
        char bytes[CMSG_SPACE(PLAN_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes,
    };
    const struct cmsghdr *rights;
    ssize_t len;

    do
        len = recvmsg(PLAN_STATUS_FD, &message, MSG_CMSG_CLOEXEC);
    while (len < 0 && errno == EINTR);
    rights = len == (ssize_t)sizeof magic ? CMSG_FIRSTHDR(&message) : NULL;
    if (magic != PLAN_MAGIC || !rights || rights->cmsg_type != SCM_RIGHTS ||
        rights->cmsg_len != CMSG_LEN(PLAN_FDS * sizeof(int)))
        return false;
    memcpy(ret_fds, CMSG_DATA(rights), PLAN_FDS * sizeof(int));
    return true;
}

void inbox_clear(void)
{
    sys_close_range(0, PLAN_STATUS_FD - 1, 0);
    sys_close_range(PLAN_STATUS_FD + 1, ~0u, 0);
}

bool inbox_receive(int *ret_file)
{
    int fds[PLAN_FDS];

    if (!inbox_read(fds))
        return false;
    /* What came may stand where something else has to go. */
    for (int i = 0; i < PLAN_FDS; i++) {
        fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
        if (fds[i] < 0)
            return false;
    }
    for (int i = PLAN_FD_STDIN; i <= PLAN_FD_STDERR; i++)
        if (dup2(fds[i], i) < 0) /* allow dup2: the command inherits these */
            return false;
    *ret_file = fds[PLAN_FD_FILE];
    return true;
}

int inbox_close(struct err *err)
{
    if (sys_close_range(PLAN_STATUS_FD + 1, ~0u, 0))
        return err_sys(err, "closing descriptors");
    return fcntl(PLAN_STATUS_FD, F_SETFD, FD_CLOEXEC) ? err_sys(err, "keeping the status socket")
                                                      : 0;
}

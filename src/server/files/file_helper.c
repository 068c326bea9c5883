/* See file_helper.h.
 *
 *     idle --call--> sending --all written--> waiting --RESULT or FAILURE--> idle
 *                        \________________ end of the process or of its socket ____> gone
 *
 * The frames are those of files/frame.h; here they are read and written as the socket lets us,
 * never waiting. What the helper says is held against limits, and what makes no sense ends it: it
 * runs no foreign code, but it is on the other side. */
#include "server/files/file_helper.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/sys.h"
#include "files/frame.h"
#include "loop/loop.h"
#include "process/process.h"
#include "server/files/file_frames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BLOCK = 128 * 1024, WRITE_BLOCK = 64 * 1024 };

struct file_helper {
    struct process *process;
    struct loop_watch *watch;
    int socket;
    bool is_gone;
    struct err end; /* why it is gone */

    struct file_call call; /* without on_answer: idle */
    struct frame_head data_head;
    struct frame_head call_head;
    size_t sent; /* of both frames */

    struct file_frames frames; /* of the answer */
    int fd;                    /* came with it; -1 */
};

void file_call_done(struct file_call *call)
{
    free(call->text);
    json_decref(call->data);
    *call = (struct file_call){0};
}

bool file_helper_is_busy(const struct file_helper *helper)
{
    return helper->call.on_answer != NULL;
}

bool file_helper_is_gone(const struct file_helper *helper)
{
    return helper->is_gone;
}

/* --- answers --- */

static void helper_reset(struct file_helper *helper)
{
    file_call_done(&helper->call);
    file_frames_done(&helper->frames);
    file_frames_init(&helper->frames);
    if (helper->fd >= 0)
        close(TAKE_FD(helper->fd));
}

/* The helper may be freed, or called again, from inside; nothing of it is touched after. */
static void helper_answer(struct file_helper *helper, const struct err *failure)
{
    file_answer_fn *on_answer = helper->call.on_answer;
    void *user = helper->call.user;
    struct buf text = helper->frames.text;
    AUTO_CLOSE int fd = TAKE_FD(helper->fd);
    struct err copy = failure ? *failure : (struct err){0};
    const struct file_answer answer = {.text = &text, .fd = &fd, .failure = failure ? &copy : NULL};

    helper->frames.text = (struct buf){0};
    helper_reset(helper);
    if (on_answer)
        on_answer(user, &answer);
    buf_done(&text);
}

/* From here on it is of no use; the process itself ends with file_helper_free(). */
static void helper_fail(struct file_helper *helper, const struct err *why)
{
    if (helper->is_gone)
        return;
    helper->is_gone = true;
    helper->end = *why;
    loop_watch_set(helper->watch, LOOP_NOTHING);
    helper_answer(helper, &helper->end);
}

/* --- reading --- */

static void take_rights(struct file_helper *helper, struct msghdr *message)
{
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
            if (helper->fd >= 0)
                close(fd);
            else
                helper->fd = fd;
        }
    }
}

/* Bytes, 0 at the end, -1 with errno. */
static ssize_t helper_receive(struct file_helper *helper, char *block, size_t size)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    struct iovec part = {.iov_base = block, .iov_len = size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t len;

    do
        len = sys_fault() ? -1 : recvmsg(helper->socket, &message, MSG_CMSG_CLOEXEC);
    while (len < 0 && errno == EINTR);
    if (len > 0)
        take_rights(helper, &message);
    return len;
}

/* One block for each turn of the loop, so that others have theirs. */
static void helper_read(struct file_helper *helper)
{
    static char block[READ_BLOCK]; /* one thread */
    ssize_t len = helper_receive(helper, block, sizeof block);
    struct err err;
    int status;

    if (len < 0 && errno == EAGAIN)
        return;
    if (len <= 0) { /* its end, which tells why, is about to come */
        loop_watch_set(helper->watch, LOOP_NOTHING);
        if (process_terminate(helper->process, 0, &err))
            helper_fail(helper, &err);
        return;
    }
    status = helper->call.on_answer
                 ? file_frames_take(&helper->frames, block, (size_t)len, &err)
                 : err_set(&err, ERR_BUG, "cordon-files spoke without being asked");
    if (status < 0)
        helper_fail(helper, &err);
    else if (status > 0)
        helper_answer(helper, file_frames_failure(&helper->frames));
}

/* --- writing --- */

/* Cuts the parts down to what comes behind their first `skip` bytes, and to at most `max` bytes of
 * that. Returns how many. */
static size_t parts_cut(struct iovec *parts, size_t count, size_t skip, size_t max)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        size_t used = skip < parts[i].iov_len ? skip : parts[i].iov_len;

        if (used)
            parts[i].iov_base = (char *)parts[i].iov_base + used;
        parts[i].iov_len -= used;
        if (parts[i].iov_len > max - total)
            parts[i].iov_len = max - total;
        skip -= used;
        total += parts[i].iov_len;
    }
    return total;
}

/* One block for each turn of the loop. The helper takes it while we write: to go on as long as
 * there is room would be to go on to the end of a large file. */
static void helper_write(struct file_helper *helper)
{
    struct file_call *call = &helper->call;
    struct iovec parts[] = {
        {&helper->data_head, call->data ? sizeof helper->data_head : 0},
        {(char *)json_string_value(call->data), helper->data_head.len},
        {&helper->call_head, sizeof helper->call_head},
        {call->text, helper->call_head.len},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = sizeof parts / sizeof *parts};
    size_t left = parts_cut(parts, sizeof parts / sizeof *parts, helper->sent, WRITE_BLOCK);
    bool is_behind = left == WRITE_BLOCK;
    ssize_t len = 0;

    if (left) {
        do
            len = sys_fault() ? -1 : sendmsg(helper->socket, &message, MSG_NOSIGNAL);
        while (len < 0 && errno == EINTR);
        is_behind |= len < (ssize_t)left && (len >= 0 || errno == EAGAIN);
    }
    if (len > 0)
        helper->sent += (size_t)len;
    /* any other failure is told by reading */
    loop_watch_set(helper->watch, is_behind ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

static void on_ready(void *data, int fd, unsigned ready)
{
    struct file_helper *helper = data;

    if ((ready & LOOP_WRITE) && helper->call.text)
        helper_write(helper);
    if (ready & LOOP_READ)
        helper_read(helper);
}

/* --- life --- */

static void on_end(void *data, const struct process_end *end)
{
    struct file_helper *helper = data;
    struct err err = end->failure;

    if (end->how == PROCESS_FAILED_TO_START)
        err_wrap(&err, "starting the helper for files");
    else if (end->how == PROCESS_SIGNALED)
        err_set(&err, ERR_BUG, "the helper for files was killed by signal %d", end->signal);
    else
        err_set(&err, ERR_BUG, "the helper for files ended with exit code %d", end->code);
    if (err.code == ERR_NOT_FOUND || err.code == ERR_SYSTEM)
        err.code = ERR_BUG; /* of ours: not the errno of what the client asked for */
    err.sys = 0;
    helper_fail(helper, &err);
}

static int helper_launch(struct file_helper *helper, const struct file_helper_options *options,
                         int socket, struct err *err)
{
    static const struct process_events events = {.on_end = on_end};
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char *const argv[] = {(char *)options->program, NULL};
    char *const env[] = {NULL};
    const struct process_options process = {
        .loop = options->loop,
        .sandbox = options->sandbox,
        .argv = argv,
        .env = env,
        .cwd = "/",
        .stdio = PROCESS_FDS,
        .fds = {socket, null, null},
        .events = &events,
        .data = helper,
    };

    if (null < 0)
        return err_sys(err, "opening /dev/null");
    helper->process = process_start(&process, err);
    return helper->process ? 0 : err_wrap(err, "starting the helper for files");
}

static void helper_auto(struct file_helper **slot)
{
    file_helper_free(*slot);
}

struct file_helper *file_helper_start(const struct file_helper_options *options, struct err *err)
{
    AUTO(helper_auto) struct file_helper *helper = alloc_zero(1, sizeof *helper);
    AUTO_CLOSE int theirs = -1;
    int pair[2];

    helper->fd = helper->socket = -1;
    file_frames_init(&helper->frames);
    if (sys_fault() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
        err_sys(err, "making a socket for the helper for files");
        return NULL;
    }
    helper->socket = pair[0];
    theirs = pair[1];
    if (fd_set_nonblocking(helper->socket, true, err))
        return NULL;
    helper->watch = loop_watch_new(options->loop, helper->socket, LOOP_READ, on_ready, helper, err);
    if (!helper->watch || helper_launch(helper, options, theirs, err))
        return NULL;
    return TAKE_PTR(helper);
}

void file_helper_free(struct file_helper *helper)
{
    if (!helper)
        return;
    process_free(helper->process);
    loop_watch_free(helper->watch);
    helper_reset(helper);
    if (helper->socket >= 0)
        close(helper->socket);
    free(helper);
}

int file_helper_call(struct file_helper *helper, struct file_call *call, struct err *err)
{
    AUTO(file_call_done) struct file_call taken = *call;
    size_t data_len = json_string_length(call->data);

    *call = (struct file_call){0};
    if (helper->is_gone) {
        *err = helper->end;
        return -1;
    }
    if (taken.len > FRAME_MAX || data_len > FRAME_MAX)
        return err_set(err, ERR_LIMIT, "the call is larger than %d bytes", FRAME_MAX);
    helper->data_head = (struct frame_head){.kind = FRAME_DATA, .len = (uint32_t)data_len};
    helper->call_head = (struct frame_head){.kind = FRAME_CALL, .len = (uint32_t)taken.len};
    helper->call = taken;
    taken = (struct file_call){0};
    helper->sent = 0;
    helper_write(helper);
    return 0;
}

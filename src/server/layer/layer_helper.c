/* See layer_helper.h.
 *
 *     sending --all is written, and our side shut--> waiting --end of the socket--> over: the answer
 *          \________________ the process ends without one ___________________________/
 *
 * The request, its descriptors and the answer go over one socket pair, the standard input of the program. It is
 * started for one request, so the end of its side is the end of the answer. A limit of time it has none: to accept
 * on a slow disk takes as long as it takes, and to kill it in the middle would help nobody. */
#include "server/layer/layer_helper.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/pass.h"
#include "base/program.h"
#include "base/str.h"
#include "base/sys.h"
#include "loop/loop.h"
#include "process/process.h"
#include "workspace/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 64 << 20, BLOCK = 128 * 1024, FDS_MAX = 3 };

struct layer_helper {
    struct workspace *workspace;
    struct process *process;
    struct loop_watch *watch;
    int socket;
    int fds[FDS_MAX];
    size_t fds_len;
    char *request;
    size_t request_len;
    size_t sent;
    struct buf text;
    int fd; /* came with the answer; -1 */
    bool is_over;
    void (*on_answer)(void *data, const struct layer_helper_answer *answer);
    void *data;
};

/* --- the answer --- */

/* The words of err_code_name(); another one is a bug of ours. */
static enum err_code code_of(const char *word)
{
    for (int code = ERR_INVALID; word && code <= ERR_CONFLICT; code++)
        if (str_eq(err_code_name((enum err_code)code), word))
            return (enum err_code)code;
    return ERR_BUG;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The helper may be freed from inside. */
static void helper_tell(struct layer_helper *helper, const struct layer_helper_answer *answer)
{
    helper->is_over = true;
    loop_watch_set(helper->watch, LOOP_NOTHING);
    helper->on_answer(helper->data, answer);
}

static void helper_fail(struct layer_helper *helper, const struct err *why)
{
    int none = -1;
    struct err copy = *why;

    if (!helper->is_over)
        helper_tell(helper, &(struct layer_helper_answer){.failure = &copy, .fd = &none});
}

static void helper_answer(struct layer_helper *helper)
{
    struct err err;
    AUTO_JSON json_t *root = json_parse(helper->text.data, helper->text.len, &err);
    AUTO_CLOSE int fd = TAKE_FD(helper->fd);
    const json_t *result = json_object_get(root, "result");
    const json_t *error = json_object_get(root, "error");

    if (root && json_is_object(result)) {
        helper_tell(helper, &(struct layer_helper_answer){.result = result, .fd = &fd});
        return;
    }
    if (!root || !text_of(error, "message"))
        err_set(&err, ERR_BUG, "the helper for layers said what makes no sense");
    else
        err_set(&err, code_of(text_of(error, "code")), "%s", text_of(error, "message"));
    helper_tell(helper, &(struct layer_helper_answer){
                            .failure = &err, .reason = text_of(error, "reason"), .fd = &fd});
}

/* --- the socket --- */

static void take_rights(struct layer_helper *helper, const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (helper->fd >= 0)
            close(fds[i]);
        else
            helper->fd = fds[i];
    }
}

/* What there is, at most a block: its bytes, 0 at the end, -1 with errno; -2: more than may be, which is told. */
static ssize_t helper_take(struct layer_helper *helper)
{
    static char block[BLOCK]; /* one thread */
    int fds[PASS_MAX];
    size_t count = 0;
    ssize_t len =
        sys_fault() ? -1
                    : pass_receive(helper->socket, block, sizeof block, MSG_DONTWAIT, fds, &count);
    struct err err;

    if (len <= 0)
        return len;
    take_rights(helper, fds, count);
    if (buf_append(&helper->text, block, (size_t)len))
        return len;
    err_set(&err, ERR_LIMIT,
            "the answer is larger than %d bytes: ask for a part of it (what was to be changed is "
            "changed: layer/info and layer/changes say how far)",
            ANSWER_MAX);
    helper_fail(helper, &err);
    return -2;
}

/* One block for each turn of the loop, so that others have theirs. */
static void helper_read(struct layer_helper *helper)
{
    ssize_t len = helper_take(helper);
    struct err err;

    if (len > 0 || len == -2 || (len < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    if (helper->text.len) {
        helper_answer(helper);
        return;
    }
    loop_watch_set(helper->watch, LOOP_NOTHING); /* its end tells why */
    if (process_terminate(helper->process, 0, &err))
        helper_fail(helper, &err);
}

static void helper_write(struct layer_helper *helper)
{
    const size_t left = helper->request_len - helper->sent;
    const size_t size = left < BLOCK ? left : BLOCK;
    ssize_t len;

    if (!helper->sent && helper->fds_len)
        len = pass_send(helper->socket, helper->request, 1, helper->fds, helper->fds_len) ? -1 : 1;
    else
        len =
            send(helper->socket, helper->request + helper->sent, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (len > 0)
        helper->sent += (size_t)len;
    if (helper->sent == helper->request_len || (len < 0 && errno != EAGAIN && errno != EINTR)) {
        shutdown(helper->socket, SHUT_WR); /* a failure is told by its end */
        loop_watch_set(helper->watch, LOOP_READ);
    }
}

static void on_ready(void *data, int fd, unsigned ready)
{
    struct layer_helper *helper = data;

    if (ready & LOOP_WRITE)
        helper_write(helper);
    else if (ready & LOOP_READ)
        helper_read(helper);
}

/* --- life --- */

/* What it wrote before counts: its socket is read to the end. */
static void on_end(void *data, const struct process_end *end)
{
    struct layer_helper *helper = data;
    struct err err = end->failure;
    ssize_t len = 1;

    if (helper->is_over)
        return;
    while (len > 0)
        len = helper_take(helper);
    if (len == -2)
        return;
    if (len == 0 && helper->text.len) {
        helper_answer(helper);
        return;
    }
    if (end->how == PROCESS_FAILED_TO_START)
        err_wrap(&err, "starting the helper for layers");
    else if (end->how == PROCESS_SIGNALED)
        err_set(&err, ERR_BUG, "the helper for layers was killed by signal %d", end->signal);
    else
        err_set(&err, ERR_BUG, "the helper for layers ended with exit code %d", end->code);
    helper_fail(helper, &err);
}

static int helper_launch(struct layer_helper *helper, const struct layer_helper_options *options,
                         int socket, struct err *err)
{
    static const struct process_events events = {.on_end = on_end};
    AUTO_FREE char *program = program_find("cordon-layer", err);
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char *const argv[] = {program, NULL};
    const struct process_options process = {
        .loop = options->loop,
        .sandbox = options->workspace->sandbox,
        .argv = argv,
        .env = environ,
        .cwd = "/",
        .stdio = PROCESS_FDS,
        .fds = {socket, null, null},
        .events = &events,
        .data = helper,
    };

    if (!program)
        return err_wrap(err, "layers work with the .deb of Cordon, or one built here");
    if (null < 0)
        return err_sys(err, "opening /dev/null");
    helper->process = process_start(&process, err);
    return helper->process ? 0 : err_wrap(err, "starting the helper for layers");
}

/* They may be closed while it waits for its turn to be read. */
static int copy_fds(struct layer_helper *helper, const struct layer_helper_options *options,
                    struct err *err)
{
    for (size_t i = 0; i < options->fds_len && i < FDS_MAX; i++) {
        int fd = sys_fault() ? -1 : fcntl(options->fds[i], F_DUPFD_CLOEXEC, 3);

        if (fd < 0)
            return err_sys(err, "passing a descriptor to the helper for layers");
        helper->fds[helper->fds_len++] = fd;
    }
    return 0;
}

static int open_socket(struct layer_helper *helper, struct loop *loop, int *ret_theirs,
                       struct err *err)
{
    int pair[2];

    if (sys_fault() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return err_sys(err, "making a socket for the helper for layers");
    helper->socket = pair[0];
    *ret_theirs = pair[1];
    if (fd_set_nonblocking(helper->socket, true, err))
        return -1;
    helper->watch =
        loop_watch_new(loop, helper->socket, LOOP_READ | LOOP_WRITE, on_ready, helper, err);
    return helper->watch ? 0 : -1;
}

static void helper_auto(struct layer_helper **slot)
{
    layer_helper_free(*slot);
}

struct layer_helper *layer_helper_start(const struct layer_helper_options *options,
                                        const json_t *request, struct err *err)
{
    AUTO(helper_auto) struct layer_helper *helper = alloc_zero(1, sizeof *helper);
    AUTO_CLOSE int theirs = -1;

    helper->socket = helper->fd = -1;
    helper->on_answer = options->on_answer;
    helper->data = options->data;
    helper->workspace = options->workspace;
    workspace_hold(helper->workspace);
    helper->request = json_dumps(request, JSON_COMPACT);
    helper->request_len = strlen(helper->request);
    buf_init(&helper->text, ANSWER_MAX);
    if (copy_fds(helper, options, err) || open_socket(helper, options->loop, &theirs, err) ||
        helper_launch(helper, options, theirs, err))
        return NULL;
    return TAKE_PTR(helper);
}

void layer_helper_free(struct layer_helper *helper)
{
    if (!helper)
        return;
    process_free(helper->process);
    loop_watch_free(helper->watch);
    workspace_release(helper->workspace);
    buf_done(&helper->text);
    for (size_t i = 0; i < helper->fds_len; i++)
        close(helper->fds[i]);
    if (helper->fd >= 0)
        close(helper->fd);
    if (helper->socket >= 0)
        close(helper->socket);
    free(helper->request);
    free(helper);
}

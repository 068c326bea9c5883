/* `cordon-layer`: does one thing with a change layer for a server, and ends (call.h). The request is what comes on
 * the socket that is its standard input until the server says no more, and the descriptors of the lock and
 * the namespaces with it; the answer goes the same way, and with that to "open" the lock.
 *
 * It has the rights of the server, for it writes the user's files; nothing of a command runs in it. When the server dies
 * meanwhile it goes on to the end: it has the lock, too, so nobody else is at the layer. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/pass.h"
#include "layer/call.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_MAX = 64 << 20, BLOCK = 65536 };

static void fds_close(struct layer_call_fds *fds)
{
    int *const all[] = {&fds->lock, &fds->users, &fds->mounts};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (*all[i] >= 0)
            close(TAKE_FD(*all[i]));
}

/* In their order; more than there are names for are closed. */
static void fds_take(struct layer_call_fds *fds, const int *given, size_t count)
{
    int *const all[] = {&fds->lock, &fds->users, &fds->mounts};
    size_t next = 0;

    for (size_t i = 0; i < count; i++) {
        while (next < sizeof all / sizeof *all && *all[next] >= 0)
            next++;
        if (next < sizeof all / sizeof *all)
            *all[next] = given[i];
        else
            close(given[i]);
    }
}

static int receive(struct buf *request, struct layer_call_fds *fds, struct err *err)
{
    static char block[BLOCK];
    int given[PASS_MAX];
    size_t count = 0;
    ssize_t len;

    for (;;) {
        len = pass_receive(STDIN_FILENO, block, sizeof block, 0, given, &count);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0)
            return err_sys(err, "reading the request");
        fds_take(fds, given, count);
        if (len == 0)
            return 0;
        if (!buf_append(request, block, (size_t)len))
            return err_set(err, ERR_LIMIT, "the request is too large");
    }
}

static int answer(const json_t *json, int lock)
{
    AUTO_FREE char *text = json_dumps(json, JSON_COMPACT);
    size_t len = text ? strlen(text) : 0;
    size_t sent = 0;

    if (lock >= 0 && len) {
        if (pass_send(STDIN_FILENO, text, 1, &lock, 1) < 0)
            return -1;
        sent = 1;
    }
    while (sent < len) {
        ssize_t part = send(STDIN_FILENO, text + sent, len - sent, MSG_NOSIGNAL);

        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return -1;
        sent += (size_t)part;
    }
    return shutdown(STDIN_FILENO, SHUT_WR); /* who started it may hold the socket, too */
}

static json_t *perform(const struct buf *request, struct layer_call_fds *fds)
{
    AUTO(layer_call_done) struct layer_call call = {0};
    AUTO_JSON json_t *json = NULL;
    struct err err;

    json = json_parse_nul(request->data ? request->data : "", request->len, &err);
    if (!json || layer_call_parse(json, &call, &err))
        return layer_call_failure(&err, NULL);
    return layer_call_perform(&call, fds);
}

int main(void)
{
    AUTO(buf_done) struct buf request = {0};
    AUTO(fds_close) struct layer_call_fds fds = {-1, -1, -1};
    AUTO_JSON json_t *json = NULL;
    struct err err;

    signal(SIGPIPE, SIG_IGN);
    buf_init(&request, REQUEST_MAX);
    if (receive(&request, &fds, &err))
        json = layer_call_failure(&err, NULL);
    else
        json = perform(&request, &fds);
    return answer(json, fds.lock) ? 1 : 0;
}

/* See relay.h. A flow reads only when all that it has read is written, so each of its steps is one of two: to write what it
 * holds, or to read. It waits for exactly one readiness at a time; what each socket is watched for is what the two flows
 * wait for.
 *
 * Pipes are lent: a flow has one while something is in it. So connections that say nothing cost no pipe, and a few
 * pipes serve all of them, since what was read is mostly written at once. */
#include "proxy/relay.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/list.h"
#include "loop/loop.h"
#include "proxy/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BLOCK = 64 << 10, /* bytes read at once of what is looked at */
    ROUNDS = 8,       /* of one flow, before others have their turn */
    LITTLE = 16 << 10 /* bytes: less than what a sender that goes on would have sent */
};

/* --- pipes --- */

struct pipe {
    int read, write;
    struct list in_spare;
};

static struct list spare;
static unsigned spare_len;

static void pipe_close(struct pipe *pipe)
{
    close(pipe->read);
    close(pipe->write);
    free(pipe);
}

/* An empty pipe; NULL without descriptors. */
static struct pipe *pipe_take(void)
{
    struct pipe *pipe = list_first(&spare, struct pipe, in_spare);
    int fds[2];

    if (pipe) {
        list_remove(&pipe->in_spare);
        spare_len--;
        return pipe;
    }
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
        return NULL;
    fcntl(fds[1], F_SETPIPE_SZ, LIMIT_PIPE); /* smaller than this works, too */
    pipe = alloc_zero(1, sizeof *pipe);
    pipe->read = fds[0];
    pipe->write = fds[1];
    return pipe;
}

static void pipe_give(struct pipe *pipe)
{
    if (spare_len == LIMIT_PIPES_SPARE) {
        pipe_close(pipe);
        return;
    }
    list_add(&spare, &pipe->in_spare);
    spare_len++;
}

void relay_close_pipes(void)
{
    struct pipe *pipe, *following;

    list_for_each_safe(pipe, following, &spare, in_spare) {
        list_remove(&pipe->in_spare);
        pipe_close(pipe);
    }
    spare_len = 0;
}

/* --- one flow --- */

static int source_of(const struct relay *relay, enum relay_direction direction)
{
    return relay->ends[direction].fd;
}

static int sink_of(const struct relay *relay, enum relay_direction direction)
{
    return relay->ends[!direction].fd;
}

static void flow_end(struct relay_flow *flow)
{
    flow->has_ended = flow->is_over = true;
    flow->waits = LOOP_NOTHING;
    if (flow->pipe && flow->held)
        pipe_close(TAKE_PTR(flow->pipe));
    else if (flow->pipe)
        pipe_give(TAKE_PTR(flow->pipe));
    buf_done(&flow->in);
    buf_done(&flow->out);
}

static void relay_fail(struct relay *relay)
{
    relay->is_broken = true;
    flow_end(&relay->flows[RELAY_UP]);
    flow_end(&relay->flows[RELAY_DOWN]);
}

/* After a call on a socket that moved nothing. Who cannot be written to any more may have said why before, so that is
 * read to its end; who cannot be read from is gone. */
static void flow_hindered(struct relay *relay, struct relay_flow *flow, unsigned interest)
{
    if (errno == EAGAIN) {
        flow->waits = interest;
    } else if (interest == LOOP_READ && errno != EINTR) {
        relay_fail(relay);
    } else if (errno != EINTR) {
        relay->is_broken = true;
        flow_end(flow);
    }
}

static void flow_wrote(struct relay *relay, enum relay_direction direction, size_t len)
{
    relay->flows[direction].moved += len;
    relay->on_moved(relay->data, direction);
}

static void flow_finish(struct relay *relay, enum relay_direction direction)
{
    shutdown(sink_of(relay, direction), SHUT_WR);
    flow_end(&relay->flows[direction]);
    if (relay->flows[direction].ends_all)
        flow_end(&relay->flows[!direction]);
}

static void splice_out(struct relay *relay, enum relay_direction direction)
{
    struct relay_flow *flow = &relay->flows[direction];
    ssize_t len = splice(flow->pipe->read, NULL, sink_of(relay, direction), NULL, flow->held,
                         SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

    if (len <= 0) {
        flow_hindered(relay, flow, LOOP_WRITE);
        return;
    }
    flow->held -= (size_t)len;
    flow_wrote(relay, direction, (size_t)len);
    if (!flow->held && flow->is_little) /* nothing more has come yet, most likely */
        flow->waits = LOOP_READ;
}

/* splice(2) does not get past a byte that is marked as urgent, which comes in its place here (SO_OOBINLINE). */
static ssize_t step_over_mark(int fd, const struct pipe *pipe)
{
    char byte;
    ssize_t len = recv(fd, &byte, 1, MSG_DONTWAIT);

    return len > 0 ? write(pipe->write, &byte, 1) : len;
}

static void splice_in(struct relay *relay, enum relay_direction direction)
{
    struct relay_flow *flow = &relay->flows[direction];
    ssize_t len;

    if (!flow->pipe)
        flow->pipe = pipe_take();
    if (!flow->pipe) {
        relay_fail(relay);
        return;
    }
    len = splice(source_of(relay, direction), NULL, flow->pipe->write, NULL, LIMIT_PIPE,
                 SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (len < 0 && errno == EAGAIN)
        len = step_over_mark(source_of(relay, direction), flow->pipe);
    if (len > 0) {
        flow->held = (size_t)len;
        flow->is_little = len < LITTLE;
        return;
    }
    pipe_give(TAKE_PTR(flow->pipe));
    if (len == 0)
        flow->has_ended = true;
    else
        flow_hindered(relay, flow, LOOP_READ);
}

static void buffer_out(struct relay *relay, enum relay_direction direction)
{
    struct relay_flow *flow = &relay->flows[direction];
    ssize_t len = send(sink_of(relay, direction), flow->out.data, flow->out.len, MSG_NOSIGNAL);

    if (len <= 0) {
        flow_hindered(relay, flow, LOOP_WRITE);
        return;
    }
    buf_consume(&flow->out, (size_t)len);
    flow_wrote(relay, direction, (size_t)len);
}

static void run_filter(struct relay *relay, struct relay_flow *flow)
{
    switch (flow->filter(relay->data, &flow->in, &flow->out)) {
    case RELAY_GO_ON:
        break;
    case RELAY_PAUSE:
        flow->is_paused = true;
        break;
    case RELAY_OPAQUE:
        flow->filter = NULL;
        buf_append(&flow->out, flow->in.data, flow->in.len);
        buf_done(&flow->in);
        break;
    case RELAY_END:
        flow->filter = NULL;
        flow->has_ended = flow->ends_all = true;
        buf_done(&flow->in);
        break;
    case RELAY_STOP:
        relay_fail(relay);
        break;
    case RELAY_LEAVE:
        flow_end(&relay->flows[RELAY_UP]);
        flow_end(&relay->flows[RELAY_DOWN]);
        break;
    }
}

static void buffer_in(struct relay *relay, enum relay_direction direction)
{
    static char block[BLOCK]; /* idle connections have no memory of their own for this */
    struct relay_flow *flow = &relay->flows[direction];
    size_t room = flow->in.max - flow->in.len;
    ssize_t len = recv(source_of(relay, direction), block, room < BLOCK ? room : BLOCK, 0);

    if (len > 0) {
        buf_append(&flow->in, block, (size_t)len);
        run_filter(relay, flow);
    } else if (len == 0) {
        flow->has_ended = true;
        if (flow->in.len)
            run_filter(relay, flow);
        if (flow->filter &&
            flow->in.len) /* it would have wanted to see more before it lets that go */
            relay_fail(relay);
    } else {
        flow_hindered(relay, flow, LOOP_READ);
    }
}

static void flow_step(struct relay *relay, enum relay_direction direction)
{
    struct relay_flow *flow = &relay->flows[direction];

    if (flow->held) {
        splice_out(relay, direction);
    } else if (flow->out.len) {
        buffer_out(relay, direction);
    } else if (flow->has_ended) {
        flow_finish(relay, direction);
    } else if (flow->is_paused) {
        flow->waits = LOOP_NOTHING;
    } else if (flow->filter) {
        buffer_in(relay, direction);
    } else {
        splice_in(relay, direction);
    }
}

/* A flow that waits holds no more than it has to. */
static void flow_shrink(struct relay_flow *flow)
{
    if (!flow->held && flow->pipe)
        pipe_give(TAKE_PTR(flow->pipe));
    if (!flow->in.len)
        buf_done(&flow->in);
    if (!flow->out.len)
        buf_done(&flow->out);
}

static void flow_run(struct relay *relay, enum relay_direction direction)
{
    struct relay_flow *flow = &relay->flows[direction];
    unsigned limit = ROUNDS * 2;
    bool is_blocked = false;

    while (!flow->is_over && !is_blocked && limit--) {
        flow->waits = LOOP_NOTHING;
        flow_step(relay, direction);
        is_blocked = flow->waits || (flow->is_paused && !flow->held && !flow->out.len);
    }
    flow_shrink(flow);
    if (!is_blocked && !flow->is_over)
        flow->waits = flow->held || flow->out.len ? LOOP_WRITE : LOOP_READ;
}

/* --- both --- */

/* Sets what both sockets are watched for; true when everything is over. */
static bool relay_settle(struct relay *relay)
{
    if (relay->flows[RELAY_UP].is_over && relay->flows[RELAY_DOWN].is_over)
        return true;
    for (unsigned i = 0; i < 2; i++)
        loop_watch_set(relay->ends[i].watch,
                       (relay->flows[i].waits & LOOP_READ) | (relay->flows[!i].waits & LOOP_WRITE));
    return false;
}

static void on_ready(void *data, int fd, unsigned ready)
{
    struct relay *relay = data;
    unsigned end = fd != relay->ends[0].fd;

    if (ready & LOOP_READ && relay->flows[end].waits & LOOP_READ)
        flow_run(relay, end);
    if (ready & LOOP_WRITE && relay->flows[!end].waits & LOOP_WRITE)
        flow_run(relay, !end);
    if (relay_settle(relay))
        relay->on_end(relay->data);
}

void relay_init(struct relay *relay, struct loop *loop, int client, int server)
{
    const int on = 1;

    *relay = (struct relay){.loop = loop};
    relay->ends[RELAY_UP].fd = client;
    relay->ends[RELAY_DOWN].fd = server;
    for (unsigned i = 0; i < 2; i++)
        setsockopt(relay->ends[i].fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
}

void relay_set_filter(struct relay *relay, enum relay_direction direction, relay_filter_fn *filter,
                      size_t size)
{
    struct relay_flow *flow = &relay->flows[direction];

    flow->filter = filter;
    buf_init(&flow->in, size);
    buf_init(&flow->out, 2 * size);
}

int relay_start(struct relay *relay, struct err *err)
{
    for (unsigned i = 0; i < 2; i++) {
        relay->ends[i].watch =
            loop_watch_new(relay->loop, relay->ends[i].fd, LOOP_NOTHING, on_ready, relay, err);
        if (!relay->ends[i].watch)
            return -1;
    }
    for (unsigned i = 0; i < 2; i++) {
        if (relay->flows[i].in.len)
            run_filter(relay, &relay->flows[i]);
        flow_run(relay, i);
    }
    if (relay_settle(relay))
        relay->on_end(relay->data);
    return 0;
}

void relay_resume(struct relay *relay, enum relay_direction direction)
{
    struct relay_flow *flow = &relay->flows[direction];

    if (!flow->is_paused)
        return;
    flow->is_paused = false;
    if (flow->in.len && flow->filter)
        run_filter(relay, flow);
    if (!flow->is_over)
        flow->waits = flow->out.len ? LOOP_WRITE : LOOP_READ;
}

void relay_reset(int fd)
{
    const struct linger now = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

void relay_done(struct relay *relay)
{
    for (unsigned i = 0; i < 2; i++) {
        loop_watch_free(TAKE_PTR(relay->ends[i].watch));
        flow_end(&relay->flows[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (relay->ends[i].fd >= 0 && relay->is_broken)
            relay_reset(relay->ends[i].fd);
        else if (relay->ends[i].fd >= 0)
            close(relay->ends[i].fd);
        relay->ends[i].fd = -1;
    }
}

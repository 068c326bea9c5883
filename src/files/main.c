/* `cordon-files`: carries out file calls for the server, with the rights of the sandbox that it was
 * started in, on the socket that is its standard input. One call at a time, and nothing is
 * remembered from one to the next. It ends when the server closes the socket. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "files/call.h"
#include "files/frame.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int send_more(void *data, const char *text, size_t len, struct err *err)
{
    const struct frame_head head = {.kind = FRAME_MORE, .len = (uint32_t)len};

    return frame_send(*(const int *)data, &head, text, -1, err);
}

/* What came for the call that is about to be made. */
struct inbox {
    struct buf data; /* of a DATA frame; `has_data` */
    struct buf call;
    bool has_data;
};

static void inbox_done(struct inbox *inbox)
{
    buf_done(&inbox->data);
    buf_done(&inbox->call);
}

static int call(const struct inbox *inbox, struct reply *reply, struct err *err)
{
    AUTO_JSON json_t *root = json_parse(inbox->call.data, inbox->call.len, err);
    struct json_at at = json_at_root(root);
    struct json_at method = json_at_field(&at, "method");
    struct files_request request = {.params = json_at_field(&at, "params")};

    if (!root || json_at_string(&method, &request.method, err))
        return -1;
    if (inbox->has_data) {
        request.data = inbox->data.data ? inbox->data.data : "";
        request.data_len = inbox->data.len;
    }
    return files_call(&request, reply, err);
}

static int answer(int socket, const struct inbox *inbox, struct err *err)
{
    struct frame_head head = {.kind = FRAME_FAILURE, .len = sizeof(struct err)};
    AUTO(reply_done) struct reply reply;
    struct err failure = {0};

    reply_init(&reply, send_more, &socket);
    if (call(inbox, &reply, &failure))
        return frame_send(socket, &head, &failure, -1, err);
    head = (struct frame_head){.kind = FRAME_RESULT, .len = (uint32_t)reply.text.len};
    return frame_send(socket, &head, reply.text.data, reply.fd, err);
}

/* 1: a call is whole, 0: the end. */
static int receive_call(int socket, struct inbox *inbox, struct err *err)
{
    enum frame_kind kind = FRAME_CALL;
    int status = frame_receive(socket, &kind, &inbox->call, err);

    if (status > 0 && kind == FRAME_DATA) {
        struct buf data = inbox->call;

        inbox->call = inbox->data;
        inbox->data = data;
        inbox->has_data = true;
        status = frame_receive(socket, &kind, &inbox->call, err);
    }
    if (status > 0 && kind != FRAME_CALL)
        return err_set(err, ERR_INVALID, "a frame of kind %d is no call", kind);
    return status;
}

/* Answers the calls that come on `socket` until its end. Failures of calls are answers, not errors. */
static int files_serve(int socket, struct err *err)
{
    for (;;) {
        AUTO(inbox_done) struct inbox inbox = {0}; /* a large file is no reason to stay large */
        int status;

        buf_init(&inbox.data, FRAME_MAX);
        buf_init(&inbox.call, FRAME_MAX);
        status = receive_call(socket, &inbox, err);
        if (status <= 0)
            return status;
        if (answer(socket, &inbox, err))
            return -1;
    }
}

int main(void)
{
    struct err err;

    signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is the error EFBIG of one call */
    if (files_serve(STDIN_FILENO, &err) == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "cordon-files: %s\n", err.msg);
    return EXIT_FAILURE;
}

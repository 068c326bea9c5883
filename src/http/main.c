/* `cordon-http`: one HTTP request for the server, so that what parses answers of strangers (and the
 * libraries for it) is not in the process that holds everybody's sessions. The request comes as
 * JSON on stdin, the answer goes as JSON lines to stdout; a failure is the last line, {"error":
 * "..."}. */
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "http/fetch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { REQUEST_MAX = 96 << 20 };

static int run(struct err *err)
{
    AUTO(buf_done) struct buf text;
    AUTO_JSON json_t *params = NULL;

    buf_init(&text, REQUEST_MAX);
    if (buf_read_fd(&text, STDIN_FILENO, err))
        return -1;
    params = json_parse(text.data ? text.data : "", text.len, err);
    return params ? fetch(params, stdout, err) : -1;
}

int main(void)
{
    AUTO_JSON json_t *line = NULL;
    struct err err;

    signal(SIGPIPE, SIG_IGN);
    if (run(&err) == 0)
        return EXIT_SUCCESS;
    line = json_object();
    json_object_set_new(line, "error", json_lossy(err.msg));
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    return EXIT_FAILURE;
}

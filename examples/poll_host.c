/* A host with a poll loop of its own: passes lines from stdin to a shell that lives on between
 * them, as a model would with exec_command and write_stdin, and prints each answer.
 *
 *     cc poll_host.c $(pkg-config --cflags --libs cordon) -o poll_host
 *     printf 'X=6\necho $((X * 7))\n' | ./poll_host */
#include <cordon.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct host {
    struct cordon_engine *engine;
    int session_id; /* of the shell; 0: not started, or ended */
    int is_waiting; /* for an answer: no line is read meanwhile */
    int is_over;
};

static void on_answer(void *data, const struct cordon_answer *answer)
{
    struct host *host = data;

    printf("%s\n", answer->text);
    fflush(stdout);
    host->session_id = answer->session_id;
    host->is_waiting = 0;
    host->is_over |= answer->end != NULL;
}

static int start_shell(struct host *host, struct cordon_error *error)
{
    struct cordon_pace pace = {sizeof pace};
    struct cordon_exec exec = {sizeof exec};

    pace.until = CORDON_UNTIL_TEXT;
    pace.text = "ready";
    exec.cmd = "echo ready; exec sh";
    exec.no_login = 1;
    exec.flags = CORDON_STDIN_PIPE;
    exec.pace = &pace;
    host->is_waiting = 1;
    return cordon_exec_command(host->engine, &exec, on_answer, host, NULL, error);
}

/* One read is taken as one line, which is enough for an example; at the end of file the shell's
 * input is closed, and it ends. */
static int pass_line(struct host *host, struct cordon_error *error)
{
    struct cordon_pace pace = {sizeof pace};
    struct cordon_write write = {sizeof write};
    char line[4096];
    ssize_t len = read(STDIN_FILENO, line, sizeof line);

    pace.until = CORDON_UNTIL_QUIET;
    pace.number = 200;
    write.session_id = host->session_id;
    write.chars = line;
    write.len = len > 0 ? (size_t)len : 0;
    write.close = len <= 0;
    write.pace = &pace;
    host->is_waiting = 1;
    return cordon_write_stdin(host->engine, &write, on_answer, host, NULL, error);
}

static int turn(struct host *host, struct cordon_error *error)
{
    struct pollfd fds[2];

    fds[0].fd = cordon_fd(host->engine, error);
    fds[0].events = POLLIN;
    fds[1].fd = host->is_waiting ? -1 : STDIN_FILENO;
    fds[1].events = POLLIN;
    if (fds[0].fd < 0 || poll(fds, 2, -1) < 0)
        return -1;
    if (fds[0].revents && cordon_dispatch(host->engine, error))
        return -1;
    return fds[1].revents && !host->is_waiting ? pass_line(host, error) : 0;
}

int main(void)
{
    struct cordon_engine_options options = {sizeof options};
    struct cordon_error error = {0};
    struct host host = {0};
    int status;

    status = cordon_open(&options, &host.engine, &error);
    if (!status)
        status = start_shell(&host, &error);
    while (!status && !host.is_over)
        status = turn(&host, &error);
    if (status)
        fprintf(stderr, "poll_host: %s\n", error.message);
    cordon_close(host.engine);
    return status ? 1 : 0;
}

/* Runs one command for each line that comes, and is a host with a loop of its own in between. Says
 * "ran" behind each. */
#include <cordon.h>

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

static int run_one(struct cordon_engine *engine)
{
    const char *const argv[] = {"true", NULL};
    const struct cordon_run_options options = {.size = sizeof options, .argv = argv};
    struct cordon_result *result = NULL;
    char line[64];

    if (read(STDIN_FILENO, line, sizeof line) <= 0)
        return -1;
    if (cordon_run(engine, &options, &result, NULL))
        return -1;
    cordon_result_free(result);
    printf("ran\n");
    return fflush(stdout);
}

int main(void)
{
    struct cordon_engine *engine = NULL;
    struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};

    if (cordon_open(NULL, &engine, NULL))
        return 1;
    fds[1].fd = cordon_fd(engine, NULL);
    while (poll(fds, 2, -1) > 0) {
        if (fds[1].revents && cordon_dispatch(engine, NULL))
            return 1;
        if (fds[0].revents && run_one(engine))
            break;
    }
    cordon_close(engine);
    return 0;
}

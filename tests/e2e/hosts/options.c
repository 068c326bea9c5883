/* Runs each line by `sh` under a policy that protects `own` and nothing else, connects to the socket of argv[1],
 * and judges each program, with the preset argv[3]; prints what became of it. */
#include <cordon.h>

#include <stdio.h>
#include <string.h>

static void on_done(void *data, const struct cordon_execution_result *result)
{
    const struct cordon_attempt *last =
        result->attempts[1] ? result->attempts[1] : result->attempts[0];

    printf("%d %d\n", result->outcome, last ? last->result->end->exit_code : -1);
    fflush(stdout);
    *(int *)data = 1;
}

static int run_one(struct cordon_engine *engine, const char *line)
{
    const char *const argv[] = {"sh", "-c", line, NULL};
    const struct cordon_execute_options options = {.size = sizeof options,
                                                   .argv = argv,
                                                   .timeout_ms = 2000,
                                                   .kill_after_ms = 1,
                                                   .yes_means_unsandboxed = 1};
    struct cordon_error error;
    int is_done = 0;

    if (cordon_execute(engine, &options, on_done, &is_done, NULL, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return -1;
    }
    while (!is_done)
        if (cordon_wait(engine, -1, &error))
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    const char *const protect[] = {argc > 2 ? argv[2] : "./own", NULL};
    const char *const sockets[] = {argv[1], NULL};
    const char *const with[] = {argc > 3 ? argv[3] : NULL, NULL};
    const struct cordon_policy policy = {.size = sizeof policy,
                                         .protect = protect,
                                         .sockets = sockets,
                                         .with = with,
                                         .judge = CORDON_JUDGE_EVERY_EXEC};
    const struct cordon_engine_options options = {.size = sizeof options, .policy = &policy};
    struct cordon_engine *engine = NULL;
    struct cordon_error error;
    char line[256];

    if (cordon_open(&options, &engine, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (run_one(engine, line))
            break;
    }
    cordon_close(engine);
    return 0;
}

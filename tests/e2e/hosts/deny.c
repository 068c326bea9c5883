/* For each line, runs `cat` on the files *.env below the workspace, which no command may read, and
 * prints what came. */
#include <cordon.h>

#include <stdio.h>

static int run_one(struct cordon_engine *engine)
{
    const char *const argv[] = {"sh", "-c", "cat a/*.env", NULL};
    const struct cordon_run_options options = {.size = sizeof options, .argv = argv};
    struct cordon_result *result = NULL;

    if (cordon_run(engine, &options, &result, NULL))
        return -1;
    printf("exit code %d: %s;\n", result->end->exit_code, result->output[0]);
    cordon_result_free(result);
    return fflush(stdout);
}

int main(void)
{
    static const char *const deny[] = {"**/*.env", NULL};
    const struct cordon_policy policy = {.size = sizeof policy, .deny = deny};
    const struct cordon_engine_options options = {.size = sizeof options, .policy = &policy};
    struct cordon_engine *engine = NULL;
    struct cordon_error error;
    char line[64];

    if (cordon_open(&options, &engine, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    while (fgets(line, sizeof line, stdin))
        if (run_one(engine))
            break;
    cordon_close(engine);
    return 0;
}

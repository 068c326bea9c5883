/* Runs one command in a sandbox and shows what came of it:
 *
 *     cc oneshot.c $(pkg-config --cflags --libs cordon) -o oneshot
 *     ./oneshot make test */
#include <cordon.h>

#include <stdio.h>

static int complain(const struct cordon_error *error)
{
    fprintf(stderr, "oneshot: %s\n", error->message);
    return 125;
}

int main(int argc, char **argv)
{
    struct cordon_run_options run = {sizeof run};
    struct cordon_engine *engine;
    struct cordon_result *result;
    struct cordon_error error;
    int status;

    if (argc < 2 || cordon_open(NULL, &engine, &error))
        return argc < 2 ? 2 : complain(&error);
    run.argv = (const char *const *)argv + 1;
    run.timeout_ms = 60000;
    if (cordon_run(engine, &run, &result, &error)) {
        cordon_close(engine);
        return complain(&error);
    }
    fwrite(result->output[0], 1, result->output_len[0], stdout);
    fwrite(result->output[1], 1, result->output_len[1], stderr);
    if (result->outcome == CORDON_RUN_DENIED)
        fprintf(stderr, "oneshot: %s\n", result->denial);
    if (result->end->how == CORDON_FAILED_TO_START)
        fprintf(stderr, "oneshot: %s\n", result->end->failure.message);
    status = result->outcome == CORDON_RUN_TIMED_OUT ? 124 : result->end->exit_code;
    cordon_result_free(result);
    cordon_close(engine);
    return status;
}

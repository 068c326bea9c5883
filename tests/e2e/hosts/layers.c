/* What a host does with a change layer, a line of JSON for each call:
 *
 *     layers NAME */
#include <cordon.h>

#include <stdio.h>
#include <stdlib.h>

static struct cordon_engine *engine;
static struct cordon_layer *layer;
static struct cordon_policy policy = {.size = sizeof policy};
static struct cordon_error error;

static void check(int is_right)
{
    if (is_right)
        return;
    fprintf(stderr, "%d: %s\n", error.code, error.message);
    exit(1);
}

static void tell(const char *text)
{
    check(text != NULL);
    puts(text);
}

static void run(const char *cmd)
{
    const char *const argv[] = {"sh", "-c", cmd, NULL};
    const struct cordon_run_options options = {
        .size = sizeof options, .argv = argv, .policy = &policy};
    struct cordon_result *result;

    check(cordon_run(engine, &options, &result, &error) == 0);
    printf("{\"exit\": %d, \"output\": \"%.3s\"}\n", result->end->exit_code, result->output[0]);
    cordon_result_free(result);
}

static void apply(int action, int number, const char *expected)
{
    const struct cordon_layer_request request = {
        .size = sizeof request, .action = action, .number = number, .expected = expected};

    tell(cordon_layer_apply(layer, &request, &error));
}

/* It is not closed while something of it is there. */
static void run_session(void)
{
    const char *const argv[] = {"sh", "-c", "read line; echo $line >session", NULL};
    const struct cordon_session_options options = {
        .size = sizeof options, .argv = argv, .policy = &policy, .flags = CORDON_STDIN_PIPE};
    struct cordon_session *session;

    check(cordon_session_start(engine, &options, &session, &error) == 0);
    check(cordon_layer_close(layer, &error) && error.code == CORDON_ERROR_BUSY);
    check(cordon_session_write(session, "x\n", 2, &error) == 0);
    check(cordon_session_wait(session, -1, &error) == 1);
    check(cordon_layer_close(layer, &error) && error.code == CORDON_ERROR_BUSY);
    cordon_session_free(session);
}

int main(int argc, char **argv)
{
    const struct cordon_layer_options options = {.size = sizeof options, .name = argv[1]};
    const struct cordon_layer_query step = {.size = sizeof step, .step = 2};
    const struct cordon_layer_query wrong = {.size = sizeof wrong,
                                             .paths = (const char *const[]){"relative", NULL}};

    check(argc == 2 && cordon_open(NULL, &engine, &error) == 0);
    check(cordon_layer_open(engine, &options, &layer, &error) == 0);
    policy.layer = layer;
    run("echo new >new; echo more >>old");
    run_session();
    run("cat new");
    tell(cordon_layer_changes(layer, NULL, &error));
    tell(cordon_layer_changes(layer, &step, &error));
    check(!cordon_layer_changes(layer, &wrong, &error) && error.code == CORDON_ERROR_INVALID);
    tell(cordon_layer_diff(layer, NULL, &error));
    apply(CORDON_LAYER_ACCEPT, 0, "{\"/somewhere\": \"\"}");
    run("true");
    apply(CORDON_LAYER_UNDO, 0, NULL);
    apply(CORDON_LAYER_UNDO_STEP, 2, NULL);
    apply(CORDON_LAYER_DROP, 0, NULL);
    tell(cordon_layers(engine, &error));
    check(cordon_layer_close(layer, &error) == 0);
    policy.layer = NULL;
    run("cat old");
    check(cordon_layer_open(engine, &options, &layer, &error) == 0);
    policy.layer = layer;
    run("echo new >new");
    cordon_close(engine); /* and what is left */
    return 0;
}

/* All commands of an owner are asked to end, with time to do so, and then those of everybody, with
 * none:
 *
 *     grace */
#include <cordon.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cordon_engine *engine;

struct command {
    const char *name;
    int has_answered;
    int is_ready; /* its trap is set */
    int has_ended;
};

static void check(int status, const struct cordon_error *error)
{
    if (!status)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

static void on_answer(void *data, const struct cordon_answer *answer)
{
    struct command *command = data;

    command->has_answered = 1;
    command->is_ready = command->is_ready || strstr(answer->text, "ready");
    command->has_ended = answer->end != NULL;
    if (answer->end)
        printf("%s: %d %d\n", command->name, answer->end->exit_code, answer->end->signal);
}

static void wait_for_answer(struct command *command)
{
    struct cordon_error error;

    while (!command->has_answered)
        check(cordon_wait(engine, -1, &error), &error);
    command->has_answered = 0;
}

static void hear(struct command *command, int id, unsigned yield_ms)
{
    const struct cordon_pace pace = {.size = sizeof pace, .yield_time_ms = yield_ms};
    struct cordon_error error;

    check(cordon_wait_for(engine, id, &pace, on_answer, command, NULL, &error), &error);
    wait_for_answer(command);
}

/* Returns when the command says that it is ready for its end. */
static void start(struct command *command, uint64_t owner, int *ret_id)
{
    const struct cordon_pace pace = {.size = sizeof pace, .yield_time_ms = 250};
    const struct cordon_exec exec = {
        .size = sizeof exec,
        .cmd = "trap 'sleep 0.3; exit 7' TERM; echo ready; while :; do sleep 0.1; done",
        .shell = "/bin/sh",
        .no_login = 1,
        .owner = owner,
        .pace = &pace};
    struct cordon_error error;
    int ids[2];

    check(cordon_exec_command(engine, &exec, on_answer, command, NULL, &error), &error);
    wait_for_answer(command);
    if (command->has_ended || cordon_list(engine, owner, ids, 2) != 1) {
        fprintf(stderr, "%s does not run\n", command->name);
        exit(1);
    }
    *ret_id = ids[0];
    while (!command->is_ready)
        hear(command, *ret_id, 250);
}

int main(void)
{
    const struct cordon_engine_options options = {.size = sizeof options,
                                                  .flags = CORDON_IDS_IN_ORDER};
    struct command first = {.name = "first"};
    struct command second = {.name = "second"};
    struct cordon_error error;
    int ids[2];

    check(cordon_open(&options, &engine, &error), &error);
    start(&first, 1, &ids[0]);
    start(&second, 2, &ids[1]);
    printf("%zu asked\n", cordon_terminate_all(engine, 1, 20000));
    while (!first.has_ended)
        hear(&first, ids[0], 20000);
    printf("%zu left\n", cordon_list(engine, 0, NULL, 0));
    printf("%zu asked\n", cordon_terminate_all(engine, 0, 0));
    while (!second.has_ended)
        hear(&second, ids[1], 20000);
    cordon_close(engine);
    return 0;
}

/* What commands do, as a host reads it: each event on a line, of cordon_run(), of a session while it runs,
 * and again from the first one by a second reader; then of a model's calls. The word that a command waits for is sent
 * when its first event was read. */
#include <cordon.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    uint64_t after;
    int answered;
};

static void on_change(void *data, struct cordon_session *session)
{
    struct reader *reader = data;
    const char *event;

    while ((event = cordon_session_event(session, &reader->after)))
        printf("%s\n", event);
    if (reader->after && !reader->answered++)
        cordon_session_write(session, "second\n", 7, NULL);
}

static int talk(struct cordon_engine *engine, struct cordon_error *error)
{
    const char *const argv[] = {"sh", "-c", "mkdir first; read word; mkdir $word", NULL};
    struct reader reader = {0};
    struct reader second = {.answered = 1};
    const struct cordon_session_options options = {.size = sizeof options,
                                                   .argv = argv,
                                                   .flags = CORDON_STDIN_PIPE,
                                                   .on_change = on_change,
                                                   .data = &reader};
    struct cordon_session *session;

    if (cordon_session_start(engine, &options, &session, error) ||
        cordon_session_wait(session, -1, error) < 0)
        return -1;
    on_change(&reader, session); /* what came with the end */
    printf("again\n");
    on_change(&second, session);
    cordon_session_free(session);
    return 0;
}

static int run(struct cordon_engine *engine, struct cordon_error *error)
{
    const char *const argv[] = {"mkdir", "run", NULL};
    const struct cordon_run_options options = {.size = sizeof options, .argv = argv};
    struct cordon_result *result;

    if (cordon_run(engine, &options, &result, error))
        return -1;
    printf("%s\n", result->events ? result->events : "nobody saw");
    cordon_result_free(result);
    return 0;
}

static void on_answer(void *data, const struct cordon_answer *answer)
{
    *(struct cordon_answer *)data = *answer;
    if (answer->end)
        printf("%s\n", answer->events ? answer->events : "nobody saw");
}

static int call(struct cordon_engine *engine, struct cordon_error *error)
{
    const struct cordon_pace short_pace = {
        .size = sizeof short_pace, .until = CORDON_UNTIL_TEXT, .text = "made"};
    const struct cordon_exec exec = {.size = sizeof exec,
                                     .cmd = "mkdir third; echo made; read word; mkdir $word",
                                     .shell = "/bin/sh",
                                     .no_login = 1,
                                     .flags = CORDON_STDIN_PIPE,
                                     .pace = &short_pace};
    struct cordon_write write = {.size = sizeof write, .chars = "fourth\n", .len = 7};
    struct cordon_answer answer = {.session_id = -1};
    const char *event;
    uint64_t after = 0;

    if (cordon_exec_command(engine, &exec, on_answer, &answer, NULL, error))
        return -1;
    while (answer.session_id < 0)
        if (cordon_wait(engine, -1, error))
            return -1;
    write.session_id = answer.session_id;
    while (!(event = cordon_event_of(engine, write.session_id, &after)))
        if (cordon_wait(engine, -1, error))
            return -1;
    printf("%s\n", event);
    answer.session_id = -1;
    if (cordon_write_stdin(engine, &write, on_answer, &answer, NULL, error))
        return -1;
    while (answer.session_id < 0)
        if (cordon_wait(engine, -1, error))
            return -1;
    after = 0;
    return cordon_event_of(engine, write.session_id, &after) ? -1 : 0;
}

int main(int argc, char **argv)
{
    const struct cordon_policy policy = {.size = sizeof policy,
                                         .trace = argc > 1 ? (unsigned)atoi(argv[1]) : 0};
    const struct cordon_engine_options options = {.size = sizeof options, .policy = &policy};
    struct cordon_engine *engine = NULL;
    struct cordon_error error;

    if (cordon_open(&options, &engine, &error) || run(engine, &error) || talk(engine, &error) ||
        call(engine, &error))
        fprintf(stderr, "%s\n", error.message);
    if (engine)
        cordon_close(engine);
    return 0;
}

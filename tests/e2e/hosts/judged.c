/* A script by every way in which a host can have it run, under a profile that judges every program,
 * where nobody can be asked:
 *
 *     judged CONFIG RULES */
#include <cordon.h>

#include <stdio.h>
#include <stdlib.h>

static struct cordon_engine *engine;
static const char *const argv_of_script[] = {"sh", "script", NULL};

static void check(int status, const struct cordon_error *error)
{
    if (!status)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

static void run(void)
{
    const struct cordon_run_options options = {.size = sizeof options, .argv = argv_of_script};
    struct cordon_result *result;
    struct cordon_error error;

    puts(cordon_run(engine, &options, &result, &error) ? "run: refused" : "run: not refused");
}

static void talk(void)
{
    const struct cordon_session_options options = {.size = sizeof options, .argv = argv_of_script};
    struct cordon_session *session;
    struct cordon_record record;
    struct cordon_error error;
    char text[4096];

    puts("session:");
    check(cordon_session_start(engine, &options, &session, &error), &error);
    check(cordon_session_wait(session, -1, &error) != 1, &error);
    do {
        cordon_session_read(session, text, sizeof text, &record);
        if (record.kind == CORDON_BYTES && record.stream == 1)
            fwrite(text, 1, record.len, stdout);
    } while (record.kind != CORDON_EOF && record.kind != CORDON_EMPTY);
    cordon_session_free(session);
}

static void on_answer(void *data, const struct cordon_answer *answer)
{
    *(int *)data = 1;
    fwrite(answer->text, 1, answer->text_len, stdout);
}

static void call(void)
{
    const struct cordon_pace pace = {.size = sizeof pace, .yield_time_ms = 30000};
    const struct cordon_exec exec = {.size = sizeof exec,
                                     .cmd = "sh script 2>/dev/null",
                                     .shell = "/bin/sh",
                                     .no_login = 1,
                                     .pace = &pace};
    struct cordon_error error;
    int answered = 0;

    puts("call:");
    check(cordon_exec_command(engine, &exec, on_answer, &answered, NULL, &error), &error);
    while (!answered)
        check(cordon_wait(engine, -1, &error), &error);
}

static void on_done(void *data, const struct cordon_execution_result *result)
{
    *(int *)data = 1;
    fputs(result->attempts[0] ? result->attempts[0]->result->output[0] : "nothing\n", stdout);
}

static void execute(void)
{
    struct cordon_execute_options options = {.size = sizeof options, .argv = argv_of_script};
    struct cordon_error error;
    int is_done = 0;

    puts("execute:");
    check(cordon_execute(engine, &options, on_done, &is_done, NULL, &error), &error);
    while (!is_done)
        check(cordon_wait(engine, -1, &error), &error);
}

int main(int argc, char **argv)
{
    struct cordon_engine_options options = {.size = sizeof options};
    struct cordon_error error;

    if (argc != 3)
        return 2;
    options.config = argv[1];
    options.rules = argv[2];
    check(cordon_open(&options, &engine, &error), &error);
    run();
    talk();
    call();
    execute();
    cordon_close(engine);
    return 0;
}

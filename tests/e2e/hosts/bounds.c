/* Limits, denials and the thread id by every way in which a command can be started:
 *
 *     bounds FILE      a file that may not be written */
#include <cordon.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static struct cordon_engine *engine;
static const struct cordon_limits limits = {
    .size = sizeof limits, .memory = 1 << 30, .cpu_time_ms = 5000, .file_size = 1000};

static const char large[] = "exec head -c 5000 /dev/zero > large";

static void check(int status, const struct cordon_error *error)
{
    if (!status)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

static void print(const char *how, const struct cordon_end *end, const char *denial)
{
    printf("%s: %d, limits %u, %s\n", how, end->exit_code, end->limits_hit,
           denial ? denial : "nothing refused");
}

static void run(const char *script)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    const struct cordon_run_options options = {
        .size = sizeof options, .argv = argv, .limits = &limits};
    struct cordon_result *result;
    struct cordon_error error;

    check(cordon_run(engine, &options, &result, &error), &error);
    print("run", result->end, result->denial);
    cordon_result_free(result);
}

static void talk(const char *script, unsigned flags)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    const struct cordon_session_options options = {
        .size = sizeof options, .argv = argv, .flags = flags, .limits = &limits};
    struct cordon_session *session;
    struct cordon_error error;

    check(cordon_session_start(engine, &options, &session, &error), &error);
    if (cordon_session_denial(session))
        puts("it has not even begun");
    check(cordon_session_wait(session, -1, &error) != 1, &error);
    print(flags ? "terminal" : "session", cordon_session_end(session),
          cordon_session_denial(session));
    cordon_session_free(session);
}

static void on_answer(void *data, const struct cordon_answer *answer)
{
    *(int *)data = 1;
    print("call", answer->end, answer->denial);
}

static void on_text(void *data, const struct cordon_answer *answer)
{
    *(int *)data = 1;
    fwrite(answer->text, 1, answer->text_len, stdout);
}

static void call(const char *script, cordon_answer_fn *on_done)
{
    const struct cordon_pace pace = {.size = sizeof pace, .yield_time_ms = 30000};
    const struct cordon_exec exec = {.size = sizeof exec,
                                     .cmd = script,
                                     .shell = "/bin/sh",
                                     .no_login = 1,
                                     .pace = &pace,
                                     .limits = &limits};
    struct cordon_error error;
    int answered = 0;

    check(cordon_exec_command(engine, &exec, on_done, &answered, NULL, &error), &error);
    while (!answered)
        check(cordon_wait(engine, -1, &error), &error);
}

static void all(const char *script)
{
    run(script);
    talk(script, 0);
    talk(script, CORDON_TTY);
    call(script, on_answer);
}

int main(int argc, char **argv)
{
    const struct cordon_engine_options options = {
        .size = sizeof options, .flags = CORDON_IDS_IN_ORDER, .thread_id = "thread-7"};
    const struct cordon_limits wrong = {.size = 1};
    const struct cordon_run_options refused = {
        .size = sizeof refused, .argv = (const char *const[]){"true", NULL}, .limits = &wrong};
    struct cordon_result *result;
    struct cordon_error error;
    char touch[4096];

    if (argc != 2)
        return 2;
    snprintf(touch, sizeof touch, "LC_ALL=C exec touch %s", argv[1]);
    check(cordon_open(&options, &engine, &error), &error);
    all(large);
    all(touch);
    all("exit 0");
    call("echo $CODEX_THREAD_ID $CORDON_THREAD_ID", on_text);
    if (cordon_run(engine, &refused, &result, &error))
        printf("%d: %s\n", error.code, error.message);
    cordon_close(engine);
    return 0;
}

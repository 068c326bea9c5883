/* A host of cordon_execute() that does in its callbacks what is allowed there. argv[1]: the folder
 * with the rules; argv[2]: permissions that the policy does not have. One line on stdout for each
 * case. */
#include <cordon.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum reaction { ANSWERS, CANCELS, IS_SILENT };

static struct cordon_engine *engine;
static struct cordon_execution *execution;
static enum reaction reaction;
static char last[32];
static int is_done;
static int is_inside; /* a function of the library that does not call back */

static void must(int status, const struct cordon_error *error)
{
    if (!status)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

static void check_outside(void)
{
    if (!is_inside)
        return;
    fprintf(stderr, "called back out of a function that does not\n");
    exit(1);
}

static void on_question(void *data, const struct cordon_question *question)
{
    struct cordon_error error;

    check_outside();
    printf("asked %s, ", question->id);
    snprintf(last, sizeof last, "%s", question->id);
    is_inside = 1;
    if (reaction == ANSWERS)
        must(cordon_answer_question(engine, question->id, CORDON_APPROVED, "fine", &error), &error);
    if (reaction == CANCELS)
        cordon_execution_cancel(execution);
    is_inside = 0;
}

static void on_question_over(void *data, const char *id)
{
    check_outside();
    printf("over %s, ", id);
}

static void on_done(void *data, const struct cordon_execution_result *result)
{
    static const char *const names[] = {"ran", "forbidden", "rejected", "failed"};

    check_outside();
    is_done = 1;
    printf("done: %s", names[result->outcome]);
    if (result->attempts[0])
        printf(" in %d, output %s", result->attempts[0]->place,
               result->attempts[0]->result->output[0]);
    else if (result->outcome == CORDON_EXECUTION_REJECTED)
        printf(", %s\n", result->reason);
    else
        printf("\n");
}

static void start(const char *name, struct cordon_execute_options *options)
{
    const char *argv[] = {"echo", "hello", NULL};
    struct cordon_error error;

    printf("%s: ", name);
    options->size = sizeof *options;
    options->argv = argv;
    is_done = 0;
    is_inside = 1;
    must(cordon_execute(engine, options, on_done, NULL, &execution, &error), &error);
    is_inside = 0;
}

static void run(const char *name, struct cordon_execute_options *options)
{
    struct cordon_error error;

    start(name, options);
    while (!is_done)
        must(cordon_wait(engine, -1, &error), &error);
}

static void answer_wrongly(int decision)
{
    struct cordon_error error;

    if (cordon_answer_question(engine, last, decision, NULL, &error) == 0)
        printf("wrong: it was taken\n");
    else
        printf("wrong: %s\n", error.message);
}

static void open_engine(const char *rules, uint64_t timeout_ms)
{
    struct cordon_engine_options options = {sizeof options};
    struct cordon_error error;

    options.rules = rules;
    options.on_question = on_question;
    options.on_question_over = on_question_over;
    options.question_timeout_ms = timeout_ms;
    must(cordon_open(&options, &engine, &error), &error);
}

int main(int argc, char **argv)
{
    struct cordon_execute_options options = {0};
    struct cordon_execute_options granular = {.approval = CORDON_APPROVAL_GRANULAR,
                                              .asks = CORDON_ASKS_SANDBOX};
    struct cordon_execute_options widened = {0};
    struct cordon_error error;

    open_engine(argv[1], 100);
    run("answer", &options);
    reaction = CANCELS;
    run("cancel", &options);
    reaction = IS_SILENT;
    run("time", &options);
    run("off", &granular);
    answer_wrongly(CORDON_APPROVED);
    reaction = ANSWERS;
    widened.additional = argv[2];
    run("widened", &widened);
    cordon_close(engine);

    open_engine(argv[1], 0);
    reaction = IS_SILENT;
    start("close", &options);
    while (strcmp(last, "q1") != 0)
        must(cordon_wait(engine, -1, &error), &error);
    printf("\n");
    answer_wrongly(CORDON_WITHOUT_SANDBOX);
    cordon_close(engine); /* with a question that is open: nobody is called any more */
    return 0;
}

/* A host that asks before commands run: each line of stdin is a command for the shell, or an answer
 * to the question that is open. Commands run one after the other; questions and results are lines,
 * too.
 *
 *     cc approve.c $(pkg-config --cflags --libs cordon) -o approve
 *     ./approve [FOLDER-WITH-RULES [CONFIG]]
 *
 * While a question is open nothing waits in the library: the loop below goes on turning, and the
 * answer may come in a second or in an hour. */
#include <cordon.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct host {
    struct cordon_engine *engine;
    char question[32]; /* id of the one that is open; "": none */
    unsigned offers;
    int is_running;
    int is_over;
    char line[4096]; /* what came of stdin and is not used up */
    size_t len;
};

static const char *const decisions[] = {"yes", "session", "rule", "bare", "no"};

/* --- what the library tells --- */

static void on_question(void *data, const struct cordon_question *question)
{
    struct host *host = data;

    snprintf(host->question, sizeof host->question, "%s", question->id);
    host->offers = question->offers;
    printf("asked: %s: %s\n", question->argv[question->argv[1] ? 2 : 0], question->reason);
    printf("covers: %s\n", question->covers);
    fflush(stdout);
}

static void on_question_over(void *data, const char *id)
{
    struct host *host = data;

    host->question[0] = '\0';
    printf("over: nobody answered\n");
    fflush(stdout);
}

static void show_attempt(const struct cordon_attempt *attempt)
{
    static const char *const places[] = {"in the sandbox", "widened", "without a sandbox"};
    const struct cordon_result *result = attempt->result;

    printf("ran %s%s%s: exit code %d\n", places[attempt->place], attempt->widened ? ", with " : "",
           attempt->widened ? attempt->widened : "", result->end->exit_code);
    fwrite(result->output[0], 1, result->output_len[0], stdout);
}

static void on_done(void *data, const struct cordon_execution_result *result)
{
    struct host *host = data;
    int i;

    host->is_running = 0;
    for (i = 0; i < 2 && result->attempts[i]; i++)
        show_attempt(result->attempts[i]);
    if (result->outcome != CORDON_EXECUTION_RAN)
        printf("not run: %s\n", result->reason);
    printf("done\n");
    fflush(stdout);
}

/* --- what people type --- */

/* The decision of a word, if the question offers it; a no is always possible. */
static int find_decision(const struct host *host, const char *word)
{
    int i;

    for (i = CORDON_APPROVED; i <= CORDON_DENIED; i++)
        if (strcmp(word, decisions[i]) == 0 && (i == CORDON_DENIED || host->offers & 1u << i))
            return i;
    return -1;
}

static int answer(struct host *host, const char *word, struct cordon_error *error)
{
    int decision = find_decision(host, word);
    char id[sizeof host->question];

    if (decision < 0) {
        printf("that is no answer here\n");
        return fflush(stdout);
    }
    strcpy(id, host->question);
    host->question[0] = '\0';
    return cordon_answer_question(host->engine, id, decision, NULL, error);
}

static int run(struct host *host, const char *script, struct cordon_error *error)
{
    const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    struct cordon_execute_options options = {sizeof options};

    argv[2] = script;
    options.argv = argv;
    options.timeout_ms = 60000;
    host->is_running = 1;
    return cordon_execute(host->engine, &options, on_done, host, NULL, error);
}

/* Takes one line, if it is its turn. */
static int take_line(struct host *host, struct cordon_error *error)
{
    char line[sizeof host->line];
    char *end = memchr(host->line, '\n', host->len);
    int is_answer = host->question[0] != '\0';

    if (!end || (host->is_running && !is_answer))
        return 0;
    *end = '\0';
    strcpy(line, host->line);
    host->len -= (size_t)(end + 1 - host->line);
    memmove(host->line, end + 1, host->len);
    return is_answer ? answer(host, line, error) : run(host, line, error);
}

/* Nobody is left to answer. */
static int give_up(struct host *host, struct cordon_error *error)
{
    return host->is_over && host->question[0] && !memchr(host->line, '\n', host->len)
               ? answer(host, "no", error)
               : 0;
}

static void read_lines(struct host *host)
{
    ssize_t len = read(STDIN_FILENO, host->line + host->len, sizeof host->line - host->len);

    host->is_over = len <= 0;
    host->len += len > 0 ? (size_t)len : 0;
}

static int turn(struct host *host, struct cordon_error *error)
{
    struct pollfd fds[2];

    fds[0].fd = cordon_fd(host->engine, error);
    fds[0].events = POLLIN;
    fds[1].fd = host->is_over ? -1 : STDIN_FILENO;
    fds[1].events = POLLIN;
    fds[1].revents = 0;
    if (fds[0].fd < 0 || poll(fds, 2, -1) < 0 || cordon_dispatch(host->engine, error))
        return -1;
    if (fds[1].revents)
        read_lines(host);
    return take_line(host, error) || give_up(host, error) ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct cordon_engine_options options = {sizeof options};
    struct cordon_error error = {0};
    struct host host = {0};
    int status;

    options.rules = argc > 1 ? argv[1] : NULL;
    options.config = argc > 2 ? argv[2] : NULL;
    options.on_question = on_question;
    options.on_question_over = on_question_over;
    options.question_data = &host;
    options.question_timeout_ms = 3600000;
    status = cordon_open(&options, &host.engine, &error);
    while (!status && !(host.is_over && !host.is_running && !memchr(host.line, '\n', host.len)))
        status = turn(&host, &error);
    if (status)
        fprintf(stderr, "approve: %s\n", error.message);
    cordon_close(host.engine);
    return status ? 1 : 0;
}

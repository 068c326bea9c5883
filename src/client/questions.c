/* See questions.h. A question of the server (approval/request) becomes one of ours, which the same code
 * asks as of `cordon run`: what it shows is bounded and cannot command the terminal, whatever the server
 * or the command wrote into it. Only decisions that the server offers can be given. */
#include "client/questions.h"

#include "approval/approvals.h"
#include "approval/approver_hook.h"
#include "approval/approver_terminal.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/list.h"
#include "base/str.h"
#include "client/connection.h"

#include <stdlib.h>

struct questions {
    struct connection *connection;
    struct prompt *prompt; /* NULL: there is no terminal */
    bool has_hook;
    struct approvals *approvals;
    struct list all;
};

struct question {
    struct questions *owner;
    struct list link;
    json_t *id;        /* of the server's request */
    char *approval_id; /* by which it is withdrawn */
    struct approval_wait *wait;
};

static void question_free(struct question *question)
{
    list_remove(&question->link);
    json_decref(question->id);
    free(question->approval_id);
    free(question);
}

static void on_answer(void *data, const struct approval_answer *answer)
{
    struct question *question = data;

    connection_reply(question->owner->connection, question->id,
                     json_pack("{s:s, s:s*}", "decision", approval_decision_name(answer->decision),
                               "reason", answer->reason));
    question_free(question);
}

/* "" when it is missing. Caller frees. */
static char *text_of(const struct json_at *object, const char *key)
{
    return alloc_str(connection_text(object->value, key));
}

static unsigned offers_of(const struct strv *words)
{
    unsigned offers = 0;

    for (int decision = 0; decision < APPROVAL_DECISIONS; decision++)
        if (strv_has(words, approval_decision_name((enum approval_decision)decision)))
            offers |= 1u << decision;
    return offers;
}

/* What the server says is shown, so it has to be a host in the form in which it is one. */
static int host_read(const struct json_at *at, struct approval_host *ret, struct err *err)
{
    struct json_at network = json_at_field(at, "network");
    struct json_at name = json_at_field(&network, "host");
    struct json_at protocol = json_at_field(&network, "protocol");
    struct net_host host;
    size_t which;

    if (!json_at_is_given(&network))
        return 0;
    if (json_at_word(&protocol, network_protocol_words, &which, err) || !json_is_string(name.value))
        return json_at_fail(&name, err, "is no host");
    if (net_host_parse(json_string_value(name.value), json_string_length(name.value), &host, err))
        return -1;
    *ret = (struct approval_host){
        .name = alloc_str(host.text),
        .port = (unsigned)json_integer_value(json_object_get(network.value, "port")),
        .protocol = (enum network_protocol)which};
    return 0;
}

static int question_read(const struct json_at *at, struct approval_request *ret, struct err *err)
{
    static const char *const kinds[] = {"command", "retry", "held", NULL};
    AUTO(strv_done) struct strv offered = {0};
    struct json_at kind = json_at_field(at, "kind");
    size_t which;

    if (json_at_object(at, err) || json_at_word(&kind, kinds, &which, err) ||
        json_at_strings(at, "argv", &ret->argv, err) ||
        json_at_strings(at, "proposed_execpolicy_amendment", &ret->proposal, err) ||
        json_at_strings(at, "available_decisions", &offered, err) ||
        json_at_strings(at, "variables", &ret->variables, err) || host_read(at, &ret->host, err))
        return -1;
    ret->kind = (enum approval_kind)which;
    ret->cwd = text_of(at, "cwd");
    ret->reason = text_of(at, "reason");
    ret->covers = text_of(at, "covers");
    ret->programs = text_of(at, "programs");
    ret->offers = offers_of(&offered);
    return 0;
}

static void withdraw(struct questions *questions, const char *approval_id)
{
    struct question *question;

    list_for_each(question, &questions->all, link)
        if (str_eq(question->approval_id, approval_id)) {
            approvals_leave(question->wait);
            question_free(question);
            return;
        }
}

static void on_question(void *data, const json_t *id, const json_t *params)
{
    struct questions *questions = data;
    AUTO(approval_request_done) struct approval_request asked = {0};
    struct json_at root = json_at_root(params);
    struct json_at at = json_at_field(&root, "question");
    struct question *question;
    struct err err;

    if (!id) {
        withdraw(questions, connection_text(params, "approvalId"));
        return;
    }
    if (!questions->prompt && !questions->has_hook) {
        connection_refuse(questions->connection, id, "there is no terminal to ask at");
        return;
    }
    if (question_read(&at, &asked, &err)) {
        connection_refuse(questions->connection, id, err.msg);
        return;
    }
    question = alloc_zero(1, sizeof *question);
    question->owner = questions;
    question->id = json_incref((json_t *)id);
    question->approval_id = alloc_str(connection_text(params, "approvalId"));
    list_append(&questions->all, &question->link);
    question->wait = approvals_ask(questions->approvals, &asked, on_answer, question);
}

static int add_hook(struct questions *questions, const struct questions_options *options,
                    struct err *err)
{
    uint64_t deadline = options->timeout_ns ? options->timeout_ns : APPROVER_HOOK_DEADLINE_NS;
    struct approver *hook = approver_hook_new(connection_loop(options->connection), options->hook,
                                              options->hook_env, deadline, err);

    if (!hook)
        return err_wrap(err, "--approval-hook");
    approvals_add_approver(questions->approvals, hook);
    questions->has_hook = true;
    return 0;
}

struct questions *questions_new(const struct questions_options *options, struct err *err)
{
    struct questions *questions = alloc_zero(1, sizeof *questions);
    struct loop *loop = connection_loop(options->connection);
    struct err ignored; /* without a terminal there is just one less to ask */

    questions->connection = options->connection;
    list_init(&questions->all);
    questions->approvals = approvals_new(loop, options->timeout_ns);
    questions->prompt = prompt_open(loop, &ignored);
    connection_take_questions(options->connection, on_question, questions);
    if (options->hook && add_hook(questions, options, err)) {
        questions_free(questions);
        return NULL;
    }
    if (questions->prompt) {
        prompt_set_owner(questions->prompt, options->on_lend, options->data);
        approvals_add_approver(questions->approvals,
                               approver_terminal_new(questions->prompt, NULL));
    }
    return questions;
}

void questions_free(struct questions *questions)
{
    if (!questions)
        return;
    connection_take_questions(questions->connection, NULL, NULL);
    while (!list_is_empty(&questions->all)) {
        struct question *question = list_first(&questions->all, struct question, link);

        approvals_leave(question->wait);
        question_free(question);
    }
    approvals_free(questions->approvals);
    prompt_free(questions->prompt);
    free(questions);
}

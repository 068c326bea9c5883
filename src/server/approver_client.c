/* See approver_client.h. A question is a request approval/request to the connection that has the
 * session now. No connection, one that closes, an error and an answer that makes no sense are all a
 * no: nothing runs because a question was not understood. */
#include "server/approver_client.h"

#include "approval/approvals.h"
#include "approval/approver_hook.h"
#include "approval/approver_terminal.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/list.h"
#include "base/str.h"
#include "rpc/rpc.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/model/model_request.h"
#include "server/server.h"

#include <stdlib.h>

struct approver_client {
    struct approver approver;
    struct client_session *session;
    struct client_question *questions; /* that the client has */
};

struct client_question {
    struct approver_client *approver;
    struct client_question *next;
    const struct approval_request *question;
    char *id; /* as the client knows it */
    struct rpc_peer *peer;
    int64_t call;
};

static void question_free(struct client_question *asked)
{
    struct client_question **at = &asked->approver->questions;

    while (*at != asked)
        at = &(*at)->next;
    *at = asked->next;
    free(asked->id);
    free(asked);
}

/* It is on somebody's screen, perhaps. */
static void question_withdraw(struct client_question *asked)
{
    AUTO_JSON json_t *params = json_pack("{s:s}", "approvalId", asked->id);

    rpc_peer_call_cancel(asked->peer, asked->call);
    rpc_peer_notify(asked->peer, "approval/withdrawn", params);
    question_free(asked);
}

static int read_answer(const struct rpc_message *message, const struct approval_request *question,
                       struct approval_answer *ret, struct err *err)
{
    struct json_at root = json_at_root(message->result);
    struct json_at decision = json_at_field(&root, "decision");
    struct json_at reason = json_at_field(&root, "reason");
    const char *said = NULL;
    const char *word;

    if (message->kind == RPC_ERROR)
        return err_set(err, ERR_INVALID, "the client answered with an error: %s",
                       message->error_text);
    if (json_at_string(&decision, &word, err) ||
        (json_at_is_given(&reason) && json_at_string(&reason, &said, err)) ||
        approval_decision_parse(word, question, &ret->decision, err))
        return -1;
    ret->reason = alloc_str(said);
    return 0;
}

static void on_answer(void *data, const struct rpc_message *message)
{
    struct client_question *asked = data;
    struct approvals *approvals = asked->approver->approver.approvals;
    AUTO_FREE char *id = alloc_str(asked->question->id);
    struct approval_answer answer = {.by = "client"};
    struct err err;

    if (!message)
        err_set(&err, ERR_NOT_FOUND, "the client is gone");
    if (!message || read_answer(message, asked->question, &answer, &err)) {
        answer.decision = APPROVAL_DENIED;
        answer.reason = alloc_str(err.msg);
    }
    question_free(asked);
    approvals_answer(approvals, id, &answer, &err); /* another approver may have been faster */
}

/* Of the oldest request that waits for the command that asks, so that its client knows to what the question belongs. */
static void add_request(json_t *params, const struct client *client, int number)
{
    const struct call *call;

    list_for_each(call, &client->calls, in_client) {
        if (!number || model_request_session(call) != number)
            continue;
        json_object_set(params, "requestId", (json_t *)call->message.id);
        return;
    }
}

static void client_ask(struct approver *approver, const struct approval_request *question)
{
    struct approver_client *self = (struct approver_client *)approver;
    AUTO_JSON json_t *params = NULL;
    struct client_question *asked;
    struct rpc_call call = {.method = "approval/request", .on_answer = on_answer};

    if (!self->session->client) {
        approvals_pass(approver->approvals, question->id);
        return;
    }
    asked = alloc_zero(1, sizeof *asked);
    asked->approver = self;
    asked->question = question;
    asked->peer = self->session->client->peer;
    asked->next = self->questions;
    self->questions = asked;
    params = client_session_question(self->session, approval_request_to_json(question));
    add_request(params, self->session->client, question->number);
    asked->id = alloc_str(json_string_value(json_object_get(params, "approvalId")));
    call.params = params;
    call.data = asked;
    asked->call = rpc_peer_call(asked->peer, &call);
}

static void client_withdraw(struct approver *approver, const char *id)
{
    struct approver_client *self = (struct approver_client *)approver;

    for (struct client_question *asked = self->questions; asked; asked = asked->next)
        if (str_eq(asked->question->id, id)) {
            question_withdraw(asked);
            return;
        }
}

static void client_free(struct approver *approver)
{
    struct approver_client *self = (struct approver_client *)approver;

    while (self->questions) {
        rpc_peer_call_cancel(self->questions->peer, self->questions->call);
        question_free(self->questions);
    }
    free(self);
}

json_t *client_session_question(const struct client_session *session, json_t *question)
{
    AUTO_FREE char *id = alloc_strf("%llu.%s", (unsigned long long)session->number,
                                    json_string_value(json_object_get(question, "id")));

    json_object_del(question, "id");
    return json_pack("{s:s, s:s, s:o}", "approvalId", id, "sessionId", session->id, "question",
                     question);
}

struct approver *approver_client_new(struct client_session *session)
{
    struct approver_client *approver = alloc_zero(1, sizeof *approver);

    approver->approver =
        (struct approver){.ask = client_ask, .withdraw = client_withdraw, .free = client_free};
    approver->session = session;
    return &approver->approver;
}

/* --- who is asked ---
 *
 * A hook that cannot be made is an error, and no other approver is asked in its place: it is there
 * to say no. */

static struct approver *hook_new(const struct server *server, struct err *err)
{
    uint64_t limit_ns = server->limits.approval_ns;

    return approver_hook_new(server->loop, server->approval_hook, server->approval_hook_env,
                             limit_ns ? limit_ns : APPROVER_HOOK_DEADLINE_NS, err);
}

static struct approver *person_new(struct client_session *session)
{
    AUTO_FREE char *who = alloc_strf("session %s", session->id);

    return session->server->prompt ? approver_terminal_new(session->server->prompt, who)
                                   : approver_client_new(session);
}

struct approvals *session_approvals(struct client_session *session, struct err *err)
{
    const struct server *server = session->server;
    uint64_t limit_ns = server->limits.approval_ns;
    struct approver *hook = NULL;

    if (session->approvals)
        return session->approvals;
    if (server->approval_hook) {
        hook = hook_new(server, err);
        if (!hook)
            return NULL;
    }
    session->approvals = approvals_new(server->loop, limit_ns ? limit_ns : SERVER_APPROVAL_NS);
    if (hook)
        approvals_add_approver(session->approvals, hook);
    approvals_add_approver(session->approvals, person_new(session));
    return session->approvals;
}

/* approval/list and approval/resolve: the open questions of all clients, for a reviewer on a
 * connection of its own. Every client that the server lets in may run commands as this user anyhow
 * (docs/threat-model.md), so every client may answer. */
#include "approval/approvals.h"
#include "base/alloc.h"
#include "server/approver_client.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/methods.gen.h"
#include "server/server.h"

#include <stdlib.h>

void method_approval_list(struct call *call)
{
    const struct server *server = call->client->server;
    const struct client_session *session;
    json_t *list = json_array();

    list_for_each(session, &server->sessions, in_server) {
        AUTO_JSON json_t *questions =
            session->approvals ? approvals_to_json(session->approvals) : NULL;
        size_t i;
        json_t *question;

        json_array_foreach(questions, i, question)
            json_array_append_new(list, client_session_question(session, json_incref(question)));
    }
    call_reply(call, json_pack("{s:o}", "questions", list));
}

/* "3.q1": the number of the session, and its own id, `*ret_id`. NULL when there is no such. */
static struct approvals *find(const struct server *server, const char *text, const char **ret_id)
{
    const struct client_session *session;
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    list_for_each(session, &server->sessions, in_server)
        if (*end == '.' && session->number == number && session->approvals) {
            *ret_id = end + 1;
            return session->approvals;
        }
    return NULL;
}

/* Any that a person can take; whether the question offers it, approvals_answer() says. */
static int read_decision(const char *word, enum approval_decision *ret, struct err *err)
{
    const struct approval_request any = {.offers = ((1u << APPROVAL_DECISIONS) - 1) &
                                                   ~(1u << APPROVAL_TIMED_OUT)};

    return approval_decision_parse(word, &any, ret, err);
}

void method_approval_resolve(struct call *call, const struct approval_resolve_params *params)
{
    const char *text = params->approval_id;
    struct approval_answer answer = {.by = "reviewer"};
    const char *id = NULL;
    struct approvals *approvals = find(call->client->server, text, &id);
    struct err err;

    if (!approvals) {
        call_fail(call, RPC_INVALID_REQUEST, "there is no open question \"%.60s\"", text);
        return;
    }
    if (read_decision(params->decision, &answer.decision, &err)) {
        call_fail_err(call, &err);
        return;
    }
    answer.reason = alloc_str(params->reason);
    if (approvals_answer(approvals, id, &answer, &err))
        call_fail_err(call, &err);
    else
        call_reply(call, json_object());
}

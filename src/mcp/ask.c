/* See ask.h.
 *
 *     approval/request ---> elicitation/create ---accept, with a decision that was offered---> that
 *                     \                       \---anything else, nobody there any more-------> denied
 *                      \--nobody can be asked--> denied, with what to do
 *     approval/withdrawn: answered elsewhere, or its time is up (two minutes) ---> notifications/cancelled
 *
 * What is shown is a stranger's: each text as approval_plain_text() has it, and cut. A yes is one of the words that the
 * question offers, and nothing else: not "accept" without one. What would be remembered in rules is offered for hosts alone,
 * and says so. */
#include "mcp/ask.h"

#include "approval/approval.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/list.h"
#include "base/str.h"
#include "base/utf8.h"
#include "mcp/engine.h"
#include "mcp/mcp.h"
#include "mcp/session.h"
#include "mcp/tools.h"
#include "policy/config/config.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 4000, REASON_MAX = 1000 }; /* bytes of one text */

struct asked {
    struct list in_session;
    struct mcp_session *session;
    json_t *id; /* of the engine's request; owned, as is the next */
    json_t *offers;
    char *approval; /* its id */
    int64_t question;
};

/* --- who can be asked --- */

static bool can_ask(const json_t *capabilities, enum mcp_version version)
{
    const json_t *elicitation = json_object_get(capabilities, "elicitation");

    return mcp_version_has(version, MCP_HAS_ELICITATION) && json_is_object(elicitation) &&
           (!json_object_size(elicitation) || json_object_get(elicitation, "form"));
}

bool mcp_ask_can(const struct mcp_call *call)
{
    return can_ask(call->capabilities, call->version);
}

static bool is_text_of(const json_t *argv, const char *text)
{
    for (size_t i = 0; text && i < json_array_size(argv); i++)
        if (str_eq(json_string_value(json_array_get(argv, i)), text))
            return true;
    return false;
}

/* The call that waits for the command that asks; where none does, the oldest that waits for anything: its client is the same
 * person's. NULL: nobody can be asked by a call. */
static struct mcp_call *find_call(const struct mcp_session *session, const json_t *request)
{
    struct mcp_call *call;
    struct mcp_call *oldest = NULL;

    list_for_each(call, &session->calls, in_session) {
        const bool is_heard = call->on_cancel && !call->is_unheard && mcp_ask_can(call);

        if (json_is_integer(request) && mcp_tool_waits_for(call, json_integer_value(request)))
            return is_heard ? call : NULL;
        if (!oldest && is_heard && str_eq(call->method, "tools/call"))
            oldest = call;
    }
    return oldest;
}

/* --- what is shown --- */

/* What is too long loses its middle, as on a terminal (approver_terminal.c): how it ends is what it does last. Caller
 * frees. */
static char *shown(const char *text)
{
    AUTO_FREE char *plain = approval_plain_text(text ? text : "");
    const size_t len = strlen(plain);
    size_t first;
    size_t last;

    if (len <= SHOWN_MAX)
        return TAKE_PTR(plain);
    first = utf8_cut(plain, len, SHOWN_MAX * 2 / 3);
    last = len - SHOWN_MAX / 3;
    while (last < len && ((unsigned char)plain[last] & 0xc0) == 0x80)
        last++;
    return alloc_strf("%.*s\n    ... %zu more bytes that are not shown here ...\n    %s",
                      (int)first, plain, last - first, plain + last);
}

static void append_line(struct buf *text, const char *title, const char *value)
{
    AUTO_FREE char *plain = value && *value ? shown(value) : NULL;

    if (plain)
        buf_appendf(text, "\n%s %s", title, plain);
}

static const char *text_of(const json_t *question, const char *key)
{
    return json_string_value(json_object_get(question, key));
}

/* Caller frees. */
static char *joined(const json_t *words)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    for (size_t i = 0; i < json_array_size(words); i++)
        buf_appendf(&text, "%s%s", i ? " " : "", json_string_value(json_array_get(words, i)));
    return alloc_str(text.data ? text.data : "");
}

/* Caller frees. */
static char *message_of(const json_t *question)
{
    const char *kind = text_of(question, "kind");
    AUTO_FREE char *argv = joined(json_object_get(question, "argv"));
    AUTO_FREE char *command = shown(argv);
    AUTO_FREE char *variables = joined(json_object_get(question, "variables"));
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    buf_appendf(&text, "%s\n    %s",
                kind && str_eq(kind, "held")    ? "Allow this, while the command waits?"
                : kind && str_eq(kind, "retry") ? "The sandbox refused something. Run this again?"
                                                : "Run this command?",
                command);
    append_line(&text, "in:", text_of(question, "cwd"));
    append_line(&text, "with:", variables);
    append_line(&text, "programs:", text_of(question, "programs"));
    append_line(&text, "because:", text_of(question, "reason"));
    append_line(&text, "a yes covers:", text_of(question, "covers"));
    return alloc_str(text.data);
}

/* NULL: not to be offered. */
static const char *title_of(const char *decision, bool is_host)
{
    static const char *const titles[][2] = {
        {"approved", "Yes, this once"},
        {"approved_for_session", "Yes, and do not ask again in this session"},
        {"approved_without_sandbox", "Yes, this once and without any sandbox"},
        {"denied", "No"},
        {"abort", "No, and stop the command"},
    };

    if (str_eq(decision, "approved_execpolicy_amendment"))
        return is_host ? "Yes, and always: a rule for this host, at every port, is written" : NULL;
    if (str_eq(decision, "denied_execpolicy_amendment"))
        return is_host ? "No, and never: a rule for this host, at every port, is written" : NULL;
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (str_eq(decision, titles[i][0]))
            return titles[i][1];
    return NULL;
}

/* {"type": "string", ...} with the choices, in the words of the version; `ret_offers` gets those that are offered. */
static json_t *decision_schema(const json_t *question, enum mcp_version version, json_t *ret_offers)
{
    const json_t *decisions = json_object_get(question, "available_decisions");
    const bool is_host = json_is_object(json_object_get(question, "network"));
    json_t *titled = json_array();
    json_t *titles = json_array();

    for (size_t i = 0; i < json_array_size(decisions); i++) {
        const char *decision = json_string_value(json_array_get(decisions, i));
        const char *title = decision ? title_of(decision, is_host) : NULL;

        if (!title)
            continue;
        json_array_append_new(ret_offers, json_string(decision));
        json_array_append_new(titles, json_string(title));
        json_array_append_new(titled, json_pack("{s:s, s:s}", "const", decision, "title", title));
    }
    if (mcp_version_has(version, MCP_HAS_ELICITATION_MODES)) {
        json_decref(titles);
        return json_pack("{s:s, s:s, s:o, s:s}", "type", "string", "title", "Decision", "oneOf",
                         titled, "default", "denied");
    }
    json_decref(titled);
    return json_pack("{s:s, s:s, s:O, s:o}", "type", "string", "title", "Decision", "enum",
                     ret_offers, "enumNames", titles);
}

static json_t *params_of(const json_t *question, enum mcp_version version, json_t *ret_offers)
{
    AUTO_FREE char *message = message_of(question);
    json_t *params = json_pack(
        "{s:o, s:{s:s, s:{s:o, s:{s:s, s:s, s:s}}, s:[s]}}", "message", json_lossy(message),
        "requestedSchema", "type", "object", "properties", "decision",
        decision_schema(question, version, ret_offers), "reason", "type", "string", "title",
        "Reason", "description", "For the model, if you like", "required", "decision");

    if (mcp_version_has(version, MCP_HAS_ELICITATION_MODES))
        json_object_set_new(params, "mode", json_string("form"));
    return params;
}

/* --- the answer --- */

static void reply(struct mcp_engine *engine, const json_t *id, const char *decision,
                  const char *reason)
{
    mcp_engine_reply(engine, id, json_pack("{s:s, s:s*}", "decision", decision, "reason", reason));
}

static bool is_offered(const json_t *offers, const char *decision)
{
    return decision && is_text_of(offers, decision);
}

static void reply_with(const struct asked *asked, const struct mcp_message *answer)
{
    struct mcp_engine *engine = asked->session->engine;
    const json_t *result = answer && answer->kind == MCP_RESULT ? answer->result : NULL;
    const char *action = text_of(result, "action");
    const json_t *content = json_object_get(result, "content");
    const char *decision = text_of(content, "decision");
    const char *reason = text_of(content, "reason");

    if (!answer)
        reply(engine, asked->id, "denied", "nobody is there any more who could answer");
    else if (!result)
        reply(engine, asked->id, "denied", "the client could not ask");
    else if (!action || !str_eq(action, "accept"))
        reply(engine, asked->id, "denied",
              action && str_eq(action, "decline") ? "declined" : "the question was not answered");
    else if (!is_offered(asked->offers, decision))
        reply(engine, asked->id, "denied", "the answer was none of those offered");
    else
        reply(engine, asked->id, decision,
              reason && *reason && strlen(reason) <= REASON_MAX ? reason : NULL);
}

static void asked_free(struct asked *asked)
{
    list_remove(&asked->in_session);
    json_decref(asked->id);
    json_decref(asked->offers);
    free(asked->approval);
    free(asked);
}

static void on_answer(void *data, const struct mcp_message *answer)
{
    struct asked *asked = data;

    reply_with(asked, answer);
    asked_free(asked);
}

/* --- the question --- */

static void ask(struct mcp_session *session, const json_t *id, const json_t *params)
{
    const json_t *asking = json_object_get(params, "question");
    struct mcp_call *call = find_call(session, json_object_get(params, "requestId"));
    const bool is_never = mcp_config(session->mcp)->approvals == CONFIG_MCP_APPROVALS_NEVER;
    struct asked *asked;
    struct mcp_question question = {
        .call = call, .method = "elicitation/create", .on_answer = on_answer};

    if (is_never || (!call && !can_ask(session->capabilities, session->version))) {
        reply(session->engine, id, "denied",
              is_never
                  ? "the user's configuration asks nobody ([mcp] approvals = \"never\")"
                  : "this client cannot ask its user (it has no elicitation); what would allow "
                    "it has to be in the configuration of Cordon");
        return;
    }
    asked = alloc_zero(1, sizeof *asked);
    *asked = (struct asked){
        .session = session,
        .id = json_incref((json_t *)id),
        .offers = json_array(),
        .approval = alloc_str(text_of(params, "approvalId")),
    };
    list_append(&session->asked, &asked->in_session);
    question.data = asked;
    question.params = params_of(asking, call ? call->version : session->version, asked->offers);
    asked->question = mcp_session_ask(session, &question);
    if (asked->question)
        return;
    reply(session->engine, id, "denied", "too many questions are open already");
    asked_free(asked);
}

static void withdraw(struct mcp_session *session, const char *approval)
{
    struct asked *asked;

    list_for_each(asked, &session->asked, in_session) {
        if (!approval || !asked->approval || !str_eq(asked->approval, approval))
            continue;
        mcp_session_withdraw(session, asked->question,
                             "it was answered elsewhere, its time is up, or the command has ended");
        asked_free(asked);
        return;
    }
}

static void on_question(void *data, const json_t *id, const json_t *params)
{
    if (id)
        ask(data, id, params);
    else
        withdraw(data, text_of(params, "approvalId"));
}

void mcp_ask_begin(struct mcp_session *session, struct mcp_engine *engine)
{
    mcp_engine_take_questions(engine, on_question, session);
}

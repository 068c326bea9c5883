/* See modern.h. A call that has to ask is answered with input_required and parked: it keeps its engine's call and has neither id
 * nor stream, until a request with its requestState takes its place in the client's eyes:
 *
 *     running --ask--> parked --request with its state--> running, with that request's id and stream
 *                        \--- 10 min ---> its questions end without an answer; nobody comes for its result
 *
 * The state goes through the client, who could be anybody: it names the parked call, and is signed together with the principal, the
 * method and the parameters, so that an answer is for nothing but what was asked. Each state is good once: a call that is
 * parked again has another number. */
#include "mcp/modern.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "loop/loop.h"
#include "mcp/mcp.h"
#include "mcp/news.h"
#include "mcp/resources.h"

#include <inttypes.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "io.modelcontextprotocol/"
#define META_VERSION PREFIX "protocolVersion"
#define META_CAPABILITIES PREFIX "clientCapabilities"
#define META_LEVEL PREFIX "logLevel"
#define META_SUBSCRIPTION PREFIX "subscriptionId"

#define PARKED_NS UINT64_C(600000000000)

/* Of a call that has asked something. */
struct mcp_parked {
    struct mcp_call *call;
    uint64_t number; /* of this time; 0: it runs */
    json_t *asked;   /* {KEY: {method, params}}, also what is answered meanwhile */
    json_t *params;  /* that its client has to repeat */
    json_t *result;  /* came while nobody was there; or error */
    json_t *error;
    bool is_over; /* nobody comes any more */
    struct loop_timer *timer;
};

/* --- what a request says of itself --- */

bool mcp_modern_is(const struct mcp_message *message)
{
    return json_object_get(message->meta, META_VERSION) ||
           json_object_get(message->meta, META_CAPABILITIES) ||
           str_eq(message->method, "server/discover") ||
           str_eq(message->method, "subscriptions/listen");
}

const char *mcp_modern_version(const struct mcp_message *message)
{
    return json_string_value(json_object_get(message->meta, META_VERSION));
}

bool mcp_modern_is_whole(const struct mcp_message *message)
{
    return mcp_modern_version(message) &&
           json_is_object(json_object_get(message->meta, META_CAPABILITIES));
}

static json_t *versions_to_json(void)
{
    json_t *list = json_array();

    for (size_t i = 0; mcp_version_texts[i]; i++)
        json_array_append_new(list, json_string(mcp_version_texts[i]));
    return list;
}

bool mcp_modern_begin(struct mcp_call *call, const struct mcp_message *message)
{
    const char *version = mcp_modern_version(message);
    const json_t *capabilities = json_object_get(message->meta, META_CAPABILITIES);
    const json_t *level = json_object_get(message->meta, META_LEVEL);

    call->dialect = &mcp_modern;
    call->capabilities = capabilities;
    call->level = MCP_LEVEL_NONE;
    if (!version)
        mcp_call_fail(call, MCP_INVALID_PARAMS, "params._meta needs \"%s\", a string",
                      META_VERSION);
    else if (!mcp_version_parse(version, &call->version) || !mcp_version_is_modern(call->version))
        mcp_call_fail_data(
            call, MCP_NO_VERSION, "Unsupported protocol version",
            json_pack("{s:o, s:s}", "supported", versions_to_json(), "requested", version));
    else if (!json_is_object(capabilities))
        mcp_call_fail(call, MCP_INVALID_PARAMS, "params._meta needs \"%s\", an object",
                      META_CAPABILITIES);
    else if (level &&
             (!json_is_string(level) || !mcp_level_parse(json_string_value(level), &call->level)))
        mcp_call_fail(call, MCP_INVALID_PARAMS, "params._meta: \"%s\" should be a level",
                      META_LEVEL);
    else
        return true;
    return false;
}

/* --- results --- */

/* How long clients may keep what lists say; the others are not to be kept. */
static const struct {
    const char *method;
    json_int_t ttl_ms;
} lasting[] = {
    {"server/discover", 3600000},          {"tools/list", 3600000}, {"prompts/list", 3600000},
    {"resources/templates/list", 3600000}, {"resources/list", 0},   {"resources/read", 0},
};

static void finish(const struct mcp_session *session, const char *method, json_t *result)
{
    json_t *meta = json_object_get(result, "_meta");

    if (!json_object_get(result, "resultType"))
        json_object_set_new(result, "resultType", json_string("complete"));
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++) {
        if (!str_eq(lasting[i].method, method))
            continue;
        json_object_set_new(result, "ttlMs", json_integer(lasting[i].ttl_ms));
        json_object_set_new(result, "cacheScope", json_string("private"));
    }
    if (!meta) {
        meta = json_object();
        json_object_set_new(result, "_meta", meta);
    }
    json_object_set_new(meta, PREFIX "serverInfo", mcp_server_info(session->mcp));
}

static int64_t code_of(int64_t code)
{
    return code == MCP_NO_RESOURCE ? MCP_INVALID_PARAMS : code;
}

const struct mcp_dialect mcp_modern = {.closing_cancels = true, .finish = finish, .code = code_of};

/* --- the state that goes through the client --- */

enum { MAC_TEXT_SIZE = 2 * SHA256_DIGEST_SIZE + 1, STATE_SIZE = 160 };

/* What has to be the same when it calls again. */
static json_t *repeated(const json_t *params)
{
    json_t *copy = params ? json_copy((json_t *)params) : json_object();

    json_object_del(copy, "_meta");
    json_object_del(copy, "inputResponses");
    json_object_del(copy, "requestState");
    return copy;
}

static void sign(const struct mcp_call *call, const char *what, const json_t *params,
                 char ret[MAC_TEXT_SIZE])
{
    AUTO_FREE char *text = json_dumps(params, JSON_COMPACT | JSON_SORT_KEYS);
    const char *const parts[] = {what, call->session->principal, call->method, text};
    struct hmac_sha256_ctx hmac;
    uint8_t mac[SHA256_DIGEST_SIZE];

    hmac_sha256_set_key(&hmac, sizeof call->session->mcp->key, call->session->mcp->key);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) /* with their NULs between */
        hmac_sha256_update(&hmac, strlen(parts[i]) + 1, (const uint8_t *)parts[i]);
    hmac_sha256_digest(&hmac, sizeof mac, mac);
    for (size_t i = 0; i < sizeof mac; i++)
        snprintf(ret + 2 * i, 3, "%02x", mac[i]);
}

/* "NUMBER.EXPIRY.MAC", the expiry in ms of our clock. */
static void state_write(const struct mcp_parked *parked, char ret[STATE_SIZE])
{
    uint64_t until = (clock_now_ns() + PARKED_NS) / CLOCK_NS_PER_MS;
    char what[STATE_SIZE - MAC_TEXT_SIZE];
    char mac[MAC_TEXT_SIZE];

    snprintf(what, sizeof what, "%" PRIu64 ".%" PRIu64, parked->number, until);
    sign(parked->call, what, parked->params, mac);
    snprintf(ret, STATE_SIZE, "%s.%s", what, mac);
}

/* The number of the call that it names, 0 when it is not a state of ours for such a request, or too old. */
static uint64_t state_read(const struct mcp_call *call, const char *state)
{
    AUTO_JSON json_t *params = repeated(call->params);
    const char *last = strrchr(state, '.');
    AUTO_FREE char *what = last ? alloc_strn(state, (size_t)(last - state)) : NULL;
    char mac[MAC_TEXT_SIZE];
    char *end;
    uint64_t number;

    if (!what || strlen(last + 1) != MAC_TEXT_SIZE - 1)
        return 0;
    sign(call, what, params, mac);
    if (!memeql_sec(mac, last + 1, MAC_TEXT_SIZE - 1))
        return 0;
    number = strtoull(what, &end, 10);
    return clock_now_ns() / CLOCK_NS_PER_MS < strtoull(end + 1, NULL, 10) ? number : 0;
}

/* --- parking --- */

static bool is_waiting(const struct mcp_call *call)
{
    return call->parked && call->parked->number;
}

static void on_parked_time(void *data)
{
    struct mcp_parked *parked = data;
    struct mcp_call *call = parked->call;

    parked->is_over = true;
    if (parked->result || parked->error)
        mcp_call_drop(call);
    else
        mcp_session_forget(call);
}

static struct mcp_parked *parked_of(struct mcp_call *call)
{
    if (call->parked)
        return call->parked;
    call->parked = alloc_zero(1, sizeof *call->parked);
    call->parked->call = call;
    call->parked->asked = json_object();
    call->parked->params = repeated(call->params);
    call->parked->timer = loop_timer_new(call->session->mcp->loop, on_parked_time, call->parked);
    return call->parked;
}

void mcp_modern_free(struct mcp_call *call)
{
    struct mcp_parked *parked = TAKE_PTR(call->parked);

    if (!parked)
        return;
    loop_timer_free(parked->timer);
    json_decref(parked->asked);
    json_decref(parked->params);
    json_decref(parked->result);
    json_decref(parked->error);
    free(parked);
}

/* "q7" -> 7 */
static int64_t question_of(const char *key)
{
    return strtoll(key + 1, NULL, 10);
}

/* What was withdrawn meanwhile is not asked any more. */
static void drop_withdrawn(struct mcp_call *call)
{
    const char *key;
    json_t *ignored;
    void *next;

    json_object_foreach_safe(call->parked->asked, next, key, ignored)
    {
        if (!mcp_session_asks(call, question_of(key)))
            json_object_del(call->parked->asked, key);
    }
}

/* Answers the client with what is still to be asked, and leaves the call to wait. */
static void park(struct mcp_call *call)
{
    struct mcp_parked *parked = call->parked;
    struct mcp_session *session = call->session;
    AUTO(buf_done) struct buf text;
    AUTO_JSON json_t *result = NULL;
    AUTO_JSON json_t *id = TAKE_PTR(call->id);
    void *stream = TAKE_PTR(call->stream);
    char state[STATE_SIZE];

    drop_withdrawn(call);
    parked->number = ++session->last_question;
    state_write(parked, state);
    result = json_pack("{s:s, s:O, s:s}", "resultType", "input_required", "inputRequests",
                       parked->asked, "requestState", state);
    finish(session, call->method, result);
    loop_timer_start(parked->timer, PARKED_NS);
    json_decref(call->progress_token);
    call->progress_token = NULL;
    if (call->is_unheard)
        return;
    buf_init(&text, SIZE_MAX / 2);
    mcp_text_result(&text, id, result);
    session->sender.send(session->sender.context, stream, text.data, text.len, true);
}

void mcp_modern_ask(struct mcp_call *call, int64_t id, const char *method, json_t *params)
{
    struct mcp_parked *parked = parked_of(call);
    char key[32];

    snprintf(key, sizeof key, "q%" PRId64, id);
    json_object_set_new(parked->asked, key,
                        json_pack("{s:s, s:o}", "method", method, "params", params));
    if (!is_waiting(call)) /* else it is asked when its client comes back */
        park(call);
}

bool mcp_modern_keep(struct mcp_call *call, const struct mcp_failure *failure, json_t *result)
{
    struct mcp_parked *parked = call->parked;

    if (!is_waiting(call))
        return false;
    call->on_cancel = NULL;
    if (result)
        parked->result = result;
    else
        parked->error = json_pack("{s:I, s:s, s:O*}", "code", (json_int_t)failure->code, "message",
                                  failure->text, "data", failure->data);
    if (parked->is_over)
        mcp_call_drop(call);
    return true;
}

bool mcp_modern_make_room(struct mcp_session *session)
{
    struct mcp_call *call;

    list_for_each(call, &session->calls, in_session) {
        if (!is_waiting(call) || !(call->parked->result || call->parked->error))
            continue;
        mcp_call_drop(call);
        return true;
    }
    return false;
}

/* --- coming back --- */

static struct mcp_call *find_parked(const struct mcp_session *session, uint64_t number)
{
    struct mcp_call *call;

    list_for_each(call, &session->calls, in_session)
        if (is_waiting(call) && call->parked->number == number)
            return call;
    return NULL;
}

/* What the request `from` is, `call` becomes. */
static void take_place(struct mcp_call *call, struct mcp_call *from)
{
    json_t *params = call->params;

    call->id = TAKE_PTR(from->id);
    call->stream = from->stream;
    call->progress_token = TAKE_PTR(from->progress_token);
    call->progress = UINT64_MAX;
    call->params = TAKE_PTR(from->params);
    call->capabilities = from->capabilities; /* part of the new params */
    call->level = from->level;
    call->is_unheard = false;
    from->params = params;
    call->parked->number = 0;
    loop_timer_stop(call->parked->timer);
    mcp_call_drop(from);
}

static bool is_there(const struct mcp_session *session, const struct mcp_call *wanted)
{
    const struct mcp_call *call;

    list_for_each(call, &session->calls, in_session)
        if (call == wanted)
            return true;
    return false;
}

/* One answer may end the call, or have it ask more: the keys are looked at as they were when the client came. */
static void give_answers(struct mcp_call *call, const json_t *responses)
{
    struct mcp_session *session = call->session;
    AUTO_JSON json_t *asked = json_copy(call->parked->asked);
    const char *key;
    json_t *ignored;

    json_object_foreach(asked, key, ignored)
    {
        const json_t *response = json_object_get(responses, key);
        const struct mcp_message answer = {.kind = MCP_RESULT, .result = response};

        if (!is_there(session, call))
            return;
        if (!json_is_object(response))
            continue;
        json_object_del(call->parked->asked, key);
        mcp_session_answer(session, question_of(key), &answer);
    }
}

static void give_kept(struct mcp_call *call)
{
    struct mcp_parked *parked = call->parked;
    json_t *error = parked->error;

    if (error)
        mcp_call_fail_data(call, json_integer_value(json_object_get(error, "code")),
                           json_string_value(json_object_get(error, "message")),
                           json_incref(json_object_get(error, "data")));
    else
        mcp_call_result(call, TAKE_PTR(parked->result));
}

bool mcp_modern_resume(struct mcp_call *request)
{
    struct mcp_session *session = request->session;
    const json_t *state = json_object_get(request->params, "requestState");
    uint64_t number = json_is_string(state) ? state_read(request, json_string_value(state)) : 0;
    struct mcp_call *call = number ? find_parked(session, number) : NULL;

    if (!state)
        return false;
    if (!call) {
        mcp_call_fail(
            request, MCP_INVALID_PARAMS,
            "this requestState is not one that is waited for: it is another request's, was used "
            "before, or is older than 10 minutes; call again without it");
        return true;
    }
    take_place(call, request);
    if (call->parked->result || call->parked->error) {
        give_kept(call);
        return true;
    }
    give_answers(call, json_object_get(call->params, "inputResponses"));
    if (!is_there(session, call) || is_waiting(call))
        return true;
    drop_withdrawn(call);
    if (json_object_size(call->parked->asked))
        park(call);
    return true;
}

/* --- methods --- */

static void discover(struct mcp_call *call)
{
    const struct mcp *mcp = call->session->mcp;

    mcp_call_result(call, json_pack("{s:o, s:o, s:o}", "supportedVersions", versions_to_json(),
                                    "capabilities", mcp_capabilities(mcp), "instructions",
                                    mcp_instructions(mcp)));
}

/* A client that listens, until it cancels. */
struct listen {
    struct mcp_call *call;
    struct mcp_listener listener;
};

static json_t *with_subscription(const struct mcp_call *call, json_t *params)
{
    json_t *all = params ? params : json_object();

    json_object_set_new(all, "_meta", json_pack("{s:O}", META_SUBSCRIPTION, call->id));
    return all;
}

static void listen_tell(void *data, const char *method, json_t *params)
{
    const struct listen *listen = data;
    struct mcp_call *call = listen->call;

    if (mcp_session_has_room(call->session, call->stream))
        mcp_call_notify(call, method, with_subscription(call, params));
    else
        json_decref(params);
}

static void on_listen_cancel(void *data)
{
    struct listen *listen = data;

    mcp_news_leave(listen->call->session->news, &listen->listener);
    free(listen);
}

void mcp_modern_end_listening(struct mcp_session *session)
{
    struct mcp_call *call;
    struct mcp_call *next;

    list_for_each_safe(call, next, &session->calls, in_session) {
        if (call->on_cancel != on_listen_cancel)
            continue;
        on_listen_cancel(call->data);
        mcp_call_result(call, with_subscription(call, NULL));
    }
}

/* What of it is heard is told first. The tools never change. */
static void listen(struct mcp_call *call)
{
    const json_t *asked = json_object_get(call->params, "notifications");
    const json_t *uris = json_object_get(asked, "resourceSubscriptions");
    struct listen *listen = alloc_zero(1, sizeof *listen);
    json_t *heard = json_object();
    json_t *followed = json_array();

    listen->call = call;
    listen->listener.tell = listen_tell;
    listen->listener.data = listen;
    listen->listener.hears_list = json_is_true(json_object_get(asked, "resourcesListChanged"));
    mcp_call_on_cancel(call, on_listen_cancel, listen);
    for (size_t i = 0; i < json_array_size(uris); i++) {
        const char *uri = json_string_value(json_array_get(uris, i));

        if (uri && mcp_resource_follow(call->session, &listen->listener, uri))
            json_array_append(followed, json_array_get(uris, i));
    }
    if (listen->listener.hears_list)
        json_object_set_new(heard, "resourcesListChanged", json_true());
    if (json_array_size(followed))
        json_object_set(heard, "resourceSubscriptions", followed);
    json_decref(followed);
    mcp_call_notify(call, "notifications/subscriptions/acknowledged",
                    with_subscription(call, json_pack("{s:o}", "notifications", heard)));
    mcp_news_listen(call->session->news, &listen->listener);
}

const struct mcp_method mcp_modern_methods[] = {
    {.name = "server/discover", .eras = MCP_MODERN, .handle = discover},
    {.name = "subscriptions/listen", .eras = MCP_MODERN, .handle = listen},
    {NULL},
};

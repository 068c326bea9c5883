/* The tools that run commands and talk to them: exec_command, write_stdin, wait_for, terminate_session, read_screen,
 * list_sessions. Each is one method of our own protocol. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/str.h"
#include "mcp/layer.h"
#include "mcp/mcp.h"
#include "mcp/news.h"
#include "mcp/result.h"
#include "mcp/tools.gen.h"
#include "mcp/tools.h"
#include "policy/config/config.h"
#include "policy/profile_json.h"
#include "server/server.h"

/* How long the engine waits at most (docs/model-calls.md). */
enum { CALL_MS_MAX = 30000, POLL_MS_MAX = 300000 };

/* For the person at the client: what was refused. */
static void log_denials(struct mcp_call *call, const json_t *denials)
{
    for (size_t i = 0; i < json_array_size(denials); i++) {
        AUTO(buf_done) struct buf text;

        buf_init(&text, 1 << 20);
        mcp_result_denial(json_array_get(denials, i), &text);
        if (text.len)
            mcp_call_log(call, MCP_LEVEL_NOTICE, "sandbox", json_lossy(text.data));
    }
}

/* Text and object may be as long as the engine's answer, which is bounded. */
static void on_session_result(struct mcp_call *call, const json_t *result)
{
    const json_t *number = json_object_get(result, "sessionId");
    AUTO(buf_done) struct buf text;

    if (json_is_integer(number))
        mcp_news_began(call->session->news, json_integer_value(number));
    log_denials(call, json_object_get(result, "denials"));
    buf_init(&text, SIZE_MAX / 2);
    mcp_result_text(result, &text);
    mcp_tool_result_text(call, json_stringn(text.data ? text.data : "", text.len),
                         mcp_result_structured(result));
}

/* --- parameters --- */

static void set_text(json_t *params, const char *key, const char *value)
{
    if (value)
        json_object_set_new(params, key, json_string(value));
}

static void set_number(json_t *params, const char *key, uint64_t value)
{
    if (value != UINT64_MAX)
        json_object_set_new(params, key, json_integer((json_int_t)value));
}

static void set_flag(json_t *params, const char *key, bool value)
{
    json_object_set_new(params, key, json_boolean(value));
}

/* As the engine spells it; NULL: nothing was given, or more than one, which `call` is answered with then. */
static bool read_until(struct mcp_call *call, const json_t *until, json_t **ret)
{
    static const char *const names[][2] = {
        {"text", "text"}, {"quiet_ms", "quietMs"}, {"bytes", "bytes"}};
    AUTO_JSON json_t *found = json_object();

    *ret = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *value = json_object_get(until, names[i][0]);

        if (value && !json_is_null(value))
            json_object_set(found, names[i][1], value);
    }
    if (json_object_size(found) > 1 || (until && !json_object_size(found))) {
        mcp_tool_fail(call, "`until` should have one of text, quiet_ms, bytes");
        return false;
    }
    *ret = json_object_size(found) ? json_incref(found) : NULL;
    return true;
}

/* As long as clients bear it, where the engine would wait longer: up to `engine_ms`, which it says itself. */
static uint64_t wait_at_most(const struct mcp_call *call, uint64_t asked_ms, uint64_t engine_ms)
{
    uint64_t limit = call->session->mcp->options.yield_max_ms;

    return limit < engine_ms && asked_ms > limit ? limit : asked_ms;
}

static void ask_session(struct mcp_call *call, const char *method, json_t *params, uint64_t wait_ms)
{
    const struct mcp_request request = {
        .method = method,
        .params = params,
        .on_result = on_session_result,
        .flags = MCP_REQUEST_WAITS,
        .wait_ms = wait_ms < POLL_MS_MAX ? wait_ms : POLL_MS_MAX,
    };

    mcp_tool_ask(call, &request);
}

/* The sandbox of the call, narrowed to the profile of this name, too (NULL: none). NULL: the call was answered. */
static json_t *sandbox_within(struct mcp_call *call, const char *profile)
{
    const struct server *server = call->session->mcp->options.server;
    AUTO_JSON json_t *sandbox = mcp_tool_sandbox(call);
    AUTO(config_profile_done) struct config_profile wanted = {0};
    AUTO_FREE char *text = NULL;
    struct err err;

    if (!profile)
        return json_incref(sandbox);
    if (json_object_get(sandbox, "narrow"))
        err_set(&err, ERR_UNSUPPORTED,
                "your client says what commands may do: leave `profile` out");
    else if (config_profile(server->config.file, profile, server->config.home, &wanted, &err) ==
             0) {
        json_object_set_new(sandbox, "narrow", profile_to_json(&wanted.profile));
        return json_incref(sandbox);
    }
    text = alloc_strf("exec_command was not called: %s", err.msg);
    mcp_tool_fail(call, text);
    return NULL;
}

/* --- the tools --- */

void tool_exec_command(struct mcp_call *call, const struct exec_command_arguments *arguments)
{
    AUTO_FREE char *dir = mcp_tool_dir(call, arguments->workdir);
    uint64_t wait_ms = wait_at_most(call, arguments->yield_time_ms, CALL_MS_MAX);
    AUTO_JSON json_t *until = NULL;
    json_t *sandbox;
    json_t *params;

    if (!read_until(call, arguments->until, &until))
        return;
    sandbox = sandbox_within(call, arguments->profile);
    if (!sandbox)
        return;
    params = json_pack("{s:s, s:s, s:o, s:o*, s:O*}", "cmd", arguments->cmd, "cwd", dir, "sandbox",
                       sandbox, "layer", mcp_layer_ref(call->session->mcp), "until", until);
    set_text(params, "shell", arguments->shell);
    set_text(params, "stdin", arguments->stdin);
    set_flag(params, "login", arguments->login);
    set_flag(params, "tty", arguments->tty);
    set_flag(params, "screen", arguments->tty);
    if (arguments->env)
        json_object_set(params, "env", (json_t *)arguments->env);
    set_number(params, "yieldTimeMs", wait_ms);
    set_number(params, "maxOutputTokens", arguments->max_output_tokens);
    ask_session(call, "session/exec", params, wait_ms);
}

void tool_write_stdin(struct mcp_call *call, const struct write_stdin_arguments *arguments)
{
    bool is_poll = !arguments->chars || !*arguments->chars;
    uint64_t otherwise = is_poll ? 5000 : 250;
    uint64_t asked = arguments->yield_time_ms == UINT64_MAX ? otherwise : arguments->yield_time_ms;
    uint64_t wait_ms = wait_at_most(call, asked, is_poll ? POLL_MS_MAX : CALL_MS_MAX);
    json_t *until;
    json_t *params;

    if (!read_until(call, arguments->until, &until))
        return;
    params =
        json_pack("{s:I, s:o*}", "sessionId", (json_int_t)arguments->session_id, "until", until);
    set_text(params, "chars", arguments->chars);
    set_flag(params, "close", arguments->close);
    set_number(params, "yieldTimeMs", wait_ms);
    set_number(params, "maxOutputTokens", arguments->max_output_tokens);
    ask_session(call, "session/write", params, wait_ms);
}

void tool_wait_for(struct mcp_call *call, const struct wait_for_arguments *arguments)
{
    uint64_t wait_ms = wait_at_most(call, arguments->yield_time_ms, POLL_MS_MAX);
    AUTO_JSON json_t *given = json_object();
    json_t *until = NULL;
    json_t *params;

    set_text(given, "text", arguments->text);
    set_number(given, "quiet_ms", arguments->quiet_ms);
    set_number(given, "bytes", arguments->bytes);
    if (!read_until(call, json_object_size(given) ? given : NULL, &until))
        return;
    params =
        json_pack("{s:I, s:o*}", "sessionId", (json_int_t)arguments->session_id, "until", until);
    set_number(params, "yieldTimeMs", wait_ms);
    set_number(params, "maxOutputTokens", arguments->max_output_tokens);
    ask_session(call, "session/wait", params, wait_ms);
}

void tool_terminate_session(struct mcp_call *call,
                            const struct terminate_session_arguments *arguments)
{
    json_t *params = json_pack("{s:I}", "sessionId", (json_int_t)arguments->session_id);

    set_number(params, "graceMs", arguments->grace_ms);
    ask_session(call, "session/terminate", params, 0);
}

/* --- looking --- */

/* The keys of `from`, renamed. */
struct name {
    const char *ours;
    const char *theirs;
};

static json_t *rename_keys(const json_t *from, const struct name *names, size_t len)
{
    json_t *json = json_object();

    for (size_t i = 0; i < len; i++)
        json_object_set(json, names[i].theirs, json_object_get(from, names[i].ours));
    return json;
}

static void on_screen(struct mcp_call *call, const json_t *result)
{
    static const struct name names[] = {
        {"lines", "lines"},
        {"scrollback", "scrollback"},
        {"rows", "rows"},
        {"columns", "columns"},
        {"cursorRow", "cursor_row"},
        {"cursorColumn", "cursor_column"},
        {"alternate", "alternate"},
        {"cursorVisible", "cursor_visible"},
        {"title", "title"},
    };
    json_t *lines = json_object_get(result, "lines");
    size_t last = json_array_size(lines);
    AUTO(buf_done) struct buf text;

    while (last && !json_string_length(json_array_get(lines, last - 1)))
        json_array_remove(lines, --last);
    buf_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < json_array_size(lines); i++)
        buf_appendf(&text, "%s\n", json_string_value(json_array_get(lines, i)));
    mcp_tool_result(call, text.data ? text.data : "",
                    rename_keys(result, names, sizeof names / sizeof *names));
}

void tool_read_screen(struct mcp_call *call, const struct read_screen_arguments *arguments)
{
    const struct mcp_request request = {
        .method = "session/screen",
        .params = json_pack("{s:I, s:I}", "sessionId", (json_int_t)arguments->session_id,
                            "scrollback", (json_int_t)arguments->scrollback),
        .on_result = on_screen,
    };

    mcp_tool_ask(call, &request);
}

static json_t *session_to_json(const json_t *session)
{
    static const struct name names[] = {
        {"sessionId", "session_id"},     {"command", "command"}, {"tty", "tty"}, {"pid", "pid"},
        {"outputBytes", "output_bytes"},
    };
    const char *uri = json_string_value(json_object_get(session, "cwd"));
    struct err ignored; /* a URI of our own */
    AUTO_FREE char *dir = file_uri_parse(uri ? uri : "", &ignored);
    json_t *json = rename_keys(session, names, sizeof names / sizeof *names);

    json_object_set_new(json, "workdir", json_lossy(dir ? dir : ""));
    return json;
}

json_t *mcp_sessions_to_json(const json_t *result)
{
    json_t *list = json_array();
    const json_t *session;
    size_t i;

    json_array_foreach(json_object_get(result, "sessions"), i, session)
        json_array_append_new(list, session_to_json(session));
    return json_pack("{s:o}", "sessions", list);
}

static void on_sessions(struct mcp_call *call, const json_t *result)
{
    const json_t *sessions = json_object_get(result, "sessions");
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < json_array_size(sessions); i++) {
        const json_t *session = json_array_get(sessions, i);

        buf_appendf(&text, "%" JSON_INTEGER_FORMAT "  %s\n",
                    json_integer_value(json_object_get(session, "sessionId")),
                    json_string_value(json_object_get(session, "command")));
    }
    mcp_tool_result(call, text.len ? text.data : "No command runs.", mcp_sessions_to_json(result));
}

void tool_list_sessions(struct mcp_call *call)
{
    const struct mcp_request request = {.method = "session/list", .on_result = on_sessions};

    mcp_tool_ask(call, &request);
}

/* The tool explain_permissions: permissions/explain of our own protocol, which knows everything that `cordon explain` does; a
 * model is told what it can act on. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "mcp/tools.gen.h"
#include "mcp/tools.h"

#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void copy_text(json_t *to, const char *name, const json_t *from, const char *key)
{
    if (text_of(from, key))
        json_object_set(to, name, json_object_get(from, key));
}

/* --- one question --- */

static void on_place(struct mcp_call *call, const json_t *answer)
{
    bool is_allowed = json_is_true(json_object_get(answer, "allowed"));
    json_t *structured = json_pack("{s:b}", "allowed", is_allowed);
    AUTO(buf_done) struct buf text;

    copy_text(structured, "asked", answer, "asked");
    copy_text(structured, "verdict", answer, "verdict");
    copy_text(structured, "decided_by", answer, "decided_by");
    copy_text(structured, "note", answer, "note");
    buf_init(&text, 1 << 20);
    buf_appendf(&text, "%s: %s", text_of(answer, "asked"), is_allowed ? "allowed" : "refused");
    if (text_of(answer, "verdict"))
        buf_appendf(&text, " (%s)", text_of(answer, "verdict"));
    if (text_of(answer, "decided_by"))
        buf_appendf(&text, ", by %s", text_of(answer, "decided_by"));
    if (text_of(answer, "note"))
        buf_appendf(&text, "; %s", text_of(answer, "note"));
    mcp_tool_result(call, text.data, structured);
}

static void on_command(struct mcp_call *call, const json_t *command)
{
    const json_t *requirement = json_object_get(command, "requirement");
    const char *outcome = text_of(requirement, "outcome");
    const char *reason = text_of(requirement, "reason");
    bool is_forbidden = outcome && str_eq(outcome, "forbid");
    const char *verdict = is_forbidden                        ? "forbidden"
                          : outcome && str_eq(outcome, "ask") ? "asks"
                                                              : "runs";
    AUTO_FREE char *text = alloc_strf("%s: %s", verdict, reason ? reason : "no rule is about it");

    mcp_tool_result(call, text,
                    json_pack("{s:b, s:s, s:s*, s:s*}", "allowed", !is_forbidden, "verdict",
                              verdict, "decided_by", text_of(requirement, "cause"), "note",
                              reason));
}

/* --- everything --- */

/* A list of `structured`, made when there is something for it. */
static void add_to(json_t *structured, const char *name, const char *text)
{
    json_t *list = json_object_get(structured, name);

    if (!list) {
        list = json_array();
        json_object_set_new(structured, name, list);
    }
    json_array_append_new(list, json_string(text));
}

/* The path as seen from the writable directory that it lies in; else the path. */
static const char *inside_of(const json_t *entries, const char *path)
{
    const char *inside = path;

    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        const char *root = text_of(entry, "path");
        const char *access = text_of(entry, "access");

        if (root && access && str_eq(access, "write") && path_is_within(path, root) &&
            path[strlen(root)] == '/' && path + strlen(root) + 1 > inside)
            inside = path + strlen(root) + 1;
    }
    return inside;
}

static void add_once(json_t *structured, const char *name, const char *text)
{
    const json_t *list = json_object_get(structured, name);

    for (size_t i = 0; i < json_array_size(list); i++)
        if (str_eq(json_string_value(json_array_get(list, i)), text))
            return;
    add_to(structured, name, text);
}

static void add_entries(json_t *structured, const json_t *entries)
{
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        const char *access = text_of(entry, "access");
        const char *path = text_of(entry, "path");

        if (!access || !path)
            continue;
        if (str_eq(access, "write"))
            add_to(structured, "writable", path);
        else if (str_eq(access, "deny"))
            add_to(structured, "denied", path);
        else if (json_is_true(json_object_get(entry, "protected")))
            add_once(structured, "protected", inside_of(entries, path));
    }
}

static void add_hosts(json_t *structured, const json_t *policy)
{
    const json_t *rules = json_object_get(policy, "rules");

    for (size_t i = 0; i < json_array_size(rules); i++) {
        const json_t *rule = json_array_get(rules, i);
        const char *decision = text_of(rule, "decision");
        json_int_t port = json_integer_value(json_object_get(rule, "port"));
        AUTO_FREE char *host =
            port ? alloc_strf("%s:%" JSON_INTEGER_FORMAT, text_of(rule, "pattern"), port)
                 : alloc_str(text_of(rule, "pattern"));

        if (host && decision && str_eq(decision, "allow"))
            add_to(structured, "hosts", host);
    }
}

static void append_list(struct buf *text, const char *title, const json_t *structured,
                        const char *name)
{
    const json_t *list = json_object_get(structured, name);

    if (!json_array_size(list))
        return;
    buf_appendf(text, "%s:", title);
    for (size_t i = 0; i < json_array_size(list); i++)
        buf_appendf(text, " %s", json_string_value(json_array_get(list, i)));
    buf_append_str(text, "\n");
}

static void on_everything(struct mcp_call *call, const json_t *answer)
{
    const json_t *network = json_object_get(answer, "network");
    const json_t *warnings = json_object_get(answer, "warnings");
    json_t *structured = json_object();
    AUTO(buf_done) struct buf text;

    copy_text(structured, "profile", json_object_get(answer, "profile"), "name");
    copy_text(structured, "workspace", answer, "folder");
    copy_text(structured, "network", network, "access");
    add_hosts(structured, json_object_get(network, "policy"));
    add_entries(structured, json_object_get(answer, "entries"));
    for (size_t i = 0; i < json_array_size(warnings); i++)
        add_to(structured, "warnings", json_string_value(json_array_get(warnings, i)));
    buf_init(&text, 1 << 24);
    buf_appendf(&text, "Profile: %s\nWorkspace: %s\nNetwork: %s\n", text_of(structured, "profile"),
                text_of(structured, "workspace"), text_of(structured, "network"));
    append_list(&text, "Hosts", structured, "hosts");
    append_list(&text, "May be written", structured, "writable");
    append_list(&text, "But not in these", structured, "protected");
    append_list(&text, "May not be read", structured, "denied");
    append_list(&text, "Note", structured, "warnings");
    mcp_tool_result(call, text.data, structured);
}

static void on_result(struct mcp_call *call, const json_t *result)
{
    const json_t *answer = json_object_get(result, "answer");
    const json_t *command = json_object_get(answer, "command");

    if (text_of(answer, "kind"))
        on_place(call, answer);
    else if (json_is_object(command))
        on_command(call, command);
    else
        on_everything(call, answer);
}

void tool_explain_permissions(struct mcp_call *call,
                              const struct explain_permissions_arguments *arguments)
{
    AUTO_FREE char *dir = mcp_tool_dir(call, arguments->workdir);
    struct mcp_request request = {.method = "permissions/explain", .on_result = on_result};
    json_t *argv;

    if (!!arguments->path + !!arguments->command + !!arguments->host > 1) {
        mcp_tool_fail(call, "ask for one of path, command and host");
        return;
    }
    argv = arguments->command ? json_pack("[s, s, s]", "bash", "-c", arguments->command) : NULL;
    request.params = json_pack("{s:s, s:o, s:s*, s:s*, s:s*, s:o*}", "cwd", dir, "sandbox",
                               mcp_tool_sandbox(call), "path", arguments->path, "access",
                               arguments->access, "host", arguments->host, "argv", argv);
    mcp_tool_ask(call, &request);
}

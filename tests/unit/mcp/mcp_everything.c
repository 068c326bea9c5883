/* Cordon's server of MCP with the tools, resources and prompts besides that the conformance suite of MCP asks for by name
 * (tests/e2e/test_mcp_conformance.py), as "everything servers" have them. The product has none of these: what they show to be
 * right is all around them, transport, dialects, streams, questions, progress, which is the product's own.
 *
 *     mcp_everything mcp [OPTION]...      the options of cordon mcp */
#include "cli/command.h"
#include "cli/mcp.h"
#include "cli/serve.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "loop/loop.h"
#include "mcp/mcp.h"
#include "mcp/tools.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

const struct command *const commands[] = {&command_serve, &command_mcp, NULL};

/* One red pixel; and a sound of no length. */
#define PNG                                                                                        \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJg" \
    "gg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"
#define NO_ARGUMENTS "{\"type\":\"object\",\"properties\":{}}"

static json_t *parse(const char *text)
{
    json_error_t where;
    json_t *value = json_loads(text, 0, &where);

    if (!value)
        abort();
    return value;
}

/* Takes the content of the one text that the result is. */
static void say(struct mcp_call *call, char *text)
{
    mcp_call_result(call, json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text",
                                    json_lossy(text), "isError", 0));
    free(text);
}

/* --- what is always the same --- */

static const struct {
    const char *name; /* of a tool, a prompt or a resource */
    const char *result;
} fixed[] = {
    {"test_simple_text", "{\"content\":[{\"type\":\"text\",\"text\":\"This is a simple text "
                         "response for testing.\"}]}"},
    {"test_image_content", "{\"content\":[" IMAGE "]}"},
    {"test_audio_content",
     "{\"content\":[{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}]}"},
    {"test_embedded_resource",
     "{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
     "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource content.\"}}]}"},
    {"test_multiple_content_types",
     "{\"content\":[{\"type\":\"text\",\"text\":\"Multiple content types test:\"}," IMAGE
     ",{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\","
     "\"mimeType\":\"application/"
     "json\",\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\"}}"
     "]}"},
    {"test_error_handling",
     "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"This tool intentionally returns "
     "an error for testing\"}]}"},
    {"json_schema_2020_12_tool", "{\"content\":[]}"},
    {"test_simple_prompt",
     "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"This is a simple "
     "prompt for testing.\"}}]}"},
    {"test_prompt_with_image",
     "{\"messages\":[{\"role\":\"user\",\"content\":" IMAGE
     "},{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Please analyze the image "
     "above.\"}}]}"},
    {"test://static-text", "{\"contents\":[{\"uri\":\"test://static-text\",\"mimeType\":\"text/"
                           "plain\",\"text\":\"This is "
                           "the content of the static text resource.\"}]}"},
    {"test://static-binary",
     "{\"contents\":[{\"uri\":\"test://static-binary\",\"mimeType\":\"image/png\",\"blob\":\"" PNG
     "\"}]}"},
};

static bool answer_fixed(struct mcp_call *call, const char *name)
{
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (str_eq(fixed[i].name, name)) {
            mcp_call_result(call, parse(fixed[i].result));
            return true;
        }
    return false;
}

static void tool_fixed(struct mcp_call *call, const void *arguments)
{
    answer_fixed(call, json_string_value(json_object_get(call->params, "name")));
}

/* --- what takes three steps, 50 ms apart --- */

struct walk {
    struct mcp_call *call;
    struct loop_timer *timer;
    void (*step)(struct mcp_call *call, unsigned number);
    unsigned number;
};

static void walk_free(void *data)
{
    struct walk *walk = data;

    loop_timer_free(walk->timer);
    free(walk);
}

static void walk_on(void *data)
{
    struct walk *walk = data;
    struct mcp_call *call = walk->call;

    if (walk->step)
        walk->step(call, walk->number);
    if (++walk->number < 3) {
        loop_timer_start(walk->timer, 50 * CLOCK_NS_PER_MS);
        return;
    }
    walk_free(walk);
    say(call, alloc_str("done"));
}

static void walk_start(struct mcp_call *call, void (*step)(struct mcp_call *call, unsigned number))
{
    struct walk *walk = alloc_zero(1, sizeof *walk);

    walk->call = call;
    walk->step = step;
    walk->timer = loop_timer_new(call->session->mcp->loop, walk_on, walk);
    mcp_call_on_cancel(call, walk_free, walk);
    walk_on(walk);
}

static void log_step(struct mcp_call *call, unsigned number)
{
    static const char *const texts[] = {"Tool execution started", "Tool processing data",
                                        "Tool execution completed"};

    mcp_call_log(call, MCP_LEVEL_INFO, "everything", json_string(texts[number]));
}

static void progress_step(struct mcp_call *call, unsigned number)
{
    mcp_call_progress(call, number * 50, 100, NULL);
}

static void tool_logging(struct mcp_call *call, const void *arguments)
{
    walk_start(call, log_step);
}

static void tool_progress(struct mcp_call *call, const void *arguments)
{
    walk_start(call, progress_step);
}

/* The client gets the rest when it comes back. */
static void tool_reconnection(struct mcp_call *call, const void *arguments)
{
    const struct mcp_sender *sender = &call->session->sender;

    if (sender->let_go)
        sender->let_go(sender->context, call->stream);
    walk_start(call, NULL);
}

/* --- what asks the client --- */

struct asking {
    struct mcp_call *call;
    const char *before; /* what is said of its answer */
    int64_t id;
};

static void asking_free(void *data)
{
    struct asking *asking = data;

    mcp_session_withdraw(asking->call->session, asking->id, "the call was cancelled");
    free(asking);
}

static void on_answer(void *data, const struct mcp_message *message)
{
    struct asking *asking = data;
    const struct asking was = *asking;
    char *text;

    free(asking);
    if (!message) /* the call goes with the session */
        return;
    text = json_dumps(message->kind == MCP_RESULT ? message->result : message->data,
                      JSON_COMPACT | JSON_ENCODE_ANY);
    say(was.call, alloc_strf("%s%s", was.before, text ? text : "none"));
    free(text);
}

static void ask(struct mcp_call *call, const char *capability, const char *method, json_t *params)
{
    struct asking *asking;

    if (!json_object_get(call->capabilities, capability)) {
        json_decref(params);
        mcp_tool_fail(call, "the client does not support that");
        return;
    }
    asking = alloc_zero(1, sizeof *asking);
    *asking = (struct asking){
        .call = call,
        .before = str_eq(capability, "sampling") ? "LLM response: " : "Elicitation completed: ",
    };
    mcp_call_on_cancel(call, asking_free, asking);
    asking->id = mcp_session_ask(call->session, &(struct mcp_question){.call = call,
                                                                       .method = method,
                                                                       .params = params,
                                                                       .on_answer = on_answer,
                                                                       .data = asking});
}

/* In versions without sessions what the client lacks is an error of the protocol. */
static void tool_missing(struct mcp_call *call, const void *arguments)
{
    if (json_object_get(call->capabilities, "sampling"))
        say(call, alloc_str("nothing is missing"));
    else
        mcp_call_fail_data(call, MCP_NO_CAPABILITY, "the client has to support sampling",
                           parse("{\"requiredCapabilities\":{\"sampling\":{}}}"));
}

static void ask_form(struct mcp_call *call, const json_t *message, const char *properties)
{
    ask(call, "elicitation", "elicitation/create",
        json_pack("{s:O, s:{s:s, s:o}}", "message", message, "requestedSchema", "type", "object",
                  "properties", parse(properties)));
}

static void tool_sampling(struct mcp_call *call, const void *arguments)
{
    ask(call, "sampling", "sampling/createMessage",
        json_pack("{s:[{s:s, s:{s:s, s:O}}], s:i}", "messages", "role", "user", "content", "type",
                  "text", "text", json_object_get(arguments, "prompt"), "maxTokens", 100));
}

static void tool_elicitation(struct mcp_call *call, const void *arguments)
{
    ask_form(call, json_object_get(arguments, "message"),
             "{\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"
             "\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}}");
}

static void tool_defaults(struct mcp_call *call, const void *arguments)
{
    AUTO_JSON json_t *message = json_string("Defaults of all kinds");

    ask_form(call, message,
             "{\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
             "\"age\":{\"type\":\"integer\",\"default\":30},"
             "\"score\":{\"type\":\"number\",\"default\":95.5},"
             "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"
             "\"default\":\"active\"},\"verified\":{\"type\":\"boolean\",\"default\":true}}");
}

static void tool_choices(struct mcp_call *call, const void *arguments)
{
    AUTO_JSON json_t *message = json_string("Choices of all kinds");

    ask_form(
        call, message,
        "{\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
        "\"titledSingle\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"value1\",\"title\":\"First "
        "Option\"},{\"const\":\"value2\",\"title\":\"Second Option\"},{\"const\":\"value3\","
        "\"title\":\"Third Option\"}]},"
        "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
        "\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
        "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
        "\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
        "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"value1\","
        "\"title\":\"First Choice\"},{\"const\":\"value2\",\"title\":\"Second Choice\"},"
        "{\"const\":\"value3\",\"title\":\"Third Choice\"}]}}}");
}

#define TOOL(name_, schema, function)                                                              \
    {                                                                                              \
        .name = name_,                                                                             \
        .definition = "{\"name\":\"" name_ "\",\"description\":\"Of the conformance suite.\","     \
                      "\"inputSchema\":" schema "}",                                               \
        .handle = function                                                                         \
    }

static const struct mcp_tool tools[] = {
    TOOL("test_simple_text", NO_ARGUMENTS, tool_fixed),
    TOOL("test_image_content", NO_ARGUMENTS, tool_fixed),
    TOOL("test_audio_content", NO_ARGUMENTS, tool_fixed),
    TOOL("test_embedded_resource", NO_ARGUMENTS, tool_fixed),
    TOOL("test_multiple_content_types", NO_ARGUMENTS, tool_fixed),
    TOOL("test_error_handling", NO_ARGUMENTS, tool_fixed),
    TOOL("test_tool_with_logging", NO_ARGUMENTS, tool_logging),
    TOOL("test_tool_with_progress", NO_ARGUMENTS, tool_progress),
    TOOL("test_logging_tool", NO_ARGUMENTS, tool_logging),
    TOOL("test_missing_capability", NO_ARGUMENTS, tool_missing),
    TOOL("test_streaming_elicitation", NO_ARGUMENTS, tool_defaults),
    TOOL("test_reconnection", NO_ARGUMENTS, tool_reconnection),
    TOOL("test_sampling",
         "{\"type\":\"object\",\"properties\":{\"prompt\":{\"type\":\"string\"}},"
         "\"required\":[\"prompt\"]}",
         tool_sampling),
    TOOL("test_elicitation",
         "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\"}},"
         "\"required\":[\"message\"]}",
         tool_elicitation),
    TOOL("test_elicitation_sep1034_defaults", NO_ARGUMENTS, tool_defaults),
    TOOL("test_elicitation_sep1330_enums", NO_ARGUMENTS, tool_choices),
    TOOL("json_schema_2020_12_tool",
         "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
         "\"$defs\":{\"address\":{\"type\":\"object\",\"properties\":{\"street\":{\"type\":"
         "\"string\"},\"city\":{\"type\":\"string\"}}}},\"properties\":{\"name\":{\"type\":"
         "\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"}},\"additionalProperties\":false}",
         tool_fixed),
    {.name = NULL},
};

/* --- resources and prompts --- */

static void list_resources(struct mcp_call *call)
{
    mcp_call_result(
        call, parse("{\"resources\":[{\"uri\":\"test://static-text\",\"name\":\"static-text\","
                    "\"description\":\"A text.\",\"mimeType\":\"text/plain\"},"
                    "{\"uri\":\"test://static-binary\",\"name\":\"static-binary\","
                    "\"description\":\"A pixel.\",\"mimeType\":\"image/png\"}]}"));
}

static void list_templates(struct mcp_call *call)
{
    mcp_call_result(call,
                    parse("{\"resourceTemplates\":[{\"uriTemplate\":\"test://template/{id}/data\","
                          "\"name\":\"template\",\"description\":\"Data by id.\","
                          "\"mimeType\":\"application/json\"}]}"));
}

static void read_resource(struct mcp_call *call)
{
    static const char start[] = "test://template/";
    const char *uri = json_string_value(json_object_get(call->params, "uri"));
    char *text;

    if (!uri || (!str_starts(uri, start) && !answer_fixed(call, uri))) {
        mcp_call_fail(call, MCP_NO_RESOURCE, "Resource not found");
        return;
    }
    if (!str_starts(uri, start))
        return;
    text = alloc_strf("{\"id\":\"%.*s\",\"templateTest\":true}",
                      (int)strcspn(uri + strlen(start), "/"), uri + strlen(start));
    mcp_call_result(call, json_pack("{s:[{s:s, s:s, s:s}]}", "contents", "uri", uri, "mimeType",
                                    "application/json", "text", text));
    free(text);
}

/* test://watched-resource never changes. */
static void watch(struct mcp_call *call)
{
    mcp_call_result(call, json_object());
}

static void list_prompts(struct mcp_call *call)
{
    mcp_call_result(
        call,
        parse("{\"prompts\":[{\"name\":\"test_simple_prompt\",\"description\":\"Simple.\"},"
              "{\"name\":\"test_prompt_with_arguments\",\"description\":\"With arguments.\","
              "\"arguments\":[{\"name\":\"arg1\",\"description\":\"First.\",\"required\":"
              "true},{\"name\":\"arg2\",\"description\":\"Second.\",\"required\":true}]},"
              "{\"name\":\"test_prompt_with_embedded_resource\",\"description\":\"With a "
              "resource.\",\"arguments\":[{\"name\":\"resourceUri\",\"description\":\"Which.\","
              "\"required\":true}]},{\"name\":\"test_prompt_with_image\",\"description\":"
              "\"With an image.\"}]}"));
}

static const char *argument(const struct mcp_call *call, const char *name)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(call->params, "arguments"), name));

    return text ? text : "";
}

static void get_prompt(struct mcp_call *call)
{
    const char *name = json_string_value(json_object_get(call->params, "name"));
    char *text;

    if (str_eq(name ? name : "", "test_prompt_with_arguments")) {
        text = alloc_strf("Prompt with arguments: arg1='%s', arg2='%s'", argument(call, "arg1"),
                          argument(call, "arg2"));
        mcp_call_result(call, json_pack("{s:[{s:s, s:{s:s, s:s}}]}", "messages", "role", "user",
                                        "content", "type", "text", "text", text));
        free(text);
    } else if (str_eq(name ? name : "", "test_prompt_with_embedded_resource")) {
        mcp_call_result(
            call, json_pack("{s:[{s:s, s:{s:s, s:{s:s, s:s, s:s}}}, {s:s, s:{s:s, s:s}}]}",
                            "messages", "role", "user", "content", "type", "resource", "resource",
                            "uri", argument(call, "resourceUri"), "mimeType", "text/plain", "text",
                            "Embedded resource content for testing.", "role", "user", "content",
                            "type", "text", "text", "Please process the embedded resource above."));
    } else if (!name || !answer_fixed(call, name)) {
        mcp_call_fail(call, MCP_INVALID_PARAMS, "Unknown prompt");
    }
}

static const struct mcp_method methods[] = {
    {.name = "resources/list", .eras = MCP_BOTH, .handle = list_resources},
    {.name = "resources/templates/list", .eras = MCP_BOTH, .handle = list_templates},
    {.name = "resources/read", .eras = MCP_BOTH, .handle = read_resource},
    {.name = "resources/subscribe", .eras = MCP_LEGACY, .handle = watch},
    {.name = "resources/unsubscribe", .eras = MCP_LEGACY, .handle = watch},
    {.name = "prompts/list", .eras = MCP_BOTH, .handle = list_prompts},
    {.name = "prompts/get", .eras = MCP_BOTH, .handle = get_prompt},
    {.name = NULL},
};

int main(int argc, char **argv)
{
    static const struct mcp_extra extra = {
        .tools = tools, .methods = methods, .capabilities = "{\"prompts\":{}}"};

    signal(SIGPIPE, SIG_IGN);
    return argc > 1 ? mcp_program(argv + 1, &extra) : 1;
}

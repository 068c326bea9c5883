/* The tools: what tools/list shows and tools/call runs.
 *
 *     schema/mcp/NAME.json     what it is called, takes and gives; scripts/schema makes the table below of it
 *     void tool_NAME(struct mcp_call *call, const struct NAME_arguments *arguments)
 *         ... mcp_tool_ask(call, &request)          asks the engine, and answers with what it says
 *         ... mcp_tool_result() or mcp_tool_fail()  answers at once
 *
 * The arguments are checked and borrowed from the call. What a model did wrong is a result that says so (isError), never an
 * error of the protocol, which models do not get to see. */
#pragma once

#include "mcp/session.h"
#include "server/schema.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mcp_tool {
    const char *name;
    const char *definition;         /* JSON: what tools/list says of it */
    const struct schema *arguments; /* NULL: `handle` gets them as they are, a json_t */
    size_t arguments_size;          /* of their struct (tools.gen.h) */
    void (*handle)(struct mcp_call *call, const void *arguments);
    bool wants_layer; /* it is not there without a change layer (layer.h) */
};

extern const struct mcp_tool mcp_tools[]; /* ended by one without a name */

/* tools/list, tools/call. */
extern const struct mcp_method mcp_tool_methods[];

/* Each ends the call. `structured` is taken; NULL: there is none. Clients of versions without it get the text alone. */
void mcp_tool_result(struct mcp_call *call, const char *text, json_t *structured);
void mcp_tool_result_text(struct mcp_call *call, json_t *text, json_t *structured); /* both taken */
void mcp_tool_fail(struct mcp_call *call, const char *text);

enum mcp_request_flag {
    MCP_REQUEST_WAITS = 1, /* on a command: it can be cancelled, and tells how long it takes */
};

struct mcp_request {
    const char *method; /* of our own protocol (docs/protocol.md) */
    json_t *params;     /* taken */
    /* Makes the answer; ends the call. */
    void (*on_result)(struct mcp_call *call, const json_t *result);
    unsigned flags;   /* of enum mcp_request_flag */
    uint64_t wait_ms; /* that it takes at most, for its progress; 0: not known */
};

/* An error of the engine becomes a result that says it. */
void mcp_tool_ask(struct mcp_call *call, const struct mcp_request *request);

/* Whether the request of this number (mcp_engine_call()) is the one that the call waits for. */
bool mcp_tool_waits_for(const struct mcp_call *call, int64_t number);

/* Of place.c: the directory as the URI that the engine takes; relative ones are seen from the workspace; NULL: the workspace. Caller
 * frees. */
char *mcp_tool_dir(struct mcp_call *call, const char *dir);

/* What list_sessions gives, of an answer to session/list. */
json_t *mcp_sessions_to_json(const json_t *result);

/* The sandbox of this session's commands, as the engine takes it: a new reference. */
json_t *mcp_tool_sandbox(struct mcp_call *call);

/* The connection of one MCP session to the server that its commands run in: a pair of sockets in this process, and our own
 * protocol (docs/protocol.md) over it. When it is freed, what it started ends. */
#pragma once

#include "base/err.h"
#include "base/list.h"
#include "rpc/message.h"

#include <jansson.h>
#include <stdint.h>

struct mcp;
struct mcp_engine;
struct rpc_handlers;

/* Of the hub of all engines (mcp.h). */
extern const struct rpc_handlers mcp_engine_handlers;

/* NULL on failure. */
struct mcp_engine *mcp_engine_new(struct mcp *mcp, struct err *err);
void mcp_engine_free(struct mcp_engine *engine);

/* That of the server's session behind it; "" until it has answered anything. */
const char *mcp_engine_id(const struct mcp_engine *engine);

/* `answer` NULL: there is none, the connection is gone. Exactly once, from the loop, unless the call is forgotten. */
typedef void mcp_engine_answer_fn(void *data, const struct rpc_message *answer);

/* Takes `params`. Returns its number, by which session/cancel knows it. `on_answer` NULL: the answer does not matter. */
int64_t mcp_engine_call(struct mcp_engine *engine, const char *method, json_t *params,
                        mcp_engine_answer_fn *on_answer, void *data);

/* on_answer is not called any more; unknown numbers are fine. */
void mcp_engine_forget(struct mcp_engine *engine, int64_t number);

/* What comes without being asked for. The listener is its owner's, who takes it out of the list before it goes; it may do so in
 * on_event, but with no other one. */
struct mcp_engine_listener {
    struct list in_engine;
    void (*on_event)(void *data, const char *method, const json_t *params);
    void *data;
};
void mcp_engine_listen(struct mcp_engine *engine, struct mcp_engine_listener *listener);

/* Who is asked: approval/request (`id` is what mcp_engine_reply() takes), and without an id approval/withdrawn. Until then all
 * is refused. */
typedef void mcp_engine_question_fn(void *data, const json_t *id, const json_t *params);
void mcp_engine_take_questions(struct mcp_engine *engine, mcp_engine_question_fn *on_question,
                               void *data);
void mcp_engine_reply(struct mcp_engine *engine, const json_t *id, json_t *result); /* taken */

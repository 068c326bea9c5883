/* What a model is told of a command, of what the engine answers (docs/protocol.md, session/exec). Pure. */
#pragma once

#include "base/buf.h"

#include <jansson.h>

/* Appends the text, in which there may be NUL: that of docs/model-calls.md, byte for byte, and behind it what was refused. */
void mcp_result_text(const json_t *answer, struct buf *ret);

/* The same as an object: structuredContent of exec_command (schema/mcp). Clients show it to models in place of the text, so it
 * has nothing twice. New reference. */
json_t *mcp_result_structured(const json_t *answer);

/* One denial in words, without a line's end; nothing for what was tried in passing. */
void mcp_result_denial(const json_t *denial, struct buf *ret);

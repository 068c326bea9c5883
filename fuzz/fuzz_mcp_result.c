/* What a model is told, of any JSON in place of the engine's answer. Beside memory errors: the text and the object can be sent. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "mcp/result.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_JSON json_t *answer = json_parse((const char *)data, size, &(struct err){0});
    AUTO_JSON json_t *structured = answer ? mcp_result_structured(answer) : NULL;
    AUTO_FREE char *written = structured ? json_dumps(structured, 0) : NULL;
    AUTO(buf_done) struct buf text;

    buf_init(&text, 1 << 24);
    if (answer)
        mcp_result_text(answer, &text);
    if (answer && (!written || !utf8_is_valid(text.data ? text.data : "", text.len)))
        abort();
    return 0;
}

/* What a model sees of a call to exec_command or write_stdin, byte for byte
 * (docs/model-calls.md):
 *
 *     Chunk ID: 3fa96e
 *     Wall time: 0.2507 seconds
 *     Process exited with code 0            or: Process running with session ID 1000
 *     Original token count: 12
 *     Note: ...                             ours: one for each thing to tell, in practice none
 *     Output:
 *     text
 *
 * Models know this layout by heart, so what is added stands where it moves no line that they know:
 * behind the last of them.
 */
#pragma once

#include "base/err.h"
#include "output/truncate.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct headtail;

enum { MODEL_CHUNK_ID_SIZE = 7 }; /* six hex digits and NUL */

#define MODEL_TOKENS_DEFAULT UINT64_C(10000) /* docs/model-calls.md */

/* The low 24 bits as six lower-case hex digits. */
void model_chunk_id(uint32_t number, char ret_id[MODEL_CHUNK_ID_SIZE]);

/* A random one, from getrandom(2). */
int model_chunk_id_random(char ret_id[MODEL_CHUNK_ID_SIZE], struct err *err);

enum model_end {
    MODEL_EXITED,  /* `number` is the exit code */
    MODEL_RUNNING, /* `number` is the session id */
    MODEL_UNKNOWN, /* neither line */
};

struct model_response {
    const char *chunk_id; /* NULL or "": no such line */
    uint64_t wall_ns;
    enum model_end end;
    int number;
    const struct headtail *output; /* all that was collected */
    const uint64_t *asked_tokens;  /* NULL: MODEL_TOKENS_DEFAULT */
    struct truncate_budget policy; /* of the turn; the smaller of both counts */
    char *const *notes;            /* NULL-terminated, without newline; NULL: none */
};

/* Appends the response. The text is cut to the budget, and further until header and text together
 * fit 1.2 times the policy. false when the limit of `out` is passed; it may hold a part then. */
bool model_text_format(const struct model_response *response, struct buf *out);

/* --- how long a call waits before it returns (docs/model-calls.md) --- */

enum yield_call {
    YIELD_EXEC,  /* exec_command: 10 s, 250 ms to 30 s */
    YIELD_WRITE, /* write_stdin with something to write: 250 ms, 250 ms to 30 s */
    YIELD_POLL,  /* write_stdin with nothing to write: 5 s, 5 s to the configured maximum */
};

#define YIELD_POLL_MAX_DEFAULT_MS UINT64_C(300000)

struct yield {
    uint64_t ms;
    uint64_t min_ms;
    uint64_t max_ms;
    bool was_clamped; /* something else was asked for */
};

/* `asked_ms` NULL: the default of the call. `poll_max_ms` is the configured maximum of YIELD_POLL,
 * 0 for its default; one below 5 s counts as 5 s. */
struct yield yield_clamp(enum yield_call call, const uint64_t *asked_ms, uint64_t poll_max_ms);

/* "yield_time_ms: 60000 was asked for, 30000 was used (250 to 30000 is possible)", or NULL when
 * nothing was clamped. Caller frees. */
char *model_note_yield(const struct yield *yield, const uint64_t *asked_ms);

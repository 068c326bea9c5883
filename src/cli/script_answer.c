/* What `cordon script` prints for each call: the fields of the answer, and under "text" what a
 * model would see. Measured times are made 0 on request, so that answers can be compared. */
#include "cli/script.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "job/result_json.h"
#include "output/headtail.h"
#include "screen/screen.h"

#include <stdint.h>
#include <string.h>

#define WALL_TIME "Wall time: "

/* The text with the time in its header replaced. */
static json_t *text_json(const struct script *script, const char *text, size_t len)
{
    const char *line = memmem(text, len, WALL_TIME, strlen(WALL_TIME));
    const char *output = memmem(text, len, "\nOutput:", strlen("\nOutput:"));
    AUTO(buf_done) struct buf fixed = {0};
    size_t before;

    if (!script->has_fixed_times || !line || !output || line > output)
        return json_stringn(text, len);
    buf_init(&fixed, SIZE_MAX / 2);
    before = (size_t)(line - text) + strlen(WALL_TIME);
    line = strchr(line, '\n');
    buf_append(&fixed, text, before);
    buf_append_str(&fixed, "0.0000 seconds");
    buf_append(&fixed, line, len - (size_t)(line - text));
    return json_stringn(fixed.data, fixed.len);
}

static json_t *notes_json(char *const *notes)
{
    json_t *list = json_array();

    for (; *notes; notes++)
        json_array_append_new(list, json_lossy(*notes));
    return list;
}

static void add_end(json_t *answer, const struct unified_response *response)
{
    const struct process_end *end = response->end;

    if (!end) {
        json_object_set_new(answer, "session_id", json_integer(response->session_id));
        return;
    }
    json_object_set_new(answer, "exit_code", json_integer(response->exit_code));
    if (end->how == PROCESS_SIGNALED)
        json_object_set_new(answer, "signal", json_integer(end->signal));
    if (end->how == PROCESS_FAILED_TO_START)
        json_object_set_new(answer, "failed", json_lossy(end->failure.msg));
    if (response->limits->memory || response->limits->cpu_time_ns || response->limits->pids ||
        response->limits->file_size)
        json_object_set_new(answer, "limits",
                            limits_to_json(response->limits, response->limits_report));
    if (response->denials->len)
        json_object_set_new(answer, "denials", denials_to_json(response->denials));
}

json_t *script_response_json(const struct script *script, const struct unified_response *response)
{
    static const char *const reasons[] = {
        [UNIFIED_ENDED] = "ended", [UNIFIED_YIELDED] = "yielded", [UNIFIED_MET] = "met"};
    uint64_t wall_ns = script->has_fixed_times ? 0 : response->wall_ns;
    uint64_t total = headtail_total(response->output);
    json_t *answer = json_object();
    AUTO(buf_done) struct buf output;
    uint64_t omitted = 0;

    buf_init(&output, SIZE_MAX / 2);
    headtail_render(response->output, &output, &omitted);
    json_object_set_new(answer, "call", json_string(script->call));
    json_object_set_new(answer, "reason", json_string(reasons[response->reason]));
    add_end(answer, response);
    json_object_set_new(answer, "chunk_id", json_string(response->chunk_id));
    json_object_set_new(answer, "wall_time_seconds",
                        json_real((double)wall_ns / (double)CLOCK_NS_PER_S));
    json_object_set_new(answer, "original_token_count",
                        json_integer((json_int_t)truncate_tokens(total)));
    json_object_set_new(answer, "bytes", json_integer((json_int_t)total));
    json_object_set_new(answer, "omitted_bytes", json_integer((json_int_t)omitted));
    json_object_set_new(answer, "notes", notes_json(response->notes));
    json_object_set_new(answer, "output", json_stringn(output.data ? output.data : "", output.len));
    json_object_set_new(answer, "text", text_json(script, response->text, response->text_len));
    return answer;
}

json_t *script_failure_json(const struct script *script, int session_id, const char *command,
                            const struct err *failure)
{
    json_t *answer = json_object();
    struct store_tombstone tombstone;
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    unified_format_error(script->call, command, failure, &text);
    json_object_set_new(answer, "call", json_string(script->call));
    json_object_set_new(answer, "error", json_string(err_code_name(failure->code)));
    json_object_set_new(answer, "message", json_lossy(failure->msg));
    if (session_id && unified_tombstone(script->unified, session_id, &tombstone))
        json_object_set_new(answer, "ended",
                            json_pack("{s:s, s:i}", "fate", store_fate_name(tombstone.end.fate),
                                      "number", tombstone.end.number));
    json_object_set_new(answer, "text", json_lossy(text.data));
    return answer;
}

static json_t *row_json(const struct screen *screen, unsigned row)
{
    AUTO(buf_done) struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    screen_row(screen, row, &text);
    return json_stringn(text.data ? text.data : "", text.len);
}

json_t *script_screen_json(const struct screen *screen)
{
    json_t *rows = json_array();
    json_t *scrollback = json_array();
    struct screen_info info;

    screen_info(screen, &info);
    for (unsigned row = 0; row < info.rows; row++)
        json_array_append_new(rows, row_json(screen, row));
    for (size_t i = 0; i < info.lines; i++)
        json_array_append_new(scrollback, json_string(screen_line(screen, i)));
    return json_pack("{s:o, s:[i, i], s:b, s:b, s:s, s:i, s:o}", "rows", rows, "cursor",
                     (int)info.cursor_row, (int)info.cursor_column, "cursor_visible",
                     info.is_cursor_visible, "alternate", info.is_alternate, "title", info.title,
                     "columns", (int)info.columns, "scrollback", scrollback);
}

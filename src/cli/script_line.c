/* One line of a script: an object with one key, the name of the call, and under it the parameters
 * (cordon-script(1) lists them). A table has one small function for each call; it reads the
 * parameters and starts the call, or answers at once. */
#include "cli/script.h"

#include "approval/held.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/settings.h"
#include "executor/execution.h"
#include "executor/execution_exec.h"
#include "job/job_table.h"
#include "job/result_json.h"
#include "loop/loop.h"
#include "output/headtail.h"
#include "screen/screen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- parameters --- */

static int read_text(const struct json_at *at, const char *key, const char **ret, struct err *err)
{
    struct json_at field = json_at_field(at, key);

    return json_at_is_given(&field) ? json_at_string(&field, ret, err) : 0;
}

static int read_bool(const struct json_at *at, const char *key, bool *ret, struct err *err)
{
    struct json_at field = json_at_field(at, key);

    return json_at_is_given(&field) ? json_at_bool(&field, ret, err) : 0;
}

/* A whole number, also when it is written as 10000.0, as models write it. */
static int read_number(const struct json_at *at, const char *key, uint64_t max, uint64_t *ret,
                       bool *ret_is_given, struct err *err)
{
    struct json_at field = json_at_field(at, key);
    int64_t number;
    double real;

    *ret_is_given = json_at_is_given(&field);
    if (!*ret_is_given)
        return 0;
    real = json_is_real(field.value) ? json_real_value(field.value) : -1;
    if (real >= 0 && real <= (double)(INT64_C(1) << 53) && real == (double)(uint64_t)real) {
        *ret = (uint64_t)real;
        return *ret <= max ? 0 : json_at_fail(&field, err, "at most %" PRIu64 " is possible", max);
    }
    if (json_at_integer(&field, 0, (int64_t)max, &number, err))
        return -1;
    *ret = (uint64_t)number;
    return 0;
}

static int read_session(const struct json_at *at, int *ret, struct err *err)
{
    struct json_at field = json_at_field(at, "session_id");
    uint64_t id = 0;
    bool is_given;

    if (read_number(at, "session_id", INT32_MAX, &id, &is_given, err))
        return -1;
    if (!is_given)
        return json_at_fail(&field, err, "is missing");
    *ret = (int)id;
    return 0;
}

/* Numbers that a pace points to. */
struct pace_numbers {
    uint64_t yield_ms;
    uint64_t max_tokens;
};

static int read_until(const struct json_at *at, struct model_pace *pace, struct err *err)
{
    struct json_at text = json_at_field(at, "text");
    bool has_quiet;
    bool has_bytes;
    bool is_exit = false;

    if (read_number(at, "quiet_ms", INT32_MAX, &pace->number, &has_quiet, err) ||
        read_number(at, "bytes", INT64_MAX, &pace->number, &has_bytes, err) ||
        read_bool(at, "exit", &is_exit, err) || read_text(at, "text", &pace->text, err))
        return -1;
    if (pace->text) {
        pace->text_len = json_string_length(text.value);
        pace->until = MODEL_UNTIL_TEXT;
    } else if (has_quiet) {
        pace->until = MODEL_UNTIL_QUIET;
    } else if (has_bytes) {
        pace->until = MODEL_UNTIL_BYTES;
    }
    if (is_exit + has_quiet + has_bytes + (pace->text != NULL) > 1)
        return json_at_fail(at, err, "exit, text, quiet_ms and bytes exclude each other");
    return 0;
}

static int read_pace(const struct json_at *at, struct model_pace *pace,
                     struct pace_numbers *numbers, struct err *err)
{
    bool has_yield;
    bool has_tokens;

    if (read_until(at, pace, err) ||
        read_number(at, "yield_time_ms", INT64_MAX, &numbers->yield_ms, &has_yield, err) ||
        read_number(at, "max_output_tokens", INT64_MAX, &numbers->max_tokens, &has_tokens, err))
        return -1;
    pace->yield_ms = has_yield ? &numbers->yield_ms : NULL;
    pace->max_tokens = has_tokens ? &numbers->max_tokens : NULL;
    return 0;
}

static int read_size(const struct json_at *at, struct pty_size *ret, struct err *err)
{
    uint64_t rows = 0;
    uint64_t columns = 0;
    bool ignored;

    if (read_number(at, "rows", UINT16_MAX, &rows, &ignored, err) ||
        read_number(at, "columns", UINT16_MAX, &columns, &ignored, err))
        return -1;
    *ret = (struct pty_size){.rows = (uint16_t)rows, .columns = (uint16_t)columns};
    return 0;
}

static int read_limits(const struct json_at *at, struct resource_limits *ret, struct err *err)
{
    static const char *const keys[] = {"memory", "cpu_time_ms",   "pids", "file_size",
                                       "files",  "address_space", NULL}; /* in enum order */
    struct json_at limits = json_at_field(at, "limits");

    if (!json_at_is_given(&limits))
        return 0;
    if (json_at_object(&limits, err) || json_at_check_keys(&limits, keys, NULL, err))
        return -1;
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const uint64_t unit = i == LIMIT_CPU_TIME ? CLOCK_NS_PER_MS : 1;
        uint64_t number = 0;
        bool is_given = false;

        if (read_number(&limits, keys[i], INT64_MAX / unit, &number, &is_given, err))
            return -1;
        if (is_given &&
            resource_limit_check((enum resource_limit)i, number * unit, &ret->of[i], err))
            return err_wrap(err, "limits.%s", keys[i]);
    }
    return 0;
}

/* --- answers --- */

#define WALL_TIME "Wall time: "

/* The text with the time in its header replaced. */
static json_t *text_json(const struct script *script, const char *text, size_t len)
{
    const char *line = memmem(text, len, WALL_TIME, strlen(WALL_TIME));
    const char *output = memmem(text, len, "\nOutput:", strlen("\nOutput:"));
    AUTO(buf_done) struct buf fixed = {.max = SIZE_MAX / 2};
    size_t before;

    if (!script->has_fixed_times || !line || !output || line > output)
        return json_stringn(text, len);
    before = (size_t)(line - text) + strlen(WALL_TIME);
    line = strchr(line, '\n');
    buf_append(&fixed, text, before);
    buf_append_str(&fixed, "0.0000 seconds");
    buf_append(&fixed, line, len - (size_t)(line - text));
    return json_stringn(fixed.data, fixed.len);
}

/* Those that the line asked for; what is always there would tell nothing new with each answer. */
static void add_limits(json_t *answer, const struct model_call_answer *response)
{
    struct resource_limits asked = *response->limits;
    json_t *limits;

    for (int i = 0; i < LIMIT_COUNT; i++)
        if (asked.defaults & 1u << i)
            asked.of[i] = 0;
    limits = resource_limits_to_json(&asked, response->resource_limits_report);
    if (json_object_size(limits))
        json_object_set(answer, "limits", limits);
    json_decref(limits);
}

static void add_end(json_t *answer, const struct model_call_answer *response)
{
    const struct process_end *end = response->end;

    if (response->denials->len)
        json_object_set_new(answer, "denials", denials_to_json(response->denials));
    if (!end) {
        json_object_set_new(answer, "session_id", json_integer(response->session_id));
        return;
    }
    json_object_set_new(answer, "exit_code", json_integer(response->exit_code));
    if (end->how == PROCESS_SIGNALED)
        json_object_set_new(answer, "signal", json_integer(end->signal));
    if (end->how == PROCESS_FAILED_TO_START)
        json_object_set_new(answer, "failed", json_lossy(end->failure.msg));
    add_limits(answer, response);
}

static json_t *response_json(const struct script *script, const struct model_call_answer *response)
{
    static const char *const reasons[] = {
        [MODEL_CALL_ENDED] = "ended", [MODEL_CALL_YIELDED] = "yielded", [MODEL_CALL_MET] = "met"};
    uint64_t wall_ns = script->has_fixed_times ? 0 : response->wall_ns;
    uint64_t total = headtail_total(response->output);
    json_t *answer = json_object();
    AUTO(buf_done) struct buf output = {.max = SIZE_MAX / 2};
    uint64_t omitted = 0;

    headtail_render(response->output, &output, &omitted);
    json_object_set_new(answer, "call", json_string(script->call));
    json_object_set_new(answer, "reason", json_string(reasons[response->reason]));
    add_end(answer, response);
    json_object_update_new(
        answer,
        json_pack("{s:s, s:f, s:I, s:I, s:I, s:o, s:o, s:o}", "chunk_id", response->chunk_id,
                  "wall_time_seconds", (double)wall_ns / (double)CLOCK_NS_PER_S,
                  "original_token_count", (json_int_t)truncate_tokens(total), "bytes",
                  (json_int_t)total, "omitted_bytes", (json_int_t)omitted, "notes",
                  json_lossy_list(response->notes), "output",
                  json_stringn(output.data ? output.data : "", output.len), "text",
                  text_json(script, response->text, response->text_len)));
    return answer;
}

static json_t *failure_json(const struct script *script, int session_id, const char *command,
                            const struct err *failure)
{
    json_t *answer = json_object();
    struct job_table_tombstone tombstone;
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    model_calls_format_error(script->call, command, failure, &text);
    json_object_set_new(answer, "call", json_string(script->call));
    json_object_set_new(answer, "error", json_string(err_code_name(failure->code)));
    json_object_set_new(answer, "message", json_lossy(failure->msg));
    if (session_id && model_calls_tombstone(script->model_calls, session_id, &tombstone))
        json_object_set_new(answer, "ended",
                            json_pack("{s:s, s:i}", "fate", job_fate_name(tombstone.end.fate),
                                      "number", tombstone.end.number));
    json_object_set_new(answer, "text", json_lossy(text.data));
    return answer;
}

static json_t *row_json(const struct screen *screen, unsigned row)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

    screen_row(screen, row, &text);
    return json_stringn(text.data ? text.data : "", text.len);
}

static json_t *screen_json(const struct screen *screen)
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

/* --- calls --- */

static void on_done(void *data, const struct model_call_answer *response)
{
    struct script *script = data;

    script->answer = response_json(script, response);
    script->is_answered = true;
    script_audit_answer(&script->audit, response);
}

/* What was started, or why not. A call that could not be started is answered by that. */
static void answer_failure(struct script *script, const struct model_call *call, int session_id,
                           const char *command, const struct err *failure)
{
    if (call)
        return;
    script->answer = failure_json(script, session_id, command, failure);
    script->is_answered = true;
}

static void answer_now(struct script *script, json_t *answer)
{
    json_object_set_new(answer, "call", json_string(script->call));
    script->answer = answer;
    script->is_answered = true;
}

/* Nobody is asked: what would have to be is refused. */
static void judge_programs(const struct script *script, const struct model_exec *exec,
                           struct job *job)
{
    const struct workspace *workspace = script->settings->workspace;
    AUTO(strv_done) struct strv argv = model_exec_argv(exec);
    struct execution_options options;
    struct held_execs *execs;

    settings_execution(script->settings, strv_view(&argv), &options);
    options.loop = script->loop;
    execs = execution_execs_for_session(&options);
    if (execs)
        job_set_asker(job, held_new(&(struct held_options){
                               .argv = options.argv,
                               .cwd = exec->workdir,
                               .profile = workspace->profile_name,
                               .own_paths = strv_view(&workspace->own_paths),
                               .execs = execs,
                           }));
}

/* Of every screen that a script asks for. */
static const struct screen_limits screen_limits = {.lines_max = 1000, .bytes_max = 1 << 18};

static int play_exec(struct script *script, const struct json_at *at, struct err *err)
{
    static const char *const stdins[] = {"null", "pipe", NULL};
    struct model_exec exec = {
        .shell = model_calls_shell(script->env),
        .is_login = true,
        .env = script->env,
        .sandbox = script->sandbox,
        .access = script->access,
    };
    struct json_at cmd = json_at_field(at, "cmd");
    struct json_at input = json_at_field(at, "stdin");
    struct pace_numbers numbers;
    struct model_call *call;
    const char *workdir = "";
    AUTO_FREE char *dir = NULL;
    size_t word = 0;
    bool is_tty = false;
    bool has_screen = false;
    struct err failure;

    if (read_bool(at, "screen", &has_screen, err))
        return -1;
    if (json_at_string(&cmd, &exec.cmd, err) || read_text(at, "workdir", &workdir, err) ||
        read_text(at, "shell", &exec.shell, err) || read_bool(at, "tty", &is_tty, err) ||
        read_bool(at, "login", &exec.is_login, err) || read_size(at, &exec.size, err) ||
        read_pace(at, &exec.pace, &numbers, err) || read_limits(at, &exec.limits, err) ||
        (json_at_is_given(&input) && json_at_word(&input, stdins, &word, err)))
        return -1;
    exec.workdir = dir = path_clean(script->settings->workspace->dir, workdir);
    exec.screen = has_screen ? &screen_limits : NULL;
    exec.stdio = is_tty ? PROCESS_TTY : PROCESS_PIPES;
    exec.input = word ? PROCESS_STDIN_PIPE : PROCESS_STDIN_NULL;
    exec.is_judged = workspace_judges_execs(script->settings->workspace);
    script_audit_begin(&script->audit, script->settings, &exec);
    call = model_calls_exec(script->model_calls, &exec, on_done, script, &failure);
    script_audit_started(&script->audit, call ? model_call_id(call) : 0, &failure);
    if (call)
        judge_programs(script, &exec,
                       model_calls_find(script->model_calls, model_call_id(call), err));
    answer_failure(script, call, 0, exec.cmd, &failure);
    return 0;
}

static int play_write(struct script *script, const struct json_at *at, struct err *err)
{
    struct model_write write = {.chars = ""};
    struct json_at chars = json_at_field(at, "chars");
    struct pace_numbers numbers;
    struct err failure;

    if (read_session(at, &write.session_id, err) || read_text(at, "chars", &write.chars, err) ||
        read_text(at, "write_id", &write.name, err) || read_bool(at, "close", &write.closes, err) ||
        read_pace(at, &write.pace, &numbers, err))
        return -1;
    write.len = json_string_length(chars.value);
    answer_failure(script,
                   model_calls_write(script->model_calls, &write, on_done, script, &failure),
                   write.session_id, NULL, &failure);
    return 0;
}

static int play_wait(struct script *script, const struct json_at *at, struct err *err)
{
    struct model_pace pace = {.until = MODEL_UNTIL_TIME};
    struct pace_numbers numbers;
    struct err failure;
    int id = 0;

    if (read_session(at, &id, err) || read_pace(at, &pace, &numbers, err))
        return -1;
    answer_failure(script,
                   model_calls_wait(script->model_calls, id, &pace, on_done, script, &failure), id,
                   NULL, &failure);
    return 0;
}

static int play_terminate(struct script *script, const struct json_at *at, struct err *err)
{
    struct json_at given = json_at_field(at, "session_id");
    struct err failure;
    int id = 0;

    if (!json_at_is_given(&given)) {
        size_t count = model_calls_terminate_all(script->model_calls, 0, MODEL_CALL_GRACE_NS);

        answer_now(script, json_pack("{s:I}", "terminated", (json_int_t)count));
        return 0;
    }
    if (read_session(at, &id, err))
        return -1;
    answer_failure(script,
                   model_calls_terminate(script->model_calls, id, MODEL_CALL_GRACE_NS, on_done,
                                         script, &failure),
                   id, NULL, &failure);
    return 0;
}

static int play_resize(struct script *script, const struct json_at *at, struct err *err)
{
    struct pty_size size;
    struct err failure;
    int id = 0;

    if (read_session(at, &id, err) || read_size(at, &size, err))
        return -1;
    if (model_calls_resize(script->model_calls, id, size, &failure))
        answer_failure(script, NULL, id, NULL, &failure);
    else
        answer_now(script, json_pack("{s:i, s:i}", "rows", size.rows, "columns", size.columns));
    return 0;
}

static json_t *session_json(const struct script *script, int id)
{
    struct err ignored;
    const struct job *job = model_calls_find(script->model_calls, id, &ignored);
    struct job_info info;

    job_info(job, &info);
    return json_pack("{s:i, s:o, s:o, s:b}", "session_id", id, "command", json_lossy(info.command),
                     "cwd", json_lossy(info.cwd), "tty", info.has_tty);
}

static int play_list(struct script *script, const struct json_at *at, struct err *err)
{
    size_t len;
    AUTO_FREE int *ids = model_calls_list(script->model_calls, 0, &len);
    json_t *list = json_array();

    for (size_t i = 0; i < len; i++)
        json_array_append_new(list, session_json(script, ids[i]));
    answer_now(script, json_pack("{s:o}", "sessions", list));
    return 0;
}

static int play_screen(struct script *script, const struct json_at *at, struct err *err)
{
    const struct job *job;
    struct err failure;
    int id = 0;

    if (read_session(at, &id, err))
        return -1;
    job = model_calls_find(script->model_calls, id, &failure);
    if (job && !job_screen(job))
        err_set(&failure, ERR_INVALID, "session %d was started without a screen", id);
    if (job && job_screen(job))
        answer_now(script, screen_json(job_screen(job)));
    else
        answer_failure(script, NULL, id, NULL, &failure);
    return 0;
}

/* --- lines --- */

#define PACE "yield_time_ms", "max_output_tokens", "exit", "text", "quiet_ms", "bytes"

static const char *const exec_keys[] = {"cmd",  "workdir", "tty",    "shell",  "login", "stdin",
                                        "rows", "columns", "screen", "limits", PACE,    NULL};
static const char *const write_keys[] = {"session_id", "chars", "write_id", "close", PACE, NULL};
static const char *const wait_keys[] = {"session_id", PACE, NULL};
static const char *const terminate_keys[] = {"session_id", NULL};
static const char *const resize_keys[] = {"session_id", "rows", "columns", NULL};
static const char *const screen_keys[] = {"session_id", NULL};
static const char *const list_keys[] = {NULL};

static const struct script_call {
    const char *name;
    const char *const *keys;
    int (*play)(struct script *script, const struct json_at *at, struct err *err);
} calls[] = {
    {"exec_command", exec_keys, play_exec}, {"write_stdin", write_keys, play_write},
    {"wait_for", wait_keys, play_wait},     {"terminate", terminate_keys, play_terminate},
    {"resize", resize_keys, play_resize},   {"list", list_keys, play_list},
    {"screen", screen_keys, play_screen},
};

enum { CALLS = sizeof calls / sizeof *calls };

static const struct script_call *find_call(const struct json_at *root, struct err *err)
{
    const char *key;

    if (json_at_object(root, err))
        return NULL;
    key = json_object_iter_key(json_object_iter((json_t *)root->value));
    for (size_t i = 0; key && i < CALLS; i++)
        if (str_eq(key, calls[i].name) && json_object_size(root->value) == 1)
            return &calls[i];
    json_at_fail(root, err,
                 "should have one key, which is exec_command, write_stdin, wait_for, terminate, "
                 "resize, screen or list");
    return NULL;
}

json_t *script_play(struct script *script, const char *line, size_t len, struct err *err)
{
    AUTO_JSON json_t *document = json_parse(line, len, err);
    struct json_at root = json_at_root(document);
    const struct script_call *call;
    struct json_at parameters;

    if (!document || !(call = find_call(&root, err)))
        return NULL;
    parameters = json_at_field(&root, call->name);
    if (json_at_object(&parameters, err) || json_at_check_keys(&parameters, call->keys, NULL, err))
        return NULL;
    script->call = call->name;
    script->is_answered = false;
    if (call->play(script, &parameters, err) || loop_run(script->loop, &script->is_answered, err))
        return NULL;
    return TAKE_PTR(script->answer);
}

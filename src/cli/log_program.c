/* The program behind `cordon log`: the only one that knows the database of the audit log.
 *
 *     cordon-log [OPTION]... [verify]     for `cordon log`, which has checked the options
 *     cordon-log --tidy DIR               moves records from the tail to the database and prunes;
 *                                         started by the program that made the tail grow
 *                                         (audit/audit.h), and detached from it at once
 *
 * Showing comes in two passes over the same records, so that the last N of them need no memory:
 * one counts what matches, the other leaves out all but the last. A record's event decides how its
 * body becomes words: one table, one small function per event; an event that is not known here
 * shows its body as it is. Texts in a body were chosen by those who ran commands, so control
 * characters are made harmless before they reach a terminal. */
#include "audit/record.h"
#include "audit/store.h"
#include "audit/tail.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/console.h"
#include "cli/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- a record as a line or as JSON --- */

enum { SESSION_SHOWN = 8, SESSION_TEXT_SIZE = 32 };

static const char red[] = "\033[31m";
static const char yellow[] = "\033[33m";
static const char faint[] = "\033[2m";
static const char plain[] = "\033[0m";

/* --- reading a body --- */

static json_t *body_parse(const struct audit_record *record)
{
    struct err ignored;

    return json_parse(record->body.at, record->body.len, &ignored);
}

/* "" when it is not there or not a text. */
static const char *text_of(const json_t *body, const char *key)
{
    const char *text = json_string_value(json_object_get(body, key));

    return text ? text : "";
}

static json_int_t number_of(const json_t *body, const char *key)
{
    return json_integer_value(json_object_get(body, key));
}

/* " LABEL text", when there is a text. */
static void add_labelled(struct buf *ret, const char *label, const char *text)
{
    if (*text)
        buf_appendf(ret, "%s%s", label, text);
}

/* As a shell would read it, near enough. */
static void add_words(struct buf *ret, const json_t *words)
{
    size_t i;
    json_t *item;

    json_array_foreach(words, i, item)
    {
        const char *word = json_string_value(item);
        const char *quote =
            word && (!*word || word[strcspn(word, " \t\n\"'\\$`;&|<>()*?[]#~!{}")]) ? "'" : "";

        buf_appendf(ret, "%s%s%s%s", i ? " " : "", quote, word ? word : "?", quote);
    }
}

/* --- one function per event --- */

static void show_begin(const json_t *body, struct buf *ret)
{
    add_words(ret, json_object_get(body, "argv"));
    buf_appendf(ret, "  (in %s, %s", text_of(body, "cwd"), text_of(body, "profile"));
    if (str_eq(text_of(body, "sandbox"), "disabled"))
        buf_append_str(ret, ", no sandbox");
    buf_append_str(ret, ")");
}

static void show_output(const json_t *body, struct buf *ret)
{
    buf_appendf(ret, "%" PRId64 " bytes, and %" PRId64 " of errors",
                (int64_t)number_of(body, "stdout_bytes"), (int64_t)number_of(body, "stderr_bytes"));
}

static void show_asked(const json_t *body, struct buf *ret)
{
    add_words(ret, json_object_get(body, "argv"));
    add_labelled(ret, "  because: ", text_of(body, "reason"));
    add_labelled(ret, "  a yes covers: ", text_of(body, "covers"));
}

static void show_answered(const json_t *body, struct buf *ret)
{
    buf_appendf(ret, "%s, by %s", text_of(body, "decision"), text_of(body, "by"));
    add_labelled(ret, "  new rule: ", text_of(body, "rule"));
}

static void show_held(const json_t *body, struct buf *ret)
{
    const char *decision = text_of(body, "decision");

    buf_append_str(ret, *decision ? decision : "no answer");
    add_labelled(ret, ", by ", text_of(body, "by"));
    buf_appendf(ret, " after %" PRId64 " ms", (int64_t)number_of(body, "held_ms"));
    if (str_starts(decision, "approved") && !json_is_true(json_object_get(body, "done")))
        buf_append_str(ret, ", but not done");
    add_labelled(ret, ": ", text_of(body, "reason"));
    add_labelled(ret, "  a yes covers: ", text_of(body, "covers"));
}

static void show_denied(const json_t *body, struct buf *ret)
{
    buf_append_str(ret, text_of(body, "operation"));
    if (json_is_true(json_object_get(body, "below")))
        buf_appendf(ret, " %" PRId64 " times below", (int64_t)number_of(body, "count"));
    add_labelled(ret, " ", text_of(body, "path"));
    add_labelled(ret, " as ", text_of(body, "path2"));
    add_labelled(ret, " ", text_of(body, "host"));
    if (number_of(body, "port"))
        buf_appendf(ret, " port %" PRId64, (int64_t)number_of(body, "port"));
    add_labelled(ret, " ", text_of(body, "errno"));
    add_labelled(ret, " of ", text_of(body, "program"));
    add_labelled(ret, ", by ", text_of(body, "decided_by"));
    if (str_eq(text_of(body, "evidence"), "heuristic"))
        buf_append_str(ret, " (read from the output, so a guess)");
}

static void show_retried(const json_t *body, struct buf *ret)
{
    buf_appendf(ret, "with %s", text_of(body, "grant"));
}

static void show_exec(const json_t *body, struct buf *ret)
{
    add_words(ret, json_object_get(body, "argv"));
    add_labelled(ret, "  (in ", text_of(body, "cwd"));
    buf_append_str(ret, json_is_true(json_object_get(body, "outside")) ? ", no sandbox)" : ")");
}

/* Also of "connect". */
static void show_file(const json_t *body, struct buf *ret)
{
    buf_append_str(ret, text_of(body, "operation"));
    add_labelled(ret, " ", text_of(body, "path"));
    add_labelled(ret, " as ", text_of(body, "path2"));
    add_labelled(ret, " ", text_of(body, "host"));
    if (*text_of(body, "host"))
        buf_appendf(ret, " port %" PRId64, (int64_t)number_of(body, "port"));
    add_labelled(ret, " of ", text_of(body, "program"));
}

static void show_lost(const json_t *body, struct buf *ret)
{
    buf_appendf(ret, "%" PRId64 " more were done, for which there was no time or no room",
                (int64_t)number_of(body, "count"));
}

static void show_patch_begin(const json_t *body, struct buf *ret)
{
    buf_appendf(ret, "of %" PRId64 " bytes, in %s", (int64_t)number_of(body, "patch_bytes"),
                text_of(body, "cwd"));
}

static void show_patch_end(const json_t *body, struct buf *ret)
{
    buf_append_str(ret, json_is_true(json_object_get(body, "applied")) ? "applied" : "not applied");
    add_labelled(ret, ": ", text_of(body, "reason"));
}

static void show_end(const json_t *body, struct buf *ret)
{
    const json_t *code = json_object_get(body, "exit_code");

    buf_append_str(ret, text_of(body, "end"));
    if (json_is_integer(code))
        buf_appendf(ret, " %" PRId64, (int64_t)json_integer_value(code));
    if (number_of(body, "signal"))
        buf_appendf(ret, " by signal %" PRId64, (int64_t)number_of(body, "signal"));
    buf_appendf(ret, " after %" PRId64 " ms", (int64_t)number_of(body, "wall_time_ns") / 1000000);
    add_labelled(ret, ": ", text_of(body, "reason"));
}

static void show_body(const struct audit_record *record, const json_t *body, struct buf *ret)
{
    static void (*const shows[])(const json_t *, struct buf *) = {
        [AUDIT_BEGIN] = show_begin,         [AUDIT_OUTPUT] = show_output,
        [AUDIT_ASKED] = show_asked,         [AUDIT_ANSWERED] = show_answered,
        [AUDIT_HELD] = show_held,           [AUDIT_DENIED] = show_denied,
        [AUDIT_EXEC] = show_exec,           [AUDIT_FILE] = show_file,
        [AUDIT_CONNECT] = show_file,        [AUDIT_LOST] = show_lost,
        [AUDIT_RETRIED] = show_retried,     [AUDIT_PATCH_BEGIN] = show_patch_begin,
        [AUDIT_PATCH_END] = show_patch_end, [AUDIT_END] = show_end,
    };

    for (size_t i = 0; body && i < sizeof shows / sizeof *shows; i++)
        if (audit_text_eq(record->event, audit_text_of(audit_event_name((enum audit_event)i)))) {
            shows[i](body, ret);
            return;
        }
    buf_append(ret, record->body.at, record->body.len);
}

/* --- denials --- */

/* Whether it tells of something refused: a denial, an answer that is no yes, a run that was
 * denied, forbidden or rejected. */
static bool log_is_denial(const struct audit_record *record)
{
    static const char *const ends[] = {"denied", "forbidden", "rejected"};
    AUTO_JSON json_t *body = body_parse(record);
    const char *decision = text_of(body, "decision");
    const char *end = text_of(body, "end");

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (str_eq(end, ends[i]))
            return true;
    return audit_text_eq(record->event, audit_text_of("denied")) ||
           (*decision && !str_starts(decision, "approved"));
}

/* --- lines --- */

static const char *colour_of(const struct audit_record *record, const json_t *body)
{
    if (log_is_denial(record))
        return red;
    if (audit_text_eq(record->event, audit_text_of("asked")) ||
        audit_text_eq(record->event, audit_text_of("answered")) ||
        audit_text_eq(record->event, audit_text_of("held")))
        return yellow;
    return number_of(body, "exit_code") || number_of(body, "signal") ? yellow : "";
}

/* The line, its line feed included:
 *
 *   2026-11-20 10:34:00.123  4f5c1a2b  begin     make test   (in /home/me/p, workspace-write)
 */
static void log_show_text(const struct audit_record *record, bool is_coloured, struct buf *ret)
{
    AUTO_JSON json_t *body = body_parse(record);
    AUTO(buf_done) struct buf words = {.max = SIZE_MAX / 2};
    const char *colour = is_coloured ? colour_of(record, body) : "";
    struct audit_text id = record->session;
    const char *dot = memrchr(id.at, '.', id.len);
    size_t shown = id.len < SESSION_SHOWN ? id.len : SESSION_SHOWN;
    /* the beginning of the id, and of a server's also the number of the command in its session */
    int rest = dot && dot > id.at + shown ? (int)(id.at + id.len - dot) : 0;
    char session[SESSION_TEXT_SIZE];
    char time[CLOCK_UTC_SIZE];
    AUTO_FREE char *line = NULL;

    clock_format_utc(record->time_ns, time);
    snprintf(session, sizeof session, "%.*s%.*s", (int)shown, id.at, rest, rest ? dot : "");
    buf_appendf(ret, "%s%s  %-*s%s  %s", is_coloured ? faint : "", time, SESSION_SHOWN, session,
                is_coloured ? plain : "", colour);
    buf_appendf(&words, "%-11.*s  ", (int)record->event.len, record->event.at);
    show_body(record, body, &words);
    for (size_t i = 0; i < words.len; i++)
        if (words.data[i] == '\n' || !words.data[i])
            words.data[i] = ' ';
    line = utf8_plain(words.data);
    buf_appendf(ret, "%s%s\n", line, *colour ? plain : "");
}

/* {"seq":7,"time":"2026-11-20T10:34:00.123Z","event":"begin","session":"...","body":{...},
 * "hash":"..."} on one line. */
static void log_show_json(const struct audit_record *record, struct buf *ret)
{
    AUTO_JSON json_t *json = NULL;
    AUTO_FREE char *line = NULL;
    json_t *body = body_parse(record);
    char hex[AUDIT_HEX_SIZE];
    char time[CLOCK_UTC_SIZE];

    clock_format_utc(record->time_ns, time);
    audit_hash_format(record->link.hash, hex);
    json = json_pack("{s:I, s:s, s:o, s:o, s:o, s:o}", "seq", (json_int_t)record->link.seq, "time",
                     time, "event", json_stringn(record->event.at, record->event.len), "session",
                     json_stringn(record->session.at, record->session.len), "body",
                     body ? body : json_null(), "hash", json_stringn(hex, sizeof hex));
    line = json_dumps(json, JSON_COMPACT);
    buf_appendf(ret, "%s\n", line ? line : "null");
}

/* All that this program is; what help texts are made of. */
const struct command *const commands[] = {&command_log, NULL};

enum { PRINT_BYTES = 64 * 1024, READ_TRIES = 3 };

static const uint64_t tail_wait_ns = UINT64_C(2000000000); /* 2 s */

static void store_auto(struct audit_store **slot)
{
    audit_store_close(*slot);
}

/* --- moving records --- */

/* Others may move records at the same time: what was read of the tail is then older than the
 * database, and does not fit. So each step is tried a few times. */
static int try_often(int (*step)(const char *dir, void *data, struct err *err), const char *dir,
                     void *data, struct err *err)
{
    int status = -1;

    for (int tries = 0; status && tries < READ_TRIES; tries++) {
        status = step(dir, data, err);
        if (status && err->code != ERR_INVALID)
            break;
    }
    return status;
}

static int move_once(const char *dir, void *data, struct err *err)
{
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    AUTO(store_auto) struct audit_store *store = NULL;
    const struct audit_limits limits = {AUDIT_KEEP_BYTES, AUDIT_KEEP_NS};

    if (audit_tail_read(dir, &tail, err))
        return -1;
    if (!tail.len)
        return 0;
    if (audit_store_open(dir, AUDIT_STORE_WRITE, &store, err) ||
        audit_store_import(store, &tail, err) ||
        audit_tail_drop(dir, &tail.items[tail.len - 1].link, tail_wait_ns, err))
        return -1;
    return audit_store_prune(store, &limits, clock_wall_ns(), err);
}

static int move_records(const char *dir, struct err *err)
{
    return try_often(move_once, dir, NULL, err);
}

/* A failure is not reported: `cordon log` tries again and says it. */
static int tidy(const char *dir)
{
    struct err ignored;

    if (fork() != 0)
        return EXIT_OK;
    setsid();
    return move_records(dir, &ignored) ? EXIT_FAILED : EXIT_OK;
}

/* --- what there is --- */

struct log {
    struct audit_store *store; /* NULL without a database */
    struct audit_tail tail;
    size_t from; /* the tail's records before this one are in the database, too */
};

static void log_done(struct log *log)
{
    audit_store_close(log->store);
    audit_tail_done(&log->tail);
    log->store = NULL;
    log->from = 0;
}

/* Both parts; what is sound of each is there on failure, too. The tail first: records that are
 * moved meanwhile are in both then, and in none otherwise. */
static int log_read(struct log *log, const char *dir, struct err *err)
{
    struct err later;
    int status = audit_tail_read(dir, &log->tail, err);

    if (audit_store_open(dir, AUDIT_STORE_READ, &log->store, status ? &later : err))
        return -1;
    return status;
}

/* ... and where the tail goes on from the database, which have to fit together. */
static int log_open(const char *dir, void *data, struct err *err)
{
    struct log *log = data;
    struct audit_link head = {0};

    log_done(log);
    if (log_read(log, dir, err) || (log->store && audit_store_head(log->store, &head, err)))
        return -1;
    return audit_store_find_new(&log->tail, &head, &log->from, err);
}

/* --- verifying --- */

struct verdict {
    struct audit_link head;
    uint64_t records;
};

static int verify(const char *dir, void *data, struct err *err)
{
    struct verdict *ret = data;
    AUTO(log_done) struct log log = {0};

    *ret = (struct verdict){0};
    if (log_read(&log, dir, err) ||
        (log.store && audit_store_verify(log.store, &ret->head, &ret->records, err)) ||
        audit_store_find_new(&log.tail, &ret->head, &log.from, err))
        return -1;
    if (log.tail.len > log.from)
        ret->head = log.tail.items[log.tail.len - 1].link;
    ret->records += log.tail.len - log.from;
    return 0;
}

static int verify_print_json(const struct verdict *verdict, const struct err *err)
{
    char hex[AUDIT_HEX_SIZE];
    AUTO_JSON json_t *json = NULL;

    audit_hash_format(verdict->head.hash, hex);
    json = err ? json_pack("{s:b, s:n, s:n, s:n, s:o}", "ok", 0, "records", "last", "hash",
                           "problem", json_lossy(err->msg))
               : json_pack("{s:b, s:I, s:I, s:o, s:n}", "ok", 1, "records",
                           (json_int_t)verdict->records, "last", (json_int_t)verdict->head.seq,
                           "hash", json_stringn(hex, sizeof hex), "problem");
    return console_print_json(json);
}

static int verify_print(const struct verdict *verdict)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    char hex[AUDIT_HEX_SIZE];

    audit_hash_format(verdict->head.hash, hex);
    console_line(&text,
                 "%" PRIu64 " records, all as they were written; the last is %" PRIu64
                 " with the hash %.*s",
                 verdict->records, verdict->head.seq, AUDIT_HEX_SIZE, hex);
    return console_print(&text);
}

static int log_verify(const struct log_options *options, const char *dir)
{
    struct verdict verdict = {0};
    struct err err;
    int failed = try_often(verify, dir, &verdict, &err);
    int status = EXIT_OK;

    if (options->flags & LOG_JSON)
        status = verify_print_json(&verdict, failed ? &err : NULL);
    else if (failed)
        console_say("%s", err.msg);
    else
        status = verify_print(&verdict);
    return status != EXIT_OK ? status : failed ? EXIT_NO : EXIT_OK;
}

/* --- showing --- */

struct pass {
    const struct log_options *options;
    bool is_coloured;
    uint64_t matches; /* seen so far */
    uint64_t skip;    /* of these, not to be shown */
    struct buf *text; /* NULL: only count */
};

static bool is_wanted(const struct log_options *options, const struct audit_record *record)
{
    size_t len = options->session ? strlen(options->session) : 0;

    if (record->time_ns < options->since_ns || record->session.len < len ||
        (len && memcmp(record->session.at, options->session, len) != 0))
        return false;
    return !(options->flags & LOG_DENIED) || log_is_denial(record);
}

static int pass_record(void *data, const struct audit_record *record, struct err *err)
{
    struct pass *pass = data;

    if (!is_wanted(pass->options, record) || pass->matches++ < pass->skip || !pass->text)
        return 0;
    if (pass->options->flags & LOG_JSON)
        log_show_json(record, pass->text);
    else
        log_show_text(record, pass->is_coloured, pass->text);
    if (pass->text->len < PRINT_BYTES)
        return 0;
    if (console_print(pass->text))
        exit(EXIT_FAILED); /* stdout is closed; said by console_print() */
    buf_clear(pass->text);
    return 0;
}

static int pass_all(struct pass *pass, const struct log *log, struct err *err)
{
    int status = log->store ? audit_store_each(log->store, pass_record, pass, err) : 0;

    for (size_t i = log->from; i < log->tail.len; i++)
        pass_record(pass, &log->tail.items[i], err);
    return status;
}

static int log_list(const struct log_options *options, const char *dir)
{
    AUTO(log_done) struct log log = {0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct pass pass = {.options = options,
                        .is_coloured = isatty(STDOUT_FILENO) && !getenv("NO_COLOR")};
    struct err err;
    int status = EXIT_OK;

    if (try_often(log_open, dir, &log, &err))
        status = console_fail(&err);
    if (options->count && pass_all(&pass, &log, &err) == 0)
        pass.skip = pass.matches > options->count ? pass.matches - options->count : 0;
    pass.text = &text;
    pass.matches = 0;
    if (pass_all(&pass, &log, &err))
        status = console_fail(&err);
    return console_print(&text) ? EXIT_FAILED : status;
}

/* --- the program --- */

static int log_main(char **argv)
{
    AUTO(config_file_done) struct config_file place = {0};
    struct log_options options = {0};
    struct err err;
    char **rest;
    bool is_verify;
    int status;

    if (!command_parse(&command_log, argv, &options, &rest, &status))
        return status;
    is_verify = *rest && str_eq(*rest, "verify");
    if (is_verify && !command_parse(&command_log, rest, &options, &rest, &status))
        return status; /* options behind the word count like those in front of it */
    if (config_file_place(&place, &err))
        return console_fail(&err);
    if (!place.dir)
        return console_failf("there is no home directory: set CORDON_HOME");
    if (*rest)
        return console_failf("cordon log takes no argument but \"verify\"");
    if (is_verify)
        return log_verify(&options, place.dir);
    if (move_records(place.dir, &err))
        console_say("no record can be moved to the database: %s", err.msg);
    return log_list(&options, place.dir);
}

int main(int argc, char **argv)
{
    if (argc == 3 && str_eq(argv[1], "--tidy"))
        return tidy(argv[2]);
    return argc > 0 ? log_main(argv) : EXIT_FAILED;
}

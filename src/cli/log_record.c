/* See log_record.h. A record's event decides how its body becomes words: one table, one small function per event; an
 * event that is not known here shows its body as it is. Texts in a body were chosen by those who ran
 * commands, so control characters are made harmless before they reach a terminal. */
#include "cli/log_record.h"

#include "audit/record.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/utf8.h"
#include "timeline/timeline.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static void add_words(struct buf *ret, const json_t *words)
{
    AUTO(strv_done) struct strv argv = {0};
    size_t i;
    json_t *item;

    json_array_foreach(words, i, item)
        strv_push(&argv, json_is_string(item) ? json_string_value(item) : "?");
    timeline_append_argv(strv_view(&argv), ret);
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
    add_labelled(ret, ": ", text_of(body, "reason"));
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

static void show_anew(const json_t *body, struct buf *ret)
{
    size_t i;
    json_t *item;

    buf_append_str(ret, "the log before this one is kept in");
    json_array_foreach(json_object_get(body, "kept"), i, item)
        buf_appendf(ret, "%s %s", i ? " and" : "", json_string_value(item));
    add_labelled(ret, "; ", text_of(body, "problem"));
}

/* "accept of agent: 12 done, 1 left"; "step 3 of 4a0b...: 2 new, 1 changed" */
static void show_layer(const json_t *body, struct buf *ret)
{
    static const struct {
        const char *key, *word;
    } parts[] = {{"added", "new"},     {"modified", "changed"}, {"deleted", "deleted"},
                 {"renamed", "moved"}, {"other", "otherwise"},  {"marked", "to look at"}};
    const json_t *changes = json_object_get(body, "changes");
    const char *name = text_of(body, "name");
    const char *comma = ": ";

    buf_append_str(ret, text_of(body, "action"));
    if (number_of(body, "step"))
        buf_appendf(ret, " %" PRId64, (int64_t)number_of(body, "step"));
    add_labelled(ret, " of ", *name ? name : text_of(body, "layer"));
    for (size_t i = 0; json_is_object(changes) && i < sizeof parts / sizeof *parts; i++)
        if (number_of(changes, parts[i].key)) {
            buf_appendf(ret, "%s%" PRId64 " %s", comma, (int64_t)number_of(changes, parts[i].key),
                        parts[i].word);
            comma = ", ";
        }
    if (!json_is_object(changes))
        buf_appendf(ret, ": %" PRId64 " done, %" PRId64 " left", (int64_t)number_of(body, "done"),
                    (int64_t)number_of(body, "left"));
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
        [AUDIT_ANEW] = show_anew,           [AUDIT_LAYER] = show_layer,
    };

    for (size_t i = 0; body && i < sizeof shows / sizeof *shows; i++)
        if (audit_text_eq(record->event, audit_text_of(audit_event_name((enum audit_event)i)))) {
            shows[i](body, ret);
            return;
        }
    buf_append(ret, record->body.at, record->body.len);
}

/* --- denials --- */

bool log_is_denial(const struct audit_record *record)
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

enum { TIME_SIZE = 48 };

/* With the distance to UTC: "2026-11-20 11:34:00.123 +0100". */
static void format_local(uint64_t wall_ns, char ret[TIME_SIZE])
{
    time_t seconds = (time_t)(wall_ns / CLOCK_NS_PER_S);
    char day[24] = "";
    char zone[8] = "";
    struct tm local;

    if (localtime_r(&seconds, &local)) {
        strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &local);
        strftime(zone, sizeof zone, "%z", &local);
    }
    snprintf(ret, TIME_SIZE, "%s.%03u %s", day,
             (unsigned)(wall_ns % CLOCK_NS_PER_S / CLOCK_NS_PER_MS), zone);
}

void log_show_text(const struct audit_record *record, unsigned look, struct buf *ret)
{
    AUTO_JSON json_t *body = body_parse(record);
    AUTO(buf_done) struct buf words = {.max = SIZE_MAX / 2};
    const bool is_coloured = look & LOG_COLOURED;
    const char *colour = is_coloured ? colour_of(record, body) : "";
    struct audit_text id = record->session;
    const char *dot = memrchr(id.at, '.', id.len);
    size_t shown = id.len < SESSION_SHOWN ? id.len : SESSION_SHOWN;
    /* the beginning of the id, and of a server's also the number of the command in its session */
    int rest = dot && dot > id.at + shown ? (int)(id.at + id.len - dot) : 0;
    char session[SESSION_TEXT_SIZE];
    char time[TIME_SIZE];
    AUTO_FREE char *line = NULL;

    if (look & LOG_LOCAL_TIME)
        format_local(record->time_ns, time);
    else
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

void log_show_json(const struct audit_record *record, struct buf *ret)
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

/* A timeline for readers: JSON and lines. */
#include "timeline/timeline.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* --- JSON --- */

static const char *kind_name(enum timeline_kind kind)
{
    static const char *const names[] = {
        [TIMELINE_DONE] = "done",     [TIMELINE_DENIED] = "denied",
        [TIMELINE_ASKED] = "asked",   [TIMELINE_ANSWERED] = "answered",
        [TIMELINE_EXECUTED] = "exec", [TIMELINE_ENDED] = "exec-end",
        [TIMELINE_MISSED] = "lost",
    };

    return names[kind];
}

static void set_text(json_t *json, const char *key, const char *text)
{
    json_object_set_new(json, key, json_lossy(text));
}

static void set_number(json_t *json, const char *key, uint64_t number)
{
    json_object_set_new(json, key, json_integer((json_int_t)number));
}

static void set_id(json_t *json, const char *key, uint64_t id)
{
    json_object_set_new(json, key, id ? json_integer((json_int_t)id) : json_null());
}

/* "host:port" or "[host]:port" in two; a name that was looked up has no port. */
static void set_address(json_t *json, const struct timeline_event *event)
{
    const char *colon = event->path ? strrchr(event->path, ':') : NULL;
    bool is_bracketed = event->path && *event->path == '[';
    AUTO_FREE char *host = NULL;

    if (!colon || colon < event->path + 2 * is_bracketed) {
        set_text(json, "host", event->path);
        set_id(json, "port", 0);
        return;
    }
    host = alloc_strn(event->path + is_bracketed,
                      (size_t)(colon - event->path) - 2 * (size_t)is_bracketed);
    set_text(json, "host", host);
    set_number(json, "port", strtoul(colon + 1, NULL, 10));
}

static void set_call(json_t *json, const struct timeline_event *event)
{
    bool has_address =
        event->operation && !event->is_socket &&
        (strcmp(event->operation, "connect") == 0 || strcmp(event->operation, "bind") == 0);

    set_id(json, "exec", event->exec);
    set_id(json, "pid", (uint64_t)event->pid);
    set_text(json, "program", event->program);
    set_text(json, "operation", event->operation);
    set_text(json, "call", event->call);
    if (has_address) {
        set_address(json, event);
        return;
    }
    set_text(json, "path", event->path);
    if (event->other_path)
        set_text(json, "path2", event->other_path);
}

static void set_end(json_t *json, const struct timeline_event *event)
{
    bool is_known = event->wait_status >= 0;

    json_object_set_new(json, "exit_code",
                        is_known && WIFEXITED(event->wait_status)
                            ? json_integer(WEXITSTATUS(event->wait_status))
                            : json_null());
    json_object_set_new(json, "signal",
                        is_known && WIFSIGNALED(event->wait_status)
                            ? json_integer(WTERMSIG(event->wait_status))
                            : json_null());
}

static void set_exec(json_t *json, const struct timeline_event *event)
{
    set_id(json, "parent", event->parent);
    set_id(json, "pid", (uint64_t)event->pid);
    set_text(json, "program", event->path);
    json_object_set_new(json, "argv", json_lossy_list(event->argv));
    json_object_set_new(json, "truncated", json_boolean(event->is_truncated));
    set_text(json, "cwd", event->cwd);
    json_object_set_new(json, "outside", json_boolean(event->is_outside));
}

json_t *timeline_event_to_json(const struct timeline_event *event)
{
    json_t *json = json_object();

    set_text(json, "event", kind_name(event->kind));
    set_number(json, "seq", event->seq);
    set_number(json, "time_ns", event->time_ns);
    switch (event->kind) {
    case TIMELINE_DENIED:
        set_text(json, "errno", event->error ? strerrorname_np(event->error) : NULL);
        set_text(json, "decided_by", event->origin);
        json_object_set_new(json, "below", json_boolean(event->is_below));
        set_call(json, event);
        set_number(json, "count", event->count);
        break;
    case TIMELINE_DONE:
        set_call(json, event);
        set_number(json, "count", event->count);
        break;
    case TIMELINE_ASKED:
    case TIMELINE_ANSWERED:
        set_id(json, "question", event->question);
        set_call(json, event);
        if (event->kind == TIMELINE_ANSWERED)
            set_text(json, "answer", event->answer);
        break;
    case TIMELINE_EXECUTED:
        set_id(json, "id", event->exec);
        set_exec(json, event);
        break;
    case TIMELINE_ENDED:
        set_id(json, "id", event->exec);
        set_end(json, event);
        break;
    case TIMELINE_MISSED:
        set_number(json, "count", event->count);
        break;
    }
    return json;
}

json_t *timeline_to_json(const struct timeline *timeline, uint64_t after, size_t max,
                         uint64_t *ret_next)
{
    json_t *json = json_array();
    const struct timeline_event *event;

    while (max-- && (event = timeline_after(timeline, after))) {
        json_array_append_new(json, timeline_event_to_json(event));
        after = event->seq;
    }
    *ret_next = after;
    return json;
}

/* --- lines --- */

static bool is_plain(const char *word)
{
    for (const char *at = word; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("%+,-./:=@_^", *at))
            return false;
    return *word;
}

/* Nothing of it reaches a terminal as anything but text. */
static void append_text(const char *text, struct buf *ret)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            buf_appendf(ret, "\\x%02x", (unsigned char)*text);
        else
            buf_append(ret, text, 1);
}

static void append_word(const char *word, struct buf *ret)
{
    if (is_plain(word)) {
        buf_append_str(ret, word);
        return;
    }
    buf_append_str(ret, "'");
    for (; *word; word++)
        if (*word == '\'')
            buf_append_str(ret, "'\\''");
        else
            append_text((const char[]){*word, '\0'}, ret);
    buf_append_str(ret, "'");
}

void timeline_append_argv(char *const *argv, struct buf *ret)
{
    for (size_t i = 0; argv[i]; i++) {
        if (i)
            buf_append_str(ret, " ");
        append_word(argv[i], ret);
    }
}

static void append_denial(const struct timeline_event *event, struct buf *ret)
{
    const char *name = event->error ? strerrorname_np(event->error) : NULL;

    buf_appendf(ret, "  refused%s%s%s%s%s", name ? " (" : "", name ? name : "", name ? ")" : "",
                event->origin ? " by " : "", event->origin ? event->origin : "");
    if (event->is_below)
        buf_appendf(ret, ", %u below", event->count);
}

static void append_call(const struct timeline_event *event, struct buf *ret)
{
    append_text(event->program ? event->program : "?", ret);
    buf_appendf(ret, "[%d]  %s  ", (int)event->pid, event->operation);
    append_text(event->path ? event->path : "?", ret);
    if (event->other_path) {
        buf_append_str(ret, " -> ");
        append_text(event->other_path, ret);
    }
    if (event->kind == TIMELINE_DENIED)
        append_denial(event, ret);
    else if (event->kind == TIMELINE_ASKED)
        buf_append_str(ret, "  asked");
    else if (event->kind == TIMELINE_ANSWERED)
        buf_appendf(ret, "  answered: %s", event->answer);
    if (event->count > 1 && !event->is_below)
        buf_appendf(ret, "  (%u times)", event->count);
}

static void append_end(const struct timeline_event *event, struct buf *ret)
{
    const char *name;

    buf_appendf(ret, "#%llu  ", (unsigned long long)event->exec);
    if (event->wait_status < 0) {
        buf_append_str(ret, "ended");
    } else if (WIFSIGNALED(event->wait_status)) {
        name = sigabbrev_np(WTERMSIG(event->wait_status));
        buf_appendf(ret, "ended by SIG%s", name ? name : "?");
    } else {
        buf_appendf(ret, "exit %d", WEXITSTATUS(event->wait_status));
    }
}

void timeline_event_line(const struct timeline_event *event, struct buf *ret)
{
    buf_appendf(ret, "%9.4f  ", (double)event->time_ns / 1e9);
    switch (event->kind) {
    case TIMELINE_EXECUTED:
        buf_appendf(ret, "#%llu[%d]  exec  ", (unsigned long long)event->exec, (int)event->pid);
        timeline_append_argv(event->argv, ret);
        if (event->is_outside)
            buf_append_str(ret, "  (outside of the sandbox)");
        break;
    case TIMELINE_ENDED:
        append_end(event, ret);
        break;
    case TIMELINE_MISSED:
        buf_appendf(ret, "%u more, which came faster than they could be read", event->count);
        break;
    case TIMELINE_DONE:
    case TIMELINE_DENIED:
    case TIMELINE_ASKED:
    case TIMELINE_ANSWERED:
        append_call(event, ret);
        break;
    }
}

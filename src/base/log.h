/* Log: one line per event, written at once, without allocation.
 *
 *     log_event(LOG_LEVEL_INFO, "session-started", log_text("id", id), log_int("pid", pid));
 *
 *     2026-11-20T10:34:00.123Z info session-started id=7 pid=4711             LOG_FORM_TEXT
 *     <6>session-started id=7 pid=4711                                        on journald's socket
 *     {"time":"...","level":"info","event":"session-started","id":"7","pid":4711}   LOG_FORM_JSON
 *
 * A function that returns an error does not log it; who handles it does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_form { LOG_FORM_TEXT, LOG_FORM_JSON };

enum {
    LOG_LINE_MAX = 4096,  /* bytes with the line feed: PIPE_BUF, so lines on a pipe do not mix */
    LOG_VALUE_MAX = 1024, /* bytes of one text value */
};

struct log_options {
    int fd;               /* borrowed for as long as anything is logged */
    enum log_level level; /* the least important level that is written */
    enum log_form form;
};

/* Where log_event() writes from now on; before the first call: level info, text, to stderr. In text
 * form, a descriptor that JOURNAL_STREAM names (systemd.exec(5)) gets priority prefixes
 * (sd-daemon(3)) in place of time and level. */
void log_init(const struct log_options *options);

/* A named value. Keys are constants, [a-z0-9_]. Texts are borrowed during the call and may be NULL;
 * their control characters are escaped and ill-formed UTF-8 is replaced. */
struct log_field {
    const char *key;
    enum { LOG_FIELD_TEXT, LOG_FIELD_INT, LOG_FIELD_UINT, LOG_FIELD_BOOL } kind;
    union {
        const char *text;
        int64_t i;
        uint64_t u;
        bool b;
    } value;
};

static inline struct log_field log_text(const char *key, const char *value)
{
    return (struct log_field){.key = key, .kind = LOG_FIELD_TEXT, .value.text = value};
}

static inline struct log_field log_int(const char *key, int64_t value)
{
    return (struct log_field){.key = key, .kind = LOG_FIELD_INT, .value.i = value};
}

static inline struct log_field log_uint(const char *key, uint64_t value)
{
    return (struct log_field){.key = key, .kind = LOG_FIELD_UINT, .value.u = value};
}

static inline struct log_field log_bool(const char *key, bool value)
{
    return (struct log_field){.key = key, .kind = LOG_FIELD_BOOL, .value.b = value};
}

/* Writes one line, or nothing when the level is off. Texts beyond LOG_VALUE_MAX lose their end and
 * fields beyond LOG_LINE_MAX are left out; a last field cut=true says so. A line that the
 * descriptor does not take at once is lost, and counted: the next one that it takes comes behind
 * "log-lines-lost count=N", since nobody may stop a server by not reading. errno is kept. */
#define log_event(level, event, ...)                                                               \
    log_write(level, event, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}})

void log_write(enum log_level level, const char *event, const struct log_field *fields);

/* The log. A line is put together on the stack, field by field; a field that does not fit is taken
 * back as a whole, so a JSON line is always well-formed and a text line never ends in half a name.
 * Both forms quote with the escapes of JSON strings, which leave no control character alone: what a
 * command prints or a path is called cannot forge a line or drive the reader's terminal.
 *
 * The settings are process-wide; they are set once, at the start. */
#include "base/log.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct log_options settings = {.fd = STDERR_FILENO, .level = LOG_LEVEL_INFO};
static bool with_priority;
static uint64_t lost; /* lines, since the last one that was taken */

static const struct {
    const char *name;
    char priority; /* syslog(3) */
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", '3'},
    [LOG_LEVEL_WARN] = {"warn", '4'},
    [LOG_LEVEL_INFO] = {"info", '6'},
    [LOG_LEVEL_DEBUG] = {"debug", '7'},
};

/* By form, for a line that is whole and one that is cut */
static const char *const ends[][2] = {
    [LOG_FORM_TEXT] = {"\n", " cut=true\n"},
    [LOG_FORM_JSON] = {"}\n", ",\"cut\":true}\n"},
};

enum { LONGEST_END = sizeof ",\"cut\":true}\n" };

struct log_line {
    char text[LOG_LINE_MAX];
    size_t len;
    bool is_full; /* the field that is being put does not fit */
    bool is_cut;  /* something is missing in the line */
};

/* JOURNAL_STREAM holds device and inode of the socket; standard error may have been redirected
 * since, so only a descriptor that is that socket counts. */
static bool log_is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uintmax_t device, inode;
    struct stat st;

    if (!stream || sscanf(stream, "%ju:%ju", &device, &inode) != 2 || fstat(fd, &st))
        return false;
    return st.st_dev == device && st.st_ino == inode;
}

void log_init(const struct log_options *options)
{
    settings = *options;
    lost = 0;
    with_priority = log_is_journal(settings.fd);
}

static void log_put(struct log_line *line, const char *text, size_t len)
{
    const size_t room = sizeof line->text - LONGEST_END - line->len;

    if (line->is_full || len > room) {
        line->is_full = true;
        return;
    }
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

static void log_putf(struct log_line *line, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* For short texts of our own: times, numbers, keys. */
static void log_putf(struct log_line *line, const char *fmt, ...)
{
    char text[128];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof text)
        line->is_full = true;
    else
        log_put(line, text, (size_t)len);
}

/* C0, DEL, and C1 in its two-byte form */
static bool log_is_control(const char *text, size_t len)
{
    uint8_t first = (uint8_t)text[0];

    return len == 1 ? first < 0x20 || first == 0x7f : first == 0xc2 && (uint8_t)text[1] < 0xa0;
}

static bool log_is_plain(const char *text, size_t len)
{
    for (size_t i = 0, step; i < len; i += step) {
        if (utf8_next(text + i, len - i, &step) != UTF8_VALID || log_is_control(text + i, step) ||
            strchr(" \"=\\", text[i]))
            return false;
    }
    return len > 0;
}

/* One character as it stands between quotes. */
static void log_put_char(struct log_line *line, const char *text, size_t len)
{
    static const char named[] = "\"\\\n\r\t", names[] = "\"\\nrt";
    const char *found = len == 1 && *text ? strchr(named, *text) : NULL;

    if (found)
        log_putf(line, "\\%c", names[found - named]);
    else if (log_is_control(text, len))
        log_putf(line, "\\u%04x", (unsigned)(uint8_t)text[len - 1]);
    else
        log_put(line, text, len);
}

static void log_put_quoted(struct log_line *line, const char *text, size_t len)
{
    log_put(line, "\"", 1);
    for (size_t i = 0, step; i < len; i += step) {
        if (utf8_next(text + i, len - i, &step) == UTF8_VALID)
            log_put_char(line, text + i, step);
        else
            log_put(line, "\xef\xbf\xbd", 3);
    }
    log_put(line, "\"", 1);
}

static void log_put_text(struct log_line *line, const char *text)
{
    size_t full = text ? strnlen(text, LOG_VALUE_MAX + 1) : 0;
    size_t len = full ? utf8_cut(text, full, LOG_VALUE_MAX) : 0;

    if (len < full)
        line->is_cut = true;
    if (!text)
        log_putf(line, "null");
    else if (settings.form == LOG_FORM_TEXT && log_is_plain(text, len))
        log_put(line, text, len);
    else
        log_put_quoted(line, text, len);
}

static void log_put_field(struct log_line *line, const struct log_field *field)
{
    const size_t before = line->len;

    log_putf(line, settings.form == LOG_FORM_JSON ? ",\"%s\":" : " %s=", field->key);
    switch (field->kind) {
    case LOG_FIELD_TEXT:
        log_put_text(line, field->value.text);
        break;
    case LOG_FIELD_INT:
        log_putf(line, "%" PRId64, field->value.i);
        break;
    case LOG_FIELD_UINT:
        log_putf(line, "%" PRIu64, field->value.u);
        break;
    case LOG_FIELD_BOOL:
        log_putf(line, "%s", field->value.b ? "true" : "false");
        break;
    }
    if (line->is_full) {
        line->len = before;
        line->is_full = false;
        line->is_cut = true;
    }
}

static void log_put_head(struct log_line *line, enum log_level level, const char *event)
{
    char time[CLOCK_UTC_SIZE];

    clock_format_utc(clock_wall_ns(), time);
    if (settings.form == LOG_FORM_JSON)
        log_putf(line, "{\"time\":\"%s\",\"level\":\"%s\",\"event\":", time, levels[level].name);
    else if (with_priority)
        log_putf(line, "<%c>", levels[level].priority);
    else
        log_putf(line, "%s %s ", time, levels[level].name);
    log_put_text(line, event);
}

/* A pipe is writable when it has room for PIPE_BUF bytes, which no line is longer than. */
static bool log_send(const struct log_line *line)
{
    struct pollfd ready = {.fd = settings.fd, .events = POLLOUT};
    ssize_t n;

    if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))
        return false;
    do
        n = write(settings.fd, line->text, line->len);
    while (n < 0 && errno == EINTR);
    return n >= 0;
}

static void log_build(struct log_line *line, enum log_level level, const char *event,
                      const struct log_field *fields)
{
    const char *end;

    line->len = 0;
    line->is_full = line->is_cut = false;
    log_put_head(line, level, event);
    for (; fields->key; fields++)
        log_put_field(line, fields);
    end = ends[settings.form][line->is_cut];
    memcpy(line->text + line->len, end, strlen(end)); /* log_put() keeps room for the longest */
    line->len += strlen(end);
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    const int saved = errno;
    struct log_line line;

    if (level > settings.level)
        return;
    if (lost) {
        log_build(&line, LOG_LEVEL_WARN, "log-lines-lost",
                  (const struct log_field[]){log_uint("count", lost), {.key = NULL}});
        if (log_send(&line))
            lost = 0;
    }
    log_build(&line, level, event, fields);
    if (lost || !log_send(&line))
        lost++;
    errno = saved;
}

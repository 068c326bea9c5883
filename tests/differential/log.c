#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 16384 };

void log_init(struct log *log, const char *folder, bool is_shown)
{
    log->hash = 0xcbf29ce484222325u; /* FNV-1a */
    log->is_shown = is_shown;
    snprintf(log->folder, sizeof log->folder, "%s", folder);
}

static void add(struct log *log, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        log->hash = (log->hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    if (log->is_shown)
        fwrite(text, 1, len, stdout);
}

void log_add(struct log *log, const char *format, ...)
{
    char text[TEXT];
    const char *at = text;
    const size_t len = strlen(log->folder);
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (const char *found; (found = strstr(at, log->folder)); at = found + len) {
        add(log, at, (size_t)(found - at));
        add(log, "{W}", 3);
    }
    add(log, at, strlen(at));
}

/* See console.h. Lines are put together first and written by one write(2), so that they do not mix
 * with the output of a command on the same terminal. */
#include "cli/console.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "job/result_text.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096 };

static bool is_terminal_raw;

void console_set_raw(bool is_raw)
{
    is_terminal_raw = is_raw;
}

/* Caller frees. */
static char *make_plain(char *text)
{
    for (char *at = text; *at; at++)
        if (*at == '\n')
            *at = ' ';
    return utf8_plain(text);
}

void console_say(const char *fmt, ...)
{
    static const char prefix[] = "cordon: ";
    char said[LINE_MAX_BYTES - sizeof prefix - 2]; /* with what is put around it */
    AUTO_FREE char *plain = NULL;
    AUTO_FREE char *line = NULL;
    struct err ignored; /* there is no other place to tell it */
    va_list args;

    va_start(args, fmt);
    vsnprintf(said, sizeof said, fmt, args);
    va_end(args);
    plain = make_plain(said);
    line = alloc_strf("%s%s%s\n", prefix, plain, is_terminal_raw ? "\r" : "");
    fd_write_all(STDERR_FILENO, line, strlen(line), &ignored);
}

int console_fail(const struct err *err)
{
    console_say("%s", err->msg);
    return EXIT_FAILED;
}

void console_line(struct buf *text, const char *fmt, ...)
{
    AUTO_FREE char *line = NULL;
    AUTO_FREE char *plain = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&line, fmt, args) < 0)
        abort(); /* only memory can be missing; see alloc.h */
    va_end(args);
    plain = make_plain(line);
    buf_appendf(text, "%s\n", plain);
}

void console_lines(struct buf *text, const char *prefix, const char *lines)
{
    while (*lines) {
        size_t len = strcspn(lines, "\n");

        console_line(text, "%s%.*s", len ? prefix : "", (int)len, lines);
        lines += len + (lines[len] == '\n');
    }
}

int console_print(const struct buf *text)
{
    struct err err;

    if (fd_write_all(STDOUT_FILENO, text->data, text->len, &err)) {
        err_wrap(&err, "stdout");
        return console_fail(&err);
    }
    return EXIT_OK;
}

struct json_writer {
    struct buf text;
    struct err err;
};

static void json_writer_done(struct json_writer *writer)
{
    buf_done(&writer->text);
}

static int write_json(const char *text, size_t len, void *data)
{
    enum { CHUNK = 65536 };
    struct json_writer *writer = data;

    buf_append(&writer->text, text, len);
    if (writer->text.len < CHUNK)
        return 0;
    len = writer->text.len;
    writer->text.len = 0;
    return fd_write_all(STDOUT_FILENO, writer->text.data, len, &writer->err);
}

/* In pieces, since a command may have written much. On a terminal only ASCII: the control characters
 * of C1 are as good as an escape there. */
int console_print_result(const struct json_t *json, const struct result_texts *texts)
{
    const size_t flags = isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0;
    AUTO(json_writer_done)
    struct json_writer writer = {.text = {.max = SIZE_MAX / 2}, .err = {.code = ERR_BUG}};

    if (texts ? result_texts_dump(json, texts, flags, write_json, &writer)
              : json_dump_callback(json, write_json, &writer, JSON_INDENT(2) | flags)) {
        if (writer.err.code == ERR_BUG)
            err_set(&writer.err, ERR_BUG,
                    texts ? "what was kept of the output cannot be read any more"
                          : "a value cannot be written as JSON");
        else
            err_wrap(&writer.err, "stdout");
        return console_fail(&writer.err);
    }
    buf_append(&writer.text, "\n", 1);
    return console_print(&writer.text);
}

int console_print_json(const struct json_t *json)
{
    return console_print_result(json, NULL);
}

/* What Cordon itself says to a person: lines on stderr that begin with "cordon: ", and whole texts
 * on stdout. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct buf;
struct json_t;
struct result_texts;

/* One line; a line feed is added. Line feeds inside become spaces and other control characters "?",
 * so that a chosen file name can neither forge a line of ours nor command the terminal. */
void console_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same for an error; returns EXIT_FAILED. */
int console_fail(const struct err *err);

/* Appends one line to a text that is to be printed, by the same rule. */
void console_line(struct buf *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends the lines of a text, each behind `prefix`; empty ones stay empty. */
void console_lines(struct buf *text, const char *prefix, const char *lines);

/* While the terminal is raw, lines have to bring their own carriage return. */
void console_set_raw(bool is_raw);

/* Writes to stdout. EXIT_OK, or EXIT_FAILED when it cannot be written (said on stderr). */
int console_print(const struct buf *text);
int console_print_json(const struct json_t *json); /* indented, and a line feed */

/* With texts that are read as they are printed; NULL: there are none. */
int console_print_result(const struct json_t *json, const struct result_texts *texts);

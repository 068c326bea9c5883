/* Commands of models as shells read them: made one word, and what Claude Code puts around them. Pure. */
#pragma once

#include <stdbool.h>

struct buf;
struct strv;

/* Appends the text as one word of a POSIX shell, in quotes unless it has none but plain letters. */
void shell_quote(const char *text, struct buf *ret);

/* Appends the words of a shell that runs the text: "-c", text; with "--" between for one that begins like an option. */
void shell_text_words(const char *text, struct strv *ret);

/* The file that Claude Code (2.1) has its shell write the last directory to: "... && pwd -P >| /tmp/claude-1a2b-cwd" at the
 * end of the text. NULL: the text does not end so. Caller frees. */
char *claude_cwd_file(const char *text, const char *tmp);

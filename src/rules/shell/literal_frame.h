/* The command that shell_literal.c is in the middle of, at one level of nesting. */
#pragma once

#include "base/buf.h"
#include "rules/shell/shell_literal.h"

enum literal_use {
    WORD_OF_COMMAND,
    WORD_DROPPED,   /* the target of a redirection */
    WORD_DELIMITER, /* behind << */
    WORD_BODY,      /* behind <<< */
};

struct literal_frame {
    struct strv words;
    struct buf word;
    bool in_word;         /* even if nothing of it is literal */
    bool has_text;        /* something literal, also an empty quote */
    enum literal_use use; /* of the word that is next or being read */
    unsigned braces;      /* of a brace expansion */
    unsigned cases;       /* `case` without its `esac`: a `)` ends a pattern */
    char closer;          /* ')' or '`'; '\0' at the top */
};

void literal_frame_init(struct literal_frame *frame, char closer, size_t max);
void literal_frame_done(struct literal_frame *frame);

void literal_frame_put(struct literal_frame *frame, const char *text, size_t len);

/* Digits right in front of a redirection are a part of it. */
void literal_frame_drop_number(struct literal_frame *frame);

/* The end of a word. Its text when it was a delimiter: the caller frees; else NULL. */
char *literal_frame_end_word(struct literal_frame *frame, struct shell_literals *ret);

/* The end of a command, without an open word: adds it to `ret`, behind what only leads up to it
 * (reserved words, assignments). */
void literal_frame_end_command(struct literal_frame *frame, struct shell_literals *ret);

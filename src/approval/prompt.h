/* The person at the controlling terminal, of whom one thing after the other is asked.
 *
 *     prompt_open()
 *     prompt_add() -> item->write, item->take       the oldest item is shown, the others wait
 *     prompt_done() or prompt_remove()              it was answered; no answer is wanted any more
 *     prompt_free()
 *
 * The modes of the terminal stay as they are, so there is nothing to restore: a line is what is
 * typed up to Enter, and Ctrl-C is the signal that it always is. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct buf;
struct loop;
struct prompt;

/* What is asked; embedded in a larger struct, zeroed but for the callbacks. */
struct prompt_item {
    /* Appends the question, and what may be typed. */
    void (*write)(const struct prompt_item *item, struct buf *text);
    void (*write_keys)(const struct prompt_item *item, struct buf *text);
    /* A line was typed (NULL: the input has ended). False: it is no answer, the keys are shown
     * again. Otherwise the item has called prompt_done(), and may be gone. NULL is an answer. */
    bool (*take)(struct prompt_item *item, const char *line);
    struct prompt_item *next; /* the prompt's own */
};

/* Opens /dev/tty. ERR_NOT_FOUND without a controlling terminal. NULL on failure. */
struct prompt *prompt_open(struct loop *loop, struct err *err);

/* When no item is left in it; takes NULL. */
void prompt_free(struct prompt *prompt);

/* Asks, as soon as what was asked before is over. ERR_NOT_FOUND when the terminal has gone. */
int prompt_add(struct prompt *prompt, struct prompt_item *item, struct err *err);

/* From item->take(): the line is its answer. */
void prompt_done(struct prompt *prompt, struct prompt_item *item);

/* Takes an item back. If it is on the screen, the person is told, and what is typed next is no
 * answer to any other: it may have been meant for this one. */
void prompt_remove(struct prompt *prompt, struct prompt_item *item);

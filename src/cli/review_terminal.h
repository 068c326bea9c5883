/* A person who is asked line by line at the terminal, by a command that has nothing else to do meanwhile. */
#pragma once

#include "base/err.h"
#include "cli/change_view.h"

#include <stdbool.h>
#include <stddef.h>

struct buf;

struct review_terminal {
    int fd; /* /dev/tty */
    const struct ink *ink;
    size_t lines; /* of the screen */
    bool is_over; /* the input has ended */
};

/* The controlling terminal, if we may read from it: not in the background. ERR_NOT_FOUND: there is none. */
int review_terminal_open(struct review_terminal *ret, struct err *err);
void review_terminal_close(struct review_terminal *terminal);

/* What was typed before is thrown away: it was meant for something else. */
void review_terminal_flush(const struct review_terminal *terminal);

void review_terminal_show(struct review_terminal *terminal, const struct buf *text);

/* The line that is typed, without its end and blanks around it; NULL: the input has ended. Caller frees. */
char *review_terminal_ask(struct review_terminal *terminal, const char *prompt);

/* One of the letters in `keys`, small; others are told of, with `help`, and asked again. The end of the input is 'q', which is
 * to be one of them. */
char review_terminal_key(struct review_terminal *terminal, const char *prompt, const char *keys,
                         const char *help);

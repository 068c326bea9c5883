/* See review_terminal.h. The modes of the terminal stay as they are: a line is what is typed up to Enter, and Ctrl-C is the
 * signal that it always is, by which nothing is done that was not done yet. */
#include "cli/review_terminal.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024, LINES = 24, LINES_MAX = 200 };

int review_terminal_open(struct review_terminal *ret, struct err *err)
{
    /* allow blocking open: the controlling terminal */
    AUTO_CLOSE int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    struct winsize size;

    if (fd < 0 || tcgetpgrp(fd) != getpgrp())
        return err_set(err, ERR_NOT_FOUND, "there is no terminal to ask at");
    *ret = (struct review_terminal){.fd = fd, .ink = ink_of(fd), .lines = LINES};
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row)
        ret->lines = size.ws_row < LINES_MAX ? size.ws_row : LINES_MAX;
    (void)TAKE_FD(fd);
    return 0;
}

void review_terminal_close(struct review_terminal *terminal)
{
    if (terminal->fd >= 0)
        close(terminal->fd);
    terminal->fd = -1;
}

void review_terminal_flush(const struct review_terminal *terminal)
{
    tcflush(terminal->fd, TCIFLUSH);
}

void review_terminal_show(struct review_terminal *terminal, const struct buf *text)
{
    struct err ignored; /* a terminal that is gone answers nothing either */

    if (text->len && fd_write_all(terminal->fd, text->data, text->len, &ignored))
        terminal->is_over = true;
}

static char *trimmed(char *line)
{
    size_t len;

    line += strspn(line, " \t");
    for (len = strlen(line); len && strchr(" \t\r\n", line[len - 1]); len--)
        line[len - 1] = '\0';
    return alloc_str(line);
}

char *review_terminal_ask(struct review_terminal *terminal, const char *prompt)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    char line[LINE_MAX_BYTES];
    ssize_t len;

    buf_appendf(&text, "%s%s%s ", terminal->ink->head, prompt, terminal->ink->off);
    review_terminal_show(terminal, &text);
    if (terminal->is_over)
        return NULL;
    do /* a terminal gives a line at once */
        len = read(terminal->fd, line, sizeof line - 1);
    while (len < 0 && errno == EINTR);
    if (len <= 0) {
        terminal->is_over = true;
        return NULL;
    }
    line[len] = '\0';
    return trimmed(line);
}

char review_terminal_key(struct review_terminal *terminal, const char *prompt, const char *keys,
                         const char *help)
{
    while (true) {
        AUTO_FREE char *line = review_terminal_ask(terminal, prompt);
        AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};

        if (!line)
            return 'q';
        if (line[0] && !line[1] && strchr(keys, line[0]) && line[0] != '?')
            return line[0];
        buf_append_str(&text, help);
        review_terminal_show(terminal, &text);
    }
}

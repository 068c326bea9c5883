/* See prompt.h. A yes has to be an answer to what is on the screen, hence:
 *
 *     idle --an item--> shown --answer--> idle          what was typed before is thrown away
 *                         \-- taken back --> stale --a line, thrown away--> idle
 *                                              \-- another item waits: called --a line--> idle
 *
 * Nothing blocks: what a stopped terminal (Ctrl-S) does not take waits in `out`, and meanwhile no
 * line counts. In the background the input belongs to another program; then it is left alone, and
 * looked at again now and then, as nothing tells when that changes. */
#include "approval/prompt.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#define LOOK_NS (CLOCK_NS_PER_S / 4) /* between two looks whether the terminal is ours again */

enum { LINE_MAX_BYTES = 256 };

enum prompt_state {
    PROMPT_IDLE,
    PROMPT_SHOWN,  /* the first item is on the screen */
    PROMPT_STALE,  /* what is on the screen was taken back */
    PROMPT_CALLED, /* the same, and Enter was asked for */
    PROMPT_GONE,   /* there is no terminal any more */
};

struct prompt {
    struct loop_watch *watch;
    struct loop_timer *look;
    int fd;
    enum prompt_state state;
    struct prompt_item *items; /* oldest first */
    struct buf out;
};

/* --- output --- */

static bool wants_line(const struct prompt *prompt)
{
    return prompt->state != PROMPT_IDLE && prompt->state != PROMPT_GONE;
}

static void set_interest(struct prompt *prompt)
{
    loop_watch_set(prompt->watch, (wants_line(prompt) ? (unsigned)LOOP_READ : 0) |
                                      (prompt->out.len ? (unsigned)LOOP_WRITE : 0));
}

/* A terminal that has gone takes nothing, which the next read tells. */
static void prompt_flush(struct prompt *prompt)
{
    while (prompt->out.len) {
        ssize_t len = write(prompt->fd, prompt->out.data, prompt->out.len);

        if (len < 0 && errno == EAGAIN)
            break;
        if (len < 0 && errno != EINTR)
            len = (ssize_t)prompt->out.len;
        if (len > 0)
            buf_consume(&prompt->out, (size_t)len);
    }
    set_interest(prompt);
}

/* --- input --- */

/* Also when the terminal has gone, which reading tells. */
static bool is_ours(const struct prompt *prompt)
{
    pid_t group = tcgetpgrp(prompt->fd);

    return group < 0 || group == getpgrp();
}

static bool is_gone(const struct prompt *prompt)
{
    struct termios modes;

    return tcgetattr(prompt->fd, &modes) != 0;
}

static void forget_input(const struct prompt *prompt)
{
    if (is_ours(prompt))
        tcflush(prompt->fd, TCIFLUSH);
}

static void prompt_next(struct prompt *prompt)
{
    if (prompt->state == PROMPT_IDLE && prompt->items) {
        prompt->state = PROMPT_SHOWN;
        forget_input(prompt);
        prompt->items->write(prompt->items, &prompt->out);
        prompt->items->write_keys(prompt->items, &prompt->out);
    }
    prompt_flush(prompt);
}

/* No yes can come from here any more. */
static void prompt_lose(struct prompt *prompt)
{
    prompt->state = PROMPT_GONE;
    buf_clear(&prompt->out);
    set_interest(prompt);
    while (prompt->items)
        prompt->items->take(prompt->items, NULL);
}

/* The rest of a line that was too long is no answer. */
static void ask_again(struct prompt *prompt)
{
    forget_input(prompt);
    prompt->items->write_keys(prompt->items, &prompt->out);
    prompt_flush(prompt);
}

/* `line` NULL: the end of the input. */
static void prompt_take(struct prompt *prompt, const char *line)
{
    if (prompt->state == PROMPT_SHOWN && prompt->out.len)
        return; /* to a question that was not seen */
    if (prompt->state != PROMPT_SHOWN)
        prompt->state = PROMPT_IDLE;
    else if (!prompt->items->take(prompt->items, line)) {
        ask_again(prompt);
        return;
    }
    prompt_next(prompt);
}

static void prompt_read(struct prompt *prompt)
{
    char line[LINE_MAX_BYTES];
    ssize_t len;

    if (!is_ours(prompt)) {
        loop_watch_set(prompt->watch, LOOP_NOTHING);
        loop_timer_start(prompt->look, LOOK_NS);
        return;
    }
    len = read(prompt->fd, line, sizeof line - 1);
    if (len <= 0 && is_gone(prompt)) {
        prompt_lose(prompt);
        return;
    }
    if (len < 0)
        return;
    line[len] = '\0';
    prompt_take(prompt, len > 0 ? line : NULL);
}

static void on_ready(void *data, int fd, unsigned ready)
{
    struct prompt *prompt = data;

    if (ready & LOOP_WRITE)
        prompt_flush(prompt);
    if (ready & LOOP_READ)
        prompt_read(prompt);
}

static void on_look(void *data)
{
    prompt_flush(data);
}

/* --- items --- */

static void unlink_item(struct prompt *prompt, const struct prompt_item *item)
{
    struct prompt_item **at = &prompt->items;

    while (*at != item)
        at = &(*at)->next;
    *at = item->next;
}

/* A person has to say that they have seen that the question is another one. */
static void call_person(struct prompt *prompt)
{
    if (prompt->state != PROMPT_STALE || !prompt->items)
        return;
    prompt->state = PROMPT_CALLED;
    buf_append_str(&prompt->out, "cordon: another question waits; press Enter to see it\n");
}

int prompt_add(struct prompt *prompt, struct prompt_item *item, struct err *err)
{
    struct prompt_item **at = &prompt->items;

    if (prompt->state == PROMPT_GONE)
        return err_set(err, ERR_NOT_FOUND, "the terminal has gone");
    while (*at)
        at = &(*at)->next;
    item->next = NULL;
    *at = item;
    call_person(prompt);
    prompt_next(prompt);
    return 0;
}

void prompt_done(struct prompt *prompt, struct prompt_item *item)
{
    unlink_item(prompt, item);
    if (prompt->state == PROMPT_SHOWN)
        prompt->state = PROMPT_IDLE;
}

void prompt_remove(struct prompt *prompt, struct prompt_item *item)
{
    bool was_shown = prompt->state == PROMPT_SHOWN && prompt->items == item;

    unlink_item(prompt, item);
    if (was_shown) {
        prompt->state = PROMPT_STALE;
        buf_append_str(&prompt->out, "\ncordon: the question is no longer open\n");
        call_person(prompt);
    }
    prompt_flush(prompt);
}

/* --- life --- */

struct prompt *prompt_open(struct loop *loop, struct err *err)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct prompt *prompt;

    if (fd < 0) {
        err_sys(err, "/dev/tty");
        err->code = ERR_NOT_FOUND;
        return NULL;
    }
    prompt = alloc_zero(1, sizeof *prompt);
    prompt->fd = fd;
    buf_init(&prompt->out, SIZE_MAX / 2);
    prompt->look = loop_timer_new(loop, on_look, prompt);
    prompt->watch = loop_watch_new(loop, fd, LOOP_NOTHING, on_ready, prompt, err);
    if (prompt->watch)
        return prompt;
    prompt_free(prompt);
    return NULL;
}

void prompt_free(struct prompt *prompt)
{
    if (!prompt)
        return;
    loop_watch_free(prompt->watch);
    loop_timer_free(prompt->look);
    buf_done(&prompt->out);
    close(prompt->fd);
    free(prompt);
}

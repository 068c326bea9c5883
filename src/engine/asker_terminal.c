/* See asker_terminal.h. What was typed before the question stood there is thrown away: a yes has to
 * be an answer. Only the keys on offer are taken; anything else asks again; an end of file is a no.
 */
#include "engine/asker_terminal.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "engine/approval_text.h"
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 256 };

struct asker_terminal {
    struct asker asker;
    struct loop *loop;
    int fd;
    struct loop_watch *watch;                /* while somebody is asked */
    const struct approval_request *question; /* NULL: nobody is */
};

struct key {
    char key;
    enum approval_decision decision;
    const char *text;
};

static const struct key keys[] = {
    {'y', APPROVAL_APPROVED, "yes, this once"},
    {'s', APPROVAL_FOR_SESSION, "yes, and do not ask again in this session"},
    {'a', APPROVAL_WITH_RULE, "yes, and always allow what begins with: "},
    {'u', APPROVAL_UNCONFINED, "yes, this once and without any sandbox"},
    {'n', APPROVAL_DENIED, "no"},
    {'q', APPROVAL_ABORT, "no, and stop"},
};

static void write_text(const struct asker_terminal *terminal, const char *text)
{
    struct err ignored; /* nobody is there to be told: no answer will come, either */

    fd_write_all(terminal->fd, text, strlen(text), &ignored);
}

static void write_keys(const struct asker_terminal *terminal)
{
    const struct approval_request *question = terminal->question;
    AUTO(buf_done) struct buf text = {0};

    buf_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        AUTO_FREE char *prefix = NULL;

        if (!approval_offers(question, keys[i].decision))
            continue;
        if (keys[i].decision == APPROVAL_WITH_RULE)
            prefix = approval_command_text(strv_view(&question->proposal));
        buf_appendf(&text, "  [%c] %s%s\n", keys[i].key, keys[i].text, prefix ? prefix : "");
    }
    buf_append_str(&text, "> ");
    write_text(terminal, text.data);
}

static void write_question(const struct asker_terminal *terminal)
{
    const struct approval_request *question = terminal->question;
    AUTO_FREE char *command = approval_command_text(strv_view(&question->argv));
    AUTO_FREE char *cwd = approval_plain_text(question->cwd);
    AUTO_FREE char *reason = approval_plain_text(question->reason);
    AUTO_FREE char *covers = approval_plain_text(question->covers);
    AUTO_FREE char *text = alloc_strf(
        "\ncordon: %s\n    %s\n  in:      %s\n  because: %s\n  a yes covers: %s\n",
        question->kind == APPROVAL_KIND_RETRY ? "run this once more?" : "run this command?",
        command, cwd, reason, covers);

    write_text(terminal, text);
    write_keys(terminal);
}

static void terminal_idle(struct asker_terminal *terminal)
{
    loop_watch_free(TAKE_PTR(terminal->watch));
    terminal->question = NULL;
}

static void terminal_answer(struct asker_terminal *terminal, enum approval_decision decision)
{
    struct approval_answer answer = {.decision = decision, .by = "terminal"};
    AUTO_FREE char *id = alloc_str(terminal->question->id);
    struct err ignored; /* it is open, and offers this */

    terminal_idle(terminal);
    approvals_answer(terminal->asker.approvals, id, &answer, &ignored);
}

/* A line of exactly one key: "unsure" begins like a yes without any sandbox. */
static const struct key *find_key(const struct approval_request *question, const char *line)
{
    line += strspn(line, " ");
    if (!*line || line[1 + strspn(line + 1, " \r\n")])
        return NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if ((*line | 0x20) == keys[i].key && approval_offers(question, keys[i].decision))
            return &keys[i];
    return NULL;
}

/* The rest of a line that was too long is no answer. */
static void ask_again(const struct asker_terminal *terminal)
{
    tcflush(terminal->fd, TCIFLUSH);
    write_keys(terminal);
}

static void on_ready(void *data, int fd, unsigned ready)
{
    struct asker_terminal *terminal = data;
    char line[LINE_MAX_BYTES];
    ssize_t len = read(fd, line, sizeof line - 1);
    const struct key *key;

    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    line[len < 0 ? 0 : len] = '\0';
    key = len > 0 ? find_key(terminal->question, line) : NULL;
    if (key)
        terminal_answer(terminal, key->decision);
    else if (len <= 0)
        terminal_answer(terminal, APPROVAL_DENIED);
    else
        ask_again(terminal);
}

static void terminal_ask(struct asker *asker, const struct approval_request *question)
{
    struct asker_terminal *terminal = (struct asker_terminal *)asker;
    struct err ignored; /* then the next asker has it */

    if (!terminal->question)
        terminal->watch =
            loop_watch_new(terminal->loop, terminal->fd, LOOP_READ, on_ready, terminal, &ignored);
    if (terminal->question || !terminal->watch) {
        approvals_pass(asker->approvals, question->id);
        return;
    }
    terminal->question = question;
    tcflush(terminal->fd, TCIFLUSH);
    write_question(terminal);
}

static void terminal_withdraw(struct asker *asker, const char *id)
{
    struct asker_terminal *terminal = (struct asker_terminal *)asker;

    if (!terminal->question || !str_eq(terminal->question->id, id))
        return;
    write_text(terminal, "\ncordon: the question is no longer open\n");
    terminal_idle(terminal);
}

static void terminal_free(struct asker *asker)
{
    struct asker_terminal *terminal = (struct asker_terminal *)asker;

    loop_watch_free(terminal->watch);
    close(terminal->fd);
    free(terminal);
}

struct asker *asker_terminal_new(struct loop *loop, struct err *err)
{
    struct asker_terminal *terminal;
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0) {
        err_sys(err, "/dev/tty");
        err->code = ERR_NOT_FOUND;
        return NULL;
    }
    terminal = alloc_zero(1, sizeof *terminal);
    *terminal = (struct asker_terminal){
        .asker = {.ask = terminal_ask, .withdraw = terminal_withdraw, .free = terminal_free},
        .loop = loop,
        .fd = fd,
    };
    return &terminal->asker;
}

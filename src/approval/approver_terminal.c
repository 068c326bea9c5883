/* See approver_terminal.h. A yes has to be an answer to what is on the screen, hence:
 *
 *     idle --a question--> shown --answer--> idle       what was typed before is thrown away
 *                         \-- taken back --> stale --a line, thrown away--> idle
 *                                              \-- another waits: called --a line--> idle
 *
 * Where the terminal has an owner it is lent to us while a question or a call is shown; a question
 * that was taken back does not wait for the line then, which would be the owner's.
 *
 * Only the keys on offer are taken; anything else asks again; an end of the input is a no.
 *
 * Nothing blocks: what a stopped terminal (Ctrl-S) does not take waits in `out`, and meanwhile no
 * line counts. In the background the input belongs to another program; then it is left alone, and
 * looked at again now and then, as nothing tells when that changes. */
#include "approval/approver_terminal.h"

#include "approval/approval.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/str.h"
#include "base/utf8.h"
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define LOOK_NS (CLOCK_NS_PER_S / 4) /* between two looks whether the terminal is ours again */

enum { LINE_MAX_BYTES = 256 };

enum prompt_state {
    PROMPT_IDLE,
    PROMPT_SHOWN,  /* the first question is on the screen */
    PROMPT_STALE,  /* what is on the screen was taken back */
    PROMPT_CALLED, /* the same, and Enter was asked for */
    PROMPT_GONE,   /* there is no terminal any more */
};

struct prompt {
    struct loop_watch *watch;
    struct loop_timer *look;
    int fd;
    enum prompt_state state;
    struct list questions; /* of all approvers; oldest first */
    struct buf out;
    void (*on_lend)(void *data, bool is_lent); /* NULL: nobody else wants the terminal */
    void *owner;
    bool is_lent;
};

struct approver_terminal {
    struct approver approver; /* first */
    struct prompt *prompt;
    char *who;
};

struct terminal_question {
    struct list link;
    struct approver_terminal *approver;
    const struct approval_request *question;
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
    {'d', APPROVAL_NO_BY_RULE, "no, and never: "},
    {'q', APPROVAL_ABORT, "no, and stop"},
};

/* --- what is shown ---
 *
 * The command chooses most of these texts. None of them can draw lines like ours: each line of theirs begins
 * with our margin, none is broken by the terminal, runs of blanks are counted, and what is long is shown
 * by its beginning and end, so that the whole question stays on the screen. */

/* What the command has left the terminal in is no way to write a question: ends a sequence that was begun;
 * then margins, colours, character sets, insertion and the rest are the terminal's own again. */
static const char sober[] = "\030\033\\" /* CAN, ST */
                            "\033[?2026l\033[!p"
                            "\0337\033[?69l\033[r\0338" /* margins; the cursor stays */
                            "\033[m\033(B\017\033[?7h\033[?25h\033[4l"
                            "\033]104\a\033]110\a\033]111\a\r"; /* colours by their numbers */

static void write_sober(struct buf *text)
{
    const char *term = getenv("TERM");

    if (term && *term && !str_eq(term, "dumb"))
        buf_append_str(text, sober);
}

enum { BLANKS_MAX = 8, SCREEN_COLUMNS = 80, SCREEN_LINES = 24, COLUMNS_MIN = 40 };

struct screen_size {
    size_t columns;
    size_t lines; /* of one text; SIZE_MAX: all of it */
};

static struct screen_size screen_of(const struct prompt *prompt)
{
    enum { OURS = 16 }; /* lines of a question that are not those of its command */
    struct winsize size;
    bool is_known = ioctl(prompt->fd, TIOCGWINSZ, &size) == 0;
    size_t lines = is_known && size.ws_row ? size.ws_row : SCREEN_LINES;
    size_t columns = is_known && size.ws_col ? size.ws_col : SCREEN_COLUMNS;

    return (struct screen_size){.columns = columns > COLUMNS_MIN ? columns : COLUMNS_MIN,
                                .lines = lines > 2 * OURS ? lines - OURS : OURS / 2};
}

/* Never less than what a terminal takes for it. */
static size_t width_of(size_t bytes)
{
    return bytes == 1 ? 1 : 2;
}

/* The text as approval_plain_text() has it, with long runs of blanks as their number. Caller frees. */
static char *shown_text(const char *text)
{
    AUTO_FREE char *plain = approval_plain_text(text);
    AUTO(buf_done) struct buf shown;

    buf_init(&shown, SIZE_MAX / 2);
    buf_append_str(&shown, "");
    for (const char *at = plain; *at;) {
        size_t blanks = strspn(at, " ");
        size_t words = strcspn(at + blanks, " ");

        if (blanks > BLANKS_MAX)
            buf_appendf(&shown, "<%zu blanks>", blanks);
        else
            buf_append(&shown, at, blanks);
        buf_append(&shown, at + blanks, words);
        at += blanks + words;
    }
    return buf_take(&shown);
}

/* The width of the word that begins here. */
static size_t word_width(const char *text)
{
    size_t width = 0;

    for (size_t len; *text && *text != ' '; text += len) {
        utf8_next(text, strlen(text), &len);
        width += width_of(len);
    }
    return width;
}

/* As much as has room, and how many bytes of its text that is. With `by_words` a word that fits in a line is in
 * one; nothing is put in or left out, but for the mark at which a line goes on. */
static size_t write_lines(const char *text, size_t columns, size_t lines, bool by_words,
                          struct buf *ret)
{
    size_t at = 0, column = 0, line = 1;

    while (text[at]) {
        const bool is_word = by_words && at && text[at - 1] == ' ' && text[at] != ' ';
        const size_t width = is_word ? word_width(text + at) : 0;
        size_t len;

        utf8_next(text + at, strlen(text + at), &len);
        if (column + width_of(len) > columns || (column + width > columns && width <= columns)) {
            if (++line > lines)
                break;
            buf_append_str(ret, "\n    | ");
            column = 0;
        }
        buf_append(ret, text + at, len);
        column += width_of(len);
        at += len;
    }
    return at;
}

/* false: not all of it. */
static bool write_text(const char *label, const char *value, struct screen_size size,
                       struct buf *text)
{
    enum { MARGIN = 6, LEAST = 16 };
    AUTO_FREE char *shown = shown_text(value);
    const size_t used = MARGIN + strlen(label);
    const size_t columns = size.columns > used + LEAST ? size.columns - used : LEAST;
    const size_t len = strlen(shown);
    AUTO(buf_done) struct buf whole;
    size_t first, last, room;

    buf_init(&whole, SIZE_MAX / 2);
    buf_appendf(text, "  %s", label);
    if (write_lines(shown, columns, size.lines, true, &whole) == len) {
        buf_append(text, whole.data ? whole.data : "", whole.len);
        buf_append_str(text, "\n");
        return true;
    }
    room = columns * (size.lines - 1); /* bytes: no character is wider than its bytes are many */
    first = utf8_cut(shown, len, room * 2 / 3);
    last = len - room / 3;
    while (last < len && ((unsigned char)shown[last] & 0xc0) == 0x80)
        last++;
    shown[first] = '\0';
    write_lines(shown, columns, SIZE_MAX, false, text);
    buf_appendf(text, "\n    | ... %zu more bytes, press v to see all of it ...\n    | ",
                last - first);
    write_lines(shown + last, columns, SIZE_MAX, false, text);
    buf_append_str(text, "\n");
    return false;
}

static void write_keys(const struct approval_request *question, struct screen_size size,
                       struct buf *text)
{
    AUTO_FREE char *command = approval_command_text(strv_view(&question->argv));

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        bool is_by_rule =
            keys[i].decision == APPROVAL_WITH_RULE || keys[i].decision == APPROVAL_NO_BY_RULE;
        bool is_host = is_by_rule && question->host.name;
        AUTO_FREE char *label = alloc_strf(
            "[%c] %s", keys[i].key,
            is_host && keys[i].decision == APPROVAL_WITH_RULE ? "yes, and always: " : keys[i].text);
        AUTO_FREE char *prefix = NULL;

        if (!approval_offers(question, keys[i].decision))
            continue;
        if (is_host)
            prefix = approval_host_text(&question->host);
        else if (is_by_rule)
            prefix = approval_command_text(strv_view(&question->proposal));
        if (prefix && str_eq(prefix, command) && strlen(prefix) + strlen(label) > size.columns - 8)
            buf_append_str(text, "  [a] yes, and always allow what begins with these very words\n");
        else
            write_text(label, prefix, (struct screen_size){size.columns, 2}, text);
    }
    buf_append_str(text, "> ");
}

static void write_question(const struct terminal_question *asked, struct screen_size size,
                           struct buf *text)
{
    const struct screen_size small = {size.columns, size.lines == SIZE_MAX ? SIZE_MAX : 3};
    static const char *const heads[] = {
        [APPROVAL_KIND_COMMAND] = "run this command?",
        [APPROVAL_KIND_RETRY] = "run this once more?",
        [APPROVAL_KIND_HELD] = "allow this, while the command waits?",
    };
    const struct approval_request *question = asked->question;
    const char *who = asked->approver->who;
    AUTO_FREE char *command = approval_command_text(strv_view(&question->argv));
    AUTO(buf_done) struct buf variables;

    buf_init(&variables, SIZE_MAX / 2);
    for (size_t i = 0; i < question->variables.len; i++)
        buf_appendf(&variables, "%s%s", i ? " " : "", question->variables.items[i]);
    write_sober(text);
    buf_appendf(text, "\ncordon: %s\n", heads[question->kind]);
    write_text("  ", command, size, text);
    if (who)
        write_text("for:     ", who, small, text);
    write_text("in:      ", question->cwd, small, text);
    if (question->programs && *question->programs)
        write_text("runs:    ", question->programs, small, text);
    if (variables.len)
        write_text("with:    ", variables.data, small, text);
    write_text("because: ", question->reason, small, text);
    write_text("a yes covers: ", question->covers, small, text);
    write_keys(question, size, text);
}

static struct terminal_question *first_question(const struct prompt *prompt)
{
    return list_first(&prompt->questions, struct terminal_question, link);
}

/* While a line is waited for the terminal is ours. */
static bool wants_line(const struct prompt *prompt)
{
    return prompt->state == PROMPT_SHOWN || prompt->state == PROMPT_CALLED ||
           (prompt->state == PROMPT_STALE && !prompt->on_lend);
}

static void prompt_lend(struct prompt *prompt, bool is_lent)
{
    if (!prompt->on_lend || prompt->is_lent == is_lent)
        return;
    prompt->is_lent = is_lent;
    prompt->on_lend(prompt->owner, is_lent);
}

/* A terminal that has gone takes nothing, which the next read tells. */
static void prompt_flush(struct prompt *prompt)
{
    bool is_waiting = wants_line(prompt);

    while (prompt->out.len) {
        ssize_t len = write(prompt->fd, prompt->out.data, prompt->out.len);

        if (len < 0 && errno == EAGAIN)
            break;
        if (len < 0 && errno != EINTR)
            len = (ssize_t)prompt->out.len;
        if (len > 0)
            buf_consume(&prompt->out, (size_t)len);
    }
    loop_watch_set(prompt->watch, (is_waiting ? (unsigned)LOOP_READ : 0) |
                                      (prompt->out.len ? (unsigned)LOOP_WRITE : 0));
    if (!is_waiting && !prompt->out.len)
        prompt_lend(prompt, false);
}

/* Also when the terminal has gone, which reading tells. */
static bool is_ours(const struct prompt *prompt)
{
    pid_t group = tcgetpgrp(prompt->fd);

    return group < 0 || group == getpgrp();
}

static void forget_input(const struct prompt *prompt)
{
    if (is_ours(prompt))
        tcflush(prompt->fd, TCIFLUSH);
}

static void prompt_next(struct prompt *prompt)
{
    const struct terminal_question *asked = first_question(prompt);

    if (prompt->state == PROMPT_IDLE && asked) {
        prompt->state = PROMPT_SHOWN;
        prompt_lend(prompt, true);
        forget_input(prompt);
        write_question(asked, screen_of(prompt), &prompt->out);
    }
    prompt_flush(prompt);
}

/* A person has to say that they have seen that the question is another one. */
static void call_person(struct prompt *prompt)
{
    if (prompt->state != PROMPT_STALE || list_is_empty(&prompt->questions))
        return;
    prompt->state = PROMPT_CALLED;
    prompt_lend(prompt, true);
    write_sober(&prompt->out);
    buf_append_str(&prompt->out, "cordon: another question waits; press Enter to see it\n");
}

/* --- answers --- */

static void question_free(struct terminal_question *asked)
{
    list_remove(&asked->link);
    free(asked);
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

static bool is_view(const char *line)
{
    line += strspn(line, " ");
    return (*line | 0x20) == 'v' && !line[1 + strspn(line + 1, " \r\n")];
}

/* It is the first question. */
static void answer_first(struct terminal_question *asked, enum approval_decision decision)
{
    struct prompt *prompt = asked->approver->prompt;
    struct approvals *approvals = asked->approver->approver.approvals;
    struct approval_answer answer = {.decision = decision, .by = "terminal"};
    AUTO_FREE char *id = alloc_str(asked->question->id);
    struct err ignored; /* it is open, and offers this */

    if (prompt->state == PROMPT_SHOWN)
        prompt->state = PROMPT_IDLE;
    question_free(asked);
    approvals_answer(approvals, id, &answer, &ignored);
}

/* `line` NULL: the end of the input. */
static void prompt_take(struct prompt *prompt, const char *line)
{
    struct terminal_question *asked = first_question(prompt);
    const struct key *key;

    if (prompt->state == PROMPT_SHOWN && prompt->out.len)
        return; /* to a question that was not seen */
    if (prompt->state != PROMPT_SHOWN || !asked) {
        prompt->state = PROMPT_IDLE;
        prompt_next(prompt);
        return;
    }
    if (line && is_view(line)) { /* each line of it has our margin; the keys come again behind */
        write_question(asked, (struct screen_size){screen_of(prompt).columns, SIZE_MAX},
                       &prompt->out);
        prompt_flush(prompt);
        return;
    }
    key = line ? find_key(asked->question, line) : NULL;
    if (line && !key) {
        forget_input(prompt); /* the rest of a line that was too long is no answer */
        write_keys(asked->question, screen_of(prompt), &prompt->out);
        prompt_flush(prompt);
        return;
    }
    answer_first(asked, key ? key->decision : APPROVAL_DENIED);
    prompt_next(prompt);
}

static void prompt_read(struct prompt *prompt)
{
    char line[LINE_MAX_BYTES];
    struct terminal_question *asked;
    struct termios modes;
    ssize_t len;

    if (!is_ours(prompt)) {
        loop_watch_set(prompt->watch, LOOP_NOTHING);
        loop_timer_start(prompt->look, LOOK_NS);
        return;
    }
    len = read(prompt->fd, line, sizeof line - 1);
    if (len <= 0 && tcgetattr(prompt->fd, &modes)) { /* no yes can come from here any more */
        prompt->state = PROMPT_GONE;
        buf_clear(&prompt->out);
        prompt_flush(prompt);
        while ((asked = first_question(prompt)))
            answer_first(asked, APPROVAL_DENIED);
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

/* --- the approver --- */

/* Asks, as soon as what was asked before is over. */
static void terminal_ask(struct approver *approver, const struct approval_request *question)
{
    struct approver_terminal *terminal = (struct approver_terminal *)approver;
    struct prompt *prompt = terminal->prompt;
    struct terminal_question *asked;

    if (prompt->state == PROMPT_GONE) { /* then the next approver has it */
        approvals_pass(approver->approvals, question->id);
        return;
    }
    asked = alloc_zero(1, sizeof *asked);
    asked->approver = terminal;
    asked->question = question;
    list_append(&prompt->questions, &asked->link);
    call_person(prompt);
    prompt_next(prompt);
}

/* If it is on the screen, the person is told, and what is typed next is no answer to any other: it
 * may have been meant for this one. */
static void take_back(struct terminal_question *asked)
{
    struct prompt *prompt = asked->approver->prompt;
    bool was_shown = prompt->state == PROMPT_SHOWN && first_question(prompt) == asked;

    question_free(asked);
    if (was_shown) {
        prompt->state = PROMPT_STALE;
        buf_append_str(&prompt->out, "\ncordon: the question is no longer open\n");
        call_person(prompt);
    }
    prompt_flush(prompt);
}

static void terminal_withdraw(struct approver *approver, const char *id)
{
    struct approver_terminal *terminal = (struct approver_terminal *)approver;
    struct terminal_question *asked;

    list_for_each(asked, &terminal->prompt->questions, link)
        if (asked->approver == terminal && str_eq(asked->question->id, id)) {
            take_back(asked);
            return;
        }
}

static void terminal_free(struct approver *approver)
{
    struct approver_terminal *terminal = (struct approver_terminal *)approver;
    struct terminal_question *asked;
    struct terminal_question *next;

    list_for_each_safe(asked, next, &terminal->prompt->questions, link)
        if (asked->approver == terminal)
            take_back(asked);
    free(terminal->who);
    free(terminal);
}

struct approver *approver_terminal_new(struct prompt *prompt, const char *who)
{
    struct approver_terminal *terminal = alloc_zero(1, sizeof *terminal);

    terminal->approver = (struct approver){
        .ask = terminal_ask, .withdraw = terminal_withdraw, .free = terminal_free};
    terminal->prompt = prompt;
    terminal->who = alloc_str(who);
    return &terminal->approver;
}

/* --- the terminal --- */

void prompt_set_owner(struct prompt *prompt, void (*on_lend)(void *data, bool is_lent), void *data)
{
    prompt->on_lend = on_lend;
    prompt->owner = data;
}

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

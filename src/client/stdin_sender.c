/* What comes in on stdin, to a process at the server.
 *
 *     READING --bytes--> WRITING --accepted--> READING
 *        |                  |  ^ no room
 *        | end of file      |  '--- waits, then tries the same again
 *        v                  v ended, takes no input
 *     closeStdin, then    STOPPED
 *
 * A write that may be tried again keeps its writeId, so that it is never carried out twice. The ids
 * of one sender begin with its session's, since several connections may write to a process. A file
 * as stdin, which the loop cannot watch, is read in rounds of a timer.
 *
 * At a terminal nothing waits: some writes may be in flight at a time, and what a command does not
 * read is dropped, as the kernel's own line discipline does. So the detach key is seen in any case,
 * and works a second later even when the server has stopped answering.
 *
 * Keys that may become the detach sequence are held back; when they do not, they go out before the
 * key that broke it. A sequence that fails is not looked for again inside of the held keys but from
 * the key that broke it: such overlaps do not matter with eight keys at most. */
#include "client/stdin_sender.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/str.h"
#include "client/client.h"
#include "client/connection.h"
#include "loop/loop.h"
#include "process/terminal.h"
#include "rpc/message.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the detach key --- */

/* The byte that a terminal sends for "x" or "ctrl-x"; 0 for what is neither. */
static char key_of(const char *word, size_t len)
{
    static const char prefix[] = "ctrl-";
    char letter;

    if (len == 1 && *word > ' ' && *word <= '~')
        return *word;
    if (len != sizeof prefix || strncmp(word, prefix, sizeof prefix - 1) != 0)
        return 0;
    letter = word[sizeof prefix - 1];
    if (letter >= 'a' && letter <= 'z')
        return (char)(letter - 'a' + 1);
    return strchr("[\\]^_", letter) ? (char)(letter & 0x1f) : 0;
}

int detach_key_parse(const char *text, struct detach_key *ret, struct err *err)
{
    struct detach_key key = {.len = 0};
    const char *at = text;

    while (!str_eq(text, "none")) {
        size_t len = strcspn(at, ",");
        char byte = key_of(at, len);

        if (!byte)
            return err_set(err, ERR_INVALID,
                           "\"%.40s\" is no key: right are ctrl-\\, ctrl-p,ctrl-q or none", text);
        if (key.len == DETACH_KEY_MAX)
            return err_set(err, ERR_INVALID, "has more than %d keys", DETACH_KEY_MAX);
        key.keys[key.len++] = byte;
        if (!at[len])
            break;
        at += len + 1;
    }
    *ret = key;
    return 0;
}

bool detach_key_filter(struct detach_key *key, const char *typed, size_t len, char *ret,
                       size_t *ret_len)
{
    size_t out = 0;

    for (size_t i = 0; i < len; i++) {
        if (key->held && typed[i] != key->keys[key->held]) {
            memcpy(ret + out, key->keys, key->held);
            out += key->held;
            key->held = 0;
        }
        if (!key->len || typed[i] != key->keys[key->held]) {
            ret[out++] = typed[i];
            continue;
        }
        if (++key->held == key->len) {
            key->held = 0;
            *ret_len = out;
            return true;
        }
    }
    *ret_len = out;
    return false;
}

/* --- the sender --- */

enum {
    PIECE = 48 * 1024, /* bytes of one write: 64 KiB in base64 */
    RETRY_MIN_MS = 5,
    RETRY_MAX_MS = 200,
    WINDOW = 16,     /* writes in flight, at a terminal */
    FLUSH_MS = 1000, /* for their answers, when the detach key was pressed */
};

static const char interrupt_key = 3; /* Ctrl-C */

struct stdin_sender {
    struct stdin_sender_options options;
    struct loop_signals *signals;
    struct terminal terminal;
    struct loop_watch *watch;     /* NULL: `next_read` */
    struct loop_timer *next_read; /* the next read of a file */
    struct loop_timer *retry;
    char piece[PIECE + DETACH_KEY_MAX];
    size_t len; /* of the last write */
    uint64_t number;
    uint64_t retry_ms;
    int64_t calls[WINDOW]; /* of the last writes, by number */
    unsigned in_flight;
    bool is_detaching; /* behind them */
    bool is_stopped;
    bool is_lent;
};

static bool sender_is_raw(const struct stdin_sender *sender)
{
    return sender->options.flags & STDIN_SENDER_RAW;
}

static void sender_set_reading(struct stdin_sender *sender, bool on)
{
    on = on && !sender->is_stopped && !sender->is_lent;
    if (sender->watch)
        loop_watch_set(sender->watch, on ? LOOP_READ : LOOP_NOTHING);
    else if (on)
        loop_timer_start(sender->next_read, 0);
    else
        loop_timer_stop(sender->next_read);
}

static void sender_stop(struct stdin_sender *sender)
{
    sender->is_stopped = true;
    sender_set_reading(sender, false);
    loop_timer_stop(sender->retry);
}

static void sender_detach(struct stdin_sender *sender)
{
    sender_stop(sender);
    sender->options.on_detach(sender->options.data);
}

/* --- the end of the input --- */

static void on_close_answer(void *data, const struct rpc_message *answer)
{
    const struct client_console *console = data;

    if (answer && answer->kind == RPC_ERROR && answer->code == RPC_UNKNOWN_METHOD)
        console->say("this server cannot end a command's input: one that reads to the end of it "
                     "waits for ever (Ctrl-C ends it; --stdin null gives it no input)");
}

static void sender_end(struct stdin_sender *sender)
{
    const struct connection_request request = {
        .method = "process/closeStdin",
        .params = json_pack("{s:s}", "processId", sender->options.id),
        .on_answer = on_close_answer,
        .data = (void *)sender->options.console,
    };

    sender_stop(sender);
    if (sender->options.flags & STDIN_SENDER_CLOSES)
        connection_send(sender->options.connection, &request);
    else
        json_decref(request.params);
}

/* --- writing --- */

/* Goes on after an answer, or behind a write that is not waited for. */
static void sender_continue(struct stdin_sender *sender)
{
    unsigned max = sender_is_raw(sender) ? WINDOW : 1;

    if (sender->is_detaching && !sender->in_flight)
        sender_detach(sender);
    else if (!sender->is_detaching && sender->in_flight < max)
        sender_set_reading(sender, true);
}

static void sender_try_later(struct stdin_sender *sender)
{
    loop_timer_start(sender->retry, sender->retry_ms * CLOCK_NS_PER_MS);
    sender->retry_ms = sender->retry_ms < RETRY_MAX_MS / 2 ? sender->retry_ms * 2 : RETRY_MAX_MS;
}

/* Nothing can be written any more; a detach key still counts. */
static void sender_give_up(struct stdin_sender *sender)
{
    if (!sender->options.detach) {
        sender_stop(sender);
        return;
    }
    sender->options.flags |= STDIN_SENDER_MUTE;
    sender_continue(sender);
}

static void sender_refused(struct stdin_sender *sender, const struct rpc_message *answer)
{
    /* The protocol has one code for this and for others (docs/protocol.md, process/write). */
    bool has_no_room = answer->code == RPC_INVALID_REQUEST &&
                       strstr(answer->error_text, "bytes of input wait already");

    if (has_no_room && sender_is_raw(sender)) {
        sender_continue(sender);
    } else if (has_no_room) {
        sender_try_later(sender);
    } else {
        if (answer->code != RPC_INTERNAL) /* that one is: the command has ended */
            sender->options.console->say("input is not passed on any more: %s", answer->error_text);
        sender_give_up(sender);
    }
}

static void sender_take_status(struct stdin_sender *sender, const char *status)
{
    if (status && str_eq(status, "accepted")) {
        sender->retry_ms = RETRY_MIN_MS;
        sender_continue(sender);
    } else if (status && str_eq(status, "starting") && !sender_is_raw(sender)) {
        sender_try_later(sender);
    } else {
        if (status && str_eq(status, "stdinClosed"))
            sender->options.console->say("the command takes no input");
        sender_give_up(sender);
    }
}

static void sender_on_answer(void *data, const struct rpc_message *answer)
{
    struct stdin_sender *sender = data;

    sender->in_flight--;
    if (sender->is_stopped || !answer)
        return;
    if (sender->options.flags & STDIN_SENDER_MUTE) /* an earlier one was refused for good */
        sender_continue(sender);
    else if (answer->kind == RPC_ERROR)
        sender_refused(sender, answer);
    else
        sender_take_status(sender, json_string_value(json_object_get(answer->result, "status")));
}

static void sender_send(struct stdin_sender *sender)
{
    AUTO_FREE char *chunk = alloc_zero(base64_encoded_len(sender->len) + 1, 1);
    AUTO_FREE char *write_id =
        alloc_strf("%.8s-%" PRIu64, connection_session(sender->options.connection), sender->number);
    struct connection_request request = {
        .method = "process/write",
        .on_answer = sender_on_answer,
        .data = sender,
    };

    base64_encode(sender->piece, sender->len, chunk);
    request.params = json_pack("{s:s, s:s, s:s}", "processId", sender->options.id, "chunk", chunk,
                               "writeId", write_id);
    sender->in_flight++;
    sender->calls[sender->number % WINDOW] = connection_send(sender->options.connection, &request);
}

static void sender_on_retry(void *data)
{
    struct stdin_sender *sender = data;

    if (sender->is_detaching && sender_is_raw(sender))
        sender_detach(sender);
    else
        sender_send(sender);
}

/* --- reading --- */

static void sender_read(void *data)
{
    struct stdin_sender *sender = data;
    const struct stdin_sender_options *options = &sender->options;
    struct detach_key none = {.len = 0};
    char typed[PIECE];
    ssize_t n = read(STDIN_FILENO, typed, sizeof typed);

    sender_set_reading(sender, false);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        sender_set_reading(sender, true);
        return;
    }
    if (n <= 0) {
        sender_end(sender);
        return;
    }
    sender->is_detaching = detach_key_filter(options->detach ? options->detach : &none, typed,
                                             (size_t)n, sender->piece, &sender->len);
    if (options->flags & STDIN_SENDER_MUTE) {
        if (sender_is_raw(sender) && memchr(sender->piece, interrupt_key, sender->len))
            sender->is_detaching = true;
        sender->len = 0;
    }
    sender->number++;
    if (sender->len)
        sender_send(sender);
    if (sender->is_detaching)
        loop_timer_start(sender->retry, FLUSH_MS * CLOCK_NS_PER_MS);
    sender_continue(sender);
}

static void sender_on_readable(void *data, int fd, unsigned ready)
{
    sender_read(data);
}

/* --- life --- */

void stdin_sender_resize(struct stdin_sender *sender)
{
    struct pty_size size = terminal_size(STDIN_FILENO);

    if (!(sender->options.flags & STDIN_SENDER_NO_SIZE) && size.rows && size.columns)
        connection_send_about(sender->options.connection, sender->options.id, "process/resize",
                              json_pack("{s:i, s:i}", "rows", size.rows, "columns", size.columns));
}

static void sender_on_signal(void *data, int signal)
{
    struct stdin_sender *sender = data;

    if (signal == SIGWINCH)
        stdin_sender_resize(sender);
    else
        sender->options.on_signal(sender->options.data, signal);
}

static int sender_start(struct stdin_sender *sender, struct loop *loop, struct err *err)
{
    const struct stdin_sender_options *options = &sender->options;
    struct err why;

    sender->signals = loop_signals_new(loop, options->signals, sender_on_signal, sender, err);
    if (!sender->signals)
        return -1;
    if (sender_is_raw(sender)) {
        if (terminal_raw(&sender->terminal, STDIN_FILENO, err))
            return -1;
        options->console->set_raw(true);
    }
    if (options->flags & STDIN_SENDER_NO_INPUT)
        return 0;
    sender->watch = loop_watch_new(loop, STDIN_FILENO, LOOP_READ, sender_on_readable, sender, &why);
    if (!sender->watch && why.code != ERR_UNSUPPORTED) {
        *err = why;
        return -1;
    }
    sender_set_reading(sender, true);
    return 0;
}

struct stdin_sender *stdin_sender_new(const struct stdin_sender_options *options, struct err *err)
{
    struct loop *loop = connection_loop(options->connection);
    struct stdin_sender *sender = alloc_zero(1, sizeof *sender);

    sender->options = *options;
    sender->terminal.fd = -1;
    sender->retry_ms = RETRY_MIN_MS;
    sender->next_read = loop_timer_new(loop, sender_read, sender);
    sender->retry = loop_timer_new(loop, sender_on_retry, sender);
    if (sender_start(sender, loop, err) == 0)
        return sender;
    stdin_sender_free(sender);
    return NULL;
}

void stdin_sender_lend(struct stdin_sender *sender, bool is_lent)
{
    struct err ignored; /* the terminal has gone, which its reader will find */

    sender->is_lent = is_lent;
    if (is_lent)
        sender_set_reading(sender, false);
    else
        sender_continue(sender);
    if (!sender_is_raw(sender))
        return;
    sender->options.console->set_raw(!is_lent);
    if (is_lent) {
        terminal_restore(&sender->terminal);
        return;
    }
    terminal_raw(&sender->terminal, STDIN_FILENO, &ignored);
    stdin_sender_resize(sender);
}

void stdin_sender_drop_signals(struct stdin_sender *sender)
{
    loop_signals_free(TAKE_PTR(sender->signals));
}

void stdin_sender_free(struct stdin_sender *sender)
{
    if (!sender)
        return;
    stdin_sender_drop_signals(sender);
    terminal_restore(&sender->terminal);
    sender->options.console->set_raw(false);
    for (size_t i = 0; i < WINDOW; i++)
        connection_cancel(sender->options.connection, sender->calls[i]);
    loop_watch_free(sender->watch);
    loop_timer_free(sender->next_read);
    loop_timer_free(sender->retry);
    free(sender);
}

/* `attach`: a terminal to a process that another program started, most often an agent. What it
 * wrote before comes first, then what it writes; what is typed goes to it, by the right to write
 * that one connection at a time can have; the window's size becomes its terminal's. The detach key
 * leaves it running. A process without a terminal gets lines, and Ctrl-C as an interrupt.
 *
 * Read-only changes nothing at the server: no bytes, no signal, no size. There Ctrl-C leaves, too.
 */
#include "client/client.h"

#include "base/auto.h"
#include "base/json.h"
#include "client/follow.h"
#include "client/remote_process.h"
#include "client/stdin_sender.h"
#include "loop/loop.h"
#include "process/terminal.h"

#include <signal.h>
#include <unistd.h>

struct attach {
    const struct client *client;
    const struct client_attach *options;
    struct remote_process process;
    struct follow *follow;
    struct stdin_sender *sender;
    struct loop_signals *signals;
    struct terminal terminal;
    bool has_tty;  /* the process */
    bool was_left; /* by the detach key, or a signal */
};

static void attach_done(struct attach *attach)
{
    terminal_restore(&attach->terminal);
    attach->client->console->set_raw(false);
    loop_signals_free(attach->signals);
    stdin_sender_free(attach->sender);
    follow_free(attach->follow);
    remote_process_done(&attach->process);
}

static bool may_write(const struct attach *attach)
{
    return attach->options->mode == CLIENT_ATTACH_WRITE;
}

static void attach_leave(void *data)
{
    struct attach *attach = data;

    attach->was_left = true;
    connection_stop(attach->process.connection);
}

static void attach_resize(struct attach *attach)
{
    struct pty_size size = terminal_size(STDIN_FILENO);

    if (attach->has_tty && may_write(attach) && size.rows && size.columns)
        connection_send_about(attach->process.connection, attach->process.id, "process/resize",
                              json_pack("{s:i, s:i}", "rows", size.rows, "columns", size.columns));
}

static void attach_on_signal(void *data, int signal)
{
    struct attach *attach = data;

    if (signal == SIGWINCH)
        attach_resize(attach);
    else if (signal == SIGINT && may_write(attach))
        connection_send_about(attach->process.connection, attach->process.id, "process/signal",
                              json_pack("{s:s}", "signal", "interrupt"));
    else
        attach_leave(attach);
}

static int attach_open(struct attach *attach, struct err *err)
{
    if (remote_process_open(attach->client, attach->options->id, &attach->process, err))
        return -1;
    if (attach->process.kind == REMOTE_PROCESS_RESUMED)
        return err_set(err, ERR_UNSUPPORTED,
                       "this server has no process/attach, so there is no terminal to its "
                       "processes; \"logs -f\" shows what one writes");
    return 0;
}

/* The events begin right behind the answer; connection_call() lets none of them in before. */
static int attach_follow(struct attach *attach, struct err *err)
{
    const struct follow_options follow = {
        .connection = attach->process.connection,
        .console = attach->client->console,
        .id = attach->process.id,
        .order = FOLLOW_AS_SENT,
    };

    attach->follow = follow_new(&follow, err);
    return attach->follow ? 0 : -1;
}

static int attach_process(struct attach *attach, struct err *err)
{
    uint64_t offset = remote_process_offset(&attach->process, &attach->options->from);
    AUTO_JSON json_t *result = remote_process_attach(
        &attach->process, offset, may_write(attach) ? PROCESS_WRITE : PROCESS_READ, err);

    if (!result)
        return may_write(attach) && err->code == ERR_INVALID
                   ? err_wrap(err, "attaching (--read-only only looks on)")
                   : err_wrap(err, "attaching");
    attach->has_tty = json_is_true(json_object_get(result, "tty"));
    return attach_follow(attach, err);
}

static int attach_terminal(struct attach *attach, struct err *err)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, 0};
    bool is_raw = attach->has_tty && isatty(STDIN_FILENO);
    const struct stdin_sender_options sender = {
        .connection = attach->process.connection,
        .console = attach->client->console,
        .id = attach->process.id,
        .fd = STDIN_FILENO,
        .flags = (is_raw ? STDIN_SENDER_RAW : 0) | (may_write(attach) ? 0 : STDIN_SENDER_MUTE),
        .detach = is_raw ? attach->options->key : NULL,
        .on_detach = attach_leave,
        .data = attach,
    };

    attach->signals = loop_signals_new(connection_loop(attach->process.connection), signals,
                                       attach_on_signal, attach, err);
    if (!attach->signals)
        return -1;
    if (is_raw) {
        if (terminal_raw(&attach->terminal, STDIN_FILENO, err))
            return -1;
        attach->client->console->set_raw(true);
    }
    attach_resize(attach);
    attach->sender = stdin_sender_new(&sender, err);
    return attach->sender ? 0 : -1;
}

static int attach_end(struct attach *attach, int *ret_status, struct err *err)
{
    int failed;

    loop_signals_free(attach->signals);
    attach->signals = NULL;
    if (attach->was_left) /* so that others may write as soon as this program has ended */
        connection_call_briefly(attach->process.connection, "process/detach",
                                json_pack("{s:s}", "alias", attach->process.id));
    failed = follow_finish(attach->follow, err);
    terminal_restore(&attach->terminal);
    attach->client->console->set_raw(false);
    if (failed)
        return -1;
    if (attach->was_left)
        attach->client->console->say("left; it goes on as before");
    *ret_status = follow_has_exited(attach->follow) ? follow_exit_code(attach->follow) : 0;
    return 0;
}

static void say_hello(const struct attach *attach)
{
    if (attach->has_tty && isatty(STDIN_FILENO))
        attach->client->console->say("attached to %s%s; %s leaves it", attach->process.id,
                                     may_write(attach) ? "" : ", read-only",
                                     attach->options->key_text);
}

int client_attach(const struct client *client, const struct client_attach *options, int *ret_status,
                  struct err *err)
{
    AUTO(attach_done)
    struct attach attach = {.client = client, .options = options, .terminal = {.fd = -1}};
    struct err lost;
    int status;

    if (attach_open(&attach, err) || attach_process(&attach, err))
        return -1;
    if (attach_terminal(&attach, err))
        return -1;
    say_hello(&attach); /* keys count from here on */
    if (connection_run(attach.process.connection, &lost)) {
        attach_end(&attach, &status, err);
        *err = lost;
        return -1;
    }
    return attach_end(&attach, ret_status, err);
}

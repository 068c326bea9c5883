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

#include <signal.h>
#include <unistd.h>

struct attach {
    const struct client *client;
    const struct client_attach *options;
    struct remote_process process;
    struct follow *follow;
    struct stdin_sender *sender;
    bool has_tty;  /* the process */
    bool was_left; /* by the detach key, or a signal */
};

static void attach_done(struct attach *attach)
{
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

static void attach_on_signal(void *data, int signal)
{
    struct attach *attach = data;

    if (signal == SIGINT && may_write(attach))
        connection_send_about(attach->process.connection, attach->process.id, "process/signal",
                              json_pack("{s:s}", "signal", "interrupt"));
    else
        attach_leave(attach);
}

/* The events begin right behind the answer; connection_call() lets none of them in before. */
static int attach_process(struct attach *attach, struct err *err)
{
    uint64_t offset = remote_process_offset(&attach->process, &attach->options->from);
    AUTO_JSON json_t *result = remote_process_attach(
        &attach->process, offset, may_write(attach) ? PROCESS_WRITE : PROCESS_READ, err);
    const struct follow_options follow = {
        .connection = attach->process.connection,
        .console = attach->client->console,
        .id = attach->process.id,
        .order = FOLLOW_AS_SENT,
        .until = UINT64_MAX,
    };

    if (!result)
        return may_write(attach) && err->code == ERR_INVALID
                   ? err_wrap(err, "attaching (--read-only only looks on)")
                   : err_wrap(err, "attaching");
    attach->has_tty = json_is_true(json_object_get(result, "tty"));
    attach->follow = follow_new(&follow, err);
    return attach->follow ? 0 : -1;
}

static int attach_terminal(struct attach *attach, struct err *err)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, 0};
    bool is_raw = attach->has_tty && isatty(STDIN_FILENO);
    const struct stdin_sender_options sender = {
        .connection = attach->process.connection,
        .console = attach->client->console,
        .id = attach->process.id,
        .flags = (is_raw ? STDIN_SENDER_RAW : 0) | (may_write(attach) ? 0 : STDIN_SENDER_MUTE) |
                 (attach->has_tty && may_write(attach) ? 0 : STDIN_SENDER_NO_SIZE),
        .detach = is_raw ? attach->options->key : NULL,
        .signals = signals,
        .on_signal = attach_on_signal,
        .on_detach = attach_leave,
        .data = attach,
    };

    attach->sender = stdin_sender_new(&sender, err);
    if (!attach->sender)
        return -1;
    stdin_sender_resize(attach->sender);
    if (is_raw) /* keys count from here on */
        attach->client->console->say("attached to %s%s; %s leaves it", attach->process.id,
                                     may_write(attach) ? "" : ", read-only",
                                     attach->options->key_text);
    return 0;
}

static int attach_end(struct attach *attach, int *ret_status, struct err *err)
{
    int failed;

    stdin_sender_drop_signals(attach->sender);
    if (attach->was_left) /* so that others may write as soon as this program has ended */
        connection_call_briefly(attach->process.connection, "process/detach",
                                json_pack("{s:s}", "alias", attach->process.id));
    failed = follow_finish(attach->follow, err);
    stdin_sender_free(TAKE_PTR(attach->sender));
    if (failed)
        return -1;
    if (attach->was_left)
        attach->client->console->say("left; it goes on as before");
    *ret_status = follow_exit_code(attach->follow, 0);
    return 0;
}

int client_attach(const struct client *client, const struct client_attach *options, int *ret_status,
                  struct err *err)
{
    AUTO(attach_done) struct attach attach = {.client = client, .options = options};
    struct err lost;
    int status;

    if (remote_process_open(client, options->id, &attach.process, err))
        return -1;
    if (attach.process.kind == REMOTE_PROCESS_RESUMED)
        return err_set(err, ERR_UNSUPPORTED,
                       "this server has no process/attach, so there is no terminal to its "
                       "processes; \"logs -f\" shows what one writes");
    if (attach_process(&attach, err) || attach_terminal(&attach, err))
        return -1;
    if (connection_run(attach.process.connection, &lost)) {
        attach_end(&attach, &status, err);
        *err = lost;
        return -1;
    }
    return attach_end(&attach, ret_status, err);
}

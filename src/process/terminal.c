/* See terminal.h. A terminal left raw is the rudest thing a program can do to a person, so there
 * are three nets: terminal_restore() on the ordinary way, atexit() for a call of exit() below
 * us, and a handler for signals that would end the program before either. The handler calls
 * nothing but tcsetattr, sigaction and raise, which are async-signal-safe (POSIX 2017, 2.4.3).
 * Signals that the loop takes by signalfd are blocked and never come to the handler. Handlers that
 * other code had installed are left alone. SIGKILL cannot be helped. */
#include "process/terminal.h"

#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>

static const int deadly[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGALRM,
                             SIGABRT, SIGSEGV, SIGBUS,  SIGFPE,  SIGILL};
#define DEADLY_COUNT (sizeof deadly / sizeof *deadly)

/* What the nets put back. The one terminal of the program: nets cannot be given arguments. */
static struct {
    volatile sig_atomic_t is_raw;
    int fd;
    struct termios saved;
    bool has_atexit;
    bool has_handler[DEADLY_COUNT];
} net;

static void net_restore(void)
{
    if (net.is_raw)
        tcsetattr(net.fd, TCSANOW, &net.saved);
    net.is_raw = 0;
}

static void net_on_signal(int signal)
{
    struct sigaction normal = {.sa_handler = SIG_DFL};

    net_restore();
    sigaction(signal, &normal, NULL);
    raise(signal); /* delivered when the handler returns */
}

static void net_spread(void)
{
    for (size_t i = 0; i < DEADLY_COUNT; i++) {
        struct sigaction now;
        struct sigaction ours = {.sa_handler = net_on_signal};

        if (sigaction(deadly[i], NULL, &now) || now.sa_handler != SIG_DFL)
            continue;
        net.has_handler[i] = sigaction(deadly[i], &ours, NULL) == 0;
    }
    if (!net.has_atexit)
        net.has_atexit = atexit(net_restore) == 0;
}

static void net_fold(void)
{
    struct sigaction normal = {.sa_handler = SIG_DFL};

    for (size_t i = 0; i < DEADLY_COUNT; i++)
        if (net.has_handler[i])
            sigaction(deadly[i], &normal, NULL);
    for (size_t i = 0; i < DEADLY_COUNT; i++)
        net.has_handler[i] = false;
}

struct pty_size terminal_size(int fd)
{
    struct winsize window;

    if (fd < 0 || ioctl(fd, TIOCGWINSZ, &window))
        return (struct pty_size){0};
    return (struct pty_size){.rows = window.ws_row, .columns = window.ws_col};
}

int terminal_raw(struct terminal *terminal, int fd, struct err *err)
{
    struct termios raw;

    terminal->fd = -1;
    if (net.is_raw)
        return err_set(err, ERR_BUG, "a terminal is raw already");
    if (tcgetattr(fd, &terminal->saved))
        return err_sys(err, "reading the settings of the terminal");
    raw = terminal->saved;
    cfmakeraw(&raw);
    net.fd = fd;
    net.saved = terminal->saved;
    net_spread();
    net.is_raw = 1;
    if (tcsetattr(fd, TCSANOW, &raw)) {
        err_sys(err, "switching the terminal to raw");
        net.is_raw = 0;
        net_fold();
        return -1;
    }
    terminal->fd = fd;
    return 0;
}

void terminal_restore(struct terminal *terminal)
{
    if (terminal->fd < 0)
        return;
    net_restore();
    net_fold();
    terminal->fd = -1;
}

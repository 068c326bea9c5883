/* See pty.h. The slave is opened through its master (TIOCGPTPEER, Linux 4.13) and not by name:
 * the name belongs to whichever devpts is mounted where we look, the descriptor cannot be wrong.
 *
 * For readers of the master: while any slave descriptor is open, a read on the master
 * waits; when the last one closes, reads give what is still buffered and then fail with EIO.
 * Hang-up in poll(2) comes before the buffered rest is read and means nothing. */
#include "process/pty.h"

#include "base/auto.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static int pty_set_size(int fd, struct pty_size size, struct err *err)
{
    struct winsize window = {
        .ws_row = size.rows ? size.rows : PTY_DEFAULT_ROWS,
        .ws_col = size.columns ? size.columns : PTY_DEFAULT_COLUMNS,
    };

    if (ioctl(fd, TIOCSWINSZ, &window))
        return err_sys(err, "setting the size of a terminal");
    return 0;
}

static int pty_set_lines(int slave, const struct termios *like, struct err *err)
{
    struct termios lines;

    if (like) {
        lines = *like;
    } else {
        if (tcgetattr(slave, &lines))
            return err_sys(err, "reading the settings of a terminal");
        lines.c_iflag |= IUTF8;
    }
    if (tcsetattr(slave, TCSANOW, &lines))
        return err_sys(err, "changing the settings of a terminal");
    return 0;
}

int pty_open(struct pty_size size, const struct termios *like, struct pty *ret, struct err *err)
{
    AUTO_CLOSE int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    AUTO_CLOSE int slave = -1;
    int locked = 0;

    if (master < 0)
        return err_sys(err, "opening a pseudo-terminal");
    if (ioctl(master, TIOCSPTLCK, &locked))
        return err_sys(err, "unlocking a pseudo-terminal");
    slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return err_sys(err, "opening the other end of a pseudo-terminal");
    if (pty_set_size(master, size, err) || pty_set_lines(slave, like, err))
        return -1;
    *ret = (struct pty){.master = TAKE_FD(master), .slave = TAKE_FD(slave)};
    return 0;
}

void pty_close_slave(struct pty *pty)
{
    if (pty->slave >= 0)
        close(pty->slave);
    pty->slave = -1;
}

void pty_close(struct pty *pty)
{
    pty_close_slave(pty);
    if (pty->master >= 0)
        close(pty->master);
    pty->master = -1;
}

int pty_resize(const struct pty *pty, struct pty_size size, struct err *err)
{
    return pty_set_size(pty->master, size, err);
}

int pty_signal(const struct pty *pty, int signal, struct err *err)
{
    if (ioctl(pty->master, TIOCSIG, signal))
        return err_sys(err, "sending signal %d by a terminal", signal);
    return 0;
}

char pty_eof_byte(const struct pty *pty)
{
    struct termios lines;

    if (tcgetattr(pty->master, &lines))
        return CEOF;
    return (char)lines.c_cc[VEOF];
}
